-- evtx_search(files, pattern, regex := 'false', password := NULL)
--
-- A row per value of an event that contains the pattern, or one of a list of them: when, where, the name of the field,
-- and its value. Ignores case; * stands for any text. With regex := true, patterns are regular expressions. Damage is a
-- row with error set.
--
-- SELECT * FROM evtx_search('*.evtx', 'c:\users')

WITH evtx_logs AS NOT MATERIALIZED (FROM read_evtx(files, fields := true, text := true, password := password))
FROM evtx_search_of('evtx_logs', pattern, regex := regex)
