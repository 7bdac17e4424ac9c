"""Scans from a client's view: order under threads, interrupts, progress, plans."""

import threading
from concurrent.futures import ThreadPoolExecutor

import duckdb
import pytest
from client import list_of
from conftest import SAMPLES, interrupted, loaded, write_log
from fsspec.implementations.local import LocalFileSystem


def test_order_is_kept_under_threads(con, big_log, tmp_path):
    small = [write_log(tmp_path / f"{i:02}.evtx", "DC01-Sysmon.evtx", 1 + i % 3) for i in range(40)]
    paths = [str(path) for path in [*small[:20], big_log, *small[20:]]]
    con.execute("SET threads = 4")
    con.execute(
        "CREATE TABLE rows AS SELECT filename, chunk_index, record_offset FROM read_evtx($paths, location := true)",
        {"paths": paths},
    )
    rows = con.execute("SELECT filename, chunk_index, record_offset FROM rows ORDER BY rowid").fetchall()
    positions = [(paths.index(filename), offset) for filename, _, offset in rows]
    assert positions == sorted(positions)
    assert len(rows) == 768 * 55 + sum(27 * (1 + i % 3) for i in range(40))
    # A LIMIT without an order returns the first rows.
    first = con.execute("SELECT record_offset FROM read_evtx($paths, location := true) LIMIT 3000", {"paths": paths})
    assert first.fetchall() == [(offset,) for _, _, offset in rows[:3000]]


def test_results_do_not_depend_on_threads(con, big_log):
    query = f"""SELECT count(*), sum(hash(COLUMNS(* EXCLUDE filename))::HUGEINT) FROM '{big_log}'"""
    results = []
    for threads in (1, 2, 4):
        con.execute(f"SET threads = {threads}")
        results.append(con.execute(query).fetchall())
    assert results[0] == results[1] == results[2]


@pytest.mark.parametrize(
    "query",
    [
        "SELECT sum(length(event_data::VARCHAR)) FROM read_evtx({logs})",
        # Without rows, DuckDB does not check for interrupts itself.
        "SELECT count(*) FROM read_evtx({logs}) WHERE event_data['IpAddress'] = 'nowhere'",
        "SELECT count(*) FROM read_evtx({logs}, event_id := 9999, sample_size := 1)",
        # Nor while it plans a statement.
        "SELECT count(*) FROM read_evtx({logs}, event_id := 9999, sample_size := -1)",
        "FROM evtx_schema({logs})",
        "FROM evtx_file_metadata({logs})",
        # DuckDB itself writes up to 0.25 s more of a row group to Parquet, also without the extension.
        "COPY (FROM read_evtx({logs}, xml := true)) TO '{out}'",
    ],
)
@pytest.mark.parametrize("restricted", [False, True])
def test_a_query_can_be_interrupted(con, big_log, tmp_path, query, restricted):
    query = query.format(logs=list_of([big_log] * 400), out=tmp_path / "rows.csv")
    con.execute("SET threads = 1")
    if restricted:
        con.execute(f"SET allowed_directories = ['{big_log.parent}', '{tmp_path}', '{SAMPLES}']")
        con.execute("SET enable_external_access = false")
    with interrupted(con, after=0.3):
        con.execute(query).fetchall()
    # The connection still works.
    assert con.execute(f"SELECT count(*) FROM '{SAMPLES}/dirty.evtx'").fetchone() == (80,)


# The rows take a fifth of the work, the compression of the catalog the rest.
@pytest.mark.parametrize("after", [0.1, 0.6])
def test_making_a_catalog_of_messages_can_be_interrupted(con, tmp_path, after):
    con.execute("""CREATE TABLE texts AS SELECT 'p' || i % 5 AS provider, i::INTEGER AS event_id, string_agg(md5((i * 40000 + j)::VARCHAR), '') AS text
        FROM range(75) r(i), range(30000) s(j) GROUP BY i""")
    with interrupted(con, after):
        con.execute(f"COPY texts TO '{tmp_path / 'all.messages'}' (FORMAT evtx_messages)")
    assert not list(tmp_path.iterdir())


def test_progress_rises(con, big_log):
    con.execute("SET threads = 1")
    con.execute("SET enable_progress_bar = true")
    con.execute("SET enable_progress_bar_print = false")
    seen = []

    class Telling(LocalFileSystem):
        """Local files whose reads note the progress."""

        protocol = "telling"

        @classmethod
        def _strip_protocol(cls, path):
            return path.removeprefix("telling://")

        def _open(self, path, mode="rb", **options):
            file = super()._open(path, mode, **options)

            class Told:
                def __getattr__(self, name):
                    return getattr(file, name)

                def read(self, size=-1):
                    seen.append(con.query_progress())
                    return file.read(size)

            return Told()

    con.register_filesystem(Telling())
    con.execute("SELECT sum(length(event_data::VARCHAR)) FROM read_evtx($paths)", {"paths": [f"telling://{big_log}"] * 12}).fetchall()
    between = [progress for progress in seen if 0 < progress < 100]
    assert len(set(between)) >= 3, seen
    assert between == sorted(between)


