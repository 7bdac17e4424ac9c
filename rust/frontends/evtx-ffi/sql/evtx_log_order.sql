-- evtx_log_order(table_name)
--
-- The order of records, which macros share: a row per digest, with its computer, its time by the clock of its machine as it was set last, and
-- whether another record claims its place. The table has the columns digest, computer, channel, filename, record_id,
-- event_record_id and time_created, the old_time and new_time of records that say that the clock was set, and is_late of those
-- that are written long after their time.
--
-- SELECT log_time, is_contested FROM evtx_log_order('records')

-- In a list, the records of a log follow each other. DuckDB takes three times the memory to order lists in the aggregate.
WITH records_of_logs AS (
    SELECT computer, list_sort(list({
            log: hash(filename, lower(channel)), place: coalesce(record_id, event_record_id), time: time_created,
            old_time: old_time, new_time: new_time, is_late: is_late, number: event_record_id, channel: hash(lower(channel)),
            shift: event_record_id::HUGEINT - record_id::HUGEINT, digest: digest}), 'ASC', 'NULLS LAST') AS records
    FROM query_table(table_name)
    GROUP BY computer
),
placed AS MATERIALIZED (
    SELECT computer, hash(computer, channel) AS channel, hash(computer, log) AS log, digest, number, shift, log_time FROM (
        SELECT computer, unnest(records, max_depth := 2), unnest(evtx_log_times(
            list_transform(records, lambda record: record.log), list_transform(records, lambda record: TRY_CAST(record.number AS UBIGINT)),
            list_transform(records, lambda record: record.time), list_transform(records, lambda record: record.old_time),
            list_transform(records, lambda record: record.new_time), list_transform(records, lambda record: record.is_late))) AS log_time
        FROM records_of_logs)
),
-- A log that was cleared has each number again later, and a log of forwarded events has those from before and after. An export
-- numbers records anew. In the other logs, most numbers of records differ from those of their events by the same.
logs AS (SELECT log, count(*) AS records FROM placed GROUP BY log),
spans AS (
    SELECT log, shift, min(log_time) AS span_start, max(log_time) AS span_end
    FROM placed JOIN logs USING (log)
    GROUP BY log, shift, records
    HAVING 2 * count(shift) > records
),
-- A record in several copies of a log counts once. The largest of them knows best when it was written.
once AS (
    SELECT digest, min(computer) AS computer, channel, number, arg_min(log_time, (-records, log_time)) AS log_time,
           coalesce(min(span_start), min(log_time)) AS span_start, coalesce(max(span_end), max(log_time)) AS span_end
    FROM placed JOIN logs USING (log) LEFT JOIN spans ON spans.log = placed.log AND spans.shift = placed.shift
    GROUP BY digest, channel, number
)
-- Another record claims the place: its number, in a log of the same time.
SELECT computer, digest, log_time, number IS NOT NULL
       AND (coalesce(max(span_end) OVER earlier >= span_start, false)
            OR coalesce(min(span_start) OVER later <= span_end, false)) AS is_contested
FROM once
WINDOW earlier AS (PARTITION BY channel, number ORDER BY span_start ASC NULLS LAST
                   ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING),
       later AS (PARTITION BY channel, number ORDER BY span_start ASC NULLS LAST
                 ROWS BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING)
