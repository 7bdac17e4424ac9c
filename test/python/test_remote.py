"""Remote files: few, large requests, and only for the parts that a query needs."""

import contextlib
import http.server
import io
import re
import threading
import time
from urllib.parse import unquote

import duckdb
import fsspec
import pytest
from conftest import SAMPLES, write_log
from fsspec.implementations.memory import MemoryFileSystem
from structures import CHUNK
from structures import FILE_HEADER as HEADER

PIECE = 8 << 20
# More than two pieces, and not a whole number of them.
CHUNKS = 300
SIZE = HEADER + CHUNKS * CHUNK


class CountingFileSystem(MemoryFileSystem):
    """A memory file system that records every read."""

    cachable = False
    reads = []

    def _open(self, path, mode="rb", **options):
        file = super()._open(path, mode, **options)
        reads = self.reads

        class Counted:
            def __getattr__(self, name):
                return getattr(file, name)

            def read(self, size=-1):
                at = file.tell()
                data = file.read(size)
                reads.append((path.rsplit("/", 1)[-1], at, len(data)))
                return data

        return Counted()


@pytest.fixture(name="memory")
def fixture_memory(con, tmp_path):
    """The reads so far, by a connection with some logs in memory."""
    memory = CountingFileSystem()
    memory.pipe("/remote/big.evtx", write_log(tmp_path / "big.evtx", "DC01-Security.evtx", CHUNKS).read_bytes())
    for name in ["DC01-Security", "wrapped", "dirty"]:
        memory.pipe(f"/remote/{name}.evtx", (SAMPLES / f"{name}.evtx").read_bytes())
    con.register_filesystem(memory)
    memory.reads.clear()
    yield memory.reads
    memory.store.clear()


def test_a_small_log_is_one_read(con, memory):
    for name, count in [("DC01-Security", 55), ("wrapped", 160), ("dirty", 80)]:
        memory.clear()
        assert con.execute(f"SELECT count(*) FROM 'memory://remote/{name}.evtx'").fetchone() == (count,)
        assert [size for _, _, size in memory] == [(SAMPLES / f"{name}.evtx").stat().st_size]


def test_a_large_log_is_read_in_large_pieces_once(con, memory):
    assert con.execute("SELECT count(*) FROM 'memory://remote/big.evtx'").fetchone() == (CHUNKS * 55,)
    first = HEADER + PIECE
    assert sorted(memory) == [
        ("big.evtx", 0, first),
        ("big.evtx", first, PIECE),
        ("big.evtx", first + PIECE, SIZE - first - PIECE),
    ]


def test_only_the_pieces_that_a_query_needs_are_read(con, memory):
    assert len(con.execute("FROM 'memory://remote/big.evtx' LIMIT 5").fetchall()) == 5
    assert memory == [("big.evtx", 0, HEADER + PIECE)]
    memory.clear()
    query = "SELECT count(*) FROM read_evtx('memory://remote/*.evtx') WHERE filename = 'memory://remote/dirty.evtx'"
    (count,) = con.execute(query).fetchone()
    assert {name for name, *_ in memory} <= {"dirty.evtx"}
    assert count in (0, 80)  # The file system may name its files differently.
    memory.clear()
    assert con.execute("DESCRIBE FROM 'memory://remote/big.evtx'").fetchone()
    assert memory == []


def test_the_columns_of_an_event_take_the_first_piece(con, memory):
    assert con.execute("DESCRIBE FROM read_evtx('memory://remote/big.evtx', event_id := 4625)").fetchone()
    assert set(memory) == {("big.evtx", 0, HEADER + PIECE)}
    query = "SELECT count(*) FROM read_evtx('memory://remote/big.evtx', event_id := 4625) WHERE LogonType = 3"
    assert con.execute(query).fetchone() == (CHUNKS * 42,)


def test_reports_read_a_remote_log_once(con, memory):
    assert con.execute("SELECT records FROM evtx_file_metadata('memory://remote/big.evtx')").fetchone() == (CHUNKS * 55,)
    assert (len(memory), sum(size for *_, size in memory)) == (3, SIZE)


