-- evtx_log_facts(table_of_marks, table_of_files)
--
-- The facts of evtx_facts about logs that were full and overwrote their oldest records. The second table has the columns of
-- evtx_file_metadata.
--
-- SELECT target, first FROM evtx_log_facts('marks', 'files')

-- What happened before the first record that is left, this log cannot tell.
SELECT arg_min(computer, (log_time, record)) AS computer, 'cleared logs' AS topic, 'info' AS level, 'Log overwrote its oldest records' AS fact,
       min(first).time AS first, min(first).time AS last, 1 AS events, arg_min(channel, (log_time, record)) AS target, [min(first)] AS evidence,
       []::VARCHAR[] AS doubts
FROM (SELECT *, first_value(record) OVER (PARTITION BY filename ORDER BY log_time ASC, record ASC) AS first
      FROM query_table(table_of_marks) SEMI JOIN (FROM query_table(table_of_files) WHERE is_wrapped) USING (filename))
GROUP BY filename
