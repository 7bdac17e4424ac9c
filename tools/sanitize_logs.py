"""Reads damaged logs in every way, for builds with sanitizers. usage: sanitize_logs.py EXTENSION LOG [LOG ...]

Damages each log in a few ways, the same in every run. Logs in the folder that EVTX_HOSTILE names are read unchanged.
"""

import os
import pathlib
import random
import sys
import tempfile
import threading

import duckdb

CASES = 8
# Statements are interrupted after this time, because some hostile logs take long.
MOST_SECONDS = 2
# The text of errors and rows after a panic.
PANIC = "internal error in the EVTX reader"

ALL = "recover := true, verify := true, location := true, xml := true, json := true"
# These read every column, and return little to Python.
STATEMENTS = [
    f"SELECT count(COLUMNS(*)) FROM {source}"
    for source in [
        f"read_evtx($1, {ALL})",
        "(SELECT * EXCLUDE (error) FROM read_evtx($1))",
        "read_evtx($1, on_error := 'fail')",
        "read_evtx($1, event_id := [1, 4624, 4625, 4688, 7045])",
        "evtx_schema($1)",
        "evtx_file_metadata($1)",
        "evtx_chunk_metadata($1)",
    ]
] + [f"SELECT error FROM read_evtx($1, {ALL}) WHERE contains(error, '{PANIC}')"]


def damage(data, numbers):
    """Changes a few bytes, mostly in headers or in the first records of a chunk."""
    for _ in range(numbers.randint(1, 8)):
        chunk = 4096 + 65536 * numbers.randrange(max(len(data) // 65536, 1))
        at = min(numbers.choice([numbers.randrange(4608), chunk + numbers.randrange(8192), numbers.randrange(len(data))]), len(data) - 1)
        match numbers.randrange(6):
            case 0:
                del data[max(at, 1) :]
            case 1:
                end = min(at + numbers.randrange(4096), len(data))
                data[at:end] = bytes(end - at)
            case 2:
                number = numbers.choice([0, 1, 0x7F, 0xFFFF, 0xFFFFFFFF, 512, numbers.randrange(65536)])
                end = min(at + 4, len(data))
                data[at:end] = number.to_bytes(4, "little")[: end - at]
            case _:
                data[at] ^= 1 << numbers.randrange(8)


def read(connection, path):
    """Runs all statements over a log, and returns the number of errors, which are fine."""
    failed = 0
    for sql in STATEMENTS:
        timer = threading.Timer(MOST_SECONDS, connection.interrupt)
        timer.start()
        try:
            rows = connection.execute(sql, [str(path)]).fetchall()
            if PANIC in str(rows):
                sys.exit(f"{path.name}: {sql}: {rows[0]}")
        except duckdb.Error as error:
            if PANIC in str(error):
                sys.exit(f"{path.name}: {sql}: {error}")
            failed += 1
        finally:
            timer.cancel()
            timer.join()
    return failed


def main(extension, logs):
    hostile = os.environ.get("EVTX_HOSTILE")
    kept = sorted(pathlib.Path(hostile).rglob("*.evtx")) if hostile else []
    count = failed = 0
    with duckdb.connect(config={"allow_unsigned_extensions": "true"}) as connection, tempfile.TemporaryDirectory() as folder:
        connection.load_extension(extension)
        for path in kept:
            failed += read(connection, path)
            count += 1
        for log in logs:
            whole = pathlib.Path(log).read_bytes()
            for case in range(CASES):
                data = bytearray(whole)
                damage(data, random.Random(f"{pathlib.Path(log).name} {case}"))
                # The name says how to reproduce the damage.
                path = pathlib.Path(folder, f"{pathlib.Path(log).stem}-{case}.evtx")
                path.write_bytes(data)
                failed += read(connection, path)
                path.unlink()
                count += 1
    print(f"{count} damaged logs, {len(kept)} of them from EVTX_HOSTILE; {failed} of {count * len(STATEMENTS)} statements failed")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
