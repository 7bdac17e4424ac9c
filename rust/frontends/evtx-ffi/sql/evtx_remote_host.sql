-- evtx_remote_host(host, computer := NULL)
--
-- The name or address of another machine, without backslashes, brackets, ::ffff: and a port. NULL for this machine: the
-- name of the computer itself, localhost, LOCAL, 127.0.0.1, ::1, and addresses and names that say nothing, such as
-- 0.0.0.0.
--
-- SELECT evtx_remote_host('[::ffff:10.0.0.1]:445')

CASE WHEN host IS NOT NULL THEN list_filter(
    [regexp_replace(host, '^\\*(?:\[?(?:::ffff:)?([^:\[\]]+)\]?(?::\d+)?|\[([^\]]+)\](?::\d+)?)$', '\1\2', 'i')],
    lambda machine: lower(machine) NOT IN (
            '', '-', 'null', '::', '0.0.0.0', 'local', 'localhost', '::1', coalesce(lower(computer), ''),
            coalesce(lower(split_part(computer, '.', 1)), ''))
        AND NOT regexp_matches(machine, '^(?i:127(?:\.\d+){3}$|localhost \(|<)')
)[1] END
