"""Shared by the Python tests: connections with the extension loaded, and large logs."""

import os
import pathlib
import struct
import zlib

import duckdb
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SAMPLES = ROOT / "samples"
EXTENSION = os.environ.get("EVTX_EXTENSION", str(ROOT / "build/release/extension/evtx/evtx.duckdb_extension"))
FILE_HEADER, CHUNK = 4096, 65536


def connect(database=":memory:", **config):
    return duckdb.connect(str(database), config={"allow_unsigned_extensions": "true", **config})


@pytest.fixture
def con():
    """A connection with the extension loaded."""
    connection = connect()
    connection.load_extension(EXTENSION)
    yield connection
    connection.close()


@pytest.fixture(scope="session")
def big_log(tmp_path_factory):
    """A log of 48 MiB: the chunk of DC01-Security.evtx, 768 times."""
    return write_log(tmp_path_factory.mktemp("big") / "big.evtx", "DC01-Security.evtx", 768)


def write_log(path, sample, chunks):
    """Writes a log that repeats a sample's first chunk."""
    data = (SAMPLES / sample).read_bytes()
    header = bytearray(data[:FILE_HEADER])
    struct.pack_into("<QQ", header, 8, 0, chunks - 1)
    struct.pack_into("<H", header, 42, chunks & 0xFFFF)
    struct.pack_into("<I", header, 124, zlib.crc32(bytes(header[:120])))
    with open(path, "wb") as log:
        log.write(header)
        for _ in range(chunks):
            log.write(data[FILE_HEADER:FILE_HEADER + CHUNK])
    return path
