-- evtx_clock_facts(table_of_rows)
--
-- The facts of evtx_facts about clocks that were set: by at least a minute, each; by less, all by one account within 24 hours.
--
-- SELECT fact, first FROM evtx_clock_facts('rows')

WITH changes AS (
    SELECT *, (epoch_ns(new_time)::HUGEINT - epoch_ns(old_time)) / 1e9 AS moved, abs(moved) < 60 AS is_small
    FROM query_table(table_of_rows) WHERE new_time IS NOT NULL AND NOT is_woken
),
-- The System and the Security log both tell of a change, but only the second names the account. A clock that is set back at once was set twice.
runs AS (
    SELECT *, count(*) FILTER (is_new) OVER of_kind AS run
    FROM (SELECT *, CASE WHEN is_small THEN account_sid END AS setter,
                 coalesce(log_time - lag(log_time) OVER of_kind > if(is_small, INTERVAL 24 HOURS, INTERVAL 5 SECONDS)
                          OR NOT is_small AND abs(moved - lag(moved) OVER of_kind) > 2, true) AS is_new
          FROM changes
          WINDOW of_kind AS (PARTITION BY computer, is_small, CASE WHEN is_small THEN account_sid END ORDER BY number ASC))
    WINDOW of_kind AS (PARTITION BY computer, is_small, setter ORDER BY number ASC)
)
SELECT computer, 'clock' AS topic,
       CASE WHEN is_small THEN 'info' WHEN min(account_sid) IN ('S-1-5-18', 'S-1-5-19') OR min(account_sid) IS NULL THEN 'low' ELSE 'medium' END AS level,
       CASE WHEN is_small THEN 'Clock corrected by less than a minute'
            ELSE 'Clock set ' || if(min(moved) < 0, 'back', 'forward') || ' by ' || evtx_duration(abs(arg_min(moved, number))) END AS fact,
       min(time) AS first, max(time) AS last, count(*) AS events, arg_min(account, (account IS NULL, event_id = 1, number)) AS account,
       arg_min(account_sid, (account_sid IS NULL, number)) AS account_sid, min(process) AS target,
       CASE WHEN NOT is_small THEN 'from ' || arg_min(old_time, number) || ' to ' || arg_min(new_time, number) END AS detail,
       list_distinct(list_append(arg_min(record, number, 9), arg_max(record, number))) AS evidence, list_distinct(flatten(list(doubts))) AS doubts
FROM runs
GROUP BY computer, is_small, setter, run
