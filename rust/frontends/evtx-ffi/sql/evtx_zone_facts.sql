-- evtx_zone_facts(table_of_rows)
--
-- The facts of evtx_facts about time zones: each that the event log reports, until it reports another one.
--
-- SELECT detail, first, last FROM evtx_zone_facts('rows')

-- Windows reports the zone every day, and only a change of it is news.
SELECT computer, 'clock' AS topic, 'info' AS level, 'Time zone reported' AS fact, min(time) AS first, max(time) AS last, count(*) AS events,
       zone || coalesce(' (' || evtx_time_zone(regexp_extract(zone, '^-?\d+ (.*)', 1)) || ')', '') AS detail,
       list_distinct(list_append(arg_min(record, number, 9), arg_max(record, number))) AS evidence,
       list_distinct(flatten(list(doubts))) AS doubts
FROM (SELECT *, count(*) FILTER (is_new) OVER (PARTITION BY computer ORDER BY number ASC) AS run
      FROM (SELECT *, zone IS DISTINCT FROM lag(zone) OVER (PARTITION BY computer ORDER BY number ASC) AS is_new
            FROM query_table(table_of_rows) WHERE zone IS NOT NULL))
GROUP BY computer, run, zone
