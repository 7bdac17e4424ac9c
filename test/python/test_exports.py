"""Judges evtx_from: the JSON of the `evtx` crate gives the events that read_evtx reads, in all columns.

Two versions of the crate: the Python package, which writes JSON as evtx_dump did before 0.15, and the one that `json` is from.
EVTX_CORPUS names a folder with more logs. The exports of the other tools are judged by test/sql/exports.test, by hand-made lines.
Python's json says which of their lines, once changed, are not JSON or have a name twice.
"""

import bz2
import collections
import copy
import csv
import datetime
import functools
import gzip
import json
import os
import pathlib
import random
import re
import time

import evtx
import pytest
from client import quoted
from conftest import ROOT, SAMPLES, interrupted, loaded, write_zip
from judge import peak, reset_peak

FOLDERS = [SAMPLES, *(os.environ[name] for name in ("EVTX_CORPUS", "EVTX_VARIED") if os.environ.get(name))]
LOGS = [log for folder in FOLDERS for log in sorted(pathlib.Path(folder).rglob("*.evtx"))]
# `oddities.evtx` has elements that no log of Windows has.
LOGS = [log for log in LOGS if log.name != "oddities.evtx"]


def before_0_15(_, log):
    """The events of a log, a line of JSON for each."""
    records = evtx.PyEvtxParser(str(log)).records_json()
    while True:
        try:
            record = next(records, None)
        except RuntimeError:
            continue
        if record is None:
            return
        yield record["data"].replace("\n", "")


def since_0_15(con, log):
    """The same, as newer versions write them."""
    for (text,) in con.execute(f"SELECT json FROM read_evtx({quoted(log)}, json := true) WHERE json IS NOT NULL").fetchall():
        yield text.replace("\n", "")


def reason(column, ours, theirs, is_old):
    """Why a value differs; None if nothing is known."""
    if column == "record_id":
        return "the ID of the event"
    if column == "channel" and (ours, theirs) == ("", None):
        return "empty element"
    if column == "message" and theirs is None:
        return "saved messages"
    if column == "error" and (theirs or "").endswith("Event.ProcessingErrorData has no column"):
        return "ProcessingErrorData"
    if column == "error" and theirs is None:
        return "damage after the event"
    if column == "error" and ours is not None:
        return "damage in the event"
    if column == "event_data" and (ours, theirs) == (None, {}):
        return "neither EventData nor UserData"
    if column == "event_data" and ours is not None and theirs is not None:
        names = [name for name in {*ours, *theirs} if ours.get(name) != theirs.get(name)]
        reasons = {value_reason(ours.get(name), theirs.get(name), is_old) for name in names}
        # The order counts, too.
        return reasons if reasons and None not in reasons else None
    if is_old and column == "time_created" and ours // 1000 == theirs // 1000:
        return "microseconds"
    if is_old and column == "user_data" and braceless(ours) == braceless(theirs):
        return "GUIDs"
    return None


def value_reason(ours, theirs, is_old):
    if ours is None and theirs == "":
        return "empty value" if is_old else None
    if is_old and re.fullmatch(r"\d{4}-.*\dZ", ours or "") and ours[:-2] == theirs[:-1]:
        return "microseconds"
    if theirs is None:
        return "ProcessingErrorData"
    return None


def braceless(text):
    return re.sub(r"\{([0-9a-f-]{36})\}", r"\1", text.lower())


def rows(con, query):
    """By event_record_id, in no order."""
    cursor = con.execute(f"SELECT * EXCLUDE (filename) REPLACE (epoch_ns(time_created) AS time_created) FROM {query}")
    columns, found = [column[0] for column in cursor.description], collections.defaultdict(list)
    for row in cursor.fetchall():
        record = dict(zip(columns, row))
        found[record["event_record_id"]].append(record)
    return found


@pytest.mark.parametrize(("lines", "of_samples"), [(before_0_15, 290), (since_0_15, 102)])
def test_the_crate_gives_the_same_events(tmp_path, lines, of_samples):
    is_old, reasons, compared = lines is before_0_15, collections.Counter(), 0
    with loaded() as con:
        # Each of the two forms for half of the logs.
        for log in LOGS[is_old::2]:
            export = tmp_path / "export.jsonl"
            try:
                export.write_text("".join(line + "\n" for line in lines(con, log)), encoding="utf-8")
            except OSError:
                continue  # The crate does not open the log.
            ours = rows(con, f"read_evtx({quoted(log)})")
            for record_id, theirs in rows(con, f"evtx_from({quoted(export)}, source := 'evtx_dump')").items():
                for event in theirs:
                    # Several records can have one ID.
                    mine = min(ours[record_id], key=lambda record: sum(record[column] != event[column] for column in event))
                    compared += 1
                    for column, value in event.items():
                        if value != mine[column] or isinstance(value, dict) and [*value] != [*mine[column]]:
                            why = reason(column, mine[column], value, is_old)
                            assert why, (log.name, record_id, column, mine[column], value)
                            reasons[str(why)] += 1
    assert compared > 300 if len(FOLDERS) > 1 else compared == of_samples, compared
    assert set(reasons) >= {"the ID of the event", "saved messages"}


