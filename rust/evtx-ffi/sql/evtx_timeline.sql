-- evtx_timeline(files, messages := 'LocaleMetaData/{log}_*.[Mm][Tt][Aa]', password := NULL)
--
-- A row per record, with the same columns for every event: when, where, what, who, from where, which program, and all
-- other fields in one line, with the names of codes. The message comes last, if the log or a catalog has it.
--
-- SELECT * FROM evtx_timeline('logs') WHERE remote_host = '203.0.113.45' ORDER BY time_created

WITH evtx_timeline_records AS (FROM read_evtx(files, messages := messages, password := password)),
evtx_timeline_accounts AS (FROM evtx_accounts(files, password := password))
SELECT
    time_created, computer, channel, event_id, event, evtx_level_name(level) AS level, provider, record_id, filename,
    error, user_name, user_sid, remote_host, process, details, message
FROM evtx_event_rows('evtx_timeline_records', 'evtx_timeline_accounts')
