-- evtx_kerberos_failure(code)
--
-- The name of a Kerberos error, such as KDC_ERR_PREAUTH_FAILED for 0x18. NULL if it is unknown.
--
-- SELECT evtx_kerberos_failure(Status) FROM read_evtx('Security.evtx', event_id := 4771)

evtx_code_name('kerberos_failure', code)
