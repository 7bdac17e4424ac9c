-- evtx_from_winlogbeat(exports)
--
-- The events in NDJSON files of Winlogbeat 7 and 8, and of Elastic Agent, with the columns of read_evtx.
--
-- SELECT * FROM evtx_from_winlogbeat('winlogbeat-*.ndjson') WHERE event_id = 4624

WITH evtx_export AS (
    SELECT from_json(json, '{{columns of winlogbeat.json}}') AS document, (document).winlog AS w, coalesce((w).event_id, (document)."event".code) AS id, (document)."@timestamp" AS written,
        json, place || ': ' AS place, error AS line_error, filename
    FROM evtx_json_lines(exports, types := '{{winlogbeat.json}}')
)
SELECT
    w.record_id,
    -- DuckDB takes infinity for a time, and +99:00 for an offset.
    TRY_CAST(CASE WHEN evtx_json_error(to_json(written), '"TIMESTAMP_NS"') IS NULL THEN written END AS TIMESTAMP_NS) AS time_created,
    -- A cast rounds 4624.5.
    CASE WHEN regexp_full_match(id, '\d+(\.0+)?') THEN TRY_CAST(id AS UINTEGER) END AS event_id,
    (MAP {'critical': 1, 'error': 2, 'warning': 3, 'information': 4, 'verbose': 5})[lower(document.log."level")]::UTINYINT AS "level",
    w.provider_name AS provider, w.channel, coalesce(w.computer_name, document.host."name") AS computer,
    CASE WHEN w.event_data IS NOT NULL THEN evtx_event_data(list_transform(
        list_zip(json_keys(w.event_data), w.event_data->>'$.*'), lambda e: {key: e[1], value: e[2]}))
    WHEN event_id IS NOT NULL AND w.user_data IS NULL THEN MAP {} END AS event_data,
    CASE WHEN w.user_data IS NOT NULL THEN json_object(
        coalesce(w.user_data->>'xml_name', ''), json_merge_patch(w.user_data, '{"xml_name": null}')) END AS user_data,
    document.message, TRY_CAST(w.task AS USMALLINT) AS task,
    coalesce(TRY_CAST(w.opcode AS UTINYINT), (MAP {'Info': 0, 'Start': 1, 'Stop': 2})[w.opcode])::UTINYINT AS opcode,
    -- The Security log adds the bit of its channel.
    CASE WHEN contains(w.keywords, '"Audit Success"') THEN '0x8020000000000000'::UBIGINT
         WHEN contains(w.keywords, '"Audit Failure"') THEN '0x8010000000000000'::UBIGINT
         WHEN contains(w.keywords, '"Classic"') THEN '0x80000000000000'::UBIGINT ELSE TRY_CAST(w.keywords->>'$' AS UBIGINT) END AS keywords,
    w."version", NULL::USMALLINT AS qualifiers, w.provider_guid, NULL::VARCHAR AS event_source_name,
    w."process".pid AS process_id, w."process".thread.id AS thread_id, w.activity_id, w.related_activity_id,
    w."user".identifier AS user_sid, w.record_id AS event_record_id,
    coalesce(CASE WHEN json IS NOT NULL THEN place || CASE
        WHEN w IS NULL THEN 'expected an event of Winlogbeat, which has @timestamp and winlog'
        WHEN event_id IS NULL THEN 'event_id is not a whole number'
        WHEN computer IS NULL THEN 'winlog.computer_name is missing' END END,
        line_error) AS error, filename
FROM evtx_export
