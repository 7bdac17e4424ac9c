-- evtx_protocol(code)
--
-- The name of an Internet protocol, such as TCP for 6. NULL if it is unknown.
--
-- SELECT evtx_protocol(Protocol) FROM read_evtx('Security.evtx', event_id := 5156)

evtx_code_name('protocol', code)
