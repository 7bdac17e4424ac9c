-- evtx_parameters(text)
--
-- The text with each %%nnnn of the Security log, and each known GUID and SID in braces, replaced by its name. Unknown
-- ones stay. White space between them becomes a comma.
--
-- SELECT evtx_parameters(AccessList) FROM read_evtx('Security.evtx', event_id := 4663)

evtx_code_text('parameters', text::VARCHAR)
