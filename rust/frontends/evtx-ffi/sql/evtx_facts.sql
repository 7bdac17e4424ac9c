-- evtx_facts(files, known := NULL, password := NULL)
--
-- A row per thing that happened on a machine: topic, level, a short sentence, who, from where, to what, and the records that
-- prove it. known is the name of a table of facts to leave out.
--
-- SELECT * EXCLUDE evidence FROM evtx_facts('logs') WHERE level <> 'info' ORDER BY first

WITH evtx_logs AS NOT MATERIALIZED (FROM read_evtx(files, password := password)),
evtx_files AS NOT MATERIALIZED (FROM evtx_file_metadata(files, password := password))
FROM evtx_facts_of('evtx_logs', table_of_files := 'evtx_files', table_of_known := known)
