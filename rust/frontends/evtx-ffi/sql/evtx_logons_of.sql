-- evtx_logons_of(table_name)
--
-- evtx_logons over a table, a view or a Parquet file with the columns of read_evtx.
--
-- SELECT * FROM evtx_logons_of('events') WHERE logon_type = 10 ORDER BY logon_time

-- DuckDB would read the logs again for the aggregates over each log. The fields that count take less memory than event_data.
WITH evtx_logons_records AS MATERIALIZED (
    SELECT computer, channel, event_record_id, time_created, event_id, user_sid, filename,
        event_record_id::HUGEINT - record_id::HUGEINT AS shift, md5_number(event_data::VARCHAR) AS digest,
        lower(coalesce(event_data['TargetLogonId'], event_data['SubjectLogonId'])) AS id,
        -- 4672 names the account as the subject.
        coalesce(event_data['TargetUserName'], event_data['SubjectUserName']) AS account,
        coalesce(event_data['TargetDomainName'], event_data['SubjectDomainName']) AS domain,
        coalesce(event_data['TargetUserSid'], event_data['SubjectUserSid']) AS sid,
        TRY_CAST(event_data['LogonType'] AS INTEGER) AS type,
        event_data['IpAddress'] AS address, event_data['WorkstationName'] AS workstation,
        event_data['AuthenticationPackageName'] AS package, event_data['ProcessName'] AS process,
        event_data['PrivilegeList'] AS privileges
    FROM query_table(table_name)
    WHERE event_id IN (4624, 4634, 4647, 4672) AND provider = 'Microsoft-Windows-Security-Auditing'
      AND coalesce(lower(channel), 'security') = 'security'
),
-- A cleared log starts at record 1 again, in another file than the archived records. One broken time does not move the median.
-- A log of forwarded events has records from before and after it was cleared. An export, which numbers records anew, has those
-- of one log, but perhaps only some. In both, most of the numbers differ by the same, which a planted record does not change.
logs AS (
    SELECT computer, filename, quantile_disc(time_created, 0.5) AS log_time,
           2 * count(*) FILTER (shift = 0) > count(*) AS is_own_log
    FROM evtx_logons_records GROUP BY ALL
),
spans AS (
    SELECT computer, filename, shift, min(time_created) AS log_start, max(time_created) AS log_end
    FROM evtx_logons_records
    GROUP BY computer, filename, shift
    QUALIFY 2 * count(shift) > sum(count(*)) OVER (PARTITION BY computer, filename)
),
-- A record in several copies of a log counts once. One that says anything else is no copy.
evtx_logons_copies AS (
    SELECT records.* EXCLUDE (filename, shift),
        coalesce(min(log_time) FILTER (is_own_log), min(log_time)) AS log_time,
        min(log_start) AS log_start, max(log_end) AS log_end
    FROM evtx_logons_records AS records
    JOIN logs ON logs.computer IS NOT DISTINCT FROM records.computer AND logs.filename IS NOT DISTINCT FROM records.filename
    LEFT JOIN spans ON spans.computer IS NOT DISTINCT FROM records.computer AND spans.filename IS NOT DISTINCT FROM records.filename
                   AND spans.shift = records.shift
    GROUP BY ALL
),
evtx_logons_events AS (
    SELECT * EXCLUDE (channel, user_sid, log_start, log_end, span_start, span_end),
        -- Another record claims its place: its number, in a log of the same time. A log that was cleared has
        -- each number again later.
        event_record_id IS NOT NULL
            AND (coalesce(max(span_end) OVER earlier >= span_start, false)
                 OR coalesce(min(span_start) OVER later <= span_end, false)) AS is_contested
    FROM (SELECT *, coalesce(log_start, time_created) AS span_start, coalesce(log_end, time_created) AS span_end
          FROM evtx_logons_copies)
    WINDOW earlier AS (PARTITION BY computer, event_record_id ORDER BY span_start ASC NULLS LAST
                       ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING),
           later AS (PARTITION BY computer, event_record_id ORDER BY span_start ASC NULLS LAST
                     ROWS BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING)
),
-- Leaves out the sessions of SYSTEM, LOCAL SERVICE and NETWORK SERVICE by their fixed IDs, because a machine that logs on
-- to another has the SID of SYSTEM too. Leaves out the window manager and the font driver. An event without an ID belongs
-- to no known session, unless it is a logon. A session is that of one SID.
own AS (
    SELECT *,
           CASE WHEN event_id <> 4672 THEN event_id END AS other_id,
           CASE WHEN event_id <> 4672 THEN time_created END AS other_time,
           lag(other_id IGNORE NULLS) OVER of_id AS event_before,
           lag(other_time IGNORE NULLS) OVER of_id AS time_before,
           lead(other_id IGNORE NULLS) OVER of_id AS event_after,
           lead(other_time IGNORE NULLS) OVER of_id AS time_after,
           count(*) FILTER (event_id = 4624) OVER of_id AS logons, row_number() OVER of_id AS place
    FROM evtx_logons_events
    WHERE CASE WHEN id IS NULL THEN event_id = 4624 AND coalesce(sid, '') NOT IN ('S-1-5-18', 'S-1-5-19', 'S-1-5-20')
               ELSE id NOT IN ('0x3e7', '0x3e4', '0x3e5') END
      AND NOT starts_with(coalesce(sid, ''), 'S-1-5-90-') AND NOT starts_with(coalesce(sid, ''), 'S-1-5-96-')
    -- Records are in the order of events, even if the clock was set back between them. What those of one place say decides
    -- between them, not their files, or how they come.
    WINDOW of_id AS (
        PARTITION BY computer, id, sid
        ORDER BY log_time ASC NULLS LAST, event_record_id ASC NULLS LAST, time_created ASC NULLS LAST, event_id ASC, digest ASC
        ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
    )
),
-- IDs repeat after boots. Each 4624 starts a session; events before the first belong to a session from before the log. A
-- 4672 comes after its 4624, or up to a second before it. While no session is open, it belongs to the next 4624, however
-- long that takes.
numbered AS (
    SELECT *, logons + CASE
        WHEN event_id = 4672 AND event_after = 4624
         AND (event_before IS DISTINCT FROM 4624
              OR time_after - time_created <= INTERVAL 1 SECOND
             AND time_after - time_created < time_created - time_before)
        THEN 1 ELSE 0 END AS session
    FROM own
),
sessions AS (
    SELECT
        computer, id AS logon_id,
        min(time_created) FILTER (event_id = 4624) AS logon_time,
        min(time_created) FILTER (event_id IN (4634, 4647)) AS logoff_time,
        arg_min(account, place) AS account, arg_min(domain, place) AS domain, sid AS user_sid, arg_min(type, place) AS logon_type,
        arg_min(address, place) AS address, arg_min(workstation, place) AS workstation, arg_min(package, place) AS package,
        arg_min(process, place) AS process, arg_min(privileges, place) AS privileges, bool_or(is_contested) AS contested
    FROM numbered
    GROUP BY computer, id, sid, session
)
SELECT
    logon_time, logoff_time, (epoch_ns(logoff_time)::HUGEINT - epoch_ns(logon_time)) / 1e9 AS duration_seconds, computer,
    CASE WHEN domain NOT IN ('', '-') THEN domain || '\' || account ELSE account END AS user_name, user_sid, logon_type,
    MAP {2: 'Interactive', 3: 'Network', 4: 'Batch', 5: 'Service', 7: 'Unlock', 8: 'Network, password in clear',
         9: 'New credentials', 10: 'Remote Desktop', 11: 'Cached credentials', 12: 'Remote Desktop, cached credentials',
         13: 'Unlock, cached credentials'}[logon_type] AS logon_type_name,
    evtx_remote_host(address) AS remote_host,
    nullif(nullif(workstation, '-'), '') AS workstation, package AS authentication,
    nullif(nullif(process, '-'), '') AS process, logon_id, regexp_extract_all(privileges, '\w+') AS privileges, contested
FROM sessions
