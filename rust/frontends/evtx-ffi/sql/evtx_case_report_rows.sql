-- evtx_case_report_rows(table_name, table_of_matches, table_of_files, table_of_known)
--
-- What the page of evtx_case_report_of shows, an item in each row, in one of the columns: figures, machine, row (a fact, or the
-- matches of a rule that show the same on one day), record (that a row cites) and damage.
--
-- SELECT unnest(row) FROM evtx_case_report_rows('events', 'matches', NULL, NULL) WHERE row IS NOT NULL

WITH evtx_case_report_events AS NOT MATERIALIZED (
    SELECT record_id, event_record_id, time_created, event_id, provider, channel, computer, user_sid, event_data, user_data, error, coalesce(filename, '') AS filename
    FROM query_table(table_name)
),
evtx_no_matches AS (
    SELECT *, NULL::VARCHAR AS rule_title, NULL::VARCHAR AS rule_id, NULL::VARCHAR AS rule_level, NULL::VARCHAR[] AS tags,
           NULL::MAP(VARCHAR, VARCHAR) AS matched, NULL::STRUCT(count BIGINT, first_time TIMESTAMP_NS) AS correlation
    FROM evtx_case_report_events WHERE false
),
evtx_case_report_matches AS NOT MATERIALIZED (
    SELECT record_id, time_created, event_id, provider, channel, computer, user_sid, event_data, user_data, coalesce(filename, '') AS filename,
           rule_title, rule_id, rule_level, tags, correlation, TRY_CAST(matched AS MAP(VARCHAR, VARCHAR)) AS matched
    FROM query_table(coalesce(table_of_matches, 'evtx_no_matches'))
    WHERE rule_title IS NOT NULL
),
evtx_case_report_damage AS NOT MATERIALIZED (
    SELECT filename, error FROM query_table(coalesce(table_of_matches, table_name)) WHERE error IS NOT NULL
),
evtx_case_report_facts AS MATERIALIZED (
    SELECT computer, topic::VARCHAR AS topic, level::VARCHAR AS level, fact, first, last, events::BIGINT AS events, account, account_sid,
           source, target, detail, evidence, doubts
    FROM evtx_facts_of(table_name, table_of_files := table_of_files, table_of_known := table_of_known)
),
evtx_case_report_names AS MATERIALIZED (FROM evtx_names_of('evtx_case_report_events')),
evtx_case_report_machines AS MATERIALIZED (FROM evtx_machines_of('evtx_case_report_events')),
-- Of matches that show the same on one day, the first and the last records stay.
matches AS MATERIALIZED (
    SELECT computer, 'sigma' AS topic, level, fact, min(first) AS first, max(last) AS last, count(*) AS events, account, account_sid, source,
           target, detail, rule, tags, day,
           list_sort(list_distinct(list_append(arg_min(record, (record.time, record), 9), arg_max(record, (record.time, record)))), 'ASC', 'NULLS LAST') AS evidence
    FROM (SELECT coalesce(machine, rows.computer) AS computer, coalesce(replace(rule_level::VARCHAR, 'informational', 'info'), 'low') AS level,
                 left(rule_title, 300) AS fact, coalesce(correlation.first_time, time_created) AS first, time_created AS last, date_trunc('day', time_created) AS day,
                 left(user_name, 300) AS account, rows.user_sid AS account_sid, left(remote_host, 300) AS source, left(process, 300) AS target,
                 left(array_to_string(list_transform(
                     list_prepend({key: 'Events', value: correlation.count::VARCHAR}, map_entries(matched))[:20],
                     -- A ¦ in a value is not the end of it.
                     lambda field: replace(left(field.key, 100) || ': ' || left(field.value, 300), '¦', '¦¦')), ' ¦ '), 600) AS detail,
                 left(rule_id, 100) AS rule, [left(tag, 100) FOR tag IN list_slice(tags::VARCHAR[], 1, 50)] AS tags,
                 {filename: filename, record_id: record_id, event_id: event_id, time: time_created} AS record
          FROM evtx_event_rows('evtx_case_report_matches', 'evtx_case_report_names') AS rows
          LEFT JOIN evtx_case_report_machines AS machines USING (filename, computer))
    GROUP BY ALL
),
found AS NOT MATERIALIZED (FROM evtx_case_report_facts UNION ALL BY NAME FROM matches),
-- The highest levels are kept.
kept AS MATERIALIZED (
    SELECT *, row_number() OVER () AS place
    FROM (SELECT *, list_position(['info', 'low', 'medium', 'high', 'critical'], level) - 1 AS severity FROM found
          ORDER BY severity DESC, first ASC NULLS LAST, computer ASC, fact ASC, account ASC, source ASC, target ASC, detail ASC LIMIT 10_000)
),
cited AS MATERIALIZED (
    SELECT DISTINCT unnest(evidence) AS record
    FROM (SELECT evidence, sum(len(evidence)) OVER (ORDER BY place ASC ROWS UNBOUNDED PRECEDING) AS total FROM kept)
    WHERE total <= 20_000
),
evtx_case_report_cited AS NOT MATERIALIZED (
    FROM evtx_case_report_events
    WHERE {filename: filename, record_id: record_id, event_id: event_id, time: time_created} IN (FROM cited)
)
SELECT {kind: 'figures', facts: (SELECT count(*) FROM evtx_case_report_facts), matches: (SELECT sum(events)::BIGINT FROM matches),
        rows: (SELECT count(*) FROM found), has_rules: coalesce(table_of_matches, '') <> '', damaged: (SELECT count(*) FROM evtx_case_report_damage)} AS figures
UNION ALL BY NAME
SELECT {kind: 'machine', computer: left(computer, 300), names: [left(name, 300) FOR name IN names[:20]], first: first_event::VARCHAR, last: last_event::VARCHAR,
        events: events, logs: logs, facts: coalesce(facts, 0), matches: coalesce(matches, 0)} AS machine
FROM (FROM evtx_case_machines('evtx_case_report_events', 'evtx_case_report_machines') ORDER BY events DESC, computer ASC LIMIT 1_000)
LEFT JOIN (SELECT computer, count(*) FILTER (topic <> 'sigma' AND level <> 'info') AS facts, sum(events) FILTER (topic = 'sigma')::BIGINT AS matches
           FROM found GROUP BY computer) USING (computer)
UNION ALL BY NAME
SELECT {kind: 'row', computer: left(computer, 300), topic: topic, level: severity, fact: left(fact, 300), first: first::VARCHAR, last: last::VARCHAR,
        events: events, account: left(account, 300), sid: left(account_sid, 200), source: left(source, 300), target: left(target, 600),
        detail: left(detail, 1000), doubts: doubts, rule: rule, tags: tags, tactics: evtx_attack_tactics(tags),
        evidence: [{file: it.filename, record: it.record_id::VARCHAR, event: it.event_id, time: it.time::VARCHAR} FOR it IN evidence]} AS row
FROM kept
UNION ALL BY NAME
SELECT {kind: 'record', file: filename, record: record_id::VARCHAR, event: event_id, time: time_created::VARCHAR, computer: left(computer, 300),
        channel: left(channel, 300), name: event, account: left(user_name, 300), source: left(remote_host, 300), process: left(process, 600),
        text: CASE WHEN length(details) > 1000 THEN left(details, 999) || '…' ELSE details END} AS record
FROM evtx_event_rows('evtx_case_report_cited', 'evtx_case_report_names')
UNION ALL BY NAME
(SELECT {kind: 'damage', file: filename, error: left(error, 1000)} AS damage
 FROM evtx_case_report_damage ORDER BY filename ASC, error ASC LIMIT 100)
