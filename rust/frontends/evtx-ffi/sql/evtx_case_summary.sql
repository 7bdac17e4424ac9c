-- evtx_case_summary(files, password := NULL)
--
-- A row per machine: its names, the time span of its logs, broken times, changes of time zone and clock, gaps, cleared,
-- wrapped and unused logs, boots, changes of accounts, failed logons, new services and tasks, and remote logons.
--
-- SELECT computer, first_event, last_event, failed_logons FROM evtx_case_summary('logs')

WITH evtx_logs AS NOT MATERIALIZED (FROM read_evtx(files, password := password)),
evtx_files AS NOT MATERIALIZED (FROM evtx_file_metadata(files, password := password))
FROM evtx_case_summary_of('evtx_logs', table_of_files := 'evtx_files')
