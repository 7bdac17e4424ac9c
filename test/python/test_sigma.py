"""Sigma rules: where they are found, what loading costs, and errors of bad rules."""

import gzip
import json
import random
import zipfile

import duckdb
import psutil
import pytest
from conftest import ROOT, SAMPLES, interrupted, loaded, rows_with_and_without_pushdown, takes_at_most, write_zip

RULES = ROOT / "samples" / "rules"
# The detection of a rule that matches every event.
EVERYTHING = {"a": {"EventID|exists": True}, "condition": "a"}
FOR_SECURITY = "{product: windows, service: security}"


def rule(title, detection, id=None, logsource="{product: windows}", level="high"):
    """The text of a rule. The detection is written as JSON, which is also YAML."""
    about = f"id: {id}\n" if id else ""
    return f"title: {title}\n{about}logsource: {logsource}\nlevel: {level}\ndetection: {json.dumps(detection)}\n"


def write(folder, **texts):
    for name, text in texts.items():
        (folder / f"{name}.yml").write_text(text, encoding="utf-8")
    return str(folder)


def titles(con, logs, rules, **arguments):
    given = "".join(f", {name} := {value}" for name, value in arguments.items())
    sql = f"SELECT rule_title, count(*) FROM evtx_sigma($1, rules := $2{given}) WHERE error IS NULL GROUP BY ALL ORDER BY ALL"
    return con.execute(sql, [str(logs), rules]).fetchall()


def test_rules_are_found_where_logs_are(con, tmp_path):
    with zipfile.ZipFile(tmp_path / "rules.zip", "w") as archive:
        for file in RULES.glob("*.yml"):
            archive.write(file, f"sigma/windows/{file.name}")
        archive.writestr("sigma/readme.md", "no rule")
    expected = titles(con, SAMPLES, str(RULES))
    assert len(expected) == 5
    for path in [f"{RULES}/*.yml", [f"{RULES}/[a-k]*.yml", f"{RULES}/[l-z]*.yml"], str(tmp_path), f"{tmp_path}/rules.zip",
                 f"{tmp_path}/*.zip", f"{tmp_path}/rules.zip/sigma/**/*.yml", f"{RULES}/"]:
        assert titles(con, SAMPLES, path) == expected, path
    count = con.execute("SELECT count(*), count(error) FROM evtx_sigma_rules($1)", [f"{tmp_path}/rules.zip"]).fetchone()
    assert count == (8, 3)


def test_logs_are_read_as_by_read_evtx(con, tmp_path):
    write_zip(tmp_path / "case.zip", {"DC01/Security.evtx": SAMPLES / "DC01-Security.evtx"})
    sql = "FROM (FROM evtx_sigma($1, rules := $2, xml := true, json := true, text := true, fields := true, location := true)) SELECT * EXCLUDE (filename, rule_file)"
    one = con.execute(sql, [str(SAMPLES / "DC01-Security.evtx"), str(RULES)]).fetchall()
    assert con.execute(sql, [str(tmp_path / "case.zip"), str(RULES)]).fetchall() == one
    # Apart from the rule, rows are those of read_evtx.
    same = """
        SELECT count(*) FROM (
            SELECT COLUMNS(lambda c: c NOT IN ('rule_id', 'rule_title', 'rule_level', 'rule_status', 'tags', 'rule_file', 'matched', 'correlation'))
            FROM evtx_sigma($1, rules := $2, xml := true, fields := true, location := true)
            EXCEPT ALL FROM read_evtx($1, xml := true, fields := true, location := true))"""
    for log in ["DC01-Security.evtx", "damaged-records.evtx", "DC01-Sysmon.evtx"]:
        assert con.execute(same, [str(SAMPLES / log), str(RULES)]).fetchone() == (0,)


@pytest.mark.parametrize("threads", [1, 4])
def test_an_event_has_a_row_per_rule(con, tmp_path, threads):
    con.execute(f"SET threads = {threads}")
    texts = {f"r{i:04}": rule(f"R{i:04}", EVERYTHING, id=f"id-{i}") for i in range(300)}
    folder = write(tmp_path, **texts)
    log = str(SAMPLES / "DC01-Security.evtx")
    records = con.execute("SELECT count(*) FROM read_evtx($1)", [log]).fetchone()[0]
    sql = "SELECT record_id, rule_title, json, fields, event_data, matched FROM evtx_sigma($1, rules := $2, json := true, fields := true)"
    rows = con.execute(sql, [log, folder]).fetchall()
    assert len(rows) == 300 * records
    whole = con.execute("SELECT record_id, json, fields, event_data FROM read_evtx($1, json := true, fields := true)", [log]).fetchall()
    for i, (record, json_text, fields, event_data) in enumerate(whole):
        part = rows[300 * i: 300 * (i + 1)]
        assert [row[1] for row in part] == [f"R{n:04}" for n in range(300)]
        assert all(row[0] == record and row[2:5] == (json_text, fields, event_data) and list(row[5]) == ["EventID"] for row in part)


