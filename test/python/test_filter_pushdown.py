"""Predicates that read_evtx decides itself give the rows that DuckDB gives with them."""

import random

import duckdb
import pytest
from conftest import EXTENSION, SAMPLES, connect

ALL_LOGS = f"read_evtx('{SAMPLES}/*.evtx')"
LOGS = f"read_evtx('{SAMPLES}/*.evtx', location := true)"
COMPARISONS = ["=", "<>", "<", "<=", ">", ">=", "IS DISTINCT FROM", "IS NOT DISTINCT FROM"]
# Columns whose predicates the core decides.
NUMBERS = ["record_id", "event_id", "level", "task", "opcode", "keywords", "version", "qualifiers", "process_id", "thread_id",
           "event_record_id", "chunk_index", "record_offset"]  # fmt: skip
TEXTS = ["provider", "channel", "computer", "event_source_name", "user_sid", "filename"]
OTHERS = ["time_created", "provider_guid", "activity_id"]
KEYS = ["TargetUserName", "IpAddress", "LogonType", "param1", "Image", "no such key"]


def loaded():
    connection = connect()
    connection.load_extension(EXTENSION)
    return connection


@pytest.fixture(name="values", scope="module")
def fixture_values():
    """Some values of each column, as literals: those of the logs, and neighbours of theirs."""
    connection = loaded()
    values = {}
    for column in NUMBERS + TEXTS + OTHERS + [f"event_data['{key}']" for key in KEYS]:
        rows = connection.execute(f"SELECT DISTINCT ({column})::VARCHAR FROM {LOGS} ORDER BY 1 NULLS LAST").fetchall()
        found = [value for (value,) in rows if value is not None]
        if column in NUMBERS:
            values[column] = [*found, "0", "1", "255"]
        else:
            values[column] = ["'" + value.replace("'", "''") + "'" for value in found]
            if column in TEXTS or "[" in column:
                values[column] += ["''", "'A'", "'zz'", "'DC01.northwind.exampl'", "'ü'"]
    return values


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
    test = rng.choice(["compare", "compare", "compare", "in", "null", "between", "like"])
    if test == "null":
        return f"{column} IS {rng.choice(['', 'NOT '])}NULL"
    if test == "in":
        return f"{column} {rng.choice(['', 'NOT '])}IN ({', '.join(pick() for _ in range(rng.randint(1, 4)))})"
    if test == "between":
        return f"{column} BETWEEN {pick()} AND {pick()}"
    if test == "like" and (column in TEXTS or "[" in column):
        part = pick().strip("'")[: rng.randint(0, 6)].replace("%", "").replace("_", "")
        return f"{column} LIKE '" + rng.choice(["{}%", "%{}", "%{}%", "{}"]).format(part) + "'"
    if test == "compare" and rng.random() < 0.2:
        return f"{pick()} {rng.choice(COMPARISONS[:6])} {column}"
    return f"{column} {rng.choice(COMPARISONS)} {pick()}"


def is_decided(connection, where):
    """Whether no filter is left above the scan."""
    plan = connection.execute(f"EXPLAIN SELECT record_id FROM {LOGS} WHERE {where}").fetchall()[0][1]
    return "Filter" not in plan and "FILTER" not in plan


def test_generated_predicates_give_the_same_rows(values):
    rng = random.Random(20240305)
    on, off = loaded(), loaded()
    off.execute("SET evtx_filter_pushdown = false")
    decided = rows = 0
    for _ in range(600):
        where = predicate(rng, values)
        columns = rng.choice(["filename, record_id", "*", "event_id, error", "count(*)"])
        query = f"SELECT {columns} FROM {LOGS} WHERE {where}"
        expected = off.execute(query).fetchall()
        assert on.execute(query).fetchall() == expected, where
        rows += len(expected)
        decided += is_decided(on, where)
    print(f"600 predicates, {decided} decided by the core, {rows} rows")
    assert decided > 400
    assert rows > 10_000


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
    ],
)
def test_the_filter_is_gone_from_above_the_scan(where):
    connection = loaded()
    assert is_decided(connection, where)
    connection.execute("SET evtx_filter_pushdown = false")
    assert not is_decided(connection, where)


@pytest.mark.parametrize(
    "where",
    [
        "event_id::VARCHAR = '4625'",
        "event_data['LogonType']::INT = 3",
        "computer ILIKE 'dc%'",
        "computer COLLATE NOCASE = 'dc01.northwind.example'",
        "computer LIKE 'D_01%'",
        "error IS NULL",
        "message IS NOT NULL",
        "event_id = level",
        "event_data['TargetUserName'] = event_data['SubjectUserName']",
        "user_data IS NULL",
    ],
)
def test_what_the_core_does_not_decide_is_left_to_duckdb(where):
    connection = loaded()
    assert not is_decided(connection, where)
    query = f"SELECT count(*) FROM {LOGS} WHERE {where}"
    decided = connection.execute(query).fetchall()
    connection.execute("SET evtx_filter_pushdown = false")
    assert connection.execute(query).fetchall() == decided


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


# Statements in which a scan is copied, or stands beside another of the same files. DuckDB drops what each has accepted there.
@pytest.mark.parametrize(
    "query",
    [
        "SELECT count(*) FROM {logs} WHERE event_id = 4625 UNION ALL SELECT count(*) FROM {logs} WHERE event_id = 4624",
        "SELECT (SELECT count(*) FROM {logs} WHERE event_id = 4625), (SELECT count(*) FROM {logs})",
        "SELECT event_id, count(DISTINCT computer) OVER (PARTITION BY event_id) FROM {logs} WHERE record_id > 88300 ORDER BY ALL",
        "WITH t AS NOT MATERIALIZED (FROM {logs}) SELECT count(*) FROM t WHERE event_id = 4625 UNION ALL SELECT count(*) FROM t",
        "WITH t AS (FROM {logs} WHERE event_id = 4625) SELECT a.record_id FROM t a JOIN t b USING (record_id) ORDER BY 1 LIMIT 9",
        "SELECT count(*) FROM {logs} a JOIN {logs} b USING (record_id) WHERE a.event_id = 4624 AND b.level = 0",
    ],
)
def test_predicates_hold_for_their_own_scan(query):
    connection = loaded()
    query = query.format(logs=ALL_LOGS)
    connection.execute(query).fetchall()
    decided = connection.execute(query).fetchall()
    connection.execute("SET evtx_filter_pushdown = false")
    assert sorted(connection.execute(query).fetchall()) == sorted(decided)


def test_a_prepared_statement_keeps_its_predicates():
    connection = loaded()
    connection.execute(f"PREPARE failed AS SELECT count(*) FROM {ALL_LOGS} WHERE event_id = 4625")
    other = connection.execute(f"SELECT count(*) FROM {ALL_LOGS} WHERE event_id = 4624").fetchall()
    assert (other, connection.execute("EXECUTE failed").fetchall()) == ([(10,)], [(42,)])
    assert connection.execute("EXECUTE failed").fetchall() == [(42,)]
    connection.execute(f"PREPARE given AS SELECT count(*) FROM {ALL_LOGS} WHERE event_id = $1")
    assert connection.execute("EXECUTE given(4624)").fetchall() == [(10,)]
    assert connection.execute("EXECUTE given(4625)").fetchall() == [(42,)]
