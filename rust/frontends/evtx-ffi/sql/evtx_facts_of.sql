-- evtx_facts_of(table_name, table_of_files := NULL, table_of_known := NULL)
--
-- evtx_facts over a table, a view or a Parquet file with the columns of read_evtx. `table_of_files`, with the columns of
-- evtx_file_metadata, tells which logs are wrapped. `table_of_known` has facts to leave out, whatever their machine and time.
--
-- SELECT * EXCLUDE evidence FROM evtx_facts_of('events', table_of_files := 'files') ORDER BY first

WITH evtx_facts_events AS NOT MATERIALIZED (
    SELECT record_id, event_record_id, time_created, event_id, provider, channel, computer, user_sid, event_data, user_data, filename
    FROM query_table(table_name)
),
evtx_no_files AS (SELECT NULL::VARCHAR AS filename, NULL::BOOLEAN AS is_wrapped, NULL::UBIGINT AS records LIMIT 0),
evtx_no_facts AS (SELECT NULL AS topic, NULL AS fact, NULL AS account, NULL AS source, NULL AS target, NULL AS detail LIMIT 0),
hours AS (
    SELECT evtx_log_hours(filename, TRY_CAST(record_id AS UBIGINT), computer, channel, provider, TRY_CAST(event_record_id AS UBIGINT), time_created,
                          TRY_CAST(event_id AS UINTEGER), true) AS hours
    FROM evtx_facts_events
),
rows AS (
    SELECT evtx_fact_row(filename, TRY_CAST(record_id AS UBIGINT), hash(filename, lower(channel)), computer, channel, provider, TRY_CAST(event_record_id AS UBIGINT),
                         time_created, TRY_CAST(event_id AS UINTEGER), user_sid, event_data, user_data) AS row
    FROM evtx_facts_events
    WHERE event_id IN (131, 4616, 4826, 6011, {{name events}}, {{logon events}}, {{event ids of topics}})
          AND (lower(provider) IN ('microsoft-windows-power-troubleshooter', {{name providers}}, {{logon providers}}, {{providers of topics}}) OR starts_with(lower(provider), 'mssql$'))
)
SELECT computer, topic::ENUM ({{topics}}) AS topic, level::evtx_fact_level AS level, fact, first, last, events, account, account_sid, source, target, detail, evidence, doubts
FROM (SELECT unnest(evtx_fact_list(
          (SELECT list(row) FROM rows),
          (SELECT list(hours) FILTER (hours IS NOT NULL) FROM hours),
          (SELECT list(filename) FROM query_table(coalesce(table_of_files, 'evtx_no_files')) WHERE is_wrapped)), max_depth := 2)) AS facts
WHERE NOT EXISTS (FROM query_table(coalesce(table_of_known, 'evtx_no_facts')) AS known
                  WHERE known.topic::VARCHAR = facts.topic AND known.fact = facts.fact AND known.account IS NOT DISTINCT FROM facts.account
                    AND known.source IS NOT DISTINCT FROM facts.source AND known.target IS NOT DISTINCT FROM facts.target
                    AND known.detail IS NOT DISTINCT FROM facts.detail)
