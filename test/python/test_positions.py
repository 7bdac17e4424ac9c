"""Only what a call needs goes by position: another argument by position is an error that shows the list to write."""

import re

import duckdb
import pytest
from conftest import ROOT, SAMPLES

# The signatures, as the files of the macros have them.
SIGNATURES = {}
for file in (ROOT / "rust/frontends/evtx-ffi/sql").glob("*.sql"):
    name, parameters = re.match(r"-- (\w+)\((.*)\)\n", file.read_text(encoding="utf-8")).groups()
    SIGNATURES[name] = [parameter for parameter in parameters.split(", ") if parameter]
TOO_MANY = ["'more'", "['more', 'b']", "NULL", "true", "5", "{'a': 1}", "'more', 'c'", "'more', 'c', 'd'"]


def functions(con):
    """Each table function and macro, with the names of its parameters and how many of them are required."""
    listed = con.execute("""SELECT DISTINCT function_name, function_type, parameters FROM duckdb_functions()
        WHERE function_name LIKE '%evtx%' AND function_type IN ('table', 'table_macro', 'macro') ORDER BY ALL""").fetchall()
    assert {name for name, kind, _ in listed if kind != "table"} == set(SIGNATURES)
    for name, kind, parameters in listed:
        if kind == "table":
            yield name, kind, parameters, sum(parameter in ("files", "rules") for parameter in parameters[:1])
        else:
            required = [parameter for parameter in SIGNATURES[name] if ":=" not in parameter]
            yield name, kind, SIGNATURES[name], len(required)


def test_no_optional_argument_goes_by_position(con):
    calls, kinds = 0, set()
    for name, kind, parameters, required in functions(con):
        given = ["'no such place'" + "::BLOB" * (parameter == "content") for parameter in parameters[:required]]
        for more in TOO_MANY:
            call = f"{name}({', '.join([*given, more])})"
            with pytest.raises(duckdb.Error) as error:
                con.execute(f"SELECT {call}" if kind == "macro" else f"FROM {call}")
            calls += 1
            if not required or kind == "macro" and len(parameters) == required:
                # DuckDB knows that there is no such parameter.
                continue
            kinds.add(kind)
            # Of more arguments than the macro has parameters, DuckDB itself says so, with its signature.
            text = str(error.value)
            assert f"{name} takes" in text or "write several values as a list" in text, call
            if more == "'more'":
                assert f"{name} takes {'one argument' if required == 1 else f'{required} arguments'} by position" in text, call
                assert "['no such place', 'more']" in text, call
    assert kinds == {"table", "table_macro", "macro"} and calls > 500


def test_optional_arguments_go_by_name(con):
    """They do before and after the check, and in a prepared statement."""
    log = str(SAMPLES / "dirty.evtx")
    con.execute(f"CREATE TABLE events AS FROM read_evtx('{log}', fields := true, text := true)")
    for name, kind, parameters, required in functions(con):
        if kind != "table_macro" or len(parameters) == required or name.endswith("_of") and name.startswith("evtx_sigma"):
            continue
        values = {"files": log, "content": (SAMPLES / "dirty.evtx").read_bytes(), "table_name": "events", "pattern": "svc", "rules": str(SAMPLES / "rules")}
        wanted = [values[parameter] for parameter in parameters[:required]]
        places = ", ".join("?" for _ in wanted)
        plain = con.execute(f"SELECT count(*) FROM {name}({places})", wanted).fetchone()
        if "password := NULL" in parameters:
            assert con.execute(f"SELECT count(*) FROM {name}({places}, password := ?)", [*wanted, "x"]).fetchone() == plain
        listed = [value if parameter in ("pattern", "content") else [value] for parameter, value in zip(parameters, wanted, strict=False)]
        assert con.execute(f"SELECT count(*) FROM {name}({places})", listed).fetchone() == plain


def test_the_list_to_write_is_one(con):
    """What the error shows can be written as it is, whatever the first path is."""
    for first, more in [(f"'{SAMPLES}/dirty.evtx'", f"'{SAMPLES}/DC01-System.evtx'"), (f"['{SAMPLES}/dirty.evtx']", f"['{SAMPLES}/DC01-System.evtx']"),
                        (f"'{SAMPLES}/dirty.evtx'", f"'{SAMPLES}/[D]C01-System.evtx'")]:
        for name in ["read_evtx", "evtx_timeline"]:
            with pytest.raises(duckdb.Error) as error:
                con.execute(f"FROM {name}({first}, {more})")
            shown = re.search(r"such as (\[.*?\]), and pass", str(error.value)).group(1)
            both = con.execute(f"SELECT count(DISTINCT filename) FROM {name}({shown})").fetchone()
            assert both == (2,), shown


