-- evtx_timeline(files, password := NULL)
--
-- A row per record, with the same columns for every event: when, where, what, who, from where, which program, and all
-- other fields as one line.
--
-- SELECT * FROM evtx_timeline('logs') WHERE remote_host = '203.0.113.45' ORDER BY time_created

WITH records AS (
    SELECT *,
        -- UserData is one element, which has the fields.
        CASE WHEN user_data IS NOT NULL THEN (user_data->'$.*')[1] END AS inner_data,
        -- Whether the user is whom the event is about, rather than who caused it.
        event_id IN (4624, 4625, 4627, 4634, 4647, 4675, 4740, 4768, 4769, 4770, 4771, 4772, 4773, 4776, 4777, 4800,
                     4801, 4802, 4803, 4964)
        OR event_id = 4688 AND event_data['TargetUserName'] NOT IN ('', '-') AS is_about_target,
        -- The strings of events of the old PowerShell log, which can stand in one value as a JSON array.
        CASE WHEN provider = 'PowerShell' THEN CASE
            WHEN event_data['param2'] IS NULL AND json_valid(event_data['param1'])
            THEN json_extract_string(event_data['param1'], '$[*]')
            ELSE map_values(event_data) END END AS strings
    FROM read_evtx(files, password := password)
),
-- One of these strings is lines of name=value: the second of event 800, the last of others.
engines AS (
    SELECT *, CASE event_id WHEN 800 THEN strings[2] ELSE strings[-1] END AS engine FROM records
),
-- The account, the address and the program, as the events have them.
found AS (
    SELECT *,
        CASE provider
            WHEN 'Microsoft-Windows-Security-Auditing' THEN CASE
                WHEN is_about_target THEN split_part(event_data['TargetUserName'], '@', 1)
                ELSE coalesce(
                    event_data['SubjectUserName'], event_data['TargetUserName'], event_data['AccountName']) END
            WHEN 'Microsoft-Windows-Sysmon' THEN coalesce(event_data['User'], event_data['SourceUser'])
            -- Its AccountName is the service's.
            WHEN 'Service Control Manager' THEN NULL
            WHEN 'PowerShell' THEN nullif(regexp_extract(engine, '(?:^|\n)\s*UserId=([^\r\n]*)', 1), '')
            ELSE coalesce(
                event_data['User'], event_data['UserName'], event_data['SubjectUserName'], event_data['UserContext'],
                event_data['Detection User'], event_data['jobOwner'], event_data['PrincipalSamName'],
                inner_data->>'SubjectUserName', inner_data->>'User', inner_data->>'UserName', inner_data->>'Username',
                inner_data->>'Param1',
                nullif(regexp_extract(event_data['ContextInfo'], '\n\s*User = ([^\r\n]*)', 1), ''))
        END AS account,
        CASE
            WHEN provider = 'Microsoft-Windows-Security-Auditing' THEN CASE
                WHEN is_about_target THEN event_data['TargetDomainName']
                WHEN event_data['SubjectUserName'] IS NOT NULL THEN event_data['SubjectDomainName']
                ELSE coalesce(event_data['TargetDomainName'], event_data['AccountDomain']) END
            WHEN inner_data IS NOT NULL THEN coalesce(inner_data->>'SubjectDomainName', inner_data->>'Param2')
        END AS domain,
        CASE
            WHEN provider = 'Microsoft-Windows-Sysmon' THEN CASE WHEN event_id = 3 THEN
                CASE event_data['Initiated'] WHEN 'false' THEN event_data['SourceIp']
                                             ELSE event_data['DestinationIp'] END END
            WHEN event_data['IpAddress'] NOT IN ('', '-') THEN event_data['IpAddress']
            WHEN provider = 'Microsoft-Windows-Security-Auditing' THEN CASE
                -- The source of a packet is who sent it. %%14592 is inbound.
                WHEN event_id IN (5152, 5153) THEN CASE event_data['Direction']
                    WHEN '%%14592' THEN event_data['SourceAddress'] ELSE event_data['DestAddress'] END
                -- The source of a connection is this machine, in either direction.
                WHEN event_id IN (5156, 5157) THEN event_data['DestAddress']
                ELSE coalesce(event_data['WorkstationName'], event_data['Workstation'], event_data['ClientAddress'],
                              event_data['TargetServerName']) END
            WHEN inner_data IS NOT NULL THEN coalesce(
                inner_data->>'IpAddress', inner_data->>'Address', inner_data->>'Param3', inner_data->>'ClientMachine')
            ELSE coalesce(
                event_data['ClientIP'], event_data['IPString'], event_data['ClientAddress'], event_data['ServerName'],
                -- What stands before an @ is a user, and a password.
                regexp_extract(
                    event_data['url'], '^[^:/?#]+://(?:[^/?#\\]*@)?(\[[^\]]*\]|[^/?#\\:]*)', 1))
        END AS host,
        CASE provider
            WHEN 'Microsoft-Windows-Sysmon' THEN coalesce(event_data['Image'], event_data['SourceImage'])
            WHEN 'Microsoft-Windows-Security-Auditing' THEN coalesce(
                event_data['NewProcessName'], event_data['ProcessName'], event_data['CallerProcessName'],
                event_data['ServiceFileName'], event_data['Application'])
            WHEN 'PowerShell' THEN regexp_extract(
                engine, '(?s)(?:^|\n)\s*HostApplication=(.*?)(?:\r?\n\s*EngineVersion=|\s*$)', 1)
            ELSE coalesce(
                event_data['ImagePath'], event_data['ProcessName'], event_data['Process Name'],
                event_data['processPath'], event_data['ActionName'], event_data['AppPath'],
                regexp_extract(event_data['ContextInfo'], 'Host Application = ([^\r\n]*)', 1))
        END AS program
    FROM engines
),
-- Each in one form: DOMAIN\name, and 10.0.0.1 for ::ffff:10.0.0.1, 10.0.0.1:50270, [10.0.0.1] and [10.0.0.1]:50270.
named AS (
    SELECT *,
        coalesce(
            CASE WHEN account NOT IN ('', '-') THEN
                CASE WHEN domain NOT IN ('', '-') THEN domain || '\' || account ELSE account END END,
            user_sid) AS user_name,
        CASE
            WHEN host IN ('', '-', 'NULL', 'localhost', 'LOCAL') THEN NULL
            WHEN starts_with(lower(host), '::ffff:') THEN host[8:]
            WHEN contains(host, ':') THEN regexp_replace(
                host, '^(?:\[([^\]]*)\](?::\d+)?|(\d+\.\d+\.\d+\.\d+):\d+)$', '\1\2')
            ELSE host
        END AS remote_host,
        nullif(nullif(program, ''), '-') AS process
    FROM found
),
-- The fields that say more than these columns do. IDs, and the account that caused the event, come last.
said AS (
    SELECT *,
        ['', '-', '{00000000-0000-0000-0000-000000000000}', process, remote_host, user_name, account, domain] AS known
    FROM named
),
fields AS (
    SELECT *,
        list_filter(map_entries(event_data), lambda field:
            NOT list_contains(known, field.value) AND field.key <> 'CommandLine') AS fields
    FROM said
),
parts AS (
    SELECT *,
        array_to_string(list_transform(
            list_filter(fields, lambda field: NOT (ends_with(field.key, 'Id') OR ends_with(field.key, 'id')
                OR ends_with(field.key, 'ID') OR starts_with(field.key, 'Subject') OR field.key = 'UtcTime')),
            lambda field: field.key || ': ' || field.value), ' ¦ ') AS facts,
        array_to_string(list_transform(
            list_filter(fields, lambda field: ends_with(field.key, 'Id') OR ends_with(field.key, 'id')
                OR ends_with(field.key, 'ID') OR starts_with(field.key, 'Subject') OR field.key = 'UtcTime'),
            lambda field: field.key || ': ' || field.value), ' ¦ ') AS ids
    FROM fields
),
lines AS (
    SELECT *,
        CASE
            WHEN inner_data IS NULL THEN nullif(concat_ws(' ¦ ',
                'CommandLine: ' || nullif(event_data['CommandLine'], ''), nullif(facts, ''), nullif(ids, '')), '')
            ELSE array_to_string(list_transform(
                list_filter(json_keys(inner_data), lambda name: NOT starts_with(name, '#')),
                lambda name: name || ': ' || (inner_data->>('/' || replace(replace(name, '~', '~0'), '/', '~1')))),
                ' ¦ ')
        END AS line
    FROM parts
)
SELECT
    time_created, computer, channel, event_id,
    CASE provider
        WHEN 'Microsoft-Windows-Security-Auditing' THEN CASE event_id
            WHEN 4608 THEN 'Windows started'
            WHEN 4616 THEN 'System time changed'
            WHEN 4624 THEN 'Logon'
            WHEN 4625 THEN 'Logon failed'
            WHEN 4634 THEN 'Logoff'
            WHEN 4647 THEN 'Logoff by user'
            WHEN 4648 THEN 'Logon with explicit credentials'
            WHEN 4656 THEN 'Handle requested'
            WHEN 4657 THEN 'Registry value changed'
            WHEN 4661 THEN 'Handle requested'
            WHEN 4662 THEN 'Directory object accessed'
            WHEN 4663 THEN 'Object accessed'
            WHEN 4672 THEN 'Special privileges assigned'
            WHEN 4673 THEN 'Privileged service called'
            WHEN 4688 THEN 'Process created'
            WHEN 4689 THEN 'Process ended'
            WHEN 4697 THEN 'Service installed'
            WHEN 4698 THEN 'Task created'
            WHEN 4699 THEN 'Task deleted'
            WHEN 4700 THEN 'Task enabled'
            WHEN 4701 THEN 'Task disabled'
            WHEN 4702 THEN 'Task changed'
            WHEN 4719 THEN 'Audit policy changed'
            WHEN 4720 THEN 'Account created'
            WHEN 4722 THEN 'Account enabled'
            WHEN 4723 THEN 'Password change tried'
            WHEN 4724 THEN 'Password reset tried'
            WHEN 4725 THEN 'Account disabled'
            WHEN 4726 THEN 'Account deleted'
            WHEN 4728 THEN 'Member added to global group'
            WHEN 4732 THEN 'Member added to local group'
            WHEN 4738 THEN 'Account changed'
            WHEN 4740 THEN 'Account locked out'
            WHEN 4741 THEN 'Computer account created'
            WHEN 4742 THEN 'Computer account changed'
            WHEN 4756 THEN 'Member added to universal group'
            WHEN 4768 THEN 'Kerberos TGT requested'
            WHEN 4769 THEN 'Kerberos service ticket requested'
            WHEN 4771 THEN 'Kerberos preauthentication failed'
            WHEN 4776 THEN 'NTLM credentials checked'
            WHEN 4778 THEN 'Session reconnected'
            WHEN 4779 THEN 'Session disconnected'
            WHEN 4781 THEN 'Account renamed'
            WHEN 4798 THEN 'Groups of a user listed'
            WHEN 4799 THEN 'Members of a group listed'
            WHEN 5136 THEN 'Directory object changed'
            WHEN 5137 THEN 'Directory object created'
            WHEN 5140 THEN 'Share accessed'
            WHEN 5142 THEN 'Share created'
            WHEN 5145 THEN 'File on share accessed'
            WHEN 5156 THEN 'Connection allowed'
            WHEN 5157 THEN 'Connection blocked'
        END
        WHEN 'Microsoft-Windows-Sysmon' THEN CASE event_id
            WHEN 1 THEN 'Process created'
            WHEN 2 THEN 'File creation time changed'
            WHEN 3 THEN 'Network connection'
            WHEN 4 THEN 'Sysmon state changed'
            WHEN 5 THEN 'Process ended'
            WHEN 6 THEN 'Driver loaded'
            WHEN 7 THEN 'Image loaded'
            WHEN 8 THEN 'Remote thread created'
            WHEN 9 THEN 'Raw disk read'
            WHEN 10 THEN 'Process accessed'
            WHEN 11 THEN 'File created'
            WHEN 12 THEN 'Registry key created or deleted'
            WHEN 13 THEN 'Registry value set'
            WHEN 14 THEN 'Registry key or value renamed'
            WHEN 15 THEN 'File stream created'
            WHEN 16 THEN 'Sysmon configuration changed'
            WHEN 17 THEN 'Pipe created'
            WHEN 18 THEN 'Pipe connected'
            WHEN 19 THEN 'WMI filter registered'
            WHEN 20 THEN 'WMI consumer registered'
            WHEN 21 THEN 'WMI consumer bound to filter'
            WHEN 22 THEN 'DNS query'
            WHEN 23 THEN 'File deleted and kept'
            WHEN 24 THEN 'Clipboard changed'
            WHEN 25 THEN 'Process tampered with'
            WHEN 26 THEN 'File deleted'
        END
        WHEN 'Microsoft-Windows-Eventlog' THEN CASE event_id
            WHEN 104 THEN 'Log cleared'
            WHEN 1100 THEN 'Event log stopped'
            WHEN 1102 THEN 'Log cleared'
        END
        WHEN 'Service Control Manager' THEN CASE event_id
            WHEN 7034 THEN 'Service ended unexpectedly'
            WHEN 7036 THEN 'Service state changed'
            WHEN 7040 THEN 'Service start type changed'
            WHEN 7045 THEN 'Service installed'
        END
        WHEN 'Microsoft-Windows-PowerShell' THEN CASE event_id
            WHEN 4103 THEN 'PowerShell command'
            WHEN 4104 THEN 'PowerShell script block'
        END
        WHEN 'PowerShellCore' THEN CASE event_id
            WHEN 4103 THEN 'PowerShell command'
            WHEN 4104 THEN 'PowerShell script block'
        END
        WHEN 'PowerShell' THEN CASE event_id
            WHEN 400 THEN 'PowerShell started'
            WHEN 403 THEN 'PowerShell stopped'
            WHEN 800 THEN 'PowerShell pipeline'
        END
        WHEN 'Microsoft-Windows-TerminalServices-LocalSessionManager' THEN CASE event_id
            WHEN 21 THEN 'Session logon'
            WHEN 22 THEN 'Session shell started'
            WHEN 23 THEN 'Session logoff'
            WHEN 24 THEN 'Session disconnected'
            WHEN 25 THEN 'Session reconnected'
        END
        WHEN 'Microsoft-Windows-TerminalServices-RemoteConnectionManager' THEN CASE event_id
            WHEN 1149 THEN 'RDP user authenticated'
        END
        WHEN 'Microsoft-Windows-RemoteDesktopServices-RdpCoreTS' THEN CASE event_id
            WHEN 131 THEN 'RDP connection accepted'
            WHEN 140 THEN 'RDP logon failed'
        END
        WHEN 'Microsoft-Windows-TerminalServices-ClientActiveXCore' THEN CASE event_id
            WHEN 1024 THEN 'RDP connection to another machine'
        END
        WHEN 'Microsoft-Windows-Windows Defender' THEN CASE event_id
            WHEN 1006 THEN 'Malware found'
            WHEN 1007 THEN 'Malware acted on'
            WHEN 1116 THEN 'Malware found'
            WHEN 1117 THEN 'Malware acted on'
            WHEN 5001 THEN 'Defender turned off'
            WHEN 5007 THEN 'Defender settings changed'
        END
        WHEN 'Microsoft-Windows-Bits-Client' THEN CASE event_id
            WHEN 3 THEN 'BITS job created'
            WHEN 4 THEN 'BITS job completed'
            WHEN 59 THEN 'BITS transfer started'
            WHEN 60 THEN 'BITS transfer ended'
            WHEN 61 THEN 'BITS transfer failed'
        END
        WHEN 'Microsoft-Windows-TaskScheduler' THEN CASE event_id
            WHEN 106 THEN 'Task created'
            WHEN 129 THEN 'Task process created'
            WHEN 140 THEN 'Task changed'
            WHEN 141 THEN 'Task deleted'
            WHEN 200 THEN 'Task action started'
            WHEN 201 THEN 'Task action ended'
        END
        WHEN 'Microsoft-Windows-WMI-Activity' THEN CASE event_id
            WHEN 5857 THEN 'WMI provider loaded'
            WHEN 5858 THEN 'WMI query failed'
            WHEN 5860 THEN 'WMI temporary consumer registered'
            WHEN 5861 THEN 'WMI permanent consumer registered'
        END
        WHEN 'EventLog' THEN CASE event_id
            WHEN 6005 THEN 'Event log started'
            WHEN 6006 THEN 'Event log stopped'
            WHEN 6008 THEN 'Unexpected shutdown'
        END
        WHEN 'Microsoft-Windows-Kernel-General' THEN CASE event_id
            WHEN 1 THEN 'System time changed'
            WHEN 12 THEN 'Windows started'
            WHEN 13 THEN 'Windows stopped'
        END
    END AS event,
    evtx_level_name(level) AS level, provider, record_id, filename, error, user_name, remote_host, process,
    CASE WHEN contains(line, chr(10)) OR contains(line, chr(9)) OR contains(line, chr(13))
         THEN regexp_replace(line, '\s+', ' ', 'g') ELSE line END AS details
FROM lines
