-- evtx_metrics_of(table_name)
--
-- evtx_metrics over a table, a view or a Parquet file with the columns of read_evtx.
--
-- SELECT * FROM evtx_metrics_of('events') ORDER BY events DESC

-- A row without a record says what could not be read. An export can lack the ID of a record, but not of its event.
SELECT computer, channel, provider, event_id, evtx_event_name(provider, event_id) AS event, events, first, last
FROM (SELECT computer, channel, provider, event_id, count(*) AS events, min(time_created) AS first, max(time_created) AS last
      FROM query_table(table_name)
      WHERE record_id IS NOT NULL OR event_id IS NOT NULL
      GROUP BY ALL)
