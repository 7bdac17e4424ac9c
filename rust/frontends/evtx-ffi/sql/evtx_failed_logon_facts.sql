-- evtx_failed_logon_facts(table_of_failures, table_of_logons)
--
-- The facts of evtx_facts about failed logons: per source and account, with the first logon of the same account after them.
--
-- SELECT fact, source, account FROM evtx_failed_logon_facts('failures', 'logons')

WITH failures AS MATERIALIZED (
    SELECT * EXCLUDE (run), row_number() OVER (PARTITION BY computer, who, source, event_id ORDER BY number ASC) AS nth_of_kind, md5_number(concat_ws('|', computer, who, source, count(*) FILTER (is_late) OVER (PARTITION BY computer, who, source ORDER BY number ASC))) AS run
    FROM (SELECT *, coalesce(log_time - lag(log_time) OVER (PARTITION BY computer, who, source ORDER BY number ASC) > INTERVAL 24 HOURS, true) AS is_late
          FROM query_table(table_of_failures))
),
runs AS MATERIALIZED (
    SELECT run, computer, who, source, min(log_time) AS since, max(log_time) AS until, arg_min(account, number) AS account FROM failures GROUP BY ALL HAVING bool_or(counts)
),
-- Of the same account, from the same source if both are known.
successes AS (
    SELECT run, arg_min({log_time: logons.log_time, time: time, record: record}, (logons.log_time, record)) AS success
    FROM runs JOIN query_table(table_of_logons) AS logons ON logons.is_accepted AND logons.computer = runs.computer AND logons.who = runs.who
     AND logons.log_time > since AND logons.log_time <= until + INTERVAL 24 HOURS AND coalesce(lower(logons.source) = lower(runs.source), true)
    GROUP BY run
),
told AS (
    SELECT computer, account, source, count(*) FILTER (counts) AS events, count(*) FILTER (counts AND is_before) AS before, events - before AS after,
           min(time) AS first, max(time) AS last, any_value(success.time) AS success_time,
           round(epoch(any_value(success.log_time)) - epoch(max(log_time) FILTER (is_before)))::BIGINT AS pause,
           array_to_string(list_sort(list(DISTINCT detail), 'ASC'), ', ') AS reasons, arg_min(account_sid, number) AS account_sid,
           list_distinct(array_concat(arg_min(record, number, 4), arg_min(record, number, 3) FILTER (nth_of_kind = 1),
                                      [arg_min(addressing, number), arg_max(record, number)], [any_value(success.record)])) AS evidence,
           list_distinct(flatten(list(doubts))) AS doubts
    FROM (SELECT failures.* REPLACE (runs.account AS account), success, coalesce(failures.log_time <= success.log_time, true) AS is_before
          FROM failures JOIN runs USING (run) LEFT JOIN successes USING (run))
    GROUP BY run, computer, account, source
)
SELECT computer, 'failed logons' AS topic,
       CASE WHEN success_time IS NOT NULL AND before >= 5 THEN 'high' WHEN events >= 10 THEN 'medium'
            WHEN events >= 5 OR success_time IS NOT NULL THEN 'low' ELSE 'info' END AS level,
       before || if(before = 1, ' failed logon', ' failed logons') || if(success_time IS NULL, '', ', then a logon of the same account') AS fact,
       first, greatest(last, success_time) AS last, events, account, account_sid, source,
       concat_ws('; ', reasons, if(success_time IS NULL, NULL, 'pause of ' || pause || ' s'), if(after > 0, after || ' failures after it', NULL)) AS detail,
       evidence, doubts
FROM told
