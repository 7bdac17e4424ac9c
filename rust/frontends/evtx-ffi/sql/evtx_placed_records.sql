-- evtx_placed_records(table_name, table_of_logs)
--
-- The records of a table in the order of their logs, with the columns machine, digest, log_time, is_contested and is_woken added. Copies of a record
-- have one digest, and one value in each of these columns. Both tables have the columns of read_evtx: the second has the records that tell
-- of machines, and the first those to place, with the changes of the clock. is_woken tells that Windows woke, and nobody set the clock.
--
-- SELECT machine, log_time, event_id FROM evtx_placed_records('logons', 'events')

-- DuckDB keeps only the columns that the macro's user reads, not event_data. A record that differs in anything is not a copy, but an export
-- as XML has no carriage returns, and quotes around the numbers of user_data.
WITH machines AS MATERIALIZED (FROM evtx_machines_of(table_of_logs)),
evtx_placed_rows AS MATERIALIZED (
    SELECT events.* EXCLUDE (file), coalesce(machine, computer) AS machine,
        md5_number(system.main.replace(system.main.replace({computer: computer, channel: channel, provider: provider, number: event_record_id, time: time_created, event_id: event_id,
                    user_sid: user_sid, event_data: event_data, user_data: user_data}::VARCHAR, chr(13), ''), '"', '')) AS digest,
        TRY_CAST(CASE WHEN event_id IN (1, 4616) THEN coalesce(event_data['PreviousTime'], event_data['OldTime']) END AS TIMESTAMP_NS) AS old_time,
        TRY_CAST(CASE WHEN event_id IN (1, 4616) THEN event_data['NewTime'] END AS TIMESTAMP_NS) AS new_time,
        TRY_CAST(CASE WHEN event_id = 4616 AND event_data['NewTime'] > event_data['PreviousTime'] AND regexp_matches(event_data['ProcessName'], '(?i)\\(vmtoolsd|VBoxService|qemu-ga)\.exe$')
                      THEN event_data['NewTime']
                      WHEN event_id = 1 THEN event_data[CASE event_data['Reason'] WHEN '2' THEN 'NewTime' ELSE 'WakeTime' END] END AS TIMESTAMP_NS) AS wake_time
    FROM (SELECT *, coalesce(filename, '') AS file FROM query_table(table_name)) AS events
    LEFT JOIN (SELECT filename AS file, computer, machine FROM machines) AS machines USING (file, computer)
),
-- While Windows sleeps, or the machine that it runs in, time goes on. What is written when it wakes looks as if somebody had set the clock.
wakes AS (SELECT machine, epoch(wake_time) AS wake FROM evtx_placed_rows WHERE wake_time IS NOT NULL),
woken AS MATERIALIZED (
    SELECT digest
    FROM (SELECT machine, digest, epoch(new_time) + 60 AS until FROM evtx_placed_rows WHERE new_time IS NOT NULL) AS changes
    ASOF JOIN wakes ON wakes.machine = changes.machine AND until >= wake
    WHERE until - wake <= 120
),
evtx_placed_marked AS NOT MATERIALIZED (SELECT *, digest IN (FROM woken) AS is_woken FROM evtx_placed_rows),
-- The event log writes what the kernel says of its start after it has started itself.
evtx_placed_places AS NOT MATERIALIZED (
    SELECT machine AS computer, coalesce(channel, provider) AS channel, filename, digest, record_id, event_record_id, time_created,
           CASE WHEN NOT is_woken THEN old_time END AS old_time, CASE WHEN NOT is_woken THEN new_time END AS new_time,
           coalesce(event_id = 12 AND lower(provider) = 'microsoft-windows-kernel-general', false) AS is_late
    FROM evtx_placed_marked
)
SELECT marked.* EXCLUDE (machine, old_time, new_time, wake_time), places.*
FROM evtx_placed_marked AS marked JOIN (SELECT computer AS machine, digest, log_time, is_contested FROM evtx_log_order('evtx_placed_places')) AS places USING (digest)
