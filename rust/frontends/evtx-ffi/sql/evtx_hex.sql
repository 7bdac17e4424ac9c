-- evtx_hex(number)
--
-- The number in hexadecimal, as Event Viewer shows it, such as 0x3e7. Takes text too, such as values of event_data.
-- NULL if it is not a whole number, or has more than 64 bits.
--
-- SELECT evtx_hex(Status), count(*) FROM read_evtx('Security.evtx', event_id := 4625) GROUP BY ALL

CASE
    WHEN (regexp_matches(typeof(number), 'INT(EGER)?$')
          OR regexp_full_match(number::VARCHAR, '\s*([-+]?\d+(\.0*)?|0[xX][0-9a-fA-F]+)\s*'))
     -- DuckDB 1.5 casts hexadecimal digits to numbers of 64 bits only.
     AND coalesce(TRY_CAST(number AS HUGEINT), TRY_CAST(number AS UBIGINT)) BETWEEN -9223372036854775808 AND 18446744073709551615
    -- A negative number has as many bits as its type.
    THEN '0x' || lower(to_hex((coalesce(TRY_CAST(number AS HUGEINT), TRY_CAST(number AS UBIGINT)) & CASE typeof(number)
        WHEN 'TINYINT' THEN 255 WHEN 'SMALLINT' THEN 65535 WHEN 'INTEGER' THEN 4294967295 ELSE 18446744073709551615 END)::UBIGINT))
END
