#!/usr/bin/env python3
"""Makes a folder from which DuckDB installs the extension. usage: tools/make_repository.py EXTENSION FOLDER

The folder can be a share, or be served by a web server. The version and the platform come from the extension: eight fields of 32 bytes, in
reverse order, before its signature of 256 bytes.
"""

import gzip
import pathlib
import sys

FIELD, FIELDS, SIGNATURE = 32, 8, 256


def described(extension):
    """An extension's DuckDB version and platform."""
    end = len(extension) - SIGNATURE
    fields = [extension[at:at + FIELD].rstrip(b"\0").decode("ascii") for at in range(end - FIELDS * FIELD, end, FIELD)]
    # The last four fields, backwards: layout version, platform, DuckDB version, extension version.
    layout, platform, version = fields[:-4:-1]
    if layout != "4":
        raise SystemExit(f"the extension has metadata of version {layout}; this script supports version 4")
    return version, platform


def main():
    source, repository = map(pathlib.Path, sys.argv[1:])
    extension = source.read_bytes()
    version, platform = described(extension)
    folder = repository / version / platform
    folder.mkdir(parents=True, exist_ok=True)
    packed = folder / f"{source.name}.gz"
    # Without a timestamp, the output is reproducible.
    packed.write_bytes(gzip.compress(extension, mtime=0))
    print(packed)


if __name__ == "__main__":
    main()
