-- evtx_duration(seconds)
--
-- A number of seconds in words, with its two largest units: 3 d 4 h, 2 h 5 min, 45 s.
--
-- SELECT evtx_duration(7500)

CASE WHEN seconds >= 86400 THEN concat(seconds::BIGINT // 86400, ' d ', seconds::BIGINT % 86400 // 3600, ' h')
     WHEN seconds >= 3600 THEN concat(seconds::BIGINT // 3600, ' h ', seconds::BIGINT % 3600 // 60, ' min')
     WHEN seconds >= 60 THEN concat(seconds::BIGINT // 60, ' min ', seconds::BIGINT % 60, ' s') ELSE concat(seconds::BIGINT, ' s') END
