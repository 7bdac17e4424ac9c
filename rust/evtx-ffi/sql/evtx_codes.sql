-- evtx_codes()
--
-- Each code that the functions know: its table, name, meaning, and the public source.
--
-- SELECT name, meaning FROM evtx_codes() WHERE table_name = 'status'

SELECT
    column[1] AS table_name,
    column[2] AS code,
    column[3] AS name,
    nullif(column[4], '') AS meaning,
    column[5] AS source
FROM (SELECT string_split(unnest(evtx_code_names('*', '')), chr(9)) AS column)
