"""Makes the archives of the SQL tests, test/data/archives, from the samples.

Needs `zip` and `7z`, and inflate64, py7zr, pyzipper and zstandard from PyPI. The archives are checked in, so that tests need none of these. None of these
programs shares code with the crates that read the archives.
"""

import bz2
import gzip
import io
import lzma
import os
import struct
import subprocess
import tarfile
import tempfile
import zipfile
import zlib
from pathlib import Path

import inflate64
import py7zr
import pyzipper
import zstandard

ROOT = Path(__file__).resolve().parent.parent
OUT = ROOT / "test/data/archives"
LOG = (ROOT / "samples/WS07-Security.evtx").read_bytes()
OTHER = (ROOT / "samples/DC01-System.evtx").read_bytes()
MADE = (2024, 5, 1, 12, 0, 0)


def info(name, method=zipfile.ZIP_DEFLATED):
    entry = zipfile.ZipInfo(name, MADE)
    entry.compress_type = method
    return entry


def crafted(entries):
    """A ZIP archive of entries (name, method, claimed size, compressed bytes)."""
    body, directory = b"", b""
    for name, method, size, data in entries:
        common = struct.pack("<HHHHHIIIHH", 20, 0, method, 0, 0x58A1, zlib.crc32(LOG), len(data), size, len(name), 0)
        directory += b"PK\1\2\x14\0" + common + bytes(10) + struct.pack("<I", len(body)) + name
        body += b"PK\3\4" + common + name + data
    end = struct.pack("<HHHHIIH", 0, 0, len(entries), len(entries), len(directory), len(body), 0)
    return body + directory + b"PK\5\6" + end


def deflate64(data):
    deflater = inflate64.Deflater()
    return deflater.deflate(data) + deflater.flush()


def member(archive, name, data=b"", **fields):
    entry = tarfile.TarInfo(name)
    entry.size, entry.mtime = len(data), 1714564800
    for field, value in fields.items():
        setattr(entry, field, value)
    archive.addfile(entry, io.BytesIO(data))


