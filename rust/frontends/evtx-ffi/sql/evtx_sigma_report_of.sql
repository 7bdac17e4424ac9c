-- evtx_sigma_report_of(table_name, table_of_events := NULL)
--
-- evtx_sigma_report over a table, a view or a Parquet file with the columns of evtx_sigma.
-- `table_of_events`, with the columns of read_evtx, names SIDs; without it, the matches themselves do.
--
-- COPY (FROM evtx_sigma_report_of('matches', table_of_events := 'events')) TO 'report.html' (FORMAT blob)

WITH page AS (
    SELECT to_json({
        finest: finest, matches: matches,
        rules: list_transform(rules, lambda rule: json_array(rule.title, rule.severity, rule.id, rule.tags, rule.tactics)),
        groups: list_transform(groups, lambda kept: json_array(kept.rule, kept.machine, kept.first, kept.last, kept.events)),
        rows: list_transform(rows, lambda line: json_array(
            line.rule, line.machine, line.time, line.event_id, line.record_id, line.channel, line.filename, line.who, line.texts)),
        damaged: damaged, errors: errors
    })::VARCHAR AS data
    FROM evtx_sigma_report_rows(table_name, table_of_events)
)
-- Without `<`, no text can end the element that it is in.
SELECT encode(replace('{{evtx_sigma_report.html}}', '{{data}}', replace(data, '<', '\u003c'))) AS html
FROM page
