-- evtx_other_logon_facts(table_of_failures, table_of_logons)
--
-- The facts of evtx_facts about logons from a source where at least ten logons of other accounts had failed in the 24 hours before.
--
-- SELECT account, source, fact FROM evtx_other_logon_facts('failures', 'logons')

-- Somebody who tries one password on many accounts gets in with one that never failed.
WITH attempts AS (
    SELECT computer, lower(source) AS place, who, account, NULL AS account_sid, source, time, log_time, record, number, doubts, true AS is_failure
    FROM query_table(table_of_failures) WHERE counts AND source IS NOT NULL
    UNION ALL BY NAME
    SELECT computer, lower(source) AS place, who, account, account_sid, source, time, log_time, record, doubts, false AS is_failure
    FROM query_table(table_of_logons) WHERE is_accepted AND source IS NOT NULL
),
counted AS (
    SELECT *, count(*) FILTER (is_failure) OVER of_place - count(*) FILTER (is_failure) OVER of_account AS failures,
           min(account) FILTER (is_failure) OVER of_place AS low, max(account) FILTER (is_failure) OVER of_place AS high,
           arg_min(record, number) FILTER (is_failure) OVER of_place AS earliest, arg_max(record, number) FILTER (is_failure) OVER of_place AS latest,
           coalesce(min(log_time) FILTER (NOT is_failure) OVER (PARTITION BY computer, place, who), log_time) < log_time AS is_known
    FROM attempts
    WINDOW of_place AS (PARTITION BY computer, place ORDER BY epoch_us(log_time) ASC RANGE BETWEEN 86400000000 PRECEDING AND CURRENT ROW),
           of_account AS (PARTITION BY computer, place, who ORDER BY epoch_us(log_time) ASC RANGE BETWEEN 86400000000 PRECEDING AND CURRENT ROW)
)
-- An account that also came from there before may be that of its user, whose machine has a service with an old password.
SELECT computer, 'failed logons' AS topic, if(is_known, 'info', 'medium') AS level, failures || ' failed logons, then a logon of another account' AS fact,
       time AS first, time AS last, 1 AS events, account, account_sid, source,
       'failures of ' || if(low = high, low, 'several accounts') AS detail, [earliest, latest, record] AS evidence, doubts
FROM counted
WHERE NOT is_failure AND failures >= 10
QUALIFY coalesce(log_time - lag(log_time) OVER (PARTITION BY computer, place, who ORDER BY log_time ASC, record ASC) > INTERVAL 24 HOURS, true)
