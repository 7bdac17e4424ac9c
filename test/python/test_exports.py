"""Judges evtx_from_evtx_dump: the JSON of the `evtx` crate gives the events that read_evtx reads, in all columns.

Two versions of the crate: the Python package, which writes JSON as evtx_dump did before 0.15, and the one that `json` is from.
EVTX_CORPUS names a folder with more logs. The exports of the other tools are judged by test/sql/exports.test, by hand-made lines.
"""

import collections
import copy
import json
import os
import pathlib
import re

import evtx
import pytest
from client import quoted
from conftest import SAMPLES, loaded

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
    if column == "error" and theirs is None:
        return "damage after the event"
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
            for record_id, theirs in rows(con, f"evtx_from_evtx_dump({quoted(export)})").items():
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
    good = '{"Event":{"System":{"EventID":{"#attributes":{"Qualifiers":7},"#text":42},"EventRecordID":"9"},"EventData":{"A":1,"A":"b"}}}'
    bad = [b"not JSON", b'{"Event":{"System":{"EventID":1}', b'{"Event":{"System":{"Channel":"\xff"}}}', b"[]", b"7", b'{"Event":5}', b'{"event":{}}']
    export = tmp_path / "export.jsonl"
    export.write_bytes(b"\n".join([good.encode(), *bad, b"", good.encode()]))
    found = con.execute(f"SELECT event_id, qualifiers, record_id, event_data, error FROM evtx_from_evtx_dump({quoted(export)})").fetchall()
    assert [row for row in found if row[-1] is None] == [(42, 7, 9, {"A": "1", "A_1": "b"}, None)] * 2
    errors = [row for row in found if row[-1] is not None]
    assert [row[:-1] for row in errors] == [(None, None, None, None)] * len(bad)
    why = ["it is not JSON"] * 3 + ["expected an event of evtx_dump, which has Event.System"] * 4
    assert sorted(row[-1] for row in errors) == sorted(f"{export}: cannot read a line: {one}" for one in why)


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
# Of tools without a macro.
NXLOG = {"EventTime": "2024-03-05 08:58:00", "Hostname": "PC", "Keywords": -9214364837600034816, "EventType": "AUDIT_SUCCESS", "EventID": 4624,
         "SourceName": "P", "RecordNumber": 7, "Channel": "Security", "Message": "", "SubjectUserName": "a", "LogonType": "3"}
WINLOGBEAT_6 = {"@timestamp": "2024-03-05T08:58:00.441Z", "computer_name": "PC", "event_id": 4624, "log_name": "Security", "event_data": NAMES}
SEPARATE = {"Event": {"Event_attributes": {}, "System": None, "EventData": NAMES}}
CHAINSAW = {"group": "a", "kind": "individual", "document": {"kind": "evtx", "data": EVTX_DUMP}}
HAYABUSA = {"Timestamp": "2024-03-05 08:58:00.441 +00:00", "Computer": "PC", "Channel": "Sec", "EventID": 4624, "Level": "info", "RecordID": 7,
            "Details": {"User": "a"}}
OTHERS = [NXLOG, WINLOGBEAT_6, SEPARATE, CHAINSAW, HAYABUSA, {}, {"EventID": 4624}, {"message": "text"}]

EXPORTS = {
    "evtx_from_winlogbeat": [WINLOGBEAT],
    "evtx_from_evtx_dump": [EVTX_DUMP],
    "evtx_from_velociraptor": [VELOCIRAPTOR, HUNTER],
    "evtx_from_evtxecmd": [EVTXECMD],
}
PLACES = {
    "evtx_from_winlogbeat": (("@timestamp",), ("winlog", "event_id"), ("winlog", "record_id"), ("winlog", "event_data")),
    "evtx_from_evtx_dump": (("Event", "System", "TimeCreated", "#attributes", "SystemTime"), ("Event", "System", "EventID"),
                            ("Event", "System", "EventRecordID"), ("Event", "EventData")),
    "evtx_from_velociraptor": (("System", "TimeCreated", "SystemTime"), ("System", "EventID", "Value"), ("System", "EventRecordID"), ("EventData",)),
    "evtx_from_evtxecmd": (("TimeCreated",), ("EventId",), ("EventRecordId",), ("Payload",)),
}


def changed(event, place, value):
    event = copy.deepcopy(event)
    inner = event
    for name in place[:-1]:
        inner = inner[name]
    inner[place[-1]] = value
    return event


