-- evtx_from_evtxecmd(exports)
--
-- The events in files that EvtxECmd --json wrote, with the columns of read_evtx.
--
-- SELECT * FROM evtx_from_evtxecmd('*_EvtxECmd_Output.json') WHERE event_id = 4624

WITH evtx_export_rows AS (
    SELECT unnest(from_json(json, '{{columns of evtxecmd.json}}')), json IS NOT NULL AS is_json, place || ': ' AS place, error AS line_error, filename
    FROM evtx_json_lines(exports, types := '{{evtxecmd.json}}')
)
FROM evtx_evtxecmd_rows('evtx_export_rows')
