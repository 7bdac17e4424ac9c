"""The portable extension in the clients that people have: DuckDB's command line, and DuckDB for Python of two versions.

EVTX_PORTABLE names the extension, EVTX_OLD the folder with the programs of the oldest DuckDB that loads it.
"""

import os
import pathlib
import re
import signal
import subprocess
import sys
import time

import duckdb
import psutil
import pytest

ROOT = pathlib.Path(__file__).parents[2]
sys.path.append(str(ROOT / "test/python"))
from client import promised  # noqa: E402
from structures import CHUNK, FILE_HEADER, file_header  # noqa: E402

EXTENSION = pathlib.Path(os.environ["EVTX_PORTABLE"])
OLD = pathlib.Path(os.environ["EVTX_OLD"])
PYTHONS = {"oldest": OLD / "python", "newest": sys.executable}
LOGS = "samples/*.evtx"


def run(command, text=None, **variables):
    process = subprocess.run(command, input=text, capture_output=True, text=True, cwd=ROOT, timeout=600, env={**os.environ, **variables})
    return process.stdout.strip(), process.stderr.strip()


def cli(*arguments, text=None, **variables):
    return run([OLD / "duckdb", *arguments], text, **variables)


@pytest.fixture(params=PYTHONS)
def python(request, tmp_path):
    """Runs code in a version of DuckDB for Python. It has a function that connects, and a folder."""
    start = f"""
import duckdb
def connect(database=":memory:", **config):
    con = duckdb.connect(database, config={{"allow_unsigned_extensions": "true", **config}})
    con.execute("LOAD '{EXTENSION}'")
    # What takes long would print a bar.
    con.execute("SET enable_progress_bar = false")
    return con
folder = {str(tmp_path)!r}
"""

    def run_code(code):
        output, error = run([PYTHONS[request.param], "-c", start + code])
        assert not error, error
        # The times, and what tests expect.
        print(*re.findall("^promise: .*$", output, re.MULTILINE), sep="\n")
        return re.sub("^promise: .*\n?", "", output, flags=re.MULTILINE).strip()

    return run_code


# The command line


def test_a_command_loads_it_and_asks():
    query = f"LOAD '{EXTENSION}'; SELECT count(*) AS events FROM read_evtx('{LOGS}')"
    assert cli("-unsigned", "-csv", "-c", query) == ("events\n414", "")


def test_it_must_be_allowed():
    _, error = cli("-c", f"LOAD '{EXTENSION}'")
    assert "unsigned" in error or "signature" in error, error


def test_dot_commands():
    output, error = cli("-unsigned", text=f".mode csv\n.timer off\nLOAD '{EXTENSION}';\nFROM 'samples/DC01-System.evtx' SELECT event_id LIMIT 1;\n"
                                          f".mode line\nSELECT evtx_status('0xc000006a') AS status;\n")
    assert (output.splitlines(), error) == (["event_id", "6013", "status = STATUS_WRONG_PASSWORD"], "")


def test_a_file_of_settings_loads_it(tmp_path):
    (tmp_path / "evtx.sql").write_text(f"LOAD '{EXTENSION}';\n.mode csv\n")
    output, _ = cli("-unsigned", "-init", tmp_path / "evtx.sql", text=f"SELECT count(*) FROM evtx_timeline('{LOGS}');\n")
    assert output.splitlines()[-1].isdigit(), output


def test_a_report_is_written(tmp_path):
    query = f"LOAD '{EXTENSION}'; COPY (FROM evtx_case_report('{LOGS}', rules := 'samples/rules')) TO '{tmp_path}/report.html' (FORMAT blob)"
    assert cli("-unsigned", "-c", query)[1] == ""
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert page.startswith("<!doctype html>\n") and page.endswith("</html>\n") and '"Security Log Cleared"' in page


def test_it_installs_from_a_folder(tmp_path):
    run([sys.executable, "tools/make_repository.py", EXTENSION, tmp_path / "repository"])
    statements = f"SET extension_directory = '{tmp_path}/installed'; INSTALL evtx FROM '{tmp_path}/repository'; LOAD evtx;"
    assert cli("-unsigned", "-csv", "-noheader", "-c", f"{statements} SELECT count(*) FROM read_evtx('{LOGS}')") == ("414", "")


