-- evtx_sigma_summary(files, rules, min_level := NULL, status := NULL, exclude := NULL, logsources := NULL, placeholders := NULL, password := NULL)
--
-- A row per computer and Sigma rule that matches there: the level, the rule with its tactics of ATT&CK, how many
-- matches, and the times of the first and the last.
--
-- SELECT * FROM evtx_sigma_summary('logs', 'rules') ORDER BY level DESC, matches DESC

WITH evtx_sigma_rows AS NOT MATERIALIZED (
    FROM evtx_sigma(files, rules := rules, min_level := min_level, status := status, exclude := exclude,
                    logsources := logsources, placeholders := placeholders, password := password)
)
FROM evtx_sigma_summary_of('evtx_sigma_rows')
