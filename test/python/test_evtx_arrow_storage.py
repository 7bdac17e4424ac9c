"""evtx_arrow reads from pyarrow.fs and fsspec: with few, large requests, on the thread that reads the stream."""

import collections
import concurrent.futures
import pickle
import tarfile
import threading

import evtx_arrow as evtx
import fsspec
import polars
import pyarrow as pa
import pytest
from conftest import SAMPLES, write_log, write_zip
from fsspec.implementations.memory import MemoryFileSystem
from pyarrow import fs
from structures import CHUNK, FILE_HEADER
from test_evtx_arrow import assert_same

PIECE = 8 << 20
# Only local logs have their messages next to them.
SQL = f"""
    SELECT * REPLACE (parse_filename(filename) AS filename, replace(error, filename, parse_filename(filename)) AS error)
    FROM   read_evtx('{SAMPLES}', messages := '')
"""


def named(table):
    """The rows with file names instead of paths."""
    paths = table["filename"].to_pylist()
    names = [path.rsplit("/", 1)[-1] for path in paths]
    errors = [error and error.replace(path, name) for error, path, name in zip(table["error"].to_pylist(), paths, names)]
    for column, values in (("filename", names), ("error", errors)):
        table = table.set_column(table.schema.get_field_index(column), column, pa.array(values, pa.string()))
    return table


class Recorded(fs.FileSystemHandler):
    """A pyarrow file system that records requests and the threads that make them."""

    def __init__(self, folder):
        self.inner = fs.SubTreeFileSystem(str(folder), fs.LocalFileSystem())
        self.asked, self.threads = collections.Counter(), set()
        self.fails_after = None

    def get_type_name(self):
        return "recorded"

    def get_file_info(self, paths):
        self.asked["info"] += len(paths)
        return self.inner.get_file_info(paths)

    def get_file_info_selector(self, selector):
        self.asked["list"] += 1
        return self.inner.get_file_info(selector)

    def open_input_file(self, path):
        self.asked["open"] += 1
        return pa.PythonFile(RecordedFile(self, self.inner.open_input_file(path)), mode="r")

    def normalize_path(self, path):
        return path

    create_dir = delete_dir = delete_dir_contents = delete_root_dir_contents = delete_file = None
    move = copy_file = open_input_stream = open_output_stream = open_append_stream = None


class RecordedFile:
    def __init__(self, handler, file):
        self.handler, self.file = handler, file

    def read(self, size=-1):
        self.handler.threads.add(threading.get_ident())
        if self.handler.fails_after is not None and self.handler.asked["read"] >= self.handler.fails_after:
            raise OSError("the network is gone")
        data = self.file.read(size)
        self.handler.asked["read"] += 1
        self.handler.asked["bytes"] += len(data)
        return data

    def __getattr__(self, name):
        return getattr(self.file, name)

    @property
    def closed(self):
        return self.file.closed


@pytest.fixture
def memory():
    filesystem = MemoryFileSystem()
    filesystem.rm("/", recursive=True) if filesystem.ls("/") else None
    for log in SAMPLES.glob("*.evtx"):
        filesystem.pipe(f"/case/Ünï 1%4/{log.name}", log.read_bytes())
    yield filesystem
    filesystem.rm("/", recursive=True)


def test_pyarrow_file_systems(con):
    local = fs.LocalFileSystem()
    for files in (str(SAMPLES), f"{SAMPLES}/*.evtx", f"{SAMPLES}/**/*.EvTx", [str(log) for log in SAMPLES.glob("*.evtx")]):
        rows = pa.table(evtx.scan(files, filesystem=local, threads=4))
        assert_same(con, named(rows), SQL)
    inner = fs.SubTreeFileSystem(str(SAMPLES.parent), local)
    rows = evtx.scan(SAMPLES.name, filesystem=inner)
    assert_same(con, named(pa.table(rows)), SQL)
    assert all(path.startswith(f"{SAMPLES.name}/") for path in rows.files)


def test_fsspec_file_systems(con, memory):
    for files in ("/case", "case", "/case/Ünï 1%4/*.evtx", "memory://case/**/*.evtx", "/case/*/*"):
        rows = pa.table(evtx.scan(files, filesystem=memory))
        assert_same(con, named(rows), SQL)
    partitions = evtx.scan("/case", filesystem=memory).partitions(1 << 20)
    assert len(partitions) > 1
    rows = pa.concat_tables([pa.table(pickle.loads(pickle.dumps(partition))) for partition in partitions])
    assert_same(con, named(rows), SQL)
    assert evtx.scan_polars("/case", filesystem=memory).filter(polars.col("event_id") == 4625).collect().height > 0


