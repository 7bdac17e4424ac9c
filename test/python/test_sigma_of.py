"""Sigma rules over the rows of a table. The judge is evtx_sigma over the logs that the table came from."""

import collections
import datetime
import json
import operator
import os
import pathlib
import random
import re
import threading

import crowds
import evtx_arrow
import polars
import pyarrow
import pytest
from conftest import ROOT, SAMPLES, interrupted, loaded, takes_at_most
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
    found, _ = assert_same(con, "events", logs, write(tmp_path, **rules), columns=columns, unknown=unknown)
    assert found > 500 if len(logs) > 1 else found == 11213, found


@pytest.mark.parametrize("threads", [1, 4])
def test_correlations_count_all_rows(tmp_path, threads):
    rules = write(tmp_path, a=rule("Any", EVERYTHING) + "name: any\n",
                  b="title: Many\nid: many\ncorrelation:\n  type: event_count\n  rules: [any]\n  group-by: [Channel, Computer]\n  timespan: 1h\n  condition: {gte: 3}\n")
    with loaded(threads=threads) as con:
        con.execute("CREATE TABLE events AS FROM read_evtx($1)", [LOGS])
        _, correlations = assert_same(con, "events", LOGS, rules)
        assert correlations > 10 if len(LOGS) > 1 else correlations == 12, correlations
        whole = con.execute("SELECT count(*) FROM evtx_sigma_of('events', $1) WHERE computer LIKE 'DC%'", [rules]).fetchone()
        con.execute("CREATE VIEW found_ AS FROM evtx_sigma_of('events', $1)".replace("$1", f"'{rules}'"))
        assert con.execute("SELECT count(*) FROM found_ WHERE computer LIKE 'DC%'").fetchone() == whole
        assert con.execute("SELECT count(*) FROM found WHERE channel IS NOT NULL AND list_contains(map_values(matched), NULL)").fetchone() == (0,)


def record_of(number, at, event_id, data, system=""):
    """An event as XML."""
    time = (datetime.datetime(2024, 3, 5) + datetime.timedelta(seconds=at)).isoformat() + "Z"
    fields = "".join(f"<Data Name='{name}'>{value}</Data>" for name, value in data.items())
    return f"""<Event xmlns='http://schemas.microsoft.com/win/2004/08/events/event'><System><Provider Name='Any'/><EventID>{event_id}</EventID>
        <Level>4</Level><TimeCreated SystemTime='{time}'/><EventRecordID>{number}</EventRecordID><Channel>Security</Channel>
        <Computer>pc</Computer>{system}</System><EventData>{fields}</EventData></Event>"""


def log_of(con, folder, events):
    """A log with events that are XML, and the table `events` with its rows."""
    (folder / "events.xml").write_text(f"<Events>{''.join(events)}</Events>")
    con.execute(f"COPY (SELECT record FROM read_evtx_xml('{folder}/events.xml', record := true)) TO '{folder}/events.evtx' (FORMAT evtx)")
    con.execute(f"CREATE OR REPLACE TABLE events AS FROM read_evtx('{folder}/events.evtx')")
    return str(folder / "events.evtx")


