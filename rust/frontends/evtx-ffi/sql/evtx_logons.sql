-- evtx_logons(files, password := NULL)
--
-- A row per logon session: who, from where, how, from when to when, and with which privileges. Sessions of Windows
-- itself are left out.
--
-- SELECT * FROM evtx_logons('logs') WHERE logon_type = 10 ORDER BY logon_time

WITH evtx_logs AS NOT MATERIALIZED (FROM read_evtx(files, password := password))
FROM evtx_logons_of('evtx_logs')
