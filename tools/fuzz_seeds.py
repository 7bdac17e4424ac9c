"""Makes seeds for the fuzz targets from logs. usage: fuzz_seeds.py OUT LOG [LOG ...]

Writes the folders `file`, `chunk`, `record`, `redact` and `mta` into OUT: small logs, chunks up to their free space, the BinXML of first
records (twice), and the messages next to the logs. `archive` has small logs in archives, and `rules` the rules next to the logs.
`messages_binary`, `messages_hive`, `messages_database` and `messages_catalog` have the files of the tests, databases that SQLite writes, and
the files up to 1 MiB in the folders that EVTX_BINARIES, EVTX_HIVES and EVTX_MESSAGE_DATABASES name.
"""

import bz2
import gzip
import io
import lzma
import os
import pathlib
import sqlite3
import struct
import sys
import tarfile
import zipfile

FILE_HEADER, CHUNK, RECORDS = 4096, 65536, 512


def records(chunk, most):
    """The BinXML of a chunk's first records."""
    at = RECORDS
    for _ in range(most):
        if chunk[at:at + 4] != b"**\0\0":
            return
        size, = struct.unpack_from("<I", chunk, at + 4)
        if not 28 <= size <= len(chunk) - at:
            return
        yield chunk[at + 24:at + size - 4]
        at += size


