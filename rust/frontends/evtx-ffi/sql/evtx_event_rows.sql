-- evtx_event_rows(table_name, table_of_accounts)
--
-- The part of evtx_timeline that other macros share: the rows of a table of events, with the columns event, user_name,
-- remote_host, process and details added. The other table, with the columns of evtx_names_of, names SIDs.
--
-- SELECT event, user_name, details FROM evtx_event_rows('events', 'accounts')

-- The names of a SID from the first, on all computers, and on each if there are several. A SID with more names than a row should
-- carry has none. DuckDB would take three times the memory to order the entries in the aggregate.
WITH names_of_sids AS (
    SELECT sid, list_sort(list({since: since, name: name}), 'ASC', 'NULLS LAST') AS names
    FROM (SELECT user_sid AS sid, min(first_seen) AS since, min(user_name) AS name
          FROM query_table(table_of_accounts)
          GROUP BY user_sid, lower(user_name), CASE WHEN is_renamed THEN first_seen END)
    GROUP BY sid
    HAVING count(*) <= 32
),
names_on_computers AS (
    SELECT user_sid AS sid, computer, list_sort(list({since: first_seen, name: user_name}), 'ASC', 'NULLS LAST') AS names,
           -- In the one log that has them, the order of records counts, because clocks are set.
           CASE WHEN min(log) = max(log) THEN min(log) END AS log,
           list_sort(list({place: place, since: first_seen, name: user_name}) FILTER (log IS NOT NULL), 'ASC', 'NULLS LAST') AS places
    FROM query_table(table_of_accounts)
    WHERE user_sid IN (SELECT user_sid FROM query_table(table_of_accounts) GROUP BY user_sid
                       HAVING min(computer) < max(computer) OR min(lower(user_name)) < max(lower(user_name)))
    GROUP BY ALL
    HAVING count(*) <= 32
),
-- DuckDB copies an expression to each use of its alias in the same SELECT, so each step is a query.
read AS (
    SELECT *, evtx_event_roles(
            provider, TRY_CAST(event_id AS UINTEGER), event_data, user_data, computer, user_sid) AS roles
    FROM evtx_data_rows(table_name)
),
identified AS (
    SELECT * EXCLUDE user_sid, roles.user_sid AS user_sid,
        nullif(concat_ws('\', roles.domain, roles.account), '') AS full_name,
        -- Most events have a name.
        CASE WHEN roles.account IS NULL OR roles.is_windows THEN roles.user_sid END AS unnamed
    FROM read
),
named AS (
    SELECT identified.*,
        coalesce(
            CASE WHEN unnamed IS NULL THEN full_name END,
            -- The name at this time, first of this computer.
            CASE WHEN len(anywhere.names) > 1 AND own.log = hash(filename, lower(channel)) AND record_id IS NOT NULL
                 THEN own.places[greatest(1, len(list_filter(own.places, lambda entry: entry.place <= record_id)))].name END,
            CASE WHEN len(anywhere.names) > 1
                 THEN own.names[greatest(1, len(list_filter(own.names, lambda entry: entry.since <= time_created)))].name END,
            anywhere.names[greatest(1, len(list_filter(anywhere.names, lambda entry: entry.since <= time_created)))].name,
            -- A name that longer SIDs have too, such as NT Service account, is that of many accounts.
            nullif(evtx_sid_name(unnamed), evtx_sid_name(unnamed || '-0')), full_name, unnamed) AS user_name
    FROM identified
    LEFT JOIN names_of_sids AS anywhere ON anywhere.sid = unnamed
    -- Few SIDs have several names.
    LEFT JOIN names_on_computers AS own
      ON own.sid = CASE WHEN len(anywhere.names) > 1 THEN unnamed END AND own.computer = identified.computer
)
SELECT
    * EXCLUDE (unnamed) REPLACE (nullif(user_sid, 'S-1-0-0') AS user_sid), roles.event AS event,
    roles.remote_host AS remote_host, roles.claims_own_name AS claims_own_name, roles.process AS process, roles.details AS details
FROM named
