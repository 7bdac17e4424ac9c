-- evtx_evtxecmd_rows(table_name)
--
-- A table of EvtxECmd's columns, and of the places and errors of its lines, with the columns of read_evtx: what
-- evtx_from_evtxecmd and evtx_from_evtxecmd_csv have in common.
--
-- SELECT * FROM evtx_evtxecmd_rows('timeline')

WITH evtx_export AS (
    -- Without NULs, whose escapes are in the JSON in the JSON. Another escape can come before u0000.
    SELECT *, TRY_CAST(regexp_replace(Payload, '(\\[^u])|\\u0000', '\1', 'g') AS JSON) AS json, json->'UserData' AS user_data, json->'EventData' AS fields, fields->'Data' AS texts,
           fields->>'Binary' AS bytes,
           TRY_CAST(coalesce((MAP {'LogAlways': '0', 'Critical': '1', 'Error': '2', 'Warning': '3', 'Info': '4', 'Verbose': '5', 'Success': '8',
               'Failure': '16'})["Level"], "Level") AS UTINYINT) AS level_number,
           TRY_CAST(coalesce((MAP {'Audit failure': '0x8010000000000000', 'Audit success': '0x8020000000000000',
               'Time': '0x8000000000000010', 'State': '0x8000000000000080', 'Reboot': '0x8000000000000040',
               'Installation': '0x8000000000000018', 'Download': '0x8000000000000014', 'Audit success, classic': '0x8080000000000000',
               'Classic': '0x8000000000000000'})[Keywords], Keywords) AS UBIGINT) AS bits
    FROM query_table(table_name)
)
SELECT
    RecordNumber AS record_id,
    -- DuckDB takes infinity for a time, and +99:00 for an offset.
    TRY_CAST(CASE WHEN evtx_json_error(to_json(TimeCreated), '"TIMESTAMP_NS"') IS NULL THEN TimeCreated END AS TIMESTAMP_NS) AS time_created,
    -- A cast rounds 4624.5.
    CASE WHEN regexp_full_match(EventId, '\d+(\.0+)?') THEN TRY_CAST(EventId AS UINTEGER) END AS event_id, level_number AS "level",
    Provider AS provider, Channel AS channel, Computer AS computer,
    CASE WHEN json IS NOT NULL AND user_data IS NULL THEN evtx_event_data(list_transform(list_concat(
        list_transform(CASE json_type(texts) WHEN 'ARRAY' THEN texts->'$[*]' ELSE list_filter([texts], lambda t: t IS NOT NULL) END,
            lambda t: {key: t->>'@Name', value: coalesce(CASE json_type(t) WHEN 'OBJECT' THEN coalesce(t->>'#text',
                nullif(json_merge_patch(t, '{"@Name": null}')::VARCHAR, '{}')) ELSE t->>'$' END, '')}),
        list_transform(list_filter(list_zip(json_keys(fields), fields->>'$.*'), lambda e: e[1][1] != '@' AND e[1] NOT IN ('Data', 'Binary')),
            lambda e: {key: e[1], value: coalesce(e[2], '')}),
        CASE WHEN bytes != '' THEN [{key: 'Binary', value: replace(bytes, '-', '')}] END),
        -- EvtxECmd writes GUIDs without braces, and hexadecimal numbers in upper case.
        lambda e: {key: e.key, value: CASE
            WHEN regexp_full_match(e.value, '[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}') THEN '{' || e.value || '}'
            WHEN regexp_full_match(e.value, '0x[0-9A-F]{1,16}') THEN lower(e.value) ELSE e.value END})) END AS event_data,
    user_data, NULL::VARCHAR AS message, NULL::USMALLINT AS task, NULL::UTINYINT AS opcode,
    bits AS keywords, NULL::UTINYINT AS "version",
    NULL::USMALLINT AS qualifiers, NULL::UUID AS provider_guid, NULL::VARCHAR AS event_source_name,
    ProcessId AS process_id, ThreadId AS thread_id, NULL::UUID AS activity_id,
    NULL::UUID AS related_activity_id, nullif(UserId, '') AS user_sid, EventRecordId AS event_record_id,
    coalesce(CASE WHEN is_json THEN place || CASE
        WHEN EventId IS NULL OR Payload IS NULL AND Channel IS NULL THEN 'expected an event of EvtxECmd, which has EventId, Channel and Payload'
        WHEN event_id IS NULL THEN 'EventId is not a whole number'
        WHEN level_number IS NULL AND "Level" != '' THEN 'Level is not a level of EvtxECmd'
        WHEN bits IS NULL AND Keywords != '' THEN 'Keywords is not a name of EvtxECmd' END END,
        line_error, place || 'Payload: ' || evtx_json_error(Payload, '{"EventData": "JSON", "UserData": "JSON"}'),
        CASE WHEN json_keys(json) NOT IN (['EventData'], ['UserData']) THEN place || 'Payload: expected EventData or UserData' END) AS error, filename
FROM evtx_export