WORDS = ["svc-backup", "POWERSHELL", "c:\\windows", "a\u0130b", "i", "[x]", "100%", "(", "4624", "no such text"]


def test_a_search_takes_a_list_of_patterns(con):
    """As the union of the searches for each."""
    logs = f"'{SAMPLES}/*.evtx'"
    for count in (1, 2, 3, len(WORDS)):
        for start in range(0, len(WORDS), 3):
            chosen = (WORDS[start:] + WORDS[:start])[:count]
            union = " UNION ".join(f"FROM evtx_search({logs}, {word})" for word in map(quoted, chosen))
            listed = f"SELECT DISTINCT * FROM evtx_search({logs}, [{', '.join(map(quoted, chosen))}])"
            assert con.execute(f"SELECT count(*) FROM (({union}) EXCEPT ({listed}))").fetchone() == (0,), chosen
            assert con.execute(f"SELECT count(*) FROM (({listed}) EXCEPT ({union}))").fetchone() == (0,), chosen
    both = "FROM evtx_search({}, ['^svc-.*up$', '(?i)POWERSHELL'], regex := true)".format(logs)
    one = " UNION ALL ".join(f"FROM evtx_search({logs}, {word}, regex := true) WHERE error IS NULL" for word in ["'^svc-.*up$'", "'(?i)POWERSHELL'"])
    assert con.execute(f"SELECT count(*) FROM ({both}) WHERE error IS NULL").fetchone() == con.execute(f"SELECT count(*) FROM ({one})").fetchone()


def quoted(text):
    return "'" + text.replace("'", "''") + "'"


@pytest.mark.parametrize(("pattern", "like"), [
    ("*powershell*", "%powershell%"), ("powershell*", "%powershell%"), ("*svc", "%svc%"), ("c:\\*\\*.exe", "%c:\\%\\%.exe%"),
    ("*", "%"), ("**", "%"), ("dc=*e", "%dc=%e%"), ("*s-1-5-*1*", "%s-1-5-%1%"),
])
def test_an_asterisk_is_any_text(con, pattern, like):
    """As LIKE says, over the values of the events."""
    fields = f"SELECT record_id, filename, unnest(fields, recursive := true) FROM read_evtx('{SAMPLES}/*.evtx', fields := true)"
    expected = con.execute(f"SELECT record_id, filename, name, value FROM ({fields}) WHERE lower(value) LIKE $1 ORDER BY ALL", [like]).fetchall()
    found = con.execute("SELECT record_id, filename, field, value FROM evtx_search($1, $2) WHERE value IS NOT NULL ORDER BY ALL",
                        [f"{SAMPLES}/*.evtx", pattern]).fetchall()
    assert found == expected and (expected or "dc=" in pattern)


@pytest.mark.parametrize(("provider", "similar"), [
    ("'Security'", "Microsoft-Windows-Security-Auditing"), ("'Sysmon'", "Microsoft-Windows-Sysmon"),
    ("'*sysmon*'", "Microsoft-Windows-Sysmon"), ("['Security', 'none']", "Microsoft-Windows-Security-Auditing"),
    ("'Microsoft-Windows-Securty-Auditing'", "Microsoft-Windows-Security-Auditing"), ("'Service Control'", "Service Control Manager"),
])
def test_a_provider_that_no_record_has_is_a_row_with_similar_ones(con, provider, similar):
    con.execute("SET threads = 4")
    for logs in (f"'{SAMPLES}/*.evtx'", f"'{SAMPLES}/DC01-Security.evtx'"):
        for arguments in ("", ", event_id := [4624, 1]"):
            call = f"read_evtx({logs}, provider := {provider}{arguments}"
            errors = [error for (error,) in con.execute(f"SELECT error FROM {call})").fetchall() if "no record was found" in error]
            assert len(errors) == 1 and similar in errors[0], call
            assert con.execute(f"SELECT count(*) FROM {call}, on_error := 'skip')").fetchone() == (0,)
            with pytest.raises(duckdb.Error, match="no record was found for the provider"):
                con.execute(f"FROM read_evtx('{SAMPLES}/DC01-Security.evtx', provider := {provider}, on_error := 'fail')").fetchall()


