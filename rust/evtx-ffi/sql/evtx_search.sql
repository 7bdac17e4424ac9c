-- evtx_search(files, pattern, regex := 'false')
--
-- A row for each value of an event that has the pattern in it, without regard to case, or with regex := true a match of
-- the regular expression: when, where, the name of the field, and its value.
--
-- SELECT * FROM evtx_search('*.evtx', 'c:\users')

WITH hits AS (
    SELECT time_created, computer, channel, event_id, record_id, unnest(fields) AS item, filename
    FROM read_evtx(files, fields := true, text := true)
    WHERE regex::BOOLEAN OR contains(lower("text"), lower(pattern))
)
SELECT time_created, computer, channel, event_id, record_id, item.name AS field, item.value AS value, filename
FROM hits
-- An expression that is not asked for must not be one that RE2 refuses.
WHERE CASE WHEN regex::BOOLEAN
    THEN regexp_matches(item.value, CASE WHEN regex::BOOLEAN THEN pattern ELSE '' END)
    ELSE contains(lower(item.value), lower(pattern))
END