@pytest.mark.parametrize("name", ["Channel", "System.Channel", "EventID", "System.EventID", "Provider_Name", "System.Provider_Name", "Computer"])
def test_log_sources_choose_events_by_system(con, tmp_path, name):
    """Whatever the fields of the event are called."""
    planted = [{}, *({name: value} for value in ["Security", "System", "4688", "1102", "Microsoft-Windows-Eventlog"])]
    events = [record_of(0, 0, event_id, data) for event_id in (1102, 4688) for data in planted]
    events += [event.replace("<Channel>Security</Channel>", "") for event in events]
    rules = {
        "security": ({"a": {"Level": 4}}, FOR_SECURITY), "system": ({"a": {"Level": 4}}, "{product: windows, service: system}"),
        "process": ({"a": {"Level": 4}}, "{product: windows, category: process_creation}"),
        "channel": ({"a": {"System.Channel": "Security"}}, "{product: windows}"), "other": ({"a": {"System.Channel": ["System", "1102", "4688"]}}, "{product: windows}"),
        "id": ({"a": {"System.EventID": 4688}}, "{product: windows}"), "word": ({"a": ["Security"]}, FOR_SECURITY)}
    files = {title: rule(title, detection | {"condition": "a"}, logsource=source) for title, (detection, source) in rules.items()}
    log, rules = log_of(con, tmp_path, events), write(tmp_path, **files)
    expected = collections.Counter()
    for event in events:
        is_security, is_process = "<Channel>Security</Channel>" in event, "<EventID>4688</EventID>" in event
        expected += collections.Counter(security=is_security, word=is_security, channel=is_security, process=is_security and is_process, id=is_process)
    for source in [f"evtx_sigma('{log}', rules := $1)", "evtx_sigma_of('events', $1)"]:
        assert dict(con.execute(f"SELECT rule_title, count(*) FROM {source} GROUP BY ALL", [rules]).fetchall()) == expected, source


# Detections of rules that overlap, and the events that they mean.
OVERLAPPING = [
    ({"EventID": [1, 2]}, lambda event_id, data: True),
    ({"EventID": 1}, lambda event_id, data: event_id == 1),
    ({"User|exists": True}, lambda event_id, data: "User" in data),
    ({"User": "a"}, lambda event_id, data: data.get("User") == "a"),
    ({"Size|gte": 2}, lambda event_id, data: "Size" in data and int(data["Size"]) >= 2),
]
COMPARED = {"gte": operator.ge, "gt": operator.gt, "eq": operator.eq, "neq": operator.ne, "lt": operator.lt, "lte": operator.le}


def longest(window, time=0, after=-1):
    """The most rules of a window that come in their order."""
    return max((1 + longest(window, at, rule) for at, rule, _ in window if at >= time and rule > after), default=0)


def number_of(kind, percentile, is_less, window):
    """What the condition of a correlation compares, by docs/sigma.md."""
    values = [value for _, _, value in window if value is not None]
    sizes = sorted(map(int, values)) if kind not in ("value_count", "event_count", "temporal", "temporal_ordered") else []
    match kind:
        case "event_count":
            return len(window)
        case "value_count":
            return len(set(values))
        case "temporal":
            return len({rule for _, rule, _ in window})
        case "temporal_ordered":
            return longest(window)
        case "value_sum":
            return sum(sizes) if sizes else None
        case "value_avg":
            return sum(sizes) / len(sizes) if sizes else None
        case _ if not sizes:
            return None
        case _ if percentile is None:
            counts = collections.Counter(sizes).values()
            return (min if is_less else max)(counts) * 100 / len(sizes)
    return next(size for count, size in enumerate(sizes, 1) if count * 100 >= percentile * len(sizes))


def bursts_of(events, kind, rules, group_by, field, span, percentile, conditions):
    """The bursts of a correlation: what it groups by, the first and the last time, the number of hits, and the value."""
    groups = collections.defaultdict(list)
    for at, event_id, data in events:
        of_event = [place for place, rule in enumerate(rules) if OVERLAPPING[rule][1](event_id, data)]
        # However many rules match an event, it is one hit, unless the rules matter.
        for place in of_event if kind.startswith("temporal") else of_event[:1]:
            groups[tuple(data.get(name) for name in group_by)].append((at, place, data.get(field)))
    found, is_less = [], any(name in ("lt", "lte") for name in conditions)
    for group, hits in groups.items():
        end = -1
        for start in sorted({at for at, *_ in hits}):
            window = [hit for hit in hits if start <= hit[0] <= start + span]
            if start <= end or (number := number_of(kind, percentile, is_less, window)) is None:
                continue
            if all(COMPARED[name](number, limit) for name, limit in conditions.items()):
                end = max(at for at, *_ in window)
                found.append((group, start, end, len(window), None if kind.startswith(("event", "temporal")) else float(number)))
    return sorted(found, key=str)


