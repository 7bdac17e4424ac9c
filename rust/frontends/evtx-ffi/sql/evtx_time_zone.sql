-- evtx_time_zone(name)
--
-- The IANA name of a time zone of Windows, such as Europe/Berlin for W. Europe Standard Time, also as event 6013 writes
-- it: -60 W. Europe Standard Time. AT TIME ZONE takes it. NULL if the name is unknown, or not English.
--
-- SELECT evtx_time_zone(param7) FROM read_evtx('System.evtx', event_id := 6013, provider := 'EventLog')

evtx_code_name('time_zone', regexp_replace(name, '^-?\d+ ', ''))
