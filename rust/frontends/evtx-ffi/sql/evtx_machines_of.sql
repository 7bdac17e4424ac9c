-- evtx_machines_of(table_name)
--
-- The machine that each name of a computer in a file stands for, by its last name. The table has the columns of read_evtx.
--
-- SELECT DISTINCT computer, machine FROM evtx_machines_of('events')

WITH evtx_machines_records AS NOT MATERIALIZED (
    SELECT filename, computer, channel, time_created, record_id, event_record_id, event_id, provider, event_data
    FROM query_table(table_name)
    WHERE computer IS NOT NULL
),
hours AS (
    SELECT evtx_log_hours(filename, TRY_CAST(record_id AS UBIGINT), computer, channel, NULL, TRY_CAST(event_record_id AS UBIGINT), time_created, NULL,
                          false) AS hours
    FROM evtx_machines_records
),
-- Events tell of new names, and of the SID of the machine.
told AS (
    SELECT coalesce(filename, '') AS file, computer, channel, max(time_created) AS time, stamp.old_host AS old_host, stamp.new_host AS new_host,
           stamp.own_sid AS own_sid
    FROM (SELECT *, evtx_record_stamp(computer, channel, provider, NULL, time_created, TRY_CAST(event_id AS UINTEGER), NULL, event_data, NULL) AS stamp
          FROM evtx_machines_records
          WHERE event_id IN (4624, 4720, 4738, 6011) AND lower(provider) IN ('microsoft-windows-security-auditing', 'eventlog'))
    GROUP BY ALL
)
SELECT unnest(evtx_machines((SELECT list(hours) FILTER (hours IS NOT NULL) FROM hours), (SELECT list(told) FROM told)), max_depth := 2)
