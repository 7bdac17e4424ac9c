-- evtx_privileges(code)
--
-- The names of the privileges in a list, as evtx_privilege returns them. Unknown ones stay. NULL if none is known.
--
-- SELECT evtx_privileges(PrivilegeList) FROM read_evtx('Security.evtx', event_id := 4672)

evtx_code_names('privilege', code)
