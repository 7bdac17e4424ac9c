-- evtx_names_of(table_name)
--
-- The rows of evtx_accounts_of, with the place where each name begins to hold: a record ID (place) in a log (log, a number). The number is 0
-- if there is no such place, and NULL if no event of the Security log has the name.
--
-- SELECT user_sid, user_name, log, place FROM evtx_names_of('events')

SELECT unnest(evtx_account_names(list(uses)), max_depth := 2)
FROM (
    SELECT computer, sid, domain, name, evidence, min(log) AS log, max(log) AS last_log, TRY_CAST(min(place) AS UBIGINT) AS place, list(seen) AS times
    FROM (
        -- 1074 is in the System log, all others in the Security log, whose order tells when an account was renamed.
        SELECT computer, CASE WHEN event_id <> 1074 THEN hash(filename, lower(channel)) END AS log, CASE WHEN log IS NOT NULL THEN record_id END AS place,
               unnest(evtx_record_names(provider, TRY_CAST(event_id AS UINTEGER), time_created, user_sid, event_data, user_data), max_depth := 2)
        FROM query_table(table_name)
        WHERE lower(provider) IN ({{name providers}}) AND event_id IN ({{name events}}))
    GROUP BY computer, sid, domain, name, evidence, CASE WHEN evidence = 'renamed' THEN seen END) AS uses
