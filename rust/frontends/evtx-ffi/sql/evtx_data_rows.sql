-- evtx_data_rows(table_name)
--
-- The rows of a table of events, with the columns data, attributes and element added. data has the fields of event_data or
-- user_data. In user_data, one element usually contains them: element is its name, and attributes has its attributes.
--
-- SELECT element, data['SubjectUserName'] FROM evtx_data_rows('events') WHERE event_id = 1102

SELECT * EXCLUDE content,
    CASE WHEN user_data IS NULL THEN event_data
         ELSE TRY_CAST(coalesce(content, user_data) AS MAP(VARCHAR, VARCHAR)) END AS data,
    TRY_CAST(content->'$."#attributes"' AS MAP(VARCHAR, VARCHAR)) AS attributes,
    json_keys(user_data)[1] AS element
FROM (SELECT *, CASE WHEN json_type(user_data, '$.*') = ['OBJECT'] THEN (user_data->'$.*')[1] END AS content
      FROM query_table(table_name))
