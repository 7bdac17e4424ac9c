#!/usr/bin/env python3
"""Installs what `make dist` built, as its users do, and reads the samples. usage: tools/check_release.py [FOLDER]

Runs on each system that a release has files for. Every version of DuckDB in the folder gets a virtual environment of its own, and so does each
wheel. All must return the same: the rows of the samples, and as much JSON.
"""

import pathlib
import subprocess
import sys
import tempfile
import venv

import release

ROOT = pathlib.Path(__file__).resolve().parent.parent
LOGS = "samples/*.evtx"
ROWS = 414

IN_DUCKDB = """
import sys, duckdb
folder, extensions, logs = sys.argv[1:]
con = duckdb.connect(config={"allow_unsigned_extensions": "true", "extension_directory": extensions})
con.execute(f"INSTALL evtx FROM '{folder}'")
con.execute("LOAD evtx")
con.execute("SET enable_progress_bar = false")
print(*con.execute("SELECT count(*), sum(length(json)) FROM read_evtx(?, json := true)", [logs]).fetchone())
"""

IN_PACKAGE = """
import sys, evtx_sql
con = evtx_sql.connect()
con.execute("SET enable_progress_bar = false")
print(*con.execute("SELECT count(*), sum(length(json)) FROM read_evtx(?, json := true)", [sys.argv[1]]).fetchone())
"""

IN_POLARS = """
import sys, evtx_arrow, polars
frame = polars.DataFrame(evtx_arrow.scan(sys.argv[1], json=True))
print(frame.height, frame["json"].str.len_chars().sum())
"""


def python(folder, *packages):
    """The Python of a new virtual environment with these packages."""
    venv.create(folder, with_pip=True)
    executable = next(path for path in (folder / "Scripts/python.exe", folder / "bin/python") if path.exists())
    run(executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *packages)
    return executable


def run(*command):
    return subprocess.run([*map(str, command)], cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True, encoding="utf-8").stdout


def wheel(name, dist, folder):
    """The wheel of a package that pip chooses for this machine. PyPI may have the same version, so pip gets the file."""
    run(sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-index", "--no-deps",
        "--find-links", dist, "--dest", folder, name)
    return next(folder.glob("*.whl"))


def answers(dist, work):
    """What each part of the release says about the samples."""
    versions = sorted(path.name.removeprefix("v") for path in dist.glob("v*"))
    if missing := set(release.pinned()) - set(versions):
        raise SystemExit(f"{dist} has nothing for DuckDB {', '.join(sorted(missing))}")
    evtx_sql = wheel("evtx-sql", dist, work / "evtx-sql")
    for version in versions:
        executable = python(work / version, f"duckdb=={version}")
        yield f"DuckDB {version}", run(executable, "-c", IN_DUCKDB, dist.as_posix(), work / f"extensions-{version}", LOGS)
        run(executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", evtx_sql)
        yield f"evtx-sql with DuckDB {version}", run(executable, "-c", IN_PACKAGE, LOGS)
    query = f"SELECT count(*) FROM read_evtx('{LOGS}')"
    # The command line from PyPI finds the extension in the package.
    for command in ["evtx-sql", query], ["duckdb", "-unsigned", "-c", f"LOAD evtx; {query}"]:
        printed = run(next(executable.parent.glob(f"{command[0]}*")), *command[1:])
        if str(ROWS) not in printed:
            raise SystemExit(f"{command[0]} should print {ROWS}, and printed:\n{printed}")
    # polars reads Arrow without pyarrow, which has no wheels for Windows on ARM.
    executable = python(work / "arrow", wheel("evtx-arrow", dist, work / "evtx-arrow"), "polars")
    yield "evtx-arrow", run(executable, "-c", IN_POLARS, LOGS)


def main():
    dist = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "build/dist").resolve()
    expected = None
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as work:
        for name, answer in answers(dist, pathlib.Path(work)):
            rows, characters = map(int, answer.split())
            print(f"{name}: {rows} rows, {characters} characters of JSON", flush=True)
            expected = expected or (ROWS, characters)
            if (rows, characters) != expected:
                raise SystemExit(f"{name} should return {expected[0]} rows and {expected[1]} characters")


if __name__ == "__main__":
    main()
