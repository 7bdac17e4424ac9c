"""Judges evtx_from: the events of the samples in the form of each source, against read_evtx over the same logs.

The forms are written here as public samples and documentation have them (sources.tsv names them). What a source does not have is in LOST.
"""

import csv
import datetime
import io
import json
import re

import pytest
from client import quoted
from conftest import ROOT, SAMPLES, loaded

DATA = ROOT / "test" / "data" / "exports"
LOGS = [str(log) for log in sorted(SAMPLES.glob("*.evtx")) if log.name.startswith(("WS07", "DC01", "SRV"))]
ZONE = datetime.timezone(datetime.timedelta(hours=-5))
COLUMNS = "epoch_ns(time_created) AS time, * EXCLUDE (time_created, filename)"


def events(con):
    """The events of the samples that have fields, or nothing: a dictionary for each, by column."""
    cursor = con.execute(f"SELECT {COLUMNS} FROM read_evtx({LOGS}, xml := true, json := true) WHERE error IS NULL")
    names = [column[0] for column in cursor.description]
    return [dict(zip(names, row)) for row in cursor.fetchall()]


def iso(nanos, zone=datetime.timezone.utc, separator="T"):
    """A time with seven digits of the second, as Windows has it."""
    time = datetime.datetime.fromtimestamp(nanos // 10**9, zone)
    return f"{time:%Y-%m-%d{separator}%H:%M:%S}.{nanos % 10**9 // 100:07}"


def lines(rows):
    return "".join(json.dumps(row) + "\n" for row in rows)


def as_csv(rows, header=True, delimiter=","):
    names = list(dict.fromkeys(name for row in rows for name in row))
    text = io.StringIO()
    writer = csv.writer(text, delimiter=delimiter, lineterminator="\r\n")
    if header:
        writer.writerow(names)
    writer.writerows([row.get(name, "") if row.get(name) is not None else "" for name in names] for row in rows)
    return text.getvalue()


def signed(number):
    return number if number is None or number < 2**63 else number - 2**64


def text(value):
    return None if value is None else str(value)


LEVELS = {0: "LogAlways", 1: "Critical", 2: "Error", 3: "Warning", 4: "Information", 5: "Verbose"}


def winlogbeat(event):
    user_data = json.loads(event["user_data"]) if event["user_data"] else {}
    [(name, inner)] = user_data.items() if len(user_data) == 1 else [("", {})]
    winlog = {
        "channel": event["channel"], "computer_name": event["computer"], "event_id": str(event["event_id"]), "record_id": event["event_record_id"],
        "provider_name": event["provider"], "provider_guid": text(event["provider_guid"]), "version": event["version"], "task": event["task"],
        "opcode": "Info" if event["opcode"] == 0 else event["opcode"], "keywords": [event["keywords"]] if event["keywords"] is None else event["keywords"],
        "process": {"pid": event["process_id"], "thread": {"id": event["thread_id"]}}, "user": {"identifier": event["user_sid"]},
        "activity_id": text(event["activity_id"]), **({"event_data": event["event_data"]} if not user_data else {}),
        **({"user_data": {"xml_name": name, **inner}} if isinstance(inner, dict) and user_data else {}),
    }
    level = {1: "critical", 2: "error", 3: "warning", 4: "information", 5: "verbose"}.get(event["level"])
    return {"@timestamp": iso(event["time"]) + "Z", "event": {"code": str(event["event_id"])}, "log": {"level": level}, "winlog": winlog}


def nxlog(event):
    return {
        "EventTime": iso(event["time"], ZONE, " "), "Hostname": event["computer"], "Keywords": signed(event["keywords"]), "EventID": event["event_id"],
        "SourceName": event["provider"], "ProviderGuid": event["provider_guid"] and f"{{{str(event['provider_guid']).upper()}}}", "Version": event["version"],
        "Task": event["task"], "OpcodeValue": event["opcode"], "RecordNumber": event["event_record_id"], "ActivityID": text(event["activity_id"]),
        "ExecutionProcessID": event["process_id"], "ExecutionThreadID": event["thread_id"], "Channel": event["channel"], "UserID": event["user_sid"],
        "EventReceivedTime": "2024-03-05 01:02:03", "EventType": "AUDIT_SUCCESS", "AccountName": "x", "Domain": "y", "SourceModuleName": "in", "SourceModuleType": "im_msvistalog", "Severity": "INFO", **(event["event_data"] or {})}


def mordor(event):
    return {"TimeCreated": iso(event["time"]) + "Z", "Hostname": event["computer"], "SourceName": event["provider"], "EventID": event["event_id"],
            "Channel": event["channel"], "Task": str(event["task"]), "Level": str(event["level"]), "Keywords": event["keywords"] and hex(event["keywords"]),
            "@timestamp": "2024-03-05T01:02:03Z", **(event["event_data"] or {})}


def splunk(event):
    return {"_raw": event["xml"], "_time": iso(event["time"]), "host": event["computer"], "source": f"XmlWinEventLog:{event['channel']}",
            "sourcetype": "XmlWinEventLog", "EventCode": str(event["event_id"])}


def fields_as_xml(event):
    found = re.search("<EventData.*</EventData>", event["xml"], re.DOTALL)
    return found and found[0]


def security_event(event):
    return {
        "TenantId": "0a0b", "TimeGenerated": iso(event["time"]) + "Z", "SourceSystem": "OpsManager", "Account": "X\\y", "Computer": event["computer"],
        "EventSourceName": event["provider"], "Channel": event["channel"], "Task": event["task"], "Level": "8", "EventID": event["event_id"],
        "Activity": f"{event['event_id']} - x", "EventLevelName": LEVELS.get(event["level"]), "Type": "SecurityEvent", "EventRecordId": text(event["event_record_id"]),
        "SystemProcessId": event["process_id"], "SystemThreadId": event["thread_id"], "Keywords": event["keywords"] and hex(event["keywords"]),
        "Version": event["version"], "EventData": "", **(event["event_data"] or {})}


def event_table(event):
    data = fields_as_xml(event)
    return {
        "TenantId": "0a0b", "TimeGenerated [UTC]": portal(event["time"]), "Source": event["provider"], "EventLog": event["channel"], "Computer": event["computer"],
        "EventLevel": event["level"], "EventLevelName": LEVELS.get(event["level"]), "EventID": event["event_id"], "EventCategory": event["task"],
        "EventData": data and f'<DataItem type="System.XmlData" time="2024-03-05T01:02:03Z" sourceHealthServiceId="0a">{data}</DataItem>', "Type": "Event"}


def portal(nanos):
    time = datetime.datetime.fromtimestamp(nanos // 10**9, datetime.timezone.utc)
    return f"{time.month}/{time.day}/{time.year}, {time.hour % 12 or 12}:{time:%M:%S}.{nanos % 10**9 // 10**6:03} {time:%p}"


def powershell(event, as_text=False):
    """Properties have no names. PowerShell 5 writes other times than PowerShell 7."""
    values = list((event["event_data"] or {}).values())
    local = iso(event["time"], ZONE)
    return {
        "Id": event["event_id"], "Version": event["version"], "Qualifiers": event["qualifiers"], "Level": event["level"], "Task": event["task"],
        "Opcode": event["opcode"], "Keywords": signed(event["keywords"]), "RecordId": event["event_record_id"], "ProviderName": event["provider"],
        "ProviderId": text(event["provider_guid"]), "LogName": event["channel"], "ProcessId": event["process_id"], "ThreadId": event["thread_id"],
        "MachineName": event["computer"], "UserId": event["user_sid"] and {"BinaryLength": 12, "AccountDomainSid": None, "Value": event["user_sid"]},
        "TimeCreated": f"/Date({event['time'] // 10**6})/" if event["event_id"] % 2 else local + "-05:00",
        "ActivityId": text(event["activity_id"]), "RelatedActivityId": None,
        "Properties": [{"Value": {"BinaryLength": 28, "Value": value} if value.startswith("S-1-") else value} for value in values],
        "LevelDisplayName": "Information", "Message": None}


def powershell_csv(event):
    row = powershell(event)
    return {**row, "UserId": event["user_sid"], "TimeCreated": iso(event["time"], ZONE, " ")[:19],
            "Properties": "System.Collections.Generic.List`1[System.Diagnostics.Eventing.Reader.EventProperty]"}


def event_viewer(event):
    time = datetime.datetime.fromtimestamp(event["time"] // 10**9, ZONE)
    return [LEVELS.get(event["level"], ""), f"{time.day:02}.{time.month:02}.{time.year} {time:%H:%M:%S}", event["provider"], event["event_id"], "None", 'A "text"\r\nof two lines.']


def hayabusa(event):
    short = {"Security": "Sec", "System": "Sys", "Microsoft-Windows-Sysmon/Operational": "Sysmon"}
    return {"Timestamp": iso(event["time"], ZONE, " ")[:23] + " -05:00", "RuleTitle": "x", "Level": "info", "Computer": event["computer"],
            "Channel": short.get(event["channel"], event["channel"]), "EventID": event["event_id"], "RecordID": event["event_record_id"],
            "AllFieldInfo": event["event_data"] or "-", "RuleFile": "x.yml", "EvtxFile": "x.evtx"}


def separate(value):
    """The members of evtx_dump with attributes beside their elements."""
    if not isinstance(value, dict):
        return value
    found = {}
    for name, inner in value.items():
        if isinstance(inner, dict) and "#attributes" in inner:
            found[f"{name}_attributes"] = inner["#attributes"]
            rest = {key: separate(own) for key, own in inner.items() if key != "#attributes"}
            inner = rest.get("#text") if set(rest) <= {"#text"} else rest
            if inner is None:
                continue
        found[name] = separate(inner)
    return found


def chainsaw(event):
    return {"group": "Sigma", "kind": "individual", "document": {"kind": "evtx", "path": "x.evtx", "data": separate(json.loads(event["json"]))},
            "name": "x", "timestamp": iso(event["time"]) + "+00:00"}


ALL = ["time", "record_id", "event_record_id", "event_id", "version", "level", "task", "opcode", "keywords", "qualifiers", "provider", "provider_guid",
       "event_source_name", "channel", "computer", "process_id", "thread_id", "user_sid", "activity_id", "event_data", "user_data"]  # fmt: skip
# For each form: its source, its name, the text of the file, other arguments, the precision of its times, and the columns that it does not have.
FORMS = [
    ("winlogbeat", "lines.ndjson", lambda all: lines(map(winlogbeat, all)), "", 100, "qualifiers level event_source_name"),
    ("winlogbeat", "hits.ndjson", lambda all: lines({"_index": "x", "_id": "y", "_source": winlogbeat(event)} for event in all), "", 100, "qualifiers level event_source_name"),
    ("winlogbeat", "response.json", lambda all: json.dumps({"took": 5, "_shards": {"failures": [{"a": 1}]}, "hits": {"total": {"value": 9}, "hits": [{"_id": "y", "_source": winlogbeat(event)} for event in all]}}), "", 100, "qualifiers level event_source_name"),
    ("nxlog", "nxlog.json", lambda all: lines(map(nxlog, all)), "time_zone := '-05:00'", 100, "qualifiers level event_source_name user_data"),
    ("nxlog", "mordor.json", lambda all: lines(map(mordor, all)), "", 100, "record_id event_record_id version opcode qualifiers provider_guid event_source_name process_id thread_id user_sid activity_id user_data"),
    ("splunk", "results.json", lambda all: json.dumps({"preview": False, "results": list(map(splunk, all))}, indent=1), "", 100, "user_data"),
    ("splunk", "result.json", lambda all: lines({"preview": False, "offset": 0, "result": splunk(event)} for event in all), "", 100, "user_data"),
    ("splunk", "splunk.csv", lambda all: as_csv(list(map(splunk, all))), "", 100, "user_data"),
    ("sentinel", "security.json", lambda all: json.dumps(list(map(security_event, all)), indent=2), "", 100, "qualifiers opcode provider_guid event_source_name user_sid activity_id user_data"),
    ("sentinel", "event.csv", lambda all: as_csv(list(map(event_table, all))), "date_order := 'mdy'", 10**6, "record_id event_record_id version opcode keywords qualifiers provider_guid event_source_name process_id thread_id user_sid activity_id user_data"),
    ("powershell", "powershell.json", lambda all: json.dumps(list(map(powershell, all)), indent=4), "", 10**6, "event_source_name user_data event_data"),
    ("powershell", "powershell.csv", lambda all: "#TYPE System.Diagnostics.Eventing.Reader.EventLogRecord\r\n" + as_csv(list(map(powershell_csv, all))), "time_zone := '-05:00'", 10**9, "event_source_name user_data event_data"),
    ("event_viewer", "viewer.csv", lambda all: "Ebene,Datum und Uhrzeit,Quelle,Ereignis-ID,Aufgabenkategorie\r\n" + as_csv([dict(enumerate(event_viewer(event))) for event in all], header=False), "time_zone := '-05:00'", 10**9, " ".join(set(ALL) - {"time", "event_id", "provider"})),
    ("hayabusa", "hayabusa.jsonl", lambda all: lines(map(hayabusa, all)), "", 10**6, "version level task opcode keywords qualifiers provider provider_guid event_source_name process_id thread_id user_sid activity_id user_data"),
    ("chainsaw", "chainsaw.json", lambda all: json.dumps(list(map(chainsaw, all))), "", 100, "user_data"),
    ("evtx_dump", "dump.jsonl", lambda all: lines(json.loads(event["json"]) for event in all), "", 100, ""),
]


def normal(column, value):
    if column == "event_data" and value:
        # Some leave out what is empty. A line break is one character in XML.
        return {name: text.lower().replace("\r\n", "\n") for name, text in value.items() if text not in ("", None)}
    return text(value)


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    folder = tmp_path_factory.mktemp("exports")
    with loaded() as con:
        found = [event for event in events(con) if event["user_data"] is None or json.loads(event["user_data"])]
    for source, name, write, *_ in FORMS:
        (folder / f"{source}-{name}").write_bytes(write(found).encode())
    return folder, found


@pytest.mark.parametrize("form", FORMS, ids=lambda form: "-".join(form[:2]))
def test_a_source_has_the_events_of_the_log(con, written, form):
    """Each column that the source has, without naming the source."""
    (folder, expected), (source, name, _, arguments, precision, lost) = written, form
    path = folder / f"{source}-{name}"
    cursor = con.execute(f"SELECT {COLUMNS} FROM evtx_from({', '.join(filter(None, [quoted(path), arguments]))})")
    names = [column[0] for column in cursor.description]
    found = [dict(zip(names, row)) for row in cursor.fetchall()]
    assert len(found) == len(expected) > 90
    assert [row["error"] for row in found if row["error"]] == []
    columns = [column for column in ALL if column not in lost.split()]
    for ours, theirs in zip(expected, found):
        for column in columns:
            mine, other = ours[column], theirs[column]
            if column == "time":
                mine, other = mine // precision, other // precision
            if column == "record_id":
                mine = ours["event_record_id"]
            if column == "event_data" and ours["user_data"] is not None:
                continue
            assert normal(column, mine) == normal(column, other), (column, ours, theirs)
    # Names of the source give the same.
    named = con.execute(f"SELECT count(*) FROM evtx_from({', '.join(filter(None, [quoted(path), f'source := {quoted(source)}', arguments]))}) WHERE error IS NULL").fetchone()
    assert named == (len(expected),)


@pytest.mark.parametrize("form", FORMS, ids=lambda form: "-".join(form[:2]))
def test_what_reads_events_reads_those_of_a_source(con, written, form):
    """The time line, logons, facts, rules and a search over the table, as over that of the log."""
    (folder, expected), (source, name, _, arguments, precision, lost) = written, form
    path = folder / f"{source}-{name}"
    # As docs/exports.md makes a table that can be searched.
    searched = """SELECT *, [{name: field.key, value: field.value} FOR field IN map_entries(event_data)] AS fields,
        array_to_string(map_values(event_data), chr(10)) AS text"""
    con.execute(f"CREATE TABLE exported AS {searched} FROM evtx_from({', '.join(filter(None, [quoted(path), arguments]))})")
    con.execute(f"CREATE TABLE logged AS {searched} FROM read_evtx({LOGS}) WHERE error IS NULL")
    counts = {}
    for table in ("exported", "logged"):
        counts[table] = [con.execute(f"SELECT count(*) FROM {call}").fetchone()[0] for call in (
            f"evtx_timeline_of('{table}')", f"evtx_logons_of('{table}')", f"evtx_facts_of('{table}')", f"evtx_sigma_of('{table}', '{SAMPLES}/rules')",
            f"evtx_search_of('{table}', 'jon.smith')")]
    if not {"event_data", "provider", "channel", "keywords", "user_data"} & {*lost.split()} and precision == 100:
        assert counts["exported"] == counts["logged"], counts
    elif not {"event_data", "provider"} & {*lost.split()}:
        # Without what is in user_data.
        assert counts["exported"][0] > counts["logged"][0] * 0.8 and counts["exported"][1] > 0, counts


def refused(con, call):
    with pytest.raises(Exception) as error:
        con.execute(f"SELECT count(error) FROM {call}").fetchall()
    return str(error.value)


def test_a_source_must_be_known(con, written, tmp_path):
    """What was found, what was expected, and names that may be meant."""
    folder, _ = written
    path = tmp_path / "x.json"
    path.write_text('{"a": 1, "b": 2}\n')
    why = refused(con, f"evtx_from({quoted(path)})")
    assert "its first rows have a, b. Expected an event of evtx_dump, which has Event.System;" in why and "an event of Hayabusa, which has " in why
    # Two tools' rows in a file.
    path.write_text((folder / "winlogbeat-lines.ndjson").read_text().splitlines()[0] + "\n" + (folder / "nxlog-nxlog.json").read_text().splitlines()[0])
    assert "its rows fit several sources: winlogbeat, nxlog. Pass one of them as source" in refused(con, f"evtx_from({quoted(path)})")
    # Whose rows are errors if they are named.
    rows = con.execute(f"SELECT error FROM evtx_from({quoted(path)}, source := 'elastic')").fetchall()
    assert [error is None for (error,) in rows] == [True, False] and "expected an event of Winlogbeat, which has winlog" in rows[1][0]
    assert "source must be one of 'evtx_dump', 'winlogbeat', 'elastic', " in refused(con, f"evtx_from({quoted(path)}, source := 'winlogbeats')")
    assert "unknown time zone 'Europe/Berln': pass a name such as 'Europe/Berlin', or an offset such as '+01:00'. Did you mean 'Europe/Berlin'?" in refused(con, f"evtx_from({quoted(path)}, time_zone := 'Europe/Berln')")
    assert "date_order must be one of 'dmy', 'mdy', not 'ymd'" in refused(con, f"evtx_from({quoted(path)}, date_order := 'ymd')")
    # In a folder, such a file is a row.
    (tmp_path / "y.json").write_text((folder / "winlogbeat-lines.ndjson").read_text().splitlines()[0])
    path.write_text('{"a": 1}\n')
    rows = con.execute(f"SELECT event_id IS NOT NULL, error FROM evtx_from({quoted(tmp_path)}) ORDER BY filename").fetchall()
    assert [row[0] for row in rows] == [False, True] and "the source is not known" in rows[0][1]


def test_other_tools_are_errors_of_each_source(con, written, tmp_path):
    """No source takes the rows of another one."""
    folder, expected = written
    wrong = 0
    for source in {form[0] for form in FORMS}:
        for other, name, *_ in FORMS:
            if other != source and not {source, other} <= {"evtx_dump", "chainsaw"}:
                rows = con.execute(f"SELECT count(*), count(error) FROM evtx_from('{folder}/{other}-{name}', source := '{source}')").fetchone()
                assert rows[0] == rows[1] >= 1, (source, other, name)
                wrong += rows[1]
    assert wrong > 10_000


def test_times_are_not_guessed(con, written, tmp_path):
    """Without an offset they need a zone, in which they must be once; dates with slashes need an order."""
    path = tmp_path / "x.json"

    def read(time, arguments=""):
        row = {"EventTime": time, "Hostname": "PC", "SourceName": "P", "EventID": 1, "Channel": "c"}
        path.write_text(json.dumps(row))
        [(found, error)] = con.execute(f"SELECT time_created::VARCHAR, error FROM evtx_from({quoted(path)}{arguments})").fetchall()
        return found, error and error.split(": ", 2)[2]

    berlin = ", time_zone := 'Europe/Berlin'"
    assert read("2024-03-05 08:58:00") == (None, "EventTime '2024-03-05 08:58:00' has no offset: pass time_zone := 'Europe/Berlin', or the like")
    assert read("2024-03-05 08:58:00", berlin) == ("2024-03-05 07:58:00", None)
    assert read("2024-07-05 08:58:00.5", berlin) == ("2024-07-05 06:58:00.5", None)
    assert read("2024-03-05 08:58:00", ", time_zone := '-03:30'") == ("2024-03-05 12:28:00", None)
    assert read("2024-03-05T08:58:00+09:00", berlin) == ("2024-03-04 23:58:00", None)
    for twice in ("2024-10-27 02:30:00", "2024-03-31 02:30:00"):
        assert read(twice, berlin) == (None, f"EventTime '{twice}' is a time that the zone has twice or not at all")
    assert "pass date_order := 'mdy' or 'dmy'" in read("5/3/2024 8:58:00 PM", berlin)[1]
    assert read("5/3/2024 8:58:00 PM", berlin + ", date_order := 'dmy'") == ("2024-03-05 19:58:00", None)
    assert read("5/3/2024 12:58:00 AM", berlin + ", date_order := 'mdy'") == ("2024-05-02 22:58:00", None)
    assert read("05.03.2024 08:58:00", berlin) == ("2024-03-05 07:58:00", None)
    for wrong in ("yesterday", "2024-13-01 00:00:00", "1/2/3/2024 00:00", "2024-03-05 25:00:00", "2024-03-05 13:00:00 PM", "2024-03-05", "2024-03-05 1:2:3:4"):
        assert read(wrong, berlin + ", date_order := 'dmy'") == (None, f"EventTime '{wrong}' is not a time")


def test_documents_and_csv_are_read_in_pieces(con, written, tmp_path):
    """Larger than a piece, with records that are damaged or too long, in a file that is cut."""
    folder, expected = written
    event = nxlog(expected[0])
    long = {**event, "Message": "x" * (3 << 20)}
    all = [event] * 3000 + [long] + [event] * 3000
    zone = ", time_zone := '-05:00'"

    def counts(name, text):
        (tmp_path / name).write_text(text, newline="")
        return con.execute(f"SELECT count(*) FILTER (error IS NULL), list(DISTINCT split_part(error, ': ', 2)) FILTER (error IS NOT NULL) FROM evtx_from('{tmp_path}/{name}'{zone})").fetchone()

    for indent in (None, 1):
        document = json.dumps(all, indent=indent)
        sound, errors = counts("x.json", document)
        assert sound == 6000 and len(errors) == 1 and "cannot read line" in errors[0]
        sound, errors = counts("cut.json", document[:-2000])
        assert 5990 < sound < 6000 and len(errors) >= 2
    rows = as_csv([{**row, "Message": 'a "b"\r\nc, d'} for row in all[:3000]])
    assert counts("x.csv", rows + '"no end of quotes,' + "y" * (3 << 20) + "\r\n" + rows.partition("\r\n")[2])[0] == 6000
    assert counts("tabs.csv", as_csv([{**event, "Message": "a"}] * 5, delimiter="\t"))[0] == 5
    assert counts("objects.json", "\n".join(json.dumps(event, indent=2) for _ in range(7)))[0] == 7
    [(_, error)] = con.execute(f"SELECT event_id, error FROM evtx_from('{tmp_path}/x.json'{zone}) WHERE error IS NOT NULL").fetchall()
    assert error.endswith(": it has more than 2 MiB")
    (tmp_path / "short.csv").write_text("EventTime,Hostname,SourceName,EventID,Channel\n2024-03-05T00:00:00Z,a,b,1,c\n1,2\n")
    rows = con.execute(f"SELECT event_id, error FROM evtx_from('{tmp_path}/short.csv') ORDER BY ALL").fetchall()
    assert rows == [(1, None), (None, f"{tmp_path}/short.csv: cannot read line 3 at byte 75: it has 2 values, and the header has 5")]


def test_xml_that_is_damaged_is_an_error(con, tmp_path):
    path = tmp_path / "x.json"
    system = "<System><Provider Name='P'/><EventID>1</EventID><TimeCreated SystemTime='2024-03-05T00:00:00Z'/><Channel>c</Channel><Computer>PC</Computer></System>"
    texts = [f"<Event>{system}</Event>", f"<Event>{system}", f"<Event>{system.replace('1<', 'x<')}</Event>", f"<Event>{system.replace('Computer>', 'Other>')}</Event>",
             f"<Event>{system}</Event>more", f"<Event>{system}<RenderingInfo><Message>The text is cu", f"<Event>{system}<RenderingInfo><Message>a < b</Message></RenderingInfo></Event>", "03/05/2024 08:58:00 AM\nLogName=Security\n"]
    path.write_text(lines({"result": {"_raw": text}} for text in texts))
    found = [(event_id, error and error.split(": ", 2)[2]) for event_id, error in con.execute(f"SELECT event_id, error FROM evtx_from({quoted(path)})").fetchall()]
    assert found == [
        (1, None), (None, "the XML cannot be read: it ends before its event does"), (None, "the XML cannot be read: cannot read EventID 'x'"),
        (1, "its XML has no computer"), (1, "the XML cannot be read: text follows its event"),
        (1, "the XML cannot be read: cannot read RenderingInfo (it ends before its event does)"), (1, "the XML cannot be read: cannot read RenderingInfo (it has a `<` that starts no tag)"), (None, "expected an event of Splunk, which has an event as XML in _raw")]
