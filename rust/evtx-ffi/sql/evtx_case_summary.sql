-- evtx_case_summary(files, password := NULL)
--
-- A row per computer: the time span of its logs, changes of time zone and clock, gaps, cleared, wrapped and unused logs,
-- boots, changes of accounts, brute force, new services and tasks, and remote logons.
--
-- SELECT computer, first_event, last_event, brute_force FROM evtx_case_summary('logs')

WITH records AS (
    SELECT computer, time_created AS time, provider, event_id, user_sid,
        -- UserData is one element, which contains the fields.
        CASE WHEN user_data IS NULL THEN event_data
             ELSE TRY_CAST((user_data->'$.*')[1] AS MAP(VARCHAR, VARCHAR)) END AS data
    FROM read_evtx(files, password := password)
    WHERE provider IN ('Microsoft-Windows-Security-Auditing', 'Microsoft-Windows-Eventlog', 'EventLog',
                       'Microsoft-Windows-Kernel-General', 'Service Control Manager', 'Microsoft-Windows-TaskScheduler',
                       'Microsoft-Windows-TerminalServices-LocalSessionManager',
                       'Microsoft-Windows-TerminalServices-RemoteConnectionManager')
      AND event_id IN (1, 12, 21, 22, 25, 104, 106, 1102, 1149, 4616, 4624, 4625, 4697, 4698, 4720, 4722, 4724, 4725, 4726,
                       4728, 4732, 4738, 4740, 4756, 4771, 4776, 4781, 6005, 6008, 6013, 7045)
),
-- What an event is about, and its fields in columns that all topics share.
topics AS (
    SELECT *,
        CASE provider
            WHEN 'Microsoft-Windows-Security-Auditing' THEN CASE
                WHEN event_id = 4616 THEN 'clock'
                WHEN event_id = 4624 AND data['LogonType'] IN ('3', '8', '10', '12') THEN 'logon'
                WHEN event_id IN (4625, 4771) OR event_id = 4776 AND data['Status'] <> '0x0' THEN 'failure'
                WHEN event_id = 4697 THEN 'service'
                WHEN event_id = 4698 THEN 'task'
                WHEN event_id BETWEEN 4720 AND 4781 AND event_id <> 4776 THEN 'account' END
            WHEN 'Microsoft-Windows-Eventlog' THEN CASE WHEN event_id IN (104, 1102) THEN 'clear' END
            WHEN 'EventLog' THEN CASE event_id
                WHEN 6005 THEN 'start' WHEN 6008 THEN 'crash' WHEN 6013 THEN 'zone' END
            WHEN 'Microsoft-Windows-Kernel-General' THEN CASE event_id
                WHEN 1 THEN 'clock' WHEN 12 THEN 'boot' WHEN 22 THEN 'zone' END
            WHEN 'Service Control Manager' THEN CASE event_id WHEN 7045 THEN 'service' END
            WHEN 'Microsoft-Windows-TaskScheduler' THEN CASE event_id WHEN 106 THEN 'task' END
            ELSE CASE WHEN event_id IN (21, 25, 1149) THEN 'logon' END
        END AS topic,
        concat_ws('\', nullif(coalesce(data['SubjectDomainName'], ''), ''),
                  coalesce(data['SubjectUserName'], data['UserContext'])) AS subject,
        concat_ws('\', nullif(nullif(coalesce(data['TargetDomainName'], data['Param2'], ''), ''), '-'),
                  coalesce(data['TargetUserName'], data['OldTargetUserName'], data['User'], data['Param1'])) AS target,
        -- NTLM often records the name of the other machine, but no address.
        list_filter([data['IpAddress'], data['Address'], data['Param3'], data['WorkstationName'], data['Workstation']],
                    lambda value: value NOT IN ('', '-'))[1] AS host
    FROM records
),
facts AS (
    SELECT computer, topic, time,
        CASE topic WHEN 'account' THEN evtx_event_name(provider, event_id)
                   WHEN 'logon' THEN coalesce(evtx_logon_type(data['LogonType']), 'RemoteInteractive')
                   WHEN 'failure' THEN event_id::VARCHAR END AS kind,
        CASE topic
            WHEN 'service' THEN data['ServiceName']
            WHEN 'task' THEN data['TaskName']
            WHEN 'clear' THEN coalesce(data['Channel'], 'Security')
            WHEN 'zone' THEN coalesce(data['param7'], data['OldBias'] || ' to ' || data['NewBias'])
            WHEN 'clock' THEN data['ProcessName']
            WHEN 'account' THEN coalesce(data['MemberSid'], data['NewTargetUserName'])
        END AS item,
        -- Of a service its path, of a new member its name in the directory.
        coalesce(data['ImagePath'], data['ServiceFileName'], nullif(data['MemberName'], '-')) AS path,
        nullif(subject, '') AS subject, nullif(target, '') AS target, user_sid,
        CASE WHEN starts_with(lower(host), '::ffff:') THEN host[8:] ELSE host END AS source,
        -- Times that no clock has, such as infinity or 290000 BC, have no difference.
        coalesce(TRY(TRY_CAST(data['NewTime'] AS TIMESTAMP_NS)::TIMESTAMP
                     - TRY_CAST(coalesce(data['OldTime'], data['PreviousTime']) AS TIMESTAMP_NS)::TIMESTAMP),
                 INTERVAL 0 SECONDS) AS moved
    FROM topics
    WHERE topic IS NOT NULL
      AND (topic <> 'logon' OR target NOT LIKE '%$' AND host IS NOT NULL
           AND lower(host) NOT IN ('127.0.0.1', '::1', 'local', 'localhost', lower(split_part(computer, '.', 1))))
      AND (topic <> 'clock' OR abs(epoch(moved)) >= 60)
),
-- Logons and failures can be many, so they are counted at once: failures per minute.
counted AS (
    SELECT computer, topic, kind, item, path, subject, target, user_sid, source, moved,
        CASE WHEN topic = 'failure' THEN date_trunc('minute', time) WHEN topic <> 'logon' THEN time END AS moment,
        count(*) AS events, min(time) AS first, max(time) AS last
    FROM facts
    GROUP BY ALL
),
accounts AS (
    SELECT user_sid, list({computer: computer, name: user_name} ORDER BY last_seen DESC, user_name DESC) AS names
    FROM evtx_accounts(files, password := password)
    GROUP BY ALL
),
named AS (
    SELECT counted.*,
        -- The name on this computer, or else on another one.
        coalesce(subject, list_filter(who.names, lambda entry: entry.computer = counted.computer)[1].name,
                 who.names[1].name, evtx_sid_name(counted.user_sid), counted.user_sid) AS user_name,
        coalesce(list_filter(member.names, lambda entry: entry.computer = counted.computer)[1].name,
                 CASE topic WHEN 'account' THEN path END, member.names[1].name, evtx_sid_name(item), item) AS member
    FROM counted
    LEFT JOIN accounts AS who ON who.user_sid = counted.user_sid
    LEFT JOIN accounts AS member ON member.user_sid = item
),
-- Events can have the same time.
lists AS (
    SELECT computer,
        list({time: first, zone: item} ORDER BY first ASC, item ASC) FILTER (topic = 'zone' AND item <> '') AS zones,
        list({time: first, log: item, user_name: user_name} ORDER BY first ASC, item ASC, user_name ASC NULLS LAST)
            FILTER (topic = 'clear') AS clears,
        list(first ORDER BY first ASC) FILTER (topic = 'boot') AS boots,
        list(first ORDER BY first ASC) FILTER (topic = 'start') AS starts,
        list(first ORDER BY first ASC) FILTER (topic = 'crash') AS crashes,
        list({time: first, event: kind, account: target, detail: member, user_name: user_name}
             ORDER BY first ASC, kind ASC, target ASC NULLS LAST, member ASC NULLS LAST, user_name ASC NULLS LAST)
            FILTER (topic = 'account') AS account_changes
    FROM named
    GROUP BY computer
),
-- Two logs can have the same change: of the clock, or a new service.
clock_changes AS (
    SELECT computer, list({time: time, moved: moved, process: process} ORDER BY time ASC, moved ASC) AS list
    FROM (
        SELECT computer, moved, min(first) AS time, min(item) AS process
        FROM counted WHERE topic = 'clock' GROUP BY ALL
    )
    GROUP BY computer
),
services AS (
    SELECT computer, list({time: time, service: item, path: path, user_name: user_name}
                          ORDER BY time ASC, item ASC NULLS LAST, path ASC NULLS LAST) AS list
    FROM (
        SELECT computer, item, path, min(first) AS time, arg_max(user_name, (subject IS NOT NULL, user_name)) AS user_name
        FROM named WHERE topic = 'service' GROUP BY ALL
    )
    GROUP BY computer
),
tasks AS (
    SELECT computer, list({time: time, task: item, user_name: user_name} ORDER BY time ASC, item ASC NULLS LAST) AS list
    FROM (
        SELECT computer, item, min(first) AS time, arg_min(user_name, (first, user_name)) AS user_name
        FROM named WHERE topic = 'task' GROUP BY ALL
    )
    GROUP BY computer
),
remote_logons AS (
    SELECT computer, list({account: target, source: source, kinds: kinds, logons: logons, first: first, last: last}
                          ORDER BY first ASC, target ASC, source ASC) AS list
    FROM (
        SELECT computer, target, source, list_sort(list(DISTINCT kind), 'ASC') AS kinds, sum(events)::BIGINT AS logons,
               min(first) AS first, max(last) AS last
        FROM counted WHERE topic = 'logon' GROUP BY ALL
    )
    GROUP BY computer
),
failures AS (
    SELECT computer, source, sum(events)::BIGINT AS failures, {
        source: source, account: arg_max(target, (events, target)), accounts: count(DISTINCT target), failures: failures,
        most_in_a_minute: max(in_minute)::BIGINT, first: min(first), last: max(last)} AS entry
    FROM (SELECT *, sum(events) OVER (PARTITION BY computer, source, kind, moment) AS in_minute
          FROM counted WHERE topic = 'failure')
    GROUP BY computer, source, kind
),
brute_force AS (
    SELECT computer, list(entry ORDER BY failures DESC, source ASC) AS list
    -- A failure can have an event for the logon and one for the password.
    FROM (SELECT computer, max(failures) AS failures, source, arg_max(entry, failures) AS entry FROM failures GROUP BY ALL)
    WHERE failures >= 10
    GROUP BY computer
),
-- Hours, because there can be any number of records.
hours AS (
    SELECT computer, filename, date_trunc('hour', time_created) AS hour, count(*) AS records,
           min(time_created) AS first, max(time_created) AS last
    FROM read_evtx(files, password := password)
    WHERE computer IS NOT NULL AND time_created IS NOT NULL
    GROUP BY ALL
),
gaps AS (
    SELECT computer, list({start: last, duration: next_first - last} ORDER BY last ASC) AS list
    FROM (
        SELECT computer, max(last) AS last, lead(min(first)) OVER (PARTITION BY computer ORDER BY hour ASC) AS next_first
        FROM hours GROUP BY computer, hour
    )
    WHERE next_first - last >= INTERVAL 1 DAY
    GROUP BY computer
),
spans AS (
    SELECT computer, min(first) AS first_event, max(last) AS last_event, sum(records)::BIGINT AS events,
           count(DISTINCT filename) AS logs
    FROM hours
    GROUP BY computer
),
writers AS (
    SELECT filename, arg_max(computer, (records, computer)) AS computer, sum(records) AS records
    FROM (SELECT filename, computer, sum(records) AS records FROM hours GROUP BY ALL)
    GROUP BY ALL
),
-- An unused log belongs to the computer that wrote most of its folder.
folders AS (
    SELECT folder, arg_max(computer, (records, computer)) AS computer
    FROM (SELECT parse_dirpath(filename) AS folder, computer, sum(records) AS records FROM writers GROUP BY ALL)
    GROUP BY ALL
),
states AS (
    SELECT coalesce(writers.computer, folders.computer) AS computer,
        list(parse_filename(files.filename) ORDER BY files.filename ASC) FILTER (is_wrapped) AS wrapped,
        list(parse_filename(files.filename) ORDER BY files.filename ASC) FILTER (files.records = 0) AS unused
    FROM evtx_file_metadata(files, password := password) AS files
    LEFT JOIN writers USING (filename)
    LEFT JOIN folders ON folder = parse_dirpath(files.filename)
    GROUP BY ALL
)
SELECT
    spans.*,
    -- The first event in each zone after another one.
    coalesce(list_filter(zones, lambda entry, i: i = 1 OR entry.zone <> zones[i - 1].zone), []) AS time_zones,
    coalesce(clock_changes.list, []) AS clock_changes, coalesce(gaps.list, []) AS gaps, coalesce(clears, []) AS cleared_logs,
    -- A table of events does not say how its files are.
    CASE WHEN EXISTS (FROM states) THEN coalesce(wrapped, []) END AS wrapped_logs,
    CASE WHEN EXISTS (FROM states) THEN coalesce(unused, []) END AS unused_logs, coalesce(boots, starts, []) AS boots,
    coalesce(crashes, []) AS unexpected_shutdowns, coalesce(account_changes, []) AS account_changes,
    coalesce(brute_force.list, []) AS brute_force, coalesce(services.list, []) AS new_services,
    coalesce(tasks.list, []) AS new_tasks, coalesce(remote_logons.list, []) AS remote_logons
FROM spans
LEFT JOIN lists USING (computer) LEFT JOIN gaps USING (computer) LEFT JOIN states USING (computer)
LEFT JOIN clock_changes USING (computer) LEFT JOIN brute_force USING (computer) LEFT JOIN services USING (computer)
LEFT JOIN tasks USING (computer) LEFT JOIN remote_logons USING (computer)
