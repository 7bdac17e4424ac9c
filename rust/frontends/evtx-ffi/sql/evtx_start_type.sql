-- evtx_start_type(code)
--
-- The name of the start type of a service, such as Automatic for 2. NULL if it is unknown.
--
-- SELECT evtx_start_type(ServiceStartType) FROM read_evtx('Security.evtx', event_id := 4697)

evtx_code_name('start_type', code)
