-- evtx_starts(table_name)
--
-- The starts of Windows, which macros share: for each, the number of the first of its events. The table has these events, with the
-- columns computer, number (their order), log_time, event_id and, of 4688, process: a program that PID 4 started.
--
-- SELECT first FROM evtx_starts('events')

-- The events of a start follow each other within minutes, and a start has each once, but for programs (4688). Only the event log
-- may have started (6005), unless the logs have no other event of a start. Of programs, only those count that Windows starts itself.
WITH starting AS (
    SELECT *, count(*) FILTER (is_first) OVER (PARTITION BY computer ORDER BY number ASC) AS burst
    FROM (SELECT *, coalesce(log_time - lag(log_time) OVER (PARTITION BY computer ORDER BY number ASC) > INTERVAL 5 MINUTES, true) AS is_first
          FROM query_table(table_name)
          WHERE event_id <> 4688 OR lower(regexp_extract(process, '[^\\]*$')) IN ('smss.exe', 'registry', 'secure system'))
)
SELECT computer, min(number) AS first
FROM (SELECT *, max(nth) OVER (PARTITION BY computer, burst ORDER BY number ASC) AS start
      FROM (SELECT *, CASE WHEN event_id = 4688 THEN 1
                           ELSE row_number() OVER (PARTITION BY computer, burst, event_id ORDER BY number ASC) END AS nth
            FROM starting))
GROUP BY computer, burst, start
QUALIFY bool_or(event_id <> 6005) OR NOT coalesce(bool_or(bool_or(event_id = 12)) OVER (PARTITION BY computer), false)
