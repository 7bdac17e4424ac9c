-- evtx_event_data(entries)
--
-- A map such as event_data from a list of structs `{key, value}`: unnamed values become param1, param2, …, and a name that
-- occurs again gets a number: name_1. NULL if the names are still not unique, or if an event has 1,000 such values.
--
-- SELECT evtx_event_data([{key: NULL, value: 'a'}, {key: 'b', value: 'c'}, {key: 'b', value: 'd'}])

CASE WHEN list_unique(list_transform(entries, lambda e: e.key)) = len(entries) THEN map_from_entries(entries)
     -- Its time grows with the square of the length.
     WHEN len(entries) < 1000 THEN TRY(map_from_entries(list_transform(entries, lambda e, i: {
         key: CASE WHEN e.key IS NULL THEN 'param' || len(list_filter(entries[:i], lambda other: other.key IS NULL))
                   ELSE e.key || coalesce('_' || nullif(len(list_filter(entries[:i - 1], lambda other: other.key = e.key)), 0), '') END,
         value: e.value})))
END
