-- evtx_guid_name(code)
--
-- The name of an extended right, property set, class or well-known object of Active Directory, such as DS-
-- Replication-Get-Changes-All, from its GUID in any form; NULL for another.
--
-- SELECT evtx_guid_name(ObjectType) FROM read_evtx('Security.evtx', event_id := 4662)

evtx_code_name('guid_name', code::VARCHAR)
