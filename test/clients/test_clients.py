"""Every client that docs/install.md lists, with the code that it shows."""

import contextlib
import json
import os
import pathlib
import pty
import re
import select
import shutil
import time

import pytest
from conftest import CLIENTS, EXTENSION, NEWEST, OWN, ROOT, example, section

# The most frequent events of the samples. Java leaves out the two damaged ones.
FIRST, SECOND = r"7036(\.0)?\D+30[02]\b", r"4625(\.0)?\D+42\b"


def assert_counts(output):
    assert re.search(rf"{FIRST}.*{SECOND}", output, re.DOTALL), output


def test_pip_and_uv(home, download):
    """In an environment that has nothing yet."""
    install, commands, without_install = re.findall(r"```sh\n(.*?)```", section("With pip"), re.DOTALL)
    (home.folder / "rules").mkdir()
    (home.folder / "rules" / "windows").symlink_to(ROOT / "samples" / "rules")
    venv = home.folder / "venv"
    home.run(["python", "-m", "venv", venv])
    place = str(download.parents[2])
    variables = {"PATH": os.pathsep.join([str(venv / "bin"), str(CLIENTS / "bin"), os.environ["PATH"]]), "PYTHONPATH": "",
                 "PIP_FIND_LINKS": place, "UV_FIND_LINKS": place, "UV_CACHE_DIR": str(CLIENTS / "uv")}
    assert_counts(home.run(["sh", "-ec", install], **variables))
    assert re.search("failed logons.*Security Log Cleared", home.run(["sh", "-ec", commands], **variables), re.DOTALL)
    assert "Security Log Cleared" in (home.folder / "case.html").read_text(encoding="utf-8")
    assert_counts(home.run(["sh", "-ec", without_install], **variables))
    assert_counts(home.run(["python", "-c", example("With pip", "python")], **variables))


def test_python(home, duckdb):
    code = home.here(example("Python", "python"))
    assert_counts(home.python(code, duckdb))
    # The second time, the extension is there.
    assert_counts(home.python(code, duckdb))


def test_adbc(home, duckdb):
    home.install(duckdb)
    assert re.search(r"7036.*302,", home.python(example("ADBC", "python"), duckdb), re.DOTALL)


@pytest.mark.parametrize("duckdb", [OWN, pytest.param(NEWEST, marks=pytest.mark.xfail(
    strict=True, reason="Ibis calls a function that newer versions of DuckDB do not have; docs/install.md says so"))])
def test_ibis(home, duckdb):
    home.install(duckdb)
    assert_counts(home.python(example("Ibis", "python"), duckdb))


def test_sqlalchemy(home, duckdb):
    home.install(duckdb)
    assert_counts(home.python(example("SQLAlchemy", "python"), duckdb))


def test_jupysql(home, duckdb):
    home.install(duckdb)
    cells = example("JupySQL", "text").splitlines()
    code = f"""
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance()
for cell in {cells!r}:
    shell.run_cell(cell).raise_error()
"""
    assert_counts(home.python(code, duckdb))


def test_dbt(home, duckdb):
    home.install(duckdb)
    (home.folder / "models").mkdir()
    (home.folder / "profiles.yml").write_text(example("dbt", "yaml"))
    (home.folder / "models" / "failed_logons.sql").write_text(example("dbt", "sql"))
    (home.folder / "dbt_project.yml").write_text("name: evtx\nprofile: case\n")
    home.run(["dbt", "--no-send-anonymous-usage-stats", "run"], duckdb)
    assert home.python("import duckdb; print(duckdb.connect('case.duckdb').execute('SELECT count(*) FROM failed_logons').fetchone())",
                       duckdb) == "(42,)\n"


def test_harlequin(home, duckdb):
    editor, query = example("Harlequin", "sh").splitlines()
    assert_counts(home.run(["sh", "-c", query], duckdb))
    with Terminal(home, editor, duckdb, TERM="xterm") as terminal:
        terminal.expect("Query Editor")
        terminal.type("SELECT 'events: ' || count(*) FROM read_evtx('case')")
        # Ctrl-J runs the query, and Ctrl-Q leaves.
        terminal.expect("events: 414", again="\x0a")
        terminal.type("\x11")
        terminal.ended()


def test_java(home, jar):
    (home.folder / "CountEvents.java").write_text(example("Java", "java"))
    command = ["java", "-cp", jar, "CountEvents.java", "Downloads/evtx.linux_amd64.duckdb_extension.gz", "case"]
    assert_counts(home.run(command))


def test_a_jdbc_url(home, jar):
    url = home.here(example("DBeaver and others that take a JDBC URL", "text")).strip()
    (home.folder / "Query.java").write_text("""
public class Query {
    public static void main(String[] args) throws Exception {
        try (var connection = java.sql.DriverManager.getConnection(args[0]); var statement = connection.createStatement();
                var rows = statement.executeQuery("SELECT event_id, count(*) FROM read_evtx('case') GROUP BY ALL ORDER BY 2 DESC")) {
            while (rows.next()) {
                System.out.println(rows.getString(1) + " " + rows.getString(2));
            }
        }
    }
}
""")
    assert_counts(home.run(["java", "-cp", jar, "Query.java", url]))
    assert_counts(home.run(["java", "-cp", jar, "Query.java", url.replace("duckdb:", f"duckdb:{home.folder}/case.duckdb")]))


