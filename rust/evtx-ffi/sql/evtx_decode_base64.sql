-- evtx_decode_base64(text)
--
-- The text that a base64 text holds, in UTF-16LE as PowerShell has it, or in UTF-8; NULL for what is no base64, or
-- holds no text. White space, missing padding and the alphabet of URLs do not matter.
--
-- SELECT evtx_decode_base64('dwBoAG8AYQBtAGkA')

evtx_code_text('base64', text::VARCHAR)
