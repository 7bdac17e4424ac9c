-- evtx_timeline(files, messages := 'LocaleMetaData/{log}_*.[Mm][Tt][Aa]', password := NULL)
--
-- A row per record, with the same columns for every event: when, where, what, who, from where, which program, and all
-- other fields in one line, with the names of codes. The message comes last, if the log or a catalog has it.
--
-- SELECT * FROM evtx_timeline('logs') WHERE remote_host = '203.0.113.45' ORDER BY time_created

WITH evtx_logs AS NOT MATERIALIZED (FROM read_evtx(files, messages := messages, password := password))
FROM evtx_timeline_of('evtx_logs')
