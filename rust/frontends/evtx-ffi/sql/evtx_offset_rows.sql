-- evtx_offset_rows(table_name)
--
-- The rows of a table with the columns time, in UTC, and zone, the IANA name of a time zone. The column
-- utc_offset_seconds is added: how far the zone was ahead of UTC at that time.
--
-- SELECT utc_offset_seconds FROM evtx_offset_rows('zones')

SELECT *, epoch(timezone(zone, timezone('UTC', time::TIMESTAMP)) - time::TIMESTAMP) AS utc_offset_seconds
FROM query_table(table_name)
