"""Every query of the cookbook returns the table printed after it, or rows. The queries of the other pages return rows.

EVTX_DOCS=write rewrites the tables of the cookbook.
"""

import csv
import io
import json
import os
import re
import shutil
import subprocess
import zipfile
from datetime import UTC, datetime, timedelta
from pathlib import Path

import openpyxl
import pytest
from conftest import ROOT, SAMPLES
from markdown_it import MarkdownIt
from openpyxl.utils.escape import unescape

COOKBOOK = ROOT / "docs" / "cookbook.md"
# A query, with its question and an optional table after it.
RECIPE = re.compile(
    r"^### (?P<question>[^\n]+)\n(?P<text>(?:(?!^#|^```).*\n)*)```sql\n(?P<sql>[^`]*)```\n(?P<table>\n(?:(?:\|.*\n)+|The samples hold none\.\n))?", re.M
)


def cell(value):
    return "" if value is None else " ".join(value.split()).replace("|", "\\|").replace("*", "\\*")


def table(con, sql):
    """The result as a Markdown table. Empty for statements other than queries."""
    if not sql.startswith(("SELECT", "WITH")):
        con.execute(sql)
        return ""
    relation = con.sql(sql)
    names = relation.columns
    rows = relation.project(", ".join(f"#{i + 1}::VARCHAR" for i in range(len(names)))).fetchall()
    if not rows:
        return "\nThe samples hold none.\n"
    lines = [names, ["---"] * len(names), *([cell(value) for value in row] for row in rows)]
    return "\n" + "".join("| " + " | ".join(line) + " |\n" for line in lines)


