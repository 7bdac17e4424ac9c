-- evtx_audit_category(code)
--
-- The name of an audit category or subcategory, from its task, its parameter or its GUID, such as Logon/Logoff: Logon
-- for 12544. NULL if it is unknown.
--
-- SELECT evtx_audit_category(SubcategoryGuid) FROM read_evtx('Security.evtx', event_id := 4719)

evtx_code_name('audit_category', code::VARCHAR)