@pytest.mark.parametrize("seed", range(4))
def test_an_event_that_several_rules_match_counts_once(con, tmp_path, seed):
    rng, checked, shared = random.Random(seed), 0, 0
    for _ in range(3):
        events = [(rng.randrange(40), rng.randint(1, 2), {name: rng.choice(values) for name, values in
                  {"User": "abc", "Host": "xy", "Size": "0123"}.items() if rng.random() < 0.9}) for _ in range(60)]
        log = log_of(con, tmp_path, [record_of(number, *event) for number, event in enumerate(events, 1)])
        expected, texts = {}, [rule(f"r{i}", {"s": detection, "condition": "s"}) + f"name: r{i}\n" for i, (detection, _) in enumerate(OVERLAPPING)]
        for kind in ["event_count", "value_count", "temporal", "temporal_ordered", "value_sum", "value_avg", "value_percentile"] * 3:
            rules = rng.sample(range(len(OVERLAPPING)), rng.randint(2, 4))
            group_by, span = rng.sample(["User", "Host"], rng.randint(0, 2)), rng.randrange(12)
            field = None if kind.startswith(("event", "temporal")) else "User" if kind == "value_count" and rng.random() < 0.5 else "Size"
            percentile = rng.choice([None, 50, 90]) if kind == "value_percentile" else None
            limit = rng.choice([10, 30, 60]) if kind == "value_percentile" and percentile is None else rng.randint(1, 4)
            compared = rng.choice([*COMPARED]) if rng.random() < 0.5 else "gte"
            if kind.startswith("temporal"):
                limit = min(limit, len(rules) - (compared == "gt"))
            # A condition that can never be true is an error.
            conditions = {compared: limit + (compared == "lt")}
            title = f"c{len(expected)}"
            condition = {**conditions, **({"field": field} if field else {}), **({"percentile": percentile} if percentile else {})}
            texts.append(f"title: {title}\ncorrelation: " + json.dumps({"type": kind, "rules": [f"r{i}" for i in rules], "group-by": group_by, "timespan": f"{span}s", "condition": condition}) + "\n")
            expected[title] = bursts_of(events, kind, rules, group_by, field, span, percentile, conditions)
        (tmp_path / "rules.yml").write_text("---\n".join(texts))
        con.execute(f"COPY events TO '{tmp_path}/events.parquet'")
        table, path = con.sql("FROM events").to_arrow_table(), f"{tmp_path}/rules.yml"
        sources = {"log": f"evtx_sigma('{log}', rules := '{path}')", "table": f"evtx_sigma_of('events', '{path}')",
                   "Parquet": f"evtx_sigma_of('{tmp_path}/events.parquet', '{path}')"}
        frames = {"scan": evtx_arrow.scan(log), "frame": polars.DataFrame(evtx_arrow.scan(log)), "arrow": table, "pieces": table.to_reader(max_chunksize=7)}
        for name, frame in frames.items():
            con.register(f"of_{name}", pyarrow.table(evtx_arrow.sigma(frame, path)))
            sources[name] = f"of_{name}"
        for name, source in sources.items():
            rows = con.execute(f"SELECT rule_title, matched, correlation.first_time, correlation.last_time, correlation.count, correlation.value FROM {source} WHERE correlation IS NOT NULL").fetchall()
            found = {title: [] for title in expected}
            for title, matched, *times, count, value in rows:
                seconds = [int((at - datetime.datetime(2024, 3, 5)).total_seconds()) for at in times]
                found[title].append((tuple(matched.values()), *seconds, count, value))
            for title, bursts in expected.items():
                assert sorted(found[title], key=str) == bursts, (name, texts[len(OVERLAPPING) + int(title[1:])])
            checked += len(rows)
        shared += sum(1 for _, event_id, data in events if sum(test(event_id, data) for _, test in OVERLAPPING) > 1)
    assert checked > 300 and shared > 100