def test_archives_in_a_file_system(con, memory, tmp_path):
    archive = write_zip(tmp_path / "case.zip", {log.name: log for log in SAMPLES.glob("*.evtx")})
    memory.pipe("/zips/case.zip", archive.read_bytes())
    rows = evtx.scan("/zips/*.zip", filesystem=memory)
    assert_same(con, named(pa.table(rows)), SQL)
    for partition in rows.partitions():
        assert_same(con, named(pa.table(partition)), SQL)


def test_requests_are_few_and_large_and_come_from_the_reading_thread(tmp_path):
    (tmp_path / "logs").mkdir()
    for number in range(20):
        (tmp_path / f"logs/{number}.evtx").write_bytes((SAMPLES / "DC01-System.evtx").read_bytes())
    handler = Recorded(tmp_path)
    scan = evtx.scan("logs", filesystem=fs.PyFileSystem(handler), threads=8)
    assert handler.asked["list"] == 1 and handler.asked["open"] == handler.asked["read"] == 0
    # One request for the path itself, none per file.
    assert handler.asked["info"] <= 2
    rows = pa.table(scan)
    assert rows.num_rows == 20 * pa.table(evtx.scan(SAMPLES / "DC01-System.evtx")).num_rows
    assert handler.asked["open"] == handler.asked["read"] == 20, "a file of up to 8 MiB takes one read"
    assert handler.asked["info"] <= 2 and handler.threads == {threading.get_ident()}

    chunks = 300
    write_log(tmp_path / "logs/large.evtx", "DC01-Security.evtx", chunks)
    large = Recorded(tmp_path)
    scan = evtx.scan("logs/large.evtx", filesystem=fs.PyFileSystem(large))
    assert pa.table(scan).num_rows == pa.table(evtx.scan(tmp_path / "logs/large.evtx")).num_rows
    # Ranges of 8 MiB, and two small reads to find the oldest chunk.
    assert large.asked["read"] <= -(-chunks * CHUNK // PIECE) + 3
    assert large.asked["bytes"] <= FILE_HEADER + chunks * CHUNK + PIECE
    part = Recorded(tmp_path)
    for partition in evtx.scan("logs/large.evtx", filesystem=fs.PyFileSystem(part), columns=["record_id"]).partitions(PIECE)[1:]:
        pa.table(partition)
    assert part.asked["bytes"] <= (chunks * CHUNK - PIECE) + 3 * FILE_HEADER


def test_fsspec_asks_for_ranges_only(memory):
    asked = collections.Counter()

    class Counting(MemoryFileSystem):
        cachable = False
        store, pseudo_dirs = MemoryFileSystem.store, MemoryFileSystem.pseudo_dirs

        def info(self, path, **options):
            asked["info"] += 1
            return super().info(path, **options)

        def cat_file(self, path, start=None, end=None, **options):
            asked["cat"] += 1
            return MemoryFileSystem.cat_file(MemoryFileSystem(), path, start=start, end=end, **options)

    scan = evtx.scan("/case/*/*.evtx", filesystem=Counting())
    before = asked["info"]
    assert pa.table(scan).num_rows > 0
    assert asked["cat"] == len(scan.files) and asked["info"] == before, "no HEAD follows the listing"


def test_scans_in_threads_take_turns_with_one_position(tmp_path):
    with tarfile.open(tmp_path / "logs.tar", "w") as archive:
        for name in ["DC01-Security", "DC01-Sysmon"]:
            path = write_log(tmp_path / f"{name}.evtx", f"{name}.evtx", 150)
            archive.add(path, arcname=f"logs/{path.name}")
    filesystem = fsspec.filesystem("tar", fo=str(tmp_path / "logs.tar"), skip_instance_cache=True)

    def counts(_):
        rows = pa.table(evtx.scan("logs/*.evtx", filesystem=filesystem, columns=["channel", "error"]))
        return sorted(rows.group_by(["channel", "error"]).aggregate([([], "count_all")]).to_pylist(), key=str)

    want = counts(0)
    with concurrent.futures.ThreadPoolExecutor(4) as threads:
        assert list(threads.map(counts, range(12))) == [want] * 12


def test_exceptions_of_a_file_system_reach_the_caller(tmp_path, memory):
    class Broken(MemoryFileSystem):
        cachable = False

        def info(self, path, **options):
            raise PermissionError(f"no entry to {path}")

    with pytest.raises(PermissionError, match="no entry to .*secret.evtx"):
        evtx.scan("/secret.evtx", filesystem=Broken())
    for filesystem in (memory, fs.LocalFileSystem()):
        with pytest.raises((FileNotFoundError, OSError), match="nowhere.evtx"):
            evtx.scan("/nowhere.evtx", filesystem=filesystem)
        with pytest.raises(FileNotFoundError, match="nowhere"):
            evtx.scan("/nowhere/*.evtx", filesystem=filesystem)

    write_log(tmp_path / "large.evtx", "DC01-Security.evtx", 400)
    for files in ("large.evtx", "*.evtx"):
        for on_error in ("report", "skip", "fail"):
            handler = Recorded(tmp_path)
            handler.fails_after = 2
            with pytest.raises(OSError, match="large.evtx.*the network is gone"):
                pa.table(evtx.scan(files, filesystem=fs.PyFileSystem(handler), on_error=on_error))
    handler = Recorded(tmp_path)
    handler.fails_after = 0
    rows = pa.table(evtx.scan("*.evtx", filesystem=fs.PyFileSystem(handler), columns=["error"]))
    assert [("the network is gone" in error) for error in rows["error"].to_pylist()] == [True], "an unreadable file that a glob found becomes a row"
    memory.pipe("/shrinks.evtx", (tmp_path / "large.evtx").read_bytes())
    partitions = evtx.scan("/shrinks.evtx", filesystem=memory).partitions(16 << 20)
    memory.pipe("/shrinks.evtx", (tmp_path / "large.evtx").read_bytes()[:100_000])

    class Generous(MemoryFileSystem):
        cachable = False

        def cat_file(self, path, start=None, end=None, **options):
            return super().cat_file(path, start=start, end=end, **options) + b"more"

    with pytest.raises(OSError, match="shrinks.evtx.* where .* were asked for"):
        pa.table(evtx.scan("/shrinks.evtx", filesystem=Generous()))
    globbed = evtx.scan("/*.evtx", filesystem=memory)
    memory.pipe("/shrinks.evtx", (tmp_path / "large.evtx").read_bytes()[:90_000])
    for partition in [*partitions, globbed]:
        with pytest.raises(OSError, match="shrinks.evtx"):
            pa.table(partition)


def test_uris(con, tmp_path):
    assert_same(con, named(pa.table(evtx.scan(SAMPLES.as_uri(), messages=""))), SQL)
    (tmp_path / "a b").mkdir()
    (tmp_path / "a b/c.evtx").write_bytes((SAMPLES / "DC01-System.evtx").read_bytes())
    assert evtx.scan((tmp_path / "a b/c.evtx").as_uri()).files == [str(tmp_path / "a b/c.evtx")]
    with pytest.raises((ValueError, OSError), match="nonsense"):
        evtx.scan("nonsense://a/b.evtx")


def test_s3_through_pyarrow(con, s3, monkeypatch):
    filesystem = fs.S3FileSystem(access_key="key", secret_key="secret", endpoint_override=s3, region="us-east-1")
    for files in ("logs/case 1", "logs/*/*.evtx", "logs/case 1/*.EVTX"):
        assert_same(con, named(pa.table(evtx.scan(files, filesystem=filesystem))), SQL)
    partitions = evtx.scan("logs/case 1", filesystem=filesystem).partitions(1 << 20)
    rows = pa.concat_tables([pa.table(pickle.loads(pickle.dumps(partition))) for partition in partitions])
    assert_same(con, named(rows), SQL)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "key")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    monkeypatch.setenv("AWS_ENDPOINT_URL", s3)
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    for files in ("s3://logs/*/*.evtx", "s3://logs/case 1", "s3://logs", [f"s3://logs/case 1/{log.name}" for log in SAMPLES.glob("*.evtx")]):
        scan = evtx.scan(files)
        assert_same(con, named(pa.table(scan)), SQL)
        assert all(path.startswith("s3://logs/case 1/") for path in scan.files)
    with pytest.raises(ValueError, match="one file system.*other"):
        evtx.scan(["s3://logs/a.evtx", "s3://other/a.evtx"])


def test_s3_through_fsspec(con, s3):
    s3fs = pytest.importorskip("s3fs")
    filesystem = s3fs.S3FileSystem(key="key", secret="secret", endpoint_url=s3)
    for files in ("logs/case 1", "s3://logs/case 1/*.evtx"):
        assert_same(con, named(pa.table(evtx.scan(files, filesystem=filesystem))), SQL)


def test_every_consumer_reads_files_of_python(con, memory):
    rows = evtx.scan("/case", filesystem=memory, columns=["record_id", "event_id", "computer"])
    count = pa.table(rows).num_rows
    assert con.execute("SELECT count(*) FROM rows").fetchone()[0] == count
    assert polars.DataFrame(rows).height == count
    import pandas

    assert len(pandas.DataFrame.from_arrow(rows)) == count
    datafusion = pytest.importorskip("datafusion")
    assert datafusion.SessionContext().from_arrow(rows, name="events").count() == count
    assert fsspec.filesystem("memory").ls("/case")
