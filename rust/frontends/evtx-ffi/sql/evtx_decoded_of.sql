-- evtx_decoded_of(table_name)
--
-- evtx_decoded over a table, a view or a Parquet file with the columns of read_evtx.
--
-- SELECT * FROM evtx_decoded_of('events') WHERE text ILIKE '%downloadstring%'

SELECT time_created, computer, channel, event_id, record_id, found.field AS field, found.encoding AS encoding, found.text AS text, filename
FROM (SELECT time_created, computer, channel, event_id, record_id, unnest(evtx_decoded_texts(data)) AS found, filename
      FROM evtx_data_rows(table_name))