# The fields that Sigma's taxonomy (2.1.0) defines for processes, with its examples. Sysmon has the hashes in one text.
PROCESS = {
    "UtcTime": "2019-03-02 08:51:00.008", "ProcessGuid": "{c1b49677-43f4-5c7a-0000-0010d3dd8044}", "ProcessId": "1028", "Image": r"C:\Google\GoogleUpdate.exe",
    "FileVersion": "1.3.28.13", "Description": "Google Installer", "Product": "Google Update", "Company": "Google Inc.", "CommandLine": "GoogleUpdate.exe /ua",
    "CurrentDirectory": r"C:\Windows\system32", "User": r"NT AUTHORITY\SYSTEM", "LogonGuid": "{c1b49677-3fb9-5c09-0000-0020e7030000}", "LogonId": "0x3e7",
    "TerminalSessionId": "0", "IntegrityLevel": "System", "imphash": "E96A73C7BF33A464C510EDE582318BF2", "md5": "CCF1D1573F175299ADE01C07791A6541",
    "sha1": "0AE1F9071C5E8FE4A69D3F671937935D242D8A6C", "sha256": "68A15A34C2E28B9B521A240B948634617D72AD619E3950BC6DC769E60A0C3CF2",
    "ParentProcessGuid": "{c1b49677-6b43-5c78-0000-00107fb77544}", "ParentProcessId": "1724", "ParentImage": r"C:\Windows\System32\taskeng.exe",
    "ParentCommandLine": "taskeng.exe {88F94E5C-5DC3-4606-AEFA-BDCA976D6113}",
}
HASHES = ("md5", "sha1", "sha256", "imphash")
# An event of the log of Windows under Sigma's names: its channel, its ID, its fields, and what rules of the category see.
CATEGORIES = {
    "process_creation, by Sysmon": ("Microsoft-Windows-Sysmon/Operational", 1, {
        **{name: value for name, value in PROCESS.items() if name not in HASHES},
        "Hashes": ",".join(f"{name.upper()}={PROCESS[name]}" for name in HASHES)}, PROCESS),
    "process_creation, by the audit": ("Security", 4688, {
        "NewProcessId": "0x404", "NewProcessName": r"C:\a.exe", "ProcessId": "0x6bc", "ParentProcessName": r"C:\b.exe", "SubjectLogonId": "0x3e7", "MandatoryLabel": "S-1-16-16384",
    }, {"ProcessId": "0x404", "Image": r"C:\a.exe", "ParentProcessId": "0x6bc", "ParentImage": r"C:\b.exe", "LogonId": "0x3e7", "IntegrityLevel": "S-1-16-16384"}),
    "create_stream_hash": ("Microsoft-Windows-Sysmon/Operational", 15, {"Hash": "MD5=00,IMPHASH=11"}, {"md5": "00", "imphash": "11"}),
    "antivirus": ("Microsoft-Windows-Windows Defender/Operational", 1116, {"Threat Name": "EICAR", "Path": "file:_C:/eicar.com", "Action Name": "Remove"},
                  {"Signature": "EICAR", "Filename": "file:_C:/eicar.com", "Action": "Remove"}),
}


@pytest.mark.parametrize("name", CATEGORIES)
def test_fields_of_the_taxonomy_match(con, tmp_path, name):
    channel, event_id, data, seen = CATEGORIES[name]
    event = record_of(1, 0, event_id, data).replace("Security<", f"{channel}<")
    log = log_of(con, tmp_path, [event, event.replace("<EventRecordID>1", "<EventRecordID>2")])
    logsource = f"{{category: {name.split(',')[0]}, product: windows}}"
    texts = [rule(field, {"s": {field: value}, "condition": "s"}, logsource=logsource) for field, value in seen.items()]
    texts += [rule(f"no {field}", {"s": {f"{field}|neq": value}, "condition": "s"}, logsource=logsource) for field, value in seen.items()]
    texts += [rule(field, {"s": {"EventID|exists": True}, "condition": "s"}, logsource=logsource) + f"name: by_{field}\n---\ntitle: pairs by {field}\ncorrelation: "
              f"{{type: event_count, rules: [by_{field}], group-by: [{field}], timespan: 1m, condition: {{eq: 2}}}}\n" for field in seen]
    (tmp_path / "rules.yml").write_text("---\n".join(texts))
    expected = sorted([(field, ((field, value),)) for field, value in seen.items()] * 2 + [(f"pairs by {field}", ((field, value),)) for field, value in seen.items()])
    for source in (f"evtx_sigma('{log}', rules := '{tmp_path}/rules.yml')", f"evtx_sigma_of('events', '{tmp_path}/rules.yml')"):
        rows = con.execute(f"SELECT rule_title, matched FROM {source}").fetchall()
        assert sorted((title, tuple(matched.items())) for title, matched in rows) == expected, source


