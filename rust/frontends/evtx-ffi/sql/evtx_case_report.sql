-- evtx_case_report(files, rules := NULL, min_level := NULL, status := NULL, exclude := NULL, logsources := NULL, placeholders := NULL, known := NULL, time_zone := NULL, password := NULL)
--
-- A web page about a case, in one file without external parts: machines, facts, matches of Sigma rules, a time line, and the
-- records that prove each row. known is the name of a table of facts to leave out. One row with one column, html.
--
-- COPY (FROM evtx_case_report('logs', rules := 'rules', time_zone := 'Europe/Berlin')) TO 'report.html' (FORMAT blob)

WITH evtx_logs AS NOT MATERIALIZED (FROM read_evtx(files, password := password)),
evtx_files AS NOT MATERIALIZED (FROM evtx_file_metadata(files, password := password)),
-- DuckDB does not bind a query that nothing names.
evtx_matches AS NOT MATERIALIZED (
    FROM evtx_sigma(files, rules := rules, min_level := min_level, status := status, exclude := exclude,
                    logsources := logsources, placeholders := placeholders, password := password)
)
FROM evtx_case_report_of('evtx_logs', table_of_matches := CASE WHEN rules IS NOT NULL THEN 'evtx_matches' END,
                         table_of_files := 'evtx_files', table_of_known := known, time_zone := time_zone)
