-- evtx_timeline_of(table_name)
--
-- evtx_timeline over a table, a view or a Parquet file with the columns of read_evtx.
--
-- SELECT * FROM evtx_timeline_of('events') WHERE remote_host = '203.0.113.45' ORDER BY time_created

-- A table can have other columns, with the names of those that evtx_event_rows computes.
WITH evtx_timeline_records AS NOT MATERIALIZED (
    SELECT record_id, time_created, event_id, level, provider, channel, computer, user_sid, event_data, user_data,
           message, error, filename
    FROM query_table(table_name)
),
evtx_timeline_names AS (FROM evtx_names_of('evtx_timeline_records'))
SELECT
    time_created, computer, channel, event_id, event, evtx_level_name(level) AS level, provider, record_id, filename,
    error, user_name, user_sid, remote_host, process, details, message
FROM evtx_event_rows('evtx_timeline_records', 'evtx_timeline_names')
