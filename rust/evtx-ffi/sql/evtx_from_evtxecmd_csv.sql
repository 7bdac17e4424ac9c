-- evtx_from_evtxecmd_csv(exports)
--
-- The events in files that EvtxECmd --csv wrote, with the columns of read_evtx.
--
-- SELECT * FROM evtx_from_evtxecmd_csv('*_EvtxECmd_Output.csv') WHERE event_id = 4624

WITH evtx_export_rows AS (
    -- Not every version of EvtxECmd has these.
    SELECT NULL::VARCHAR AS ProcessId, NULL::VARCHAR AS ThreadId, NULL::VARCHAR AS Keywords, NULL::VARCHAR AS line_error WHERE false
    UNION ALL BY NAME
    SELECT *, true AS is_json, filename || ': cannot read a line: ' AS place
    FROM read_csv(exports, header := true, all_varchar := true, union_by_name := true, filename := true, delim := ',',
                  quote := '"', escape := '"')
)
FROM evtx_evtxecmd_rows('evtx_export_rows')
