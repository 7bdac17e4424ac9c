"""Makes the folders and files that the tests of Windows read. usage: test/windows/make_case.py PREFIX, the folder of Wine's prefix."""

import pathlib
import shutil
import struct
import sys
import zipfile
import zlib

SAMPLES = pathlib.Path("samples")
# A path of more than 260 characters.
LONG = "/".join(["a folder with a long name, as backups of profiles have"] * 6)


def large(log, count):
    """A log whose first chunk is there count times."""
    header, chunk = bytearray(log[:4096]), log[4096:4096 + 65536]
    struct.pack_into("<QQ", header, 8, 0, count - 1)
    struct.pack_into("<H", header, 42, count)
    struct.pack_into("<I", header, 124, zlib.crc32(header[:120]))
    return bytes(header) + chunk * count


def main(prefix):
    case = prefix / "drive_c" / "case"
    shutil.rmtree(case, ignore_errors=True)
    for sample, name in [
        ("DC01-Security", "DC01-Security.evtx"),
        ("WS07-Security", "My Logs/WS07-Security.evtx"),
        ("DC01-System", "Evidence/SYSTEM.EVTX"),
        ("DC01-Sysmon", "Evidence/Microsoft-Windows-Sysmon%4Operational.evtx"),
        ("DC01-System", f"long/{LONG}/System.evtx"),
        ("DC01-System", "odd/[1]/System.evtx"),
        ("DC01-System", "held/alone.evtx"),
        ("DC01-Sysmon", "held/shared.evtx"),
        ("WS07-Security", "held/free.evtx"),
        ("DC01-System", "names/aux.evtx"),
        ("WS07-Security", "names/free.evtx"),
        ("DC01-System", "saved/DC01-System.evtx"),
    ]:
        path = case / name
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(SAMPLES / f"{sample}.evtx", path)
    with zipfile.ZipFile(prefix / "drive_c" / "large.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("large.evtx", large((SAMPLES / "DC01-System.evtx").read_bytes(), 1100))
    shutil.copytree(SAMPLES / "LocaleMetaData", case / "saved" / "LocaleMetaData")
    with zipfile.ZipFile(case / "collection.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        # As some programs of Windows write it.
        entry = zipfile.ZipInfo("C/Windows/System.evtx")
        entry.filename = r"C\Windows\System.evtx"
        entry.compress_type = zipfile.ZIP_DEFLATED
        archive.writestr(entry, (SAMPLES / "DC01-System.evtx").read_bytes())
    rules = case / "rules"
    rules.mkdir()
    for rule in (SAMPLES / "rules").glob("*.yml"):
        (rules / rule.name).write_bytes(rule.read_bytes().replace(b"\n", b"\r\n"))
    # The shares of a machine. A test removes one of them.
    machine = prefix / "dosdevices" / "unc" / "pc"
    shutil.rmtree(machine, ignore_errors=True)
    machine.mkdir(parents=True)
    for share in ["share", "brief"]:
        (machine / share).symlink_to(case.resolve())


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
