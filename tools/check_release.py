#!/usr/bin/env python3
"""Installs what `make dist` built, as its users do, and asks about the samples. usage: tools/check_release.py [FOLDER]

Runs on each system that a release has files for. Every version of DuckDB in the folder gets a virtual environment of its own, and so does each
wheel. All must return what the lists below say: of events, facts, the time line, matches of rules, and a Parquet file.
"""

import json
import pathlib
import subprocess
import sys
import tempfile
import venv

import release

ROOT = pathlib.Path(__file__).resolve().parent.parent
LOGS = "samples/*.evtx"
# Each query with its row. Lengths stand for the texts themselves. Paths are left out: Windows writes others.
CHECKS = [
    (f"SELECT count(*), sum(length(json)) FROM read_evtx('{LOGS}', json := true)", [414, 318802]),
    (f"SELECT count(*), sum(length(concat_ws(' ', level, fact, first, account, source, target, detail))) FROM evtx_facts('{LOGS}')", [41, 3971]),
    (f"SELECT count(*), sum(length(concat_ws(' ', time_created, event, user_name, process, details))) FROM evtx_timeline('{LOGS}')", [414, 66206]),
    (f"SELECT count(*), sum(length(concat_ws(' ', rule_title, time_created, array_to_string(map_values(matched), ' ')))) FROM evtx_sigma('{LOGS}', rules := 'samples/rules')", [56, 3629]),
    # `{}` is a folder for what a check writes.
    (f"COPY (SELECT * EXCLUDE (filename) FROM read_evtx('{LOGS}')) TO '{{}}/events.parquet'", [414]),
    ("SELECT count(*), sum(length(concat_ws(' ', time_created, provider, array_to_string(map_values(event_data), ' ')))) FROM '{}/events.parquet'", [414, 43927]),
]

ANSWERS = """
con.execute("SET enable_progress_bar = false")
print(json.dumps([con.execute(query).fetchone() for query in json.loads(sys.argv[1])]))
"""

IN_DUCKDB = """
import json, sys, duckdb
folder, extensions = sys.argv[2:]
con = duckdb.connect(config={"allow_unsigned_extensions": "true", "extension_directory": extensions})
con.execute(f"INSTALL evtx FROM '{folder}'")
con.execute("LOAD evtx")
""" + ANSWERS

IN_PACKAGE = """
import json, sys, evtx_sql
con = evtx_sql.connect()
""" + ANSWERS

IN_POLARS = """
import json, sys, evtx_arrow, polars
frame = polars.DataFrame(evtx_arrow.scan(sys.argv[1], json=True))
print(json.dumps([(frame.height, frame["json"].str.len_chars().sum())]))
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


def queries(folder):
    return json.dumps([query.replace("{}", pathlib.Path(folder).as_posix()) for query, _ in CHECKS])


def answers(dist, work):
    """What each part of the release says about the samples."""
    versions = sorted(path.name.removeprefix("v") for path in dist.glob("v*"))
    if missing := set(release.pinned()) - set(versions):
        raise SystemExit(f"{dist} has nothing for DuckDB {', '.join(sorted(missing))}")
    evtx_sql = wheel("evtx-sql", dist, work / "evtx-sql")
    for version in versions:
        executable = python(work / version, f"duckdb=={version}")
        yield f"DuckDB {version}", run(executable, "-c", IN_DUCKDB, queries(work), dist.as_posix(), work / f"extensions-{version}")
        run(executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", evtx_sql)
        yield f"evtx-sql with DuckDB {version}", run(executable, "-c", IN_PACKAGE, queries(work))
    (query, (rows, _)), *_ = CHECKS
    # The command line from PyPI finds the extension in the package.
    for command in ["evtx-sql", query], ["duckdb", "-unsigned", "-c", f"LOAD evtx; {query}"]:
        printed = run(next(executable.parent.glob(f"{command[0]}*")), *command[1:])
        if str(rows) not in printed:
            raise SystemExit(f"{command[0]} should print {rows}, and printed:\n{printed}")
    # polars reads Arrow without pyarrow, which has no wheels for Windows on ARM.
    executable = python(work / "arrow", wheel("evtx-arrow", dist, work / "evtx-arrow"), "polars")
    yield "evtx-arrow", run(executable, "-c", IN_POLARS, LOGS)


def main():
    dist = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "build/dist").resolve()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as work:
        for name, printed in answers(dist, pathlib.Path(work)):
            answer = json.loads(printed)
            print(f"{name}: {answer}", flush=True)
            for (query, expected), row in zip(CHECKS, answer):
                if row != expected:
                    raise SystemExit(f"{name} should return {expected} for {query}")


if __name__ == "__main__":
    main()