@pytest.mark.parametrize("spelled", ["2024-03-05T08:00:00Z", "2024-03-05T08:00:00.0000000Z", "2024-03-05T08:00:00.5Z", "2024-03-05 08:00:00.123456", "2024-03-05T09:00:00+01:00"])
def test_a_time_has_one_text(con, tmp_path, spelled):
    event = re.sub("SystemTime='[^']*'", f"SystemTime='{spelled}'", record_of(1, 0, 1, {}))
    log = log_of(con, tmp_path, [event])
    instant = datetime.datetime.fromisoformat(spelled).astimezone(datetime.UTC) if "+" in spelled else datetime.datetime.fromisoformat(spelled.rstrip("Z"))
    text = instant.strftime("%Y-%m-%dT%H:%M:%S.%f0Z")
    rules = write(tmp_path, a=rule("Field", {"s": {"TimeCreated_SystemTime": text}, "condition": "s"}), b=rule("Word", {"s": [text], "condition": "s"}),
                  c=rule("Other", {"s": {"TimeCreated_SystemTime|neq": text}, "condition": "s"}))
    for source in (f"evtx_sigma('{log}', rules := '{rules}')", f"evtx_sigma_of('events', '{rules}')"):
        rows = con.execute(f"SELECT rule_title, matched FROM {source} ORDER BY ALL").fetchall()
        assert rows == [(title, {"TimeCreated_SystemTime": text}) for title in ("Field", "Word")], source


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


def test_a_number_at_the_end_of_a_name_can_be_part_of_it(con, tmp_path):
    """The columns of a table cannot tell `X_1` from the second `X`, so logs and tables see both."""
    names = ["X", "X_1", "X_2", "X_1_1", "Y_1", "Z 1", "Z1"]
    rules = write(tmp_path, **{name.replace(" ", ""): rule(name.replace(" ", ""), {"a": {name: "evil"}, "condition": "a"}) for name in names}, word=rule("word", {"a": ["evil"], "condition": "a"}))
    events = {
        (("X", "ok"), ("X_1", "evil")): {"X", "X_1"},
        (("X", "ok"), ("X", "evil")): {"X", "X_1"},
        (("X_1", "evil"), ("X", "ok")): {"X_1"},
        (("Y_1", "evil"), ("X", "ok")): {"Y_1"},
        (("X", "ok"), ("X_2", "evil")): {"X_2"},
        (("X", "ok"), ("X", "ok"), ("X", "evil")): {"X", "X_2"},
        (("X", "ok"), ("X_1", "ok"), ("X", "evil")): {"X", "X_2"},
        (("X", "ok"), ("X", "ok"), ("X_1", "evil")): {"X_1", "X_1_1"},
        (("Z 1", "evil"), ("X", "ok")): {"Z1"},
    }
    texts = [record_of(number, 0, 1, {}).replace("<EventData>", "<EventData>" + "".join(f"<Data Name='{name}'>{value}</Data>" for name, value in data))
             for number, data in enumerate(events, 1)]
    log = log_of(con, tmp_path, texts)
    expected = {(number, title) for number, titles in enumerate(events.values(), 1) for title in {*titles, "word"}}
    for source in [f"evtx_sigma('{log}', rules := $1)", "evtx_sigma_of('events', $1)"]:
        found = con.execute(f"SELECT record_id, rule_title FROM {source}", [rules]).fetchall()
        assert set(found) == expected and len(found) == len(expected), source
    assert assert_same(con, "events", [log], rules)[0] == len(expected)


