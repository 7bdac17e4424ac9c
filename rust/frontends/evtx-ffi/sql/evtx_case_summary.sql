-- evtx_case_summary(files, password := NULL)
--
-- A row per machine: its names, the time span of its logs, its events and logs, how many facts of it are above info, and how
-- many are high.
--
-- SELECT computer, first_event, last_event, facts FROM evtx_case_summary('logs') ORDER BY high_facts DESC, facts DESC

WITH evtx_logs AS NOT MATERIALIZED (FROM read_evtx(files, password := password)),
evtx_files AS NOT MATERIALIZED (FROM evtx_file_metadata(files, password := password))
FROM evtx_case_summary_of('evtx_logs', table_of_files := 'evtx_files')
