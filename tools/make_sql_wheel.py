"""Makes the wheel of evtx-sql for a platform. usage: make_sql_wheel.py DIST PLATFORM

DIST has the extensions, as tools/make_repository.py writes them, and gets the wheel.
"""

import gzip
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

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


def main(dist, platform):
    # Without the time of the build, the wheel is reproducible.
    os.environ["SOURCE_DATE_EPOCH"] = "1577836800"
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary, "evtx-sql")
        shutil.copytree(ROOT / "evtx-sql", folder)
        for file in "extension_config.cmake", "LICENSE", "THIRD-PARTY-NOTICES.txt":
            shutil.copy(ROOT / file, folder)
        for packed in pathlib.Path(dist).glob(f"v*/{platform}/*.gz"):
            file = folder / "extensions" / packed.parts[-3] / platform / packed.stem
            file.parent.mkdir(parents=True)
            file.write_bytes(gzip.decompress(packed.read_bytes()))
        run = [sys.executable, "-m"]
        subprocess.run([*run, "hatchling", "build", "-t", "wheel", "-d", temporary], cwd=folder, check=True, stdout=subprocess.DEVNULL)
        wheel = next(pathlib.Path(temporary).glob("*.whl"))
        tagged = subprocess.run([*run, "wheel", "tags", "--remove", "--platform-tag", TAGS[platform], wheel], check=True, capture_output=True, text=True)
        print(shutil.copy(wheel.with_name(tagged.stdout.strip()), dist))


if __name__ == "__main__":
    main(*sys.argv[1:])
