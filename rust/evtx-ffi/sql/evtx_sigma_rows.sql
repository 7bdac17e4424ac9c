-- evtx_sigma_rows(table_name, json_arguments)
--
-- The rows of evtx_sigma_of. The second argument has the others of evtx_sigma_of as a JSON text.
--
-- SELECT rule_title, computer FROM evtx_sigma_rows('events', '{"rules": "rules"}')

WITH evtx_sigma_events AS NOT MATERIALIZED (
    SELECT NULL AS record_id, NULL AS time_created, NULL AS event_id, NULL AS level, NULL AS provider, NULL AS channel,
        NULL AS computer, NULL AS event_data, NULL AS user_data, NULL AS message, NULL AS task, NULL AS opcode,
        NULL AS keywords, NULL AS version, NULL AS qualifiers, NULL AS provider_guid, NULL AS event_source_name,
        NULL AS process_id, NULL AS thread_id, NULL AS activity_id, NULL AS related_activity_id, NULL AS user_sid,
        NULL AS event_record_id, NULL AS error, NULL AS filename
    WHERE false
    UNION ALL BY NAME FROM query_table(table_name)
),
events AS NOT MATERIALIZED (
    SELECT *,
        {record_id: TRY_CAST(record_id AS UBIGINT), time_created: TRY_CAST(time_created AS TIMESTAMP_NS),
         event_id: TRY_CAST(event_id AS UINTEGER), level: TRY_CAST(level AS UTINYINT),
         provider: provider::VARCHAR,
         channel: CASE WHEN '"NULL"' IN (typeof(channel), typeof(provider))
             THEN error('evtx_sigma_of needs a table with the columns channel and provider: rules choose events by them')
             ELSE channel::VARCHAR END,
         computer: computer::VARCHAR,
         -- Another tool's table can have structs of its own.
         user_data: CASE WHEN typeof(user_data) IN ('JSON', 'VARCHAR', '"NULL"') THEN user_data::VARCHAR
                         ELSE to_json(user_data)::VARCHAR END,
         task: TRY_CAST(task AS USMALLINT), opcode: TRY_CAST(opcode AS UTINYINT), keywords: TRY_CAST(keywords AS UBIGINT),
         version: TRY_CAST(version AS UTINYINT), qualifiers: TRY_CAST(qualifiers AS USMALLINT),
         provider_guid: TRY_CAST(provider_guid AS UUID), event_source_name: event_source_name::VARCHAR,
         process_id: TRY_CAST(process_id AS UINTEGER), thread_id: TRY_CAST(thread_id AS UINTEGER),
         activity_id: TRY_CAST(activity_id AS UUID), related_activity_id: TRY_CAST(related_activity_id AS UUID),
         user_sid: user_sid::VARCHAR, event_record_id: TRY_CAST(event_record_id AS UBIGINT), error: error::VARCHAR,
         filename: filename::VARCHAR,
         event_data: CASE WHEN typeof(event_data) IN ('MAP(VARCHAR, VARCHAR)', '"NULL"')
                          THEN event_data::MAP(VARCHAR, VARCHAR)
                          ELSE to_json(event_data)::MAP(VARCHAR, VARCHAR) END} AS evtx_event
    FROM evtx_sigma_events
),
hits AS MATERIALIZED (
    SELECT unnest(evtx_sigma_hits(json_arguments, evtx_event)) AS hit, * EXCLUDE evtx_event
    FROM events
    WHERE evtx_sigma_correlates(json_arguments)
),
numbered AS MATERIALIZED (SELECT *, row_number() OVER () - 1 AS hit_row FROM hits),
bursts AS (
    SELECT unnest(evtx_sigma_bursts(json_arguments, list(hit ORDER BY hit_row))) AS found
    FROM numbered
    HAVING count(*) > 0
),
findings AS (
    SELECT unnest(evtx_sigma_matches(json_arguments, evtx_event)) AS found, * EXCLUDE evtx_event
    FROM events
    UNION ALL BY NAME
    SELECT found, numbered.* EXCLUDE (hit, hit_row)
    FROM bursts LEFT JOIN numbered ON found.row = hit_row
)
SELECT found.rule_id, found.rule_title, found.rule_level::evtx_level AS rule_level, found.rule_status, found.tags,
    found.rule_file, found.matched, found.correlation,
    * EXCLUDE found REPLACE (coalesce(found.error, error::VARCHAR) AS error)
FROM findings
