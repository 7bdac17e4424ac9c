"""The package evtx-sql in the oldest and the newest DuckDB, with the extensions of this build."""

import os
import pathlib
import subprocess
import sys

import duckdb
import pytest
from test_portable import EXTENSION, LOGS, OLD, PYTHONS, ROOT, run


@pytest.fixture(name="package", scope="module")
def fixture_package(tmp_path_factory):
    """A folder with the package as it is installed."""
    dist, package = tmp_path_factory.mktemp("dist"), tmp_path_factory.mktemp("package")
    for extension in EXTENSION, os.environ["EVTX_EXTENSION"]:
        subprocess.run([sys.executable, ROOT / "tools/make_repository.py", extension, dist], check=True)
    platform = next(dist.glob("v*/*")).name
    subprocess.run([sys.executable, ROOT / "tools/make_wheel.py", "sql", dist, platform], check=True)
    # The platform of the wheel is that of a release, which is newer than that of this machine if its C library is old.
    wheel = next(dist.glob("*.whl"))
    subprocess.run([sys.executable, "-m", "zipfile", "-e", wheel, package], check=True)
    assert wheel.name.startswith("evtx_sql-") and (package / ".duckdb_extensions").is_dir()
    return package


def command(package, *arguments, text=None, python=OLD / "python"):
    return run([python, "-m", "evtx_sql", *arguments], text, PYTHONPATH=str(package), COLUMNS="200")


@pytest.mark.parametrize("python", PYTHONS)
def test_a_connection_has_the_extension(package, tmp_path, python):
    code = f"""
import evtx_sql
con = evtx_sql.connect(r"{tmp_path / 'case.duckdb'}", config={{"threads": 1}})
print(con.execute("SELECT count(*), current_setting('threads') FROM read_evtx('{LOGS}')").fetchone())
print(evtx_sql.__version__)
"""
    output, error = run([PYTHONS[python], "-c", code], PYTHONPATH=str(package))
    assert (output.splitlines()[0], error, (tmp_path / "case.duckdb").exists()) == ("(414, 1)", "", True)
    assert f"EXTENSION_VERSION {output.splitlines()[1]}" in (ROOT / "extension_config.cmake").read_text(encoding="utf-8")


def test_the_file_is_that_of_the_version_or_the_portable_one(package):
    code = f"""
import evtx_sql
for version in ["{duckdb.__version__}", "{duckdb.__version__[:-1]}99", "99.0.0", "1.0.0"]:
    try:
        print(evtx_sql.extension(version).parts[-3])
    except ImportError as error:
        print(error)
"""
    output, _ = run([sys.executable, "-c", code], PYTHONPATH=str(package))
    own, newer, newest, older = output.splitlines()
    oldest = min((path.name for path in (package / ".duckdb_extensions").iterdir()), key=lambda name: [*map(int, name[1:].split("."))])
    assert (own, newer, newest) == (f"v{duckdb.__version__}", oldest, oldest)
    assert f"needs DuckDB {oldest[1:]} or newer, not 1.0.0" in older


@pytest.mark.parametrize("python", PYTHONS.values(), ids=PYTHONS)
def test_the_command_runs_sql(package, tmp_path, python):
    database = str(tmp_path / "case.duckdb")
    assert command(package, "--csv", f"SELECT count(*) AS events FROM read_evtx('{LOGS}'); -- end", python=python) == ("events\n414", "")
    assert "414" in command(package, "--db", database, f"CREATE TABLE t AS FROM read_evtx('{LOGS}'); SELECT count(*) FROM t; EXPLAIN FROM t; CALL pragma_version()", python=python)[0]
    # Macros are found whatever the default database is.
    assert command(package, "--db", database, "--csv", "SELECT evtx_hex(3) AS hex FROM evtx_timeline_of('t') LIMIT 1", python=python) == ("hex\n0x3", "")
    assert "Log cleared" in command(package, "facts", str(ROOT / "samples"), python=python)[0]


def test_the_command_opens_a_shell(package, tmp_path):
    text = f".mode csv\nCREATE TABLE t AS FROM read_evtx('{LOGS}');\nSELECT count(*) AS n FROM t;\n"
    shown, about = command(package, "shell", text=text)
    assert shown == "n\n414" and "in the command line of DuckDB 1.5.6" in about
    database = ["shell", "--db", str(tmp_path / "case.duckdb")]
    assert command(package, *database, text=text + "SELECT count(*) > 0 AS has FROM evtx_timeline_of('t');\n")[0] == "n\n414\nhas\ntrue"
    with duckdb.connect(str(tmp_path / "case.duckdb")) as con:
        assert con.execute("SELECT count(*) FROM duckdb_functions() WHERE database_name = 'case' AND NOT internal").fetchone() == (0,)


def test_settings_of_the_user_do_not_matter_for_the_version(package, tmp_path):
    (tmp_path / ".duckdbrc").write_text(".print v0.1.2\n")
    shown, _ = run([OLD / "python", "-m", "evtx_sql", "shell"], ".mode csv\nSELECT evtx_hex(3);\n", PYTHONPATH=str(package), HOME=str(tmp_path))
    assert shown.splitlines()[-1] == "0x3"


def test_the_command_takes_another_duckdb(package):
    program = pathlib.Path(subprocess.run([OLD / "python", "-c", "import duckdb_cli; print(duckdb_cli.__path__[0])"], capture_output=True,
                                          text=True, check=True).stdout.strip(), "duckdb")
    assert command(package, "shell", "--duckdb", str(program), text=".mode csv\nSELECT evtx_hex(3) AS hex;\n")[0] == "hex\n0x3"
