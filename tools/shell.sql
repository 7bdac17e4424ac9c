-- What `make shell` begins with.
CREATE VIEW samples AS FROM read_evtx('samples/*.evtx');
.print The extension is loaded. Some logs are in the folder samples, and the view samples has their events. Try:
.print
.print "    SELECT event_id, count(*) FROM samples GROUP BY ALL ORDER BY 2 DESC;"
.print "    SELECT time_created, TargetUserName, IpAddress FROM read_evtx('samples', event_id := 4625);"
.print "    SELECT rule_level, rule_title, count(*) FROM evtx_sigma('samples', rules := 'samples/rules') GROUP BY ALL;"
.print
