-- evtx_sigma_report(files, rules, min_level := NULL, status := NULL, exclude := NULL, logsources := NULL, placeholders := NULL, password := NULL)
--
-- A web page about the matches of Sigma rules, in one file without external parts: a time line, hosts, rules, tactics
-- and a table, all with filters. One row with one column, html.
--
-- COPY (FROM evtx_sigma_report('logs', 'rules')) TO 'report.html' (FORMAT blob)

WITH evtx_logs AS NOT MATERIALIZED (FROM read_evtx(files, password := password)),
evtx_sigma_rows AS NOT MATERIALIZED (
    FROM evtx_sigma(files, rules := rules, min_level := min_level, status := status, exclude := exclude,
                    logsources := logsources, placeholders := placeholders, password := password)
)
FROM evtx_sigma_report_of('evtx_sigma_rows', table_of_events := 'evtx_logs')
