-- evtx_start_facts(table_of_rows, table_of_marks)
--
-- The facts of evtx_facts about starts of Windows: its version, and how long it ran.
--
-- SELECT fact, first, detail FROM evtx_start_facts('rows', 'marks')

WITH evtx_start_facts_rows AS MATERIALIZED (
    FROM query_table(table_of_rows) WHERE is_start
),
starts AS MATERIALIZED (
    SELECT computer, first, coalesce(lead(first) OVER (PARTITION BY computer ORDER BY first ASC), 9223372036854775807) AS next
    FROM evtx_starts('evtx_start_facts_rows')
),
told AS (
    SELECT starts.computer, first, min(log_time) AS since, min(time) AS time, max(version) AS version, arg_min(record, number, 9) AS records,
           list_distinct(flatten(list(doubts))) AS doubts, lead(min(log_time)) OVER (PARTITION BY starts.computer ORDER BY first ASC) AS next
    FROM starts JOIN evtx_start_facts_rows AS rows ON rows.computer = starts.computer AND number >= first AND number < starts.next
    GROUP BY starts.computer, first
)
-- The last record before the next start. Of those with one time, one is cited, whatever their order.
SELECT told.computer, 'starts' AS topic, 'info' AS level, 'Windows started' AS fact, told.time AS first, marks.record.time AS last,
       len(records) AS events, concat_ws('; ', 'version ' || version, 'ran for ' || evtx_duration(epoch(marks.log_time) - epoch(since))) AS detail,
       list_distinct(list_append(records, marks.record)) AS evidence, doubts
FROM told ASOF LEFT JOIN (SELECT computer, log_time, max(record) AS record FROM query_table(table_of_marks) GROUP BY ALL) AS marks
     ON marks.computer = told.computer AND marks.log_time < coalesce(told.next, TIMESTAMP_NS '2262-01-01')
