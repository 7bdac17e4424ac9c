-- evtx_decoded(files, password := NULL)
--
-- A row per text that a field of an event encodes in Base64 or hexadecimal digits, also compressed: when, where, the name of the
-- field, the encodings from the outside in, and the text.
--
-- SELECT * FROM evtx_decoded('logs') WHERE text ILIKE '%downloadstring%'

WITH evtx_logs AS NOT MATERIALIZED (FROM read_evtx(files, password := password))
FROM evtx_decoded_of('evtx_logs')
