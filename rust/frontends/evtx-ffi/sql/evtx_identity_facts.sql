-- evtx_identity_facts(table_of_marks)
--
-- The facts of evtx_facts about names: those that a machine had before.
--
-- SELECT fact, first, last FROM evtx_identity_facts('marks')

SELECT computer, 'identities' AS topic, 'low' AS level, 'Computer had another name' AS fact, min(record.time) AS first, max(record.time) AS last, 0 AS events,
       min(name) AS target, [arg_min(record, (record.time, record)), arg_max(record, (record.time, record))] AS evidence, []::VARCHAR[] AS doubts
FROM query_table(table_of_marks)
WHERE lower(name) <> lower(computer)
GROUP BY computer, lower(name)
