-- evtx_event_name(provider, event_id)
--
-- What happened, in a few words, such as Service installed for 7045 of Service Control Manager. NULL for events without
-- a name.
--
-- SELECT evtx_event_name(provider, event_id), count(*) FROM read_evtx('*.evtx') GROUP BY ALL

evtx_code_name('event_name', provider || '/' || event_id)