def tar(form, entries):
    """A tar archive of entries (name, bytes, other fields)."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=form) as archive:
        for name, data, fields in entries:
            member(archive, name, data, **fields)
    return out.getvalue()


def tars():
    deep = "folder/" * 30
    logs = [(f"./C/{deep}Security.evtx", LOG, {}), ("./C/System.evtx", OTHER, {}), ("./C/notes.txt", b"nothing", {})]
    gnu, pax = tar(tarfile.GNU_FORMAT, logs), tar(tarfile.PAX_FORMAT, logs)
    (OUT / "pax.tar.gz").write_bytes(gzip.compress(pax, mtime=0))
    (OUT / "pax.txz").write_bytes(lzma.compress(pax))
    (OUT / "gnu.tbz2").write_bytes(bz2.compress(gnu))
    (OUT / "gnu.tar.zst").write_bytes(zstandard.compress(gnu, 19))
    (OUT / "short.tgz").write_bytes(gzip.compress(gnu[: len(gnu) - 60_000], mtime=0))
    link = {"type": tarfile.SYMTYPE, "linkname": "/etc/passwd"}
    odd = [("../../etc/up.evtx", b"", {}), ("link.evtx", b"", link), ("pipe.evtx", b"", {"type": tarfile.FIFOTYPE})]
    odd += [("/C/twice.evtx", b"", {})] * 2 + [("inner.zip", b"", {})]
    (OUT / "odd.tar").write_bytes(tar(tarfile.USTAR_FORMAT, odd))


def seven(name, entries, *options):
    """Adds entries to a 7z archive with 7-Zip: a folder of its own for each call."""
    with tempfile.TemporaryDirectory() as folder:
        for entry, data in entries.items():
            path = Path(folder, entry)
            path.parent.mkdir(exist_ok=True)
            if data is None:
                path.symlink_to("System.evtx")
            else:
                path.write_bytes(data)
                os.utime(path, (1714564800, 1714564800))
        command = ["7z", "a", "-bd", "-mtm=off", "-snl", *options, str(OUT / name), *{entry.split("/")[0] for entry in entries}]
        subprocess.run(command, check=True, cwd=folder, stdout=subprocess.DEVNULL)


def sevens():
    for old in OUT.glob("*.7z"):
        old.unlink()
    logs = {"C/Security.evtx": LOG, "C/System.evtx": OTHER, "C/empty.evtx": b"", "C/notes.txt": b"nothing", "C/link.evtx": None}
    seven("solid.7z", logs)
    bcj2 = "-m0=BCJ2 -m1=LZMA -m2=LZMA -m3=LZMA -mb0:1 -mb0s1:2 -mb0s2:3".split()
    for method in ["LZMA", "BZip2", "Deflate", "Deflate64", "PPMd"]:
        seven("methods.7z", {f"{method}.evtx": LOG}, f"-m0={method}")
    for method in ["BCJ", "ARM", "ARM64", "Delta:4"]:
        seven("methods.7z", {f"{method.partition(':')[0]}.evtx": LOG}, f"-m0={method}", "-m1=LZMA2")
    seven("methods.7z", {"BCJ2.evtx": LOG}, *bcj2)
    seven("secret.7z", {"aes.evtx": LOG, "other.evtx": OTHER}, "-pinfected")
    zstd = [{"id": py7zr.FILTER_ZSTD, "level": 3}]
    with py7zr.SevenZipFile(OUT / "zstd.7z", "w", filters=zstd) as archive:
        archive.writestr(LOG, "zstd.evtx")
    with py7zr.SevenZipFile(OUT / "names.7z", "w", password="infected", header_encryption=True) as archive:
        archive.writestr(LOG, "aes.evtx")
    whole = (OUT / "solid.7z").read_bytes()
    (OUT / "short.7z").write_bytes(whole[:-20])
    (OUT / "case.7z.001").write_bytes(whole[:2000])
    (OUT / "program.7z").write_bytes(b"MZ" + bytes(100) + whole)


def main():
    OUT.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(OUT / "case.zip", "w") as archive:
        archive.writestr(info("C/Windows/System32/winevt/Logs/SECURITY.EVTX"), LOG)
        archive.writestr(info("C/Windows/System32/winevt/Logs/System.evtx"), OTHER)
        archive.writestr(info("C/Windows/System32/winevt/Logs/Empty.evtx", zipfile.ZIP_STORED), b"")
        archive.writestr(info("C/Windows/notes.txt"), b"nothing")
    (OUT / "UPPER.ZIP").write_bytes(crafted([(b"D\\LOGS\\SECURITY.EVTX", 9, len(LOG), deflate64(LOG))]))
    raw = zlib.compressobj(wbits=-15)
    deflated = raw.compress(LOG) + raw.flush()
    names = [b"../../etc/up.evtx", b"twice.evtx", b"twice.evtx", b"zstd.evtx", b"short.evtx", b"inner.zip", b"lzma.evtx"]
    data = [deflated] * 3 + [zstandard.compress(LOG, 19)] + [deflated] * 3
    methods, sizes = [8, 8, 8, 93, 8, 8, 14], [len(LOG)] * 4 + [10] + [len(LOG)] * 2
    (OUT / "odd.zip").write_bytes(crafted(list(zip(names, methods, sizes, data))))
    with pyzipper.AESZipFile(OUT / "secret.zip", "w", pyzipper.ZIP_DEFLATED, encryption=pyzipper.WZ_AES) as archive:
        archive.setpassword(b"infected")
        archive.writestr("aes.evtx", LOG)
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "old.evtx").write_bytes(LOG)
        os.utime(Path(folder, "old.evtx"), (1714564800, 1714564800))
        subprocess.run(["zip", "-qjX", "-P", "infected", folder + "/old.zip", folder + "/old.evtx"], check=True)
        (OUT / "old.zip").write_bytes(Path(folder, "old.zip").read_bytes())
    case = (OUT / "case.zip").read_bytes()
    (OUT / "cut.zip").write_bytes(case[: len(case) // 2])
    (OUT / "Security.evtx.gz").write_bytes(gzip.compress(LOG, mtime=0))
    (OUT / "cut.evtx.gz").write_bytes(gzip.compress(LOG, mtime=0)[:-9])
    (OUT / "Security.evtx.zst").write_bytes(zstandard.compress(LOG, 19))
    (OUT / "Security.evtx.bz2").write_bytes(bz2.compress(LOG))
    (OUT / "Security.evtx.xz").write_bytes(lzma.compress(LOG))
    tars()
    sevens()
    with zstandard.open(OUT / "bomb.evtx.zst", "wb") as bomb:
        for _ in range(300):
            bomb.write(bytes(1 << 20))


if __name__ == "__main__":
    main()
