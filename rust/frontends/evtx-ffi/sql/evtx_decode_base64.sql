-- evtx_decode_base64(text)
--
-- The text within base64, in UTF-16LE as PowerShell encodes it, or in UTF-8. NULL if it is not base64, or does not
-- contain text. White space, missing padding and the URL-safe alphabet are accepted.
--
-- SELECT evtx_decode_base64('dwBoAG8AYQBtAGkA')

evtx_code_text('base64', text::VARCHAR)