class SlowFileSystem(MemoryFileSystem):
    """A memory file system that lets other threads run between seek and read, and records which files are opened."""

    cachable = False
    opened = []

    @classmethod
    def _strip_protocol(cls, path):
        return "/" + path.split("://")[-1].strip("/")

    def _open(self, path, mode="rb", **options):
        # In fsspec's memory file system, all handles of a path share one position.
        file = super()._open(path, mode, **options)
        if self.protocol != "memory":
            file = io.BytesIO(file.getvalue())
        self.opened.append(path)

        class Slow:
            def __getattr__(self, name):
                return getattr(file, name)

            def seek(self, *where):
                at = file.seek(*where)
                time.sleep(0.005)
                return at

            def read(self, size=-1):
                time.sleep(0.005)
                return file.read(size)

        return Slow()


@pytest.mark.parametrize("protocol", ["memory", "s3", "own"])
def test_threads_read_what_they_have_sought(con, protocol):
    """DuckDB calls seek and then read on a Python file, and several threads read a log."""
    names = ["DC01-Security", "DC01-System", "DC01-Sysmon", "dirty", "wrapped"]
    logs = [(SAMPLES / f"{name}.evtx").read_bytes() for name in names]
    slow = type("Slow", (SlowFileSystem,), {"protocol": protocol, "opened": [], "store": {}})()
    # Five pieces, each of other records.
    whole = logs[0][:HEADER] + b"".join(log[HEADER:HEADER + CHUNK] * (PIECE // CHUNK) for log in logs)
    slow.pipe("/slow/log.evtx", whole)
    con.register_filesystem(slow)
    query = f"SELECT channel, computer, count(*) FROM read_evtx('{protocol}://slow/log.evtx') GROUP BY ALL ORDER BY ALL"
    con.execute("SET threads = 1")
    want = con.execute(query).fetchall()
    slow.opened.clear()
    con.execute("SET threads = 4")
    for _ in range(5):
        assert con.execute(query).fetchall() == want
    # One handle per run, or at most one per thread.
    assert len(slow.opened) == 5 if protocol != "s3" else len(slow.opened) <= 20
    con.unregister_filesystem(protocol)


class Server(http.server.BaseHTTPRequestHandler):
    """Serves ranges of the files in one folder, and records them."""

    protocol_version = "HTTP/1.1"
    folder = None
    ranges = []

    def log_message(self, *_):
        pass

    def answer(self, body):
        path = self.folder / unquote(self.path).lstrip("/")
        if not path.is_file():
            self.send_response(404)
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        data = path.read_bytes()
        size, status = len(data), 200
        asked = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", ""))
        if asked:
            first, last = int(asked[1]), min(int(asked[2] or size - 1), size - 1)
            data, status = data[first : last + 1], 206
            self.ranges.append((path.name, len(data)))
        self.send_response(status)
        if asked:
            self.send_header("Content-Range", f"bytes {first}-{last}/{size}")
        self.send_header("Accept-Ranges", "bytes")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if body:
            # Some clients request the whole file only to see whether it exists, and disconnect.
            with contextlib.suppress(ConnectionError):
                self.wfile.write(data)

    def do_HEAD(self):
        self.answer(body=False)

    def do_GET(self):
        self.answer(body=True)


@pytest.fixture(name="web")
def fixture_web(con, tmp_path):
    """The address of a server with some logs, and the ranges requested so far."""
    write_log(tmp_path / "big.evtx", "DC01-Security.evtx", CHUNKS)
    (tmp_path / "wrapped.evtx").write_bytes((SAMPLES / "wrapped.evtx").read_bytes())
    handler = type("Handler", (Server,), {"folder": tmp_path, "ranges": []})
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    # Without read-ahead, so that all requests come from the extension.
    con.register_filesystem(fsspec.filesystem("http", cache_type="none", skip_instance_cache=True))
    yield f"http://127.0.0.1:{server.server_address[1]}", handler.ranges
    server.shutdown()


def test_http_in_few_requests(con, web):
    address, ranges = web
    local = con.execute(f"SELECT * EXCLUDE (filename, error) FROM '{SAMPLES}/wrapped.evtx'").fetchall()
    assert con.execute(f"SELECT * EXCLUDE (filename, error) FROM '{address}/wrapped.evtx'").fetchall() == local
    whole = (SAMPLES / "wrapped.evtx").stat().st_size
    assert ranges == [("wrapped.evtx", whole)]
    ranges.clear()
    assert con.execute(f"SELECT count(*) FROM '{address}/big.evtx'").fetchone() == (CHUNKS * 55,)
    assert (len(ranges), sum(size for _, size in ranges)) == (3, SIZE)


def test_http_reads_no_more_than_a_limit_needs(con, web):
    address, ranges = web
    assert len(con.execute(f"FROM '{address}/big.evtx' LIMIT 5").fetchall()) == 5
    assert ranges == [("big.evtx", HEADER + PIECE)]


class FailingFileSystem(MemoryFileSystem):
    """A memory file system that fails to read past the first piece of a log."""

    cachable = False

    def _open(self, path, mode="rb", **options):
        file = super()._open(path, mode, **options)

        class Failing:
            def __getattr__(self, name):
                return getattr(file, name)

            def read(self, size=-1):
                if mode == "rb" and file.tell() >= HEADER + PIECE:
                    raise OSError("the line is cut")
                return file.read(size)

        return Failing()


@pytest.fixture(name="failing")
def fixture_failing(con, tmp_path):
    """A glob of logs. The one in the middle fails to read past its first piece."""
    failing = FailingFileSystem()
    failing.pipe("/failing/b.evtx", write_log(tmp_path / "big.evtx", "DC01-Security.evtx", CHUNKS).read_bytes())
    for name, log in [("a", "dirty"), ("c", "wrapped")]:
        failing.pipe(f"/failing/{name}.evtx", (SAMPLES / f"{log}.evtx").read_bytes())
    con.register_filesystem(failing)
    yield "memory://failing/*.evtx"
    failing.store.clear()


def failures(rows):
    """The file name of each row, and whether its error is the read error. None without an error."""
    is_cut = re.compile("cannot be read: .*the line is cut", re.DOTALL)
    return [(name.rsplit("/", 1)[1], text and is_cut.search(text) is not None) for name, text in rows]


@pytest.mark.parametrize("threads", [1, 4])
def test_a_read_error_is_a_row_of_the_file_that_has_it(con, failing, threads):
    con.execute(f"SET threads = {threads}")
    read = con.execute(f"SELECT filename, count(*) FROM '{failing}' WHERE error IS NULL GROUP BY ALL ORDER BY ALL").fetchall()
    whole = PIECE // CHUNK * 55
    assert [(name.rsplit("/", 1)[1], count) for name, count in read] == [("a.evtx", 80), ("b.evtx", whole), ("c.evtx", 160)]
    rows = con.execute(f"SELECT filename, error FROM '{failing}' WHERE error IS NOT NULL").fetchall()
    assert failures(rows) == [("b.evtx", True)]
    assert con.execute(f"SELECT count(*) FROM read_evtx('{failing}', on_error := 'skip')").fetchone() == (80 + whole + 160,)


def test_a_read_error_fails_the_query_that_names_the_file_or_wants_no_errors(con, failing):
    for query in [
        "SELECT count(*) FROM 'memory://failing/b.evtx'",
        f"SELECT count(*) FROM read_evtx('{failing}', on_error := 'fail')",
        "FROM evtx_file_metadata('memory://failing/b.evtx')",
    ]:
        with pytest.raises(duckdb.Error, match="the line is cut"):
            con.execute(query).fetchall()


def test_reports_tell_of_read_errors(con, failing):
    rows = con.execute(f"SELECT filename, error FROM evtx_file_metadata('{failing}')").fetchall()
    assert failures(rows) == [("a.evtx", None), ("b.evtx", True), ("c.evtx", None)]
    (names,) = con.execute(f"SELECT count(DISTINCT filename) FROM evtx_chunk_metadata('{failing}')").fetchone()
    assert names == 3
    assert con.execute(f"SELECT count(*) FROM read_evtx('{failing}', event_id := 4625)").fetchone()[0] > 0
