"""Makes a wheel of a release from files that are built. usage: make_wheel.py sql|arrow DIST PLATFORM [LIBRARY]

`sql` is evtx-sql, with the extensions in DIST, as tools/make_repository.py writes them. `arrow` is evtx-arrow with its LIBRARY: maturin would
compile every crate again. DIST gets the wheel.
"""

import gzip
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import zipfile

ROOT = pathlib.Path(__file__).parents[1]
# The oldest glibc and macOS are those of the extensions.
TAGS = {
    "linux_amd64": "manylinux_2_28_x86_64",
    "linux_arm64": "manylinux_2_28_aarch64",
    "osx_amd64": "macosx_11_0_x86_64",
    "osx_arm64": "macosx_11_0_arm64",
    "windows_amd64": "win_amd64",
    "windows_arm64": "win_arm64",
}


def add_extensions(folder, dist, platform):
    for packed in dist.glob(f"v*/{platform}/*.gz"):
        file = folder / "extensions" / packed.parts[-3] / platform / packed.stem
        file.parent.mkdir(parents=True)
        file.write_bytes(gzip.decompress(packed.read_bytes()))


def main(kind, dist, platform, library=None):
    os.environ["WHEEL_TAG"] = {"sql": "py3-none", "arrow": "cp311-abi3"}[kind] + f"-{TAGS[platform]}"
    dist = pathlib.Path(dist)
    dist.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary, "project")
        shutil.copytree(ROOT / {"sql": "evtx-sql", "arrow": "python"}[kind], folder, ignore=shutil.ignore_patterns("__pycache__", "_native.*so"))
        for file in "extension_config.cmake", "LICENSE", "THIRD-PARTY-NOTICES.txt", "tools/hatch_build.py":
            shutil.copy(ROOT / file, folder)
        if kind == "sql":
            add_extensions(folder, dist, platform)
        else:
            assert b"libpython3" not in pathlib.Path(library).read_bytes(), f"{library} works with one version of Python only"
            shutil.copy(library, folder / "evtx_arrow" / ("_native.pyd" if platform.startswith("windows") else "_native.abi3.so"))
        command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", temporary]
        subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wheel = next(pathlib.Path(temporary).glob("*.whl"))
        binaries = [name for name in zipfile.ZipFile(wheel).namelist() if name.endswith((".so", ".pyd", ".duckdb_extension"))]
        assert binaries, f"{wheel.name} has no binary"
        print(shutil.copy(wheel, dist))


if __name__ == "__main__":
    main(*sys.argv[1:])
