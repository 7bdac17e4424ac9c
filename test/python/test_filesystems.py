"""File systems registered in Python whose files or handles share one position."""

import io
import tarfile
import threading
import time
import zipfile

import fsspec
import pytest
from conftest import SAMPLES, write_log
from fsspec.implementations.memory import MemoryFileSystem

SMALL = ["DC01-Security", "DC01-System", "DC01-Sysmon", "dirty", "wrapped", "oddities"]
RULE = SAMPLES / "rules"


@pytest.fixture(name="files", scope="module")
def fixture_files(tmp_path_factory):
    """The files for the file systems, by path: two large logs, small ones, and rules."""
    folder = tmp_path_factory.mktemp("logs")
    large = {name: write_log(folder / name, f"{name}.evtx", 200).read_bytes() for name in ["DC01-Sysmon", "DC01-System"]}
    files = {f"large/{name}.evtx": data for name, data in large.items()}
    files |= {f"small/{i}-{name}.evtx": (SAMPLES / f"{name}.evtx").read_bytes() for name in SMALL for i in range(5)}
    return files | {f"rules/{rule.name}": rule.read_bytes() for rule in RULE.glob("*.yml")}


def tar(files, folder):
    path = folder / "logs.tar"
    with tarfile.open(path, "w") as archive:
        for name, data in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return fsspec.filesystem("tar", fo=str(path), skip_instance_cache=True)


def zipped(files, folder):
    path = folder / "logs.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return fsspec.filesystem("zip", fo=str(path), skip_instance_cache=True)


def libarchive(files, folder):
    try:
        import libarchive  # noqa: F401
    except Exception as error:  # The package is installed without the library.
        pytest.skip(str(error))
    zipped(files, folder)
    return fsspec.filesystem("libarchive", fo=str(folder / "logs.zip"), skip_instance_cache=True)


def memory(files, _folder):
    return fill(MemoryFileSystem(skip_instance_cache=True), files)


class OnePosition(MemoryFileSystem):
    """A file system with one position for all files, which counts overlapping calls."""

    protocol = "own"
    cachable = False
    store, pseudo_dirs = {}, [""]
    position = 0
    overlaps = 0
    calls = 0
    busy = threading.Lock()

    @classmethod
    def _strip_protocol(cls, path):
        return "/" + path.split("://")[-1].strip("/")

    def alone(self, call):
        cls = OnePosition
        cls.calls += 1
        is_alone = cls.busy.acquire(blocking=False)
        cls.overlaps += not is_alone
        try:
            time.sleep(0.0002)
            return call()
        finally:
            if is_alone:
                cls.busy.release()

    def info(self, path, **options):
        return self.alone(lambda: super(OnePosition, self).info(path, **options))

    def exists(self, path, **options):
        return self.alone(lambda: super(OnePosition, self).exists(path, **options))

    def _open(self, path, mode="rb", **options):
        own, file = self, self.alone(lambda: super(OnePosition, self)._open(path, mode, **options))

        class Handle:
            def __getattr__(self, name):
                return getattr(file, name)

            def seek(self, at, *_):
                def seek():
                    OnePosition.position = at
                    return at

                return own.alone(seek)

            def read(self, size=-1):
                def read():
                    at = OnePosition.position
                    data = file.getvalue()
                    data = data[at:] if size < 0 else data[at:at + size]
                    OnePosition.position = at + len(data)
                    return data

                return own.alone(read)

        return Handle()


def own(files, _folder):
    OnePosition.store.clear()
    return fill(OnePosition(), files)


def fill(filesystem, files):
    filesystem.store.clear()
    for name, data in files.items():
        filesystem.pipe("/" + name, data)
    return filesystem


QUERIES = {
    "rows": "SELECT channel, computer, event_id, count(*), sum(record_id), count(error) FROM read_evtx({logs}) GROUP BY ALL",
    "files": "SELECT * EXCLUDE event_record_ids FROM evtx_file_metadata({logs})",
    "chunks": "SELECT * FROM evtx_chunk_metadata({logs})",
    "schema": "SELECT * FROM evtx_schema({logs})",
    "sigma": "SELECT rule_title, computer, event_id, count(*) FROM evtx_sigma({logs}, rules := {rules}) GROUP BY ALL",
    "rules": "SELECT * FROM evtx_sigma_rules({rules})",
}


@pytest.mark.parametrize("make", [tar, zipped, libarchive, memory, own])
def test_any_number_of_threads_reads_the_same(con, tmp_path, files, make):
    filesystem = make(files, tmp_path)
    con.register_filesystem(filesystem)
    protocol = filesystem.protocol if isinstance(filesystem.protocol, str) else filesystem.protocol[0]
    calls = OnePosition.calls
    try:
        paths = {"logs": f"['{protocol}://small/*.evtx', '{protocol}://large/*.evtx']", "rules": f"'{protocol}://rules/*.yml'"}
        for name, query in QUERIES.items():
            query = f"SELECT * FROM ({query.format(**paths)}) ORDER BY ALL"
            con.execute("SET threads = 1")
            want = con.execute(query).fetchall()
            assert want, name
            con.execute("SET threads = 4")
            for _ in range(2):
                assert con.execute(query).fetchall() == want, name
    finally:
        con.unregister_filesystem(protocol)
    assert OnePosition.overlaps == 0
    assert make is not own or OnePosition.calls > calls


def test_two_connections_take_turns(con, tmp_path, files):
    """A result that is only partly read does not block other connections."""
    filesystem = own(files, tmp_path)
    con.register_filesystem(filesystem)
    left = con.cursor()
    left.execute("SELECT * FROM read_evtx('own://large/*.evtx')").fetchmany(10)
    query = "SELECT count(*), sum(record_id) FROM read_evtx('own://large/*.evtx')"
    results, threads = [], []
    for _ in range(3):
        thread = threading.Thread(target=lambda cursor: results.append(cursor.execute(query).fetchone()), args=[con.cursor()])
        thread.start()
        threads.append(thread)
    for thread in threads:
        thread.join(600)
    del left
    con.unregister_filesystem("own")
    assert len(results) == 3 and len(set(results)) == 1
    assert OnePosition.overlaps == 0
