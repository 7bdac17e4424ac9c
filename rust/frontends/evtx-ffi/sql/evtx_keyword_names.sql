-- evtx_keyword_names(keywords)
--
-- The names of the keywords of an event that Windows itself defines, such as Audit Failure. An empty list if there is
-- none.
--
-- SELECT * FROM 'Security.evtx' WHERE list_contains(evtx_keyword_names(keywords), 'Audit Failure')

-- Source: winmeta.xml of the Windows SDK. Windows has taken the upper sixteen bits for itself; the others are a
-- provider's own.
CASE WHEN keywords IS NOT NULL THEN list_filter(
    ['Response Time', 'WDI Context', 'WDI Diagnostic', 'SQM', 'Audit Failure', 'Audit Success', 'Correlation Hint', 'Classic'],
    lambda name, place: (keywords >> (47 + place)::UTINYINT) & 1 = 1) END
