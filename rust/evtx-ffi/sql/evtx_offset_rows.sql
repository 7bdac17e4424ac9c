-- evtx_offset_rows(table_name)
--
-- The rows of a table with the columns time, in UTC, and zone, the IANA name of a time zone. The column utc_offset is added:
-- how far the zone was ahead of UTC at that time.
--
-- SELECT utc_offset FROM evtx_offset_rows('zones')

SELECT *, timezone(zone, timezone('UTC', time::TIMESTAMP)) - time::TIMESTAMP AS utc_offset
FROM query_table(table_name)
