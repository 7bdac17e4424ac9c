"""Makes seeds for the fuzz targets from logs. usage: fuzz_seeds.py OUT LOG [LOG ...]

Writes the folders `file`, `chunk`, `record`, `redact` and `mta` into OUT: small logs, chunks up to their free space, the BinXML of first
records (twice), and the messages next to the logs.
"""

import pathlib
import struct
import sys

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


def main(out, logs):
    for name in ("file", "chunk", "record", "redact", "mta"):
        (out / name).mkdir(parents=True, exist_ok=True)
    for number, path in enumerate(logs):
        log = pathlib.Path(path).read_bytes()
        if len(log) < 300_000:
            (out / "file" / f"{number}").write_bytes(log)
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
