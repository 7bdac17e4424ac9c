-- evtx_status(code)
--
-- The name of an NTSTATUS or Win32 code that logons and services report, such as STATUS_WRONG_PASSWORD for 0xc000006a.
-- NULL if it is unknown.
--
-- SELECT evtx_status(SubStatus) FROM read_evtx('Security.evtx', event_id := 4625)

evtx_code_name('status', code)
