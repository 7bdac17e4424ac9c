-- evtx_remote_host(host, computer := NULL, written_by := 'windows')
--
-- The name or address of another machine, without backslashes, brackets, ::ffff:, a port and the rest of a path. NULL for
-- this machine: the name of the computer itself, also cut to 15 letters, localhost, LOCAL, 127.0.0.1, ::1, and addresses and
-- names that say nothing, such as 0.0.0.0. A name that the other machine claims (written_by := 'client') is not read as an
-- address or a path.
--
-- SELECT evtx_remote_host('[::ffff:10.0.0.1]:445')

evtx_other_machine(host, computer, written_by)
