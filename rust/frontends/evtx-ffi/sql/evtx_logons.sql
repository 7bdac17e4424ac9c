-- evtx_logons(files, password := NULL, all_accounts := NULL)
--
-- A row per logon session, of Windows, Remote Desktop, SSH, WinRM, SQL Server, gateways and VPNs: who, from where, how, from
-- when to when, and with which privileges. Sessions of Windows itself are left out, unless all_accounts is true.
--
-- SELECT * FROM evtx_logons('logs') WHERE kind = 'remote desktop' ORDER BY logon_time

WITH evtx_logs AS NOT MATERIALIZED (FROM read_evtx(files, password := password))
FROM evtx_logons_of('evtx_logs', all_accounts := all_accounts)