def test_the_other_extension_says_what_it_is_for():
    _, error = cli("-unsigned", "-c", f"LOAD '{os.environ['EVTX_EXTENSION']}'")
    assert f"built specifically for DuckDB version 'v{duckdb.__version__}'" in error, error


# Node


def test_the_example_for_node_runs(tmp_path):
    code = re.search(r"```js\n(.*?)```", (ROOT / "docs/install.md").read_text(encoding="utf-8"), re.DOTALL)[1]
    example = OLD.parent / "example.mjs"
    code = code.replace("/home/me/Downloads/evtx.linux_amd64.duckdb_extension.gz", str(EXTENSION)).replace("'case'", "'samples'")
    example.write_text(code, encoding="utf-8")
    output, error = run(["node", example], HOME=str(tmp_path))
    assert ("4625" in output, error) == (True, "")


# Python


def test_order_is_that_of_the_logs(python):
    assert python(f"""
one, two = connect(threads=1), connect(threads=4)
query = "SELECT filename, record_id FROM read_evtx('{LOGS}')"
rows = one.execute(query).fetchall()
assert two.execute(query).fetchall() == rows
two.execute("CREATE TABLE t AS " + query)
assert two.execute("FROM t").fetchall() == rows
two.execute(f"COPY ({{query}}) TO '{{folder}}/x.parquet'")
assert two.execute(f"FROM '{{folder}}/x.parquet'").fetchall() == rows
assert two.execute(query + " LIMIT 5 OFFSET 100").fetchall() == rows[100:105]
print(len(rows))
""") == "414"


def test_a_file_keeps_no_macros(python):
    """They are in a database in memory then, and call each other there. Its name is one that nobody has."""
    assert python(f"""
path = folder + "/case.duckdb"
con = connect(path)
rows = con.execute("FROM evtx_macros.evtx_timeline('{LOGS}') ORDER BY ALL").fetchall()
assert rows == connect().execute("FROM evtx_timeline('{LOGS}') ORDER BY ALL").fetchall()
assert con.execute("SELECT evtx_macros.evtx_status('0xc000006a')").fetchall() == [("STATUS_WRONG_PASSWORD",)]
con.execute("CREATE TABLE events AS FROM read_evtx('{LOGS}')")
assert con.execute("FROM evtx_macros.evtx_timeline_of('events') ORDER BY ALL").fetchall() == rows
con.execute("SET search_path = 'main,evtx_macros'")
assert con.execute("FROM evtx_timeline_of('events') ORDER BY ALL").fetchall() == rows
con.close()
con = duckdb.connect(path)
assert con.execute("SELECT count(*) FROM duckdb_functions() WHERE function_name LIKE 'evtx%'").fetchall() == [(0,)]
con.close()
print(connect(path, access_mode="read_only").execute("SELECT count(*) FROM evtx_macros.evtx_logons('{LOGS}')").fetchone()[0] > 0)
""") == "True"


def test_the_offset_of_a_text_depends_on_the_version(python):
    """docs/duckdb-bugs.md says so, and what to write."""
    assert python(f"""
counts = [connect().execute(f"SELECT count(*) FROM read_evtx('samples/DC01-System.evtx') WHERE time_created >= {{since}}").fetchone()[0]
          for since in ["'2024-03-05 02:46:03.12513-06'", "TIMESTAMPTZ '2024-03-05 02:46:03.12513-06' AT TIME ZONE 'UTC'"]]
print(counts == [3 if duckdb.__version__ < "2" else 10, 3])
""") == "True"


