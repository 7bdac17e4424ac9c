-- evtx_encryption_type(code)
--
-- The name of a Kerberos encryption type, such as RC4-HMAC for 0x17. NULL if it is unknown.
--
-- SELECT evtx_encryption_type(TicketEncryptionType) FROM read_evtx('Security.evtx', event_id := 4769)

evtx_code_name('encryption_type', code)
