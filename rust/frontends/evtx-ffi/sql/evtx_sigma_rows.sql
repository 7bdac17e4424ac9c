-- evtx_sigma_rows(table_name, json_arguments)
--
-- The rows of evtx_sigma_of. The second argument has the others of evtx_sigma_of as a JSON text.
--
-- SELECT rule_title, computer FROM evtx_sigma_rows('events', '{"rules": "rules"}')

WITH evtx_sigma_events AS NOT MATERIALIZED (
    SELECT {{no columns}} WHERE false
    UNION ALL BY NAME FROM query_table(table_name)
),
converted AS NOT MATERIALIZED (
    SELECT *,
        -- A cast would give the local time.
        CASE WHEN typeof(time_created) = 'TIMESTAMP WITH TIME ZONE'
             THEN make_timestamp_ns(epoch_ns(TRY_CAST(time_created AS TIMESTAMPTZ)))
             ELSE TRY_CAST(time_created AS TIMESTAMP_NS) END AS evtx_sigma_time_created,
        CASE WHEN '"NULL"' IN (typeof(channel), typeof(provider))
             THEN error('evtx_sigma_of needs a table with the columns channel and provider: rules choose events by them')
             ELSE channel::VARCHAR END AS evtx_sigma_channel,
        -- Another tool's table can have structs of its own.
        CASE WHEN typeof(user_data) IN ('JSON', 'VARCHAR', '"NULL"') THEN user_data::VARCHAR
             ELSE to_json(user_data)::VARCHAR END AS evtx_sigma_user_data,
        CASE WHEN typeof(event_data) IN ('MAP(VARCHAR, VARCHAR)', '"NULL"') THEN event_data::MAP(VARCHAR, VARCHAR)
             -- JSON, or a map as CSV has it.
             WHEN typeof(event_data) = 'VARCHAR' THEN coalesce(
                 TRY_CAST(TRY_CAST(event_data AS JSON) AS MAP(VARCHAR, VARCHAR)), TRY_CAST(event_data AS MAP(VARCHAR, VARCHAR)))
             -- All rows of a struct have all fields.
             WHEN starts_with(typeof(event_data), 'STRUCT') THEN map_from_entries(list_filter(
                 map_entries(TRY_CAST(to_json(event_data) AS MAP(VARCHAR, VARCHAR))), lambda e: e.value IS NOT NULL))
             ELSE TRY_CAST(to_json(event_data) AS MAP(VARCHAR, VARCHAR)) END AS evtx_sigma_event_data
    FROM evtx_sigma_events
),
events AS NOT MATERIALIZED (
    SELECT * EXCLUDE (evtx_sigma_time_created, evtx_sigma_channel, evtx_sigma_user_data, evtx_sigma_event_data),
        { {{event columns}} } AS evtx_sigma_event
    FROM converted
),
hits AS MATERIALIZED (
    SELECT unnest(evtx_sigma_hits(json_arguments, evtx_sigma_event)) AS evtx_sigma_hit, * EXCLUDE evtx_sigma_event
    FROM events
    WHERE evtx_sigma_correlates(json_arguments)
      AND CASE WHEN typeof(time_created) = '"NULL"'
               THEN error('evtx_sigma_of needs the column time_created for correlations')::VARCHAR IS NULL ELSE true END
),
numbered AS MATERIALIZED (SELECT *, row_number() OVER () - 1 AS evtx_sigma_row FROM hits),
bursts AS (
    SELECT unnest(evtx_sigma_bursts(json_arguments, list(evtx_sigma_hit ORDER BY evtx_sigma_row))) AS evtx_sigma_found
    FROM numbered
    HAVING count(*) > 0
),
findings AS (
    SELECT unnest(evtx_sigma_matches(json_arguments, evtx_sigma_event)) AS evtx_sigma_found, * EXCLUDE evtx_sigma_event
    FROM events
    UNION ALL BY NAME
    SELECT evtx_sigma_found, numbered.* EXCLUDE (evtx_sigma_hit, evtx_sigma_row)
    FROM bursts LEFT JOIN numbered ON evtx_sigma_found.row = evtx_sigma_row
)
SELECT evtx_sigma_found.rule_id, evtx_sigma_found.rule_title, evtx_sigma_found.rule_level::evtx_level AS rule_level,
    evtx_sigma_found.rule_status, evtx_sigma_found.tags, evtx_sigma_found.rule_file, evtx_sigma_found.matched,
    evtx_sigma_found.correlation,
    * EXCLUDE evtx_sigma_found REPLACE (coalesce(evtx_sigma_found.error, error::VARCHAR) AS error)
FROM findings