def test_a_second_path_is_an_error_that_shows_the_list_to_write(python):
    signatures = [file.read_text(encoding="utf-8").split("\n")[0] for file in (ROOT / "rust/frontends/evtx-ffi/sql").glob("*.sql")]
    tables = [line[3:].split("(")[0] for line in signatures if re.search(r"\((files|table_name|exports)(, \w+ := .*)?\)$", line)]
    searches = ["evtx_search", "evtx_search_of", "evtx_sigma_timeline", "evtx_sigma_summary", "evtx_sigma_of"]
    assert len(tables) > 15
    assert python(f"""
con = connect()
listed = con.execute("SELECT DISTINCT function_name FROM duckdb_functions() WHERE function_name LIKE '%evtx%' AND function_type = 'table'")
functions = [(name, 1) for name, in listed.fetchall() if name not in ("evtx", "evtx_event_catalog")]
assert len(functions) == 9, functions
found = functions + [(name, 1) for name in {tables!r}] + [(name, 2) for name in {searches!r}]
for name, count in found:
    for more in ["'more'", "['more']"]:
        call = f"{{name}}({{', '.join(['$$no such$$'] * count)}}, {{more}}"
        for end in [")", ", 'another')"]:
            try:
                con.execute(f"FROM {{call}}{{end}}")
                raise SystemExit(call)
            except duckdb.Error as error:
                if (name, count) in functions:
                    # The API has neither variadic parameters nor overloads.
                    assert "No function matches" in str(error), (call, error)
                    continue
                assert "by position" in str(error) or "write several values" in str(error), (call, error)
                # The older version writes a list in a list as one text.
                shown = "['no such', '[more]']" if "[" in more and duckdb.__version__ < "2" else "['no such', 'more']"
                assert end != ")" or shown in str(error), (call, error)
assert con.execute("SELECT count(*) > 0 FROM evtx_search(['samples/dirty.evtx', 'samples/WS07-Security.evtx'], ['*svc*', 'x'])").fetchone()[0]
assert con.execute("SELECT evtx_remote_host('PC', computer := 'pc'), evtx_remote_host('PC')").fetchone() == (None, "PC")
print(len(con.execute("SELECT error FROM read_evtx('samples/DC01-Security.evtx', provider := 'Security')").fetchall()))
""") == "1"


def test_files_named_like_the_macros_stay_as_they_are(python):
    assert python(f"""
import hashlib, os
digest = lambda: hashlib.sha256(open(path, "rb").read()).digest()
for name in ["evtx", "evtx_macros"]:
    path = f"{{folder}}/{{name}}.duckdb"
    duckdb.connect(path).execute("CREATE SCHEMA evtx_macros_2; CREATE TABLE evtx_macros_2.t AS SELECT 7 AS a").close()
    before = digest()
    con = connect(path)
    place = "evtx_macros" if name == "evtx" else "evtx_macros_3"
    assert con.execute("SELECT count(*) > 0 FROM duckdb_functions() WHERE database_name = $1", [place]).fetchall() == [(True,)]
    assert con.execute("FROM evtx_macros_2.t").fetchall() == [(7,)]
    con.close()
    assert digest() == before
""") == ""


def test_macros_of_the_user_stay(python):
    assert python("""
con = duckdb.connect(config={"allow_unsigned_extensions": "true"})
con.execute("CREATE MACRO evtx_hex(a) AS 'mine'")
con.execute("LOAD '%s'")
assert con.execute("SELECT evtx_hex(3)").fetchall() == [("mine",)]
con.execute("ATTACH ':memory:' AS other; USE other")
assert con.execute("SELECT count(*) > 0 FROM memory.evtx_timeline('samples')").fetchall() == [(True,)]
""" % EXTENSION) == ""


def test_a_load_that_failed_can_be_repeated(python):
    assert python("""
con = duckdb.connect(config={"allow_unsigned_extensions": "true"})
con.execute("BEGIN; CREATE MACRO evtx_hex(a) AS 1")
try:
    con.execute("LOAD '%s'")
except duckdb.Error:
    con.execute("ROLLBACK; LOAD '%s'")
    print(con.execute("SELECT evtx_hex(3), evtx_status('0xc000006a')").fetchone())
""" % (EXTENSION, EXTENSION)) == "('0x3', 'STATUS_WRONG_PASSWORD')"


