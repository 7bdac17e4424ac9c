-- evtx_script_blocks(files)
--
-- A row per script block that PowerShell logged (event 4104), its parts joined in their order, with the number of parts
-- that are missing, and the texts that stand in it as base64.
--
-- SELECT time_created, computer, text FROM evtx_script_blocks('logs') WHERE text ILIKE '%downloadstring%'

-- A part can come from several copies of a log. PowerShell 7 is the provider PowerShellCore.
WITH parts AS (
    SELECT computer, event_data['ScriptBlockId'] AS script_block_id,
           TRY_CAST(event_data['MessageNumber'] AS BIGINT) AS number,
           max(TRY_CAST(event_data['MessageTotal'] AS BIGINT)) AS total,
           any_value(event_data['ScriptBlockText']) AS part, any_value(event_data['Path']) AS path,
           min(time_created) AS time_created, any_value(user_sid) AS user_sid, any_value(process_id) AS process_id,
           min(level) AS level
    FROM read_evtx(files)
    WHERE event_id = 4104 AND provider IN ('Microsoft-Windows-PowerShell', 'PowerShellCore')
    GROUP BY ALL
),
blocks AS (
    SELECT min(time_created) AS time_created, computer, any_value(user_sid) AS user_sid,
           any_value(process_id) AS process_id, script_block_id, nullif(any_value(path), '') AS path,
           -- PowerShell itself gives level 3 to a block with suspicious words.
           min(level) = 3 AS is_suspicious,
           max(total) AS parts, max(total) - count(number) AS missing_parts,
           string_agg(part, '' ORDER BY number) AS text
    FROM parts
    GROUP BY computer, script_block_id
)
SELECT *,
       list_filter(
           list_transform(
               regexp_extract_all(text, '[A-Za-z0-9+/]{24,}={0,2}'), lambda found: evtx_decode_base64(found)),
           lambda found: found IS NOT NULL) AS decoded
FROM blocks
