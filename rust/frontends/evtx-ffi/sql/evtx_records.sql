-- evtx_records(content, filename := NULL)
--
-- The rows of read_evtx for a log that is a value, such as those of read_blob. filename is the name of the log in the rows. It also
-- tells what is an archive.
--
-- SELECT r.* FROM read_blob('*.evtx') AS b, evtx_records(b.content, filename := b.filename) AS r

-- In this form, DuckDB makes no join of it.
SELECT * REPLACE (user_data::JSON AS user_data)
FROM (SELECT found.* FROM (SELECT evtx_content_row(content, filename, unnest(evtx_content_rows(content, filename))) AS found))
