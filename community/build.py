#!/usr/bin/env python3
"""Builds and tests the portable file for DuckDB's community repository. usage: community/build.py release | test_release

The Python of its builds is old: 3.6 on Linux.
"""

import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import venv

ROOT = pathlib.Path(__file__).resolve().parent.parent
NAME, PLATFORM = os.environ["EXTENSION_NAME"], os.environ["DUCKDB_PLATFORM"]
EXTENSION = ROOT / "build/release/extension" / NAME / (NAME + ".duckdb_extension")
# One kind of Mac builds for both. Elsewhere, a machine builds for itself.
TARGETS = {"osx_amd64": "x86_64-apple-darwin", "osx_arm64": "aarch64-apple-darwin"}

IN_DUCKDB = """
import sys, duckdb
con = duckdb.connect(config={"allow_unsigned_extensions": "true"})
con.load_extension(sys.argv[1])
print(*con.execute("SELECT count(*) FROM read_evtx('samples/*.evtx')").fetchone())
"""
ROWS = 414


def run(*command, **options):
    return subprocess.run([str(part) for part in command], cwd=str(ROOT), check=True, **options)


def value(file, pattern):
    """What a pattern finds in a file of the project."""
    return re.search(pattern, (ROOT / file).read_text(encoding="utf-8"), re.MULTILINE).group(1)


def release():
    target = TARGETS.get(PLATFORM, "")
    options = ["--target", target] if target else []
    run("cargo", "build", "--release", "--locked", "--manifest-path", "rust/Cargo.toml", "-p", "evtx-duckdb-stable", *options)
    described = run("cargo", "metadata", "--no-deps", "--format-version", "1", "--offline", "--manifest-path", "rust/Cargo.toml", stdout=subprocess.PIPE)
    folder = pathlib.Path(json.loads(described.stdout)["target_directory"], target, "release")
    library, = [path for path in folder.glob("*evtx_duckdb_stable.*") if path.suffix in (".so", ".dylib", ".dll")]
    EXTENSION.parent.mkdir(parents=True, exist_ok=True)
    # The version of DuckDB is that of the C API that the file needs. Newer ones load it, too.
    run(sys.executable, "extension-ci-tools/scripts/append_extension_metadata.py", "--library-file", library, "--out-file", EXTENSION,
        "--extension-name", NAME, "--duckdb-platform", PLATFORM,
        "--duckdb-version", value("rust/frontends/evtx-duckdb-stable/src/api.rs", r'VERSION: .* = c"(.*)"'),
        "--extension-version", value("extension_config.cmake", r"EXTENSION_VERSION (\S+)"))


def test_release():
    # The workflow runs the tests of Linux a second time, outside of the container.
    if os.environ.get("LINUX_CI_IN_DOCKER") == "1" or PLATFORM.endswith(("_mingw", "_musl")):
        print("skipped: PyPI has no DuckDB for this platform")
        return
    with tempfile.TemporaryDirectory() as folder:
        venv.create(folder, with_pip=True)
        python, = [path for path in map(pathlib.Path(folder).joinpath, ("bin/python", "Scripts/python.exe")) if path.exists()]
        run(python, "-m", "pip", "install", "--quiet", "duckdb")
        rows = int(run(python, "-c", IN_DUCKDB, EXTENSION, stdout=subprocess.PIPE).stdout)
    if rows != ROWS:
        raise SystemExit("{} rows instead of {}".format(rows, ROWS))
    print("{} rows".format(rows))


if __name__ == "__main__":
    {"release": release, "test_release": test_release}[sys.argv[1]]()
