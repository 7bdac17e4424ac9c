-- evtx_spray_facts(table_of_failures)
--
-- The facts of evtx_facts about sources from which logons of at least five accounts failed, each within 24 hours of the one before.
--
-- SELECT fact, source FROM evtx_spray_facts('failures')

-- Of each account, there may be only one failure, which alone says little.
SELECT computer, 'failed logons' AS topic, if(count(DISTINCT who) >= 10, 'medium', 'low') AS level,
       count(*) || ' failed logons of ' || count(DISTINCT who) || ' accounts' AS fact, min(time) AS first, max(time) AS last, count(*) AS events,
       arg_min(source, number) AS source, array_to_string(list_sort(list(DISTINCT detail), 'ASC'), ', ') AS detail,
       list_distinct(list_append(arg_min(record, number, 9), arg_max(record, number))) AS evidence, list_distinct(flatten(list(doubts))) AS doubts
FROM (SELECT *, count(*) FILTER (is_late) OVER (PARTITION BY computer, lower(source) ORDER BY number ASC) AS day
      FROM (SELECT *, coalesce(log_time - lag(log_time) OVER (PARTITION BY computer, lower(source) ORDER BY number ASC) > INTERVAL 24 HOURS, true) AS is_late
            FROM query_table(table_of_failures) WHERE counts AND source IS NOT NULL))
GROUP BY computer, lower(source), day
HAVING count(DISTINCT who) >= 5
