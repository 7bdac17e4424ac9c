"""The command `evtx-sql`: SQL over event logs from a terminal, in the DuckDB of `connect`."""

import argparse
import contextlib
import datetime
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading

import duckdb

from . import __version__, connect, extension

EXAMPLES = """\
SQL can be several statements. - reads them from standard input, and without SQL, DuckDB's command line opens. Three commands need no SQL:

  evtx-sql facts case                              what happened, in the logs of a folder
  evtx-sql rules case --rules rules/windows        the events that Sigma rules match
  evtx-sql report case -o case.html --rules rules  both as one page

  evtx-sql "SELECT event_id, count(*) FROM read_evtx('case') GROUP BY ALL ORDER BY 2 DESC"
  evtx-sql -o logons.xlsx "FROM evtx_logons('case')"
  evtx-sql --db case.duckdb - <case.sql

A file can be .csv, .json, .jsonl, .md, .parquet or .xlsx. Exit codes: 1 after an error, 2 after wrong arguments, 130 after Ctrl-C.
"""
# What a terminal shows of the facts: files get all columns.
FACTS = "SELECT level, first, computer, fact, account, source, target, detail FROM {} WHERE level > 'info' ORDER BY first, fact"
OVER_LOGS = ("facts", "report", "rules")
# The name of the last result in the statements that write it.
RESULT = "evtx_sql_result"
COPY_OPTIONS = {"csv": "FORMAT csv", "json": "FORMAT json, ARRAY true", "jsonl": "FORMAT json", "ndjson": "FORMAT json", "parquet": "FORMAT parquet"}
# What a sheet of Excel holds, and the types that have cells of their own.
SHEET_ROWS, CELL_LENGTH = 1_048_576, 32_767
TIME = "{}::TIMESTAMP"
CELLS = dict.fromkeys(("TINYINT", "SMALLINT", "INTEGER", "UTINYINT", "USMALLINT", "UINTEGER", "FLOAT", "DOUBLE"), "{}")
CELLS |= dict.fromkeys(("TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS", "DATE"), TIME)


def literal(text):
    return "'" + str(text).replace("'", "''") + "'"


def parse(arguments):
    parser = argparse.ArgumentParser("evtx-sql", description="Queries Windows event logs with SQL.", epilog=EXAMPLES,
                                     formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False)  # fmt: skip
    parser.add_argument("sql", nargs="?", metavar="SQL", help="statements, - or one of facts, rules, report, shell")
    parser.add_argument("logs", nargs="*", metavar="LOGS", help="for a command: folders, files and archives of logs")
    form = parser.add_mutually_exclusive_group()
    for name in ("CSV", "JSON", "Markdown"):
        form.add_argument(f"--{name.lower()}", dest="form", action="store_const", const=name.lower(), help=f"print the result as {name}")
    form.add_argument("-o", dest="output", metavar="FILE", type=pathlib.Path, help="write the result to a file")
    parser.add_argument("--db", default=":memory:", metavar="FILE", help="a database file, such as case.duckdb")
    parser.add_argument("--rules", metavar="DIR", help="Sigma rules, for the commands rules and report")
    parser.add_argument("--duckdb", metavar="PROGRAM", help="the command line of DuckDB to open, instead of that of duckdb-cli")
    parser.add_argument("--version", action="version", version=f"evtx-sql {__version__}")
    given = parser.parse_intermixed_args(arguments)
    if given.sql is None and not sys.stdin.isatty():
        given.sql = "-"
    command = given.sql if given.sql in OVER_LOGS else None
    suffix = given.output and given.output.suffix[1:].lower()
    if given.sql in (None, "shell") and (given.form or given.output):
        parser.error("a shell has formats of its own, such as .mode csv")
    if command and not given.logs:
        parser.error(f"which logs? evtx-sql {command} case")
    if given.logs and not command:
        parser.error(f"{given.logs[0]!r} is one argument too many: SQL needs quotes around it")
    if command == "rules" and not given.rules:
        parser.error("which rules? evtx-sql rules case --rules DIR")
    if given.rules and command not in ("rules", "report"):
        parser.error("--rules is for the commands rules and report: in SQL, write evtx_sigma('case', rules := 'DIR')")
    if (command == "report") != (suffix == "html"):
        parser.error("a report is one page: evtx-sql report case -o case.html")
    if suffix and suffix not in {*COPY_OPTIONS, "md", "xlsx", "html"}:
        parser.error(f"{given.output}: files end with .csv, .json, .jsonl, .md, .parquet or .xlsx")
    return given


