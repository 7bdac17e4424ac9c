-- evtx_names_of(table_name)
--
-- The rows of evtx_accounts_of, with the place where each name begins to hold: a record ID (place) in a log (log, a number). The number is 0
-- if there is no such place, and NULL if no event of the Security log has the name.
--
-- SELECT user_sid, user_name, log, place FROM evtx_names_of('events')

SELECT unnest(evtx_account_names(list(uses)), max_depth := 2)
FROM evtx_name_uses(table_name) AS uses
