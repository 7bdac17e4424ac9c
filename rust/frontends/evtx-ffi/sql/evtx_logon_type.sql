-- evtx_logon_type(code)
--
-- The name of a logon type, such as Network for 3. NULL if it is unknown.
--
-- SELECT evtx_logon_type(LogonType) FROM read_evtx('Security.evtx', event_id := 4624)

evtx_code_name('logon_type', code)
