"""The extension installs from a custom repository."""

import functools
import http.server
import pathlib
import shutil
import subprocess
import sys
import threading

import duckdb
import pytest
from conftest import EXTENSION, ROOT, SAMPLES, connect


@pytest.fixture(name="repository", scope="module")
def fixture_repository(tmp_path_factory):
    folder = tmp_path_factory.mktemp("repository")
    subprocess.run([sys.executable, ROOT / "tools" / "make_repository.py", EXTENSION, folder], check=True)
    return folder


def count_installed_from(source, folder):
    with connect(extension_directory=str(folder)) as con:
        con.execute(f"INSTALL evtx FROM '{source}'")
        con.execute("LOAD evtx")
        installed = con.execute("SELECT installed_from FROM duckdb_extensions() WHERE extension_name = 'evtx'").fetchone()
        assert installed == (str(source),)
        return con.execute(f"SELECT count(*) FROM read_evtx('{SAMPLES}/DC01-Security.evtx')").fetchone()[0]


def test_it_installs_from_a_folder(repository, tmp_path):
    assert count_installed_from(repository, tmp_path) == 55


def test_it_installs_from_a_web_server(repository, tmp_path):
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=repository)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            assert count_installed_from(f"http://127.0.0.1:{server.server_port}", tmp_path) == 55
        finally:
            server.shutdown()


@pytest.mark.parametrize("name", ["evtx.duckdb_extension.gz", "evtx.{platform}.duckdb_extension.gz"])
def test_one_file_installs(repository, tmp_path, name):
    packed = next(repository.glob("*/*/*.gz"))
    file = tmp_path / name.format(platform=packed.parent.name)
    shutil.copy(packed, file)
    with connect(extension_directory=str(tmp_path / "extensions")) as con:
        con.execute(f"INSTALL '{file}'")
        con.execute("LOAD evtx")
        assert con.execute(f"SELECT count(*) FROM read_evtx('{SAMPLES}/DC01-Security.evtx')").fetchone() == (55,)


@pytest.mark.parametrize("field", [1, 2])
def test_a_file_for_others_says_for_whom(tmp_path, field):
    # The platform and DuckDB's version are fields of 32 bytes, backwards from the signature.
    extension = bytearray(pathlib.Path(EXTENSION).read_bytes())
    start = len(extension) - 256 - 32 * (field + 1)
    own = extension[start : start + 32].rstrip(b"\0").decode()
    extension[start : start + 32] = b"another".ljust(32, b"\0")
    file = tmp_path / "evtx.duckdb_extension"
    file.write_bytes(extension)
    with connect() as con, pytest.raises(duckdb.Error, match=f"'another'.*'{own}'"):
        con.execute(f"LOAD '{file}'")
