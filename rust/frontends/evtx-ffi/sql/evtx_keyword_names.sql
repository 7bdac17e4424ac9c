-- evtx_keyword_names(keywords)
--
-- The names of the keywords of an event that Windows itself defines, such as Audit Failure. An empty list if there is
-- none.
--
-- SELECT * FROM 'Security.evtx' WHERE list_contains(evtx_keyword_names(keywords), 'Audit Failure')

-- Source: winmeta.xml of the Windows SDK. Windows has taken the upper sixteen bits for itself; the others are a
-- provider's own.
CASE WHEN keywords IS NOT NULL THEN list_filter([
    CASE WHEN (keywords >> 48) & 1 = 1 THEN 'Response Time' END,
    CASE WHEN (keywords >> 49) & 1 = 1 THEN 'WDI Context' END,
    CASE WHEN (keywords >> 50) & 1 = 1 THEN 'WDI Diagnostic' END,
    CASE WHEN (keywords >> 51) & 1 = 1 THEN 'SQM' END,
    CASE WHEN (keywords >> 52) & 1 = 1 THEN 'Audit Failure' END,
    CASE WHEN (keywords >> 53) & 1 = 1 THEN 'Audit Success' END,
    CASE WHEN (keywords >> 54) & 1 = 1 THEN 'Correlation Hint' END,
    CASE WHEN (keywords >> 55) & 1 = 1 THEN 'Classic' END
], lambda name: name IS NOT NULL) END
