"""Makes the logs that the benchmarks read. usage: logs.py FOLDER MAKE_SAMPLES

Fills FOLDER with logs of 64 MiB. Their chunks come from the logs in the folders that EVTX_CORPUS and EVTX_VARIED name. Without these, they
come from logs that the program MAKE_SAMPLES writes.

- security.evtx, sysmon.evtx, mixed.evtx: chunks of EVTX_CORPUS, which speed was first tuned on.
- full-tuned.evtx, full-other.evtx: full chunks of both folders, split into two halves by a hash of their bytes. Tune speed on the first
  half only. The second shows how well that carries over. all-tuned.evtx and all-other.evtx also contain nearly empty chunks.
- large-other.evtx: 256 MiB of the chunks of full-other.evtx.
- small: a folder with the logs of both folders, or with the samples.
- thousand.evtx: 1,000 chunks of all-other.evtx. thousand: a folder with one log for each of them.
- machines: the logs of whole machines in the folder that EVTX_COLLECTIONS names, if it does. machines.evtx: all of their chunks.

Repeated chunks flatter the caches of templates, so logs.json counts the different chunks of each log. Existing logs are kept until the
folders or this script change.
"""

import hashlib
import itertools
import json
import mmap
import os
import pathlib
import shutil
import struct
import subprocess
import sys
import time
import zlib

CHUNK = 65536
HEADER = 4096
MIB = 64

# The buffer that files are read into. It is allocated once, as touching new memory takes time too, and starts at a page: reading takes
# 1.6 times as long where the allocator puts large memory, 16 bytes after one.
BLOCK = mmap.mmap(-1, 1 << 20)

SYSMON = "Microsoft-Windows-Sysmon".encode("utf-16-le")
SECURITY = "Microsoft-Windows-Security-Auditing".encode("utf-16-le")
KINDS = {
    "security": lambda chunk: SECURITY in chunk,
    "sysmon": lambda chunk: SYSMON in chunk,
    "mixed": lambda chunk: True,
}

# A chunk counts as full if its free space begins here or later: most records no longer fit.
FULL = 60_000


def sound_chunks(log):
    """The chunks of a log whose checksums are both right, of the header and of the records."""
    for offset in range(HEADER, len(log) - CHUNK + 1, CHUNK):
        chunk = log[offset : offset + CHUNK]
        if chunk[:8] != b"ElfChnk\0":
            continue
        free, records_crc = struct.unpack_from("<II", chunk, 48)
        (header_crc,) = struct.unpack_from("<I", chunk, 124)
        if not 512 < free <= CHUNK or zlib.crc32(chunk[512:free]) != records_crc:
            continue
        if zlib.crc32(chunk[:120] + chunk[128:512]) == header_crc:
            yield chunk


def write_log(path, chunks, count=MIB * 16):
    """Writes a log of `count` chunks, taken in turn. The records keep their IDs."""
    header = bytearray(HEADER)
    struct.pack_into("<8sQQQIHHHH", header, 0, b"ElfFile\0", 0, count - 1, 1 << 40, 128, 1, 3, HEADER, count & 0xFFFF)
    struct.pack_into("<I", header, 124, zlib.crc32(bytes(header[:120])))
    with open(path, "wb") as log:
        log.write(header)
        for number in range(count):
            log.write(chunks[number % len(chunks)])


def read(path):
    """Reads a file front to back. Returns the seconds."""
    start = time.perf_counter()
    with open(path, "rb", buffering=0) as file:
        while file.readinto(BLOCK):
            pass
    return time.perf_counter() - start


def read_in(path):
    """Puts a log into the page cache as a read from disk does, front to back. A log that was written bit by bit is cached in small
    pieces, which take up to three times as long to read.
    """
    if hasattr(os, "posix_fadvise"):
        with open(path, "rb+") as log:
            os.fsync(log.fileno())
            os.posix_fadvise(log.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    read(path)


def used(chunk):
    """Where the free space of a chunk begins."""
    return struct.unpack_from("<I", chunk, 48)[0]


def is_tuned(chunk):
    """Whether a chunk belongs to the half that speed may be tuned on."""
    return hashlib.sha256(chunk).digest()[0] % 2 == 0


def different(logs):
    """The different chunks of some logs. Takes them from each log in turn, so that the first ones come from many logs."""
    sources = [list(sound_chunks(log.read_bytes())) for log in logs]
    turns = itertools.zip_longest(*sources)
    return list({chunk: None for turn in turns for chunk in turn if chunk})


def main(folder, writer):
    folder = pathlib.Path(folder)
    named = {name: os.environ.get(name) for name in ("EVTX_CORPUS", "EVTX_VARIED", "EVTX_COLLECTIONS")}
    corpus, varied, machines = named.values()
    facts = folder / "logs.json"
    named["program"] = hashlib.sha256(pathlib.Path(__file__).read_bytes()).hexdigest()
    if facts.exists() and json.loads(facts.read_text()).get("named") == named:
        return
    shutil.rmtree(folder, ignore_errors=True)
    small, large = folder / "small", folder / "large"
    small.mkdir(parents=True)
    large.mkdir()
    if corpus or varied:
        logs = [sorted(pathlib.Path(source).rglob("*.evtx")) if source else [] for source in (corpus, varied)]
        for number, log in enumerate(sum(logs, [])):
            shutil.copyfile(log, small / f"{number:03}.evtx")
    else:
        subprocess.run([writer, small, str(MIB * 16)], check=True)
        for log in small.glob("large-*.evtx"):
            log.rename(large / log.name)
        logs = [sorted(large.glob("*.evtx")) + sorted(small.glob("*.evtx")), []]
    first, every = different(logs[0] or logs[1]), different(sum(logs, []))
    shutil.rmtree(large)
    if machines:
        logs = [log.read_bytes() for log in sorted(pathlib.Path(shutil.copytree(machines, folder / "machines")).rglob("*.evtx"))]
        slots = [log[offset : offset + CHUNK] for log in logs for offset in range(HEADER, len(log) - CHUNK + 1, CHUNK)]
        chunks = [slot for slot in slots if slot.startswith(b"ElfChnk")]
        write_log(folder / "machines.evtx", chunks, len(chunks))
    made = {}

    def write(kind, chunks, count=MIB * 16):
        if chunks:
            write_log(folder / f"{kind}.evtx", chunks, count)
            made[kind] = min(len(chunks), count)

    for kind, takes in KINDS.items():
        taken = [chunk for chunk in first if takes(chunk)]
        # Nearly empty chunks would measure how fast zeros are read.
        write(kind, [chunk for chunk in taken if used(chunk) > CHUNK // 2] or taken)
    for half, is_in in (("tuned", is_tuned), ("other", lambda chunk: not is_tuned(chunk))):
        chunks = [chunk for chunk in every if is_in(chunk)]
        full = [chunk for chunk in chunks if used(chunk) > FULL]
        write(f"full-{half}", full)
        write(f"all-{half}", chunks)
        if half == "other":
            write("large-other", full, 4 * MIB * 16)
            write("thousand", chunks, 1000)
            (folder / "thousand").mkdir()
            for number in range(1000 if chunks else 0):
                write_log(folder / "thousand" / f"{number:03}.evtx", [chunks[number % len(chunks)]], 1)
    source = " and ".join(name for name in ("EVTX_CORPUS", "EVTX_VARIED") if named[name]) or "evtx-writer"
    facts.write_text(json.dumps({"source": source, "named": named, "different_chunks": made}))
    print(f"logs of {MIB} MiB from {source}, different chunks: {made}")


if __name__ == "__main__":
    main(*sys.argv[1:])
