"""Folders of small logs, whose rows share batches, against the same logs one by one."""

import os
import pathlib
import random
import shutil
import threading

import duckdb
import pytest
from conftest import EXTENSION, SAMPLES, connect, write_log

LOGS = sorted(SAMPLES.glob("*.evtx"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Small logs in any order, among them damaged ones, files that are no logs, empty ones, and logs of several blocks."""
    folder = tmp_path_factory.mktemp("small")
    choose = random.Random(7)
    for i in range(150):
        path = folder / f"{i:03d}.evtx"
        match choose.randrange(12):
            case 0:
                path.write_bytes(b"")
            case 1:
                path.write_bytes(b"no log" * 100)
            case 2:
                write_log(path, "DC01-Security.evtx", choose.choice([3, 15, 16, 17, 40]))
            case _:
                shutil.copyfile(choose.choice(LOGS), path)
    return folder


def ask(threads, *statements):
    con = connect(threads=threads)
    con.load_extension(EXTENSION)
    return [con.execute(statement).fetchall() for statement in statements]


@pytest.mark.parametrize(
    ("select", "options"),
    [
        ("*", ""),
        ("filename, record_id, error", ""),
        ("count(*) OVER () AS rows, filename", ""),
        ("*", ", event_id := [4624, 4625]"),
        ("filename, xml, record_offset, chunk_index", ", xml := true, location := true"),
        ("* EXCLUDE (error)", ", recover := true, verify := true"),
    ],
)
@pytest.mark.parametrize("where", ["", "WHERE event_id = 4625", "WHERE filename LIKE '%5.evtx' OR error IS NOT NULL"])
def test_rows_are_those_of_each_file_in_order(folder, select, options, where):
    columns = select.removeprefix("count(*) OVER () AS rows, ")
    files = sorted(folder.iterdir())
    each = []
    con = connect(threads=1)
    con.load_extension(EXTENSION)
    con.execute(f"CREATE TEMP TABLE of_folder AS FROM read_evtx('{folder}/*.evtx'{options}) LIMIT 0")
    for file in files:
        # A glob of its own, as a file that is named has to be a log. Columns are those of the folder.
        each += con.execute(f"SELECT {columns} FROM (FROM of_folder UNION ALL BY NAME FROM read_evtx('{file}*'{options})) {where}").fetchall()
    for threads in (1, 2, 5):
        (rows,) = ask(threads, f"SELECT {select} FROM read_evtx('{folder}/*.evtx'{options}) {where}")
        if select != columns:
            assert {row[0] for row in rows} <= {len(each)}
            rows = [row[1:] for row in rows]
            assert sorted(rows) == sorted(each)
        else:
            assert rows == each, threads
    assert each


def test_matches_of_rules_and_folders_as_columns(folder, tmp_path):
    for host, of in (("a", 0), ("b", 1)):
        (tmp_path / f"host={host}").mkdir()
        for file in sorted(folder.iterdir())[of::2]:
            shutil.copyfile(file, tmp_path / f"host={host}" / file.name)
    hits = "SELECT rule_title, filename, record_id, error FROM evtx_sigma('{}', rules := '" + str(SAMPLES / "rules") + "')"
    one = [row for file in sorted(folder.iterdir()) for row in ask(1, hits.format(f"{file}*"))[0]]
    for threads in (1, 4):
        assert ask(threads, hits.format(f"{folder}/*.evtx"))[0] == one
        hosts, wrong = ask(
            threads,
            f"SELECT host, count(*) FROM read_evtx('{tmp_path}/*/*.evtx', hive_partitioning := true) GROUP BY ALL ORDER BY ALL",
            f"SELECT count(*) FROM read_evtx('{tmp_path}/*/*.evtx', hive_partitioning := true) WHERE NOT contains(filename, 'host=' || host)",
        )
        assert [host for host, _ in hosts] == ["a", "b"] and wrong == [(0,)]


def test_the_first_error_ends_the_query_for_all_threads(folder):
    for threads in (1, 4):
        with pytest.raises(duckdb.Error, match=r"\d+.evtx"):
            ask(threads, f"SELECT count(*) FROM read_evtx('{folder}/*.evtx', on_error := 'fail')")
        assert len(ask(threads, f"FROM read_evtx('{folder}/*.evtx') LIMIT 3")[0]) == 3


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs pipes")
def test_an_interrupt_while_a_reserved_file_waits(folder, tmp_path):
    """One thread hangs in a file of its own; the others, which wait for its files, answer an interrupt."""
    con = connect(threads=4)
    con.load_extension(EXTENSION)
    timer = threading.Timer(0.02, con.interrupt)
    timer.start()
    try:
        con.execute(f"SELECT count(COLUMNS(*)) FROM read_evtx({[str(pathlib.Path(folder) / '*.evtx')] * 50})").fetchall()
    except duckdb.InterruptException:
        pass
    timer.join()
    assert con.execute(f"SELECT count(*) > 0 FROM read_evtx('{folder}/*.evtx')").fetchall() == [(True,)]