def test_events_without_a_time_are_in_no_burst(con, tmp_path):
    """A text can stand in place of the time, and the time of the record is another one."""
    rules = write(tmp_path, a=rule("Any", EVERYTHING) + "name: any\n", b=(
        "title: Many\nid: many\ncorrelation:\n  type: event_count\n  rules: [any]\n  timespan: 1m\n  condition: {gte: 3}\n"))
    left_out = {"a": 3, "b": 1, "c": 0}
    for name, times in {"a": ["no time"] * 3, "b": [0, "", 1], "c": [2]}.items():
        crowds.write(tmp_path / f"{name}.evtx", [(time, "Any", 1, "Any", "H", crowds.account(1), {"A": "x"}) for time in times])
    con.execute("CREATE TABLE events AS FROM read_evtx($1)", [str(tmp_path)])
    sql = "SELECT rule_title, correlation.first_time::VARCHAR, correlation.count, error FROM {} ORDER BY ALL"
    why = "correlations leave out {} events that have no time_created"
    burst = ("Many", "2024-01-01 00:00:00", 3, None)
    errors = [(None, None, None, f"{tmp_path}/{name}.evtx: {why.format(count)}") for name, count in left_out.items() if count]
    assert con.execute(sql.format("evtx_sigma($1, rules := $2)"), [str(tmp_path), rules]).fetchall() == [burst, *errors]
    assert con.execute(sql.format("evtx_sigma_of('events', $1)"), [rules]).fetchall() == [burst, (None, None, None, why.format(4))]


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
    with takes_at_most(5):
        assert con.execute("SELECT count(*) FROM evtx_sigma_of('many', $1)", [rules]).fetchone() == (0,)


def test_damage_of_unknown_events_is_told(con, tmp_path):
    rules = write(tmp_path, a=rule("Logon", {"a": {"EventID": 4624}, "condition": "a"}, logsource=FOR_SECURITY))
    con.execute("""CREATE TABLE events AS SELECT * FROM (VALUES ('Security', 'p', NULL, 'x'), ('Security', 'p', 4624, 'x'), ('Security', 'p', 4625, 'x'), (NULL, NULL, NULL, 'x'),
        ('System', 'p', 1, 'x'), ('Security', 'p', NULL, NULL)) t(channel, provider, event_id, error)""")
    rows = con.execute("SELECT channel, event_id, rule_title FROM evtx_sigma_of('events', $1) ORDER BY ALL", [rules]).fetchall()
    assert rows == [("Security", 4624, "Logon"), ("Security", 4625, None), ("Security", None, None), (None, None, None)]


@pytest.mark.parametrize("detection", ["s: {TargetUserName|exists: false}, condition: s", "s: {Absent: null}, condition: s",
                                       "s: {EventID: 4624}, condition: not s"])
def test_damage_without_a_record_matches_no_rule(con, tmp_path, detection):
    (tmp_path / "absent.yml").write_text(f"title: absent\nlogsource: {{product: windows}}\ndetection: {{{detection}}}\n")
    logs = [str(SAMPLES / f"damaged-{name}.evtx") for name in ("chunk", "records", "checksums")]
    con.execute("CREATE TABLE events AS FROM read_evtx(?)", [logs])
    rows = "SELECT rule_title, record_id, error IS NULL FROM {} ORDER BY ALL"
    expected = con.execute(rows.format("evtx_sigma(?, rules := ?)"), [logs, str(tmp_path)]).fetchall()
    assert con.execute(rows.format("evtx_sigma_of('events', ?)"), [str(tmp_path)]).fetchall() == expected
    assert {title for title, *_ in expected} == {"absent", None}