def test_predicates_choose_rules_and_change_nothing(con, tmp_path):
    rng = random.Random(7)
    files, rules = [str(SAMPLES / "*.evtx")], str(RULES)
    con.execute("CREATE TABLE judge AS FROM evtx_sigma($1, rules := $2)", [files[0], rules])
    columns = {
        "rule_id": ["'0c5e7f52-3f5a-4c1e-9d7b-2b1a6f0e4c05'", "'x'"],
        "rule_title": ["'Security Log Cleared'", "'a'"],
        "rule_level": ["'low'", "'high'::evtx_level", "'medium'", "'critical'"],
        "rule_status": ["'stable'", "'test'"],
        "rule_file": [f"'{RULES}/log_cleared.yml'"],
        "event_id": ["4625", "7045", "1"],
        "computer": ["'DC01.northwind.example'"],
        "record_id": ["88240"],
    }

    def predicate(depth):
        if depth and rng.random() < 0.6:
            kind = rng.choice(["AND", "OR", "NOT"])
            if kind == "NOT":
                return f"NOT ({predicate(depth - 1)})"
            return f"({predicate(depth - 1)} {kind} {predicate(depth - 1)})"
        column = rng.choice(list(columns))
        value = rng.choice(columns[column])
        choice = rng.randrange(8)
        if choice == 0:
            return f"{column} IS {rng.choice(['NULL', 'NOT NULL'])}"
        if choice == 1:
            return f"{column} {rng.choice(['IN', 'NOT IN'])} ({value}, {rng.choice(columns[column])})"
        if choice == 2:
            return f"{column} BETWEEN {value} AND {rng.choice(columns[column])}"
        if choice == 3:
            return f"{column} IS {rng.choice(['', 'NOT '])}DISTINCT FROM {value}"
        if choice == 4 and column.startswith("rule_") and column != "rule_level":
            return f"{column} {rng.choice(['LIKE', 'ILIKE', 'NOT LIKE'])} '%{value.strip(chr(39))[1:4]}%'"
        return f"{column} {rng.choice(['=', '<>', '<', '<=', '>', '>='])} {value}"

    for _ in range(300):
        where = predicate(3)
        sql = f"SELECT rule_title, record_id, filename, error FROM {{}} WHERE {where} ORDER BY ALL"
        found = con.execute(sql.format("evtx_sigma($1, rules := $2)"), [files[0], rules]).fetchall()
        assert found == con.execute(sql.format("judge")).fetchall(), where


def test_what_cannot_be_a_rule_is_told(con, tmp_path):
    bomb = "a: &a [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
        f"{chr(98 + i)}: &{chr(98 + i)} [{', '.join(['*' + chr(97 + i)] * 10)}]\n" for i in range(9))
    write(
        tmp_path,
        a_good=rule("Good", {"a": {"EventID": 4625}, "condition": "a"}),
        b_no_yaml="title: [",
        c_bomb=bomb,
        d_condition=rule("Condition", {"a": {"EventID": 1}, "condition": "a and (b"}),
        e_unknown=rule("Unknown", {"a": {"EventID": 1}, "condition": "b"}),
        f_look_around=rule("Look", {"a": {"Image|re": "(?=x)y"}, "condition": "a"}),
        g_large=rule("Large", {"a": {"Image|re": "(a{1000}){1000}"}, "condition": "a"}),
        h_aggregation=rule("Aggregation", {"a": {"EventID": 1}, "condition": "a | count() > 5"}),
        i_empty="",
        j_text="just a text",
        k_possessive=rule("Possessive", {"a": {"Image|re": "a++b"}, "condition": "a"}),
        l_correlation="title: C\ncorrelation: {type: event_count}\n",
        m_list=rule("List", {"a": {"Image": []}, "condition": "a"}),
    )
    (tmp_path / "n_binary.yml").write_bytes(b"\xff\xfe\x00")
    (tmp_path / "o_huge.yml").write_text("# " + "x" * (2 << 20))
    (tmp_path / "p_two.yml").write_text("\n---\n".join([rule("One", {"a": {"EventID": 4624}, "condition": "a"}, id="x"),
                                                        rule("Two", {"a": {"EventID": 4624}, "condition": "a"}, id="x")]))
    rows = con.execute("SELECT parse_filename(rule_file), rule_title, error FROM evtx_sigma_rules($1) ORDER BY ALL", [str(tmp_path)]).fetchall()
    told = {(name, title): error for name, title, error in rows}
    assert len(told) == 17
    fine = {("a_good.yml", "Good"), ("h_aggregation.yml", "Aggregation"), ("p_two.yml", "One")}
    assert {key for key, error in told.items() if error is None} == fine
    for key, error in told.items():
        # Errors in a text name its position.
        has_place = error is None or "line " in error and "column " in error
        assert has_place or key[0] in ("n_binary.yml", "o_huge.yml", "p_two.yml"), (key, error)
    assert "has the same ID" in told[("p_two.yml", "Two")]
    assert titles(con, SAMPLES / "DC01-Security.evtx", str(tmp_path)) == [("Good", 42), ("One", 7)]
    con.execute("CALL enable_logging(level = 'warning')")
    titles(con, SAMPLES / "DC01-Security.evtx", str(tmp_path))
    logged = con.execute("SELECT message FROM duckdb_logs WHERE message LIKE '%rules did not load%'").fetchall()
    assert len(logged) == 1 and logged[0][0].startswith("14 of 17 rules did not load; evtx_sigma_rules gives the reason for each"), logged


def test_an_own_table_of_log_sources(con, tmp_path):
    (tmp_path / "own").mkdir()
    table = tmp_path / "own.txt"
    table.write_text("logsources:\n- {category: webserver, channels: [Security], event_ids: [4625], renames: {cs-uri-query: TargetUserName}}\n")
    rules = write(tmp_path / "own", web=rule("Web", {"a": {"cs-uri-query": "carol.ng"}, "condition": "a"}, logsource="{category: webserver}"),
                  other=rule("Other", {"a": {"EventID": 4624}, "condition": "a"}, logsource=FOR_SECURITY))
    log = SAMPLES / "DC01-Security.evtx"
    assert titles(con, log, rules) == [("Other", 7)]
    assert titles(con, log, rules, logsources=f"'{table}'") == [("Other", 7), ("Web", 4)]


def test_many_rules_and_large_ones_end_soon(con, tmp_path):
    one = rule("R", {"a": {"CommandLine|contains": [f"needle{i:06}" for i in range(15000)]}, "condition": "a"})
    write(tmp_path, large=one)
    (tmp_path / "many.yml").write_text("\n---\n".join(rule(f"M{i}", {"a": {"EventID": i}, "condition": "a"}) for i in range(2000, 6000)))
    with takes_at_most(30):
        count = con.execute("SELECT count(*), count(error) FROM evtx_sigma_rules($1)", [str(tmp_path)]).fetchone()
        assert count == (4001, 0)
        assert titles(con, SAMPLES / "DC01-Security.evtx", str(tmp_path))


