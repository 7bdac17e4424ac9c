"""Sigma rules over the rows of a table. The judge is evtx_sigma over the logs that the table came from."""

import os
import pathlib
import random
import threading
import time

import pytest
from conftest import ROOT, SAMPLES, interrupted, loaded
from test_sigma import EVERYTHING, FOR_SECURITY, rule, write

RULES = [str(ROOT / "samples" / "rules"), str(ROOT / "samples" / "correlations")]
LOGS = [str(SAMPLES), *(os.environ[name] for name in ("EVTX_CORPUS", "EVTX_VARIED", "EVTX_COLLECTIONS") if os.environ.get(name))]
# The types of the columns of a NDJSON file that COPY wrote. They are those of `docs/sigma.md`.
TYPES = {"time_created": "TIMESTAMP_NS", "event_data": "MAP(VARCHAR, VARCHAR)", "user_data": "JSON", "keywords": "UBIGINT",
         "event_id": "UINTEGER", "record_id": "UBIGINT"}
COLUMNS = "rule_title, rule_id, rule_level, rule_file, matched, correlation, record_id, filename, time_created::TIMESTAMP_NS AS time, error"


def assert_same(con, table, logs, rules, arguments="", columns=COLUMNS, unknown="false"):
    """Asserts that both functions have the same rows, apart from damage of which no channel is known."""
    con.execute(f"CREATE OR REPLACE TABLE expected AS SELECT {columns}, channel FROM evtx_sigma($1, rules := $2{arguments})", [logs, rules])
    con.execute(f"CREATE OR REPLACE TABLE found AS SELECT {columns}, channel FROM evtx_sigma_of('{table}', $1{arguments})", [rules])
    for one, other in [("expected", "found"), ("found", "expected")]:
        known = f"WHERE (rule_title IS NOT NULL OR channel IS NOT NULL) AND ({unknown}) IS NOT TRUE"
        assert con.execute(f"(FROM {one} {known}) EXCEPT ALL (FROM {other} {known})").fetchmany(3) == [], one
    return con.execute("SELECT count(*), count(correlation) FROM found WHERE rule_title IS NOT NULL").fetchone()


def read_again(con, form, tmp_path):
    """A view of the table `events` as it comes back from another form."""
    path = tmp_path / f"events.{form}"
    if form == "table":
        return "events"
    if form == "parquet":
        con.execute(f"COPY events TO '{path}'")
        return str(path)
    con.execute(f"COPY events TO '{path}' (FORMAT json)")
    names = [name for name, *_ in con.execute("DESCRIBE events").fetchall()]
    columns = ", ".join(f"{name}: '{TYPES.get(name, 'VARCHAR')}'" for name in names)
    con.execute(f"CREATE OR REPLACE VIEW again AS FROM read_json('{path}', columns := {{{columns}}})")
    return "again"


@pytest.mark.parametrize("form", ["table", "parquet", "json"])
def test_rows_are_those_of_the_logs(con, tmp_path, form):
    con.execute("CREATE TABLE events AS FROM read_evtx($1)", [LOGS])
    table = read_again(con, form, tmp_path)
    assert assert_same(con, table, LOGS, RULES)[1] > 0
    assert_same(con, table, LOGS, RULES, ", min_level := 'high'")
    if os.environ.get("EVTX_SIGMA"):
        assert assert_same(con, table, LOGS, [os.environ["EVTX_SIGMA"], *RULES])[0] > 500


