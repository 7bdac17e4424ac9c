-- evtx_service_type(code)
--
-- The name of a service type, such as Own process for 0x10. NULL if it is unknown.
--
-- SELECT evtx_service_type(ServiceType) FROM read_evtx('Security.evtx', event_id := 4697)

evtx_code_name('service_type', code)
