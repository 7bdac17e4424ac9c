-- evtx_from_evtxecmd(exports)
--
-- The events in files that EvtxECmd --json wrote, with the columns of read_evtx.
--
-- SELECT * FROM evtx_from_evtxecmd('*_EvtxECmd_Output.json') WHERE event_id = 4624

WITH evtx_export_rows AS (
    SELECT unnest(from_json(json, '{"RecordNumber": "VARCHAR", "EventRecordId": "VARCHAR", "TimeCreated": "VARCHAR",
        "EventId": "VARCHAR", "Level": "VARCHAR", "Provider": "VARCHAR", "Channel": "VARCHAR", "Computer": "VARCHAR",
        "UserId": "VARCHAR", "Keywords": "VARCHAR", "ProcessId": "VARCHAR", "ThreadId": "VARCHAR", "Payload": "VARCHAR"}')), filename
    FROM read_json_objects(exports, format := 'newline_delimited', ignore_errors := true, filename := true)
)
FROM evtx_evtxecmd_rows('evtx_export_rows')
