-- evtx_codes()
--
-- Lists every code that the functions know: its table, name, meaning, and public source.
--
-- SELECT name, meaning FROM evtx_codes() WHERE table_name = 'status'

SELECT part[1] AS table_name, part[2] AS code, part[3] AS name, nullif(part[4], '') AS meaning, part[5] AS source
FROM (SELECT string_split(unnest(evtx_code_names('*', '')), chr(9)) AS part)