def statements(given):
    """The SQL of the arguments."""
    logs = f"[{', '.join(map(literal, given.logs))}]"
    rules = f", rules := {literal(given.rules)}" if given.rules else ""
    match given.sql:
        case "facts":
            call = f"evtx_facts({logs})"
            return f"FROM {call} ORDER BY first, fact" if given.form or given.output else FACTS.format(call)
        case "rules":
            return f"FROM evtx_sigma_timeline({logs}{rules})"
        case "report":
            return f"FROM evtx_case_report({logs}{rules})"
        case "-":
            return sys.stdin.read()
    return given.sql


def cell(value):
    """The text of a value in a table of Markdown."""
    return re.sub(r"\r\n|[\r\n]", "<br>", "" if value is None else value).replace("|", "\\|")


class Result:
    """The rows of a statement. A query is only run when they are read."""

    def __init__(self, con, statement):
        self.con, self.kind = con, statement.type.name
        self.text = without_end(statement.query)
        self.relation = con.sql(self.text)

    def has_rows(self):
        return self.kind in ("SELECT", "EXPLAIN", "PRAGMA", "CALL") or self.relation is not None and self.relation.columns != ["Count"]

    def ask(self, sql):
        """Runs SQL over the rows, which are called RESULT there."""
        if self.kind == "SELECT":
            return self.con.execute(sql.replace(RESULT, f"({self.text}\n) AS {RESULT}"))
        return self.relation.query(RESULT, sql)

    def rows(self, values):
        """Rows of SQL values of the columns."""
        found = self.ask(f"SELECT {values} FROM {RESULT}")
        if self.kind != "SELECT":
            yield from found.fetchall()
        else:
            while batch := found.fetchmany(2048):
                yield from batch

    def copy(self, path, form):
        self.ask(f"COPY (FROM {RESULT}) TO {literal(path)} ({COPY_OPTIONS[form]})").fetchall()


def without_end(text):
    """A statement without its semicolon and what follows: DuckDB 2 takes it for a part of a query."""
    encoded = text.encode()
    for offset, kind in reversed(duckdb.tokenize(text)):
        if kind.name != "comment":
            return encoded[:offset].decode() if encoded[offset:offset + 1] == b";" else text
    return text


def write_markdown(result, out):
    names = [cell(name) for name in result.relation.columns]
    for line in names, ["---"] * len(names):
        print(f"| {' | '.join(line)} |", file=out)
    for row in result.rows("COLUMNS(*)::VARCHAR"):
        print(f"| {' | '.join(map(cell, row))} |", file=out)


def write_xlsx(result, path):
    try:
        import xlsxwriter
    except ImportError:
        raise ValueError("files for Excel need XlsxWriter: pip install 'evtx-sql[xlsx]'") from None
    # A number of more than 15 digits would lose some, and other types have no cells of their own.
    forms = [CELLS.get(str(it), "left({}::VARCHAR, %d)" % CELL_LENGTH) for it in result.relation.types]
    rows = result.rows(", ".join(form.format(f"#{number}") for number, form in enumerate(forms, 1)))
    with xlsxwriter.Workbook(path, {"constant_memory": True, "nan_inf_to_errors": True}) as book:
        sheet, bold, time = book.add_worksheet(), book.add_format({"bold": True}), book.add_format({"num_format": "yyyy-mm-dd hh:mm:ss.000"})
        sheet.freeze_panes(1, 0)
        for column, (name, form) in enumerate(zip(result.relation.columns, forms)):
            sheet.write_string(0, column, name, bold)
            sheet.set_column(column, column, 24 if form == TIME else 16)
        last = 0
        for last, row in enumerate(rows, 1):
            if last == SHEET_ROWS:
                raise ValueError(f"{path}: a sheet of Excel has {SHEET_ROWS:,} rows at most. Write .csv or .parquet")
            for column, value in enumerate(row):
                if isinstance(value, (int, float)):
                    sheet.write_number(last, column, value)
                # The calendar of Excel begins in 1900. Python has no infinity for a time.
                elif isinstance(value, datetime.datetime) and 1900 <= value.year < 9999:
                    sheet.write_datetime(last, column, value, time)
                elif value is not None:
                    # Never a formula or a link.
                    sheet.write_string(last, column, str(value))
        sheet.autofilter(0, 0, last, len(forms) - 1)