def test_too_little_memory_is_an_error(python):
    assert python(f"""
con = connect(threads=4)
errors = 0
for limit in range(20, 1000, 20):
    for query in [f"SET memory_limit = '{{limit}}KB'", "SELECT count(xml), count(event_data) FROM read_evtx('{LOGS}', xml := true)", "SELECT evtx_code_names('ticket_options', i) FROM range(3000) t(i)"]:
        try:
            con.execute(query).fetchall()
        except duckdb.OutOfMemoryException:
            errors += 1
print(0 < errors < 147)
""") == "True"


def test_folders_make_columns(python):
    assert python("""
import os, shutil
for day in ["1969-07-20", "2024-03-05", "__HIVE_DEFAULT_PARTITION__"]:
    os.makedirs(f"{folder}/day={day}/host={day[:4]}")
    shutil.copy("samples/wrapped.evtx", f"{folder}/day={day}/host={day[:4]}")
rows = connect(threads=4).execute("SELECT day, host, count(*), list(record_id)[1] FROM read_evtx($1, hive_partitioning := true) GROUP BY ALL ORDER BY ALL", [folder]).fetchall()
print([(str(day), host, count) for day, host, count, _ in rows])
""") == "[('1969-07-20', '1969', 160), ('2024-03-05', '2024', 160), ('None', '__HI', 160)]"


def test_a_report_of_a_table_is_written(python):
    assert python(f"""
con = connect()
con.execute("CREATE TABLE events AS FROM read_evtx('{LOGS}')")
con.execute("CREATE TABLE matches AS FROM evtx_sigma_of('events', 'samples/rules')")
con.execute(f"COPY (FROM evtx_case_report_of('events', table_of_matches := 'matches')) TO '{{folder}}/report.html' (FORMAT blob)")
page = open(folder + "/report.html", "rb").read()
print(page.startswith(b"<!doctype html>") and page.endswith(b"</html>\\n") and b'"Security Log Cleared"' in page)
""") == "True"


def test_copy_takes_columns_of_the_same_types_only(python):
    assert python("""
con = connect()
con.execute("CREATE TABLE a(record_id UBIGINT, fields STRUCT(value VARCHAR, name VARCHAR)[])")
con.execute("CREATE TABLE b(computer JSON)")
con.execute("CREATE TABLE c(record_id UBIGINT)")
for statement in ["COPY a FROM 'samples/wrapped.evtx' (FORMAT evtx, fields true)", "COPY b FROM 'samples/wrapped.evtx' (FORMAT evtx)",
                  "COPY c FROM 'samples/wrapped.evtx' (FORMAT evtx, verify 'maybe')"]:
    try:
        con.execute(statement)
    except duckdb.BinderException as error:
        print("another type" in str(error) or "true or false" in str(error))
con.execute("COPY c FROM 'samples/wrapped.evtx' (FORMAT evtx, verify 'true')")
print(con.execute("SELECT count(*) FROM c").fetchone()[0])
""").split() == ["True", "True", "True", "160"]


def test_a_database_can_be_closed_and_opened_again(python):
    """The extension holds no connection, which would keep the file locked."""
    assert python("""
import subprocess, sys
path = folder + "/case.duckdb"
con = connect(path)
con.execute("FROM read_evtx('samples/wrapped.evtx')").fetchall()
con.close()
print(subprocess.run([sys.executable, "-c", f"import duckdb; duckdb.connect({path!r}); print('open')"], capture_output=True, text=True).stdout)
""") == "open"


def test_two_databases_of_a_process_have_it(python):
    assert python(f"""
one, two = connect(), connect()
query = "SELECT count(*) FROM read_evtx('{LOGS}', event_id := 4625)"
print(one.execute(query).fetchall() == two.execute(query).fetchall())
""") == "True"


