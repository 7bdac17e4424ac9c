-- evtx_sigma_timeline(files, rules, min_level := NULL, status := NULL, exclude := NULL, logsources := NULL, placeholders := NULL, messages := 'LocaleMetaData/{log}_*.[Mm][Tt][Aa]', password := NULL)
--
-- A row per match of a Sigma rule, for people: when, where, the rule with its level, tactics and techniques of ATT&CK,
-- and what happened, with the columns of evtx_timeline. What made the rule true is one line of about 200 characters.
-- A correlation has the first time and the number of its events. Damage, which can hide a match, is a row without a
-- rule.
--
-- SELECT * FROM evtx_sigma_timeline('logs', 'rules') WHERE level >= 'high' ORDER BY time_created

WITH evtx_sigma_timeline_matches AS (
    FROM evtx_sigma(files, rules := rules, min_level := min_level, status := status, exclude := exclude,
                    logsources := logsources, placeholders := placeholders, messages := messages, password := password)
),
evtx_sigma_timeline_accounts AS (FROM evtx_accounts(files, password := password)),
lines AS (
    SELECT *,
        -- The values share 200 characters. A rule that only denies has none.
        greatest(40, 200 // greatest(1, cardinality(matched)))::BIGINT AS room,
        list_transform(map_entries(matched), lambda field: {
            name: field.key, value: regexp_replace(field.value, '\s+', ' ', 'g')}) AS found
    FROM evtx_event_rows('evtx_sigma_timeline_matches', 'evtx_sigma_timeline_accounts')
)
SELECT
    time_created, computer, rule_level::evtx_level AS level, rule_title AS title, evtx_attack_tactics(tags) AS tactics,
    evtx_attack_techniques(tags) AS techniques, event, user_name, remote_host, process,
    left(details, 1000) || CASE WHEN length(details) > 1000 THEN '…' ELSE '' END AS details,
    nullif(array_to_string(list_transform(found, lambda field: concat_ws(': ', field.name,
        left(field.value, room) || CASE WHEN length(field.value) > room THEN '…' ELSE '' END)), ' ¦ '), '') AS matched,
    correlation.first_time AS first_time, correlation.count AS events, channel, event_id, rule_id, record_id, filename, error, message
FROM lines
