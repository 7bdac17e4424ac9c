-- evtx_listed_facts(table_of_rows)
--
-- The facts of evtx_facts that the list of events makes: equal rows that follow each other within 24 hours are one.
--
-- SELECT fact, events FROM evtx_listed_facts('rows')

SELECT computer, topic, min(level) AS level, min(event) AS fact, min(time) AS first, max(time) AS last, count(*) AS events, account,
       min(account_sid) AS account_sid, source, target, detail,
       list_distinct(list_append(arg_min(record, number, 9), arg_max(record, number))) AS evidence,
       list_distinct(flatten(list(doubts))) AS doubts
FROM (SELECT *, count(*) FILTER (is_new) OVER (PARTITION BY key ORDER BY number ASC) AS run
      FROM (SELECT *, coalesce(log_time - lag(log_time) OVER (PARTITION BY key ORDER BY number ASC) > INTERVAL 24 HOURS, true) AS is_new
            FROM (SELECT *, md5_number({computer: computer, topic: topic, event: event, account: account, sid: account_sid, source: source,
                                        target: target, detail: detail}::VARCHAR) AS key
                  FROM query_table(table_of_rows) WHERE topic <> 'connections' AND NOT is_start AND new_time IS NULL AND NOT is_failure)))
GROUP BY key, run, computer, topic, account, source, target, detail
