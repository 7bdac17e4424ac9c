-- evtx_supported_encryption(code)
--
-- The names of the encryption types that an account supports, from the bits of msDS-SupportedEncryptionTypes, such as
-- [RC4-HMAC] for 4. NULL if none is known.
--
-- SELECT evtx_supported_encryption(AttributeValue) FROM read_evtx('Security.evtx', event_id := 5136)

evtx_code_names('supported_encryption', code)