def test_an_interrupt_ends_a_scan_soon(con, tmp_path, big_log):
    slow = {"a": {"|re": "(x+x+)+y|(a|b|ab)*c.{0,200}z"}, "condition": "a"}
    rules = write(tmp_path, **{f"r{i}": rule(f"R{i}", slow) for i in range(30)})
    with interrupted(con, after=1.5):
        con.execute("SELECT count(*) FROM evtx_sigma($1, rules := $2)", [[str(big_log)] * 100, rules]).fetchall()


@pytest.mark.parametrize("text", ["title: x\nx: [" + "a," * 500_000 + "]\n", "a: &a [x]\nb: [" + "*a," * 300_000 + "]\n", "- !!str x\n" * 100_000])
def test_an_interrupt_ends_the_loading_of_rules_soon(con, tmp_path, text):
    (tmp_path / "rules.yml").write_text(text)
    sql = f"FROM evtx_sigma_rules([{', '.join(['$1'] * 100)}])"
    with interrupted(con, after=0.3):
        con.execute(sql, [str(tmp_path / "rules.yml")]).fetchall()


def test_a_file_has_so_many_documents(con, tmp_path):
    (tmp_path / "rules.yml").write_text("---\na: 1\n" * 20_000)
    rows = con.execute(f"SELECT count(*), max(error) FILTER (error LIKE '%limit%') FROM evtx_sigma_rules('{tmp_path}')").fetchone()
    assert rows == (10_001, "line 20001, column 1: the limit is 10000 documents of a text")


def test_rows_do_not_depend_on_columns(con, tmp_path):
    write(tmp_path, one=rule("Any", EVERYTHING),
          two=rule("Logons", {"a": {"EventID": [4624, 4625], "LogonType": 3}, "condition": "a"}))
    for log in sorted(SAMPLES.glob("*.evtx")):
        counts = set()
        for columns in ["count(*)", "count(rule_title) + count(*) FILTER (rule_title IS NULL)", "count(error) + count(*) FILTER (error IS NULL)",
                        "count(xml) + count(*) FILTER (xml IS NULL)", "count(event_data) + count(*) FILTER (event_data IS NULL)"]:
            counts.add(con.execute(f"SELECT {columns} FROM evtx_sigma($1, rules := $2, xml := true)", [str(log), str(tmp_path)]).fetchone())
        assert len(counts) == 1, (log, counts)


def test_prepared_statements_and_views(con):
    con.execute(f"CREATE VIEW hits AS FROM evtx_sigma('{SAMPLES}/*.evtx', rules := '{RULES}')")
    con.execute("PREPARE q AS SELECT count(*) FROM hits WHERE rule_level >= $1::evtx_level")
    assert [con.execute(f"EXECUTE q('{level}')").fetchone() for level in ["high", "low", "critical"]] == [(4,), (49,), (1,)]
    both = con.execute("SELECT count(*) FROM hits a JOIN hits b USING (filename, record_id) WHERE a.rule_level = 'high' AND b.rule_level >= 'low'")
    assert both.fetchone() == (3,)
    with loaded() as other:
        assert other.execute(f"SELECT typeof(rule_level) FROM evtx_sigma_rules('{RULES}') LIMIT 1").fetchone() == ("evtx_level",)


@pytest.mark.parametrize("values", ["'x'", "'critical', 'high', 'medium', 'low', 'informational'"])
def test_a_type_of_the_users_has_the_same_name(con, values):
    expected = con.execute(f"SELECT rule_title, rule_level::VARCHAR FROM evtx_sigma_rules('{RULES}') ORDER BY ALL").fetchall()
    con.execute(f"CREATE TYPE evtx_level AS ENUM ({values})")
    assert con.execute(f"SELECT rule_title, rule_level::VARCHAR FROM evtx_sigma_rules('{RULES}') ORDER BY ALL").fetchall() == expected
    assert con.execute(f"SELECT count(*) FROM evtx_sigma('{SAMPLES}', rules := '{RULES}') WHERE rule_level >= 'high'").fetchone() == (4,)


def test_types_on_the_search_path_are_not_those_of_columns(con):
    sql = f"SELECT count(*), max(rule_level)::TEXT, min(record_id), max(provider) FROM evtx_sigma('{SAMPLES}', rules := '{RULES}')"
    expected = con.execute(sql).fetchone()
    con.execute("CREATE SCHEMA s")
    for name in ["evtx_level", "varchar", "ubigint", "timestamp_ns", "utinyint", "date"]:
        con.execute(f"CREATE TYPE s.{name} AS ENUM ('x')")
    con.execute("SET search_path = 's'")
    assert con.execute(sql).fetchone() == expected


@pytest.mark.parametrize(
    ("predicate", "rows"),
    [("= 'HIGH'", 0), ("IN ('HIGH')", 0), ("IN ('HIGH', 'low')", 1), ("BETWEEN 'low' AND 'nonsense'", 0), ("<> 'nonsense'", 0), ("NOT IN ('low', 'x')", 0)],
)
def test_a_text_that_is_no_level_compares_as_null(con, predicate, rows):
    for pushdown in ["true", "false"]:
        con.execute(f"SET evtx_filter_pushdown = {pushdown}")
        assert con.execute(f"SELECT count(*) FROM evtx_sigma_rules('{RULES}') WHERE rule_level {predicate}").fetchone() == (rows,)
        assert con.execute(f"SELECT count(*) FROM evtx_sigma('{SAMPLES}', rules := '{RULES}') WHERE rule_level {predicate} AND rule_level = 'nonsense'").fetchone() == (0,)


