-- evtx_script_blocks(files, password := NULL)
--
-- A row per script block that PowerShell has logged (event 4104), with its parts joined in order, the number of
-- missing parts, and the texts that it contains as base64.
--
-- SELECT time_created, computer, text FROM evtx_script_blocks('logs') WHERE text ILIKE '%downloadstring%'

WITH evtx_logs AS NOT MATERIALIZED (FROM read_evtx(files, password := password))
FROM evtx_script_blocks_of('evtx_logs')
