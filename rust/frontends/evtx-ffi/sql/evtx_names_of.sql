-- evtx_names_of(table_name)
--
-- A row with a list of texts, which have the names of SIDs in the records: evtx_account_names makes rows of them, and evtx_event_rows takes
-- the table.
--
-- SELECT unnest(evtx_account_names(names), max_depth := 2) FROM evtx_names_of('events')

SELECT list(names) FILTER (names IS NOT NULL) AS names
FROM (SELECT evtx_record_names(hash(filename, lower(channel)), TRY_CAST(record_id AS UBIGINT), computer, channel, provider, NULL, time_created,
                               TRY_CAST(event_id AS UINTEGER), user_sid, event_data, user_data) AS names
      FROM query_table(table_name)
      WHERE lower(provider) IN ({{name providers}}) AND event_id IN ({{name events}}))