@pytest.mark.parametrize("generate", ["", "generate: true"])
@pytest.mark.parametrize("is_one_file", [True, False])
def test_base_rules_of_a_correlation_are_silent(con, tmp_path, generate, is_one_file):
    """Unless the correlation also generates their matches (Sigma correlation rules specification)."""
    logons = {"a": {"EventID": 4625}, "condition": "a"}
    documents = [
        "name: failed_logon\n" + rule("By name", logons), rule("By ID", logons, id="0E95725D-7320-415D-80F7-004DA920FC11"), rule("Own", logons),
        f"title: Many\ncorrelation:\n  type: event_count\n  rules: [failed_logon, 0e95725d-7320-415d-80f7-004da920fc11]\n  group-by: [IpAddress]\n"
        f"  timespan: 5m\n  condition: {{gte: 10}}\n  {generate}\n",
    ]
    for number, text in enumerate(["\n---\n".join(documents)] if is_one_file else documents):
        (tmp_path / f"{number}.yml").write_text(text)
    found = [("By ID", 42), ("By name", 42), ("Many", 3), ("Own", 42)] if generate else [("Many", 3), ("Own", 42)]
    assert titles(con, SAMPLES / "DC01-Security.evtx", str(tmp_path)) == found
    assert con.execute("SELECT count(*) FROM evtx_sigma_rules($1) WHERE error IS NOT NULL", [str(tmp_path)]).fetchone() == (0,)


def test_rules_are_excluded_and_tuned_by_files(con, tmp_path):
    logon = {"a": {"EventID": 4624}, "condition": "a"}
    one, two, three = (f"0b4a7c16-0000-0000-0000-00000000000{digit}" for digit in "abc")
    folder = write(tmp_path, a=rule("One", logon, id=one), b=rule("Two", logon, id=two.upper()), c=rule("Three", logon, id=three, level="low"))
    log = SAMPLES / "DC01-Security.evtx"
    # As Hayabusa's lists of noisy and excluded rules, and its levels.
    (tmp_path / "noisy.txt").write_text(f"# noisy\n{one} # ./a.yml\n\n")
    assert titles(con, log, folder, exclude=f"'{tmp_path / 'noisy.txt'}'") == [("Three", 7), ("Two", 7)]
    assert titles(con, log, folder, exclude=f"['{tmp_path / 'noisy.txt'}', '{three}']") == [("Two", 7)]
    (tmp_path / "levels.txt").write_text(f"id,new_level\n{three},critical # 'Three'\n{two},high\n")
    tuning = f"level_tuning := '{tmp_path / 'levels.txt'}'"
    levels = con.execute(f"SELECT rule_title, rule_level FROM evtx_sigma_rules('{folder}', {tuning}) WHERE rule_title IS NOT NULL ORDER BY 1").fetchall()
    assert [level for _, level in levels][1:] == ["critical", "high"]
    assert con.execute(f"SELECT DISTINCT rule_title FROM evtx_sigma('{log}', rules := '{folder}', min_level := 'critical', {tuning}) WHERE rule_title IS NOT NULL").fetchall() == [("Three",)]
    (tmp_path / "levels.txt").write_text(f"{three},severe\n")
    with pytest.raises(duckdb.Error, match="levels.txt: line 1: a level must be one of"):
        con.execute(f"FROM evtx_sigma_rules('{folder}', {tuning})")
    with pytest.raises(duckdb.Error, match="nothing.txt"):
        titles(con, log, folder, exclude=f"'{tmp_path / 'nothing.txt'}'")


def test_what_a_rule_says_about_itself(con, tmp_path):
    text = ("title: T\ndescription: What it finds.\nauthor: [A, B]\ndate: 2024-01-02\nreferences:\n  - https://example.com\nfalsepositives: [Unknown, 5]\n"
            "correlation: a note about other rules\nlogsource: {product: windows, service: printservice}\ndetection:\n  a: {UserDataErrorCode: 5}\n  condition: a\n")
    (tmp_path / "a.yml").write_text(text)
    found = con.execute("SELECT description, author, rule_date, rule_references, false_positives, len(channels), error FROM evtx_sigma_rules($1)", [str(tmp_path)]).fetchall()
    assert found == [("What it finds.", "A, B", "2024-01-02", ["https://example.com"], ["Unknown", "5"], 2, None)]


LOGON = {"a": {"EventID": 4624}, "condition": "a"}


def filter_of(title, rules, selection, condition="not s", logsource=FOR_SECURITY):
    """The text of a filter with one selection."""
    return f"title: {title}\nlogsource: {logsource}\nfilter: {json.dumps({'rules': rules, 's': selection, 'condition': condition})}\n"


def outcomes(con, folder):
    return con.execute("SELECT rule_title, error, lint FROM evtx_sigma_rules($1) WHERE error IS NOT NULL OR lint != [] ORDER BY 1", [folder]).fetchall()


def test_filters_narrow_rules(con, tmp_path):
    log = str(SAMPLES / "DC01-Security.evtx")
    users = con.execute("SELECT event_data['TargetUserName'], count(*) FROM read_evtx($1) WHERE event_id = 4624 GROUP BY ALL ORDER BY ALL", [log]).fetchall()
    all, (user, count) = sum(count for _, count in users), users[0]
    assert len(users) > 1
    one = {"TargetUserName": user}
    cases = {
        "not": (["a"], one, "not s"), "id": ("0B4A7C16-0000-4000-8000-00000000000A", one, "not s"), "is": (["a"], one, "s"), "any": ("Any", one, "not s"),
        "empty": ([], one, "not s"), "them": (["a"], one, "not 1 of them"), "other": (["b"], one, "not s"),
    }
    for place in ["0", "z"]:
        for name, (rules, selection, condition) in cases.items():
            folder = tmp_path / (place + name)
            folder.mkdir()
            a = "name: a\n" + rule("A", LOGON, id="0b4a7c16-0000-4000-8000-00000000000a", logsource=FOR_SECURITY)
            write(folder, a=a, b="name: b\n" + rule("B", LOGON), **{place: filter_of("F", rules, selection, condition)})
            expected = {"is": count, "other": all}.get(name, all - count)
            # B is for events of any log, which the filter is not for.
            assert titles(con, log, str(folder)) == [("A", expected), ("B", all)], name
            assert titles(con, log, str(folder), min_level="'high'") == [("A", expected), ("B", all)], name
            error = 'line 3, column 21: the rule "b" has another log source than this filter'
            assert outcomes(con, str(folder)) == ([("F", error, [])] if name == "other" else []), name
    # Several filters of a rule, each in its own file.
    folder = write(tmp_path / "0not", f=filter_of("G", ["a"], {"TargetUserName": users[1][0]}))
    assert titles(con, log, folder)[0] == ("A", all - count - users[1][1])


