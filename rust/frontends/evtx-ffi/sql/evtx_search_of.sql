-- evtx_search_of(table_name, pattern, regex := 'false')
--
-- evtx_search over a table, a view or a Parquet file with the columns of read_evtx, `fields` and `text` among them.
--
-- SELECT * FROM evtx_search_of('events', 'c:\users')

-- All patterns are one expression of RE2, which DuckDB turns into `contains` if it has no special characters.
WITH evtx_search_hits AS (
    SELECT time_created, computer, channel, event_id, record_id, unnest(coalesce(fields, [NULL])) AS item, error, filename
    -- Only arguments of table functions are evaluated if there are no rows.
    FROM query_table(nullif(table_name, CASE WHEN CASE WHEN regexp_matches(typeof(pattern), '^(BOOLEAN|BLOB|STRUCT|MAP|UNION)') THEN true
            WHEN typeof(pattern) LIKE '%]'
            THEN coalesce(len(list_filter(TRY_CAST(pattern AS VARCHAR[]), lambda p: p IS NULL)) > 0 OR len(TRY_CAST(pattern AS VARCHAR[])) = 0, true)
            ELSE pattern IS NULL END
        THEN error('evtx_search needs a text to search for, or a list of them, such as [''svc'', ''powershell'']; * stands for any text') END))
    -- An event without text could not be read.
    WHERE regex::BOOLEAN OR "text" IS NULL
       OR regexp_matches(lower("text"), '(?s)' || list_aggregate(list_transform(
            CASE WHEN typeof(pattern) LIKE '%]' THEN TRY_CAST(pattern AS VARCHAR[]) ELSE [pattern::VARCHAR] END,
            lambda p: replace(regexp_escape(lower(trim(p, '*'))), '\*', '.*')), 'string_agg', '|'))
)
SELECT time_created, computer, channel, event_id, record_id, item.name AS field, item.value AS value, error, filename
FROM evtx_search_hits
WHERE item IS NULL OR regexp_matches(
    -- lower() turns İ into i, and leaves no S, which separates the two texts.
    CASE WHEN regex::BOOLEAN THEN item.value
         WHEN contains(pattern::VARCHAR, 'İ') THEN lower(item.value) || 'S' || lower(replace(item.value, 'İ', chr(0)))
         ELSE lower(item.value) END,
    list_aggregate(list_transform(
        CASE WHEN typeof(pattern) LIKE '%]' THEN TRY_CAST(pattern AS VARCHAR[]) ELSE [pattern::VARCHAR] END,
        lambda p: CASE WHEN regex::BOOLEAN THEN '(?:' || p || ')'
            ELSE replace(regexp_escape(lower(replace(trim(p, '*'), 'İ', chr(0)))), '\*', '[^S]*') END), 'string_agg', '|'))