def test_bad_lines_are_rows(con, tmp_path):
    """Invalid JSON, invalid UTF-8, and what is not an event do not hide the other lines, nor stop the query."""
    system = ('"Provider":{"#attributes":{"Name":"P"}},"TimeCreated":{"#attributes":{"SystemTime":"2024-03-05T08:58:00Z"}},'
              '"Channel":null,"Computer":"PC"')
    good = ('{"Event":{"System":{"EventID":{"#attributes":{"Qualifiers":7},"#text":42},"EventRecordID":"9",' + system
            + '},"EventData":{"A":1,"A":"b"}}}')
    bad = [b"not JSON", b'{"Event":{"System":{"EventID":1}', b'{"Event":{"System":{"Channel":"\xff"}}}', b"[]", b"7", b'{"Event":5}', b'{"event":{}}']
    export = tmp_path / "export.jsonl"
    export.write_bytes(b"\n".join([good.encode(), *bad, b"", good.encode()]))
    found = con.execute(f"SELECT event_id, qualifiers, record_id, event_data, error FROM evtx_from({quoted(export)}, source := 'evtx_dump')").fetchall()
    assert [row for row in found if row[-1] is None] == [(42, 7, 9, {"A": "1", "A_1": "b"}, None)] * 2
    errors = [row for row in found if row[-1] is not None]
    assert [row[:-1] for row in errors] == [(None, None, None, None)] * len(bad)
    why = ["it is not JSON"] * 2 + ["it is not UTF-8 after 31 bytes"] + ["expected an event of evtx_dump, which has Event.System"] * 4
    offsets = [len(good) + 1 + sum(len(line) + 1 for line in bad[:nth]) for nth in range(len(bad))]
    assert [row[-1] for row in errors] == [
        f"{export}: cannot read line {nth} at byte {offset}: {one}" for nth, (offset, one) in enumerate(zip(offsets, why), 2)]


# An event of each tool, and where it has what.
NAMES = {"SubjectUserName": "a", "LogonType": "3"}
WINLOGBEAT = {
    "@timestamp": "2024-03-05T08:58:00.441Z", "event": {"code": "4624"}, "host": {"name": "PC"}, "log": {"level": "information"},
    "winlog": {"channel": "Security", "computer_name": "PC", "event_id": "4624", "record_id": 7, "provider_name": "P", "event_data": NAMES},
}
SYSTEM = {"Version": 0, "Level": 0, "Task": 1, "Opcode": 0, "EventRecordID": 7, "Channel": "Security", "Computer": "PC"}
EVTX_DUMP = {"Event": {"System": {
    **SYSTEM, "Provider": {"#attributes": {"Name": "P"}}, "EventID": 4624,
    "TimeCreated": {"#attributes": {"SystemTime": "2024-03-05T08:58:00.441Z"}}}, "EventData": NAMES}}
VELOCIRAPTOR = {"System": {
    **SYSTEM, "Provider": {"Name": "P"}, "EventID": {"Value": 4624}, "TimeCreated": {"SystemTime": 1709629080.441}}, "EventData": NAMES}
HUNTER = {"EventTime": "2024-03-05T08:58:00.441Z", "Computer": "PC", "Channel": "Security", "Provider": "P", "EventID": 4624,
          "EventRecordID": 7, "UserSID": "S-1-5-18", "EventData": NAMES}
EVTXECMD = {"RecordNumber": 7, "EventRecordId": "7", "TimeCreated": "2024-03-05T08:58:00.4410000+00:00", "EventId": 4624, "Level": "Info",
            "Provider": "P", "Channel": "Security", "Computer": "PC",
            "Payload": json.dumps({"EventData": {"Data": [{"@Name": name, "#text": value} for name, value in NAMES.items()]}})}
# Of tools without a source.
NXLOG = {"EventTime": "2024-03-05 08:58:00", "Hostname": "PC", "Keywords": -9214364837600034816, "EventType": "AUDIT_SUCCESS", "EventID": 4624,
         "SourceName": "P", "RecordNumber": 7, "Channel": "Security", "Message": "", "SubjectUserName": "a", "LogonType": "3"}
WINLOGBEAT_6 = {"@timestamp": "2024-03-05T08:58:00.441Z", "computer_name": "PC", "event_id": 4624, "log_name": "Security", "event_data": NAMES}
SEPARATE = {"Event": {"Event_attributes": {"xmlns": "x"}, "System": {
    **SYSTEM, "Provider": None, "Provider_attributes": {"Name": "P"}, "EventID": 4624, "TimeCreated": None,
    "TimeCreated_attributes": {"SystemTime": "2024-03-05T08:58:00.441Z"}}, "EventData": NAMES}}
CHAINSAW = {"group": "a", "kind": "individual", "document": {"kind": "evtx", "data": EVTX_DUMP}}
HAYABUSA = {"Timestamp": "2024-03-05 08:58:00.441 +00:00", "Computer": "PC", "Channel": "Sec", "EventID": 4624, "Level": "info", "RecordID": 7,
            "Details": {"User": "a"}}
OTHERS = [NXLOG, WINLOGBEAT_6, SEPARATE, CHAINSAW, HAYABUSA, {}, {"EventID": 4624}, {"message": "text"}]

EXPORTS = {
    "winlogbeat": [WINLOGBEAT],
    "evtx_dump": [EVTX_DUMP],
    "velociraptor": [VELOCIRAPTOR, HUNTER],
    "evtxecmd": [EVTXECMD],
}
PLACES = {
    "winlogbeat": (("@timestamp",), ("winlog", "event_id"), ("winlog", "record_id"), ("winlog", "event_data")),
    "evtx_dump": (("Event", "System", "TimeCreated", "#attributes", "SystemTime"), ("Event", "System", "EventID"),
                            ("Event", "System", "EventRecordID"), ("Event", "EventData")),
    "velociraptor": (("System", "TimeCreated", "SystemTime"), ("System", "EventID", "Value"), ("System", "EventRecordID"), ("EventData",)),
    "evtxecmd": (("TimeCreated",), ("EventId",), ("EventRecordId",), ("Payload",)),
}


def changed(event, place, value):
    event = copy.deepcopy(event)
    inner = event
    for name in place[:-1]:
        inner = inner[name]
    inner[place[-1]] = value
    return event


