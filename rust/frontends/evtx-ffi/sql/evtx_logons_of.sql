-- evtx_logons_of(table_name, all_accounts := NULL)
--
-- evtx_logons over a table, a view or a Parquet file with the columns of read_evtx.
--
-- SELECT * FROM evtx_logons_of('events') WHERE kind = 'remote desktop' ORDER BY logon_time

-- Events 1, 22, 32, 34, 41, 42, 54 and 4616 say only what time it is, in a log with few other records.
WITH evtx_logons_records AS NOT MATERIALIZED (
    SELECT computer, channel, filename, record_id, event_record_id, time_created, provider, event_id, user_sid, event_data, user_data,
        evtx_logon_step(provider, event_id, data, user_sid) AS step
    FROM evtx_data_rows(table_name)
    WHERE event_id IN (22, 32, 34, 41, 42, 54, 4616, {{logon events}})
          AND (lower(provider) IN ({{logon providers}}) OR starts_with(lower(provider), 'mssql$'))
          AND (lower(provider) <> 'microsoft-windows-security-auditing' OR coalesce(lower(channel), 'security') = 'security')
       OR event_id = 1 AND lower(provider) = 'microsoft-windows-kernel-general' AND coalesce(lower(channel), 'system') = 'system'
),
sessions AS (
    SELECT unnest(evtx_logon_sessions(list({
            event_id: event_id, number: TRY_CAST(event_record_id AS UBIGINT), time: time_created, log_time: log_time, digest: (digest >> 64)::UBIGINT,
            is_contested: is_contested, computer: computer, step: step}), all_accounts), max_depth := 2)
    FROM evtx_placed_records('evtx_logons_records', table_name)
    WHERE step IS NOT NULL
    GROUP BY machine
)
SELECT logon_time, logoff_time, (epoch_ns(logoff_time)::HUGEINT - epoch_ns(logon_time)) / 1e9 AS duration_seconds, computer, kind,
    user_name, user_sid, logon_type, evtx_logon_type(logon_type) AS logon_type_name, remote_host, workstation,
    CASE WHEN claims_own_name THEN ['claims to be this machine'] ELSE [] END AS doubts, connections, authentication, process,
    logon_id, other_logon_ids, regexp_extract_all(privileges, '\w+') AS privileges, is_contested AS contested
FROM sessions
