-- evtx_case_summary_of(table_name, table_of_files := NULL)
--
-- evtx_case_summary over a table, a view or a Parquet file with the columns of read_evtx. `table_of_files`,
-- with the columns of evtx_file_metadata, tells which logs are wrapped or unused.
--
-- SELECT computer, first_event, failed_logons FROM evtx_case_summary_of('events', table_of_files := 'files')

WITH RECURSIVE evtx_case_summary_events AS NOT MATERIALIZED (
    SELECT record_id, event_record_id, time_created, event_id, provider, channel, computer, user_sid, event_data, user_data,
           filename
    FROM query_table(table_name)
),
evtx_no_files AS (SELECT NULL::VARCHAR AS filename, NULL::BOOLEAN AS is_wrapped, NULL::UBIGINT AS records LIMIT 0),
-- Hours, because there can be any number of records. A log that was forwarded or merged has record IDs of its own; in the
-- log of a machine, they are those of the events. A damaged record can have a time, but no computer.
timed AS MATERIALIZED (
    SELECT coalesce(filename, '') AS filename, computer, date_trunc('hour', time_created) AS hour, count(*) AS records,
           min(time_created) AS first, max(time_created) AS last, min(record_id) AS first_id, max(record_id) AS last_id,
           bool_and(record_id = event_record_id AND filename <> '') AS is_own
    FROM evtx_case_summary_events
    WHERE time_created IS NOT NULL
    GROUP BY ALL
),
hours AS (FROM timed WHERE computer IS NOT NULL),
logs AS (
    SELECT filename, parse_dirpath(filename) AS folder, arg_max(last, (last_id, last)) FILTER (last_id IS NOT NULL) AS last,
           bool_and(is_own) AS is_own,
           CASE WHEN bool_and(is_own) THEN arg_max(computer, (last_id, last, computer)) FILTER (last_id IS NOT NULL) END AS final_name
    FROM hours
    GROUP BY ALL
),
-- What machines with a name were called last, by the logs of a folder: in the last log with the name, and in the logs with
-- the name that it ends with. Machines of one image had the same name once.
called AS (
    SELECT folder, computer, arg_max(final_name, (logs.last, final_name)) AS final_name
    FROM hours JOIN logs USING (filename)
    WHERE logs.is_own
    GROUP BY ALL
),
followed AS (
    SELECT *, 0 AS steps FROM called
    UNION ALL
    SELECT followed.folder, followed.computer, called.final_name, steps + 1
    FROM followed JOIN called ON called.folder = followed.folder AND called.computer = followed.final_name
    WHERE called.final_name <> followed.final_name AND steps < 50
),
renames AS (SELECT folder, computer, arg_max(final_name, (steps, final_name)) AS final_name FROM followed GROUP BY ALL),
machines AS MATERIALIZED (
    SELECT filename, logs.last AS log_end, named.computer,
           coalesce(renames.final_name, elsewhere.final_name, logs.final_name, named.computer) AS machine
    FROM (SELECT DISTINCT filename, computer FROM hours) AS named JOIN logs USING (filename)
    LEFT JOIN renames ON renames.folder = logs.folder AND renames.computer = coalesce(logs.final_name, named.computer)
    LEFT JOIN (SELECT computer, min(final_name) AS final_name FROM renames GROUP BY computer HAVING count(DISTINCT final_name) = 1)
           AS elsewhere ON elsewhere.computer = coalesce(logs.final_name, named.computer)
),
-- The time of a record is broken if it is far from those of the two records before and after it, on the same side of all,
-- and no other of its log is near. Only logs with such a time are read again. A record that comes after all earlier ones, and
-- before all later ones, has no such time.
lonely AS MATERIALIZED (
    SELECT filename, hour FROM timed
    QUALIFY records = 1 AND computer IS NOT NULL
        AND count(computer) OVER (PARTITION BY filename ORDER BY hour ASC
                                  RANGE BETWEEN INTERVAL 30 DAYS PRECEDING AND INTERVAL 30 DAYS FOLLOWING) = 1
        AND (max(last_id) OVER (PARTITION BY filename ORDER BY hour ASC ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) >= last_id
             OR min(first_id) OVER (PARTITION BY filename ORDER BY hour ASC ROWS BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING) <= last_id)
),
broken AS MATERIALIZED (
    SELECT filename, record_id, hour
    FROM (SELECT filename, record_id, date_trunc('hour', time_created) AS hour, epoch(time_created) AS time,
                 lag(time) OVER of_log AS before, lead(time) OVER of_log AS after,
                 [before, after, lag(time, 2) OVER of_log, lead(time, 2) OVER of_log] AS near
          FROM evtx_case_summary_events
          WHERE time_created IS NOT NULL AND filename IN (SELECT filename FROM lonely)
          WINDOW of_log AS (PARTITION BY filename ORDER BY record_id ASC NULLS LAST))
    SEMI JOIN lonely USING (filename, hour)
    WHERE before IS NOT NULL AND after IS NOT NULL AND (time < list_min(near) OR time > list_max(near))
),
placed_hours AS MATERIALIZED (
    SELECT machine, hours.*, broken.record_id AS broken_id
    FROM hours JOIN machines USING (filename, computer) LEFT JOIN broken USING (filename, hour)
),
own_names AS (SELECT DISTINCT machine, lower(split_part(computer, '.', 1)) AS own_name FROM machines),
-- A record in several copies of a log counts once. One that says anything else is no copy.
evtx_case_summary_records AS (
    SELECT machine, min(log_end) AS log_end, coalesce(event_record_id, record_id) AS record_id, time_created, event_id, provider,
           channel, events.computer, user_sid, event_data, user_data
    FROM evtx_case_summary_events AS events
    JOIN machines ON machines.filename = coalesce(events.filename, '') AND machines.computer = events.computer
    WHERE time_created IS NOT NULL AND event_id IN (1, 4, 12, 21, 22, 25, 104, 106, 140, 302, 1102, 1149, 4616, 4624, 4625, 4697, 4698, 4720, 4722, 4723,
                       4724, 4725, 4726, 4728, 4729, 4732, 4733, 4738, 4740, 4741, 4756, 4757, 4767, 4768, 4771, 4776, 4778,
                       4781, 6005, 6008, 6013, 7045, 18453, 18454, 18456)
      AND (provider IN ('Microsoft-Windows-Security-Auditing', 'Microsoft-Windows-Eventlog', 'EventLog', 'OpenSSH',
                        'Microsoft-Windows-Kernel-General', 'Microsoft-Windows-Power-Troubleshooter',
                        'Service Control Manager', 'Microsoft-Windows-TaskScheduler',
                        'Microsoft-Windows-RemoteDesktopServices-RdpCoreTS', 'Microsoft-Windows-TerminalServices-Gateway',
                        'Microsoft-Windows-TerminalServices-LocalSessionManager',
                        'Microsoft-Windows-TerminalServices-RemoteConnectionManager')
           OR provider LIKE 'MSSQL%')
    GROUP BY ALL
),
evtx_case_summary_accounts AS MATERIALIZED (FROM evtx_accounts_of('evtx_case_summary_events')),
-- What an event is about, and its fields in columns that all topics share.
topics AS (
    SELECT rows.machine, log_end, computer, time_created AS time, provider, event_id, data, full_name AS subject,
        -- A locked account did not lock itself.
        CASE event_id WHEN 4740 THEN concat_ws('\', data['SubjectDomainName'], data['SubjectUserName']) ELSE user_name END AS user_name,
        record_id,
        CASE provider
            WHEN 'Microsoft-Windows-Security-Auditing' THEN CASE
                WHEN event_id = 4616 THEN 'clock'
                WHEN event_id IN (4624, 4778) THEN 'logon'
                WHEN event_id IN (4625, 4771) THEN 'failure'
                WHEN event_id IN (4768, 4776) THEN if(data['Status'] = '0x0', 'password', 'failure')
                WHEN event_id = 4697 THEN 'service'
                WHEN event_id = 4698 THEN 'task'
                -- Windows also logs changes of a name that change nothing.
                WHEN event_id BETWEEN 4720 AND 4780 OR data['OldTargetUserName'] <> data['NewTargetUserName'] THEN 'account' END
            WHEN 'Microsoft-Windows-Eventlog' THEN CASE WHEN event_id IN (104, 1102) THEN 'clear' END
            WHEN 'EventLog' THEN CASE event_id
                WHEN 6005 THEN 'start' WHEN 6008 THEN 'crash' WHEN 6013 THEN 'zone' END
            WHEN 'Microsoft-Windows-Kernel-General' THEN CASE event_id
                WHEN 1 THEN 'clock' WHEN 12 THEN 'boot' WHEN 22 THEN 'zone' END
            WHEN 'Microsoft-Windows-Power-Troubleshooter' THEN CASE event_id WHEN 1 THEN 'wake' END
            WHEN 'Service Control Manager' THEN CASE event_id WHEN 7045 THEN 'service' END
            WHEN 'Microsoft-Windows-TaskScheduler' THEN CASE event_id WHEN 106 THEN 'task' END
            WHEN 'Microsoft-Windows-RemoteDesktopServices-RdpCoreTS' THEN CASE event_id WHEN 140 THEN 'failure' END
            WHEN 'OpenSSH' THEN CASE WHEN event_id = 4 AND starts_with(data['payload'], 'Failed ') THEN 'failure'
                                     WHEN event_id = 4 AND starts_with(data['payload'], 'Accepted ') THEN 'password' END
            WHEN 'Microsoft-Windows-TerminalServices-Gateway' THEN CASE event_id WHEN 302 THEN 'logon' END
            WHEN 'Microsoft-Windows-TerminalServices-LocalSessionManager' THEN CASE WHEN event_id IN (21, 25) THEN 'logon' END
            WHEN 'Microsoft-Windows-TerminalServices-RemoteConnectionManager' THEN CASE event_id WHEN 1149 THEN 'logon' END
            ELSE CASE event_id WHEN 18456 THEN 'failure' WHEN 18453 THEN 'password' WHEN 18454 THEN 'password' END
        END AS topic,
        -- A locked account has the machine that tried its password as its domain.
        CASE topic WHEN 'account' THEN
            concat_ws('\', CASE WHEN event_id <> 4740 THEN nullif(nullif(data['TargetDomainName'], ''), '-') END,
                      coalesce(data['TargetUserName'], data['OldTargetUserName'])) ELSE full_name END AS target,
        -- NTLM often records the name of the other machine, but no address. Nothing comes from the machine itself.
        CASE WHEN own_name IS NULL THEN remote_host END AS source
    FROM evtx_event_rows('evtx_case_summary_records', 'evtx_case_summary_accounts') AS rows
    LEFT JOIN own_names ON own_names.machine = rows.machine AND own_name = lower(split_part(remote_host, '.', 1))
),
-- The last name of a SID, on a computer and, without one, on all.
members AS (
    SELECT user_sid, computer, arg_max(user_name, (last_seen, user_name)) AS name
    FROM (SELECT * REPLACE (coalesce(computer, '') AS computer) FROM evtx_case_summary_accounts)
    GROUP BY GROUPING SETS ((user_sid, computer), (user_sid))
),
facts AS MATERIALIZED (
    SELECT topics.* REPLACE ({
            ProcessName: data['ProcessName'], Reason: data['Reason'], param7: data['param7'], NewBias: data['NewBias'],
            LogonType: data['LogonType'], TargetLogonId: data['TargetLogonId'], TargetLinkedLogonId: data['TargetLinkedLogonId'],
            OldTargetUserName: data['OldTargetUserName'], NewTargetUserName: data['NewTargetUserName'], Status: data['Status'],
            SubStatus: data['SubStatus'], param2: data['param2'], param3: data['param3'], payload: data['payload']} AS data),
        CASE topic
            WHEN 'service' THEN data['ServiceName']
            WHEN 'task' THEN data['TaskName']
            WHEN 'clear' THEN coalesce(data['Channel'], 'Security')
            WHEN 'clock' THEN data['NewTime']
            -- The name of a member on this computer or on another, or in the directory.
            WHEN 'account' THEN coalesce(
                own.name, anywhere.name, nullif(data['MemberName'], '-'), evtx_sid_name(data['MemberSid']), data['MemberSid'], data['NewTargetUserName'])
        END AS item,
        coalesce(data['ImagePath'], data['ServiceFileName']) AS path,
        lower(split_part(split_part(target, '\', -1), '@', 1)) AS account,
        -- Infinity and 290000 BC, which no clock shows, become NULL.
        TRY_CAST(coalesce(data['NewTime'], data['WakeTime']) AS TIMESTAMP_NS) AS new_time,
        TRY_CAST(coalesce(data['OldTime'], data['PreviousTime']) AS TIMESTAMP_NS) AS old_time
    FROM topics
    LEFT JOIN members AS own ON own.user_sid = data['MemberSid'] AND own.computer = topics.computer
    LEFT JOIN members AS anywhere ON anywhere.user_sid = data['MemberSid'] AND anywhere.computer IS NULL
    WHERE topic IS NOT NULL
),
-- Events can have the same time.
lists AS (
    SELECT machine,
        list({time: time, log: item, user_name: user_name} ORDER BY time ASC, item ASC, user_name ASC NULLS LAST)
            FILTER (topic = 'clear') AS clears,
        list(time ORDER BY time ASC) FILTER (topic = 'boot') AS boots,
        list(time ORDER BY time ASC) FILTER (topic = 'start') AS starts,
        list(time ORDER BY time ASC) FILTER (topic = 'crash') AS crashes,
        list({time: time, event: evtx_event_name(provider, event_id), account: target, detail: item, user_name: user_name}
             ORDER BY time ASC, event_id ASC, target ASC NULLS LAST, item ASC NULLS LAST, user_name ASC NULLS LAST)
            FILTER (topic = 'account') AS account_changes
    FROM facts
    GROUP BY machine
),
-- Two logs can have the same fact: a new service or task, or a change of the clock. Of those at most 5 seconds apart, the
-- first with a name in one log is the first with it in the other. Of names in one log only, the first is the first.
told AS (
    SELECT *, row_number() OVER (PARTITION BY machine, topic, key, run, shared, event_id
                                  ORDER BY time ASC, record_id ASC, new_time ASC, old_time ASC, data ASC, user_name ASC) AS number
    FROM (SELECT *, CASE WHEN min(event_id) OVER of_name < max(event_id) OVER of_name THEN item END AS shared
          FROM (SELECT *, count(*) FILTER (is_first) OVER in_order AS run
                FROM (SELECT *, coalesce(time - lag(time) OVER in_order > INTERVAL 5 SECONDS, true) AS is_first
                      -- The System log has the name of a service as it is shown, the Security log its key. The path is the same.
                      FROM (SELECT *, lower(coalesce(path, item)) AS key FROM facts WHERE topic IN ('service', 'task', 'clock'))
                      WINDOW in_order AS (PARTITION BY machine, topic, key ORDER BY time ASC, event_id ASC, record_id ASC))
                WINDOW in_order AS (PARTITION BY machine, topic, key ORDER BY time ASC, event_id ASC, record_id ASC))
          WINDOW of_name AS (PARTITION BY machine, topic, key, run, item))
),
once AS (
    SELECT machine, topic, max(item) AS item, min(time) AS time, min(path) AS path, min(data['ProcessName']) AS process,
           -- The subject of the event, or else the user of the process that wrote it.
           coalesce(max(subject), max(user_name)) AS user_name,
           min(old_time) AS old_time, min(new_time) AS new_time,
           -- The clock of the hardware goes on while Windows sleeps.
           coalesce(bool_or(data['Reason'] = '2'), false) AS is_sleep
    FROM told
    GROUP BY machine, topic, key, run, shared, number
),
new AS (
    SELECT once.machine,
        list({time: time, service: item, path: path, user_name: user_name}
             ORDER BY time ASC, item ASC NULLS LAST, path ASC NULLS LAST, user_name ASC NULLS LAST)
            FILTER (topic = 'service') AS services,
        list({time: time, task: item, user_name: user_name} ORDER BY time ASC, item ASC NULLS LAST, user_name ASC NULLS LAST)
            FILTER (topic = 'task') AS tasks,
        list({time: time, old_time: old_time, new_time: new_time,
              moved_seconds: CASE WHEN isfinite(old_time) AND isfinite(new_time)
                                  THEN (epoch_ns(new_time)::HUGEINT - epoch_ns(old_time)) / 1e9 END,
              user_name: user_name, process: process}
             ORDER BY time ASC, new_time ASC, old_time ASC, user_name ASC NULLS LAST, process ASC NULLS LAST)
            FILTER (topic = 'clock' AND abs(epoch(new_time) - epoch(old_time)) >= 60 AND NOT is_sleep
                    AND NOT coalesce(abs(epoch(new_time) - epoch(wake)) <= 60, false)) AS clock_changes
    FROM once
    ASOF LEFT JOIN (SELECT machine, new_time AS wake FROM facts WHERE topic = 'wake' AND new_time IS NOT NULL) AS wakes
      ON wakes.machine = once.machine AND once.new_time + INTERVAL 60 SECONDS >= wakes.wake
    GROUP BY once.machine
),
-- EventLog 6013 has the name of the zone, with its bias in winter, and Kernel-General 22 the bias that is new. The next name
-- is that of the new zone, if it fits the bias.
evtx_case_summary_biases AS (
    SELECT machine, time, log_end, record_id,
           (-60 * TRY_CAST(coalesce(regexp_extract(data['param7'], '^-?\d+'), data['NewBias']) AS INTEGER)::BIGINT)::DOUBLE AS offset_seconds,
           nullif(regexp_extract(data['param7'], '^-?\d+ (.*)$', 1), '') AS named,
           lead(named IGNORE NULLS) OVER (
               PARTITION BY machine ORDER BY log_end ASC, record_id ASC, time ASC, offset_seconds ASC, named ASC) AS next,
           evtx_time_zone(coalesce(named, next)) AS zone
    FROM facts
    WHERE topic = 'zone' AND offset_seconds IS NOT NULL
),
zones AS (
    SELECT machine, list({time: time, zone: evtx_time_zone(windows_zone), windows_zone: windows_zone, utc_offset_seconds: bias}
                         ORDER BY log_end ASC, record_id ASC, time ASC, bias ASC, windows_zone ASC) AS list
    FROM (SELECT machine, time, log_end, record_id,
                 coalesce(named, CASE WHEN utc_offset_seconds = offset_seconds THEN next END) AS windows_zone,
                 coalesce(CASE WHEN windows_zone IS NOT NULL THEN utc_offset_seconds END, offset_seconds) AS bias,
                 coalesce(windows_zone, bias::VARCHAR) AS told
          FROM evtx_offset_rows('evtx_case_summary_biases')
          -- Windows writes the zone every day.
          QUALIFY told IS DISTINCT FROM lag(told) OVER (
              PARTITION BY machine ORDER BY log_end ASC, record_id ASC, time ASC, offset_seconds ASC, named ASC))
    GROUP BY machine
),
-- Logons from elsewhere. Of two with rights of different kinds, Windows logs both, and each names the other.
remote AS (
    SELECT machine, record_id, time, event_id, account, target, source,
        CASE WHEN event_id = 4624 THEN CASE data['LogonType']
                 WHEN '3' THEN 'Network' WHEN '8' THEN 'NetworkCleartext'
                 WHEN '7' THEN 'Reconnect' WHEN '13' THEN 'Reconnect'
                 WHEN '10' THEN 'RemoteInteractive' WHEN '12' THEN 'RemoteInteractive' END
             WHEN event_id IN (25, 4778) THEN 'Reconnect' ELSE 'RemoteInteractive' END AS kind,
        nullif(coalesce(data['TargetLinkedLogonId'], '0x0'), '0x0') AS linked
    FROM facts
    -- Without a source, or from the machine itself, Remote Desktop may come through a tunnel.
    WHERE topic = 'logon' AND account <> '' AND kind IS NOT NULL
      AND (source IS NOT NULL OR event_id = 1149 OR coalesce(data['LogonType'], '') IN ('10', '12'))
      -- Machines log on over the network, too. Their names end like those of hidden accounts.
      AND (kind NOT LIKE 'Network%' OR account NOT LIKE '%$' OR account IN (SELECT lower(coalesce(data['NewTargetUserName'], account)) FROM facts
                                                                       WHERE event_id = 4720 OR data['OldTargetUserName'] NOT LIKE '%$'))
    QUALIFY linked IS NULL OR coalesce(time - lag(time) OVER (
        PARTITION BY machine, event_id, least(linked, data['TargetLogonId']), greatest(linked, data['TargetLogonId'])
        ORDER BY time ASC, record_id ASC, target ASC, source ASC) > INTERVAL 5 SECONDS, true)
),
-- What several logs say of one logon over Remote Desktop is at most a minute apart. If a log says it twice, there are two.
sessions AS (
    SELECT machine, account, source, max(target) AS target, min(first) AS first, max(last) AS last, max(events) AS logons,
           if(bool_or(reconnects) AND NOT bool_or(log = 21 AND NOT reconnects), 'Reconnect', 'RemoteInteractive') AS kind
    FROM (
        SELECT machine, account, source, run, CASE event_id WHEN 25 THEN 21 ELSE event_id END AS log,
               kind = 'Reconnect' AS reconnects, max(target) AS target, min(time) AS first, max(time) AS last, count(*) AS events
        FROM (SELECT *, count(*) FILTER (is_first) OVER (PARTITION BY machine, account, source ORDER BY time ASC, record_id ASC) AS run
              FROM (SELECT *, coalesce(time - lag(time) OVER (PARTITION BY machine, account, source ORDER BY time ASC, record_id ASC)
                                       > INTERVAL 60 SECONDS, true) AS is_first
                    FROM remote WHERE kind NOT LIKE 'Network%'))
        GROUP BY ALL
    )
    GROUP BY machine, account, source, run
),
-- Network Level Authentication logs on over the network before, often twice at once.
authentications AS (
    SELECT remote.machine, remote.record_id, remote.time
    FROM (SELECT *, coalesce(lead(time) OVER (PARTITION BY machine, account ORDER BY time ASC, record_id ASC) - time
                             > INTERVAL 1 SECOND, true) AS is_last
          FROM remote WHERE kind = 'Network') AS remote
    -- Of two sessions that end at one time, the one with a source.
    ASOF JOIN (SELECT *, last + to_microseconds((source IS NULL)::BIGINT) AS until FROM sessions) AS sessions
      ON remote.machine = sessions.machine AND remote.account = sessions.account AND remote.time <= sessions.until
    -- NTLM may have logged the name of the machine in place of its address.
    WHERE sessions.first - remote.time <= INTERVAL 30 SECONDS
      AND (remote.source = sessions.source OR NOT regexp_full_match(remote.source, '[0-9a-fA-F]*[.:][0-9a-fA-F.:]*'))
    QUALIFY count(*) FILTER (is_last) OVER (PARTITION BY sessions.machine, sessions.account, sessions.source, sessions.first
                                            ORDER BY remote.time DESC) <= sessions.logons
),
remote_logons AS (
    SELECT machine, list({account: target, source: source, kinds: kinds, logons: logons, first: first, last: last}
                         ORDER BY first ASC, target ASC, source ASC NULLS LAST) AS list
    FROM (
        SELECT machine, source, arg_max(target, (contains(target, '\'), target)) AS target,
               list_sort(list(DISTINCT kind), 'ASC') AS kinds, sum(logons)::BIGINT AS logons, min(first) AS first,
               max(last) AS last
        FROM (SELECT machine, account, source, target, kind, logons, first, last FROM sessions
              UNION ALL
              SELECT machine, account, source, target, kind, 1, time, time
              FROM remote ANTI JOIN authentications USING (machine, record_id, time)
              WHERE kind LIKE 'Network%')
        GROUP BY machine, account, source
    )
    GROUP BY machine
),
-- A failure can have an event for the logon, 4625, and others for the password. Those of an account that are at most two
-- seconds apart tell of as many failures as the most frequent of them, unless they name different addresses. RdpCoreTS 140
-- names no account: each 4625 is one of them.
told_failures AS (
    SELECT *, first_value(event_id) OVER (
                  PARTITION BY machine, account, run ORDER BY events DESC, sources DESC, event_id = 4625 DESC, event_id ASC) AS best,
           row_number() OVER (PARTITION BY machine, of_rdp, rdp_run, event_id ORDER BY time ASC, record_id ASC, source ASC, target ASC) AS number,
           count(*) FILTER (event_id = 4625) OVER (PARTITION BY machine, of_rdp, rdp_run) AS logons,
           regexp_matches(source, '[.:]') AND source NOT SIMILAR TO '.*[g-zG-Z_-].*' AS is_address
    FROM (SELECT *, count(*) OVER (PARTITION BY machine, account, run, event_id) AS events,
                 count(source) OVER (PARTITION BY machine, account, run, event_id) AS sources
          FROM (SELECT *, count(*) FILTER (is_first) OVER (PARTITION BY machine, account ORDER BY time ASC, record_id ASC) AS run,
                       count(*) FILTER (is_first_rdp) OVER (PARTITION BY machine, of_rdp ORDER BY time ASC, record_id ASC) AS rdp_run
                FROM (SELECT *, event_id IN (140, 4625) AS of_rdp,
                             coalesce(time - lag(time) OVER (PARTITION BY machine, account ORDER BY time ASC, record_id ASC)
                                      > INTERVAL 2 SECONDS, true) AS is_first,
                             coalesce(time - lag(time) OVER (PARTITION BY machine, of_rdp ORDER BY time ASC, record_id ASC)
                                      > INTERVAL 2 SECONDS, true) AS is_first_rdp
                      FROM facts WHERE topic = 'failure')))
),
failures AS MATERIALIZED (
    SELECT machine, coalesce(source, '') AS source, account, target, time, date_trunc('minute', time) AS minute,
        CASE WHEN event_id IN (4768, 4771) THEN coalesce(evtx_kerberos_failure(data['Status']), data['Status'])
             WHEN event_id = 4625 AND data['SubStatus'] NOT IN ('', '0x0') THEN coalesce(evtx_status(data['SubStatus']), data['SubStatus'])
             WHEN event_id IN (4625, 4776) THEN coalesce(evtx_status(data['Status']), data['Status'])
             WHEN event_id = 18456 THEN regexp_extract(concat_ws(' ', data['param2'], data['param3']), 'Reason: (.*?)\s*(?:\[|$)', 1)
             WHEN event_id = 140 THEN 'user name or password is not correct'
             WHEN contains(data['payload'], ' invalid user ') THEN 'Invalid user' ELSE 'Failed password' END AS reason
    FROM told_failures
    WHERE event_id <> 140 OR number > logons
    QUALIFY event_id = best OR coalesce(is_address, false)
        AND coalesce(bool_or(is_address) FILTER (event_id = best) OVER (PARTITION BY machine, account, run), false)
        AND count(*) FILTER (event_id = best) OVER (PARTITION BY machine, account, run, source) = 0
),
failed_accounts AS (
    SELECT failures.machine, failures.source, account, min(target) AS target, count(*) AS failures, min(time) AS first,
           max(time) AS last
    FROM failures
    GROUP BY ALL
),
-- A failure has the domain that somebody typed. If that is an account of its own, another did not succeed. An 1149 can come
-- before the password.
successes AS (
    SELECT failed.machine, failed.source, arg_min(
        {time: facts.time, account: CASE WHEN contains(facts.target, '\') THEN facts.target ELSE coalesce(failed.target, facts.target) END},
        (facts.time, NOT contains(facts.target, '\'))) AS success
    -- A failure without an account can be that of any.
    FROM failed_accounts AS failed JOIN (SELECT *, unnest([account, NULL]) AS tried FROM facts WHERE topic IN ('logon', 'password')) AS facts
      ON facts.machine = failed.machine AND lower(coalesce(facts.source, '')) = lower(failed.source) AND facts.time > failed.first
     AND failed.account IS NOT DISTINCT FROM tried
    WHERE facts.event_id <> 1149
      AND (NOT contains(facts.target, '\')
           OR lower(regexp_extract(facts.target, '^[^.\\]*')) = lower(regexp_extract(failed.target, '^[^.\\]*'))
           OR lower(coalesce(failed.target, '')) NOT IN (SELECT lower(user_name) FROM evtx_case_summary_accounts))
    GROUP BY ALL
),
failed_logons AS (
    SELECT machine, list({
        source: nullif(source, ''), account: account, accounts: accounts, failures: failures, reasons: reasons.list,
        most_in_a_minute: most, first: first, last: last, success: success} ORDER BY failures DESC, source ASC) AS list
    FROM (SELECT machine, source, arg_max(target, (failures, target)) AS account, count(account) AS accounts,
                 sum(failures)::BIGINT AS failures, min(first) AS first, max(last) AS last
          FROM failed_accounts GROUP BY ALL)
    JOIN (SELECT machine, source, list({reason: reason, failures: failures} ORDER BY failures DESC, reason ASC) AS list
          FROM (SELECT machine, source, reason, count(*) AS failures FROM failures GROUP BY ALL)
          GROUP BY ALL) AS reasons USING (machine, source)
    JOIN (SELECT machine, source, max(failures) AS most
          FROM (SELECT machine, source, minute, count(*) AS failures FROM failures GROUP BY ALL)
          GROUP BY ALL) USING (machine, source)
    LEFT JOIN successes USING (machine, source)
    GROUP BY machine
),
gaps AS (
    SELECT machine, list({start: last, duration_seconds: (epoch_ns(next_first)::HUGEINT - epoch_ns(last)) / 1e9} ORDER BY last ASC) AS list
    FROM (SELECT machine, max(last) AS last, lead(min(first)) OVER (PARTITION BY machine ORDER BY hour ASC) AS next_first
          FROM placed_hours WHERE broken_id IS NULL GROUP BY machine, hour)
    WHERE next_first - last >= INTERVAL 1 DAY
    GROUP BY machine
),
spans AS (
    SELECT machine, min(first) FILTER (broken_id IS NULL) AS first_event, max(last) FILTER (broken_id IS NULL) AS last_event,
           sum(records)::BIGINT AS events, count(DISTINCT filename) AS logs,
           list_sort(list(DISTINCT {time: first, log: parse_filename(filename), record_id: broken_id})
                     FILTER (broken_id IS NOT NULL), 'ASC') AS broken_times
    FROM placed_hours
    GROUP BY machine
),
names AS (
    SELECT machine, list({name: computer, first: first, last: last} ORDER BY first ASC, computer ASC) AS list
    FROM (SELECT machine, computer, min(first) AS first, max(last) AS last FROM placed_hours WHERE broken_id IS NULL GROUP BY ALL)
    GROUP BY machine
),
writers AS (
    SELECT filename, arg_max(machine, (records, machine)) AS machine, sum(records) AS records
    FROM (SELECT filename, machine, sum(records) AS records FROM placed_hours GROUP BY ALL)
    GROUP BY ALL
),
-- An unused log belongs to the machine that wrote most of its folder.
folders AS (
    SELECT folder, arg_max(machine, (records, machine)) AS machine
    FROM (SELECT parse_dirpath(filename) AS folder, machine, sum(records) AS records FROM writers GROUP BY ALL)
    GROUP BY ALL
),
states AS (
    SELECT coalesce(writers.machine, folders.machine) AS machine,
        list(parse_filename(files.filename) ORDER BY files.filename ASC) FILTER (is_wrapped) AS wrapped,
        list(parse_filename(files.filename) ORDER BY files.filename ASC) FILTER (files.records = 0) AS unused
    FROM query_table(coalesce(table_of_files, 'evtx_no_files')) AS files
    LEFT JOIN writers USING (filename)
    LEFT JOIN folders ON folder = parse_dirpath(files.filename)
    GROUP BY ALL
),
-- DuckDB would take 30 ms to order the joins of all queries at once.
machines_by_logs AS MATERIALIZED (
    SELECT machine, spans.* EXCLUDE (machine), names.list AS names, zones.list AS time_zones, gaps.list AS gaps, wrapped, unused
    FROM spans JOIN names USING (machine) LEFT JOIN zones USING (machine) LEFT JOIN gaps USING (machine)
    LEFT JOIN states USING (machine)
)
SELECT
    machine AS computer, names, first_event, last_event, events, logs,
    coalesce(broken_times, []) AS broken_times, coalesce(time_zones, []) AS time_zones,
    coalesce(clock_changes, []) AS clock_changes, coalesce(gaps, []) AS gaps, coalesce(clears, []) AS cleared_logs,
    -- A table of events does not say how its files are.
    CASE WHEN EXISTS (FROM states) THEN coalesce(wrapped, []) END AS wrapped_logs,
    CASE WHEN EXISTS (FROM states) THEN coalesce(unused, []) END AS unused_logs, coalesce(boots, starts, []) AS boots,
    coalesce(crashes, []) AS unexpected_shutdowns, coalesce(account_changes, []) AS account_changes,
    coalesce(failed_logons.list, []) AS failed_logons, coalesce(services, []) AS new_services,
    coalesce(tasks, []) AS new_tasks, coalesce(remote_logons.list, []) AS remote_logons
FROM machines_by_logs
LEFT JOIN new USING (machine) LEFT JOIN lists USING (machine) LEFT JOIN failed_logons USING (machine)
LEFT JOIN remote_logons USING (machine)
