-- evtx_guid_name(code)
--
-- The name of an extended right, property set, class or well-known object of Active Directory from its GUID in any
-- notation, such as DS-Replication-Get-Changes-All. NULL if it is unknown.
--
-- SELECT evtx_guid_name(ObjectType) FROM read_evtx('Security.evtx', event_id := 4662)

evtx_code_name('guid_name', code::VARCHAR)
