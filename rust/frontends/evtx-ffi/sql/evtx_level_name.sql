-- evtx_level_name(level)
--
-- The name of the level of an event: LogAlways, Critical, Error, Warning, Information or Verbose. NULL if it is
-- unknown.
--
-- SELECT evtx_level_name(level), count(*) FROM 'System.evtx' GROUP BY ALL

-- Source: winmeta.xml of the Windows SDK. Event Viewer shows these names.
CASE level WHEN 0 THEN 'LogAlways' WHEN 1 THEN 'Critical' WHEN 2 THEN 'Error' WHEN 3 THEN 'Warning' WHEN 4 THEN 'Information'
           WHEN 5 THEN 'Verbose' END
