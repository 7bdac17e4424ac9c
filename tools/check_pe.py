#!/usr/bin/env python3
"""Checks what can be checked of an extension for Windows without running it. usage: tools/check_pe.py EXTENSION ENTRY-POINT

It is for the processor of its platform, exports the entry point and at most the core's C ABI besides, imports only from DLLs of Windows, and has no path of the build.
"""

import pathlib
import sys

import make_repository
import pefile

MACHINES = {"windows_amd64": 0x8664, "windows_arm64": 0xAA64}
# The DLLs that every Windows 10 has. The sets of functions, `api-ms-win-`, are parts of them.
OF_WINDOWS = {"advapi32.dll", "bcrypt.dll", "bcryptprimitives.dll", "kernel32.dll", "msvcrt.dll", "ntdll.dll", "userenv.dll", "ws2_32.dll"}
SETS_OF_WINDOWS = ("api-ms-win-core-", "api-ms-win-crt-")


def main(path, entry_point):
    data = pathlib.Path(path).read_bytes()
    _, platform = make_repository.described(data)
    dll = pefile.PE(data=data)
    machine = dll.FILE_HEADER.Machine
    assert machine == MACHINES[platform], f"{platform} is not for processors {machine:#x}"
    exports = [symbol.name.decode() for symbol in dll.DIRECTORY_ENTRY_EXPORT.symbols]
    assert entry_point in exports, f"it does not export {entry_point}"
    foreign = [name for name in exports if name != entry_point and not name.startswith("evtx_")]
    assert not foreign, f"it exports {foreign}"
    imports = dll.DIRECTORY_ENTRY_IMPORT + getattr(dll, "DIRECTORY_ENTRY_DELAY_IMPORT", [])
    names = {entry.dll.decode().lower() for entry in imports}
    strangers = [name for name in names - OF_WINDOWS if not name.startswith(SETS_OF_WINDOWS)]
    assert not strangers, f"it needs {strangers}"
    root = pathlib.Path(__file__).resolve().parent.parent
    assert str(root).encode() not in data, "the path of the build is in it"


if __name__ == "__main__":
    main(*sys.argv[1:])
