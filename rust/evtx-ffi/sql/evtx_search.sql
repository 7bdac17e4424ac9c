-- evtx_search(files, pattern, regex := 'false', password := NULL)
--
-- A row for each value of an event that has the pattern in it, without regard to case, or with regex := true a match of
-- the regular expression: when, where, the name of the field, and its value. What could not be read is a row with error.
--
-- SELECT * FROM evtx_search('*.evtx', 'c:\users')

WITH hits AS (
    SELECT time_created, computer, channel, event_id, record_id, unnest(coalesce(fields, [NULL])) AS item, error, filename
    FROM read_evtx(files, fields := true, text := true, password := password)
    -- An event without text is one that could not be read.
    WHERE regex::BOOLEAN OR contains(lower("text"), lower(pattern)) OR "text" IS NULL
)
SELECT time_created, computer, channel, event_id, record_id, item.name AS field, item.value AS value, error, filename
FROM hits
-- An expression that is not asked for must not be one that RE2 refuses.
WHERE item IS NULL OR CASE WHEN regex::BOOLEAN
    THEN regexp_matches(item.value, CASE WHEN regex::BOOLEAN THEN pattern ELSE '' END)
    ELSE contains(lower(item.value), lower(pattern))
     -- lower() makes an i of it.
     AND (NOT contains(pattern, 'İ') OR contains(lower(replace(item.value, 'İ', chr(0))),
                                                 lower(replace(pattern, 'İ', chr(0)))))
END
