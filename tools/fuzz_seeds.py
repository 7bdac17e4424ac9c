"""Makes seeds for the fuzz targets from logs. usage: fuzz_seeds.py OUT LOG [LOG ...]

Writes the folders `file`, `chunk`, `record`, `redact` and `mta` into OUT: small logs, chunks up to their free space, the BinXML of first
records (twice), and the messages next to the logs. `archive` has small logs in archives, and `rules` the rules next to the logs.
`messages_binary`, `messages_hive` and `messages_catalog` have the files of the tests, and the files up to 1 MiB in the folders that
EVTX_BINARIES and EVTX_HIVES name.
"""

import bz2
import gzip
import io
import lzma
import os
import pathlib
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
    """Archives of a small log, each with the number of its kind in front: see rust/tools/fuzz/fuzz_targets/archive.rs."""
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


def message_files(out):
    """Files of messages: those of the tests, and of the environment."""
    tests = pathlib.Path(__file__).parent.parent / "test/data/messages"
    for target, paths, variable in (("messages_binary", ("x.dll", "en-US/x.dll.mui"), "EVTX_BINARIES"),
                                    ("messages_catalog", ("texts.messages",), ""),
                                    ("messages_hive", (), "EVTX_HIVES")):
        (out / target).mkdir(parents=True, exist_ok=True)
        found = [tests / path for path in paths]
        if os.environ.get(variable):
            found += [path for path in pathlib.Path(os.environ[variable]).rglob("*") if path.is_file() and path.stat().st_size < 1 << 20]
        for number, path in enumerate(found):
            (out / target / f"{number}-{path.name}").write_bytes(path.read_bytes())


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
