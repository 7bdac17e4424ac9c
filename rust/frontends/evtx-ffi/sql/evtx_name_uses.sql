-- evtx_name_uses(table_name)
--
-- The events of each computer that have one name with a SID: the columns of the uses of evtx_account_names, which the table of events gives.
--
-- SELECT sid, name, len(times) FROM evtx_name_uses('events')

WITH evtx_names_records AS (
    -- 1074 is in the System log, all others in the Security log, whose order tells when an account was renamed.
    SELECT computer, time_created, event_id, user_sid, event_data, user_data, CASE WHEN event_id <> 1074 THEN hash(filename, lower(channel)) END AS log,
           CASE WHEN log IS NOT NULL THEN record_id END AS place
    FROM query_table(table_name)
    -- Logons, processes, and changes of accounts, which name everybody who has a SID in other events. In others, such as
    -- 4740, the field for the domain has the name of a computer.
    WHERE lower(provider) IN ('microsoft-windows-security-auditing', 'microsoft-windows-eventlog', 'user32')
      AND event_id IN (1074, 1102, 4624, 4634, 4647, 4648, 4672, 4688, 4720, 4722, 4723, 4724, 4725, 4726, 4738, 4741, 4742, 4768, 4781, 4798, 4799, 5145, 5379)
),
named AS (
    SELECT computer, log, place, unnest(CASE event_id
        WHEN 1074 THEN [{sid: user_sid, domain: string_split(data['param7'], '\')[-2], name: string_split(data['param7'], '\')[-1],
                         seen: time_created, evidence: NULL}]
        -- Before a change, the account had the old name.
        WHEN 4781 THEN [
            {sid: data['TargetSid'], domain: data['TargetDomainName'], name: data['OldTargetUserName'], seen: time_created - INTERVAL 1 MICROSECOND,
             evidence: 'renamed'},
            {sid: data['TargetSid'], domain: data['TargetDomainName'], name: data['NewTargetUserName'], seen: time_created, evidence: 'renamed'}]
        ELSE [
            {sid: data['SubjectUserSid'], domain: data['SubjectDomainName'], name: data['SubjectUserName'], seen: time_created, evidence: NULL},
            -- The target of 4799 is a group.
            {sid: coalesce(data['TargetUserSid'], data['TargetSid']), domain: data['TargetDomainName'],
             name: CASE WHEN event_id <> 4799 THEN data['TargetUserName'] END, seen: time_created,
             evidence: CASE WHEN event_id IN (4720, 4741) THEN 'created' WHEN event_id IN (4738, 4742) THEN 'changed' END}]
    END, max_depth := 2)
    FROM evtx_data_rows('evtx_names_records')
)
SELECT computer, sid, domain, name, evidence, min(log) AS log, max(log) AS last_log, TRY_CAST(min(place) AS UBIGINT) AS place, list(seen) AS times
FROM named
-- The names of SIDs with one number, such as S-1-5-18, are fixed, but events have the name of the computer with them.
-- In a domain, 512 to 599 are the numbers of groups.
WHERE name NOT IN ('', '-') AND sid LIKE 'S-1-%-%-%' AND sid NOT LIKE 'S-1-5-32-%' AND (sid LIKE 'S-1-5-21-%-5__' AND sid[-2:] >= '12') IS NOT TRUE
GROUP BY computer, sid, domain, name, evidence, CASE WHEN evidence = 'renamed' THEN seen END
