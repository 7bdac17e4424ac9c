"""The DuckDB bugs in docs/duckdb-bugs.md still exist, and their workarounds work."""

import re
import subprocess
import sys
import threading
import time

import duckdb
import pytest
from conftest import EXTENSION, ROOT, SAMPLES

PAGE = (ROOT / "docs" / "duckdb-bugs.md").read_text(encoding="utf-8")
REPORTS = re.findall(r"```sql\n(.*?)```", PAGE, re.DOTALL)
LOG = f"read_evtx('{SAMPLES}/DC01-System.evtx')"


def in_a_process(statements):
    """The rows or the kind of error of each statement. A process of its own contains fatal errors."""
    script = f"""
import duckdb
con = duckdb.connect(config={{"allow_unsigned_extensions": "true"}})
con.load_extension({str(EXTENSION)!r})
for statement in {statements!r}:
    try:
        print(con.execute(statement).fetchall())
    except duckdb.Error as error:
        print(type(error).__name__)
"""
    return subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False).stdout.splitlines()


@pytest.mark.parametrize("report", REPORTS[:2])
def test_a_prepared_inequality_join_fails_the_second_time(report):
    *setup, first, second, after = in_a_process([*report.strip().rstrip(";").split(";\n"), "SELECT 1"])
    assert "Exception" not in first and all("Exception" not in line for line in setup)
    assert (second, after) == ("InternalException", "FatalException"), "DuckDB has fixed it: delete the report"


@pytest.mark.parametrize("call", ["read_evtx($1)", f"(FROM {LOG} WHERE now() IS NOT NULL)"])
def test_a_statement_that_is_planned_anew_does_not_fail(con, call):
    for setting in ["asof_loop_join_threshold", "merge_join_threshold", "nested_loop_join_threshold"]:
        con.execute(f"SET {setting} = 0")
    parameters = f"('{SAMPLES}/DC01-System.evtx')" if "$1" in call else ""
    for number, join in enumerate(["JOIN {0} b ON a.record_id >= b.record_id AND a.record_id + 5 < b.record_id + 7",
                                   "ASOF JOIN {0} b ON a.event_id = b.event_id AND a.time_created >= b.time_created"]):
        con.execute(f"PREPARE p{number} AS SELECT count(*) FROM {call} a {join.format(call)}")
        counts = {con.execute(f"EXECUTE p{number}{parameters}").fetchone() for _ in range(3)}
        assert len(counts) == 1


def test_a_list_of_constants_is_a_join(con):
    """The order of its rows depends on threads, so this checks the plan."""
    for condition in ["IN (1, 2, 3, 4, 5)", "= ANY([1, 2, 3, 4, 5])"]:
        plan = con.execute(f"EXPLAIN SELECT record_id FROM {LOG} WHERE record_id {condition} LIMIT 3").fetchone()[1]
        assert "Hash Join" in plan, "DuckDB has fixed it: delete the report"


def processor_time(con, query):
    """The processor time of a statement that is interrupted from its start on, in seconds. Its rows or the kind of its error."""
    done = threading.Event()

    def interrupt():
        while not done.wait(0.001):
            con.interrupt()

    thread = threading.Thread(target=interrupt)
    thread.start()
    start = time.process_time()
    try:
        outcome = con.execute(query).fetchall()
    except duckdb.Error as error:
        outcome = type(error).__name__
    taken = time.process_time() - start
    done.set()
    thread.join()
    return taken, outcome


def test_glob_does_not_notice_an_interrupt(con, tmp_path):
    """But read_evtx lists the same folder itself, and stops soon: compare the printed times."""
    for number in range(20_000):
        (tmp_path / f"{number}.evtx").touch()
    glob, _ = processor_time(con, f"SELECT count(*) FROM glob('{tmp_path}/**/*.evtx')")
    for path in (tmp_path, f"{tmp_path}/*.evtx", f"{tmp_path}/**"):
        taken, outcome = processor_time(con, f"EXPLAIN FROM read_evtx('{path}')")
        print(f"{path}: {taken} s, where glob takes {glob} s")
        assert outcome == "InterruptException"
