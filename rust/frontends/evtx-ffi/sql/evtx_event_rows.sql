-- evtx_event_rows(table_name, table_of_names)
--
-- The part of evtx_timeline that other macros share: the rows of a table of events, with the columns event, user_name, full_name,
-- remote_host, process and details added, and the user_sid of who the event is about. The other table is that of evtx_names_of.
--
-- SELECT event, user_name, details FROM evtx_event_rows('events', 'names')

SELECT * EXCLUDE (user_sid, roles), unnest(roles)
FROM (SELECT *, evtx_event_row((SELECT evtx_account_index(names) FROM query_table(table_of_names)), hash(filename, lower(channel)),
                               TRY_CAST(record_id AS UBIGINT), time_created, provider, TRY_CAST(event_id AS UINTEGER), event_data, user_data,
                               computer, user_sid) AS roles
      FROM query_table(table_name))
