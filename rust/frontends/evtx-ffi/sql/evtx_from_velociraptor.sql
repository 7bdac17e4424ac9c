-- evtx_from_velociraptor(exports)
--
-- The events in JSONL files of Velociraptor's parse_evtx, and of its artifacts Evtx and EvtxHunter, as read_evtx has them.
--
-- SELECT * FROM evtx_from_velociraptor('Windows.EventLogs.Evtx.json') WHERE event_id = 4624

WITH evtx_export AS (
    SELECT from_json(json, '{{columns of velociraptor.json}}') AS r,
        (r).System AS s, (r).EventData AS fields, fields->'Data' AS texts, nullif((r).UserData, '{}') AS user_data,
        coalesce((s).Provider."Name", (r).Provider) AS source, coalesce((s).EventID->>'Value', (r).EventID) AS code,
        -- A cast rounds 4624.5.
        CASE WHEN regexp_full_match(code, '\d+(\.0+)?') THEN TRY_CAST(code AS UINTEGER) END AS id, coalesce((s).TimeCreated.SystemTime, (r).EventTime) AS written,
        json, place || ': ' AS place, error AS line_error, filename
    FROM evtx_json_lines(exports, types := '{{velociraptor.json}}')
)
SELECT
    coalesce(s.EventRecordID, r.EventRecordID) AS record_id,
    -- DuckDB 1.5 finds no alias in TRY. DuckDB takes infinity for a time, and +99:00 for an offset.
    coalesce(TRY(make_timestamp_ns(TRY_CAST(TRY_CAST(s.TimeCreated.SystemTime AS DOUBLE) * 1e7 AS BIGINT) * 100)),
             TRY_CAST(CASE WHEN evtx_json_error(to_json(written), '"TIMESTAMP_NS"') IS NULL THEN written END AS TIMESTAMP_NS)) AS time_created, id AS event_id,
    s."Level" AS "level", source AS provider, coalesce(s.Channel, r.Channel) AS channel, coalesce(s.Computer, r.Computer) AS computer,
    CASE WHEN fields IS NOT NULL THEN evtx_event_data(list_concat(
        list_transform(CASE json_type(texts) WHEN 'ARRAY' THEN texts->'$[*]' ELSE list_filter([texts], lambda t: t IS NOT NULL) END,
            lambda t: {key: t->>'Name', value: coalesce(CASE json_type(t) WHEN 'OBJECT' THEN t->>'Value' ELSE t->>'$' END, '')}),
        list_transform(list_filter(list_zip(json_keys(fields), fields->>'$.*'), lambda e:
                e[2] IS NOT NULL AND e[1] != 'Data'), lambda e: {key: e[1], value: CASE
            WHEN regexp_full_match(e[2], '[0-9A-F]{8}(-[0-9A-F]{4}){3}-[0-9A-F]{12}') THEN '{' || lower(e[2]) || '}'
            WHEN contains(hex_names, e[1]) THEN coalesce('0x' || lower(to_hex(TRY_CAST(e[2] AS UBIGINT))), e[2]) ELSE e[2] END})))
    WHEN user_data IS NULL AND id IS NOT NULL THEN MAP {} END AS event_data, user_data, nullif(r.Message, '') AS message, s.Task AS task, s.Opcode AS opcode, s.Keywords AS keywords, s."Version" AS "version",
    TRY_CAST(s.EventID->>'Qualifiers' AS USMALLINT) AS qualifiers, s.Provider.Guid AS provider_guid,
    s.Provider.EventSourceName AS event_source_name, s.Execution.ProcessID AS process_id, s.Execution.ThreadID AS thread_id,
    s.Correlation.ActivityID AS activity_id, s.Correlation.RelatedActivityID AS related_activity_id,
    coalesce(s."Security".UserID, r.UserSID) AS user_sid, coalesce(s.EventRecordID, r.EventRecordID) AS event_record_id,
    coalesce(CASE WHEN json IS NOT NULL THEN place || CASE
        WHEN s IS NULL AND (r.EventTime IS NULL OR r.Computer IS NULL OR r.Channel IS NULL OR r.Provider IS NULL OR r.EventID IS NULL
                            OR fields IS NULL AND user_data IS NULL)
        THEN 'expected an event of Velociraptor, which has System, or EventTime, Computer, Channel, Provider, EventID and EventData'
        WHEN id IS NULL THEN 'EventID is not a whole number'
        WHEN source IS NULL AND s.Provider.Guid IS NULL AND line_error IS NULL THEN 'Provider has no name' END END,
        line_error) AS error, filename
FROM evtx_export
-- Velociraptor writes these fields as decimal numbers.
LEFT JOIN (SELECT provider AS hex_provider, event_id AS hex_id, list(field_name) AS hex_names FROM evtx_event_catalog()
           WHERE binxml_type IN ('HexInt32', 'HexInt64', 'SizeT') GROUP BY ALL) ON source = hex_provider AND id = hex_id
