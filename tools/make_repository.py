#!/usr/bin/env python3
"""Lays out a folder from which DuckDB installs the extension. usage: tools/make_repository.py EXTENSION FOLDER

The folder can be a share, or what a web server serves. The version and the platform are those that the extension says
of itself: eight fields of 32 bytes before the 256 bytes of its signature, the last first.
"""

import gzip
import pathlib
import sys

FIELD, FIELDS, SIGNATURE = 32, 8, 256


def described(extension):
    """The DuckDB version and the platform of an extension."""
    end = len(extension) - SIGNATURE
    fields = [extension[at:at + FIELD].rstrip(b"\0").decode("ascii") for at in range(end - FIELDS * FIELD, end, FIELD)]
    # From the last: the version of this layout, the platform, DuckDB's version, the extension's version.
    layout, platform, version = fields[:-4:-1]
    if layout != "4":
        raise SystemExit(f"the extension is described by version {layout} of the layout, and this script knows 4")
    return version, platform


def main():
    source, repository = map(pathlib.Path, sys.argv[1:])
    extension = source.read_bytes()
    version, platform = described(extension)
    folder = repository / version / platform
    folder.mkdir(parents=True, exist_ok=True)
    packed = folder / f"{source.name}.gz"
    # Without a time in it, the same extension gives the same file.
    packed.write_bytes(gzip.compress(extension, mtime=0))
    print(packed)


if __name__ == "__main__":
    main()
