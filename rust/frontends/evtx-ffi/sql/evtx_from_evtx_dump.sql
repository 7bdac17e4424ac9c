-- evtx_from_evtx_dump(exports)
--
-- The events in files that evtx_dump -o jsonl wrote, with the columns of read_evtx.
--
-- SELECT * FROM evtx_from_evtx_dump('Security.jsonl') WHERE event_id = 4624

WITH evtx_export AS (
    SELECT from_json(json, '{{columns of evtx_dump.json}}').Event AS event, (event).System AS s,
        (event).EventData AS fields, fields->'$.Data."#text"' AS texts, (event).UserData AS user_data,
        coalesce((s).EventID->>'#text', (s).EventID->>'$') AS id, (s).TimeCreated."#attributes".SystemTime AS written, json, place || ': ' AS place, error AS line_error, filename
    FROM evtx_json_lines(exports, types := '{{evtx_dump.json}}')
)
SELECT
    s.EventRecordID AS record_id,
    -- DuckDB takes infinity for a time, and +99:00 for an offset.
    TRY_CAST(CASE WHEN evtx_json_error(to_json(written), '"TIMESTAMP_NS"') IS NULL THEN written END AS TIMESTAMP_NS) AS time_created,
    -- A cast rounds 4624.5.
    CASE WHEN regexp_full_match(id, '\d+(\.0+)?') THEN TRY_CAST(id AS UINTEGER) END AS event_id, s."Level" AS "level",
    s.Provider."#attributes"."Name" AS provider, s.Channel AS channel, s.Computer AS computer,
    CASE WHEN fields IS NOT NULL THEN evtx_event_data(list_concat(
        list_transform(list_filter(coalesce(TRY_CAST(texts AS VARCHAR[]), [texts->>'$']), lambda t: t IS NOT NULL),
                       lambda t: {key: NULL, value: t}),
        list_transform(list_filter(list_zip(json_keys(fields), fields->>'$.*'), lambda e:
                e[2] IS NOT NULL AND e[1] != '#attributes' AND (e[1] != 'Data' OR texts IS NULL)),
            -- GUIDs have no braces before evtx_dump 0.15.
            lambda e: {key: e[1], value: CASE WHEN regexp_full_match(e[2], '[0-9A-F]{8}(-[0-9A-F]{4}){3}-[0-9A-F]{12}')
                                              THEN '{' || lower(e[2]) || '}' ELSE e[2] END})))
    WHEN event_id IS NOT NULL AND user_data IS NULL THEN MAP {} END AS event_data, user_data, event.RenderingInfo.Message AS message, s.Task AS task,
    s.Opcode AS opcode, s.Keywords AS keywords, s."Version" AS "version",
    TRY_CAST(s.EventID->'#attributes'->>'Qualifiers' AS USMALLINT) AS qualifiers,
    s.Provider."#attributes".Guid AS provider_guid, s.Provider."#attributes".EventSourceName AS event_source_name,
    s.Execution."#attributes".ProcessID AS process_id, s.Execution."#attributes".ThreadID AS thread_id,
    s.Correlation."#attributes".ActivityID AS activity_id, s.Correlation."#attributes".RelatedActivityID AS related_activity_id,
    s."Security"."#attributes".UserID AS user_sid, s.EventRecordID AS event_record_id,
    coalesce(CASE WHEN json IS NOT NULL THEN place || CASE
        WHEN s IS NULL OR event.Event_attributes IS NOT NULL
        THEN 'expected an event of evtx_dump, which has Event.System, without --separate-json-attributes'
        WHEN event_id IS NULL THEN 'EventID is not a whole number'
        WHEN provider IS NULL AND s.Provider."#attributes".Guid IS NULL AND line_error IS NULL THEN 'Provider has no name' END END,
        line_error, place || 'Event.' || list_filter(json_keys(json, '$.Event'), lambda name: name NOT IN (
            '#attributes', 'System', 'EventData', 'UserData', 'RenderingInfo'))[1] || ' has no column') AS error, filename
FROM evtx_export