def test_every_field_has_its_name_and_text(con, tmp_path):
    # Rules about names and values of the logs, in every form that a rule can ask for them. Whole machines have few other names.
    rng, logs = random.Random(54), [folder for folder in LOGS if folder != os.environ.get("EVTX_COLLECTIONS")]
    con.execute("CREATE TABLE events AS FROM read_evtx($1)", [logs])
    names = [name for name, in con.execute("""
        SELECT DISTINCT field FROM (
            SELECT unnest(map_keys(event_data)) AS field FROM events
            UNION SELECT field_name FROM evtx_schema($1)) ORDER BY ALL""", [logs]).fetchall()]
    values = con.execute("""
        SELECT DISTINCT e.key, e.value FROM (SELECT unnest(map_entries(event_data)) AS e FROM events) WHERE length(e.value) BETWEEN 1 AND 200 ORDER BY ALL""").fetchall()
    rules = {f"has{i}": rule(f"has {name}", {"a": {f"{name}|exists": True}, "condition": "a"}) for i, name in enumerate(rng.sample(names, min(400, len(names))))}
    for i, (name, value) in enumerate(rng.sample(values, min(400, len(values)))):
        value = value.replace("\\", "\\\\").replace("*", "\\*").replace("?", "\\?")
        modifier = rng.choice(["", "|contains", "|startswith", "|endswith"])
        rules[f"is{i}"] = rule(f"is {i}", {"a": {name + modifier: value}, "condition": "a"})
        if len(value) > 5:
            rules[f"word{i}"] = rule(f"word {i}", {"a": [value], "condition": "a"})
    for name in ["Data", "EventID", "Channel", "Provider_Name", "Provider_Guid", "Keywords", "Level", "Task", "Opcode", "Version", "Computer",
                 "Security_UserID", "EventRecordID", "Correlation_ActivityID", "Execution_ProcessID", "EventID_Qualifiers"]:
        rules[name] = rule(name, {"a": {f"{name}|re": ".."}, "condition": "a"})
    # Some logs spell GUIDs in capital letters.
    columns = COLUMNS.replace("matched", "lower(matched::VARCHAR) AS matched")
    # A row does not tell whether a value had the name param1 or none, unless the provider declares it; it lacks RenderingInfo, and
    # what does not fit its columns.
    unknown = "matched LIKE '{param%' OR matched LIKE '{data=%' OR matched LIKE '{renderinginfo.%' OR filename LIKE '%oddities.evtx'"
    assert assert_same(con, "events", logs, write(tmp_path, **rules), columns=columns, unknown=unknown)[0] > 500


@pytest.mark.parametrize("threads", [1, 4])
def test_correlations_count_all_rows(tmp_path, threads):
    rules = write(tmp_path, a=rule("Any", EVERYTHING) + "name: any\n",
                  b="title: Many\nid: many\ncorrelation:\n  type: event_count\n  rules: [any]\n  group-by: [Channel, Computer]\n  timespan: 1h\n  condition: {gte: 3}\n")
    with loaded(threads=threads) as con:
        con.execute("CREATE TABLE events AS FROM read_evtx($1)", [LOGS])
        assert assert_same(con, "events", LOGS, rules)[1] > 10
        whole = con.execute("SELECT count(*) FROM evtx_sigma_of('events', $1) WHERE computer LIKE 'DC%'", [rules]).fetchone()
        con.execute("CREATE VIEW found_ AS FROM evtx_sigma_of('events', $1)".replace("$1", f"'{rules}'"))
        assert con.execute("SELECT count(*) FROM found_ WHERE computer LIKE 'DC%'").fetchone() == whole
        assert con.execute("SELECT count(*) FROM found WHERE channel IS NOT NULL AND list_contains(map_values(matched), NULL)").fetchone() == (0,)


def test_rules_are_read_for_each_statement(con, tmp_path):
    con.execute("CREATE TABLE events AS FROM read_evtx($1)", [LOGS[:1]])
    for title in ["One", "Two", "Three"]:
        rules = write(tmp_path, a=rule(title, EVERYTHING))
        assert con.execute("SELECT DISTINCT rule_title FROM evtx_sigma_of('events', $1) WHERE rule_title IS NOT NULL", [rules]).fetchall() == [(title,)]
    # Each row of a statement has the same rules, also in a join of two.
    other = tmp_path / "other"
    other.mkdir()
    write(other, b=rule("Other", EVERYTHING))
    both = con.execute(f"""
        SELECT (SELECT DISTINCT rule_title FROM evtx_sigma_of('events', '{rules}/a.yml') WHERE rule_title IS NOT NULL),
               (SELECT DISTINCT rule_title FROM evtx_sigma_of('events', '{other}') WHERE rule_title IS NOT NULL)""").fetchone()
    assert both == ("Three", "Other")


