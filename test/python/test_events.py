"""Scans with event_id: predicates on fields, Parquet, copied plans, hive partitioning."""

import pathlib
import random

import crowds
import pytest
from client import quoted
from conftest import SAMPLES, assert_same_rows, loaded, rows_with_and_without_pushdown

LOGS = f"read_evtx('{SAMPLES}/*.evtx', event_id := [1, 2, 3, 4624, 4625, 4688])"
COMPARISONS = ["=", "<>", "<", "<=", ">", ">=", "IS DISTINCT FROM", "IS NOT DISTINCT FROM"]


@pytest.fixture(name="fields", scope="module")
def fixture_fields():
    """The fields, with their types and values as literals."""
    connection = loaded()
    system = {name for (name, *_) in connection.sql(f"DESCRIBE FROM '{SAMPLES}/*.evtx'").fetchall()}
    fields = {}
    for name, column_type, *_ in connection.sql(f"DESCRIBE FROM {LOGS}").fetchall():
        if name not in system:
            rows = connection.sql(f'SELECT DISTINCT "{name}"::VARCHAR FROM {LOGS} ORDER BY 1').fetchall()
            fields[name] = (column_type, [quoted(value) for (value,) in rows if value is not None])
    return fields


def test_predicates_on_fields_give_the_rows_that_duckdb_gives(con, fields):
    rng = random.Random(7)
    for _ in range(250):
        name, (column_type, values) = rng.choice([item for item in fields.items() if item[1][1]])
        value = f"{rng.choice(values)}::{column_type}"
        test = rng.choice([*COMPARISONS, "IN", "BETWEEN", "IS NULL", "IS NOT NULL"])
        operand = {"IN": f"({value})", "BETWEEN": f"{value} AND {value}", "IS NULL": "", "IS NOT NULL": ""}.get(test, value)
        rows_with_and_without_pushdown(con, f'SELECT filename, record_id FROM {LOGS} WHERE "{name}" {test} {operand}')


def test_every_column_survives_parquet(con, tmp_path):
    path = tmp_path / "events.parquet"
    con.execute(f"COPY (FROM {LOGS}) TO '{path}'")
    columns = "SELECT * EXCLUDE (event_data, user_data) FROM"
    assert_same_rows(con, f"{columns} {LOGS}", f"{columns} '{path}'")


def test_two_scans_of_one_log_keep_their_predicates(con):
    log = f"read_evtx('{SAMPLES}/DC01-Security.evtx', event_id := [4624, 4625])"
    query = f"SELECT count(*) FROM {log} WHERE LogonType = 2 UNION ALL SELECT count(*) FROM {log} WHERE LogonType = 3"
    assert con.execute(query).fetchall() == [(0,), (49,)]


def test_all_events_are_read_in_folders_that_say_more(con, tmp_path):
    for host, day, sample in [("DC01", 5, "DC01-Security"), ("DC01", 6, "DC01-System"), ("WS%2007", 5, "WS07-Security")]:
        folder = tmp_path / f"host={host}" / f"day=2024-03-0{day}"
        folder.mkdir(parents=True)
        (folder / "log.evtx").write_bytes((SAMPLES / f"{sample}.evtx").read_bytes())
    logs = f"read_evtx('{tmp_path}/**/*.evtx', hive_partitioning := true)"
    rows = con.execute(f"SELECT host, day, count(*), typeof(host), typeof(day) FROM {logs} GROUP BY ALL ORDER BY ALL").fetchall()
    assert [(host, str(day), *rest) for host, day, *rest in rows] == [
        ("DC01", "2024-03-05", 55, "VARCHAR", "DATE"),
        ("DC01", "2024-03-06", 10, "VARCHAR", "DATE"),
        ("WS 07", "2024-03-05", 4, "VARCHAR", "DATE"),
    ]
    assert con.execute(f"SELECT DISTINCT host FROM {logs} ORDER BY 1").fetchall() == [("DC01",), ("WS 07",)]
    assert con.execute(f"SELECT count(*) FROM {logs} WHERE host = 'WS 07' AND event_id > 0").fetchone() == (4,)
    assert con.execute(f"SELECT count(*) FROM {logs} WHERE day IN (DATE '2024-03-06')").fetchone() == (10,)
    assert con.execute(f"SELECT count(*) FROM {logs} WHERE host LIKE 'DC%'").fetchone() == (65,)
    columns = [name for (name, *_) in con.execute(f"DESCRIBE FROM {logs}").fetchall()]
    assert columns[-2:] == ["host", "day"]
    assert con.execute(f"SELECT count(*) FROM '{tmp_path}/**/*.evtx'").fetchone() == (69,)