def test_a_filter_says_why_it_has_no_effect(con, tmp_path):
    count = "title: C\nname: c\ncorrelation: {type: event_count, rules: [a], timespan: 1m, condition: {gte: 1}}\n"
    selection = {"EventID": 1}
    filters = {
        "a": ("name: a\n" + rule("A", LOGON, logsource=FOR_SECURITY)), "c": count,
        "d": filter_of("D", ["x"], selection), "e": filter_of("E", ["a", "x", "a"], selection), "f": filter_of("F", ["c"], selection),
        "g": filter_of("G", "any", selection, logsource="{service: sysmon}"), "h": filter_of("H", ["a"], selection, condition="s | count() > 5"),
        "i": filter_of("I", ["a"], selection, condition="not x"), "j": filter_of("J", {"a": 1}, selection), "k": "title: K\nlogsource: {service: x}\nfilter: 5\n",
        "l": filter_of("L", ["a"], selection) + "detection: {}\n", "m": filter_of("M", ["a"], selection, condition=["s"]), "n": "title: N\nlogsource: {service: x}\nfilter: {condition: a, a: {b: 1}}\n",
        "o": filter_of("O", ["a"], selection).replace("logsource", "log"),
    }
    assert outcomes(con, write(tmp_path, **filters)) == [
        ("D", 'line 3, column 21: no rule with the ID or name "x" is used', []),
        ("E", None, ['line 3, column 26: no rule with the ID or name "x" is used', 'line 3, column 31: this filter refers to "a" twice']),
        ("F", 'line 3, column 21: "c" is a correlation, but filters are for the rules that it refers to', []),
        ("G", None, ["line 3, column 1: no rule has the log source of this filter"]),
        ("H", "line 3, column 61: the condition of a filter has no aggregation", []),
        ("I", 'line 3, column 65: the condition names "x", but this rule has no such detection', []),
        ("J", "line 3, column 19: the ID or name of a rule must be a text, but this is a map", []),
        ("K", "line 3, column 9: filter must be a map, but this is a number", []),
        ("L", 'line 4, column 1: a document with "filter" has no "detection"; write the rule as a document of its own', []),
        ("M", "line 3, column 60: the condition of a filter must be a text, but this is a list", []),
        ("N", 'line 3, column 9: "rules" is missing', []),
        ("O", 'line 1, column 1: "logsource" is missing', []),
    ]


@pytest.mark.parametrize("form", ["correlation", "aggregation", "unwanted"])
def test_filters_narrow_the_rules_of_correlations(con, tmp_path, form):
    log = str(SAMPLES / "DC01-Security.evtx")
    failed = {"a": {"EventID": 4625}, "condition": "a"}
    all = con.execute("SELECT count(*), count(*) FILTER (event_data['TargetUserName'] = 'svc_backup') FROM read_evtx($1) WHERE event_id = 4625", [log]).fetchone()
    user = con.execute("SELECT mode(event_data['TargetUserName']) FROM read_evtx($1) WHERE event_id = 4625", [log]).fetchone()[0]
    count = con.execute("SELECT count(*) FROM read_evtx($1) WHERE event_id = 4625 AND event_data['TargetUserName'] IS DISTINCT FROM $2", [log, user]).fetchone()[0]
    base = "name: a\n" + rule("A", failed, logsource=FOR_SECURITY, level="low" if form == "unwanted" else "high")
    correlation = "title: C\nlevel: high\ncorrelation: {type: event_count, rules: [a], timespan: 365d, condition: {gte: 1}}\n"
    if form == "aggregation":
        base, correlation = "name: a\n" + rule("C", {"a": {"EventID": 4625}, "condition": "a | count() >= 1"}, logsource=FOR_SECURITY), ""
    folder = write(tmp_path, a=base + "---\n" + correlation + "---\n" + filter_of("F", ["a"], {"TargetUserName": user}))
    found = con.execute("SELECT rule_title, correlation.count FROM evtx_sigma($1, rules := $2, min_level := 'high') WHERE error IS NULL", [log, folder]).fetchall()
    assert found == ([("C", count)] if count else []) and count < all[0]
    assert outcomes(con, folder) == []


def test_what_is_odd_about_correlations(con, tmp_path):
    base = "name: a\n" + rule("A", LOGON) + "timeframe: 5m\n"
    one = "title: {0}\nname: {0}\ncorrelation:\n  type: value_count\n  rules: [{1}]\n  group-by: [User, User]\n  timespan: 1m\n  condition: {{gte: 1, field: [X, X]}}\n  aliases: {{User: {{a: U, x: V}}}}\n"
    old = rule("Old", {"a": {"EventID": 1}, "condition": "a | count() by User, User > 1"})
    refused = one.format("R", "nothing")
    folder = write(tmp_path, a=base, b=one.format("B", "a"), c=one.format("C", "B"), d=old, e=refused)
    timeframe = 'line 6, column 1: "timeframe" belongs in "detection"; here, it has no effect'
    common = ['line 6, column 20: group-by has the field "User" twice', 'line 8, column 34: field has the field "X" twice']
    alias = 'line 3, column 1: the alias "User" names "x", which this correlation does not use'
    error = 'line 5, column 11: no rule with the ID or name "nothing" is used'
    assert outcomes(con, folder) == [
        ("A", None, [timeframe]), ("B", None, [*common, alias]), ("C", None, [*common, alias]),
        ("Old", None, ['line 4, column 51: the aggregation groups by "User" twice']), ("R", error, common),
    ]