@pytest.mark.parametrize("sample", ["DC01-Security", "DC01-System", "oddities"])
def test_a_record_that_is_cut_or_damaged_matches_the_same_rules(con, tmp_path, sample):
    """At any byte of a record: of some, only the header is left, and of some not even the event's first value."""
    (tmp_path / "absent.yml").write_text("""title: absent
logsource: {product: windows}
detection: {s: {EventID: 4624}, condition: not s}
---
title: nobody
logsource: {product: windows}
detection: {s: {Computer: null}, condition: s}
""")
    data = (SAMPLES / f"{sample}.evtx").read_bytes()
    con.execute(f"CREATE TABLE places AS SELECT record_offset FROM read_evtx('{SAMPLES / sample}.evtx', location := true) WHERE record_offset IS NOT NULL ORDER BY ALL")
    places, chance = [place for place, in con.execute("FROM places").fetchall()], random.Random(7)
    rows = "SELECT rule_title, record_id, error IS NULL FROM {} ORDER BY ALL"
    unread = 0
    for place, after in [(chance.choice(places), after) for after in [24, 25, 28, 30, 40, 64, *(chance.randrange(24, 600) for _ in range(20))]]:
        for changed in (data[: place + after], data[: place + after] + bytes([255] * 8) + data[place + after + 8 :]):
            (tmp_path / "changed.evtx").write_bytes(changed)
            con.execute("CREATE OR REPLACE TABLE events AS FROM read_evtx(?)", [str(tmp_path / "changed.evtx")])
            unread += con.execute("SELECT count(*) FROM events WHERE error IS NOT NULL AND record_id IS NOT NULL AND event_id IS NULL").fetchone()[0]
            expected = con.execute(rows.format("evtx_sigma(?, rules := ?)"), [str(tmp_path / "changed.evtx"), str(tmp_path)]).fetchall()
            assert con.execute(rows.format("evtx_sigma_of('events', ?)"), [str(tmp_path)]).fetchall() == expected, (place, after)
            nothing = "error IS NOT NULL AND COLUMNS(* EXCLUDE (record_id, time_created, error, filename)) IS NULL"
            unknown = {record for record, in con.execute(f"SELECT record_id FROM events WHERE {nothing}").fetchall()}
            assert not {record for title, record, _ in expected if title} & unknown
    assert unread > 5


def test_damage_of_a_log_that_rules_are_for_stays(con, tmp_path):
    """At any byte of a record whose event no rule can match, as far as it can be read."""
    (tmp_path / "one.yml").write_text("""title: one
logsource: {product: windows, service: security}
detection: {s: {Absent: x}, condition: s}
""")
    data = bytearray((SAMPLES / "DC01-Security.evtx").read_bytes())
    [(place,)] = con.execute(f"SELECT record_offset FROM read_evtx('{SAMPLES}/DC01-Security.evtx', location := true) ORDER BY ALL LIMIT 1 OFFSET 3").fetchall()
    size, log, chance = int.from_bytes(data[place + 4 : place + 8], "little"), tmp_path / "changed.evtx", random.Random(8)
    rows, told = "SELECT record_id, error FROM {} ORDER BY ALL", 0
    # The last is in the size of the record, which says where the next one starts.
    for at in [*chance.sample(range(24, size - 4), 60), 5]:
        log.write_bytes(data[: place + at] + bytes([data[place + at] ^ 0xFF]) + data[place + at + 1 :])
        con.execute("CREATE OR REPLACE TABLE events AS FROM read_evtx(?)", [str(log)])
        expected = con.execute("SELECT record_id, error FROM events WHERE error IS NOT NULL ORDER BY ALL").fetchall()
        for call, arguments in [("evtx_sigma(?, rules := ?)", [str(log), str(tmp_path)]), ("evtx_sigma_of('events', ?)", [str(tmp_path)])]:
            assert con.execute(rows.format(call), arguments).fetchall() == expected, (at, call)
        told += len(expected)
    assert expected and told > 20


def test_an_interrupt_ends_it_soon(con, tmp_path):
    con.execute("CREATE TABLE events AS FROM read_evtx($1), range(2000)", [[str(SAMPLES / "DC01-Security.evtx")]])
    slow = {"a": {"|re": "(x+x+)+y|(a|b|ab)*c.{0,200}z"}, "condition": "a"}
    rules = write(tmp_path, **{f"r{i}": rule(f"R{i}", slow) for i in range(30)})
    with interrupted(con, after=1):
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
