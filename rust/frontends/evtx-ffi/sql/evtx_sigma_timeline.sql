-- evtx_sigma_timeline(files, rules, min_level := NULL, status := NULL, exclude := NULL, logsources := NULL, placeholders := NULL, messages := 'LocaleMetaData/{log}_*.[Mm][Tt][Aa]', password := NULL)
--
-- A row per match of a Sigma rule, for people: when, where, the rule with its level, tactics and techniques of ATT&CK,
-- and what happened, with the columns of evtx_timeline. What made the rule true is one line of about 200 characters.
-- A correlation has the first time and the number of its events. Damage, which can hide a match, is a row without a
-- rule.
--
-- SELECT * FROM evtx_sigma_timeline('logs', 'rules') WHERE level >= 'high' ORDER BY time_created

WITH evtx_logs AS NOT MATERIALIZED (FROM read_evtx(files, password := password)),
evtx_sigma_rows AS NOT MATERIALIZED (
    FROM evtx_sigma(files, rules := rules, min_level := min_level, status := status, exclude := exclude,
                    logsources := logsources, placeholders := placeholders, messages := messages, password := password)
)
FROM evtx_sigma_timeline_of('evtx_sigma_rows', table_of_events := 'evtx_logs')
