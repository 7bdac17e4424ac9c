-- evtx_sigma_report_rows(table_name, table_of_events)
--
-- What the page of evtx_sigma_report_of shows, an item in each row, in one of the columns: figures, rule (numbered from 0), kept
-- (the number of matches per minute or per hour), line (a match), and damage. figures.finest is 16 if times count to the minute,
-- and 13 if they count to the hour: the length of such a text.
--
-- SELECT unnest(rule) FROM evtx_sigma_report_rows('matches', 'events') WHERE rule IS NOT NULL

WITH evtx_sigma_report_matches AS NOT MATERIALIZED (
    SELECT rule_title, rule_id, rule_level, tags, correlation, record_id, time_created, event_id, provider, channel, computer,
        user_sid, event_data, user_data, error, filename,
        map_concat(
            CASE WHEN correlation IS NOT NULL
                 THEN MAP {'Events': concat(correlation.count, ' since ', left(correlation.first_time::VARCHAR, 23))} END,
            TRY_CAST(matched AS MAP(VARCHAR, VARCHAR))) AS matched
    FROM query_table(table_name)
),
evtx_sigma_report_accounts AS (FROM evtx_accounts_of(coalesce(table_of_events, table_name))),
-- Only what the page shows of a match is kept.
lines AS MATERIALIZED (
    SELECT left(rule_title, 300) AS title, left(rule_id, 300) AS id,
        coalesce(list_position(['informational', 'low', 'medium', 'high', 'critical'], rule_level::VARCHAR), 0)
            AS severity,
        list_transform(tags::VARCHAR[], lambda tag: left(tag, 100))[:50] AS tags,
        -- To the millisecond.
        left(time_created::VARCHAR, 23) AS time, time_created, left(computer, 300) AS machine, event_id, record_id,
        left(channel, 300) AS channel, left(filename, 1000) AS filename, left(error, 1000) AS error,
        [left(value, 300) FOR value IN [user_name, process, remote_host]] AS who,
        list_transform(list_transform(
            [map_entries(matched),
             -- The values that no other column has, without the attributes of UserData.
             list_filter(map_entries(data), lambda field: field.value NOT IN ('', '-') AND NOT starts_with(field.key, '#')
                 AND list_contains(map_values(matched) || [user_name, process, remote_host], field.value) IS NOT TRUE)],
            lambda entries: array_to_string(list_transform(entries[:50],
                lambda field: concat_ws(': ', left(field.key, 300), left(field.value, 300))), ' ¦ ')),
            lambda line: CASE WHEN length(line) > 300 THEN left(line, 299) || '…' ELSE line END) AS texts
    FROM evtx_event_rows('evtx_sigma_report_matches', 'evtx_sigma_report_accounts')
),
known_rules AS MATERIALIZED (
    SELECT *, row_number() OVER (ORDER BY severity DESC, title ASC, id ASC NULLS LAST) - 1 AS rule
    FROM (SELECT title, id, severity, min(tags) AS tags FROM lines WHERE title IS NOT NULL GROUP BY ALL)
),
hits AS NOT MATERIALIZED (
    SELECT rule, lines.*,
           {rule: rule, time: lines.time_created, said: md5_number([lines.machine, lines.record_id::VARCHAR, lines.texts::VARCHAR]::VARCHAR)} AS place
    FROM lines JOIN known_rules AS known
      ON lines.title = known.title AND lines.severity = known.severity AND lines.id IS NOT DISTINCT FROM known.id
),
-- The figures of the page are sums of groups: per minute, or per hour if those are too many.
unit AS MATERIALIZED (
    SELECT CASE WHEN count(*) <= 100_000 THEN 16 ELSE 13 END AS size
    FROM (SELECT DISTINCT rule, machine, left(time, 16) FROM hits)
),
sums AS (
    SELECT rule, machine, min(time) AS first, max(time) AS last, count(*) AS events
    FROM hits, unit
    GROUP BY rule, machine, left(time, size)
),
-- To sort all that is shown of the matches would take several times the memory.
cutoff AS MATERIALIZED (SELECT place FROM hits ORDER BY place ASC LIMIT 1 OFFSET 49_999),
shown AS NOT MATERIALIZED (
    SELECT place, {rule: rule, machine: machine, time: time, event_id: event_id, record_id: record_id, channel: channel,
                   filename: filename, who: who, texts: texts} AS line
    FROM hits
)
SELECT {finest: (FROM unit), matches: (SELECT count(*) FROM hits), damaged: count(error)} AS figures FROM lines
UNION ALL BY NAME
SELECT {rule: rule, title: title, severity: severity, id: id, tags: tags, tactics: evtx_attack_tactics(tags)} AS rule FROM known_rules
UNION ALL BY NAME
-- The highest levels are kept.
(SELECT sums AS kept FROM sums ORDER BY rule ASC, first ASC NULLS LAST, machine ASC NULLS LAST LIMIT 100_000)
UNION ALL BY NAME
SELECT line FROM shown WHERE (place < (FROM cutoff)) IS NOT FALSE
UNION ALL BY NAME
SELECT line FROM (SELECT line, row_number() OVER () AS number FROM shown WHERE place = (FROM cutoff))
WHERE number <= 50_000 - (SELECT count(*) FROM hits WHERE place < (FROM cutoff))
UNION ALL BY NAME
(SELECT error AS damage FROM lines WHERE error IS NOT NULL ORDER BY filename ASC, error ASC LIMIT 100)