@pytest.fixture(name="jar", params=sorted(CLIENTS.glob("*.jar")), ids=lambda jar: jar.stem)
def fixture_jar(request):
    return request.param


@pytest.mark.skipif(not shutil.which("go"), reason="Go is not installed")
def test_go(home):
    # Go keeps what it has compiled.
    folder = CLIENTS / "go"
    folder.mkdir(exist_ok=True)
    (folder / "main.go").write_text(home.here(example("Go", "go")))
    environment = {name: home_of_go for name, home_of_go in json.loads(os.popen("go env -json").read()).items()
                   if name in ["GOCACHE", "GOMODCACHE", "GOPATH"]}
    if not (folder / "go.mod").exists():
        home.run(["go", "-C", folder, "mod", "init", "count"], **environment)
    home.run(["go", "-C", folder, "get", (ROOT / "test" / "clients" / "go.txt").read_text().strip()], **environment)
    home.run(["go", "-C", folder, "build", "-o", "count", "."], **environment)
    assert home.run([folder / "count"]) == "414 events\n"


# The command line


def aliases():
    return re.findall(r'alias evtx=.*"', section("In every session"))


@pytest.mark.parametrize("alias", aliases())
def test_an_alias(home, alias):
    assert len(aliases()) == 2
    query = "SELECT event_id, count(*) FROM read_evtx('case') GROUP BY ALL ORDER BY 2 DESC"
    script = f"shopt -s expand_aliases\n{alias}\nevtx -csv -c \"{query}\"\n"
    assert_counts(home.run(["bash", "-c", script]))


def test_installed_once_for_all_sessions(home):
    lines = re.search(r"on Linux or macOS \| `(.*?)` \| `(.*?)`", section("2. Install it"))
    home.run(lines[1].split(), text=home.here(lines[2]))
    assert_counts(home.run(lines[1].split(), text=example("3. Query", "sql")))


def test_settings_that_load_it_end_every_other_session(home):
    (home.folder / ".duckdbrc").write_text(f"LOAD '{EXTENSION}';\n")
    with pytest.raises(AssertionError, match="signature"):
        home.run(["duckdb", "-c", "SELECT 1"])


SHELL = f"make -C {ROOT} -o portable -o {CLIENTS}/.created shell OLD={CLIENTS} PORTABLE={EXTENSION}"


@pytest.mark.parametrize("command, goes_on", [(aliases()[0], False), (aliases()[1], True), (SHELL, True)], ids=["script", "program", "make"])
def test_ctrl_c_stops_the_query_only(home, command, goes_on):
    """The script of the package is the one that it ends; docs/install.md says so."""
    if command.startswith("alias"):
        command = f"shopt -s expand_aliases; {command}; eval evtx"
    else:
        command += f" BUILD={home.folder}"
        (home.folder / "portable").mkdir()
    with Terminal(home, command) as terminal:
        terminal.expect("D ")
        terminal.type("CREATE TABLE kept AS SELECT 'is ' || 'there' AS it, count(*) AS n FROM read_evtx('case');\n".replace(
            "case", str(ROOT / "samples")))
        terminal.type("SELECT 'in ' || 'time';\n")
        terminal.expect("in time")
        start = terminal.spent()
        terminal.type("SELECT count(*) FROM range(1000000000000) a, range(1000) b;\n")
        while terminal.spent() < start + 1:
            time.sleep(0.05)
        terminal.type("\x03")
        if goes_on:
            terminal.expect("D ")
            terminal.type("FROM kept;\n")
            terminal.expect("is there")
            terminal.type(".exit\n")
        terminal.ended()


class Terminal:
    """A command of bash in a terminal, as somebody sees it who types."""

    def __init__(self, home, command, duckdb=OWN, **variables):
        self.seen = ""
        environment = {**os.environ, **home.environment(duckdb), "TERM": "dumb", "LINES": "50", "COLUMNS": "150", **variables}
        self.process, self.terminal = pty.fork()
        if not self.process:
            os.chdir(home.folder)
            os.execvpe("bash", ["bash", "-c", command], environment)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process:
            os.kill(self.process, 9)
            os.waitpid(self.process, 0)
        os.close(self.terminal)

    def type(self, text):
        os.write(self.terminal, text.encode())

    def spent(self):
        """The processor time in seconds of the programs in the terminal."""
        stats = []
        for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
            with contextlib.suppress(OSError):  # It may have ended.
                stats.append(stat.read_text().rpartition(")")[2].split())
        return sum(int(stat[11]) + int(stat[12]) for stat in stats if int(stat[3]) == self.process) / os.sysconf("SC_CLK_TCK")

    def expect(self, text, again=""):
        """Reads until a text appears, and forgets what came before. Types `again` when the program shows nothing new."""
        end = time.monotonic() + 600
        while text not in self.seen:
            ready, _, _ = select.select([self.terminal], [], [], 2)
            if not ready:
                # The limit only ends a hang.
                assert time.monotonic() < end, f"{text!r} does not appear: {self.seen}"
                self.type(again)
                continue
            try:
                self.seen += os.read(self.terminal, 65536).decode(errors="replace")
            except OSError:
                raise AssertionError(f"ended without {text!r}: {self.seen}") from None
        self.seen = self.seen.split(text, 1)[1]

    def ended(self):
        try:
            self.expect("\0")
        except AssertionError as error:
            assert "ended" in str(error), error
        os.waitpid(self.process, 0)
        self.process = None
