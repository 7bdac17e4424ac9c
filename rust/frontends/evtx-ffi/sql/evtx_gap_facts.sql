-- evtx_gap_facts(table_of_marks, table_of_rows)
--
-- The facts of evtx_facts about times of at least a day in which no log of a machine has a record, and about records whose time cannot be.
--
-- SELECT fact, first, last FROM evtx_gap_facts('marks', 'rows')

-- The time of a record is broken if it is far from all others of its log, and before or after those of the two records on either side,
-- unless the clock showed it before or after it was set. A broken time next to it does not count. A damaged record has a time, but no computer.
WITH lonely AS (
    SELECT *, count(*) OVER (PARTITION BY filename ORDER BY epoch(record.time) ASC RANGE BETWEEN 2592000 PRECEDING AND 2592000 FOLLOWING) = 1 AS is_lonely
    FROM query_table(table_of_marks)
),
far AS (
    SELECT *, lag(record) OVER of_log AS before, lead(record) OVER of_log AS after, is_lonely AND before IS NOT NULL AND after IS NOT NULL AS may_be_broken,
           list(record.time) OVER (of_log ROWS BETWEEN 2 PRECEDING AND 2 FOLLOWING EXCLUDE CURRENT ROW) AS near,
           may_be_broken AND (record.time < list_min(near) OR record.time > list_max(near)) AS is_far
    FROM lonely
    WINDOW of_log AS (PARTITION BY filename ORDER BY record.record_id ASC)
),
marks AS (
    SELECT *, list(CASE WHEN NOT is_far THEN record.time END) OVER (
                  PARTITION BY filename ORDER BY record.record_id ASC ROWS BETWEEN 2 PRECEDING AND 2 FOLLOWING EXCLUDE CURRENT ROW) AS sound
    FROM far
),
clocks AS (SELECT computer, epoch(least(old_time, new_time)) - 60 AS since, epoch(greatest(old_time, new_time)) + 60 AS until FROM query_table(table_of_rows) WHERE new_time IS NOT NULL),
broken AS MATERIALIZED (
    FROM marks ANTI JOIN clocks ON clocks.computer = marks.computer AND epoch(record.time) BETWEEN since AND until
    WHERE (is_far OR may_be_broken AND (record.time < list_min(sound) OR record.time > list_max(sound))) AND marks.computer IS NOT NULL
)
SELECT computer, 'gaps' AS topic, CASE WHEN days >= 3 THEN 'low' ELSE 'info' END AS level, 'No events for ' || days || CASE days WHEN 1 THEN ' day' ELSE ' days' END AS fact,
       record.time AS first, next.time AS last, 0 AS events, [record, next] AS evidence, []::VARCHAR[] AS doubts
FROM (SELECT *, lead(record) OVER of_computer AS next, (epoch_ns(lead(log_time) OVER of_computer)::HUGEINT - epoch_ns(log_time)) // 86400000000000 AS days
      FROM marks
      WHERE computer IS NOT NULL AND record NOT IN (SELECT record FROM broken)
      WINDOW of_computer AS (PARTITION BY computer ORDER BY log_time ASC, record ASC))
WHERE days >= 1
UNION ALL BY NAME
SELECT computer, 'clock' AS topic, 'low' AS level, 'Record with a time that cannot be' AS fact, record.time AS first, record.time AS last, 1 AS events,
       [before, record, after] AS evidence, []::VARCHAR[] AS doubts
FROM broken
QUALIFY row_number() OVER (PARTITION BY computer, record.record_id, record.event_id, record.time ORDER BY record.filename ASC) = 1
