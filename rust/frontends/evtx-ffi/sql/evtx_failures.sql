-- evtx_failures(table_of_rows)
--
-- The failed logons among the rows of evtx_facts, with their source. Of the records of one failure, one counts.
--
-- SELECT account, source, time FROM evtx_failures('rows') WHERE counts

-- Remote Desktop (140) names no account, and neither does Windows if SSH does (NOUSER, in 4625 and 4776).
WITH attempts AS (
    SELECT * REPLACE (CASE WHEN event_id IN (4768, 4771) THEN coalesce(evtx_kerberos_failure(detail), detail)
                           WHEN event_id IN (4625, 4776) THEN coalesce(evtx_status(detail), detail) ELSE detail END AS detail,
                      -- The account of 140 is that of the service that wrote it.
                      CASE WHEN event_id <> 140 THEN account END AS account, CASE WHEN event_id <> 140 THEN account_sid END AS account_sid,
                      CASE WHEN event_id <> 140 AND (event_id NOT IN (4625, 4776) OR NOT regexp_full_match(account, '(?i)(.*\\)?NOUSER')) THEN who END AS who),
           CASE WHEN source SIMILAR TO '[0-9a-fA-F]*[.:][0-9a-fA-F.:%]*' THEN source END AS address,
           event_id = 4625 AND address IS NULL AND logon_type IN ('3', '8', '10') AS needs_address
    FROM query_table(table_of_rows)
    WHERE is_failure OR topic = 'connections'
),
-- The address that Remote Desktop, SSH or SQL Server has in the same seconds, if it is the only one, with its record.
addressed AS (
    SELECT * REPLACE (coalesce(address, CASE WHEN needs_address AND min(address) OVER near = max(address) OVER near THEN min(address) OVER near END) AS address),
           CASE WHEN needs_address THEN arg_min(record, CASE WHEN address IS NOT NULL THEN number END) OVER near END AS addressing
    FROM attempts
    WINDOW near AS (PARTITION BY computer ORDER BY epoch_us(log_time) ASC RANGE BETWEEN 2000000 PRECEDING AND 2000000 FOLLOWING)
),
-- Several logs can tell of one failure. Those of an account that follow each other within two seconds tell of as many as the most
-- frequent of them, unless they have different addresses.
told AS (
    SELECT * REPLACE (coalesce(address, CASE WHEN min(address) OVER of_run = max(address) OVER of_run THEN min(address) OVER of_run END, source) AS source)
    FROM (SELECT *, count(*) FILTER (is_first) OVER (PARTITION BY computer, who ORDER BY number ASC) AS run
          FROM (SELECT *, coalesce(log_time - lag(log_time) OVER (PARTITION BY computer, who ORDER BY number ASC) > INTERVAL 2 SECONDS, true) AS is_first
                FROM addressed WHERE is_failure))
    WINDOW of_run AS (PARTITION BY computer, who, run)
),
counted AS (
    SELECT *, event_id = first_value(event_id) OVER (PARTITION BY computer, who, run, source ORDER BY alike DESC, event_id = 4625 DESC, event_id ASC) AS is_best
    FROM (SELECT *, count(*) OVER (PARTITION BY computer, who, run, source, event_id) AS alike FROM told)
)
-- A failure without an account is one of those with an account.
SELECT *, is_best AND (who IS NOT NULL OR row_number() OVER (PARTITION BY computer, source, burst, who, is_best ORDER BY number ASC)
                                          > count(who) FILTER (is_best) OVER (PARTITION BY computer, source, burst)) AS counts
FROM (SELECT *, count(*) FILTER (is_new) OVER (PARTITION BY computer, source ORDER BY number ASC) AS burst
      FROM (SELECT *, coalesce(log_time - lag(log_time) OVER (PARTITION BY computer, source ORDER BY number ASC) > INTERVAL 2 SECONDS, true) AS is_new FROM counted))
