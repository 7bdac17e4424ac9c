-- evtx_sigma_timeline_of(table_name, table_of_events := NULL)
--
-- evtx_sigma_timeline over a table, a view or a Parquet file with the columns of evtx_sigma.
-- `table_of_events`, with the columns of read_evtx, names SIDs; without it, the matches themselves do.
--
-- SELECT * FROM evtx_sigma_timeline_of('matches', table_of_events := 'events') WHERE level >= 'high' ORDER BY time_created

WITH evtx_sigma_timeline_matches AS NOT MATERIALIZED (
    SELECT record_id, time_created, event_id, provider, channel, computer, user_sid, event_data, user_data, message, error,
           filename, rule_id, rule_title, rule_level, tags, matched, correlation
    FROM query_table(table_name)
),
evtx_sigma_timeline_names AS (FROM evtx_names_of(coalesce(table_of_events, table_name))),
lines AS (
    SELECT *,
        -- The values share 200 characters. A rule that only denies has none.
        greatest(40, 200 // greatest(1, cardinality(matched)))::BIGINT AS room,
        -- A ¦ in a value is not the end of it.
        list_transform(map_entries(matched), lambda field: {
            name: replace(field.key, '¦', '¦¦'), value: regexp_replace(replace(field.value, '¦', '¦¦'), '\s+', ' ', 'g')}) AS found
    FROM evtx_event_rows('evtx_sigma_timeline_matches', 'evtx_sigma_timeline_names')
)
SELECT
    time_created, computer, rule_level::evtx_level AS level, rule_title AS title, evtx_attack_tactics(tags) AS tactics,
    evtx_attack_techniques(tags) AS techniques, event, user_name, remote_host, process,
    left(details, 1000) || CASE WHEN length(details) > 1000 THEN '…' ELSE '' END AS details,
    nullif(array_to_string(list_transform(found, lambda field: concat_ws(': ', field.name,
        left(field.value, room) || CASE WHEN length(field.value) > room THEN '…' ELSE '' END)), ' ¦ '), '') AS matched,
    correlation.first_time AS first_time, correlation.count AS events, channel, event_id, rule_id, record_id, filename, error, message
FROM lines
