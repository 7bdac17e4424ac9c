-- evtx_placed_records(table_name, table_of_logs)
--
-- The records of a table in the order of their logs, with the columns machine, digest, log_time, is_contested and is_woken added. Copies of a record
-- have one digest, and one value in each of these columns. Both tables have the columns of read_evtx: the second has the records that tell
-- of machines, and the first those to place, with the changes of the clock. is_woken tells that Windows woke, and nobody set the clock.
--
-- SELECT machine, log_time, event_id FROM evtx_placed_records('logons', 'events')

-- DuckDB keeps only the columns that the macro's user reads, not event_data.
WITH machines AS MATERIALIZED (FROM evtx_machines_of(table_of_logs)),
evtx_placed_rows AS MATERIALIZED (
    SELECT events.* EXCLUDE (file), coalesce(machine, computer) AS machine,
        evtx_record_stamp(computer, channel, provider, TRY_CAST(event_record_id AS UBIGINT), time_created, TRY_CAST(event_id AS UINTEGER), user_sid,
                          event_data, user_data) AS stamp
    FROM (SELECT *, coalesce(filename, '') AS file FROM query_table(table_name)) AS events
    LEFT JOIN (SELECT filename AS file, computer, machine FROM machines) AS machines USING (file, computer)
),
evtx_placed_places AS NOT MATERIALIZED (
    SELECT stamp.digest AS digest, machine, coalesce(channel, provider) AS channel, filename, record_id, event_record_id, time_created,
           stamp.old_time AS old_time, stamp.new_time AS new_time, stamp.wake_time AS wake_time, stamp.is_late AS is_late
    FROM evtx_placed_rows
)
SELECT placed.* EXCLUDE (machine, stamp), places.*
FROM evtx_placed_rows AS placed JOIN evtx_log_order('evtx_placed_places') AS places ON places.digest = placed.stamp.digest
