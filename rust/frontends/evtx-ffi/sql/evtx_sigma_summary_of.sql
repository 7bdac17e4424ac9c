-- evtx_sigma_summary_of(table_name)
--
-- evtx_sigma_summary over a table, a view or a Parquet file with the columns of evtx_sigma.
--
-- SELECT * FROM evtx_sigma_summary_of('matches') ORDER BY level DESC, matches DESC

WITH evtx_sigma_summary_matches AS (
    SELECT computer, rule_level::evtx_level AS level, rule_title AS title, evtx_attack_tactics(tags) AS tactics,
        coalesce(correlation.first_time, time_created) AS first_time, time_created, rule_id
    FROM query_table(table_name)
    -- Damage has no rule.
    WHERE rule_title IS NOT NULL
)
SELECT computer, level, title, tactics, count(*) AS matches, min(first_time) AS first_match,
       max(time_created) AS last_match, rule_id
FROM evtx_sigma_summary_matches
GROUP BY ALL
