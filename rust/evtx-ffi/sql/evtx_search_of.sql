-- evtx_search_of(table_name, pattern, regex := 'false')
--
-- evtx_search over a table, a view or a Parquet file with the columns of read_evtx, `fields` and `text` among them.
--
-- SELECT * FROM evtx_search_of('events', 'c:\users')

WITH evtx_search_hits AS (
    SELECT time_created, computer, channel, event_id, record_id, unnest(coalesce(fields, [NULL])) AS item, error, filename
    FROM query_table(table_name)
    -- An event without text could not be read.
    WHERE regex::BOOLEAN OR contains(lower("text"), lower(pattern)) OR "text" IS NULL
)
SELECT time_created, computer, channel, event_id, record_id, item.name AS field, item.value AS value, error, filename
FROM evtx_search_hits
-- RE2 compiles the expression even if regex is false, so it must be valid then.
WHERE item IS NULL OR CASE WHEN regex::BOOLEAN
    THEN regexp_matches(item.value, CASE WHEN regex::BOOLEAN THEN pattern ELSE '' END)
    ELSE contains(lower(item.value), lower(pattern))
     -- lower() turns İ into i.
     AND (NOT contains(pattern, 'İ') OR contains(lower(replace(item.value, 'İ', chr(0))),
                                                 lower(replace(pattern, 'İ', chr(0)))))
END