def test_tables_of_other_tools(con, tmp_path):
    rules = write(tmp_path, a=rule("Logon", {"a": {"EventID": 4624, "TargetUserName": "alice"}, "condition": "a"}, logsource=FOR_SECURITY),
                  b=rule("Nested", {"a": {"Certificate.subjectName": "CA", "Name": ["x", "y"]}, "condition": "a"}),
                  c=rule("Item", {"a": {"List": "two"}, "condition": "a"}))
    con.execute("""
        CREATE TABLE events AS SELECT 'Security' AS "Channel", 'P' AS provider, '4624' AS event_id, {TargetUserName: 'ALICE', Other: NULL} AS event_data
        UNION ALL BY NAME SELECT 'Security' AS "Channel", 'P' AS provider, '1' AS event_id, 'not a number' AS level, 5 AS extra,
            {'Outer': {"#attributes": {xmlns: 'n'}, Certificate: {"#attributes": {subjectName: 'CA'}}, Name: 'z', Name_1: 'y'}} AS user_data
        UNION ALL BY NAME SELECT NULL AS "Channel", NULL AS provider""")
    rows = con.execute("SELECT rule_title, extra FROM evtx_sigma_of('events', $1) ORDER BY ALL", [rules]).fetchall()
    assert rows == [("Logon", None), ("Nested", 5)]
    con.execute("CREATE TABLE texts AS SELECT 'c' AS channel, 'p' AS provider, json('{\"List\": [\"one\", \"two\"], \"N\": 3, \"Empty\": null}') AS event_data")
    assert con.execute("SELECT rule_title FROM evtx_sigma_of('texts', $1)", [rules]).fetchall() == [("Item",)]
    con.execute("CREATE TABLE hostile AS SELECT 'c' AS channel, 'p' AS provider, unnest(['{', '[1', repeat('[', 100000), '{\"a\": ' || repeat('{\"b\":', 1000), 'null', '3']) AS user_data")
    assert con.execute("SELECT count(*) FROM evtx_sigma_of('hostile', $1)", [rules]).fetchone() == (0,)
    for sql, why in [("SELECT evtx_sigma_correlates('x')", "no JSON object"), ("SELECT evtx_sigma_correlates('{\"rules\": 3, \"x\": 1}')", "has no argument x"),
                     ("SELECT evtx_sigma_correlates(NULL)", "needs rules"), ("FROM evtx_sigma_of('texts', 'r', placeholders := 3)", "needs a map")]:
        with pytest.raises(Exception, match=why):
            con.execute(sql).fetchall()


def test_times_of_other_tools(con, tmp_path):
    rules = write(tmp_path, a=rule("Any", EVERYTHING) + "name: any\n", b=(
        "title: Many\nid: many\ncorrelation:\n  type: event_count\n  rules: [any]\n  timespan: 1h\n  condition: {gte: 3}\n"),
        c=rule("Early", {"a": {"TimeCreated_SystemTime|hour|lt": 6}, "condition": "a"}))
    con.execute("SET TimeZone = 'America/New_York'")
    con.execute("CREATE TABLE instants AS SELECT 'c' AS channel, 'p' AS provider, 1 AS event_id, TIMESTAMPTZ '2024-01-01 05:59:00+00' AS time_created FROM range(3)")
    found = "SELECT rule_title, correlation.first_time, error FROM evtx_sigma_of('{}', $1) ORDER BY ALL"
    rows = con.execute(found.format("instants"), [rules]).fetchall()
    assert [title for title, *_ in rows] == ["Early"] * 3 + ["Many"] and str(rows[3][1]).startswith("2024-01-01 05:59")
    # No time is in no window.
    con.execute("CREATE TABLE texts AS SELECT 'c' AS channel, 'p' AS provider, 1 AS event_id, unnest(['01/02/2020 3 pm', NULL, '']) AS time_created")
    why = "correlations leave out 3 events that have no time_created"
    assert con.execute(found.format("texts"), [rules]).fetchall() == [(None, None, why)]
    con.execute("CREATE TABLE none AS SELECT 'c' AS channel, 'p' AS provider, 1 AS event_id")
    with pytest.raises(Exception, match="needs the column time_created for correlations"):
        con.execute(found.format("none"), [rules]).fetchall()


