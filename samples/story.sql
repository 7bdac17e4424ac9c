-- One address tries one password on every account, gets in, installs a service, and clears a log.
SELECT min(time_created) AS first, computer, event_id, what, count(*) AS events
FROM (
  SELECT time_created, computer, event_id,
         CASE event_id
           WHEN 4625 THEN 'logon failed, from ' || event_data['IpAddress']
           WHEN 4624 THEN event_data['TargetUserName'] || ' logged on, from ' || event_data['IpAddress']
           WHEN 4688 THEN 'process ' || event_data['CommandLine']
           WHEN 7045 THEN 'service ' || event_data['ServiceName'] || ' installed: ' || event_data['ImagePath']
           WHEN 1102 THEN 'log cleared by ' || (user_data->'LogFileCleared'->>'SubjectUserName')
         END AS what
  FROM   read_evtx('samples/*-S*.evtx')
  WHERE  event_data['IpAddress'] = '203.0.113.45' OR event_id IN (4688, 7045, 1102)
)
GROUP BY ALL
ORDER BY first
