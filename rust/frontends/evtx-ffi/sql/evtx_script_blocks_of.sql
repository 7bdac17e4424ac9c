-- evtx_script_blocks_of(table_name)
--
-- evtx_script_blocks over a table, a view or a Parquet file with the columns of read_evtx.
--
-- SELECT time_created, computer, text FROM evtx_script_blocks_of('events') WHERE text ILIKE '%downloadstring%'

-- PowerShell 7 is the provider PowerShellCore. An event without an ID is a block of its own.
WITH evtx_script_blocks_logged AS NOT MATERIALIZED (
    SELECT computer, channel, provider, user_sid, process_id, level, time_created, record_id, event_record_id, filename, computer AS machine,
           NULL::TIMESTAMP_NS AS old_time, NULL::TIMESTAMP_NS AS new_time, NULL::TIMESTAMP_NS AS wake_time, false AS is_late,
           (md5_number(translate({computer: computer, channel: channel, provider: provider, user_sid: user_sid, process_id: process_id, level: level,
                       time: time_created, number: event_record_id, event_data: event_data}::VARCHAR, chr(13), '')) >> 1)::HUGEINT AS digest,
           event_data['ScriptBlockId'] AS script_block_id,
           CASE WHEN script_block_id IS NULL THEN (event_record_id, time_created) END AS own_id,
           TRY_CAST(event_data['MessageNumber'] AS UINTEGER) AS number,
           TRY_CAST(event_data['MessageTotal'] AS UINTEGER)::BIGINT AS total,
           -- A part with another number than 1 to the total belongs to no script. It is shown by itself.
           CASE WHEN (number BETWEEN 1 AND total) IS NOT TRUE THEN {number: event_data['MessageNumber']} END AS stray,
           event_data['ScriptBlockText'] AS part, nullif(event_data['Path'], '') AS path
    FROM query_table(table_name)
    WHERE event_id = 4104 AND provider IN ('Microsoft-Windows-PowerShell', 'PowerShellCore')
),
-- A record in several copies of a log counts once. An export as XML has no carriage returns.
claimed AS (
    SELECT * FROM (SELECT * EXCLUDE (filename, record_id, machine, old_time, new_time, wake_time, is_late, part), max(part) AS part FROM evtx_script_blocks_logged GROUP BY ALL)
    JOIN (SELECT digest, is_contested FROM evtx_log_order('evtx_script_blocks_logged')) USING (digest)
),
-- If parts with one number say different things, there are several scripts. PowerShell logs a part once.
parts AS (
    SELECT *, row_number() OVER (of_part ORDER BY time_created ASC, record ASC, part ASC) AS version,
           count(*) OVER of_part > 1 OR stray IS NOT NULL OR is_claimed OR records > 1 AS is_contested
    FROM (SELECT * EXCLUDE (channel, time_created, event_record_id, digest, is_contested),
                 lower(channel) AS channel, min(time_created) AS time_created, min(event_record_id) AS record,
                 bool_or(is_contested) AS is_claimed, count(*) AS records
          FROM claimed
          GROUP BY ALL)
    WINDOW of_part AS (
        PARTITION BY computer, channel, provider, user_sid, process_id, level, script_block_id, own_id, total, path, number, stray)
),
blocks AS (
    SELECT min(time_created) AS time_created, computer, user_sid, process_id, script_block_id, path,
           -- PowerShell logs blocks with suspicious words at level 3.
           level = 3 AS is_suspicious, bool_or(is_contested) OR count(DISTINCT record) < count(record) AS contested,
           total AS parts, total - count(*) FILTER (stray IS NULL) AS missing_parts,
           string_agg(part, '' ORDER BY number ASC) AS text
    FROM parts
    GROUP BY computer, channel, provider, user_sid, process_id, level, script_block_id, own_id, total, path, stray, version
)
SELECT *, list_filter(list_transform(regexp_extract_all(text, '[A-Za-z0-9+/]{24,}={0,2}'), lambda found: evtx_decode_base64(found)),
                      lambda found: found IS NOT NULL) AS decoded
FROM blocks