def read_lines(con, macro, lines, tmp_path):
    export = tmp_path / "export.json"
    export.write_text("".join((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in lines), encoding="utf-8")
    columns = "event_id, record_id, time_created IS NOT NULL, provider, channel, computer, event_data, error"
    return con.execute(f"SELECT {columns} FROM {macro}({quoted(export)})").fetchall()


@pytest.mark.parametrize("macro", EXPORTS)
def test_what_is_no_event_of_the_tool_says_what_was_expected(con, tmp_path, macro):
    """Each tool's events in each macro: its own are events, those of others are errors that name the tool."""
    tool = {"evtx_from_winlogbeat": "Winlogbeat", "evtx_from_evtx_dump": "evtx_dump", "evtx_from_velociraptor": "Velociraptor",
            "evtx_from_evtxecmd": "EvtxECmd"}[macro]
    own = EXPORTS[macro]
    others = [event for name, events in EXPORTS.items() if name != macro for event in events] + OTHERS
    found = read_lines(con, macro, own + others + own, tmp_path)
    event = (4624, 7, True, "P", "Security", "PC", NAMES, None)
    assert found[:len(own)] == found[len(own) + len(others):] == [event] * len(own)
    for other, row in zip(others, found[len(own):]):
        assert row[-1] and f"cannot read a line: expected an event of {tool}, which has " in row[-1], (other, row)


@pytest.mark.parametrize("macro", EXPORTS)
def test_values_of_another_kind_are_errors(con, tmp_path, macro):
    """A time that is none, numbers that are not whole, and fields that are no object: the row says so, and which."""
    time, number, record, data = PLACES[macro]
    event, is_text = EXPORTS[macro][0], data == ("Payload",)
    cases = [(time, value, "not a time") for value in ["yesterday", "", "2024-13-01T00:00:00Z", "2024-03-05 25:00:00", True, {"a": 1}]]
    cases += [(place, value, "not a whole number") for place in (number, record) for value in [4624.5, "4624.5", -1, "x", "0x10", 1e-3, True]]
    cases += [(number, 2**32, "not a whole number")]
    cases += [(data, json.dumps(value) if is_text else value, "not an object") for value in [[1, 2], "text", 5, 1.5, True]]
    if is_text:
        cases += [(data, json.dumps({"EventData": value}), "not an object") for value in [[1, 2], "text", 5]]
    # What sound exports have.
    cases += [(time, value, None) for value in ["1601-01-01T00:00:00Z", "2024-03-05T08:58:00.1234567Z", "2024-03-05T08:58:00+01:00"]]
    cases += [(number, value, None) for value in [4624, "4624", 4624.0, 0]]
    cases += [(data, json.dumps({"EventData": {"Data": []}}) if is_text else {}, None)]
    found = read_lines(con, macro, [changed(event, place, value) for place, value, _ in cases], tmp_path)
    for (place, value, why), row in zip(cases, found):
        assert (row[-1] or "").endswith(why or ""), (place, value, row)
        assert (row[-1] is None) == (why is None), (place, value, row)
        if place == number and why:
            assert row[0] is None, (value, row)
    assert len(found) == len(cases)


@pytest.mark.parametrize("macro", EXPORTS)
def test_names_that_occur_again(con, tmp_path, macro):
    """In fields, a number makes them unique, up to 1,000; a second event ID is an error."""
    event = EXPORTS[macro][0]
    fields = json.dumps(NAMES)
    for count, is_read in [(3, True), (999, True), (1000, False), (100_000, False)]:
        if macro == "evtx_from_evtxecmd":
            payload = json.dumps({"EventData": {"Data": [{"@Name": "a", "#text": str(at)} for at in range(count)]}})
            line = json.dumps({**event, "Payload": payload})
        else:
            line = json.dumps(event).replace(fields, "{" + ",".join(f'"a":"{at}"' for at in range(count)) + "}")
        [row] = read_lines(con, macro, [line], tmp_path)
        if is_read:
            assert row[-1] is None and list(row[-2].values()) == [str(at) for at in range(count)]
        else:
            assert row[-1].endswith("has too many fields of one name") and row[-2] is None
    if macro != "evtx_from_evtxecmd":
        place = PLACES[macro][2][-1]
        [row] = read_lines(con, macro, [json.dumps(event).replace(f'"{place}"', f'"{place}": 1102, "{place}"')], tmp_path)
        assert "a name occurs twice" in row[-1]
