#!/usr/bin/env python3
"""Checks what can be checked of an extension for macOS without one. usage: tools/check_macho.py EXTENSION ENTRY-POINT

The entry point is exported, every other symbol comes from libraries of the system, no path of the build is in it, and the signature matches.
Apple silicon loads only signed code; the linker signs it. What DuckDB appends stands after the signature.
"""

import hashlib
import pathlib
import struct
import sys

LOAD_DYLIB, ID_DYLIB, SYMTAB, CODE_SIGNATURE = 0xC, 0xD, 0x2, 0x1D
CPU_ARM64 = 0x0100000C
CODE_DIRECTORY = 0xFADE0C02


def text(data, start):
    return data[start : data.index(b"\0", start)].decode()


# Libraries that every macOS has. Rust's own library and that for time zones name the last three.
OF_MACOS = {"/usr/lib/libSystem.B.dylib", "/usr/lib/libiconv.2.dylib", "/usr/lib/libcharset.1.dylib",
            "/System/Library/Frameworks/CoreFoundation.framework/Versions/A/CoreFoundation"}


def commands(data):
    """The load commands: their kinds and offsets."""
    magic, cpu, _, _, count, _, _, _ = struct.unpack_from("<8I", data)
    assert magic == 0xFEEDFACF, "not a Mach-O file of 64 bits"
    at, found = 32, []
    for _ in range(count):
        kind, size = struct.unpack_from("<II", data, at)
        found.append((kind, at))
        at += size
    return cpu, found


def symbols(data, at):
    """The symbols that other files see: their names, whether they are defined here, and the ordinal of their library."""
    start, count, strings, _ = struct.unpack_from("<4I", data, at + 8)
    for nth in range(count):
        name, kind, _, description, _ = struct.unpack_from("<IBBHQ", data, start + 16 * nth)
        if kind & 0x1 and not kind & 0xE0:
            yield text(data, strings + name), kind & 0xE != 0, description >> 8


def check_signature(data, at):
    offset, size = struct.unpack_from("<II", data, at + 8)
    signature = data[offset : offset + size]
    blobs = struct.unpack_from(">I", signature, 8)[0]
    starts = [struct.unpack_from(">I", signature, 16 + 8 * nth)[0] for nth in range(blobs)]
    (start,) = [start for start in starts if struct.unpack_from(">I", signature, start)[0] == CODE_DIRECTORY]
    hashes, slots, limit = (struct.unpack_from(">I", signature, start + field)[0] for field in (16, 28, 32))
    page = 1 << signature[start + 39]
    pages = [data[at : min(at + page, limit)] for at in range(0, limit, page)]
    first = start + hashes
    assert limit == offset and len(pages) == slots, "the signature does not cover the file"
    for nth, bytes_of_page in enumerate(pages):
        expected = signature[first + 32 * nth : first + 32 * (nth + 1)]
        assert hashlib.sha256(bytes_of_page).digest() == expected, f"the signature does not match page {nth}"


def main(path, entry_point):
    data = pathlib.Path(path).read_bytes()
    cpu, found = commands(data)
    kinds = dict(found)
    libraries = [text(data, at + struct.unpack_from("<I", data, at + 8)[0]) for kind, at in found if kind == LOAD_DYLIB]
    assert set(libraries) <= OF_MACOS, f"it needs {libraries}"
    identity = text(data, kinds[ID_DYLIB] + struct.unpack_from("<I", data, kinds[ID_DYLIB] + 8)[0])
    assert identity.startswith("@rpath/"), f"it is named {identity}"
    names = list(symbols(data, kinds[SYMTAB]))
    assert (f"_{entry_point}", True, 0) in names, f"{entry_point} is not exported"
    strangers = [name for name, is_defined, library in names if not is_defined and not 1 <= library <= len(libraries)]
    assert not strangers, f"no library has {strangers}"
    if cpu == CPU_ARM64:
        check_signature(data, kinds[CODE_SIGNATURE])


if __name__ == "__main__":
    main(*sys.argv[1:])
