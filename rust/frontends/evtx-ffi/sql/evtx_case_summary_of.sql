-- evtx_case_summary_of(table_name, table_of_files := NULL)
--
-- evtx_case_summary over a table, a view or a Parquet file with the columns of read_evtx. `table_of_files`, with the columns of
-- evtx_file_metadata, tells which logs are wrapped.
--
-- FROM evtx_case_summary_of('events', table_of_files := 'files')

WITH evtx_case_summary_facts AS (
    SELECT computer, count(*) AS facts, count(*) FILTER (level = 'high') AS high_facts
    FROM evtx_facts_of(table_name, table_of_files := table_of_files)
    WHERE level <> 'info'
    GROUP BY computer
),
evtx_case_summary_machines AS MATERIALIZED (FROM evtx_machines_of(table_name))
SELECT machines.*, coalesce(facts, 0) AS facts, coalesce(high_facts, 0) AS high_facts
FROM evtx_case_machines(table_name, 'evtx_case_summary_machines') AS machines LEFT JOIN evtx_case_summary_facts USING (computer)
