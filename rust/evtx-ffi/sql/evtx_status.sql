-- evtx_status(code)
--
-- The name of an NTSTATUS or Win32 code that logons and services give, such as STATUS_WRONG_PASSWORD for 0xc000006a;
-- NULL for another.
--
-- SELECT evtx_status(SubStatus) FROM read_evtx('Security.evtx', event_id := 4625)

evtx_code_name('status', code)
