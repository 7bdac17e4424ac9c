"""evtx_records over large logs: its rows, its plan, memory, and interrupts. test/sql/contents.test has small ones."""

import json
import os
import pathlib
import subprocess
import sys

import pytest
from conftest import EXTENSION, SAMPLES, assert_same_rows, interrupted, write_log

READ = "SELECT r.* EXCLUDE message FROM read_blob('{}') AS b, evtx_records(b.content, filename := b.filename) AS r"
# Without a lateral join, as docs/install.md has it for DuckDB 1.5.6.
PLAIN = """SELECT found.* EXCLUDE message FROM (SELECT evtx_content_row(content, filename, unnest(evtx_content_rows(content, filename))) AS found FROM read_blob('{}'))"""


@pytest.mark.parametrize("threads", [1, 4])
@pytest.mark.parametrize("rest", ["", " WHERE r.event_id = 4624 AND b.filename LIKE '%big%'", " ORDER BY hash(r.record_id, r.event_record_id)"])
def test_rows_of_many_batches(con, tmp_path, threads, rest):
    log = write_log(tmp_path / "big.evtx", "DC01-Security.evtx", 100)
    con.execute(f"SET threads = {threads}; CREATE TABLE logs AS FROM read_evtx('{log}')")
    direct = f"SELECT r.* EXCLUDE message FROM logs AS r, (SELECT '{log}' AS filename) AS b{rest}"
    assert con.execute(f"SELECT count(*) FROM ({direct})").fetchone()[0] > 300
    assert_same_rows(con, f"SELECT * FROM ({READ.format(log)}{rest})", f"SELECT * FROM ({direct})")
    if not rest:
        assert_same_rows(con, f"SELECT * REPLACE (user_data::JSON AS user_data) FROM ({PLAIN.format(log)})", direct)


def test_rows_come_in_the_order_of_the_log(con, big_log):
    con.execute("SET threads = 4")
    ids = [con.execute(f"SELECT record_id FROM {source}").fetchall() for source in (f"({READ.format(big_log)})", f"read_evtx('{big_log}')")]
    assert ids[0] == ids[1]


def test_only_a_row_of_the_log_is_returned(con):
    con.execute(f"CREATE TABLE one AS SELECT content, evtx_content_rows(content, NULL) AS numbers FROM read_blob('{SAMPLES / 'DC01-System.evtx'}')")
    numbers = con.execute("SELECT unnest(numbers) FROM one").fetchall()
    backwards = "SELECT evtx_content_row(content, NULL, unnest(list_reverse(numbers))).record_id FROM one"
    assert con.execute(backwards).fetchall() == con.execute(f"SELECT record_id FROM read_evtx('{SAMPLES / 'DC01-System.evtx'}') ORDER BY record_id DESC").fetchall()
    assert con.execute("SELECT evtx_content_row(content, NULL, NULL), evtx_content_row(NULL, NULL, numbers[1]) FROM one").fetchall() == [(None, None)]
    with pytest.raises(Exception, match="there is no such row"):
        con.execute("SELECT evtx_content_row(content, NULL, $1::HUGEINT) FROM one", [numbers[-1][0] + 1])


def test_duckdb_compares_no_contents(con, big_log):
    """A join on the content would read it once for each row."""
    plans = [con.execute(f"EXPLAIN {READ.format(big_log)}{rest}").fetchall()[0][1] for rest in ("", " WHERE r.event_id = 4624")]
    assert "Join" not in plans[0] and "content IS NOT DISTINCT" not in plans[1]


def test_rows_are_streamed(big_log):
    """Memory holds the content a few times, but not its rows, which take more than ten times as much."""
    script = f"""
import duckdb, json, resource
con = duckdb.connect(config={{"allow_unsigned_extensions": "true"}})
con.execute("LOAD '{EXTENSION}'; SET threads = 1")
peaks = []
for sql in ("SELECT sum(octet_length(content)) FROM read_blob('{big_log}')", "SELECT count(*), max(hash(r)) FROM ({READ.format(big_log)}) AS r"):
    con.execute(sql).fetchall()
    peaks.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
print(json.dumps(peaks))"""
    output = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True, timeout=600).stdout
    before, after = json.loads(output.splitlines()[-1])
    size = pathlib.Path(big_log).stat().st_size
    print(f"{(after - before) / 1024:.0f} MiB more than for reading {size >> 20} MiB")
    assert (after - before) * 1024 < 3 * size + (64 << 20)


def test_reading_a_content_can_be_interrupted(con, big_log):
    con.execute(f"CREATE TABLE logs AS SELECT content FROM read_blob('{big_log}'), range(8)")
    for after in (0.05, 1):
        with interrupted(con, after):
            con.execute("SELECT count(*), max(hash(r)) FROM logs, evtx_records(content) AS r").fetchall()


@pytest.mark.parametrize("folder", ["EVTX_CORPUS", "EVTX_VARIED", "EVTX_COLLECTIONS", "EVTX_HOSTILE"])
def test_rows_of_real_logs(con, folder):
    logs = f"{os.environ.get(folder)}/**/*.evtx"
    if folder not in os.environ or not con.execute("SELECT count(*) FROM glob($1)", [logs]).fetchone()[0]:
        pytest.skip(f"{folder} has no logs")
    assert_same_rows(con, READ.format(logs), f"SELECT * EXCLUDE message FROM read_evtx('{logs}')")