@pytest.fixture(name="case")
def fixture_case(con, tmp_path, monkeypatch):
    """A connection in a folder with the samples and archives of a case."""
    (tmp_path / "samples").symlink_to(SAMPLES)
    (tmp_path / "collection").mkdir()
    with zipfile.ZipFile(tmp_path / "case.zip", "w") as archive:
        archive.write(SAMPLES / "DC01-Security.evtx", "C/Windows/System32/winevt/Logs/Security.evtx")
    shutil.copy(tmp_path / "case.zip", tmp_path / "collection/DC01.zip")
    for name, log in [("c/Security", "DC01-Security"), ("vss1/Security", "DC01-Security"), ("vss1/System", "DC01-System")]:
        (tmp_path / "mnt" / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(SAMPLES / f"{log}.evtx", tmp_path / "mnt" / f"{name}.evtx")
    (tmp_path / "ranges.csv").write_text("10.0.0.0,10.255.255.255,private\n198.51.100.0,198.51.100.255,test\n203.0.113.0,203.0.113.255,test\n")
    monkeypatch.chdir(tmp_path)
    return con


def test_every_query_gives_what_the_cookbook_says(case):
    text = COOKBOOK.read_text(encoding="utf-8")
    recipes = list(RECIPE.finditer(text))
    assert len(recipes) >= 20
    assert len(recipes) == text.count("```sql")

    def made(found):
        result = table(case, found["sql"])
        # A result that the page does not show has rows. The page says if there are none.
        shown = result if found["table"] or "|" not in result else ""
        return f"### {found['question']}\n{found['text']}```sql\n{found['sql']}```\n{shown}"

    written = RECIPE.sub(made, text)
    if os.environ.get("EVTX_DOCS") == "write":
        COOKBOOK.write_text(written, encoding="utf-8")
    assert written == text or os.environ.get("EVTX_DOCS") == "write", "EVTX_DOCS=write rewrites the tables"


def recipe(question):
    return next(found["sql"] for found in RECIPE.finditer(COOKBOOK.read_text(encoding="utf-8")) if found["question"] == question)


def test_no_query_takes_damage_for_an_event(case):
    """Over all samples, some of them damaged, the first column is never NULL."""
    run = 0
    for found in RECIPE.finditer(COOKBOOK.read_text(encoding="utf-8")):
        sql, changed = re.subn(r"'samples[^']*'|\['samples[^\]]*\]", "'samples'", found["sql"])
        if changed and sql.startswith("CREATE"):
            case.execute(sql)
        elif changed and sql.startswith(("SELECT", "WITH")):
            rows = case.sql(sql).fetchall()
            assert all(row[0] is not None for row in rows), found["question"]
            run += 1
    assert run >= 18


def test_one_of_the_records_that_say_the_same_is_kept_and_all_damage(case):
    """By the one key of all pages. For each column that says something, a record with another value there is no copy."""
    pages = [path.read_text(encoding="utf-8") for pattern in ("*.md", "*.ipynb") for path in (ROOT / "docs").glob(pattern)]
    keys = [key for page in pages for key in re.findall(r"SELECT DISTINCT ON (\(.*\)) (?:\*|filename)", page)]
    assert len(keys) >= 6 and len(set(keys)) == 1
    case.execute("CREATE TABLE events AS SELECT * FROM read_evtx('samples')")
    columns = [name for name, *_ in case.execute("DESCRIBE events").fetchall()]
    of_copies = {"record_id", "message", "filename"}
    rows = case.execute("SELECT * FROM events").fetchall()
    said = {repr([value for name, value in zip(columns, row, strict=True) if name not in of_copies]) for row in rows}
    kept = f"SELECT count(*), count(error) FROM (SELECT DISTINCT ON {keys[0]} * FROM"
    assert case.execute(f"{kept} (FROM events UNION ALL FROM events))").fetchone() == (len(said), sum(row[columns.index("error")] is not None for row in rows))
    for column in columns:
        one = f"(FROM events WHERE {column} IS NOT NULL LIMIT 1)"
        count = 1 if column in of_copies else 2
        if case.execute(f"SELECT count(*) FROM {one}").fetchone() == (1,):
            assert case.execute(f"{kept} (FROM {one} UNION ALL SELECT * REPLACE (NULL AS {column}) FROM {one}))").fetchone()[0] == count, column


def test_every_python_example_of_the_cookbook_runs(case, capsys):
    examples = re.findall(r"```python\n([^`]*)```", COOKBOOK.read_text(encoding="utf-8"))
    assert examples
    for example in examples:
        exec(example, {"con": case})
    assert "Security.evtx" in capsys.readouterr().out


def test_every_query_of_the_other_pages_gives_rows(case):
    # test_duckdb_bugs.py tests the statements of duckdb-bugs.md, and test/clients those of install.md.
    others = {COOKBOOK, ROOT / "docs" / "duckdb-bugs.md", ROOT / "docs" / "install.md"}
    pages = [ROOT / "README.md", *sorted(set((ROOT / "docs").glob("*.md")) - others)]
    queries = [sql for page in pages for sql in re.findall(r"```sql\n([^`]*)```", page.read_text(encoding="utf-8"))]
    assert len(queries) >= 10
    for sql in queries:
        assert case.execute(sql).fetchall(), sql


def test_the_readme_shows_what_its_query_gives(case):
    shown = re.findall(r"```sql\n([^`]*)```\n(\n(?:\|.*\n)+)", (ROOT / "README.md").read_text(encoding="utf-8"))
    results = [(sql, text) for sql, text in shown if sql.startswith("SELECT")]
    assert len(results) == 2
    for sql, text in results:
        assert table(case, sql) == text


def test_the_file_for_timesketch_has_its_fields(case):
    case.execute(recipe("How do I load it into Timesketch?"))
    events = [json.loads(line) for line in Path("timesketch.jsonl").read_text(encoding="utf-8").splitlines()]
    assert len(events) == case.execute("SELECT count(*) FROM read_evtx('samples') WHERE time_created IS NOT NULL").fetchone()[0]
    for event in events:
        assert datetime.fromisoformat(event["datetime"]).utcoffset() == timedelta(0)
        assert event["timestamp_desc"] and event["message"]
    assert "time_created" not in events[0]


def test_the_file_for_excel_starts_with_a_byte_order_mark(case):
    case.execute(recipe("How do I open it in Excel?"))
    data = Path("timeline.csv").read_bytes()
    assert data.startswith("\ufefftime,computer,".encode())
    rows = list(csv.DictReader(io.StringIO(data.decode("utf-8-sig"))))
    assert len(rows) == case.execute("SELECT count(*) FROM read_evtx('samples') WHERE time_created IS NOT NULL").fetchone()[0]
    assert {"«все»" in row["process"] + row["details"] for row in rows} == {True, False}
    assert all(len(row) == 8 and None not in row for row in rows)


HOSTILE = "=cmd|' /C calc'!A0"


@pytest.fixture(name="hostile_case")
def fixture_hostile_case(case):
    """The case without its damaged logs, and matches that have values of an attacker: a formula, quotes, line breaks, and `;`, which starts a cell in some locales."""
    case.execute("CREATE TABLE matches AS FROM evtx_sigma('samples', rules := 'samples/rules')")
    for column, key in (("event_data", "CommandLine"), ("matched", "CommandLine")):
        case.execute(
            f"""UPDATE matches SET computer = ?, {column} = map_concat({column}, MAP {{'{key}': ?}})
                WHERE map_contains({column}, '{key}')""", [HOSTILE, f'{HOSTILE}\r\n{HOSTILE};{HOSTILE},"{HOSTILE}'])
    return case


def over_matches(question):
    return recipe(question).replace("evtx_sigma_timeline('samples', rules := 'samples/rules')", "evtx_sigma_timeline_of('matches')").replace("evtx_sigma('samples', rules := 'samples/rules')", "matches")


def test_the_file_for_hayabusa_has_its_columns_and_no_formula(hostile_case):
    hostile_case.execute(over_matches("How do I write the CSV file of Hayabusa?"))
    text = Path("hayabusa.csv").read_text(encoding="utf-8")
    rows = list(csv.DictReader(io.StringIO(text)))
    assert list(rows[0]) == ["Timestamp", "RuleTitle", "Level", "Computer", "Channel", "EventID", "RecordID", "Details", "ExtraFieldInfo", "RuleID"]
    assert len(rows) == 49
    assert {row["Level"] for row in rows} == {"crit", "high", "med", "low"}
    assert all(re.fullmatch(r"2024-03-05 \d\d:\d\d:\d\d\.\d{3} \+00:00", row["Timestamp"]) for row in rows)
    assert sum("calc" in row["ExtraFieldInfo"] for row in rows) == 5
    assert sum(row["Computer"] == f"'{HOSTILE}" for row in rows) == 5
    assert formulas(text) == []


def formulas(text):
    """The cells of a CSV file that a spreadsheet runs, in any locale."""
    cells = [cell for delimiter in ",;\t" for row in csv.reader(io.StringIO(text), delimiter=delimiter) for cell in row]
    return [cell for cell in cells if cell.lstrip(" \r\n\t\"").startswith(tuple("=+-@"))]


def test_the_file_for_excel_has_no_formula(hostile_case):
    sql = recipe("How do I open it in Excel?").replace("evtx_timeline('samples')", "evtx_timeline_of('matches')")
    hostile_case.execute(sql)
    text = Path("timeline.csv").read_text(encoding="utf-8-sig")
    assert text.count("calc") >= 10 and formulas(text) == []
    hostile_case.execute(re.sub(r"evtx_csv_safe\((\w+|left\(\w+, 30000\))\)", r"\1", sql))
    assert len(formulas(Path("timeline.csv").read_text(encoding="utf-8-sig"))) >= 5


def test_the_matches_for_timesketch_have_its_fields(hostile_case):
    hostile_case.execute(over_matches("How do I load Sigma matches into Timesketch?"))
    events = [json.loads(line) for line in Path("matches.jsonl").read_text(encoding="utf-8").splitlines()]
    assert len(events) == 49
    for event in events:
        assert datetime.fromisoformat(event["datetime"]).utcoffset() == timedelta(0)
        assert event["timestamp_desc"] and event["message"].startswith(event["title"])
    assert ["critical", "defense-evasion", "T1070.001"] in [event["tag"] for event in events]
    assert sum(HOSTILE in event["message"] for event in events) == 5


# The values of an attacker: markup, separators, codes of mactime, and a formula.
PLANTED = "=cmd|' /C calc'!A0 %41%7c | a,b\r\n**x** [y](http://evil.example) <img src=x> `z` &lt; \\| _e_ ~~s~~ a@b.example"


@pytest.fixture(name="planted")
def fixture_planted(case):
    """Runs a recipe over the samples, with values of an attacker in the events of a computer of theirs."""
    case.execute("CREATE TABLE planted AS FROM read_evtx('samples')")
    case.execute("""INSERT INTO planted SELECT * REPLACE (900 AS record_id, 'evil.evtx' AS filename, $1 AS computer, MAP {'ServiceName': $1, 'ImagePath': 'cmd.exe /c ' || $1, 'AccountName': $1} AS event_data)
        FROM read_evtx('samples') WHERE event_id = 7045""", [PLANTED])

    def run(question):
        sql = re.sub(r"(evtx_\w+)\('samples'\)", r"\1_of('planted')", recipe(question)).replace("read_evtx('samples')", "planted")
        assert "planted" in sql
        return case.execute(sql)

    return run


def test_the_file_for_log2timeline_has_its_columns(case, planted):
    """As plaso/output/l2t_csv.py of plaso writes them: 17 columns, no quotes, and a dash for nothing."""
    planted("How do I write a time line for log2timeline (l2t_csv)?")
    text = Path("l2t.csv").read_text(encoding="utf-8")
    header, *lines = text.splitlines()
    assert header == "date,time,timezone,MACB,source,sourcetype,type,user,host,short,desc,version,filename,inode,notes,format,extra"
    assert len(lines) == case.execute("SELECT count(*) FROM planted WHERE time_created IS NOT NULL").fetchone()[0]
    rows = [dict(zip(header.split(","), line.split(","), strict=True)) for line in lines]
    for row in rows:
        datetime.strptime(f"{row['date']} {row['time']}", "%m/%d/%Y %H:%M:%S")
        assert (row["timezone"], row["MACB"], row["version"]) == ("UTC", "M...", "2") and all(row.values()) and len(row["short"]) <= 80
    assert sum("calc" in row["host"] for row in rows) >= 1 and not any(row["host"].startswith("=") for row in rows)


def test_the_body_file_is_one(case, planted):
    """As mactime of The Sleuth Kit reads it, if that is installed, or by its documented format: https://wiki.sleuthkit.org/Body_file."""
    planted("How do I write a body file for mactime?")
    lines = Path("events.body").read_text(encoding="utf-8").splitlines()
    fields = [line.split("|") for line in lines]
    assert len(lines) == case.execute("SELECT count(*) FROM planted WHERE time_created IS NOT NULL").fetchone()[0]
    assert all(len(line) == 11 and all(re.fullmatch(r"-?\d+", number) for number in (line[0], line[2], *line[4:])) for line in fields)
    expected = {(datetime.fromtimestamp(int(line[8]), UTC).strftime("%Y-%m-%dT%H:%M:%SZ"), line[2], re.sub("%(..)", lambda code: chr(int(code[1], 16)), line[1])) for line in fields}
    assert sum(" ".join(re.split("[\r\n]+", PLANTED)) in name for _, _, name in expected) >= 1
    if mactime := shutil.which("mactime"):
        output = subprocess.run([mactime, "-d", "-y", "-z", "UTC", "-b", "events.body"], check=True, capture_output=True).stdout.decode("utf-8", "replace")
        header, *rows = csv.reader(io.StringIO(output))
        assert header == ["Date", "Size", "Type", "Mode", "UID", "GID", "Meta", "File Name"]
        assert {(row[0], row[6], row[7]) for row in rows} == expected
        assert {tuple(row[2:4]) for row in rows} == {("m...", "evtx")}


def test_the_events_for_elasticsearch_are_those_of_the_logs(case):
    """Read again, as events of Winlogbeat, they are the same; and the fields outside of winlog are those of ECS."""
    case.execute(recipe("How do I load it into Elasticsearch?"))
    columns = "time_created, event_id, provider, channel, computer, event_data, provider_guid, process_id, thread_id, user_sid, event_record_id, version, task, opcode, activity_id"
    case.execute("CREATE TABLE again AS FROM evtx_from('ecs.ndjson')")
    logged = f"SELECT {columns} FROM read_evtx('samples') WHERE event_id IS NOT NULL AND time_created IS NOT NULL AND error IS NULL AND event_data IS NOT NULL AND channel IS NOT NULL AND provider IS NOT NULL"
    assert case.execute(f"SELECT count(*) FROM ({logged})").fetchone()[0] > 380
    assert case.execute(f"SELECT count(*) FROM ({logged} EXCEPT ALL SELECT {columns} FROM again)").fetchone() == (0,)
    known = {"@timestamp", "ecs.version", "message", "event.code", "event.kind", "event.provider", "host.name", "log.level", "log.file.path", "winlog"}

    def fields(event, path=""):
        for name, value in event.items():
            yield from fields(value, f"{path}{name}.") if isinstance(value, dict) and name != "winlog" else [path + name]

    for line in Path("ecs.ndjson").read_text(encoding="utf-8").splitlines():
        assert set(fields(json.loads(line))) == known


def test_the_facts_in_markdown_are_cells_of_a_table(case, planted):
    """By a parser of CommonMark with tables: the text of each cell is the value, and nothing else is in it."""
    planted("How do I put facts into a Markdown report?")
    parser = MarkdownIt("commonmark").enable(["table", "strikethrough"])
    tokens = parser.parse(Path("facts.md").read_text(encoding="utf-8"))
    assert [token.type for token in tokens if token.level == 0] == ["table_open", "table_close"]
    cells = [token for token in tokens if token.type == "inline"]
    assert all(child.type in ("text", "text_special") for cell in cells for child in cell.children)
    found = [cell.content if not cell.children else "".join(child.content for child in cell.children) for cell in cells]
    rows = case.execute("""SELECT strftime(first, '%Y-%m-%d %H:%M:%S'), computer, level::VARCHAR, fact, account, source, target, detail
        FROM evtx_facts_of('planted') WHERE level >= 'medium'""").fetchall()
    expected = [" ".join((value or "").split()) for row in rows for value in row]
    assert found[:8] == ["first", "computer", "level", "fact", "account", "source", "target", "detail"]
    assert sorted(found[8:]) == sorted(expected) and " ".join(PLANTED.split()) in expected


def test_the_workbook_has_the_time_line_and_no_formula(case, planted):
    """By openpyxl, which did not write it."""
    case.execute("CREATE TABLE timeline AS FROM evtx_timeline_of('planted')")
    code = COOKBOOK.read_text(encoding="utf-8").split("For a workbook")[1].split("```python\n")[1].split("```")[0]
    exec(code.replace("evtx_timeline('samples')", "timeline"), {"con": case})  # pylint: disable=exec-used
    sheet = openpyxl.load_workbook("timeline.xlsx").active
    header, *rows = sheet.iter_rows()
    names = [cell.value for cell in header]
    expected = case.execute("SELECT time_created, computer, event_id, details FROM timeline WHERE time_created IS NOT NULL").fetchall()
    assert len(rows) == len(expected) and not any(cell.data_type == "f" for row in rows for cell in row)
    place = [names.index(name) for name in ("time_created", "computer", "event_id", "details")]
    found = [tuple(row[index].value for index in place) for row in rows]

    def key(row):
        # Excel has 15 digits of a time, and writes line breaks and control characters as codes.
        time, *others = row
        return time.isoformat()[:16], [unescape(value).replace("\r", "") if isinstance(value, str) else value for value in others]

    assert sorted(map(key, found), key=repr) == sorted(map(key, expected), key=repr)


@pytest.mark.parametrize("rules", ["'samples/rules'", "'samples/rules', min_level := 'critical', exclude := '0c5e7f52-3f5a-4c1e-9d7b-2b1a6f0e4c03'"])
def test_the_layer_for_navigator_is_one(case, rules):
    """As the specification of version 4.5 says: the required keys, their types, and no others. The second has no techniques."""
    case.execute(recipe("How do I show Sigma matches in ATT&CK Navigator?").replace("'samples/rules'", rules))
    layer = json.loads(Path("layer.json").read_text(encoding="utf-8"))
    assert layer.keys() == {"name", "versions", "domain", "techniques", "gradient"}
    assert layer["versions"] == {"layer": "4.5", "navigator": "5.2.0"}
    assert (layer["name"], layer["domain"]) == ("Sigma matches", "enterprise-attack")
    gradient = layer["gradient"]
    assert len(gradient["colors"]) >= 2 and all(re.fullmatch("#[0-9a-f]{6}", color) for color in gradient["colors"])
    assert gradient["minValue"] < gradient["maxValue"]
    for technique in layer["techniques"]:
        assert technique.keys() == {"techniqueID", "score", "comment"}
        assert re.fullmatch(r"T\d{4}(\.\d{3})?", technique["techniqueID"])
        assert 0 < technique["score"] <= gradient["maxValue"] and isinstance(technique["comment"], str)
    assert len({technique["techniqueID"] for technique in layer["techniques"]}) == len(layer["techniques"]) == (6 if rules == "'samples/rules'" else 0)


@pytest.mark.parametrize(("root", "programs"), [("wusvc", ["wusvc.exe", ". cmd.exe", ". . whoami.exe"]), ("cmd", ["cmd.exe", ". whoami.exe"]), ("whoami", ["whoami.exe"])])
def test_the_subtree_of_a_process_ends_where_it_ends(case, root, programs):
    sql = recipe("What did a process start, and what did that start?").replace("\\cmd.exe", f"\\{root}.exe")
    assert [row[1] for row in case.sql(sql).fetchall()] == programs
