-- evtx_process_tree_of(table_name)
--
-- evtx_process_tree over a table, a view or a Parquet file with the columns of read_evtx.
--
-- SELECT time_created, tree, command_line, user_name FROM evtx_process_tree_of('events') ORDER BY computer, tree_order

WITH RECURSIVE evtx_process_tree_records AS NOT MATERIALIZED (
    SELECT computer, channel, time_created, record_id, event_record_id, provider, event_id, user_sid, event_data, user_data, filename
    FROM query_table(table_name)
),
-- Starts and ends of processes, starts of Windows, after which process IDs begin anew, and changes of the clock.
evtx_process_tree_events AS NOT MATERIALIZED (
    SELECT *, user_sid AS written_by
    FROM evtx_process_tree_records
    WHERE event_id IN (4608, 4616, 4688, 4689, 4826) AND lower(provider) = 'microsoft-windows-security-auditing' AND coalesce(lower(channel), 'security') = 'security'
       OR event_id IN (1, 5) AND lower(provider) = 'microsoft-windows-sysmon'
          AND coalesce(lower(channel), 'microsoft-windows-sysmon/operational') = 'microsoft-windows-sysmon/operational'
       OR (event_id IN (1, 12) AND lower(provider) = 'microsoft-windows-kernel-general' OR event_id = 6005 AND lower(provider) = 'eventlog')
          AND coalesce(lower(channel), 'system') = 'system'
),
evtx_process_tree_names AS (FROM evtx_names_of('evtx_process_tree_records')),
evtx_process_tree_rows AS NOT MATERIALIZED (
    SELECT
        computer, channel, filename, record_id, event_record_id, time_created, provider, event_id, written_by AS user_sid, event_data, user_data,
        CASE WHEN event_id = 4616 OR event_id = 1 AND lower(provider) = 'microsoft-windows-kernel-general' THEN 'clock'
             WHEN event_id IN (4688, 1) THEN 'start' WHEN event_id IN (4689, 5) THEN 'end' ELSE 'boot' END AS kind,
        TRY_CAST(coalesce(event_data['NewProcessId'], event_data['ProcessId']) AS UBIGINT) AS pid,
        TRY_CAST(CASE event_id WHEN 1 THEN event_data['ParentProcessId'] WHEN 4688 THEN event_data['ProcessId'] END
                 AS UBIGINT) AS parent_pid,
        lower(event_data['ProcessGuid']) AS guid, lower(event_data['ParentProcessGuid']) AS parent_guid,
        coalesce(event_data['NewProcessName'], event_data['Image']) AS process,
        nullif(nullif(coalesce(event_data['ParentProcessName'], event_data['ParentImage']), ''), '-') AS parent_process,
        nullif(event_data['CommandLine'], '') AS command_line, user_name, full_name, user_sid AS sid,
        nullif(lower(coalesce(event_data['LogonId'], event_data['SubjectLogonId'])), '') AS logon_id,
        event_data['Hashes'] AS hashes
    FROM evtx_event_rows('evtx_process_tree_events', 'evtx_process_tree_names')
),
-- Numbers the events in their order, and those of one place by what they say: never by their files, or as they come. Below,
-- only the last step has more of an event than numbers and what is compared. A record in several copies of a log counts once.
numbered AS MATERIALIZED (
    SELECT * EXCLUDE (digest),
           row_number() OVER (ORDER BY computer ASC NULLS LAST, log_time ASC NULLS LAST, event_record_id ASC NULLS LAST,
                                       time_created ASC NULLS LAST, event_id ASC NULLS LAST, digest ASC) AS number
    FROM (SELECT DISTINCT machine AS computer, computer AS name, placed.* EXCLUDE (
              computer, machine, channel, filename, record_id, provider, user_sid, event_data, user_data)
          FROM evtx_placed_records('evtx_process_tree_rows', 'evtx_process_tree_records') AS placed WHERE kind <> 'clock')
),
evtx_process_tree_boots AS NOT MATERIALIZED (
    SELECT computer, number, log_time, event_id, process FROM numbered WHERE kind = 'boot' OR event_id = 4688 AND parent_pid = 4
),
-- Counts the boots before each event.
booted AS MATERIALIZED (
    SELECT number, computer, kind, event_id, pid, parent_pid, guid, parent_guid, time_created,
           count(first) OVER (PARTITION BY computer ORDER BY number ASC NULLS LAST) AS boot
    FROM numbered LEFT JOIN (SELECT first FROM evtx_starts('evtx_process_tree_boots')) ON first = number
),
-- Records of both logs are of one process if they agree about its ID, program, parent, user and command line, at most a second
-- apart. If there are several of either log, any could be planted, so none is merged. A 4688 can have only the SID of the user.
-- Sysmon names the accounts of Windows itself in its language, as in NT-AUTORITÄT\SYSTEM, where 4688 names the machine.
-- Each step joins two relations, by number among others: joined by program first, every start of one would meet every other.
pairs AS MATERIALIZED (
    SELECT security.number, candidate, process, parent_process, user_name, full_name, sid, command_line, logon_id
    FROM (
        SELECT number, event_id, count(*) FILTER (event_id = 1) OVER near AS sysmon_records,
               count(*) FILTER (event_id = 4688) OVER near AS security_records,
               max(number) FILTER (event_id = 1) OVER near AS candidate
        FROM numbered
        WHERE kind = 'start' AND time_created IS NOT NULL
        WINDOW near AS (
            PARTITION BY computer, pid, parent_pid, hash(lower(process)) ORDER BY epoch_us(time_created) ASC NULLS LAST
            RANGE BETWEEN 1000000 PRECEDING AND 1000000 FOLLOWING)
    ) candidates
    JOIN numbered security ON security.number = candidates.number
    WHERE candidates.event_id = 4688 AND sysmon_records = 1 AND security_records = 1
),
-- With the values of the 4688 that the record of Sysmon does not have.
compared AS MATERIALIZED (
    SELECT security.number, sysmon.number AS twin,
           CASE WHEN sysmon.command_line IS NULL THEN security.command_line END AS command_line,
           CASE WHEN sysmon.parent_process IS NULL THEN security.parent_process END AS parent_process,
           CASE WHEN sysmon.user_name IS NULL THEN security.user_name END AS user_name,
           CASE WHEN sysmon.logon_id IS NULL THEN security.logon_id END AS logon_id,
           ((lower(sysmon.full_name) = lower(security.full_name)) IS NOT FALSE
            OR regexp_matches(sysmon.full_name, '^[^\\]*\bNT\b.*\\')
               AND sysmon.logon_id = CASE security.sid WHEN 'S-1-5-18' THEN '0x3e7' WHEN 'S-1-5-19' THEN '0x3e5'
                                                            WHEN 'S-1-5-20' THEN '0x3e4' END)
               AND (lower(sysmon.parent_process) = lower(security.parent_process)) IS NOT FALSE
               AND (trim(sysmon.command_line) = trim(security.command_line)) IS NOT FALSE AS agree
    FROM pairs security
    JOIN numbered sysmon ON sysmon.number = security.candidate AND lower(sysmon.process) = lower(security.process)
),
twins AS MATERIALIZED (SELECT * EXCLUDE agree FROM compared WHERE agree QUALIFY count(*) OVER (PARTITION BY twin) = 1),
-- Starts, each with its end if that is the next event of the process ID.
starts AS MATERIALIZED (
    SELECT * EXCLUDE (kind, event_id, time_created) FROM (
        SELECT *, lead(kind) OVER same_id AS next_kind, lead(time_created) OVER same_id AS next_time,
               lead(number) OVER same_id AS next_number
        FROM booted
        WHERE kind <> 'boot' AND number NOT IN (SELECT number FROM twins)
        WINDOW same_id AS (PARTITION BY computer, boot, pid ORDER BY number ASC NULLS LAST)
    ) WHERE kind = 'start'
),
-- Sysmon's GUID tells the parent. Without it, the parent is the last earlier process with its ID that had not ended. Both
-- count only if their program is the one that the event names. A parent starts before its child, so there are no cycles.
candidates AS MATERIALIZED (
    SELECT number,
        max(own) FILTER (guid IS NULL) OVER (
            PARTITION BY computer, boot, pid
            ORDER BY number ASC NULLS LAST, own ASC NULLS FIRST ROWS UNBOUNDED PRECEDING) AS by_pid,
        max(own) FILTER (guid IS NOT NULL) OVER (
            PARTITION BY computer, guid
            ORDER BY number ASC NULLS LAST, own ASC NULLS FIRST ROWS UNBOUNDED PRECEDING) AS by_guid,
        own
    FROM (
        SELECT computer, boot, pid, NULL AS guid, number, number AS own FROM starts
        UNION ALL SELECT computer, boot, parent_pid, NULL, number, NULL FROM starts
        UNION ALL SELECT computer, NULL, NULL, guid, number, number FROM starts WHERE guid IS NOT NULL
        UNION ALL SELECT computer, NULL, NULL, parent_guid, number, NULL FROM starts WHERE parent_guid IS NOT NULL
    )
),
links AS (
    SELECT number, max(by_guid) AS by_guid, max(by_pid) AS by_pid FROM candidates WHERE own IS NULL GROUP BY number
),
edges AS MATERIALIZED (
    SELECT starts.number, starts.next_kind, starts.next_time, other.number AS candidate,
           CASE WHEN (links.by_guid IS NULL AND parent.next_kind = 'end' AND parent.next_number < starts.number) IS NOT TRUE
                 AND (lower(coalesce(own.parent_process, twins.parent_process)) = lower(other.process)) IS NOT FALSE
                THEN other.number END AS parent
    FROM starts
    LEFT JOIN links ON links.number = starts.number
    LEFT JOIN starts parent ON parent.number = coalesce(links.by_guid, links.by_pid)
    LEFT JOIN numbered own ON own.number = starts.number
    LEFT JOIN numbered other ON other.number = parent.number
    LEFT JOIN twins ON twins.twin = starts.number
),
-- Follows a branch for 50 generations.
walked AS (
    SELECT number, 0 AS depth, [number] AS path FROM edges WHERE parent IS NULL
    UNION ALL
    SELECT edges.number, depth + 1, list_append(path, edges.number)
    FROM walked JOIN edges ON edges.parent = walked.number
    WHERE depth < 50
),
ordered AS (
    SELECT edges.*, walked.depth,
           row_number() OVER (ORDER BY walked.path ASC NULLS LAST, edges.number ASC NULLS LAST) AS tree_order
    FROM edges LEFT JOIN walked ON walked.number = edges.number
),
-- Processes whose start, or the next event of their ID, is a record whose place another one claims, and records of both logs that do not agree.
claims AS (SELECT number FROM numbered WHERE is_contested),
contested AS MATERIALIZED (
    FROM claims
    UNION
    SELECT twin FROM twins JOIN claims USING (number)
    UNION
    SELECT starts.number FROM starts JOIN claims ON claims.number = starts.next_number
    UNION
    SELECT unnest([number, twin]) FROM compared WHERE agree IS NOT TRUE
)
SELECT
    ordered.tree_order,
    linked.time_created,
    CASE WHEN ordered.next_kind = 'end' THEN ordered.next_time END AS end_time,
    linked.name AS computer, ordered.depth,
    repeat('. ', ordered.depth) || regexp_extract(linked.process, '[^\\]*$') AS tree,
    linked.process, coalesce(linked.command_line, twins.command_line) AS command_line, coalesce(linked.user_name, twins.user_name) AS user_name, linked.pid, linked.parent_pid,
    coalesce(parent.process, linked.parent_process, twins.parent_process) AS parent_process,
    coalesce(parent.command_line, parent_twins.command_line) AS parent_command_line,
    coalesce(linked.logon_id, twins.logon_id) AS logon_id, linked.hashes, linked.guid AS process_guid,
    CASE WHEN twins.twin IS NULL THEN [linked.event_id] ELSE [1, 4688] END AS event_ids,
    linked.number IN (FROM contested) OR coalesce(ordered.candidate IN (FROM contested), false) AS contested
FROM numbered linked
JOIN ordered ON ordered.number = linked.number
LEFT JOIN numbered parent ON parent.number = ordered.parent
LEFT JOIN twins ON twins.twin = linked.number
LEFT JOIN twins parent_twins ON parent_twins.twin = parent.number
