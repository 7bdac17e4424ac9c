-- evtx_pseudonymize(record, allow := NULL, key := NULL)
--
-- A record in which everything is replaced that is not allowed, for COPY ... TO (FORMAT evtx). Equal values get equal
-- pseudonyms under one key; without a key, in one process. allow is a list of provider/event/field, in which * means any,
-- and of words.
--
-- COPY (SELECT evtx_pseudonymize(record) AS record FROM read_evtx('Security.evtx', record := true)) TO 'shared.evtx' (FORMAT evtx)

evtx_pseudonymize_record(record, allow::VARCHAR[], "key"::VARCHAR)
