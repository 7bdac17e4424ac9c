"""The command `evtx-sql` of the package, as pip installs it, with the extension of this build."""

import csv
import io
import json
import os
import signal
import subprocess
import sys

import duckdb
import openpyxl
import pyarrow.parquet
import pytest
from conftest import ROOT, SAMPLES

RULES = SAMPLES / "rules"
COUNT = f"SELECT count(*) AS events FROM read_evtx('{SAMPLES}/DC01-Security.evtx')"
ENDLESS = "SELECT count(*) FROM range(1_000_000) AS a, range(1_000_000) AS b WHERE a.range + b.range = -1"


@pytest.fixture(name="package", scope="module")
def fixture_package(tmp_path_factory):
    """A folder with the package as it is installed."""
    dist, package = tmp_path_factory.mktemp("dist"), tmp_path_factory.mktemp("package")
    packed = subprocess.run([sys.executable, ROOT / "tools/make_repository.py", os.environ["EVTX_EXTENSION"], dist], check=True, capture_output=True, text=True).stdout
    subprocess.run([sys.executable, ROOT / "tools/make_wheel.py", "sql", dist, packed.split("/")[-2]], check=True)
    subprocess.run([sys.executable, "-m", "zipfile", "-e", next(dist.glob("*.whl")), package], check=True)
    return package


@pytest.fixture(name="command")
def fixture_command(package, tmp_path):
    """Runs the command in an empty folder, and gives what it prints. It must end with `code`."""

    def run(*arguments, text="", code=0, **variables):
        process = subprocess.run([sys.executable, "-m", "evtx_sql", *map(str, arguments)], input=text.encode(), capture_output=True, cwd=tmp_path, check=False,
                                 env={**os.environ, "PYTHONPATH": str(package), "COLUMNS": "200", **variables})  # fmt: skip
        shown, error = process.stdout.decode(), process.stderr.decode()
        assert process.returncode == code and "Traceback" not in error, shown + error
        return shown if code == 0 else error

    return run


def test_sql_prints_a_table(command):
    shown = command(COUNT)
    assert "│ events │" in shown and "│     55 │" in shown
    # DuckDB's own text for an empty result, and that of a plan.
    assert "0 rows" in command(f"{COUNT} HAVING false")
    assert "READ_EVTX" in command(f"EXPLAIN {COUNT}").upper()


def test_formats_are_read_back(command):
    sql = "SELECT 1 AS a, NULL AS b, '' AS c, 'x|\"y\nz' AS d, [1, NULL] AS e, TIMESTAMP_NS '2024-03-05 08:46:03.1251301' AS time"
    assert list(csv.reader(io.StringIO(command("--csv", sql), newline=""))) == [
        ["a", "b", "c", "d", "e", "time"], ["1", "", "", 'x|"y\nz', "[1, NULL]", "2024-03-05 08:46:03.1251301"]]  # fmt: skip
    [row] = json.loads(command("--json", sql))
    assert (row["b"], row["c"], row["e"], row["d"]) == (None, "", [1, None], 'x|"y\nz')
    assert command(sql, "--markdown").splitlines()[2] == '| 1 |  |  | x\\|"y<br>z | [1, NULL] | 2024-03-05 08:46:03.1251301 |'


@pytest.mark.parametrize("suffix", ["csv", "json", "jsonl", "md", "parquet", "xlsx", "CSV"])
def test_a_file_gets_the_form_of_its_suffix(command, tmp_path, suffix):
    path = tmp_path / f"it's.{suffix}"
    assert command("-o", path.name, f"SELECT * FROM read_evtx('{SAMPLES}/*.evtx') ORDER BY ALL") == ""
    expected = int(command("--csv", f"SELECT count(*) FROM read_evtx('{SAMPLES}/*.evtx')").split()[1])
    match suffix.lower():
        case "csv":
            found = len(list(csv.reader(path.open(encoding="utf-8", newline="")))) - 1
        case "json":
            found = len(json.loads(path.read_bytes()))
        case "jsonl":
            found = len([json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()])
        case "md":
            found = len(path.read_text(encoding="utf-8").splitlines()) - 2
        case "parquet":
            found = pyarrow.parquet.read_metadata(path).num_rows
        case "xlsx":
            found = openpyxl.load_workbook(path, read_only=True).active.max_row - 1
    assert found == expected


def test_a_sheet_has_values_and_no_formulas(command, tmp_path):
    command("-o", "a.xlsx", """SELECT '=1+1' AS formula, 'https://example.com' AS link, 5 AS number, 1234567890123456789 AS large, 'nan'::DOUBLE AS nan,
        repeat('x', 40_000) AS long, TIMESTAMP_NS '2024-03-05 08:46:03.125' AS time, TIMESTAMP '1601-01-01' AS old, 'infinity'::TIMESTAMP AS never, NULL AS none""")  # fmt: skip
    sheet = openpyxl.load_workbook(tmp_path / "a.xlsx").active
    head, row = sheet.iter_rows()
    values = {name.value: it.value for name, it in zip(head, row)}
    assert (values["formula"], values["link"], values["number"], values["large"], len(values["long"])) == ("=1+1", "https://example.com", 5, "1234567890123456789", 32_767)
    assert (row[0].data_type, row[1].hyperlink, str(values["time"])) == ("s", None, "2024-03-05 08:46:03.125000")
    assert (values["old"], values["none"]) == ("1601-01-01 00:00:00", None)


