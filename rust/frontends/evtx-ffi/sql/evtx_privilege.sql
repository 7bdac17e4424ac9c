-- evtx_privilege(code)
--
-- The name of a privilege or logon right in the security policy, such as Debug programs for SeDebugPrivilege. NULL if
-- it is unknown.
--
-- SELECT evtx_privilege('SeDebugPrivilege') FROM read_evtx('Security.evtx', event_id := 4672)

evtx_code_name('privilege', code)
