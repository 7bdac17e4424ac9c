-- evtx_starts(table_name)
--
-- The starts of Windows, which macros share: for each, the number of the first of its events. The table has these events, with the
-- columns computer, number (their order), log_time, event_id and, of 4688, process: a program that PID 4 started.
--
-- SELECT first FROM evtx_starts('events')

SELECT unnest(evtx_start_list(list({computer: computer, number: number::UBIGINT, log_time: log_time, event_id: event_id, process: process})), max_depth := 2)
FROM query_table(table_name)
