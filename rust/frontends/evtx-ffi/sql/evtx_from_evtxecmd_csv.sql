-- evtx_from_evtxecmd_csv(exports)
--
-- The events in files that EvtxECmd --csv wrote, with the columns of read_evtx.
--
-- SELECT * FROM evtx_from_evtxecmd_csv('*_EvtxECmd_Output.csv') WHERE event_id = 4624

WITH evtx_export_lines AS (
    -- Without NULs, as in evtx_json_lines.
    SELECT regexp_replace(to_json(line), '(\\[^u])|\\u0000', '\1', 'g') AS json, filename, filename || ': cannot read a line: ' AS place
    -- An empty value is none, but not a missing one.
    FROM read_csv(exports, header := true, all_varchar := true, union_by_name := true, filename := true, delim := ',',
                  quote := '"', escape := '"', nullstr := chr(0)) line
), evtx_export_rows AS (
    SELECT unnest(from_json(json, '{{columns of evtxecmd.json}}')), true AS is_json, place,
        place || evtx_json_error(json, '{{evtxecmd.json}}') AS line_error, filename
    FROM evtx_export_lines
)
FROM evtx_evtxecmd_rows('evtx_export_rows')