def write(result, given):
    """Writes a result to the file or in the format that the arguments name, or prints a table."""
    form = given.output.suffix[1:].lower() if given.output else given.form
    path = given.output and str(given.output)
    if form in COPY_OPTIONS and path:
        result.copy(path, form)
    elif form in COPY_OPTIONS and os.name != "nt":
        result.copy("/dev/stdout", form)
    elif form in COPY_OPTIONS:
        with tempfile.TemporaryDirectory() as folder:
            copied = pathlib.Path(folder, "result")
            result.copy(copied, form)
            with copied.open("rb") as file:
                shutil.copyfileobj(file, sys.stdout.buffer)
    elif form == "xlsx":
        write_xlsx(result, path)
    elif form == "html":
        [(page,)] = result.rows("*")
        given.output.write_bytes(page)
    elif form in ("md", "markdown"):
        with open(path, "w", encoding="utf-8") if path else contextlib.nullcontext(sys.stdout) as out:
            write_markdown(result, out)
    elif result.kind == "EXPLAIN":
        print("\n".join(text for _, text in result.rows("*")))
    else:
        result.relation.show(max_width=shutil.get_terminal_size((200, 40)).columns)


def run(con, given):
    """Runs the statements. A format or a file is for the rows of the last one; without, all are printed."""
    parsed = con.extract_statements(statements(given))
    if not parsed:
        raise ValueError("there is no statement")
    for number, statement in enumerate(parsed, 1):
        result, is_last = Result(con, statement), number == len(parsed)
        if result.has_rows() and (is_last or not given.form and not given.output):
            write(result, given)
        elif is_last and given.output and not result.has_rows():
            raise ValueError(f"{given.output}: the last statement has no rows")


def query(given):
    con = connect(given.db)
    # A name in a statement is never a variable of this program.
    con.execute("SET python_enable_replacements = false")
    if sys.stdout.isatty():
        con.execute("SET enable_progress_bar = true")
    error = None

    def work():
        nonlocal error
        try:
            run(con, given)
        except Exception as raised:
            error = raised

    # DuckDB sees an interrupt only between two tasks of this thread. Another one can stop all of them.
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    try:
        while thread.is_alive():
            thread.join(0.02)
    except KeyboardInterrupt:
        # DuckDB forgets an interrupt between two statements.
        while thread.is_alive():
            con.interrupt()
            thread.join(0.02)
        print("interrupted", file=sys.stderr, flush=True)
        # A thread of DuckDB that comes back while Python ends would abort the process.
        os._exit(130)
    if error is not None:
        print(error, file=sys.stderr)
    return int(error is not None)


def find_duckdb():
    """The program of the package duckdb-cli, or else `duckdb` in the PATH.

    The package's own command `duckdb` is a wrapper around it in Python, which an interrupt ends, and the session with it.
    """
    try:
        import duckdb_cli
    except ImportError:
        return shutil.which("duckdb") or sys.exit("DuckDB's command line is missing: pip install duckdb-cli")
    return str(pathlib.Path(duckdb_cli.__file__).with_name("duckdb.exe" if os.name == "nt" else "duckdb"))


def version_of(program):
    """The version of a program, such as `2.0.0`."""
    # Without a file of settings, which can fail or print something else.
    found = subprocess.run([program, "-init", os.devnull, "--version"], capture_output=True, text=True)
    if version := re.search(r"^v(\d+\.\d+\.\d+)", found.stdout, re.MULTILINE):
        return version[1]
    raise OSError(f"{program} is not DuckDB's command line. {found.stderr}")


def shell(given):
    try:
        program = given.duckdb or find_duckdb()
        version = version_of(program)
        file = extension(version)
    except (OSError, ImportError) as error:
        sys.exit(str(error))
    print(f"evtx-sql {__version__} in the command line of DuckDB {version}", file=sys.stderr)
    command = [program, "-unsigned", "-cmd", f"LOAD {literal(file)}"]
    if given.db != ":memory:":
        # The portable file, which is that for any newer DuckDB, keeps its macros out of the database.
        if file == extension("999.0.0"):
            command += ["-cmd", "SET search_path = 'main,evtx_macros'"]
        command.append(given.db)
    if os.name != "nt":
        os.execvp(program, command)
    # Windows has no exec. Ctrl-C is for DuckDB.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    return subprocess.call(command)


def main():
    given = parse(sys.argv[1:])
    if os.name != "nt":
        # Python ignores it: `evtx-sql ... | head` should end.
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    sys.stdout.reconfigure(encoding="utf-8", newline="\n" if given.form else None)
    try:
        code = shell(given) if given.sql in (None, "shell") else query(given)
    except KeyboardInterrupt:
        # Before the query runs, such as while the extension loads.
        print("interrupted", file=sys.stderr)
        code = 130
    sys.exit(code)
