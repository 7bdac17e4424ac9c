-- evtx_facts_of(table_name, table_of_files := NULL, table_of_known := NULL)
--
-- evtx_facts over a table, a view or a Parquet file with the columns of read_evtx. `table_of_files`, with the columns of
-- evtx_file_metadata, tells which logs are wrapped. `table_of_known` has facts to leave out, whatever their machine and time.
--
-- SELECT * EXCLUDE evidence FROM evtx_facts_of('events', table_of_files := 'files') ORDER BY first

WITH evtx_facts_events AS NOT MATERIALIZED (
    SELECT record_id, event_record_id, time_created, event_id, provider, channel, computer, user_sid, event_data, user_data, filename
    FROM query_table(table_name)
),
evtx_no_files AS (SELECT NULL::VARCHAR AS filename, NULL::BOOLEAN AS is_wrapped, NULL::UBIGINT AS records LIMIT 0),
evtx_no_facts AS (SELECT NULL AS topic, NULL AS fact, NULL AS account, NULL AS source, NULL AS target, NULL AS detail LIMIT 0),
-- The records at the ends of each hour tell how time goes on: there can be any number of records. Two of each, or else a broken time between
-- them would weigh as much.
ends AS (
    SELECT computer, channel, filename, unnest(list_distinct(arg_min(place, (time, record_id), 2) || arg_max(place, (time, record_id), 2) || [
               CASE WHEN arg_min(time, record_id) > min(time) + INTERVAL 5 MINUTES THEN arg_min(place, record_id) END,
               CASE WHEN arg_max(time, record_id) < max(time) - INTERVAL 5 MINUTES THEN arg_max(place, record_id) END]), max_depth := 2)
    FROM (SELECT *, time_created AS time,
                 {record_id: record_id, event_record_id: event_record_id, event_id: event_id, time_created: time_created, provider: provider} AS place
          FROM evtx_facts_events)
    WHERE time IS NOT NULL
    GROUP BY computer, channel, filename, date_trunc('hour', time)
),
evtx_facts_listed AS MATERIALIZED (
    -- Events without a topic only tell how time goes on.
    SELECT * EXCLUDE (data, attributes, element) REPLACE (CASE WHEN is_told THEN event_data END AS event_data, CASE WHEN is_told THEN user_data END AS user_data)
    FROM (SELECT *, evtx_logon_step(provider, event_id, data, user_sid) AS step,
                 step IS NOT NULL OR event_id IN (1, 4826) OR lower(provider) IN ({{providers of topics}}) OR starts_with(lower(provider), 'mssql$') AS is_told
          FROM evtx_data_rows('evtx_facts_events')
          WHERE time_created IS NOT NULL AND event_id IN (131, {{logon events}}, {{event ids of topics}})
            -- These events are frequent, but few of them have a topic.
            AND (event_id NOT IN (4656, 4663, 4673, 4688) AND provider IS DISTINCT FROM 'Microsoft-Windows-Sysmon'
                 OR evtx_event_roles(provider, TRY_CAST(event_id AS UINTEGER), event_data, user_data, computer, user_sid).topic IS NOT NULL))
),
evtx_facts_to_place AS NOT MATERIALIZED (
    FROM evtx_facts_listed
    UNION ALL BY NAME
    SELECT *, false AS is_told
    FROM ends ANTI JOIN evtx_facts_listed AS listed
      ON (ends.filename, ends.record_id, ends.event_record_id, ends.time_created) IS NOT DISTINCT FROM (listed.filename, listed.record_id, listed.event_record_id, listed.time_created)
),
placed AS MATERIALIZED (
    SELECT * EXCLUDE (computer, machine), computer AS name, machine AS computer,
           {filename: filename, record_id: record_id, event_id: event_id, time: time_created} AS record
    FROM evtx_placed_records('evtx_facts_to_place', 'evtx_facts_events')
),
evtx_facts_topics AS NOT MATERIALIZED (
    SELECT * EXCLUDE (computer, name), computer AS machine, name AS computer FROM placed
    WHERE is_told AND event_id IN (131, 4826, {{event ids of topics}})
),
evtx_facts_accounts AS MATERIALIZED (FROM evtx_names_of('evtx_facts_events') WHERE name_source <> 'second name'),
rows AS (
    SELECT {filename: record.filename, record_id: record.record_id, event_id: record.event_id, time: record.time, log_time: log_time,
            number: TRY_CAST(event_record_id AS UBIGINT), digest: (digest >> 64)::UBIGINT,
            -- No clock shows infinity.
            old_time: CASE WHEN roles.topic = 'clock' THEN TRY_CAST(regexp_extract(coalesce(data['OldTime'], data['PreviousTime']), '^\d.*') AS TIMESTAMP_NS) END,
            new_time: CASE WHEN roles.topic = 'clock' THEN TRY_CAST(regexp_extract(data['NewTime'], '^\d.*') AS TIMESTAMP_NS) END,
            is_woken: is_woken, is_contested: is_contested, claims_own_name: claims_own_name, computer: machine, provider: provider,
            event: roles.event, topic: roles.topic, level: roles.level, account: user_name, account_sid: user_sid, source: CASE WHEN NOT is_outgoing THEN remote_host END,
            target: CASE WHEN is_outgoing THEN remote_host WHEN event_id = 1102 THEN coalesce(roles.target, channel) ELSE roles.target END,
            -- The common name of a member in the directory is often not that of the account.
            detail: CASE WHEN name IS NOT NULL OR starts_with(roles.detail, 'S-1-') THEN concat_ws(' ', coalesce(name, evtx_sid_name(sid)), sid)
                         ELSE coalesce(roles.detail, CASE WHEN is_outgoing THEN roles.target END) END,
            process: process, logon_type: data['LogonType'], zone: CASE WHEN event_id = 6013 AND roles.topic = 'starts' THEN data['param7'] END,
            version: CASE WHEN event_id = 12 THEN nullif(concat_ws('.', data['MajorVersion'], data['MinorVersion'], data['BuildVersion']), '') END} AS row
    FROM (SELECT *, CASE WHEN roles.topic = 'groups' AND data['MemberSid'] <> '' THEN data['MemberSid'] WHEN starts_with(roles.detail, 'S-1-') THEN roles.detail END AS sid,
                 roles.topic IS NOT DISTINCT FROM 'logons to elsewhere' AS is_outgoing
          FROM evtx_event_rows('evtx_facts_topics', 'evtx_facts_accounts')
          WHERE roles.topic IS NOT NULL OR event_id IN (131, 4826))
    LEFT JOIN (SELECT user_sid AS sid, arg_max(user_name, (last_seen, user_name)) AS name FROM evtx_facts_accounts GROUP BY ALL) AS names USING (sid)
),
sessions AS (
    SELECT computer AS machine, unnest(evtx_logon_sessions(list({
            event_id: event_id, number: TRY_CAST(event_record_id AS UBIGINT), time: time_created, log_time: log_time, digest: (digest >> 64)::UBIGINT,
            is_contested: is_contested, computer: name, step: step}), false), max_depth := 2)
    FROM placed
    WHERE step IS NOT NULL AND (lower(provider) <> 'microsoft-windows-security-auditing' OR coalesce(lower(channel), 'security') = 'security')
    GROUP BY computer
),
-- Each with the first record that has its place.
logons AS (
    SELECT {filename: record.filename, record_id: record.record_id, event_id: record.event_id, time: record.time, log_time: logon_log_time, is_accepted: is_accepted, is_contested: is_contested, claims_own_name: claims_own_name, computer: machine,
            account: user_name, account_sid: user_sid,
            -- NTLM often knows the name that the other machine gives, but not its address.
            source: coalesce(remote_host, CASE WHEN NOT claims_own_name THEN workstation END), kind: kind, logon_type: evtx_logon_type(logon_type), method: authentication} AS logon
    FROM sessions
    JOIN (SELECT computer AS machine, log_time AS logon_log_time, event_record_id AS logon_number, time_created AS logon_time, min(record) AS record FROM placed
          WHERE step IS NOT NULL GROUP BY ALL) AS records USING (machine, logon_log_time, logon_number, logon_time)
)
SELECT computer, topic::ENUM ({{topics}}) AS topic, level::evtx_fact_level AS level, fact, first, last, events, account, account_sid, source, target, detail, evidence, doubts
FROM (SELECT unnest(evtx_fact_list(
          (SELECT list(row) FROM rows), (SELECT list(logon) FROM logons),
          (SELECT list({filename: record.filename, record_id: record.record_id, event_id: record.event_id, time: record.time, log_time: log_time, computer: computer, name: name, channel: channel}) FROM placed),
          (SELECT list(filename) FROM query_table(coalesce(table_of_files, 'evtx_no_files')) WHERE is_wrapped)), max_depth := 2)) AS facts
WHERE NOT EXISTS (FROM query_table(coalesce(table_of_known, 'evtx_no_facts')) AS known
                  WHERE known.topic::VARCHAR = facts.topic AND known.fact = facts.fact AND known.account IS NOT DISTINCT FROM facts.account
                    AND known.source IS NOT DISTINCT FROM facts.source AND known.target IS NOT DISTINCT FROM facts.target
                    AND known.detail IS NOT DISTINCT FROM facts.detail)
