-- evtx_search(files, pattern, regex := 'false', password := NULL)
--
-- A row per value of an event that contains the pattern, ignoring case, or, with regex := true, that matches the
-- regular expression: when, where, the name of the field, and its value. Damage is a row with error set.
--
-- SELECT * FROM evtx_search('*.evtx', 'c:\users')

WITH hits AS (
    SELECT time_created, computer, channel, event_id, record_id, unnest(coalesce(fields, [NULL])) AS item, error, filename
    FROM read_evtx(files, fields := true, text := true, password := password)
    -- An event without text could not be read.
    WHERE regex::BOOLEAN OR contains(lower("text"), lower(pattern)) OR "text" IS NULL
)
SELECT time_created, computer, channel, event_id, record_id, item.name AS field, item.value AS value, error, filename
FROM hits
-- RE2 compiles the expression even if regex is false, so it must be valid then.
WHERE item IS NULL OR CASE WHEN regex::BOOLEAN
    THEN regexp_matches(item.value, CASE WHEN regex::BOOLEAN THEN pattern ELSE '' END)
    ELSE contains(lower(item.value), lower(pattern))
     -- lower() turns İ into i.
     AND (NOT contains(pattern, 'İ') OR contains(lower(replace(item.value, 'İ', chr(0))),
                                                 lower(replace(pattern, 'İ', chr(0)))))
END
