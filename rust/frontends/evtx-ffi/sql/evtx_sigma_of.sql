-- evtx_sigma_of(table_name, rules, min_level := NULL, status := NULL, exclude := NULL, level_tuning := NULL, logsources := NULL, placeholders := NULL, password := NULL)
--
-- evtx_sigma over a table, a view or a Parquet file with the columns of read_evtx. Columns that the table lacks are fields
-- that its events lack, but it needs `channel` and `provider`.
--
-- SELECT time_created, computer, rule_title, matched FROM evtx_sigma_of('events', 'rules') WHERE rule_level >= 'high'

FROM evtx_sigma_rows(table_name, to_json({
    rules: rules, min_level: min_level, status: status, exclude: exclude, level_tuning: level_tuning,
    logsources: logsources, placeholders: placeholders, password: password}))
