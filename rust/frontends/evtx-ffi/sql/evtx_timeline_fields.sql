-- evtx_timeline_fields()
--
-- The events that evtx_timeline knows: the name of each, the topic and the level of facts about it, and the fields that fill its
-- columns. Topics, levels and fields with | between them are alternatives. Events without fields have no source.
--
-- SELECT * FROM evtx_timeline_fields() WHERE provider = 'OpenSSH'

SELECT part[1] AS provider, part[2]::UINTEGER AS event_id, part[3] AS event, nullif(part[4], '') AS topic,
    nullif(part[5], '') AS level, nullif(part[6], '') AS account, nullif(part[7], '') AS domain, nullif(part[8], '') AS sid,
    nullif(part[9], '') AS remote_host, nullif(part[10], '') AS process, nullif(part[11], '') AS target,
    nullif(part[12], '') AS detail, part[13] AS source
FROM (SELECT string_split(unnest(evtx_code_names('*events', '')), chr(9)) AS part)
