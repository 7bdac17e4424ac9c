-- evtx_event_rows(table_name, table_of_accounts)
--
-- The part of evtx_timeline that other macros share: the rows of a table of events, with the columns event, user_name,
-- remote_host, process and details added. The other table, with the columns of evtx_accounts, names SIDs.
--
-- SELECT event, user_name, details FROM evtx_event_rows('events', 'accounts')

-- The names of a SID from the first, on all computers, and on each if there are several. A SID with more names than a row should
-- carry has none. DuckDB would take three times the memory to order the entries in the aggregate.
WITH names_of_sids AS (
    SELECT sid, list_sort(list({since: since, name: name}), 'ASC', 'NULLS LAST') AS names
    FROM (SELECT user_sid AS sid, min(first_seen) AS since, min(user_name) AS name
          FROM query_table(table_of_accounts)
          GROUP BY user_sid, lower(user_name), CASE WHEN is_renamed THEN first_seen END)
    GROUP BY sid
    HAVING count(*) <= 32
),
names_on_computers AS (
    SELECT user_sid AS sid, computer, list_sort(list({since: first_seen, name: user_name}), 'ASC', 'NULLS LAST') AS names
    FROM query_table(table_of_accounts)
    WHERE user_sid IN (SELECT user_sid FROM query_table(table_of_accounts) GROUP BY user_sid HAVING min(computer) < max(computer))
    GROUP BY ALL
    HAVING count(*) <= 32
),
kinds AS (
    SELECT kind.provider AS kind_of_provider, unnest(kind.event_ids) AS event_id,
           string_split(kind.account, '|') AS accounts, string_split(kind.domain, '|') AS domains,
           string_split(kind.remote_host, '|') AS hosts, string_split(kind.process, '|') AS programs
    FROM (SELECT unnest(evtx_timeline_fields()) AS kind)
),
records AS (
    SELECT * REPLACE (
            -- Without namespaces.
            list_filter(map_entries(attributes), lambda field: NOT regexp_matches(field.key, '^xmlns(:|$)')) AS attributes),
        -- Each instance of SQL Server is a provider.
        CASE WHEN starts_with(provider, 'MSSQL$') THEN 'MSSQLSERVER' ELSE provider END AS kind_of_provider
    FROM evtx_data_rows(table_name)
),
-- Values that are computed from several fields, or extracted from a text: see evtx_timeline_fields.
computed AS (
    SELECT *,
        CASE
            -- The source of a packet is its sender (%%14592 is inbound). The source of a connection opened it.
            WHEN provider = 'Microsoft-Windows-Security-Auditing' AND event_id IN (5152, 5153)
            THEN MAP {'@remote': CASE data['Direction'] WHEN '%%14592' THEN data['SourceAddress']
                                                        ELSE data['DestAddress'] END}
            WHEN provider = 'Microsoft-Windows-Sysmon' AND event_id = 3
            THEN MAP {'@remote': CASE data['Initiated'] WHEN 'false' THEN data['SourceIp']
                                                        ELSE data['DestinationIp'] END}
            -- The part before an @ is a user name and a password.
            WHEN provider = 'Microsoft-Windows-Bits-Client'
            THEN MAP {'@url': regexp_extract(coalesce(data['url'], data['RemoteName']),
                                             '^[^:/?#]+://(?:[^/?#\\]*@)?(\[[^\]]*\]|[^/?#\\:]*)', 1)}
            -- One string of the old log has lines of name=value: the second of event 800, the third of others.
            WHEN provider = 'PowerShell'
            THEN MAP {
                '@user': regexp_extract(
                    data[CASE event_id WHEN 800 THEN 'param2' ELSE 'param3' END],
                    '(?:^|\n)\s*UserId=([^\r\n]*)', 1),
                '@program': regexp_extract(
                    data[CASE event_id WHEN 800 THEN 'param2' ELSE 'param3' END],
                    '(?s)(?:^|\n)\s*HostApplication=(.*?)(?:\r?\n\s*EngineVersion=|\s*$)', 1)}
            WHEN provider IN ('Microsoft-Windows-PowerShell', 'PowerShellCore')
            THEN MAP {
                '@user': regexp_extract(data['ContextInfo'], '\n\s*User = ([^\r\n]*)', 1),
                '@program': regexp_extract(data['ContextInfo'], 'Host Application = ([^\r\n]*)', 1)}
            -- The name of the machine follows the program.
            WHEN provider = 'User32' THEN MAP {'@program': regexp_replace(data['param1'], ' \([^()]*\)$', '')}
            -- The first parameter of a crash is the program. Other reports have something else there.
            WHEN provider = 'Windows Error Reporting'
            THEN MAP {'@program': regexp_extract(data['param6'], '(?i)^.*\.exe$')}
            WHEN provider = 'Microsoft-Windows-User Profiles Service'
            THEN MAP {'@user': regexp_extract(data['LocalPath'], '(?i)\\Users\\([^\\]*)$', 1)}
            -- The last parameter has the client. An audit is lines of name:value, with what somebody wrote at the end.
            WHEN kind_of_provider = 'MSSQLSERVER'
            THEN MAP {
                '@client': regexp_extract(coalesce(data['param3'], data['param2']), '^\s*\[CLIENT: ([^\]]*)\]', 1),
                '@user': regexp_extract(data['param1'], '\nsession_server_principal_name:([^\r\n]*)', 1)}
            -- Failed password for invalid user NAME from ADDRESS port 1 ssh2. The client chooses the name and the
            -- reason of a disconnect. Both can look like another address.
            WHEN provider = 'OpenSSH'
            THEN list_transform(
                [regexp_extract(
                    data['payload'],
                    '^(?:(?:(?:Failed|Accepted|Postponed|Partial) \S+ for|Invalid user'
                    || '|(?:Connection (?:closed|reset) by|Disconnected from|Disconnecting)'
                    || '(?: invalid| authenticating)? user) (?:invalid user )?(.*)'
                    || '|(?:Received disconnect|Disconnected|Connection(?: closed| reset)?) (?:from|by))'
                    || ' (\S+) port \d+',
                    ['name', 'client'])],
                lambda found: MAP {'@user': regexp_replace(found.name, '(?:^| )from$', ''), '@client': found.client})[1]
        END AS computed
    FROM records
),
-- DuckDB copies an expression to each use of its alias in the same SELECT, so each step is a query.
valued AS (
    SELECT *,
        list_transform(accounts, lambda field: CASE WHEN starts_with(field, '@') THEN computed[field] ELSE data[field] END)
            AS account_values,
        list_transform(hosts, lambda field: CASE WHEN starts_with(field, '@') THEN computed[field] ELSE data[field] END)
            AS host_values,
        list_transform(programs, lambda field: CASE WHEN starts_with(field, '@') THEN computed[field] ELSE data[field] END)
            AS program_values
    FROM computed LEFT JOIN kinds USING (kind_of_provider, event_id)
),
chosen AS (
    SELECT *,
        -- Some events write NULL where a SID should be.
        list_position(list_transform(account_values, lambda value, number: value NOT IN ('', '-')
            AND (accounts[number] NOT LIKE '%Sid' OR value LIKE 'S-1-%')), true) AS account_at,
        list_filter(host_values,
                    -- In place of an address, this has the word for LOCAL in the language of Windows.
                    lambda value: value NOT IN ('', '-', '0.0.0.0', '::')
                        AND (provider <> 'Microsoft-Windows-TerminalServices-LocalSessionManager' OR regexp_matches(value, '[0-9.:]')))[1] AS host,
        -- Old versions of 4661 have the properties of the object in place of the process.
        list_filter(program_values, lambda value: value NOT IN ('', '-') AND NOT starts_with(value, '{'))[1] AS process
    FROM valued
),
found AS (
    SELECT *, account_values[account_at] AS account, evtx_remote_host(host, computer := computer) AS remote_host,
        nullif(nullif(data[domains[account_at]], ''), '-') AS domain
    FROM chosen
),
identified AS (
    SELECT *,
        -- The SID is next to the name: SubjectUserSid, TargetSid. Some fields for the account contain the SID itself.
        CASE WHEN account LIKE 'S-1-%' THEN account
             ELSE coalesce(
                list_filter(
                    flatten(list_transform(
                        list_filter(CASE WHEN account IS NULL THEN accounts ELSE [accounts[account_at]] END,
                                    lambda field: NOT starts_with(field, '@')),
                        lambda field: [data[replace(field, 'UserName', 'UserSid')],
                                       data[replace(field, 'UserName', 'Sid')]])),
                    lambda value: value LIKE 'S-1-_%' AND (account IS NOT NULL OR value <> 'S-1-0-0'))[1],
                -- Sysmon is a service: its own account did not cause its events.
                CASE WHEN account IS NULL AND provider <> 'Microsoft-Windows-Sysmon' THEN user_sid END)
        END AS sid,
        -- The account of 4769 repeats the domain after an @.
        CASE WHEN account LIKE 'S-1-%' THEN NULL
             WHEN domain IS NULL THEN account
             ELSE domain || '\' || CASE event_id WHEN 4769 THEN split_part(account, '@', 1) ELSE account END
        END AS full_name
    FROM found
),
named AS (
    SELECT identified.*,
        coalesce(
            full_name,
            -- The name at this time, first of this computer.
            CASE WHEN len(anywhere.names) > 1
                 THEN own.names[greatest(1, len(list_filter(own.names, lambda entry: entry.since <= time_created)))].name END,
            anywhere.names[greatest(1, len(list_filter(anywhere.names, lambda entry: entry.since <= time_created)))].name,
            -- A name that longer SIDs have too, such as NT Service account, is that of many accounts.
            nullif(evtx_sid_name(identified.sid), evtx_sid_name(identified.sid || '-0')),
            nullif(identified.sid, '')) AS user_name
    FROM identified
    LEFT JOIN names_on_computers AS own ON own.sid = identified.sid AND own.computer = identified.computer
    LEFT JOIN names_of_sids AS anywhere ON anywhere.sid = identified.sid
)
SELECT
    * REPLACE (nullif(sid, 'S-1-0-0') AS user_sid), evtx_event_name(provider, event_id) AS event,
    -- The fields that add to these columns.
    evtx_event_details(
        coalesce(provider, ''), coalesce(TRY_CAST(event_id AS UINTEGER), 0),
        CASE WHEN attributes IS NULL THEN map_entries(data) ELSE map_entries(data) || attributes END,
        coalesce(element, ''),
        ['', '-', '{00000000-0000-0000-0000-000000000000}', computer, process, remote_host, user_name, account, domain,
         CASE WHEN starts_with(lower(host), '::ffff:') AND remote_host IS NOT NULL THEN host END]) AS details
FROM named
