-- evtx_case_machines(table_of_events, table_of_machines)
--
-- The machines of a case: their names, time stamps, events and logs. The tables have the columns of read_evtx and of
-- evtx_machines_of.
--
-- SELECT computer, names FROM evtx_case_machines('events', 'machines')

SELECT machine AS computer, list_sort(list(DISTINCT computer), 'ASC') AS names, min(time_created) AS first_event, max(time_created) AS last_event,
       count(*) AS events, count(DISTINCT filename) AS logs
FROM (SELECT coalesce(filename, '') AS filename, computer, time_created FROM query_table(table_of_events))
JOIN query_table(table_of_machines) USING (filename, computer)
GROUP BY machine