def test_log_sources_can_be_lists(con, tmp_path):
    everything = {"a": {"EventID|exists": True}, "condition": "a"}
    sources = {"one": "{product: windows, service: security}", "two": "{product: windows, service: sysmon}", "names": "{product: [linux, windows], service: [security, sysmon]}",
               "twice": "{product: windows, service: [security, security]}", "maps": "[{category: webserver}, {product: windows, service: security}, {service: sysmon, product: windows}]"}
    folder = write(tmp_path, **{name: rule(name, everything, logsource=source) for name, source in sources.items()})
    counts = dict(titles(con, SAMPLES / "DC01-*.evtx", folder))
    assert counts["names"] == counts["maps"] == counts["one"] + counts["two"] and counts["twice"] == counts["one"] > 0 and counts["two"] > 0
    found = con.execute("SELECT rule_title, category, product, service, len(channels) FROM evtx_sigma_rules($1) WHERE rule_title IN ('maps', 'names') ORDER BY 1", [folder]).fetchall()
    assert found == [("maps", "webserver", "windows", "security, sysmon", 2), ("names", None, "linux, windows", "security, sysmon", 2)]


def test_public_log_sources_load(con, tmp_path):
    sources = ["{product: windows, category: rdp}", *(f"{{product: windows, service: {name}}}" for name in ("mssql", "rpc_firewall", "setup", "printservice"))]
    folder = write(tmp_path, **{f"r{number}": rule("R", EVERYTHING, logsource=source) for number, source in enumerate(sources)})
    assert con.execute("SELECT count(*), count(error) FROM evtx_sigma_rules($1)", [folder]).fetchone() == (5, 0)


def test_tactics_and_techniques_are_those_of_the_macros(con, tmp_path):
    tags = ["attack.Defense_Evasion", "attack.lateral-movement", "attack.defense-evasion", "ATTACK.T1021", "attack.t1021", "attack.t1021.002", "attack.t1021.2", "attack.t10211", "attack.t1021.", "attack.t1021.0022",
            "attack.g0016", "attack.s0002", "attack.ta0001", "attack.", "attack", "attack.t", "attack.a.b", "cve.2021-1", "detection.emerging-threats", "attack._", "t1021", "attack.tä"]
    one = "title: {}\ncorrelation: {{type: event_count, rules: [a], timespan: 1m, condition: {{gte: 1}}}}\n"
    texts = {"a": "name: a\n" + rule("A", LOGON, logsource=FOR_SECURITY), "b": one.format("B"), "c": filter_of("C", ["a"], {"X": 1})}
    folder = write(tmp_path, **{name: text + f"tags: {json.dumps(tags)}\n" for name, text in texts.items()})
    rows = con.execute("SELECT error, tactics, techniques, evtx_attack_tactics(tags), evtx_attack_techniques(tags) FROM evtx_sigma_rules($1)", [folder]).fetchall()
    assert len(rows) == 3
    for error, tactics, techniques, by_macro, techniques_by_macro in rows:
        assert error is None and tactics == by_macro == ["defense-evasion", "lateral-movement", "t", "-"]
        assert techniques == techniques_by_macro == ["T1021", "T1021.002"]


def test_many_bursts_can_end_with_one_event(con, tmp_path):
    one = "correlation: {type: event_count, rules: [failed], timespan: 0s, condition: {gte: 1}}\n"
    documents = ["name: failed\n" + rule("Failed", {"a": {"EventID": 4625}, "condition": "a"}), *(f"title: C{number:02}\n{one}" for number in range(60))]
    (tmp_path / "a.yml").write_text("---\n".join(documents))
    assert titles(con, SAMPLES / "DC01-Security.evtx", str(tmp_path)) == [(f"C{number:02}", 42) for number in range(60)]


ANY = "title: Any\nname: any\nlogsource: {product: windows}\ndetection:\n  a: {EventID|exists: true}\n  condition: a\n"
ALL = "title: All\ncorrelation:\n  type: event_count\n  rules: [any]\n  group-by: [EventID, Provider_Name]\n  timespan: 1h\n  condition: {gte: 1}\n"


@pytest.mark.parametrize("options", ["", ", recover := true", ", on_error := 'skip'", ", recover := true, verify := true"])
@pytest.mark.parametrize("path", sorted(SAMPLES.glob("*.evtx")), ids=lambda path: path.stem)
def test_each_match_is_counted_by_one_burst(con, tmp_path, path, options):
    """And each burst is found again when its last event is read: also in damaged and recovered records."""
    (tmp_path / "any.yml").write_text(ANY)
    (tmp_path / "all.yml").write_text(f"{ANY}---\n{ALL}")
    # Correlations leave out events without a time, and a row counts them.
    matches = con.execute(f"""SELECT count(rule_title) FILTER (time_created IS NOT NULL),
        count(error) + coalesce(bool_or(rule_title IS NOT NULL AND time_created IS NULL AND $3), false)::INT
        FROM evtx_sigma($1, rules := $2{options})""", [str(path), str(tmp_path / "any.yml"), "skip" not in options]).fetchone()
    bursts = con.execute(f"""SELECT coalesce(sum(correlation.count), 0), count(error) FILTER (correlation IS NULL),
        bool_and(time_created = correlation.last_time), bool_and(correlation.records[-1].record_id = record_id)
        FROM evtx_sigma($1, rules := $2{options})""", [str(path), str(tmp_path / "all.yml")]).fetchone()
    assert (*matches, True, True) == (*bursts[:2], bursts[2] is not False, bursts[3] is not False)


