-- evtx_sigma_report_rows(table_name, table_of_events)
--
-- What the page of evtx_sigma_report_of shows, in one row: the rules, the matches, their numbers per minute or per hour, and
-- the errors. A match names its rule by its position in the list of rules, from 0. finest is 16 if times count to the minute,
-- and 13 if they count to the hour: the length of such a text.
--
-- SELECT unnest(rules, max_depth := 2) FROM evtx_sigma_report_rows('matches', 'events')

WITH evtx_sigma_report_matches AS MATERIALIZED (
    SELECT left(rule_title, 300) AS title, left(rule_id, 300) AS id,
        coalesce(list_position(['informational', 'low', 'medium', 'high', 'critical'], rule_level::VARCHAR), 0)
            AS severity,
        list_transform(tags::VARCHAR[], lambda tag: left(tag, 100))[:50] AS tags,
        -- To the millisecond.
        left(time_created::VARCHAR, 23) AS time, left(computer, 300) AS machine, event_id, record_id,
        left(channel, 300) AS channel, left(filename, 1000) AS filename, left(error, 1000) AS error,
        matched, correlation, provider, computer, time_created, user_sid, event_data, user_data
    FROM query_table(table_name)
),
known_rules AS MATERIALIZED (
    SELECT *, row_number() OVER (ORDER BY severity DESC, title ASC, id ASC NULLS LAST) - 1 AS rule
    FROM (SELECT title, id, severity, any_value(tags) AS tags
          FROM evtx_sigma_report_matches WHERE title IS NOT NULL GROUP BY ALL)
),
hits AS MATERIALIZED (
    SELECT rule, hits.*
    FROM evtx_sigma_report_matches AS hits JOIN known_rules AS known
      ON hits.title = known.title AND hits.severity = known.severity AND hits.id IS NOT DISTINCT FROM known.id
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
evtx_sigma_report_hits AS (
    SELECT * REPLACE (map_concat(
        CASE WHEN correlation IS NOT NULL
             THEN MAP {'Events': concat(correlation.count, ' since ', left(correlation.first_time::VARCHAR, 23))} END,
        TRY_CAST(matched AS MAP(VARCHAR, VARCHAR))) AS matched)
    FROM (FROM hits ORDER BY rule ASC, time ASC NULLS LAST LIMIT 50_000)
),
evtx_sigma_report_accounts AS (FROM evtx_accounts_of(coalesce(table_of_events, table_name))),
lines AS (
    SELECT rule, machine, time, event_id, record_id, channel, filename,
        [left(value, 300) FOR value IN [user_name, process, remote_host]] AS who,
        list_transform(list_transform(
            [map_entries(matched),
             -- The values that no other column has, without the attributes of UserData.
             list_filter(map_entries(data), lambda field: field.value NOT IN ('', '-') AND NOT starts_with(field.key, '#')
                 AND list_contains(map_values(matched) || [user_name, process, remote_host], field.value) IS NOT TRUE)],
            lambda entries: array_to_string(list_transform(entries[:50],
                lambda field: concat_ws(': ', left(field.key, 300), left(field.value, 300))), ' ¦ ')),
            lambda line: CASE WHEN length(line) > 300 THEN left(line, 299) || '…' ELSE line END) AS texts
    FROM evtx_event_rows('evtx_sigma_report_hits', 'evtx_sigma_report_accounts')
)
SELECT
    (SELECT size FROM unit) AS finest,
    (SELECT count(*) FROM hits) AS matches,
    (SELECT coalesce(list({title: title, severity: severity, id: id, tags: tags, tactics: evtx_attack_tactics(tags)}
                          ORDER BY rule ASC), [])
     FROM known_rules) AS rules,
    -- The highest levels are kept.
    (SELECT coalesce(list(kept), [])
     FROM (FROM sums ORDER BY rule ASC, first ASC NULLS LAST LIMIT 100_000) AS kept) AS groups,
    (SELECT coalesce(list(lines), []) FROM lines) AS rows,
    (SELECT count(error) FROM evtx_sigma_report_matches) AS damaged,
    (SELECT coalesce(list(error), [])
     FROM (SELECT error FROM evtx_sigma_report_matches WHERE error IS NOT NULL ORDER BY filename ASC, error ASC LIMIT 100))
        AS errors
