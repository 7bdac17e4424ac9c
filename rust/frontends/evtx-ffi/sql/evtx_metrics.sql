-- evtx_metrics(files, password := NULL)
--
-- A row per computer, channel, provider and event ID: the name of the event, how many records there are, and the times of the
-- first and the last.
--
-- SELECT * FROM evtx_metrics('logs') ORDER BY events DESC

WITH evtx_logs AS NOT MATERIALIZED (FROM read_evtx(files, password := password))
FROM evtx_metrics_of('evtx_logs')
