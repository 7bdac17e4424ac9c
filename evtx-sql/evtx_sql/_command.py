"""The command `evtx-sql`: DuckDB's command line with the extension loaded."""

import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys

from . import __version__, extension

USAGE = """\
usage: evtx-sql [--duckdb PROGRAM] [OPTION ...] SQL    runs SQL and prints the result
       evtx-sql [--duckdb PROGRAM] [OPTION ...] shell  opens DuckDB's command line

  evtx-sql "SELECT event_id, count(*) FROM read_evtx('case') GROUP BY ALL ORDER BY 2 DESC"
  evtx-sql -csv "FROM evtx_sigma_timeline('case', 'rules')" >matches.csv
  evtx-sql ".read case.sql"
  evtx-sql -cmd ".read case.sql" shell

Options are those of DuckDB, such as -csv, -json, -markdown, or -readonly, and come before the SQL. --duckdb names another command line of
DuckDB than that of the Python package duckdb-cli.
"""


def find_duckdb() -> str:
    """The program of the package duckdb-cli, or else `duckdb` in the PATH.

    The package's own command `duckdb` is a wrapper around it in Python, which an interrupt ends, and the session with it.
    """
    try:
        import duckdb_cli
    except ImportError:
        return shutil.which("duckdb") or sys.exit("DuckDB's command line is missing: pip install duckdb-cli")
    return str(pathlib.Path(duckdb_cli.__file__).with_name("duckdb.exe" if os.name == "nt" else "duckdb"))


def version_of(program: str) -> str:
    """The version of a program, such as `2.0.0`."""
    # Without a file of settings, which can fail or print something else.
    run = subprocess.run([program, "-init", os.devnull, "--version"], capture_output=True, text=True)
    if found := re.search(r"^v(\d+\.\d+\.\d+)", run.stdout, re.MULTILINE):
        return found[1]
    raise OSError(f"{program} is not DuckDB's command line. {run.stderr}")


def main() -> None:
    arguments = sys.argv[1:]
    if arguments == ["--version"]:
        print(f"evtx-sql {__version__}")
        return
    program = None
    if arguments[:1] == ["--duckdb"]:
        program, arguments = next(iter(arguments[1:]), None), arguments[2:]
    # What DuckDB would take for the name of a database file.
    if not arguments or arguments[-1].startswith("-") or arguments[-2:-1] in (["-c"], ["-s"], ["-f"]):
        print(USAGE, end="")
        sys.exit(0 if arguments in (["-h"], ["-help"], ["--help"]) else 2)
    *options, what = arguments
    try:
        program = program or find_duckdb()
        file = extension(version_of(program))
    except (OSError, ImportError) as error:
        sys.exit(str(error))
    command = [program, "-unsigned", "-cmd", "LOAD '{}'".format(str(file).replace("'", "''")), *options]
    if what != "shell":
        command += ["-c", what]
    if os.name != "nt":
        # Python ignores it, which DuckDB would inherit: `evtx-sql ... | head` should end.
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
        os.execvp(program, command)
    # Windows has no exec. Ctrl-C is for DuckDB.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    sys.exit(subprocess.call(command))
