-- evtx_sid_name(code)
--
-- The name of a well-known SID, in any domain, or of a RID, such as Domain Admins for S-1-5-21-1-2-3-512 and for 512.
-- NULL if it is unknown.
--
-- SELECT evtx_sid_name(TargetUserSid) FROM read_evtx('Security.evtx', event_id := 4624)

evtx_code_name('sid_name', code)
