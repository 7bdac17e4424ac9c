-- evtx_start_type(code)
--
-- The name of the way in which a service starts, such as Automatic for 2; NULL for another.
--
-- SELECT evtx_start_type(ServiceStartType) FROM read_evtx('Security.evtx', event_id := 4697)

evtx_code_name('start_type', code)
