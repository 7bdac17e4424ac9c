-- evtx_access_mask(code, object_type)
--
-- The names of the access rights in a mask for a type of object, such as [FILE_READ_DATA] for 1 and File. NULL if no
-- right is known, or the type is unknown. A type that contains a GUID is one of Active Directory.
--
-- SELECT evtx_access_mask(AccessMask, ObjectType) FROM read_evtx('Security.evtx', event_id := 4663)

evtx_code_names('access_' || object_type, code)