def test_every_function_with_a_provider_has_such_a_row(con, tmp_path):
    """A rule that matches every event, one that matches none, and an export."""
    takers = {name for name, in con.execute("SELECT function_name FROM duckdb_functions() WHERE list_contains(parameters, 'provider') AND function_type = 'table'").fetchall()}
    assert takers == {"read_evtx", "read_evtx_xml", "evtx_sigma"}
    (tmp_path / "export.xml").write_text(con.execute(f"SELECT string_agg(xml, '') FROM read_evtx('{SAMPLES}/DC01-Sysmon.evtx', xml := true)").fetchone()[0])
    for name, field in (("every", "EventID|exists: true"), ("none", "EventID: 99")):
        (tmp_path / f"{name}.yml").write_text(f"title: {name}\nlogsource: {{product: windows}}\ndetection: {{s: {{{field}}}, condition: s}}\n")
    log = f"'{SAMPLES}/DC01-Sysmon.evtx'"
    for call, row in [(f"evtx_sigma({log}, rules := '{tmp_path}/every.yml'", "match"), (f"evtx_sigma({log}, rules := '{tmp_path}/none.yml'", "match"),
                      (f"read_evtx_xml('{tmp_path}/export.xml'", "record"), (f"read_evtx({log}", "record")]:
        [(error,)] = con.execute(f"SELECT error FROM {call}, provider := 'Sysmon')").fetchall()
        assert error.endswith(f": no {row} was found for the provider 'Sysmon', but there are Microsoft-Windows-Sysmon. The name of a log is its channel"), call
        known = con.execute(f"SELECT count(*), count(error) FROM {call}, provider := 'Microsoft-Windows-Sysmon')").fetchone()
        assert known[1] == 0 and (known[0] > 0) == ("none" not in call), call


@pytest.mark.parametrize("pattern", ["[]", "NULL", "[NULL]", "['svc', NULL]", "CAST(NULL AS VARCHAR)", "CAST([] AS VARCHAR[])", "true", "{'a': 1}", "[{'a': 1}]", "MAP {'a': 'b'}"])
@pytest.mark.parametrize("regex", ["false", "true"])
def test_a_search_without_a_text_is_an_error(con, pattern, regex):
    """Also over a table without rows."""
    con.execute(f"CREATE TABLE events AS FROM read_evtx('{SAMPLES}/DC01-Sysmon.evtx', fields := true, text := true)")
    con.execute("CREATE TABLE empty AS FROM events LIMIT 0")
    for call in (f"evtx_search('{SAMPLES}/DC01-Sysmon.evtx'", "evtx_search_of('events'", "evtx_search_of('empty'", "evtx_search_of(['events', 'empty']"):
        with pytest.raises(duckdb.Error, match="evtx_search needs a text to search for"):
            con.execute(f"SELECT count(*) FROM {call}, {pattern}, regex := {regex})")
        assert con.execute(f"SELECT count(*) FROM {call}, ['svc', '4'], regex := {regex})").fetchone()[0] > 0 or "'empty'" in call


def test_there_is_no_such_row_if_the_provider_is_known_or_has_records(con):
    names = "'Microsoft-Windows-Kernel-General', 'EventLog', 'Northwind-Oddities', 'Microsoft-Windows-BitLocker-API', 'none'"
    for provider in names.split(", "):
        rows = con.execute(f"SELECT count(*) FROM read_evtx('{SAMPLES}/*.evtx', provider := {provider}) WHERE error LIKE '%no record was%'")
        assert rows.fetchone() == (0,), provider
    for more in ("WHERE event_id = 1", "WHERE error IS NULL", "WHERE computer = 'x' AND level = 3"):
        assert con.execute(f"SELECT count(*) FROM read_evtx('{SAMPLES}/DC01-Security.evtx', provider := 'Security') {more}").fetchone() == (0,)


def test_messages_is_no_flag(con):
    for function in ("read_evtx", "evtx_timeline"):
        with pytest.raises(duckdb.Error, match="messages"):
            con.execute(f"FROM {function}('{SAMPLES}', messages := true)")
        with pytest.raises(duckdb.Error, match="messages takes the path of a catalog, not true"):
            con.execute(f"FROM {function}('{SAMPLES}', messages := 'true')")
