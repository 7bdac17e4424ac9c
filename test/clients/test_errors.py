"""The errors that docs/install.md explains are what DuckDB says."""

import functools
import http.server
import re
import threading

import pytest
from conftest import DOWNLOAD, EXTENSION, OWN, TOO_OLD, section

ALLOWED = "true"
FILE, RENAMED = "evtx.duckdb_extension", "events.duckdb_extension"


def file_for(platform="linux_amd64", version="v1.5.6", interface="C_STRUCT"):
    """A file that DuckDB refuses before it reads the code in it."""
    fields = ["", "", "", interface, "", version, platform, "4"]
    return b"".join(field.encode().ljust(32, b"\0") for field in fields) + bytes(256)


# By a part of each text: the DuckDB that says it, whether it allows unsigned extensions, a file that lies in the home folder, a statement.
PROVOKED = {
    "platform": (OWN, ALLOWED, file_for(platform="windows_amd64"), f"LOAD '{FILE}'"),
    "specifically": (OWN, ALLOWED, file_for(version="v2.0.0", interface="CPP"), f"LOAD '{FILE}'"),
    "read_evtx does not exist": (OWN, ALLOWED, None, "FROM read_evtx('case')"),
    "Cannot change": (OWN, "false", None, "SET allow_unsigned_extensions = true"),
    "cannot open shared": (OWN, ALLOWED, EXTENSION.read_bytes(), f"LOAD '{FILE}'"),
    "did not contain": (OWN, ALLOWED, EXTENSION.read_bytes(), f"LOAD './{RENAMED}'"),
    "C API": (TOO_OLD, ALLOWED, file_for(), f"LOAD '{FILE}'"),
    "signature is": (OWN, "false", file_for(), f"LOAD '{FILE}'"),
    "Attempting": (OWN, "false", file_for(), f"INSTALL '{FILE}'"),
    "ending with": (OWN, ALLOWED, None, f"LOAD '{DOWNLOAD}'"),
    "no access": (OWN, ALLOWED, None, "INSTALL evtx FROM '{home}/nothing'"),
    "HTTP 404": (OWN, ALLOWED, None, "INSTALL evtx FROM 'http://127.0.0.1:{port}'"),
    "not found": (OWN, ALLOWED, None, "LOAD evtx"),
    "origin": (OWN, ALLOWED, None, f"INSTALL evtx FROM '{{repository}}'; INSTALL '{DOWNLOAD}'"),
}


def explained():
    """The texts of the table."""
    rows = re.findall(r"^\| (.*?) \|", section("If it does not load"), re.MULTILINE)[2:]
    return [text for row in rows for text in re.findall(r"`(.*?)`", row.partition("pip:")[0])]


def alike(text):
    """A text without what depends on the machine: versions, platforms, addresses and folders."""
    text = re.sub(r"v(\d+\.\d+\.\d+|X\.Y\.Z)", "VERSION", text)
    text = re.sub(r"(linux|windows|osx)_\w+", "PLATFORM", text)
    text = re.sub(r'URL ".*?"', "URL", text)
    return re.sub(r'"[^"]*?/(?=VERSION/)', '"', text)


@pytest.fixture(name="port")
def fixture_port(tmp_path):
    """The port of a web server that has no file."""
    (tmp_path / "nothing").mkdir()
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=tmp_path / "nothing")
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_port
        server.shutdown()


@pytest.mark.parametrize("text", explained())
def test_duckdb_says(home, port, text):
    duckdb, allowed, file, statement = next(provoked for part, provoked in PROVOKED.items() if part in text)
    if file:
        (home.folder / FILE).write_bytes(file)
        (home.folder / RENAMED).symlink_to(FILE)
    statement = statement.format(home=home.folder, port=port, repository=(home.folder / DOWNLOAD).resolve().parents[2])
    output = home.python(f"""
import duckdb
try:
    duckdb.connect(config={{"allow_unsigned_extensions": {allowed!r}}}).execute({statement!r})
except duckdb.Error as error:
    print(error)
""", duckdb)
    assert alike(text) in alike(output), output


def test_every_error_is_explained():
    assert len(explained()) == len(PROVOKED)
