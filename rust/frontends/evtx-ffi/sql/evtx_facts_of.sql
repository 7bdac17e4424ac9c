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
    FROM (SELECT *, step IS NOT NULL OR has_topic OR event_id IN (1, 131, 4826) AS is_told
          FROM (SELECT *, evtx_logon_step(provider, event_id, data, user_sid) AS step,
                       CASE WHEN lower(provider) IN ({{providers of topics}}) OR starts_with(lower(provider), 'mssql$')
                            THEN evtx_event_roles(provider, TRY_CAST(event_id AS UINTEGER), event_data, user_data, computer, user_sid).topic IS NOT NULL
                            ELSE false END AS has_topic
                FROM evtx_data_rows('evtx_facts_events')
                WHERE time_created IS NOT NULL AND event_id IN (131, {{logon events}}, {{event ids of topics}})))
    -- These events are frequent, but few of them have a topic.
    WHERE has_topic OR event_id NOT IN (4656, 4663, 4673, 4688) AND provider IS DISTINCT FROM 'Microsoft-Windows-Sysmon'
),
evtx_facts_to_place AS NOT MATERIALIZED (
    SELECT * EXCLUDE has_topic FROM evtx_facts_listed
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
evtx_facts_marks AS MATERIALIZED (SELECT computer, name, log_time, record, filename, channel FROM placed),
-- A record in several copies of a log counts once.
evtx_facts_once AS NOT MATERIALIZED (
    SELECT * EXCLUDE (computer, name), computer AS machine, name AS computer FROM placed
    WHERE is_told
    QUALIFY row_number() OVER (PARTITION BY digest ORDER BY filename ASC, record_id ASC) = 1
),
evtx_facts_accounts AS MATERIALIZED (FROM evtx_names_of('evtx_facts_events') WHERE name_source <> 'second name'),
-- What facts are made of: the events of topics, in their order.
evtx_facts_rows AS MATERIALIZED (
    SELECT machine AS computer, log_time, time_created AS time, event_id, roles.event AS event, roles.level AS level,
           CASE WHEN event_id = 131 AND roles.event LIKE 'RDP %' THEN 'connections' ELSE roles.topic END AS topic,
           row_number() OVER (ORDER BY machine ASC, log_time ASC, event_record_id ASC NULLS LAST, time_created ASC, event_id ASC, digest ASC) AS number,
           user_name AS account, user_sid AS account_sid, lower(regexp_extract(user_name, '([^\\@]*)(@[^\\]*)?$', 1)) AS who, remote_host AS source, roles.target AS target,
           -- The common name of a member in the directory is often not that of the account.
           CASE WHEN name IS NOT NULL OR starts_with(roles.detail, 'S-1-') THEN concat_ws(' ', coalesce(name, evtx_sid_name(sid)), sid) ELSE roles.detail END AS detail,
           process, record, is_woken, data['LogonType'] AS logon_type, data['Status'] AS status,
           -- No clock shows infinity.
           TRY_CAST(regexp_extract(coalesce(data['OldTime'], data['PreviousTime']), '^\d.*') AS TIMESTAMP_NS) AS old_time,
           CASE WHEN roles.topic = 'clock' AND old_time IS NOT NULL THEN TRY_CAST(regexp_extract(data['NewTime'], '^\d.*') AS TIMESTAMP_NS) END AS new_time,
           CASE WHEN event_id = 6013 AND roles.topic = 'starts' THEN data['param7'] END AS zone,
           (event_id, lower(provider)) IN ((12, 'microsoft-windows-kernel-general'), (6005, 'eventlog'), (4608, 'microsoft-windows-security-auditing'),
                                           (4826, 'microsoft-windows-security-auditing')) AS is_start,
           roles.topic = 'failed logons' AND event_id IN (4, 140, 1035, 4625, 4768, 4771, 4776, 18456, 20271) AS is_failure,
           CASE WHEN is_start THEN nullif(concat_ws('.', data['MajorVersion'], data['MinorVersion'], data['BuildVersion']), '') END AS version,
           [doubt FOR doubt IN [
               CASE WHEN is_contested THEN 'another record has the place of this one' END,
               CASE WHEN abs(epoch(log_time) - epoch(time_created)) > 60 THEN 'the order of the records suggests another time' END,
               CASE WHEN claims_own_name THEN 'claims to be this machine' END] IF doubt IS NOT NULL] AS doubts
    FROM (SELECT *, CASE WHEN roles.topic = 'groups' AND data['MemberSid'] <> '' THEN data['MemberSid'] WHEN starts_with(roles.detail, 'S-1-') THEN roles.detail END AS sid
          FROM evtx_event_rows('evtx_facts_once', 'evtx_facts_accounts'))
    LEFT JOIN (SELECT user_sid AS sid, arg_max(user_name, (last_seen, user_name)) AS name FROM evtx_facts_accounts GROUP BY ALL) AS names USING (sid)
),
evtx_facts_failures AS MATERIALIZED (FROM evtx_failures('evtx_facts_rows')),
sessions AS (
    SELECT machine, unnest(evtx_logon_sessions(list({
            event_id: event_id, number: TRY_CAST(event_record_id AS UBIGINT), time: time_created, log_time: log_time, digest: (digest >> 64)::UBIGINT,
            is_contested: is_contested, computer: computer, step: step}), false), max_depth := 2)
    FROM evtx_facts_once
    WHERE step IS NOT NULL AND (lower(provider) <> 'microsoft-windows-security-auditing' OR coalesce(lower(channel), 'security') = 'security')
    GROUP BY machine
),
-- Each with the first record that has its place.
evtx_facts_logons AS MATERIALIZED (
    SELECT machine AS computer, logon_log_time AS log_time, logon_time AS time, user_name AS account, user_sid AS account_sid,
           lower(regexp_extract(user_name, '([^\\@]*)(@[^\\]*)?$', 1)) AS who,
           -- NTLM often knows the name that the other machine gives, but not its address.
           coalesce(remote_host, CASE WHEN NOT claims_own_name THEN workstation END) AS source, kind, evtx_logon_type(logon_type) AS logon_type_name, authentication AS method, is_accepted, records.record,
           [doubt FOR doubt IN [CASE WHEN claims_own_name THEN 'claims to be this machine' END,
                                CASE WHEN is_contested THEN 'another record has the place of this one' END] IF doubt IS NOT NULL] AS doubts
    FROM sessions
    JOIN (SELECT computer AS machine, log_time AS logon_log_time, event_record_id AS logon_number, time_created AS logon_time, min(record) AS record FROM placed
          WHERE step IS NOT NULL GROUP BY ALL) AS records USING (machine, logon_log_time, logon_number, logon_time)
)
SELECT computer, topic::ENUM ({{topics}}) AS topic, level::evtx_fact_level AS level, fact, first, last, events::UBIGINT AS events,
       account, account_sid, source, target, detail, list_sort(evidence, 'ASC', 'NULLS LAST') AS evidence, list_sort(doubts, 'ASC', 'NULLS LAST') AS doubts
FROM (
    FROM evtx_listed_facts('evtx_facts_rows')
    UNION ALL BY NAME FROM evtx_failed_logon_facts('evtx_facts_failures', 'evtx_facts_logons')
    UNION ALL BY NAME FROM evtx_other_logon_facts('evtx_facts_failures', 'evtx_facts_logons')
    UNION ALL BY NAME FROM evtx_spray_facts('evtx_facts_failures')
    UNION ALL BY NAME FROM evtx_logon_facts('evtx_facts_logons')
    UNION ALL BY NAME FROM evtx_clock_facts('evtx_facts_rows')
    UNION ALL BY NAME FROM evtx_zone_facts('evtx_facts_rows')
    UNION ALL BY NAME FROM evtx_start_facts('evtx_facts_rows', 'evtx_facts_marks')
    UNION ALL BY NAME FROM evtx_gap_facts('evtx_facts_marks', 'evtx_facts_rows')
    UNION ALL BY NAME FROM evtx_log_facts('evtx_facts_marks', coalesce(table_of_files, 'evtx_no_files'))
    UNION ALL BY NAME FROM evtx_identity_facts('evtx_facts_marks')
) AS facts
WHERE NOT EXISTS (FROM query_table(coalesce(table_of_known, 'evtx_no_facts')) AS known
                  WHERE known.topic::VARCHAR = facts.topic AND known.fact = facts.fact AND known.account IS NOT DISTINCT FROM facts.account
                    AND known.source IS NOT DISTINCT FROM facts.source AND known.target IS NOT DISTINCT FROM facts.target
                    AND known.detail IS NOT DISTINCT FROM facts.detail)
