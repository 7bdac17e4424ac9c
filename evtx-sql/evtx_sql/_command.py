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
  evtx-sql -init case.sql shell

Options are those of DuckDB, such as -csv, -json, -markdown, or -readonly. --duckdb names another command line of DuckDB than that of the
Python package duckdb-cli.
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


def main() -> None:
    arguments = sys.argv[1:]
    if not arguments or arguments[0] in ("-h", "-help", "--help"):
        print(USAGE, end="")
        sys.exit(0 if arguments else 2)
    if arguments == ["--version"]:
        print(f"evtx-sql {__version__}")
        return
    program = find_duckdb()
    if arguments[0] == "--duckdb" and len(arguments) > 2:
        program, arguments = arguments[1], arguments[2:]
    *options, what = arguments
    try:
        version = subprocess.run([program, "--version"], check=True, capture_output=True, text=True).stdout
        file = extension(re.search(r"\d+\.\d+\.\d+", version)[0])
    except (OSError, subprocess.SubprocessError, ImportError) as error:
        sys.exit(str(error))
    command = [program, "-unsigned", "-cmd", "LOAD '{}'".format(str(file).replace("'", "''")), *options]
    if what != "shell":
        command += ["-c", what]
    if os.name != "nt":
        os.execv(program, command)
    # Windows has no exec. Ctrl-C is for DuckDB.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    sys.exit(subprocess.call(command))