def test_explain_shows_the_columns_that_are_read(con):
    plan = con.execute(f"EXPLAIN SELECT event_id, level FROM '{SAMPLES}/dirty.evtx' WHERE error IS NULL").fetchall()[0][1]
    assert "READ_EVTX" in plan.upper()
    assert "event_id" in plan and "level" in plan
    assert "provider" not in plan and "event_data" not in plan


def test_explain_analyze_and_summarize(con):
    con.execute(f"EXPLAIN ANALYZE SELECT count(*) FROM '{SAMPLES}/dirty.evtx'").fetchall()
    rows, columns = (con.execute(f"{kind} FROM '{SAMPLES}/DC01-Security.evtx'").fetchall() for kind in ("SUMMARIZE", "DESCRIBE"))
    assert [row[:2] for row in rows] == [column[:2] for column in columns]


@pytest.mark.parametrize("threads", [1, 4])
def test_many_scans_at_once(con, threads):
    con.execute(f"SET threads = {threads}")
    counts = []

    def run():
        cursor = con.cursor()
        counts.append(cursor.execute(f"SELECT count(*), count(event_data) FROM '{SAMPLES}/*.evtx'").fetchone())

    clients = [threading.Thread(target=run) for _ in range(8)]
    for client in clients:
        client.start()
    for client in clients:
        client.join()
    assert counts == [(414, 403)] * 8


def test_the_log_is_the_side_of_a_join_that_is_not_kept(con, big_log):
    con.execute("CREATE TABLE few AS SELECT range::UBIGINT AS record_id FROM range(1000)")
    for tables in [f"'{big_log}' JOIN few", f"few JOIN '{big_log}'", f"(FROM '{big_log}' WHERE event_id = 4625) JOIN few"]:
        plan = con.execute(f"EXPLAIN (FORMAT json) SELECT count(*) FROM {tables} USING (record_id)").fetchall()[0][1]
        # The side that DuckDB keeps in memory comes second.
        assert 0 < plan.index("READ_EVTX") < plan.index("memory.main.few"), tables


def test_vectors_live_as_long_as_duckdb_holds_them(con, tmp_path):
    """Texts are copied into the vectors, or vectors refer to imported ones: operators that hold vectors find them whole."""
    logs = [str(write_log(tmp_path / f"{i}.evtx", f"DC01-{name}.evtx", 60)) for i, name in enumerate(("Security", "Sysmon"))]
    scan = f"read_evtx({list_of(logs)}, xml := true, fields := true, location := true)"
    con.execute("SET preserve_insertion_order = true")
    con.execute(f"CREATE TABLE copied AS FROM {scan}")
    assert con.execute("SELECT max(n) FROM (SELECT sum(len(xml)) AS n FROM copied GROUP BY rowid // 2048)").fetchone()[0] > 1 << 20
    for holds in (
        "SELECT * FROM (SELECT *, row_number() OVER (PARTITION BY provider ORDER BY xml, record_offset) AS n FROM {scan}) WHERE n > 0",
        "SELECT a.*, b.fields AS n FROM {scan} AS a JOIN {scan} AS b USING (filename, record_offset, event_data)",
        "FROM {scan} ORDER BY event_data, xml DESC",
        "SELECT unnest(list({{'row': r}})) FROM {scan} AS r GROUP BY record_id % 7",
        "SELECT DISTINCT ON (filename, record_offset) * FROM {scan}",
    ):
        query, expected = (f"({holds.format(scan=source)})" for source in (scan, "copied"))
        hashes = [con.execute(f"SELECT count(*), sum(hash(r::VARCHAR)) FROM {rows} AS r").fetchall() for rows in (query, expected)]
        assert hashes[0] == hashes[1] and hashes[0][0][0] > 2000, holds
    held = con.cursor().execute(f"SELECT record_offset, xml, fields, event_data FROM {scan}")
    rows = []
    while batch := held.fetchmany(999):
        rows += batch
        con.execute(f"FROM {scan} LIMIT 1").fetchone()
    assert rows == con.execute("SELECT record_offset, xml, fields, event_data FROM copied").fetchall()
