"""Folders of small logs, whose rows share batches, compared with the same logs one by one."""

import functools
import random
import shutil
import threading

import duckdb
import pytest
from conftest import SAMPLES, interrupted, loaded, write_log

LOGS = sorted(SAMPLES.glob("*.evtx"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Small logs in random order, with damaged ones, other files, empty files, and logs of several blocks."""
    folder = tmp_path_factory.mktemp("small")
    choose = random.Random(7)
    for i in range(90):
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
    con = loaded(threads=threads)
    return [con.execute(statement).fetchall() for statement in statements]


@functools.cache
def rows_of_each(folder, options):
    """A connection with a table of the rows of each file, in order."""
    con = loaded(threads=1)
    con.execute(f"CREATE TABLE each AS FROM read_evtx('{folder}/*.evtx'{options}) LIMIT 0")
    for file in sorted(folder.iterdir()):
        # The glob turns errors of non-logs into rows.
        con.execute(f"INSERT INTO each BY NAME FROM read_evtx('{file}*'{options})")
    return con


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
    each = rows_of_each(folder, options).execute(f"SELECT {columns} FROM each {where}").fetchall()
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
    con = loaded(threads=1)
    one = [row for file in sorted(folder.iterdir()) for row in con.execute(hits.format(f"{file}*")).fetchall()]
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


def test_an_interrupt_ends_the_scan_of_a_folder(folder):
    con = loaded(threads=4)
    with interrupted(con, after=0.02):
        con.execute(f"SELECT count(COLUMNS(*)) FROM read_evtx({[f'{folder}/*.evtx'] * 200})").fetchall()
    assert con.execute(f"SELECT count(*) > 0 FROM read_evtx('{folder}/*.evtx')").fetchall() == [(True,)]


@pytest.mark.parametrize("threads", [2, 3, 4, 8])
def test_a_result_that_is_read_slowly_has_all_rows(tmp_path, threads):
    """DuckDB pauses threads that are ahead of the reader. The others must not wait for the files of those threads."""
    header = (SAMPLES / "DC01-Security.evtx").read_bytes()[:4096]
    for number in range(40):
        write_log(tmp_path / f"a{number:02}.evtx", "DC01-Security.evtx", 15)
        (tmp_path / f"b{number:02}.evtx").write_bytes(header)
    con = loaded(threads=threads)
    (expected,) = con.execute(f"SELECT count(*) FROM read_evtx('{tmp_path}/*.evtx')").fetchone()
    # It only ends a hang.
    watch = threading.Timer(600, con.interrupt)
    watch.start()
    result = con.execute(f"FROM read_evtx('{tmp_path}/*.evtx')")
    rows = 0
    while some := result.fetchmany(2048):
        rows += len(some)
    watch.cancel()
    assert rows == expected > 0


def test_messages_in_any_folder_below(tmp_path):
    shutil.copyfile(SAMPLES / "DC01-System.evtx", tmp_path / "DC01-System.evtx")
    shutil.copytree(SAMPLES / "LocaleMetaData", tmp_path / "LocaleMetaData" / "en")
    ask_for = "SELECT count(message) FROM read_evtx('{}/*.evtx', messages := '{}')"
    places = ["LocaleMetaData/**", "LocaleMetaData/**/{log}_*", "LocaleMetaData/*/{log}_*"]
    found = [ask(1, ask_for.format(tmp_path, place))[0][0][0] for place in places]
    assert found[0] == found[1] == found[2] > 0
    assert ask(1, ask_for.format(tmp_path, "LocaleMetaData/{log}_*"))[0] == [(0,)]