def test_columns_of_any_name_and_type(con, tmp_path):
    rules = write(tmp_path, a=rule("A", {"a": {"A": "x"}, "condition": "a"}), b=rule("B", {"a": {"B|exists": True}, "condition": "a"}),
                  c=rule("Word", {"a": ["not json"], "condition": "a"}))
    con.execute("""CREATE TABLE own AS SELECT 'c' AS channel, 'p' AS provider, i AS hit_row, 'mine' AS hit, 'f' AS found, 'e' AS event, 3 AS row,
        {A: CASE i WHEN 1 THEN 'x' END, B: NULL} AS event_data, CASE i WHEN 2 THEN 'zz not json' END AS user_data FROM range(3) t(i)""")
    sql = "SELECT rule_title, hit_row, hit, found, event, row FROM evtx_sigma_of('own', $1) ORDER BY ALL"
    assert con.execute(sql, [rules]).fetchall() == [("A", 1, "mine", "f", "e", 3), ("Word", 2, "mine", "f", "e", 3)]
    texts = ['{"A": "x"}', "{A=x}", "[1]", '{"A": "x", "A": "y"}', "zz", None]
    con.execute("CREATE TABLE texts AS SELECT 'c' AS channel, 'p' AS provider, unnest($1) AS event_data", [texts])
    assert con.execute("SELECT event_data FROM evtx_sigma_of('texts', $1)", [rules]).fetchall()[:2] == [(text,) for text in texts[:2]]
    # Names that differ in their numbers alone.
    con.execute("CREATE TABLE many AS SELECT 'c' AS channel, 'p' AS provider, map_from_entries([('X_' || i, 'v') FOR i IN range(100_000)]) AS event_data")
    start = time.monotonic()
    assert con.execute("SELECT count(*) FROM evtx_sigma_of('many', $1)", [rules]).fetchone() == (0,)
    assert time.monotonic() - start < 5


def test_damage_of_unknown_events_is_told(con, tmp_path):
    rules = write(tmp_path, a=rule("Logon", {"a": {"EventID": 4624}, "condition": "a"}, logsource=FOR_SECURITY))
    con.execute("""CREATE TABLE events AS SELECT * FROM (VALUES ('Security', 'p', NULL, 'x'), ('Security', 'p', 4624, 'x'), (NULL, NULL, NULL, 'x'),
        ('System', 'p', 1, 'x'), ('Security', 'p', NULL, NULL)) t(channel, provider, event_id, error)""")
    rows = con.execute("SELECT channel, event_id, rule_title FROM evtx_sigma_of('events', $1) ORDER BY ALL", [rules]).fetchall()
    assert rows == [("Security", 4624, "Logon"), ("Security", None, None), (None, None, None)]


def test_an_interrupt_ends_it_soon(con, tmp_path):
    con.execute("CREATE TABLE events AS FROM read_evtx($1), range(2000)", [[str(SAMPLES / "DC01-Security.evtx")]])
    slow = {"a": {"|re": "(x+x+)+y|(a|b|ab)*c.{0,200}z"}, "condition": "a"}
    rules = write(tmp_path, **{f"r{i}": rule(f"R{i}", slow) for i in range(30)})
    with interrupted(con, after=1, within=0.5):
        con.execute("SELECT count(*) FROM evtx_sigma_of('events', $1)", [rules]).fetchall()


def test_two_statements_at_once(tmp_path):
    rules = [write(folder, a=rule(folder.name, EVERYTHING)) for folder in (tmp_path / "one", tmp_path / "two") if not folder.mkdir()]
    found = []
    with loaded() as con:
        con.execute("CREATE TABLE events AS FROM read_evtx($1)", [LOGS[:1]])

        def ask(path):
            with con.cursor() as own:
                sql = "SELECT DISTINCT rule_title FROM evtx_sigma_of('events', $1) WHERE rule_title IS NOT NULL"
                found.extend((path, *row) for _ in range(20) for row in own.execute(sql, [path]).fetchall())

        threads = [threading.Thread(target=ask, args=[path]) for path in rules * 2]
        [thread.start() for thread in threads]
        [thread.join() for thread in threads]
    assert len(found) == 80 and all(pathlib.Path(path).name == title for path, title in found)
