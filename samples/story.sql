-- One address tries a password on every account, logs in, installs a service, and clears a log.
SELECT min(time_created) AS first, computer, event, remote_host, process, count(*) AS events,
       CASE count(DISTINCT user_name) WHEN 1 THEN min(user_name) ELSE count(DISTINCT user_name) || ' accounts' END AS who
FROM   evtx_timeline('samples/*-S*.evtx')
WHERE  remote_host = '203.0.113.45' OR event IN ('Process created', 'Service installed', 'Log cleared')
GROUP  BY ALL
ORDER  BY first