def archives(name, log):
    """Archives of a small log, each with the number of its kind in front: see rust/fuzz/fuzz_targets/archive.rs."""
    zipped, tarred = io.BytesIO(), io.BytesIO()
    with zipfile.ZipFile(zipped, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(name, log)
        archive.writestr("b/" + name, log[:5000])
    with tarfile.open(fileobj=tarred, mode="w") as archive:
        for entry in (name, "b/" + name):
            info = tarfile.TarInfo(entry)
            info.size = len(log)
            archive.addfile(info, io.BytesIO(log))
    tar = tarred.getvalue()
    for kind, archive in ((0, zipped.getvalue()), (2, tar), (3, gzip.compress(tar)), (5, bz2.compress(tar)), (6, lzma.compress(tar)),
                          (7, gzip.compress(log)), (9, bz2.compress(log)), (10, lzma.compress(log))):
        yield kind, bytes([kind]) + archive


# Databases of messages as others make them: those of WELM, and of plaso.
WELM = """
CREATE TABLE providers (id INTEGER PRIMARY KEY, name TEXT, guid TEXT);
CREATE TABLE messages (id INTEGER PRIMARY KEY, provider_id INTEGER, event_id INTEGER, version INTEGER, message TEXT);
INSERT INTO providers VALUES (1, 'Old', NULL), (2, 'New', '{54849625-5478-4994-a5ba-3e3b0328c30d}');
INSERT INTO messages SELECT value, 1 + value % 2, value, 0, 'text ' || value || printf('%.*c', value, 'x') FROM generate_series(1, 2000);
"""
PLASO = """
CREATE TABLE winevtrc_eventlog_provider (_identifier INTEGER PRIMARY KEY, event_message_files TEXT, parameter_message_files TEXT,
  identifier TEXT, log_sources TEXT, name TEXT);
CREATE TABLE winevtrc_message_file (_identifier INTEGER PRIMARY KEY, windows_path TEXT);
CREATE TABLE winevtrc_message_table (_identifier INTEGER PRIMARY KEY, _message_file_identifier TEXT, language_identifier INTEGER);
CREATE TABLE winevtrc_message_string (_identifier INTEGER PRIMARY KEY, _message_table_identifier TEXT, message_identifier INTEGER, text TEXT);
CREATE TABLE winevtrc_message_string_mapping (_message_file_identifier TEXT, event_identifier INTEGER, event_version INTEGER,
  message_identifier INTEGER, provider_identifier TEXT);
INSERT INTO winevtrc_eventlog_provider VALUES (1, '["a.dll"]', '["b.dll"]', '{54849625-5478-4994-a5ba-3e3b0328c30d}', '["One", "Two"]', NULL);
INSERT INTO winevtrc_message_file VALUES (1, 'C:\\a.dll'), (2, 'C:\\b.dll');
INSERT INTO winevtrc_message_table VALUES (1, 'winevtrc_message_file.1', 1033), (2, 'winevtrc_message_file.2', 1031);
INSERT INTO winevtrc_message_string SELECT value, 'winevtrc_message_table.' || (1 + value % 2), value, 'text {0:s} ' || value
  FROM generate_series(1, 1000);
INSERT INTO winevtrc_message_string_mapping VALUES ('winevtrc_message_file.1', 1, 0, 2, '{54849625-5478-4994-a5ba-3e3b0328c30d}');
"""


def database(script, page_size, encoding):
    """The bytes of a database that a script fills."""
    series = "(WITH RECURSIVE s(value) AS (SELECT 1 UNION ALL SELECT value + 1 FROM s WHERE value < {}) SELECT value FROM s)"
    for most in (1000, 2000):
        script = script.replace(f"generate_series(1, {most})", series.format(most))
    connection = sqlite3.connect(":memory:")
    connection.executescript(f"PRAGMA page_size = {page_size}; PRAGMA encoding = '{encoding}'; {script}")
    return connection.serialize()


def message_files(out):
    """Files of messages: those of the tests, of SQLite, and of the environment."""
    tests = pathlib.Path(__file__).parent.parent / "test/data/messages"
    for target, paths, variable in (("messages_binary", ("x.dll", "en-US/x.dll.mui"), "EVTX_BINARIES"),
                                    ("messages_catalog", ("texts.messages",), ""),
                                    ("messages_hive", (), "EVTX_HIVES"),
                                    ("messages_database", (), "EVTX_MESSAGE_DATABASES")):
        (out / target).mkdir(parents=True, exist_ok=True)
        found = [tests / path for path in paths]
        if os.environ.get(variable):
            found += [path for path in pathlib.Path(os.environ[variable]).rglob("*") if path.is_file() and path.stat().st_size < 1 << 20]
        for number, path in enumerate(found):
            (out / target / f"{number}-{path.name}").write_bytes(path.read_bytes())
    for name, script in (("welm", WELM), ("plaso", PLASO)):
        for page_size, encoding in ((512, "UTF-8"), (4096, "UTF-16le"), (65536, "UTF-16be")):
            (out / "messages_database" / f"{name}-{page_size}").write_bytes(database(script, page_size, encoding))


def main(out, logs):
    for name in ("file", "chunk", "record", "redact", "mta", "archive", "rules"):
        (out / name).mkdir(parents=True, exist_ok=True)
    message_files(out)
    for folder in {pathlib.Path(path).parent / "rules" for path in logs}:
        for path in folder.rglob("*.yml"):
            (out / "rules" / path.name).write_bytes(path.read_bytes())
    for number, path in enumerate(logs):
        log = pathlib.Path(path).read_bytes()
        if len(log) < 300_000:
            (out / "file" / f"{number}").write_bytes(log)
        if number == 0:
            for kind, archive in archives("a.evtx", log[:FILE_HEADER + CHUNK]):
                (out / "archive" / f"{number}-{kind}").write_bytes(archive)
        # A log of one chunk that ends after its records is a smaller seed.
        first = log[FILE_HEADER:FILE_HEADER + CHUNK]
        free, = struct.unpack_from("<I", first, 48)
        (out / "file" / f"{number}-short").write_bytes(log[:FILE_HEADER + max(RECORDS, min(free, CHUNK))])
        for at in range(FILE_HEADER, min(len(log), FILE_HEADER + 4 * CHUNK), CHUNK):
            chunk = log[at:at + CHUNK]
            if len(chunk) < RECORDS:
                continue
            free, = struct.unpack_from("<I", chunk, 48)
            (out / "chunk" / f"{number}-{at}").write_bytes(chunk[:max(RECORDS, min(free, CHUNK))])
            # The offsets of inline definitions are only right if the record directly follows the header.
            for i, binxml in enumerate(records(chunk, 3)):
                for target in ("record", "redact"):
                    (out / target / f"{number}-{at}-{i}").write_bytes(binxml)
    for folder in {pathlib.Path(path).parent / "LocaleMetaData" for path in logs}:
        for path in folder.glob("*.MTA"):
            (out / "mta" / path.name).write_bytes(path.read_bytes())


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    main(pathlib.Path(sys.argv[1]), sys.argv[2:])