def test_a_script_comes_from_standard_input(command, tmp_path):
    script = f"CREATE TABLE events AS FROM read_evtx('{SAMPLES}/DC01-Security.evtx');\n-- ; is no end here: ';'\nSELECT count(*) FROM events;\nSELECT 7 AS b;"
    shown = command("--db", "case.duckdb", "-", text=script)
    assert "│           55 │" in shown and "│     7 │" in shown
    # The last result alone is written.
    assert command("--db", "case.duckdb", "--csv", text="SELECT 1; SELECT count(*) AS n FROM events") == "n\n55\n"
    with duckdb.connect(str(tmp_path / "case.duckdb")) as con:
        assert con.execute("SELECT count(*) FROM events").fetchone() == (55,)


def test_macros_resolve_in_a_database_on_disk(command):
    assert int(command("--db", "case.duckdb", "--csv", f"SELECT count(*) FROM evtx_timeline('{SAMPLES}/DC01-Security.evtx')").split()[1]) == 55


def test_three_commands_need_no_sql(command, tmp_path):
    assert "Log cleared" in command("facts", SAMPLES)
    rows = list(csv.DictReader(io.StringIO(command("facts", SAMPLES, "--csv"))))
    assert {"evidence", "doubts"} <= rows[0].keys() and {"info", "high"} <= {row["level"] for row in rows}
    several = list(csv.DictReader(io.StringIO(command("facts", SAMPLES / "DC01-Security.evtx", SAMPLES / "WS07-Security.evtx", "--csv"))))
    assert {row["computer"] for row in several} == {"DC01.northwind.example", "WS07.northwind.example"}
    assert "Service with a Binary in ProgramData" in command("rules", SAMPLES, "--rules", RULES, "--csv")
    command("report", SAMPLES, "-o", "case.html", "--rules", RULES)
    page = (tmp_path / "case.html").read_text(encoding="utf-8")
    assert page.startswith("<!doctype html>") and "Service with a Binary in ProgramData" in page


def test_errors_end_with_1(command, tmp_path):
    assert "no_such_table" in command("FROM no_such_table", code=1)
    assert "no/such/folder" in command("facts", "no/such/folder", code=1)
    # A name is not a variable of this program.
    assert "Table with name sys does not exist" in command("FROM sys", code=1)
    assert "has no rows" in command("CREATE TABLE t AS SELECT 1", "-o", "t.csv", code=1)
    assert "no statement" in command("-", text=" -- nothing\n", code=1)
    assert "no-duckdb-here" in command("shell", "--duckdb", "no-duckdb-here", code=1)
    assert "is not DuckDB's command line" in command("shell", "--duckdb", "true", code=1)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("arguments", "advice"),
    [
        (["facts"], "which logs?"),
        (["rules", "case"], "--rules DIR"),
        (["report", "case"], "-o case.html"),
        (["SELECT 1", "-o", "a.html"], "-o case.html"),
        (["SELECT 1", "-o", "a.docx"], "files end with"),
        (["SELECT", "1"], "needs quotes"),
        (["SELECT 1", "--rules", "r"], "--rules is for"),
        (["shell", "--csv"], ".mode csv"),
        (["--csv", "--json", "SELECT 1"], "not allowed with"),
        (["-csv", "SELECT 1"], "-csv"),
    ],
)
def test_wrong_arguments_end_with_2(command, tmp_path, arguments, advice):
    error = command(*arguments, code=2)
    assert advice in error and "usage: evtx-sql" in error
    assert not list(tmp_path.iterdir())


@pytest.mark.skipif(os.name == "nt", reason="signals are those of POSIX")
def test_an_interrupt_ends_with_130(package):
    started = "SELECT 'started' AS started; "
    process = subprocess.Popen([sys.executable, "-u", "-m", "evtx_sql", started + ENDLESS], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={**os.environ, "PYTHONPATH": str(package)})
    while b"started" not in process.stdout.readline():
        pass
    process.send_signal(signal.SIGINT)
    _, error = process.communicate()
    assert (process.returncode, error) == (130, b"interrupted\n")


def test_an_interrupt_before_the_query_ends_with_130(package):
    code = """if True:
        import sys
        from evtx_sql import _command

        def connect(_):
            raise KeyboardInterrupt

        _command.connect, sys.argv[1:] = connect, ["SELECT 1"]
        _command.main()
    """
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False, text=True, env={**os.environ, "PYTHONPATH": str(package)})
    assert (process.returncode, process.stderr) == (130, "interrupted\n")


@pytest.mark.skipif(os.name == "nt", reason="pipes are those of POSIX")
@pytest.mark.parametrize("form", ["--csv", "--json", "--markdown"])
def test_the_command_ends_if_nobody_reads_on(package, form):
    query = f"SELECT a.json FROM read_evtx('{SAMPLES}/DC01-Security.evtx', json := true) a, range(1000)"
    shown = subprocess.run(f'"{sys.executable}" -m evtx_sql {form} "{query}" | head -1', shell=True, capture_output=True, text=True, check=True, env={**os.environ, "PYTHONPATH": str(package)})
    assert (len(shown.stdout.splitlines()), shown.stderr) == (1, "")
