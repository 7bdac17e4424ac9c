-- evtx_logon_facts(table_of_logons)
--
-- The facts of evtx_facts about logons from elsewhere: those of one account from one source in one way.
--
-- SELECT fact, account, source FROM evtx_logon_facts('logons')

WITH remote AS (
    SELECT *, CASE kind WHEN 'windows' THEN coalesce(logon_type_name || ' logon', 'Logon') ELSE 'Logon by ' || kind END AS way,
           md5_number(concat_ws('|', computer, lower(account), source, kind, logon_type_name)) AS key
    FROM query_table(table_of_logons)
    WHERE source IS NOT NULL OR kind <> 'windows' OR list_contains(doubts, 'claims to be this machine')
)
SELECT computer, 'logons from elsewhere' AS topic,
       CASE WHEN kind = 'windows' AND logon_type_name NOT LIKE 'Remote%' AND min(account) LIKE '%$' THEN 'info'
            WHEN regexp_full_match(source, '(\d+\.){3}\d+') AND NOT regexp_matches(source, '^(0|10|127|169\.254|172\.(1[6-9]|2\d|3[01])|192\.168)\.') THEN 'medium'
            WHEN kind = 'windows' THEN 'info' ELSE 'low' END AS level,
       min(way) AS fact, min(time) AS first, max(time) AS last, count(*) AS events, min(account) AS account, min(account_sid) AS account_sid, source,
       min(method) AS detail, list_distinct(list_append(arg_min(record, (log_time, record), 9), arg_max(record, (log_time, record)))) AS evidence,
       list_distinct(flatten(list(doubts))) AS doubts
FROM (SELECT *, count(*) FILTER (is_new) OVER (PARTITION BY key ORDER BY log_time ASC, record ASC) AS run
      FROM (SELECT *, coalesce(log_time - lag(log_time) OVER (PARTITION BY key ORDER BY log_time ASC, record ASC) > INTERVAL 24 HOURS, true) AS is_new FROM remote))
GROUP BY computer, key, run, source, kind, logon_type_name
