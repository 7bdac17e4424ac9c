-- evtx_parameters(text)
--
-- The text with a name in place of each %%nnnn that the Security log uses, and of each known GUID and SID in braces;
-- what is unknown stays. White space between them becomes a comma.
--
-- SELECT evtx_parameters(AccessList) FROM read_evtx('Security.evtx', event_id := 4663)

evtx_code_text('parameters', text::VARCHAR)
