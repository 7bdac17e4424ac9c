-- evtx_privilege(code)
--
-- The name of a privilege or logon right as the security policy has it, such as Debug programs for SeDebugPrivilege;
-- NULL for another.
--
-- SELECT evtx_privilege('SeDebugPrivilege') FROM read_evtx('Security.evtx', event_id := 4672)

evtx_code_name('privilege', code)
