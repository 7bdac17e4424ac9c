-- evtx_accounts_of(table_name)
--
-- evtx_accounts over a table, a view or a Parquet file with the columns of read_evtx.
--
-- SELECT DISTINCT user_sid, user_name FROM evtx_accounts_of('events')

SELECT unnest(evtx_account_names(names), max_depth := 2) FROM evtx_names_of(table_name)
