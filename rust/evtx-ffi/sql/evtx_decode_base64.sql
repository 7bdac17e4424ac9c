-- evtx_decode_base64(text)
--
-- The text that a base64 text holds, in UTF-16LE as PowerShell has it, or in UTF-8; NULL for what is no base64, or
-- holds no text. White space, missing padding and the alphabet of URLs do not matter.
--
-- SELECT evtx_decode_base64('dwBoAG8AYQBtAGkA')

list_transform(
    -- Without white space and padding. A group of four with one letter only is no base64.
    [regexp_replace(translate(text::VARCHAR, '-_', '+/'), '\s+|=+\s*$', '', 'g')],
    lambda plain: list_transform(
        [TRY(from_base64(CASE WHEN regexp_full_match(plain, '[A-Za-z0-9+/]+') AND len(plain) % 4 <> 1
                              THEN plain || repeat('=', (4 - len(plain) % 4) % 4) END))],
        lambda bytes: coalesce(
            -- UTF-8, but for the zeros behind it, unless it has letters that no text has: UTF-16 is full of them. If
            -- each second byte is a tab or the like, this is UTF-16 of an alphabet of India.
            list_transform(
                [CASE WHEN NOT regexp_full_match(hex(bytes), '(..0[9A-D]){3,}(0000)*')
                      THEN ltrim(rtrim(TRY(decode(bytes)), chr(0)), chr(65279)) END],
                lambda utf8: CASE WHEN NOT regexp_matches(utf8, '[\x00-\x06\x0e-\x1a\x1c-\x1f]')
                                  THEN nullif(utf8, '') END
            )[1],
            -- UTF-16LE: units of two bytes, two of which may be one letter. A half of such a pair becomes U+FFFD. Units
            -- below 0x80 are bytes of UTF-8.
            list_transform(
                [CASE
                    WHEN octet_length(bytes) % 2 <> 0 THEN NULL
                    WHEN regexp_full_match(hex(bytes), '([0-7].00)+')
                    THEN decode(unhex(regexp_replace(hex(bytes), '(..)00', '\1', 'g')))
                    ELSE array_to_string(list_transform(
                        regexp_extract_all(hex(bytes), '..D[89AB]..D[C-F]|....'),
                        lambda unit: chr(CASE len(unit)
                            WHEN 4 THEN CASE WHEN unit[3:3] = 'D' AND unit[4:4] >= '8' THEN 65533
                                             ELSE ('0x' || unit[3:4] || unit[1:2])::INTEGER END
                            ELSE 65536 + ((('0x' || unit[3:4] || unit[1:2])::INTEGER & 1023) << 10)
                                 + (('0x' || unit[7:8] || unit[5:6])::INTEGER & 1023)
                        END)
                    ), '')
                END],
                lambda utf16: list_transform(
                    [rtrim(ltrim(utf16, chr(65279)), chr(0))],
                    lambda whole: CASE
                        -- All letters are ones that Unicode has. Other bytes, read in pairs, give any letters. A text
                        -- starts with a byte order mark, or has two in three letters below U+2100, where the alphabets
                        -- of Europe and India are, or nine in ten of Chinese and Japanese, or of Korean.
                        WHEN regexp_full_match(
                            whole, '[\x07-\x0d\x1b\x{85}\p{L}\p{M}\p{N}\p{P}\p{S}\p{Z}\p{Cf}\p{Co}]+')
                         AND NOT contains(whole, chr(65533))
                         AND (starts_with(utf16, chr(65279))
                              OR len(regexp_replace(whole, '[\x00-\x{20FF}]+', '', 'g')) * 3 <= len(whole)
                              OR len(regexp_replace(
                                  whole, '[\p{Common}\p{Inherited}\p{Latin}\p{Hiragana}\p{Katakana}\x{4E00}-\x{9FFF}]+',
                                  '', 'g')) * 10 <= len(whole)
                              OR len(regexp_replace(
                                  whole, '[\p{Common}\p{Inherited}\p{Latin}\p{Hangul}]+', '', 'g')) * 10 <= len(whole))
                        THEN whole
                    END
                )[1]
            )[1]
        )
    )[1]
)[1]
