-- evtx_csv_safe(text)
--
-- A text for a cell of a CSV file: a ' comes before what a spreadsheet would run as a formula. That is =, +, - or @ at
-- the start of the text, and after each semicolon, tab or line break, where another locale starts a cell. White space,
-- quotes and characters that are not shown do not count. Numbers stay as they are.
--
-- SELECT evtx_csv_safe('=cmd|''/c calc''!A0')

CASE WHEN regexp_full_match(text, '[+-]?[\d.]*') THEN text
     -- Japanese and Chinese versions of Excel take the wide forms of these characters, too. Each cell has its own mark, so
     -- what starts a cell is not skipped as white space.
     ELSE regexp_replace(text, '(^|[;\t\r\n])([\x{0}-\x{8}\x{b}\x{c}\x{e}-\x{1f}\x{7f}-\x{9f}\p{Z}\p{Cf}"'']*[=+\-@＝＋－＠])',
                         '\1''\2', 'g') END
