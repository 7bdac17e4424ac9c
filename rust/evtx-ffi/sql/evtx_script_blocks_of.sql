-- evtx_script_blocks_of(table_name)
--
-- evtx_script_blocks over a table, a view or a Parquet file with the columns of read_evtx.
--
-- SELECT time_created, computer, text FROM evtx_script_blocks_of('events') WHERE text ILIKE '%downloadstring%'

-- PowerShell 7 is the provider PowerShellCore. An event without an ID is a block of its own.
WITH evtx_script_blocks_logged AS (
    SELECT computer, time_created, user_sid, process_id, level, event_data['ScriptBlockId'] AS script_block_id,
           CASE WHEN script_block_id IS NULL THEN (event_record_id, time_created) END AS own_id,
           TRY_CAST(event_data['MessageNumber'] AS UINTEGER) AS number,
           TRY_CAST(event_data['MessageTotal'] AS UINTEGER)::BIGINT AS total,
           event_data['ScriptBlockText'] AS part, event_data['Path'] AS path
    FROM query_table(table_name)
    WHERE event_id = 4104 AND provider IN ('Microsoft-Windows-PowerShell', 'PowerShellCore')
),
-- A part can come from several copies of a log. Its number can exceed the total.
parts AS (
    SELECT computer, script_block_id, own_id, number,
           max(CASE WHEN number > total THEN number ELSE total END) AS total,
           any_value(part) AS part, any_value(path) AS path, min(time_created) AS time_created,
           any_value(user_sid) AS user_sid, any_value(process_id) AS process_id, min(level) AS level
    FROM evtx_script_blocks_logged
    GROUP BY computer, script_block_id, own_id, number
),
blocks AS (
    SELECT min(time_created) AS time_created, computer, any_value(user_sid) AS user_sid,
           any_value(process_id) AS process_id, script_block_id, nullif(any_value(path), '') AS path,
           -- PowerShell logs blocks with suspicious words at level 3.
           min(level) = 3 AS is_suspicious,
           max(total) AS parts, max(total) - count(number) FILTER (number > 0) AS missing_parts,
           string_agg(part, '' ORDER BY number ASC NULLS LAST) AS text
    FROM parts
    GROUP BY computer, script_block_id, own_id
)
SELECT *,
       list_filter(
           list_transform(
               regexp_extract_all(text, '[A-Za-z0-9+/]{24,}={0,2}'), lambda found: evtx_decode_base64(found)),
           lambda found: found IS NOT NULL) AS decoded
FROM blocks
