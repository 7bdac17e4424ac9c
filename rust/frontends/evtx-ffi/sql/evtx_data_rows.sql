-- evtx_data_rows(table_name)
--
-- The rows of a table of events, with the columns data, attributes and element added. data has the fields of event_data and
-- user_data. In user_data, one element usually contains them: element is its name, and attributes has its attributes.
--
-- SELECT element, data['SubjectUserName'] FROM evtx_data_rows('events') WHERE event_id = 1102

SELECT * EXCLUDE content, -- A planted event can have both.
    CASE WHEN user_data IS NULL THEN event_data WHEN cardinality(event_data) > 0 THEN map_concat(event_data, content.fields) ELSE content.fields END AS data,
    content.attributes AS attributes, content.element AS element
FROM (SELECT *, evtx_user_data_fields(user_data) AS content FROM query_table(table_name))
