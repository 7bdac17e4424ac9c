"""Filter pushdown saves work and never changes the rows."""

import json
import random

import duckdb
import pytest
from client import quoted
from conftest import DOCUMENTED, SAMPLES, loaded, rows_with_and_without_pushdown

ALL_LOGS = f"read_evtx('{SAMPLES}/*.evtx')"
LOGS = f"read_evtx('{SAMPLES}/*.evtx', location := true, text := true)"
COMPARISONS = ["=", "<>", "<", "<=", ">", ">=", "IS DISTINCT FROM", "IS NOT DISTINCT FROM"]
# Columns whose predicates are pushed down.
COLUMNS = [(name, kind) for name, kind, path in DOCUMENTED if name in ("filename", "record_id", "chunk_index", "record_offset") or path.startswith("System/")]
NUMBERS = [name for name, kind in COLUMNS if kind in ("UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT")]
TEXTS = [name for name, kind in COLUMNS if kind == "VARCHAR"]
OTHERS = [name for name, kind in COLUMNS if kind in ("TIMESTAMP_NS", "UUID")]
# Characters with unusual case mappings, and ordinary letters that they map to.
ODD = ["\u00df", "\u1e9e", "\u0130", "\u0131", "\u017f", "\u212a", "\u03a3", "\u03c2", "\u03c3", "k", "K", "i", "I", "s", "\U00010400"]
KEYS = ["TargetUserName", "IpAddress", "LogonType", "param1", "Image", "no such key"]


@pytest.fixture(name="values", scope="module")
def fixture_values():
    """Values of each column as literals: from the logs, and a few others."""
    connection = loaded()
    values = {}
    for column in NUMBERS + TEXTS + OTHERS + [f"event_data['{key}']" for key in KEYS]:
        rows = connection.execute(f"SELECT DISTINCT ({column})::VARCHAR FROM {LOGS} ORDER BY 1 NULLS LAST").fetchall()
        found = [value for (value,) in rows if value is not None]
        if column in NUMBERS:
            values[column] = [*found, "0", "1", "255"]
        else:
            values[column] = [quoted(value) for value in found]
            if column in TEXTS or "[" in column:
                values[column] += ["''", "'A'", "'zz'", "'DC01.northwind.exampl'", "'ü'"]
    texts = connection.execute(f"SELECT text FROM {LOGS} WHERE text IS NOT NULL ORDER BY hash(text) LIMIT 40").fetchall()
    lines = sorted({line for (text,) in texts for line in text.split("\n")})
    values["text"] = [quoted(line) for line in lines]
    return values


