-- evtx_csv_safe(text)
--
-- A text for a cell of a CSV file: a ' comes before what a spreadsheet would run as a formula. That is =, +, - or @ at
-- the start, or after a semicolon, tab or line break, where another locale starts a cell. Numbers stay as they are.
--
-- SELECT evtx_csv_safe('=cmd|''/c calc''!A0')

CASE WHEN regexp_full_match(text, '[+-]?[\d.]*') THEN text
     -- Japanese and Chinese versions of Excel take the wide forms of these characters, too.
     ELSE regexp_replace(text, '(^|[;\t\r\n])([\s"'']*[=+\-@＝＋－＠])', '\1''\2', 'g') END
