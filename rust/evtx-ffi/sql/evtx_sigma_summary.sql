-- evtx_sigma_summary(files, rules, min_level := NULL, status := NULL, exclude := NULL, logsources := NULL, placeholders := NULL, password := NULL)
--
-- A row per computer and Sigma rule that matches there: the level, the rule with its tactics of ATT&CK, how many
-- matches, and the times of the first and the last.
--
-- SELECT * FROM evtx_sigma_summary('logs', 'rules') ORDER BY level DESC, matches DESC

WITH matches AS (
    SELECT computer, rule_level::evtx_level AS level, rule_title AS title, evtx_attack_tactics(tags) AS tactics,
        coalesce(correlation.first_time, time_created) AS first_time, time_created, rule_id
    FROM evtx_sigma(files, rules := rules, min_level := min_level, status := status, exclude := exclude,
                    logsources := logsources, placeholders := placeholders, password := password)
    -- Damage has no rule.
    WHERE rule_title IS NOT NULL
)
SELECT computer, level, title, tactics, count(*) AS matches, min(first_time) AS first_match,
       max(time_created) AS last_match, rule_id
FROM matches
GROUP BY ALL
