-- evtx_level_name(level)
--
-- The name of an event's level: LogAlways, Critical, Error, Warning, Information or Verbose; NULL for another.
--
-- SELECT evtx_level_name(level), count(*) FROM 'System.evtx' GROUP BY ALL

-- Source: winmeta.xml of the Windows SDK. Event Viewer shows these names.
CASE level
    WHEN 0 THEN 'LogAlways'
    WHEN 1 THEN 'Critical'
    WHEN 2 THEN 'Error'
    WHEN 3 THEN 'Warning'
    WHEN 4 THEN 'Information'
    WHEN 5 THEN 'Verbose'
END