def read_lines(con, source, lines, tmp_path):
    export = tmp_path / "export.json"
    export.write_text("".join((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in lines), encoding="utf-8")
    columns = "event_id, record_id, time_created IS NOT NULL, provider, channel, computer, event_data, error"
    return con.execute(f"SELECT {columns} FROM evtx_from({quoted(export)}, source := {quoted(source.removesuffix('_csv'))})").fetchall()


@pytest.mark.parametrize("source", EXPORTS)
def test_what_is_no_event_of_the_tool_says_what_was_expected(con, tmp_path, source):
    """Each tool's events in each source: its own are events, those of others are errors that name the tool."""
    tool = {"winlogbeat": "Winlogbeat", "evtx_dump": "evtx_dump", "velociraptor": "Velociraptor",
            "evtxecmd": "EvtxECmd"}[source]
    own = EXPORTS[source]
    others = [event for name, events in EXPORTS.items() if name != source for event in events] + OTHERS
    # evtx_dump has two forms.
    others = [event for event in others if source != "evtx_dump" or event is not SEPARATE]
    found = read_lines(con, source, own + others + own, tmp_path)
    event = (4624, 7, True, "P", "Security", "PC", NAMES, None)
    assert found[:len(own)] == found[len(own) + len(others):] == [event] * len(own)
    for other, row in zip(others, found[len(own):]):
        assert row[-1] and re.search(rf": cannot read line \d+ at byte \d+: expected an event of {tool}, which has ", row[-1]), (other, row)


@pytest.mark.parametrize("source", EXPORTS)
def test_values_of_another_kind_are_errors(con, tmp_path, source):
    """A time that is none, numbers that are not whole, and fields that are no object: the row says so, and which."""
    time, number, record, data = PLACES[source]
    event, is_text = EXPORTS[source][0], data == ("Payload",)
    cases = [(time, value, "not a time") for value in ["yesterday", "", "2024-13-01T00:00:00Z", "2024-03-05 25:00:00", True, {"a": 1}]]
    cases += [(place, value, "not a whole number") for place in (number, record) for value in [4624.5, "4624.5", -1, "x", "0x10", 1e-3, True]]
    cases += [(number, 2**32, "larger than 4294967295"), (record, 2**64, "larger than 18446744073709551615")]
    cases += [(time, value, "not a time") for value in ["infinity", "-infinity", "epoch", "now", "0001-01-01T00:00:00Z", "99999-01-01T00:00:00Z",
              "2024-03-05", "2024-03-05T24:00:00Z", "2024-02-30T00:00:00Z", "2024-03-05T08:58:60Z", "2024-03-05T08:58:00+1", "1677-01-01T00:00:00Z"]]
    cases += [(data, json.dumps(value) if is_text else value, "not an object") for value in [[1, 2], "text", 5, 1.5, True]]
    if is_text:
        cases += [(data, json.dumps({"EventData": value}), "not an object") for value in [[1, 2], "text", 5]]
    qualifiers = {"#text": 4624, "#attributes": {"Qualifiers": 2**16}}
    if source == "evtx_dump":
        cases += [(("Event", "System", "Keywords"), value, "not a whole number") for value in ["x", "0x", -1]]
        cases += [(number, qualifiers, "Qualifiers is larger than 65535")]
    # What sound exports have.
    cases += [(time, value, None) for value in ["1601-01-01T00:00:00Z", "2024-03-05T08:58:00.1234567Z", "2024-03-05T08:58:00+01:00"]]
    cases += [(number, value, None) for value in [4624, "4624", 4624.0, 0]]
    cases += [(data, json.dumps({"EventData": {"Data": []}}) if is_text else {}, None)]
    found = read_lines(con, source, [changed(event, place, value) for place, value, _ in cases], tmp_path)
    for (place, value, why), row in zip(cases, found):
        assert (row[-1] or "").endswith(why or ""), (place, value, row)
        assert (row[-1] is None) == (why is None), (place, value, row)
        assert place != time or not row[2] or str(value).startswith("2024-"), (value, row)
        if place == number and why and value != qualifiers:
            assert row[0] is None, (value, row)
    assert len(found) == len(cases)


@pytest.mark.parametrize("source", EXPORTS)
def test_names_that_occur_again(con, tmp_path, source):
    """In fields, a number that no other field has makes them unique; a second event ID is an error."""
    event = EXPORTS[source][0]
    fields = json.dumps(NAMES)

    def read(names):
        if source == "evtxecmd":
            payload = json.dumps({"EventData": {"Data": [{"@Name": name, "#text": str(at)} for at, name in enumerate(names)]}})
            line = json.dumps({**event, "Payload": payload})
        else:
            line = json.dumps(event).replace(fields, "{" + ",".join(f'"{name}":"{at}"' for at, name in enumerate(names)) + "}")
        start = time.process_time()
        [row] = read_lines(con, source, [line], tmp_path)
        assert row[-1] is None and list(row[-2].values()) == [str(at) for at in range(len(names))]
        return list(row[-2]), time.process_time() - start

    for names, expected in [("a a a", "a a_1 a_2"), ("a a_1 a", "a a_1 a_2"), ("a a a_1", "a a_1 a_1_1"), ("a A a", "a A a_1")]:
        assert read(names.split())[0] == expected.split()
    (_, some), (names, twice) = read(["a"] * 20_000), read(["a"] * 40_000)
    assert names[-1] == "a_39999"
    # With the square of their count, 1,000 take 0.4 s.
    assert twice < 3 * some + 0.3
    if source != "evtxecmd":
        place = PLACES[source][2][-1]
        [row] = read_lines(con, source, [json.dumps(event).replace(f'"{place}"', f'"{place}": 1102, "{place}"')], tmp_path)
        assert f"the name {place} occurs twice" in row[-1]


def test_unnamed_values_beside_their_names(con, tmp_path):
    for source, place, fields, expected in [
        ("evtx_dump", ("Event", "EventData"), {"Data": {"#text": ["x", "y"]}, "param1": "z"}, {"param1": "x", "param2": "y", "param1_1": "z"}),
        ("velociraptor", ("EventData",), {"Data": ["x"], "param1": "z", "Name": "q"}, {"param1": "x", "param1_1": "z", "Name": "q"}),
    ]:
        [row] = read_lines(con, source, [changed(EXPORTS[source][0], place, fields)], tmp_path)
        assert row[-2:] == (expected, None)


def test_other_members_of_events_of_evtx_dump(con, tmp_path):
    """What is no column of an event is told."""
    names = ["EventData_1", "UserData_1", "System_1", "DebugData", "BinaryEventData", "ProcessingErrorData", "x"]
    known = [{"#attributes": {"xmlns": "x"}}, {"UserData": {"x": {"a": "1"}}}, {"RenderingInfo": {"Message": "text"}}]
    events = [{"Event": {**EVTX_DUMP["Event"], **more}} for more in [*known, *({name: {"a": "1"}} for name in names)]]
    found = [row[-1] and row[-1].rpartition(": ")[2] for row in read_lines(con, "evtx_dump", events, tmp_path)]
    assert found == [None] * len(known) + [f"Event.{name} has no column" for name in names]


# The lines of test/data/exports that are events.
EPOCH = datetime.datetime(1970, 1, 1)
NUMBERS = {"UTINYINT": 2**8, "USMALLINT": 2**16, "UINTEGER": 2**32, "UBIGINT": 2**64}
GUID = re.compile(r"(\{)?[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}(?(1)\})")
# Names whose values are checked otherwise, as the tests above show.
OTHERWISE = {"EventID", "Value", "event_id", "code", "EventId", "TimeCreated", "SystemTime", "@timestamp"}
VALUES = [5, 255, 300, 2**32, 2**64, -1, 4624.5, 7.0, "7", "7.0", "x", "", None, True, [], [1], {}, {"a": 1}, "{fc65ddd8-d6ef-4962-83d5-6e5cfe9ce148}"]


def sound_events(source):
    [export] = (ROOT / "test" / "data" / "exports").glob(source + ".*json*")
    return [json.loads(line) for line in export.read_text(encoding="utf-8").splitlines()[:3]]


@functools.cache
def types_of(source):
    if source == "Payload":
        return {"EventData": "JSON", "UserData": "JSON"}
    types = {}
    for _, path, kind in lines_of(source):
        inner, names = types, [name for name in path.split("{}")[0].split(".")]
        for name in names[:-1]:
            known = [key for key in inner if key.rstrip("!") == name.rstrip("!")]
            inner = inner.setdefault(known[0] if known else name, {})
            inner = inner if isinstance(inner, dict) else inner[-1]
        if "{}" in path:
            kind = "VARCHAR"
        own = inner.get(names[-1])
        # Some have members, or a value of their own.
        inner[names[-1]] = [kind, own] if isinstance(own, dict) and own else own or kind
    return types


@functools.cache
def lines_of(source):
    """The lines of a source in sources.tsv, of the form that the tests have: the column, the path and the type."""
    file = (ROOT / "rust/extras/evtx-exports/sources.tsv").read_text(encoding="utf-8")
    blocks = [block for block in file.split("\n# source: ") if block.startswith(source) and "Provider_attributes" not in block]
    with loaded() as con:
        types = {name: kind for name, kind, *_ in con.execute(f"DESCRIBE FROM read_evtx({quoted(LOGS[0])})").fetchall()}
    found = []
    for line in blocks[0].splitlines()[1:]:
        column, path, kind, *_ = [*line.split("\t"), "", "", ""]
        if column in types and path:
            kind = "JSON" if column == "event_data" or kind == "ELEMENT" else kind or types[column]
            found.append((column, path, json.loads(kind) if kind.startswith("[") else kind))
    return found


def is_time(value):
    """Whether a text is a time that fits a TIMESTAMP_NS, or the time 0 of Windows."""
    if not isinstance(value, str) or not re.fullmatch(r"\d{4}(-\d\d){2}[T ]\d\d(:\d\d){2}(\.\d+)?(Z|[+-]([01]\d|2[0-5]):[0-5]\d)?", value):
        return False
    try:
        datetime.datetime.fromisoformat(value[:19])
    except ValueError:
        return False
    return 1678 <= int(value[:4]) <= 2261 or value.startswith("1601-01-01T00:00:00")


def is_number(value, most=2**64):
    is_one = isinstance(value, (int, float, str)) and not isinstance(value, bool)
    return is_one and re.fullmatch(r"[0-9]+(\.0+)?", str(value)) is not None and int(str(value).split(".")[0]) < most


def is_of(expected, value, name="", is_always=False):
    """Whether a value is of a type. NULL and an empty text are no value."""
    if not is_always and value in (None, ""):
        return True
    if isinstance(expected, list):
        return any(is_of(own, value, name, is_always) for own in expected)
    if expected is None or value is None:
        return expected is value
    if isinstance(expected, dict):
        members = {inner.rstrip("!"): (own, inner.endswith("!")) for inner, own in expected.items()}
        return isinstance(value, dict) and all(
            inner in value and is_of(own, value[inner], inner, True) if is_always else is_of(own, value.get(inner), inner)
            for inner, (own, is_always) in members.items())
    if expected in NUMBERS:
        return is_number(value, NUMBERS[expected])
    if expected == "HEX":
        return is_number(value) or isinstance(value, str) and re.fullmatch("0x[0-9A-Fa-f]{1,16}", value) is not None
    if expected == "TIMESTAMP_NS":
        return is_time(value)
    if expected == "SECONDS":
        is_one = isinstance(value, (int, float)) and not isinstance(value, bool)
        return is_one and (datetime.datetime(1678, 1, 1) <= EPOCH + datetime.timedelta(seconds=value) < datetime.datetime(2262, 1, 1)
                           if abs(value) < 1e10 else value == -11644473600)
    if expected == "NAME":
        return isinstance(value, str) and not re.fullmatch(r"\s*[+-]?[0-9.]+\s*", value)
    if expected == "UUID":
        return isinstance(value, str) and GUID.fullmatch(value) is not None
    if expected == "JSON":
        return not re.fullmatch("(Event|User)Data|(event|user)_data", name) or isinstance(value, dict)
    return not isinstance(value, (dict, list))


def repeated(pairs, name=""):
    """The names that occur twice in an object, unless they are fields."""
    names = [name for name, _ in pairs]
    if name in ("EventData", "event_data"):
        names = [name for name in names if name in ("Data", "Binary", "Name", "#text", "#attributes")]
    found = {name for name in names if names.count(name) > 1}
    for inner, value in pairs:
        for item in value if isinstance(value, list) else [value]:
            found |= repeated(item, inner) if isinstance(item, tuple) else set()
    return found


def plain(value):
    """What json.loads would give for pairs."""
    if isinstance(value, tuple):
        return {name: plain(inner) for name, inner in reversed(value)}
    return [plain(item) for item in value] if isinstance(value, list) else value


def judged(source, line):
    """What the error of a line has to contain: a list of texts, of which one is enough; empty for a line without an error."""
    def no_constant(name):
        raise ValueError(name)

    try:
        document = json.loads(line, object_pairs_hook=tuple, parse_constant=no_constant)
    except ValueError:
        return ["it is not JSON"]
    if not isinstance(document, tuple):
        return ["expected"]
    found = [f"the name {name} occurs twice" for name in repeated(document)]
    document = plain(document)
    # A second value of the name can have another type.
    if found or not is_of(types_of(source), document):
        found += ["is not ", "is larger than ", "is missing", "is null", "expected"]
    if source == "evtxecmd":
        payload = document.get("Payload")
        if payload is not None and not isinstance(payload, (dict, list)):
            payload = judged("Payload", payload if isinstance(payload, str) else json.dumps(payload))
            found += [f"Payload: {why}" if why.startswith("the name") else "Payload: " for why in payload]
    return found


def places(value, place=()):
    """The places of all values in a document, without fields."""
    yield place
    for name, inner in value.items() if isinstance(value, dict) else []:
        if place[-1:] not in [("EventData",), ("event_data",)]:
            yield from places(inner, place + (name,))


def at(event, place):
    for name in place:
        event = event[name]
    return event


def twice(draw, event):
    """A line in which a name of some object occurs again, by the text of its JSON."""
    place = draw.choice([place for place in places(event) if place and place[-1] not in OTHERWISE or place[-1:] == ("TimeCreated",)])
    marked = json.dumps(changed(event, place, "MARK"))
    own = json.dumps(at(event, place))
    other = draw.choice(["1", "null", '{"a": {}}', own])
    name = place[-1]
    written = draw.choice([name, "\\u%04x" % ord(name[0]) + name[1:]])
    return marked.replace('"MARK"', f'{own}, "{written}": {other}')


def drawn(draw, source):
    event = copy.deepcopy(draw.choice(sound_events(source)))
    kind = draw.choice(["sound", "twice", "type", "type", "damaged"])
    inner = json.loads(event["Payload"]) if source == "evtxecmd" and draw.random() < 0.5 else None
    if kind == "twice":
        return json.dumps({**event, "Payload": twice(draw, inner)}) if inner else twice(draw, event)
    if kind == "type":
        # A value that is left out makes another event of some.
        all_places = [place for place in places(inner or event) if place and not OTHERWISE & {*place}]
        place = draw.choice(all_places)
        value = draw.choice([value for value in VALUES if value not in (None, "") or len(place) > 2])
        event = {**event, "Payload": json.dumps(changed(inner, place, value))} if inner else changed(event, place, value)
        return json.dumps(event)
    line = json.dumps(event)
    if kind == "damaged":
        where = draw.randrange(len(line))
        line = line[:where] + draw.choice(["", line[where + 1:], draw.choice('{}[],:"0x\\ ') + line[where + 1:]])
    return line


@pytest.mark.parametrize("source", EXPORTS)
def test_drawn_lines_have_an_error_if_python_finds_one(con, tmp_path, source):
    """Names that occur twice at any depth, values of another type at any place, and damaged JSON."""
    draw = random.Random(20)
    lines = [line for line in (drawn(draw, source) for _ in range(1500)) if line.strip()]
    found = read_lines(con, source, lines, tmp_path)
    assert len(found) == len(lines)
    errors = {int(re.search(r": cannot read line (\d+) at byte", row[-1])[1]): row[-1] for row in found if row[-1]}
    kinds = collections.Counter()
    for number, line in enumerate(lines, 1):
        expected, error = judged(source, line), errors.pop(number, None)
        kinds[expected[0].split()[0] if expected else None] += 1
        if expected:
            assert error and any(why in error for why in expected), (line, error, expected)
        elif error:
            # What is not a matter of types: the damage made another time, ID or name.
            assert re.search("(EventI[Dd]|event_id|Level|Keywords|has no name|has no column|is missing|expected|Payload)", error), (line, error)
    assert not errors
    assert min(kinds[kind] for kind in (None, "it", "the")) > 50 and sum(kinds.values()) > 1400, kinds


@pytest.mark.parametrize("source", EXPORTS)
def test_a_line_that_is_too_long_hides_no_other(con, tmp_path, source):
    """Compressed, in an archive, in UTF-16, and with a byte order mark, too."""
    event = EXPORTS[source][0]
    own, long = json.dumps(event), json.dumps({**event, "more": "a" * (5 << 20)})
    text = "\n".join([own, long, own, ""])
    files = {"export.json": text.encode("utf-8-sig"), "export.jsonl.gz": gzip.compress(text.encode(), 1), "export.ndjson.bz2": bz2.compress(text.encode(), 1)}
    files["wide.json"] = text.encode("utf-16")
    if source != "evtx_dump":
        del files["export.ndjson.bz2"], files["wide.json"]
    for name, data in files.items():
        (tmp_path / name).write_bytes(data)
    (tmp_path / "plain").write_text(text)
    write_zip(tmp_path / "export.zip", {"inner/export.jsonl": tmp_path / "plain", "inner/log.txt": tmp_path / "plain"})
    paths = [str(tmp_path / name) for name in [*files, "export.zip"]]
    rows = con.execute(f"SELECT event_id, error, filename FROM evtx_from({paths}, source := {quoted(source)})").fetchall()
    assert len(rows) == 3 * len(paths)
    for path in paths:
        name = path + "/inner/export.jsonl" * path.endswith(".zip")
        mark = {"export.json": 3, "wide.json": 2}.get(pathlib.Path(path).name, 0)
        offset = mark + (len(own) + 1) * (2 if path.endswith("wide.json") else 1)
        expected = [(4624, None, name), (4624, None, name), (None, f"{name}: cannot read line 2 at byte {offset}: it has more than 2 MiB", name)]
        assert [row for row in rows if row[1] is None and row[2] == name] + [row for row in rows if row[1] and row[2] == name] == expected


@pytest.mark.parametrize("line", ['{"a": 1}\n', '{"a": "' + "x" * (3 << 19) + '"}\n', "[" * 500 + "]" * 500 + "\n", '{' + ",".join(f'"{nth}":0' for nth in range(150_000)) + "}\n"])
def test_reading_lines_can_be_interrupted(con, tmp_path, line):
    export = tmp_path / "export.json"
    export.write_text(line * max(1, (100 << 20) // len(line)))
    con.execute("SET threads = 1")
    with interrupted(con, after=0.1):
        con.execute(f"SELECT count(error) FROM evtx_from({[str(export)] * 20}, source := 'nxlog')").fetchall()


@pytest.mark.parametrize("source", EXPORTS)
def test_the_longest_line_takes_little_memory(con, tmp_path, source):
    """Its fields are as many as fit. A query over several such lines can be interrupted."""
    event = EXPORTS[source][0]
    fields = {f"k{nth}": 1 for nth in range(150_000 if source != "evtxecmd" else 40_000)}
    if source == "evtxecmd":
        line = json.dumps({**event, "Payload": json.dumps({"EventData": {"Data": [{"@Name": name, "#text": "1"} for name in fields]}})})
    else:
        line = json.dumps(event, separators=(",", ":")).replace(json.dumps(NAMES, separators=(",", ":")), json.dumps(fields, separators=(",", ":")))
    assert 3 << 19 < len(line) < 2 << 20
    export = tmp_path / "export.json"
    export.write_text(line)
    query = f"SELECT count(error), sum(cardinality(event_data)) FROM evtx_from({quoted(export)}, source := {quoted(source.removesuffix('_csv'))})"
    con.execute("SET threads = 1")
    before = reset_peak()
    assert con.execute(query).fetchone() == (0, len(fields))
    assert before is None or peak() - before < 150 << 20, peak() - before
    export.write_text((line + "\n") * 20)
    with interrupted(con, after=0.3):
        con.execute(query).fetchall()


def test_lines_of_a_folder_are_read_by_any_number_of_threads(con, tmp_path):
    """Files with one line, with many, and without any: all keep their order."""
    expected = []
    for nth in range(40):
        count = [0, 1, 50_000, 3][nth % 4]
        name = tmp_path / f"{nth:02}.jsonl"
        name.write_text("".join(f'{{"EventTime":"2024-03-05T08:58:00Z","Hostname":"h","SourceName":"s","EventID":1,"RecordNumber":{at}}}\n' for at in range(count)))
        expected += [(str(name), at) for at in range(count)]
    for threads in (1, 4):
        con.execute(f"SET threads = {threads}")
        assert con.execute(f"SELECT filename, record_id FROM evtx_from('{tmp_path}', source := 'nxlog')").fetchall() == expected
        assert con.execute(f"SELECT count(*) FROM evtx_from('{tmp_path}', source := 'nxlog')").fetchone() == (len(expected),)


# For each place of a value in an event: its column, and what Python makes of the value.
def whole(most):
    def of(value):
        if not is_number(value, most):
            raise ValueError(value)
        return int(str(value).split(".")[0])
    return of


def bits(value):
    return int(value, 16) if isinstance(value, str) and re.fullmatch("0x[0-9A-Fa-f]{1,16}", value) else whole(2**64)(value)


def guid(value):
    if not isinstance(value, str) or not GUID.fullmatch(value):
        raise ValueError(value)
    return value.strip("{}").lower()


def words(value):
    if isinstance(value, (dict, list)):
        raise ValueError(value)
    return value.replace("\0", "") if isinstance(value, str) else json.dumps(value)


def when(value):
    """In microseconds since 1970."""
    if not is_time(value):
        raise ValueError(value)
    if value.startswith("1601"):
        return None
    offset = re.search(r"[+-]\d\d:\d\d$", value)
    fraction = (re.findall(r"\.(\d+)", value) + [""])[0][:6].ljust(6, "0")
    time = datetime.datetime.fromisoformat(value[:19] + "." + fraction)
    if offset:
        time -= datetime.timedelta(minutes=int(offset[0][0] + "1") * (int(offset[0][1:3]) * 60 + int(offset[0][4:])))
    return (time - EPOCH) // datetime.timedelta(microseconds=1)


def seconds(value):
    if is_of("SECONDS", value) and value not in (None, ""):
        return None if value < -1e10 else round(value * 1e6)
    return when(value)


LEVELS = {"LogAlways": 0, "Critical": 1, "Error": 2, "Warning": 3, "Info": 4, "Verbose": 5, "Success": 8, "Failure": 16}
KEYWORDS = {"Audit success": 0x8020000000000000, "Classic": 0x8000000000000000}


def named(names, of):
    return lambda value: names[value] if isinstance(value, str) and value in names else of(value)


def lenient(of):
    """Names that are not numbers have no column."""
    def found(value):
        is_name = isinstance(value, str) and not re.fullmatch(r"\s*[+-]?[0-9.]+\s*", value)
        return None if is_name else of(value)
    return found


U8, U16, U32, U64 = map(whole, (2**8, 2**16, 2**32, 2**64))


# By the type of the column, or by what exports.tsv says.
READERS = {"UTINYINT": U8, "USMALLINT": U16, "UINTEGER": U32, "UBIGINT": U64, "UUID": guid, "VARCHAR": words, "TIMESTAMP_NS": when, "HEX": bits,
           '["VARCHAR", null]': words}  # fmt: skip
# Values that SQL makes a column of.
MADE = {
    "winlogbeat": {("winlog", "task"): ("task", lenient(U16), False)},
    "evtx_dump": {("Event", "System", "EventID", "#attributes", "Qualifiers"): ("qualifiers", U16, False),
                  ("Event", "System", "EventID", "#text"): ("event_id", U32, True)},
    "velociraptor": {("System", "TimeCreated", "SystemTime"): ("time_created", seconds, True), ("System", "EventID", "Value"): ("event_id", U32, True),
                     ("System", "EventID", "Qualifiers"): ("qualifiers", U16, False)},
    "evtxecmd": {("EventId",): ("event_id", U32, True), ("Level",): ("level", named(LEVELS, U8), False),
                 ("Keywords",): ("keywords", named(KEYWORDS, bits), False)},
}


@functools.cache
def places_of(source):
    """The places of the values, with their columns, and whether a value is always there."""
    source, found = source.removesuffix("_csv"), {}
    for column, path, kind in lines_of(source):
        read = READERS.get(json.dumps(kind) if isinstance(kind, list) else kind)
        # Winlogbeat names levels and keywords, and its own event ID and computer can be missing.
        if read and "{}" not in path and (source != "winlogbeat" or column not in ("level", "event_id", "computer")):
            found[tuple(path.replace("!", "").split("."))] = column, read, path.endswith("!")
    found |= MADE[source]
    return {place: value for place, value in found.items() if not any(other[:len(place)] == place for other in found if other != place)}


DRAWN = [*VALUES, 65535, 65536, 2**32 - 1, 2**64 - 1, 10**30, 1e300, 0.0, "0x8020000000000000", "0x1ffffffffffffffff", "0x", "Info", "Audit success",
         "Classic", "99999", "-5", "infinity", "-infinity", "epoch", "now", "nan", "2024-03-05T08:58:00.123456Z", "2024-03-05 08:58:00",
         "2024-03-05T08:58:00.1234567+05:30", "2024-03-05T08:58:00-25:59", "2024-03-05T08:58:00+26:00", "2024-03-05T08:58:00+99:00", "a\0b\\u0000\0", "0001-01-01T00:00:00Z", "99999-01-01T00:00:00Z", "1601-01-01T00:00:00Z", "1677-12-31T23:59:59Z",
         "2262-01-01T00:00:00Z", "2024-02-29T00:00:00Z", "2023-02-29T00:00:00Z", "2024-13-01T00:00:00Z", "2024-03-05T24:00:00Z",
         "2024-03-05T08:58:60Z", 1709629080.441, -11644473600, -1e9, 1e12, 9214646400, " 7", "٣"]
MISSING = object()


def whole_event(source):
    """An event with a value at each place."""
    event = {"winlogbeat": WINLOGBEAT, "evtx_dump": EVTX_DUMP, "velociraptor": VELOCIRAPTOR}.get(source, EVTXECMD)
    event = copy.deepcopy(event)
    for place in places_of(source):
        inner = event
        for name in place[:-1]:
            if not isinstance(inner.get(name), dict):
                inner[name] = {}
            inner = inner[name]
        if place[-1] in ("#text", "Value"):
            inner[place[-1]] = 4624
        elif place[-1].lower().endswith("guid") or place[-1].lower().endswith("activity_id") or place[-1].endswith("ActivityID"):
            inner[place[-1]] = "{fc65ddd8-d6ef-4962-83d5-6e5cfe9ce148}"
        else:
            inner.setdefault(place[-1], "7")
    return event


@pytest.mark.parametrize("source", [*EXPORTS, "evtxecmd_csv"])
def test_a_value_is_in_its_column_or_in_the_error(con, tmp_path, source):
    """Any value at each place of a column: the row has what Python reads, or says that it does not."""
    event, places, draw = whole_event(source), places_of(source), random.Random(72)
    is_csv = source.endswith("csv")
    cases = [(place, value) for place in places for value in [*DRAWN, *(() if is_csv else (MISSING,))]]
    # More than one place of an event.
    events = [[case] for case in cases] + [draw.sample(cases, 2) for _ in range(500)]
    documents = []
    for changes in events:
        document = copy.deepcopy(event)
        for place, value in changes:
            inner = at(document, place[:-1])
            if value is MISSING:
                inner.pop(place[-1], None)
            else:
                inner[place[-1]] = value
        documents.append(document)
    export = tmp_path / "export.txt"
    if is_csv:
        with export.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file, quoting=csv.QUOTE_ALL)
            writer.writerow(event)
            writer.writerows([as_cell(value) for value in document.values()] for document in documents)
    else:
        export.write_text("".join(json.dumps(document) + "\n" for document in documents), encoding="utf-8")
    # Files in CSV have no order of their own.
    con.execute("SET threads = 1")
    columns = [column for column, _, _ in places.values()]
    shown = [{"time_created": "epoch_us(time_created)", "provider_guid": "provider_guid::VARCHAR"}.get(column, column) for column in columns]
    shown = [f"{column}::VARCHAR" if column.endswith("activity_id") else column for column in shown]
    found = con.execute(f"SELECT {', '.join(shown)}, error FROM evtx_from({quoted(export)}, source := {quoted(source.removesuffix('_csv'))})").fetchall()
    assert len(found) == len(documents)
    kinds = collections.Counter()
    for document, changes, row in zip(documents, events, found):
        is_wrong = False
        for place, got in zip(places, row):
            column, read, is_always = places[place]
            value = at(document, place[:-1]).get(place[-1], MISSING)
            value = as_cell(value) if is_csv else value
            if value in (MISSING, None, ""):
                # evtx_dump writes null for an empty element.
                # A provider can have its GUID instead of a name.
                is_needed = "Event" not in place and (column == "computer" or column == "provider" and "provider_guid" not in columns)
                may_be_empty = value == "" and not is_needed or value is None and "Event" in place
                is_sound = not is_always or read is words and may_be_empty
                is_wrong |= not is_sound
                assert not is_sound or got in (None, ""), (place, value, got)
                continue
            try:
                expected = read(value)
            except ValueError:
                is_wrong = True
                continue
            is_same = got == expected or column == "time_created" and expected is not None and got is not None and abs(got - expected) <= 1
            assert is_same, (changes, place, value, got, row[-1])
        assert (row[-1] is not None) == is_wrong, (changes, row[-1])
        kinds[is_wrong] += 1
    assert min(kinds.values()) > 300, kinds


@pytest.mark.parametrize("source", EXPORTS)
def test_nuls_are_left_out(con, tmp_path, source):
    """Those in texts and names of fields, but not what looks like their escapes."""
    names = {"a\0": "b\0c\0\0", "path": "C:\\u0000\\\0u0000", "\0": "d"}
    payload = {"EventData": {"Data": [{"@Name": name, "#text": value} for name, value in names.items()]}}
    place = PLACES[source][-1]
    event = changed(EXPORTS[source][0], place, json.dumps(payload) if place == ("Payload",) else names)
    [row] = read_lines(con, source, [event], tmp_path)
    assert [*row[-2].values()] == ["bc", "C:\\u0000\\u0000", "d"] and [*row[-2]][:2] == ["a", "path"] and row[-1] is None
    # Outside of a text, the escape is not JSON.
    [row] = read_lines(con, source, ["\\u0000" + json.dumps(EXPORTS[source][0])], tmp_path)
    assert row[-1].endswith("it is not JSON")


def test_offsets_are_those_that_xml_can_have(con, tmp_path):
    """Another offset is NULL with an error, in JSON and in XML."""
    for offset, is_one in [("+25:59", True), ("-25:59", True), ("+26:00", False), ("-99:00", False), ("+01:60", False)]:
        time = f"2024-03-05T08:58:00{offset}"
        (tmp_path / "export.xml").write_text(f"<Event><System><Provider Name='P'/><EventID>1</EventID><TimeCreated SystemTime='{time}'/>"
                                             "<EventRecordID>1</EventRecordID><Channel>c</Channel><Computer>pc</Computer></System></Event>")
        (tmp_path / "export.json").write_text(json.dumps(changed(EVTX_DUMP, PLACES["evtx_dump"][0], time)))
        found = [con.execute(f"SELECT time_created, error IS NULL FROM {call}").fetchall() for call in (
            f"read_evtx_xml({quoted(tmp_path / 'export.xml')})", f"evtx_from({quoted(tmp_path / 'export.json')}, source := 'evtx_dump')")]
        assert found[0] == found[1], offset
        assert [(at is not None, is_sound) for at, is_sound in found[0]] == [(is_one, is_one)], offset


def test_fields_of_evtxecmd_beside_data(con, tmp_path):
    """Elements of EventData with other names are fields; what else a Payload has is told."""
    payloads = [
        ({"EventData": {"@xmlns": "x", "Data": [{"@Name": "a", "#text": "1"}, {"@Name": "b", "c": {"d": "2"}}, {"@Name": "e"}], "Binary": "31-00",
                        "Other": "3", "Empty": None, "Deep": {"x": "4"}}},
         {"a": "1", "b": '{"c":{"d":"2"}}', "e": "", "Binary": "3100", "Other": "3", "Empty": "", "Deep": '{"x":"4"}'}, None),
        ({"EventData": None}, {}, None),
        ({"EventData": {"Leaf": "1"}}, {"Leaf": "1"}, None),
        ({"ProcessingErrorData": {"ErrorCode": "15005"}}, {}, "Payload: expected EventData or UserData"),
        ({"EventData": {"Data": []}, "More": {"a": "1"}}, {}, "Payload: expected EventData or UserData"),
    ]
    events = [{**EVTXECMD, "Payload": json.dumps(payload)} for payload, _, _ in payloads]
    found = read_lines(con, "evtxecmd", events, tmp_path)
    for (payload, data, why), row in zip(payloads, found, strict=True):
        assert row[-2] == data and (row[-1] or "").endswith(why or "") and (row[-1] is None) == (why is None), (payload, row)


def test_an_event_without_a_name_or_a_machine(con, tmp_path):
    """What every event of a tool has, in any of the places where it can be."""
    for source, event, names, is_told in [
        ("winlogbeat", WINLOGBEAT, [("winlog", "computer_name")], False),
        ("winlogbeat", WINLOGBEAT, [("winlog", "computer_name"), ("host", "name")], True),
        ("winlogbeat", WINLOGBEAT, [("winlog", "event_id")], False),
        ("winlogbeat", WINLOGBEAT, [("winlog", "event_id"), ("event", "code")], True),
        ("evtx_dump", EVTX_DUMP, [("Event", "System", "Provider", "#attributes", "Name")], True),
        ("velociraptor", VELOCIRAPTOR, [("System", "Provider", "Name")], True),
        *[("velociraptor", HUNTER, [(name,)], True) for name in ("EventTime", "Computer", "Channel", "Provider", "EventID")],
        *[("evtx_dump", EVTX_DUMP, [("Event", "System", name)], True) for name in ("Provider", "EventID", "TimeCreated")],
        *[("velociraptor", VELOCIRAPTOR, [("System", name)], True) for name in ("Provider", "EventID", "TimeCreated")],
        ("evtxecmd", EVTXECMD, [("Payload",)], True),
    ]:
        event = copy.deepcopy(event)
        for place in names:
            del at(event, place[:-1])[place[-1]]
        [row] = read_lines(con, source, [event], tmp_path)
        assert (row[-1] is not None) == is_told, (source, names, row)


def as_cell(value):
    return "" if value is None else value if isinstance(value, str) else json.dumps(value)