def test_a_file_system_of_python(python):
    assert python(f"""
class Memory:
    pass
import glob, sys
try:
    import fsspec
except ImportError:
    print("none")
    sys.exit()
memory = fsspec.filesystem("memory")
for path in glob.glob("{LOGS}"):
    with open(path, "rb") as log, memory.open("/case/" + path.split("/")[1], "wb") as copy:
        copy.write(log.read())
con = connect(threads=4)
con.register_filesystem(memory)
files = [f"memory://{{file}}" for file in memory.ls("/case", detail=False)]
assert con.execute("SELECT count(*) FROM read_evtx($1)", [files]).fetchall() == [(414,)]
con.execute("SET VARIABLE logs = (SELECT list(file) FROM glob('memory://case/*'))")
assert con.execute("SELECT count(*) FROM read_evtx(getvariable('logs'))").fetchall() == [(414,)]
try:
    con.execute("FROM read_evtx('memory://case/*.evtx')")
except duckdb.Error as error:
    assert "SET VARIABLE logs" in str(error), error
    print("none")
""") == "none"


def test_what_may_not_be_read_is_not_read(python):
    assert python(f"""
import shutil
con = connect()
shutil.copy("samples/wrapped.evtx", folder)
con.execute(f"SET allowed_directories = ['{{folder}}']")
con.execute("SET enable_external_access = false")
for path in [folder, folder + "/*.evtx", folder + "/wrapped.evtx"]:
    assert con.execute("SELECT count(*) FROM read_evtx($1)", [path]).fetchall() == [(160,)]
for path in ["samples/wrapped.evtx", "{LOGS}", "samples"]:
    try:
        print(con.execute("FROM read_evtx($1)", [path]).fetchall())
    except duckdb.Error as error:
        assert "disabled by configuration" in str(error), error
con = connect()
con.execute("SET disabled_filesystems = 'LocalFileSystem'")
for path in ["samples/wrapped.evtx", "{LOGS}", "samples"]:
    try:
        print(con.execute("FROM read_evtx($1)", [path]).fetchall())
    except duckdb.Error as error:
        assert "has been disabled" in str(error), error
""") == ""


def test_paths_of_duckdb(python):
    """URLs of files, and the folder for `~`."""
    assert python(f"""
import os
con = connect()
root = os.getcwd()
con.execute(f"SET home_directory = '{{root}}/samples'")
for path in ["~/wrapped.evtx", f"file:{{root}}/samples/wrapped.evtx", f"file://{{root}}/samples/wrapped.evtx", f"file://localhost{{root}}/samples/wrapped.evtx"]:
    print(con.execute("SELECT count(*) FROM read_evtx($1)", [path]).fetchone()[0])
""").split() == ["160"] * 4


def test_vectors_live_as_long_as_duckdb_holds_them(python):
    assert python(f"""
con, one = connect(threads=2), connect(threads=1)
for query in ["SELECT xml, lag(xml, 3) OVER (ORDER BY filename, record_id, xml, error) AS before FROM logs",
              "SELECT a.json FROM logs a JOIN logs b USING (filename, record_id) ORDER BY a.xml DESC, a.json",
              "SELECT DISTINCT ON (event_id) event_id, xml FROM logs ORDER BY ALL",
              "SELECT event_id, list(event_data ORDER BY filename, record_id, xml, error) FROM logs GROUP BY ALL ORDER BY ALL"]:
    query = query.replace("logs", "(FROM read_evtx('{LOGS}', xml := true, json := true))")
    assert con.execute(query).fetchall() == one.execute(query).fetchall()
result, rows = con.execute("SELECT xml FROM read_evtx('{LOGS}', xml := true)"), []
while some := result.fetchmany(7):
    rows.extend(some)
assert rows == one.execute("SELECT xml FROM read_evtx('{LOGS}', xml := true)").fetchall()
""") == ""


# Interrupts


@pytest.fixture
def large(tmp_path):
    """The folder of the test, with logs and rules that take seconds to read. The logs share their bytes on the disk."""
    sample = (ROOT / "samples/DC01-Security.evtx").read_bytes()
    (tmp_path / "logs").mkdir()
    log = tmp_path / "logs/0.evtx"
    log.write_bytes(file_header(sample, 768) + 768 * sample[FILE_HEADER:FILE_HEADER + CHUNK])
    for i in range(1, 100):
        os.link(log, tmp_path / f"logs/{i}.evtx")
    (tmp_path / "rules").mkdir()
    for i in range(100):
        fields = [f"F{i}_{j}" for j in range(1000)]
        rules = [f"title: {field}\nlogsource: {{product: windows}}\ndetection: {{a: {{{field}|contains: [v, w]}}, condition: a}}\n" for field in fields]
        (tmp_path / f"rules/{i}.yml").write_text("---\n".join(rules))
    return tmp_path


