-- evtx_accounts(files, password := NULL)
--
-- A row per account and name that the logs name with its SID: the computer, the SID, the name as DOMAIN\name, and from
-- when to when events used it. Another row per change of a name.
--
-- SELECT DISTINCT user_sid, user_name FROM evtx_accounts('logs')

WITH evtx_logs AS NOT MATERIALIZED (FROM read_evtx(files, password := password))
FROM evtx_accounts_of('evtx_logs')