def test_damage_is_told_of_logs_that_rules_are_for(con, tmp_path):
    rules = write(tmp_path, a=rule("Logon", {"a": {"EventID": 4624}, "condition": "a"}, logsource=FOR_SECURITY))
    for sample in ["DC01-System.evtx", "DC01-Security.evtx"]:
        data = bytearray((SAMPLES / sample).read_bytes()[:4096 + 65536])
        # One log with a chunk of zeros, and one with a damaged record.
        (tmp_path / f"lost-{sample}").write_bytes(data + b"ElfChnk\0" + bytes(65528))
        data[4096 + 512 + 200:4096 + 512 + 240] = bytes(40)
        (tmp_path / sample).write_bytes(data)
    for name, is_told in [("DC01-System.evtx", False), ("DC01-Security.evtx", True), ("lost-DC01-System.evtx", False), ("lost-DC01-Security.evtx", True)]:
        read = con.execute("SELECT count(error) > 0 FROM read_evtx($1)", [str(tmp_path / name)]).fetchone()
        rows = con.execute("SELECT count(*) > 0 FROM evtx_sigma($1, rules := $2) WHERE error IS NOT NULL", [str(tmp_path / name), rules]).fetchone()
        assert (read, rows) == ((True,), (is_told,)), name


@pytest.mark.parametrize("order", ["SDT", "TDS", "SSSDT"])
def test_damage_is_told_of_a_log_with_several_channels(con, tmp_path, order):
    chunks = {name: (SAMPLES / f"DC01-{log}.evtx").read_bytes()[4096:4096 + 65536] for name, log in [("S", "System"), ("T", "Security")]}
    chunks["D"] = b"ElfChnk\0" + bytes(65528)
    header = bytearray((SAMPLES / "DC01-Security.evtx").read_bytes()[:4096])
    header[42:44] = len(order).to_bytes(2, "little")
    (tmp_path / "mixed.evtx").write_bytes(header + b"".join(chunks[name] for name in order))
    rules = write(tmp_path, a=rule("Logon", {"a": {"EventID": 4624}, "condition": "a"}, logsource=FOR_SECURITY))
    found = con.execute("SELECT count(rule_title), count(error) FROM evtx_sigma($1, rules := $2)", [str(tmp_path / "mixed.evtx"), rules]).fetchone()
    assert found == (7, con.execute("SELECT count(error) FROM read_evtx($1)", [str(tmp_path / "mixed.evtx")]).fetchone()[0])


def test_a_rule_of_chainsaw_is_called_that(con, tmp_path):
    (tmp_path / "a.yml").write_text("title: Brute Force\ngroup: Login Attacks\nkind: evtx\nlevel: low\nstatus: stable\nfilter:\n  condition: a\n  a:\n    Event.System.EventID: 4625\n")
    (tmp_path / "b.yml").write_text("title: Filter\nlogsource: {product: windows}\nfilter: {rules: [x], selection: {User: y}, condition: not selection}\n")
    told = con.execute("SELECT rule_title, error FROM evtx_sigma_rules($1) ORDER BY 1", [str(tmp_path)]).fetchall()
    assert [(title, error.split(": ", 1)[1]) for title, error in told] == [
        ("Brute Force", "this is a Chainsaw rule, not a Sigma rule"), ("Filter", 'no rule with the ID or name "x" is used'),
    ]


def test_damaged_events_are_asked_by_their_own_fields(con, tmp_path):
    # The predicate drops events after their rules were chosen. The damaged event that follows has other fields.
    rng = random.Random(11)
    rules = write(tmp_path, any=rule("Any", EVERYTHING),
                  user=rule("User", {"a": {"TargetUserName|exists": True}, "condition": "a"}),
                  none=rule("None", {"a": {"TargetUserName": None, "SubjectUserName": None}, "condition": "a"}))
    sql = """
        SELECT record_id, rule_title, matched, error FROM evtx_sigma($1, rules := $2)
        WHERE event_data['LogonType'] IS DISTINCT FROM '3' AND event_data['SubjectUserName'] IS DISTINCT FROM 'DC01$' ORDER BY ALL"""
    for _ in range(60):
        data = bytearray((SAMPLES / "DC01-Security.evtx").read_bytes())
        for _ in range(12):
            data[rng.randrange(4096 + 2000, len(data))] ^= 1 << rng.randrange(8)
        (tmp_path / "damaged.evtx").write_bytes(data)
        rows_with_and_without_pushdown(con, sql, [str(tmp_path / "damaged.evtx"), rules])


def test_a_text_that_is_no_yaml_costs_no_other_rule(con, tmp_path):
    broken = "a: 1\na: 2\n"
    folder = write(tmp_path, many="---\n".join([rule("One", EVERYTHING), broken, rule("Three", EVERYTHING)]))
    told = con.execute("SELECT rule_title, error FROM evtx_sigma_rules($1)", [folder]).fetchall()
    assert told == [("One", None), (None, 'line 7, column 1: the key "a" appears twice'), ("Three", None)]
    assert [title for title, _ in titles(con, SAMPLES / "DC01-Security.evtx", folder)] == ["One", "Three"]
    # A file that is not UTF-8 does not affect other rules, even if the caller names it.
    (tmp_path / "latin.yml").write_bytes(b"title: \xe4")
    for paths in [folder, [f"{tmp_path}/latin.yml", f"{tmp_path}/many.yml"]]:
        assert [title for title, _ in titles(con, SAMPLES / "DC01-Security.evtx", paths)] == ["One", "Three"]


def test_no_rule_at_all_is_an_error(con, tmp_path):
    log = SAMPLES / "DC01-Security.evtx"
    for name, text in [("empty", ""), ("story", "select 1;"), ("unmapped", rule("A", {"a": {"B": 1}, "condition": "a"}, logsource="{category: x}"))]:
        folder = tmp_path / name
        folder.mkdir()
        with pytest.raises(duckdb.Error, match=rf"1 of 1 rules did not load; .*{name}\.yml: line 1|1 of 1 rules did not load; .*unmapped log source"):
            titles(con, log, write(folder, **{name: text}))
    # Excluding all rules is not an error.
    low = write(tmp_path / "empty", empty=rule("A", {"a": {"EventID": 1}, "condition": "a"}, level="low"))
    assert titles(con, log, low, min_level="'high'") == []