# The interrupt comes early in what takes a second of processor time or more, and after it comes little more work.
INTERRUPTED = f"""
import os, sys, time
sys.path.append({str(ROOT / "test/python")!r})
from client import interrupting, promised

def interrupted(con, query, after=0.2):
    with interrupting(con, after) as at:
        try:
            con.execute(query).fetchall()
            print("it ended before the interrupt, or ignored it:", query)
        except duckdb.Error as error:
            assert "Interrupted!" in str(error), error
            promised(time.perf_counter() - at[1], 0.1)
            assert time.process_time() - at[0] < 1, query
    # The connection still works.
    assert con.execute("SELECT count(*) FROM 'samples/dirty.evtx'").fetchall() == [(80,)]
    assert con.sql("SELECT count(*) FROM 'samples/dirty.evtx'").fetchall() == [(80,)]
"""


# EXPLAIN only binds. Without rows, DuckDB does not look for interrupts itself.
@pytest.mark.parametrize(
    "query",
    [
        "EXPLAIN FROM read_evtx('{folder}/logs', event_id := 9999, sample_size := -1)",
        "SELECT count(*) FROM read_evtx('{folder}/logs', provider := 'none')",
        "FROM evtx_schema('{folder}/logs')",
        "EXPLAIN FROM evtx_sigma('samples', rules := '{folder}/rules')",
        "FROM evtx_sigma_rules('{folder}/rules')",
    ],
)
def test_an_interrupt_ends_work_without_rows(python, large, query):
    query = query.format(folder=large)
    assert python(INTERRUPTED + f'interrupted(connect(threads=1), "{query}")') == ""


def test_an_interrupt_ends_the_end_of_a_copy(python):
    """The rows take a fifth of the work, the compression of the catalog the rest."""
    assert python(INTERRUPTED + """
con = connect(threads=1)
con.execute("CREATE TABLE texts AS FROM evtx_message_catalog('test/data/messages') LIMIT 0")
text = "string_agg(md5((i * 40000 + j)::VARCHAR), '')"
con.execute(f"INSERT INTO texts BY NAME SELECT 'p' || i % 5 AS provider, i::INTEGER AS event_id, {text} AS text FROM range(75) r(i), range(30000) s(j) GROUP BY i")
for after in [0.1, 0.6]:
    interrupted(con, f"COPY texts TO '{folder}/all.messages' (FORMAT evtx_messages)", after)
    assert not os.listdir(folder)
""") == ""


def test_ctrl_c_ends_a_query_of_the_command_line(large):
    begun = large / "begun.csv"
    statements = f"LOAD '{EXTENSION}'; COPY (SELECT 1) TO '{begun}'; FROM evtx_schema('{large}/logs')"
    # pip's command would kill the program 250 ms after the signal.
    program, = OLD.parent.glob("lib/python*/site-packages/duckdb_cli/duckdb")
    with subprocess.Popen([program, "-unsigned", "-csv", "-c", statements], stdout=subprocess.PIPE, text=True) as process:
        while not begun.exists():
            time.sleep(0.01)
        running = psutil.Process(process.pid)

        def spent():
            """Its processor time, in user mode and in the system."""
            return sum(running.cpu_times()[:2])

        start = spent()
        while spent() < start + 0.3:
            time.sleep(0.01)
        sent, sent_at = spent(), time.perf_counter()
        process.send_signal(signal.SIGINT)
        assert "provider" not in process.stdout.read()
        promised(time.perf_counter() - sent_at, 0.1)
        _, _, used = os.wait4(process.pid, 0)
        assert used.ru_utime + used.ru_stime - sent < 1
