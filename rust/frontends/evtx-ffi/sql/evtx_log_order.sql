-- evtx_log_order(table_name)
--
-- The order of records, which macros share: a row per digest, with its machine, its time by the clock of the machine as it was set last,
-- whether another record claims its place, and whether Windows woke then, and nobody set the clock. The table has the columns digest, machine,
-- channel, filename, record_id, event_record_id and time_created, and what evtx_record_stamp tells of the clock: old_time, new_time, wake_time
-- and is_late.
--
-- SELECT log_time, is_contested FROM evtx_log_order('records')

SELECT unnest(evtx_log_places(list({
        digest: digest, machine: machine::VARCHAR, channel: channel::VARCHAR, file: filename::VARCHAR, record_id: TRY_CAST(record_id AS UBIGINT), number: TRY_CAST(event_record_id AS UBIGINT),
        time: time_created, old_time: old_time, new_time: new_time, wake_time: wake_time, is_late: is_late})), max_depth := 2)
FROM query_table(table_name)
