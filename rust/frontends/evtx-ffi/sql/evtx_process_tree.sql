-- evtx_process_tree(files, password := NULL)
--
-- A row per process start in the Security log (4688, 4689) and in Sysmon (1, 5), with the parent and the depth of the
-- process. A process that both have logged is one row. Ordered by tree_order, children come after their parents.
--
-- SELECT time_created, tree, command_line, user_name FROM evtx_process_tree('logs') ORDER BY computer, tree_order

WITH evtx_logs AS NOT MATERIALIZED (FROM read_evtx(files, password := password))
FROM evtx_process_tree_of('evtx_logs')
