-- evtx_preauth_type(code)
--
-- The name of a Kerberos pre-authentication type, such as PA-ENC-TIMESTAMP for 2. NULL if it is unknown.
--
-- SELECT evtx_preauth_type(PreAuthType) FROM read_evtx('Security.evtx', event_id := 4768)

evtx_code_name('preauth_type', code)
