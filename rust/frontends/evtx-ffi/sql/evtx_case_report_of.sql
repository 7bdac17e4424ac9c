-- evtx_case_report_of(table_name, table_of_matches := NULL, table_of_files := NULL, table_of_known := NULL, time_zone := NULL)
--
-- evtx_case_report over a table, a view or a Parquet file with the columns of read_evtx. `table_of_matches` has those of
-- evtx_sigma, and `table_of_files` those of evtx_file_metadata. `table_of_known` has facts to leave out.
--
-- COPY (FROM evtx_case_report_of('events', table_of_matches := 'matches')) TO 'report.html' (FORMAT blob)

-- Each item becomes a text by itself: as one JSON value, all would take DuckDB several times the memory. Without `<`, no text can
-- end the element that it is in.
WITH items AS (
    SELECT string_agg(replace(coalesce(to_json(figures), to_json(machine), to_json(row), to_json(record), to_json(damage))::VARCHAR,
                              '<', '\u003c'), ',') AS texts
    FROM evtx_case_report_rows(table_name, table_of_matches, table_of_files,
                               -- DuckDB evaluates this before it reads a log: an unknown time zone fails at once.
                               CASE WHEN evtx_checked_time_zone(coalesce(evtx_time_zone(time_zone), time_zone)) IS DISTINCT FROM '' THEN table_of_known END)
)
SELECT encode(concat(page[1], '{"zone":', coalesce(replace(to_json(coalesce(evtx_time_zone(time_zone), time_zone))::VARCHAR, '<', '\u003c'), 'null'),
                     ',"items":[', texts, ']}', page[2])) AS html
FROM items, (SELECT string_split('{{evtx_case_report.html}}', '{{data}}') AS page)
