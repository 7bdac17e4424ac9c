-- evtx_machines_of(table_name)
--
-- The machine that each name of a computer in a file stands for, by its last name. The table has the columns of read_evtx.
--
-- SELECT DISTINCT computer, machine FROM evtx_machines_of('events')

WITH evtx_machines_records AS NOT MATERIALIZED (
    SELECT coalesce(filename, '') AS file, computer, channel, time_created, record_id, event_record_id, event_id, provider, event_data
    FROM query_table(table_name)
    WHERE computer IS NOT NULL
),
said AS (
    SELECT file, computer, channel, count(*) AS records, min(event_record_id) AS first_number, max(event_record_id) AS last_number,
           arg_min(time_created, event_record_id) AS first, arg_max(time_created, event_record_id) AS last,
           min(event_record_id::HUGEINT - record_id) AS least, max(event_record_id::HUGEINT - record_id) AS most
    FROM evtx_machines_records
    GROUP BY ALL
    UNION ALL BY NAME
    -- Events tell of new names, and of the SID of the machine.
    SELECT file, computer, channel, max(time_created) AS last, stamp.old_host AS old_host, stamp.new_host AS new_host, stamp.own_sid AS own_sid
    FROM (SELECT *, evtx_record_stamp(computer, channel, provider, NULL, time_created, TRY_CAST(event_id AS UINTEGER), NULL, event_data, NULL) AS stamp
          FROM evtx_machines_records
          WHERE event_id IN (4624, 4720, 4738, 6011) AND lower(provider) IN ('microsoft-windows-security-auditing', 'eventlog'))
    GROUP BY ALL
)
SELECT DISTINCT names.file AS filename, names.computer, machine
FROM (SELECT unnest(names) AS names, unnest(evtx_machines(names)) AS machine
      FROM (SELECT list({file: file, computer: computer, channel: channel, records: records::UBIGINT, first_number: TRY_CAST(first_number AS UBIGINT),
                         last_number: TRY_CAST(last_number AS UBIGINT), first: first, last: last, least: least, most: most, old_host: old_host,
                         new_host: new_host, own_sid: own_sid}) AS names
            FROM said))