def like(rng, column, value):
    """LIKE, ILIKE or an equivalent function, with a pattern from a part of a value."""
    value = value[1:-1].replace("''", "'")
    start = rng.randint(0, len(value))
    part = value[start : start + rng.randint(0, 8)]
    if rng.random() < 0.3:
        part = rng.choice([str.upper, str.lower, str.swapcase])(part)
    if rng.random() < 0.2:
        part = part[: rng.randint(0, len(part))] + rng.choice(ODD) + part[len(part) // 2 :]
    if rng.random() < 0.3:
        of = rng.choice(["contains({}, {})", "contains(lower({}), {})", "contains(lower({}), lower({}))", "lower({}) = {}"])
        return of.format(column, quoted(part))
    if len(part) > 1 and rng.random() < 0.5:
        at = rng.randint(1, len(part) - 1)
        part = part[:at] + rng.choice(["%", "_"]) + part[at + rng.randint(0, 1) :]
    pattern = rng.choice(["{}%", "%{}", "%{}%", "%{}%", "{}"]).format(part)
    operator = rng.choice(["LIKE", "ILIKE", "ILIKE", "NOT LIKE", "NOT ILIKE"])
    if rng.random() < 0.2:
        return f"{column} {operator} {quoted(pattern.replace('$', '$$'))} ESCAPE '$'"
    return f"{column} {operator} {quoted(pattern)}"


def predicate(rng, values, depth=0):
    """A random predicate."""
    shape = rng.random()
    if depth < 3 and shape < 0.35:
        junction = rng.choice([" AND ", " OR "])
        return "(" + junction.join(predicate(rng, values, depth + 1) for _ in range(rng.randint(2, 3))) + ")"
    if depth < 3 and shape < 0.45:
        return f"NOT {predicate(rng, values, depth + 1)}"
    column = rng.choice([column for column in values if values[column]])
    pick = lambda: rng.choice(values[column])  # noqa: E731
    test = rng.choice(["compare", "compare", "compare", "in", "null", "between", "range", "like"])
    if test == "null":
        return f"{column} IS {rng.choice(['', 'NOT '])}NULL"
    if test == "in":
        return f"{column} {rng.choice(['', 'NOT '])}IN ({', '.join(pick() for _ in range(rng.randint(1, 4)))})"
    if test == "between":
        return f"{column} {rng.choice(['', 'NOT '])}BETWEEN {pick()} AND {pick()}"
    if test == "range":
        # DuckDB merges both into one node, which does not say whether the bounds are included.
        return f"({column} {rng.choice(['>', '>='])} {pick()} AND {column} {rng.choice(['<', '<='])} {pick()})"
    if test == "like" and (column in TEXTS or "[" in column):
        return like(rng, column, pick())
    if column == "text":
        return like(rng, column, pick())
    if test == "compare" and rng.random() < 0.2:
        return f"{pick()} {rng.choice(COMPARISONS[:6])} {column}"
    return f"{column} {rng.choice(COMPARISONS)} {pick()}"


def scanned(connection, query):
    """The number of rows that each scan of a query returns to DuckDB."""
    (text,) = connection.execute(f"EXPLAIN (ANALYZE, FORMAT json) {query}").fetchall()[0][1:]
    rows = []

    def visit(operator):
        if operator.get("extra_info", {}).get("Function") == "READ_EVTX":
            rows.append(operator["intermediate_rows"])
        for child in operator.get("children", []):
            visit(child)

    for operator in json.loads(text)["operator"]:
        visit(operator)
    return sorted(rows)


def test_generated_predicates_give_the_same_rows(values):
    rng = random.Random(20240305)
    on, off = loaded(), loaded()
    off.execute("SET evtx_filter_pushdown = false")
    exact = rows = 0
    for _ in range(600):
        where = predicate(rng, values)
        columns = rng.choice(["filename, record_id", "*", "event_id, error", "count(*)"])
        query = f"SELECT {columns} FROM {LOGS} WHERE {where}"
        expected = off.execute(query).fetchall()
        assert on.execute(query).fetchall() == expected, where
        rows += len(expected)
        wanted = off.execute(f"SELECT count(*) FROM {LOGS} WHERE {where}").fetchall()[0][0]
        exact += sum(scanned(on, query)) == wanted
    print(f"600 predicates, {exact} of them evaluated entirely by the scan, {rows} rows")
    assert exact > 350
    assert rows > 10_000


# With `recover`, no record is skipped for what its header says.
@pytest.mark.parametrize("unset", [["verify"], ["verify", "recover"]])
def test_every_column_is_compared_as_itself(unset):
    """The columns and the options that add them are those that DuckDB lists, so a new one is here, too."""
    on, off = loaded(), loaded()
    off.execute("SET evtx_filter_pushdown = false")
    signature = "SELECT parameters, parameter_types FROM duckdb_functions() WHERE function_name = 'read_evtx'"
    names, types = on.execute(signature).fetchone()
    options = [f"{name} := true" for name, type_name in zip(names, types) if type_name == "BOOLEAN" and name not in unset]
    logs = f"read_evtx('{SAMPLES}/*.evtx', {', '.join(options)})"
    columns = on.execute(f"DESCRIBE FROM {logs}").fetchall()
    assert len(columns) >= 36 - len(unset)
    for name, type_name, *_ in columns:
        distinct = f"SELECT DISTINCT {name} FROM {logs} WHERE {name} IS NOT NULL"
        values = off.execute(f"SELECT {name}::VARCHAR FROM ({distinct}) ORDER BY hash({name}::VARCHAR) LIMIT 2").fetchall()
        literals = [f"{quoted(value)}::{type_name}" for (value,) in values if type_name != "BLOB" and len(value) < 10_000]
        wheres = [f"{name} IS NULL", f"{name} IS NOT NULL"]
        for literal in literals:
            wheres += [f"{name} {comparison} {literal}" for comparison in ["=", "<", ">="]]
            wheres += [f"{name} BETWEEN {literal} AND {literals[0]}", f"{name} IN ({', '.join(literals)})", f"NOT ({name} > {literal})"]
        for where in wheres:
            query = f"SELECT filename, record_id FROM {logs} WHERE {where} ORDER BY ALL"
            assert on.execute(query).fetchall() == off.execute(query).fetchall(), where


@pytest.mark.parametrize(
    "where",
    [
        "event_id = 4625",
        "event_id = 4625 AND time_created >= TIMESTAMP '2024-03-05 08:00:00'",
        "event_id IN (4624, 4625) OR level BETWEEN 1 AND 3",
        "event_data['TargetUserName'] = 'svc-backup'",
        "event_data['TargetUserName'] LIKE 'svc%'",
        "computer LIKE '%northwind%' AND channel <> 'System'",
        "provider_guid = '54849625-5478-4994-a5ba-3e3b0328c30d'",
        "activity_id IS NOT NULL",
        "NOT (event_id = 4625 OR event_id IS NULL)",
        "filename LIKE '%Security.evtx'",
        "record_id < 88300",
        "text ILIKE '%c:\\windows%'",
        "text LIKE '%4625%svc-backup%'",
        "contains(lower(text), lower('Svc-Backup'))",
        "contains(text, 'svc-backup') AND event_id = 4624",
        "event_data['TargetUserName'] ILIKE '%BACK_P%'",
        "computer ILIKE '%dc01%'",
        "computer COLLATE NOCASE = 'dc01.northwind.example'",
        "text ILIKE '%svc$_backup%' ESCAPE '$' OR text ILIKE '%mimikatz%' OR text ILIKE '%svc-back%'",
    ],
)
def test_what_is_not_wanted_is_not_built(where):
    connection = loaded()
    query = f"SELECT record_id FROM {LOGS} WHERE {where}"
    (scanned_rows,) = scanned(connection, query)
    assert scanned_rows == len(connection.execute(query).fetchall()) > 0
    connection.execute("SET evtx_filter_pushdown = false")
    assert scanned(connection, query) > [scanned_rows]


@pytest.mark.parametrize(
    "where",
    [
        "event_id::VARCHAR = '4625'",
        "event_data['LogonType']::INT = 3",
        "computer NOT ILIKE 'dc%'",
        "computer LIKE '%_%'",
        "upper(computer) = 'DC01.NORTHWIND.EXAMPLE'",
        "regexp_matches(text, 'a.c')",
        "error IS NULL",
        "message IS NOT NULL",
        "event_id = level",
        "event_data['TargetUserName'] = event_data['SubjectUserName']",
        "user_data IS NULL",
        "event_id = 4625 OR upper(computer) = 'X'",
    ],
)
def test_what_the_core_does_not_know_is_left_to_duckdb(where):
    connection = loaded()
    query = f"SELECT count(*) FROM {LOGS} WHERE {where}"
    rows = scanned(connection, query)
    counted = connection.execute(query).fetchall()
    connection.execute("SET evtx_filter_pushdown = false")
    assert scanned(connection, query) == rows
    assert connection.execute(query).fetchall() == counted


def test_a_part_that_the_core_does_not_know_does_not_cost_the_others():
    connection = loaded()
    assert scanned(connection, f"FROM {ALL_LOGS} WHERE event_id = 4625 AND upper(computer) LIKE 'D_01%'") == [42]
    assert scanned(connection, f"FROM {ALL_LOGS} WHERE NOT (event_id <> 4625 OR upper(computer) LIKE 'X_')") == [42]


# DC01-Security.evtx has record IDs 88201 to 88255.
@pytest.mark.parametrize(
    "where, rows",
    [
        ("level > 0 AND level < 4", 0),
        ("record_id > 88201 AND record_id < 88255", 53),
        ("record_id >= 88201 AND record_id < 88255", 54),
        ("record_id > 88201 AND record_id <= 88255", 54),
        ("record_id BETWEEN 88201 AND 88255", 55),
        ("NOT (record_id > 88201 AND record_id < 88255)", 2),
        ("NOT (record_id BETWEEN 88202 AND 88254)", 2),
    ],
)
def test_the_bounds_of_a_range_count_as_they_are_written(where, rows):
    log = SAMPLES / "DC01-Security.evtx"
    assert loaded().execute(f"SELECT count(*) FROM '{log}' WHERE {where}").fetchall() == [(rows,)]


@pytest.mark.parametrize("count", [1, 100, 2500])
def test_a_long_list_gives_the_same_rows(count):
    connection = loaded()
    ids = ", ".join(str(88_201 + 3 * number) for number in range(count))
    names = ", ".join(f"'x{number}'" for number in range(count))
    for where in [f"record_id IN ({ids})", f"record_id NOT IN ({ids})", f"computer IN ({names}, 'DC01.northwind.example')"]:
        query = f"SELECT filename, record_id FROM {ALL_LOGS} WHERE {where}"
        connection.execute("SET evtx_filter_pushdown = true")
        rows = connection.execute(query).fetchall()
        connection.execute("SET evtx_filter_pushdown = false")
        assert sorted(rows) == sorted(connection.execute(query).fetchall())


def test_on_error_fail_stops_at_damage_that_is_not_asked_for():
    with pytest.raises(duckdb.Error, match="chunk 1"):
        loaded().execute(f"FROM read_evtx('{SAMPLES}/damaged-*.evtx', on_error := 'fail') WHERE event_id = 1").fetchall()


def test_a_filter_on_filename_opens_no_other_file(tmp_path):
    good = tmp_path / "good.evtx"
    good.write_bytes((SAMPLES / "DC01-System.evtx").read_bytes())
    bad = tmp_path / "bad.evtx"
    bad.write_bytes(b"no log")
    connection = loaded()
    files = f"read_evtx(['{good}', '{bad}'])"
    with pytest.raises(duckdb.Error, match="bad.evtx"):
        connection.execute(f"FROM {files}").fetchall()
    assert len(connection.execute(f"FROM {files} WHERE filename = '{good}'").fetchall()) == 10


# Statements with copies of a scan, or several scans of the same files, and the rows that each scan returns.
@pytest.mark.parametrize(
    "query, rows",
    [
        (
            "SELECT count(*) FROM {logs} WHERE event_id = 4625 UNION ALL SELECT count(*) FROM {logs} WHERE event_id = 4624",
            [10, 42],
        ),
        ("SELECT (SELECT count(*) FROM {logs} WHERE event_id = 4625), (SELECT count(*) FROM {logs})", [42, 414]),
        (
            "SELECT event_id, count(DISTINCT computer) OVER (PARTITION BY event_id) FROM {logs} WHERE record_id > 88300 ORDER BY ALL",
            [27, 414],
        ),
        (
            "WITH t AS NOT MATERIALIZED (FROM {logs}) SELECT count(*) FROM t WHERE event_id = 4625 UNION ALL SELECT count(*) FROM t",
            [42, 414],
        ),
        (
            "WITH t AS (FROM {logs} WHERE event_id = 4625) SELECT a.record_id FROM t a JOIN t b USING (record_id) ORDER BY 1 LIMIT 9",
            [42, 42],
        ),
        (
            "SELECT count(*) FROM {logs} a JOIN {logs} b USING (record_id) WHERE a.event_id = 4624 AND b.level = 0",
            [10, 60],
        ),
        (
            "FROM {logs} SELECT record_id WHERE filename LIKE '%01-Sec%' UNION FROM {logs} SELECT record_id WHERE filename LIKE '%Sysmon%'",
            [27, 55],
        ),
        (
            "WITH t AS (SELECT computer, count(*) c, count(DISTINCT channel) d FROM {logs} WHERE event_id = 4625 GROUP BY 1) "
            "SELECT * FROM t WHERE c = (SELECT max(c) FROM t) LIMIT 1",
            # DuckDB copies the scan after it has pushed the predicates down, and does not push them into the copies.
            [414, 414],
        ),
        ("SELECT event_id, channel, count(*) FROM {logs} WHERE event_id = 4625 GROUP BY ROLLUP (event_id, channel)", [42]),
        ("SELECT event_id, channel, count(*) FROM {logs} WHERE event_id = 4625 GROUP BY CUBE (event_id, channel)", [42]),
        (
            "WITH t AS (SELECT count(DISTINCT event_id) a, count(DISTINCT computer) b FROM {logs} WHERE level = 0) FROM t x, t y",
            [60],
        ),
    ],
)
def test_hints_hold_for_their_own_scan(query, rows):
    connection = loaded()
    query = query.format(logs=ALL_LOGS)
    found = connection.execute(query).fetchall()
    assert scanned(connection, query) == rows
    connection.execute("SET evtx_filter_pushdown = false")
    assert sorted(connection.execute(query).fetchall(), key=str) == sorted(found, key=str)


def test_a_prepared_statement_keeps_its_hints():
    connection = loaded()
    connection.execute(f"PREPARE failed AS SELECT count(*) FROM {ALL_LOGS} WHERE event_id = 4625")
    other = connection.execute(f"SELECT count(*) FROM {ALL_LOGS} WHERE event_id = 4624").fetchall()
    assert (other, connection.execute("EXECUTE failed").fetchall()) == ([(10,)], [(42,)])
    assert scanned(connection, "EXECUTE failed") == [42]
    connection.execute(f"PREPARE given AS SELECT count(*) FROM {ALL_LOGS} WHERE event_id = $1")
    assert connection.execute("EXECUTE given(4624)").fetchall() == [(10,)]
    assert connection.execute("EXECUTE given(4625)").fetchall() == [(42,)]


def test_a_statement_that_was_never_run_is_in_nobodys_way():
    connection = loaded()
    connection.execute(f"PREPARE never AS SELECT count(*) FROM {ALL_LOGS} WHERE event_id = 4625")
    for other in [connection, connection.cursor(), loaded()]:
        query = f"SELECT event_id, count(*) FROM {ALL_LOGS} WHERE level = 0 GROUP BY ROLLUP (event_id)"
        assert len(other.execute(query).fetchall()) > 1
        assert scanned(other, query) == [60]


def test_a_call_whose_equal_was_destroyed_unrun_does_without_hints():
    # DuckDB may have merged the two scans into one. Here it has not, but the call cannot know that.
    connection = loaded()
    connection.execute(f"PREPARE failed AS SELECT count(*) FROM {ALL_LOGS} WHERE event_id = 4625")
    connection.execute(f"EXPLAIN SELECT count(*) FROM {ALL_LOGS} WHERE event_id = 4625")
    connection.execute(f"PREPARE other AS SELECT count(*) FROM {ALL_LOGS} WHERE event_id = 4624")
    assert scanned(connection, "EXECUTE failed") == [42]
    connection.execute(f"EXPLAIN SELECT count(*) FROM {ALL_LOGS} WHERE level = 0")
    assert scanned(connection, "EXECUTE other") == [414]
    assert scanned(connection, "EXECUTE failed") == [42], "a statement that ran is not affected by later plans"
    assert connection.execute("EXECUTE other").fetchall() == [(10,)]


def test_a_first_call_that_gives_the_default_for_messages_has_hints():
    connection = loaded()
    logs = f"read_evtx('{SAMPLES}/*.evtx', messages := 'LocaleMetaData/{{log}}_*.[Mm][Tt][Aa]')"
    assert scanned(connection, f"FROM {logs} WHERE event_id = 4625") == [42]


def test_the_setting_is_read_before_all_else():
    connection = loaded()
    connection.execute("SET evtx_filter_pushdown = false")
    query = f"WITH t AS (SELECT count(DISTINCT event_id), count(*) c FROM {ALL_LOGS} WHERE level = 0) FROM t WHERE c = (SELECT max(c) FROM t)"
    connection.execute(query).fetchall()
    assert scanned(connection, query) == [414]


# Whether characters match regardless of case is up to DuckDB.
@pytest.mark.parametrize("column", ["text", "event_data['TargetUserName']", "computer"])
def test_case_is_that_of_duckdb(column, values):
    connection = loaded()
    for odd in ODD:
        for where in [f"{column} ILIKE '%{odd}%'", f"contains(lower({column}), lower('{odd}'))", f"{column} NOT ILIKE '%{odd}%'"]:
            rows_with_and_without_pushdown(connection, f"SELECT record_id FROM {LOGS} WHERE {where}")
