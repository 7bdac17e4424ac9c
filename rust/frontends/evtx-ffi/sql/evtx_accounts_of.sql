-- evtx_accounts_of(table_name)
--
-- evtx_accounts over a table, a view or a Parquet file with the columns of read_evtx.
--
-- SELECT DISTINCT user_sid, user_name FROM evtx_accounts_of('events')

WITH evtx_accounts_records AS (
    SELECT computer, time_created, event_id, user_sid, event_data, user_data
    FROM query_table(table_name)
    -- Logons, processes, and changes of accounts, which name everybody who has a SID in other events. In others, such as
    -- 4740, the field for the domain has the name of a computer.
    WHERE provider IN ('Microsoft-Windows-Security-Auditing', 'Microsoft-Windows-Eventlog', 'User32')
      AND event_id IN (1074, 1102, 4624, 4634, 4647, 4648, 4672, 4688, 4720, 4722, 4723, 4724, 4725, 4726, 4738, 4741,
                       4742, 4768, 4781, 4798, 4799, 5145, 5379)
),
named AS (
    SELECT computer, time_created, event_id, unnest(CASE event_id
        WHEN 1074 THEN [{sid: user_sid, domain: string_split(data['param7'], '\')[-2],
                    name: string_split(data['param7'], '\')[-1], seen: time_created}]
        -- Before a change, the account had the old name.
        WHEN 4781 THEN [
            {sid: data['TargetSid'], domain: data['TargetDomainName'], name: data['OldTargetUserName'],
             seen: time_created - INTERVAL 1 MICROSECOND},
            {sid: data['TargetSid'], domain: data['TargetDomainName'], name: data['NewTargetUserName'],
             seen: time_created}]
        ELSE [
            {sid: data['SubjectUserSid'], domain: data['SubjectDomainName'], name: data['SubjectUserName'],
             seen: time_created},
            {sid: coalesce(data['TargetUserSid'], data['TargetSid']), domain: data['TargetDomainName'],
             name: data['TargetUserName'], seen: time_created}]
    END, max_depth := 2)
    FROM evtx_data_rows('evtx_accounts_records')
),
accounts AS (
    SELECT *, CASE WHEN domain IN ('', '-') THEN NULL ELSE domain END AS short_domain,
        concat_ws('\', short_domain, name) AS full_name,
        CASE WHEN event_id = 4781 THEN seen END AS renamed
    FROM named
    -- The names of SIDs with one number, such as S-1-5-18, are fixed, but events have the name of the computer with them.
    WHERE name NOT IN ('', '-') AND sid LIKE 'S-1-%-%-%' AND sid NOT LIKE 'S-1-5-32-%'
)
SELECT
    computer, sid AS user_sid,
    -- Kerberos writes the domain in full, and people write names in any case.
    min(CASE WHEN short_domain IS NULL THEN 2 WHEN contains(short_domain, '.') THEN 1 ELSE 0 END || full_name)[2:] AS user_name,
    min(seen) AS first_seen, max(seen) AS last_seen, renamed IS NOT NULL AS is_renamed
FROM accounts
GROUP BY computer, sid, lower(name), renamed