def test_names_in_rules_have_any_case(con, tmp_path):
    text = rule("A", EVERYTHING, id="0B4A7C16-0000-0000-0000-00000000000a", logsource="{product: Windows, service: SECURITY}", level="High")
    folder = write(tmp_path, a=text, b=text.replace("title: A", "title: B").replace("00a", "00A"))
    told = con.execute("SELECT rule_title, rule_level, error FROM evtx_sigma_rules($1)", [folder]).fetchall()
    assert [row[:2] for row in told] == [("A", "high"), ("B", "high")]
    assert told[0][2] is None and "the same ID" in told[1][2]
    log = SAMPLES / "DC01-Security.evtx"
    assert [title for title, _ in titles(con, log, folder)] == ["A"]
    assert titles(con, log, folder, exclude="'{0b4a7c16-0000-0000-0000-00000000000A}'") == []


def test_compressed_rules_in_a_folder(con, tmp_path):
    text = rule("A", EVERYTHING)
    (tmp_path / "a.yml.gz").write_bytes(gzip.compress(text.encode()))
    for path in [str(tmp_path), f"{tmp_path}/a.yml.gz", f"{tmp_path}/*"]:
        assert [title for title, _ in titles(con, SAMPLES / "DC01-Security.evtx", path)] == ["A"]


def test_a_table_of_log_sources_is_named_in_its_errors(con, tmp_path):
    table = tmp_path / "own.yml"
    for content, why in [(b"\xe4", "it is not UTF-8"), (b"#" * (1 << 21), "it has 2097152 bytes"), (b"a: 1", "line 1, column 1"),
                         (b"logsources: [{service: s, event_ids: [-1]}]", "-1 is not an event ID")]:
        table.write_bytes(content)
        with pytest.raises(duckdb.Error, match=rf"own\.yml: .*{why}"):
            titles(con, SAMPLES / "DC01-Security.evtx", str(RULES), logsources=f"'{table}'")


def test_keywords_are_looked_for_in_every_value(con, tmp_path):
    folder = write(tmp_path, message=rule("Message", {"a": ["successfully logged"], "condition": "a"}),
                   named=rule("Named", {"a": {"RenderingInfo.Message|contains": "successfully logged"}, "condition": "a"}))
    sql = """
        SELECT rule_title, matched FROM evtx_sigma($1, rules := $2)
        WHERE record_id = (SELECT min(record_id) FROM read_evtx($1) WHERE message ILIKE '%successfully logged%') ORDER BY ALL"""
    rows = con.execute(sql, [str(SAMPLES / "ForwardedEvents.evtx"), folder]).fetchall()
    assert [title for title, _ in rows] == ["Message", "Named"]
    assert all(list(matched) == ["RenderingInfo.Message"] for _, matched in rows)


def test_regular_expressions_of_many_files_take_bounded_memory(con, tmp_path):
    for file in range(12):
        rules = [rule(f"R{file}-{number}", {"a": {"F|re": [f"{file}x{number}x{at}(?:[a-z]{{3}}x?){{1200}}" for at in range(3)]}, "condition": "a"})
                 for number in range(8)]
        (tmp_path / f"r{file:02}.yml").write_text("---\n".join(rules))
    before = psutil.Process().memory_info().rss
    told = con.execute("SELECT error FROM evtx_sigma_rules($1)", [str(tmp_path)]).fetchall()
    errors = [error for (error,) in told if error]
    assert len(told) == 96 and 0 < len(errors) < 96
    assert any("all rules together have more than 67108864 bytes of memory of regular expressions" in error for error in errors)
    assert psutil.Process().memory_info().rss - before < 200 << 20


@pytest.mark.parametrize("threads", [1, 4])
def test_rules_that_are_refused_take_bounded_memory_while_they_load(con, tmp_path, threads):
    """The needles of 40 files of 28 KB would take 1.8 GB. All rules together may have 256 MiB."""
    for file in range(40):
        aliases = "[&a '" + "q" * 10000 + f"{file}'" + ", *a" * 400 + "]"
        texts = [f"title: T{file}-{number}\nlogsource: {{product: windows}}\ndetection: {{s: {{F|contains: {aliases}}}, condition: s}}\n" for number in range(2)]
        (tmp_path / f"r{file:02}.yml").write_text("---\n".join(texts))
    con.execute(f"SET threads = {threads}")
    before = psutil.Process().memory_info().rss
    errors = [error for (error,) in con.execute("SELECT error FROM evtx_sigma_rules($1)", [str(tmp_path)]).fetchall()]
    assert len(errors) == 80 and 60 <= errors.count(None) <= 70
    assert all("268435456 bytes of memory" in error for error in errors if error)
    assert psutil.Process().memory_info().rss - before < 600 << 20


def test_a_rule_with_many_tags_is_refused(con, tmp_path):
    for count, error in [(1000, None), (1001, "tags of a rule")]:
        text = rule("A", EVERYTHING) + f"\ntags: [{', '.join(map(str, range(count)))}]\n"
        (tmp_path / "a.yml").write_text(text)
        ((found,),) = con.execute("SELECT error FROM evtx_sigma_rules($1)", [str(tmp_path)]).fetchall()
        assert found is None if error is None else error in found


def test_rules_do_not_depend_on_threads(con, tmp_path):
    """Many files, with duplicate IDs, and rules that are too large together."""
    for file in range(700):
        needles = [f"{file}-{needle}" + "x" * 50 for needle in range(150)]
        text = rule(f"R{file}", {"a": {"F|contains": needles}, "condition": "a"}, id=f"0b4a7c16-0000-0000-0000-{file % 650:012}")
        (tmp_path / f"r{file:03}.yml").write_text("a: [" if file % 97 == 5 else text)
    told = []
    for threads in (1, 2, 4):
        con.execute(f"SET threads = {threads}")
        told.append(con.execute("SELECT rule_title, error FROM evtx_sigma_rules($1)", [str(tmp_path)]).fetchall())
    assert told[0] == told[1] == told[2]
    errors = [error for _, error in told[0] if error]
    for kind in ["bytes of needles", "the same ID", "not valid YAML"]:
        assert any(kind in error for error in errors), kind