def test_a_filter_on_a_folder_skips_files_without_opening_them(con, tmp_path):
    for host in ["a", "b"]:
        (tmp_path / f"host={host}").mkdir()
    (tmp_path / "host=a" / "log.evtx").write_bytes((SAMPLES / "dirty.evtx").read_bytes())
    (tmp_path / "host=b" / "log.evtx").write_text("no log")
    logs = f"read_evtx('{tmp_path}/*/*.evtx', hive_partitioning := true)"
    assert con.execute(f"SELECT count(error), count(*) FROM {logs}").fetchone() == (1, 81)
    assert con.execute(f"SELECT count(error), count(*) FROM {logs} WHERE host = 'a'").fetchone() == (0, 80)
    named = f"read_evtx(['{tmp_path}/host=a/log.evtx', '{tmp_path}/host=b/log.evtx'], hive_partitioning := true)"
    # Opening the second file would be an error.
    assert con.execute(f"SELECT count(*) FROM {named} WHERE host = 'a'").fetchone() == (80,)


def test_folders_with_other_keys_and_keys_that_are_columns(con, tmp_path):
    for folder in ["x=1", "computer=DC01"]:
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "log.evtx").write_bytes((SAMPLES / "dirty.evtx").read_bytes())
    with pytest.raises(Exception, match="have different keys"):
        con.execute(f"FROM read_evtx('{tmp_path}/*/*.evtx', hive_partitioning := true)")
    logs = f"read_evtx('{tmp_path}/computer=DC01/*.evtx', hive_partitioning := true)"
    assert con.execute(f"SELECT DISTINCT computer, hive_computer FROM {logs}").fetchall() == [("DC01.northwind.example", "DC01")]


def test_of_more_than_4_gib_a_part_is_read_for_the_fields(con, tmp_path):
    """The file is sparse after its two chunks. The second chunk is in the second MiB."""
    log = tmp_path / "large.evtx"
    first = (pathlib.Path(SAMPLES) / "DC01-Security.evtx").read_bytes()
    second = (pathlib.Path(SAMPLES) / "oddities.evtx").read_bytes()
    con.execute("CALL enable_logging(level := 'warning')")
    for size, warnings, has_the_field in [(64 << 20, 0, True), (4100 << 20, 1, False)]:
        with log.open("wb") as file:
            file.write(first[: 4096 + 65536])
            file.seek(4096 + (1 << 20))
            file.write(second[4096:])
            file.truncate(size)
        columns = [name for (name, *_) in con.sql(f"DESCRIBE FROM read_evtx('{log}', event_id := [8, 4624])").fetchall()]
        assert ("Param_1" in columns, "TargetUserName" in columns) == (has_the_field, True)
        messages = con.sql("SELECT DISTINCT message FROM duckdb_logs WHERE log_level = 'WARNING'").fetchall()
        assert len(messages) == warnings
    assert messages[0][0].startswith("the logs have 4100 MiB, of which one MiB in 2 is read to find the columns of the events")


@pytest.mark.parametrize("count, warnings", [(40, 0), (41, 1), (50, 1)])
def test_fields_without_a_column_are_told(con, tmp_path, count, warnings):
    """Each record has a hundred fields of its own."""
    log = tmp_path / "fields.evtx"
    crowds.write(log, [(number, "Any", 1, "Any", "H", crowds.account(1), {f"n{number}_{field}": "x" for field in range(100)}) for number in range(count)])
    con.execute("CALL enable_logging(level := 'warning')")
    columns = [name for (name, *_) in con.sql(f"DESCRIBE FROM read_evtx('{log}', event_id := 1)").fetchall()]
    assert sum(name.startswith("n") and "_" in name for name in columns) == min(100 * count, 4096)
    messages = con.sql("SELECT DISTINCT message FROM duckdb_logs WHERE log_level = 'WARNING'").fetchall()
    why = "the events have 4096 fields or more: no more of them have columns, all others are in event_data"
    assert messages == [(why,)] * warnings
    assert con.sql(f"SELECT count(*) FROM read_evtx('{log}', event_id := 1) WHERE event_data['n{count - 1}_99'] = 'x'").fetchall() == [(1,)]
