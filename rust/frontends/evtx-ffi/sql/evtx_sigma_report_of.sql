-- evtx_sigma_report_of(table_name, table_of_events := NULL)
--
-- evtx_sigma_report over a table, a view or a Parquet file with the columns of evtx_sigma.
-- `table_of_events`, with the columns of read_evtx, names SIDs; without it, the matches themselves do.
--
-- COPY (FROM evtx_sigma_report_of('matches', table_of_events := 'events')) TO 'report.html' (FORMAT blob)

-- Each item becomes a text by itself: as one JSON value, all would take DuckDB several times the memory. Without `<`, no text can
-- end the element that it is in.
WITH items AS (
    SELECT to_json(figures) AS figures, rule.rule AS number,
        CASE WHEN rule IS NOT NULL THEN json_array(rule.title, rule.severity, rule.id, rule.tags, rule.tactics) END AS rule,
        CASE WHEN kept IS NOT NULL THEN json_array(kept.rule, kept.machine, kept.first, kept.last, kept.events) END AS kept,
        CASE WHEN line IS NOT NULL THEN json_array(
            line.rule, line.machine, line.time, line.event_id, line.record_id, line.channel, line.filename, line.who, line.texts) END AS line,
        to_json(damage) AS damage
    FROM evtx_sigma_report_rows(table_name, table_of_events)
),
lists AS (
    SELECT any_value(figures) AS figures, string_agg(replace(rule, '<', '\u003c'), ',' ORDER BY number ASC) AS rules,
        string_agg(replace(kept, '<', '\u003c'), ',') AS groups, string_agg(replace(line, '<', '\u003c'), ',') AS rows,
        string_agg(replace(damage, '<', '\u003c'), ',') AS errors
    FROM items
)
SELECT encode(concat(page[1], '{"rules":[', rules, '],"groups":[', groups, '],"rows":[', rows, '],"errors":[', errors, '],',
                     ltrim(figures, '{'), page[2])) AS html
FROM lists, (SELECT string_split('{{evtx_sigma_report.html}}', '{{data}}') AS page)
