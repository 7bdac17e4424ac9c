"""Records that contradict each other over made-up events."""

import re

import pytest
from made_up import LOGOFF, LOGON, SECURITY, START, SYSMON, block, security


def other_records(over):
    """For each field, a copy of each event in another log in which that field alone differs."""
    over.con.execute("CREATE OR REPLACE TABLE real AS FROM events")
    names = [name for name, in over.con.execute("SELECT DISTINCT unnest(map_keys(event_data)) FROM real").fetchall()]
    changes = {"channel": "upper(channel) AS channel", "user_sid": "'S-1-5-21-9' AS user_sid"}
    changes |= {name: f"map_concat(event_data, MAP {{'{name}': event_data['{name}'] || '0'}}) AS event_data" for name in names}
    for name, change in sorted(changes.items()):
        over.con.execute(f"CREATE OR REPLACE TABLE events AS FROM real UNION ALL SELECT * REPLACE ('0.evtx' AS filename, {change}) FROM real")
        yield name


@pytest.mark.parametrize(("macro", "event"), [
    ("evtx_logons", (1, SECURITY, 4624, {"TargetLogonId": "0x1", "TargetUserName": "u", "TargetUserSid": "S-1-5-21-1", "LogonType": "3", "LogonGuid": "{1}"})),
    ("evtx_process_tree", (1, SECURITY, 4688, {"NewProcessId": "0x1", "NewProcessName": "a", "ProcessId": "0x2", "MandatoryLabel": "S-1-16-1"})),
    ("evtx_process_tree", (1, SYSMON, 1, {"ProcessGuid": "{1}", "ProcessId": "1", "Image": "a", "IntegrityLevel": "High"})),
    ("evtx_script_blocks", block(1, 1, 1, "a")),
])  # fmt: skip
def test_a_record_that_says_something_else_is_no_copy(over, macro, event):
    """Records with one place, and a difference in any one field."""
    assert len(over(macro, [event], copies=3)) == 1
    marks = {name: over.query(macro, "contested") for name in other_records(over)}
    shown = {name for name, rows in marks.items() if len(rows) == 2}
    said = {"channel", "user_sid", *event[3]}
    if macro == "evtx_script_blocks":
        # A script is not a record.
        assert shown == said - {"channel"} and all(row == (True,) for name in ("channel", "ScriptBlockText") for row in marks[name])
    else:
        assert shown == said and {name for name, rows in marks.items() if rows == [(True,), (True,)]} == said


@pytest.mark.parametrize(("macro", "start", "end", "column"), [
    ("evtx_logons", LOGON, LOGOFF, "logoff_time"),
    ("evtx_process_tree", START, (9, SECURITY, 4689, {"ProcessId": "0x1", "ProcessName": "a"}), "end_time"),
])  # fmt: skip
def test_an_end_at_the_place_of_another_record_is_marked(over, macro, start, end, column):
    """An end five seconds earlier, in another log with the same number. A cleared log has the same numbers later."""
    select = f"second({column}), contested"
    assert over(macro, [start, end], select, copies=2) == [(9, False)]
    over.con.execute("UPDATE events SET filename = 'live.evtx'")
    plant = "INSERT INTO events SELECT * REPLACE ('planted.evtx' AS filename, time_created - INTERVAL {} AS time_created) FROM events WHERE event_id IN (4634, 4689) AND filename = 'live.evtx'"
    over.con.execute(plant.format("5 SECONDS"))
    assert over.query(macro, select) == [(4, True)]
    over.con.execute("DELETE FROM events WHERE filename = 'planted.evtx'")
    over.con.execute(plant.format("5 DAYS"))
    assert (9, False) in over.query(macro, select)


@pytest.mark.parametrize(("macro", "start", "end"), [
    ("evtx_logons", LOGON, LOGOFF),
    ("evtx_process_tree", START, (9, SECURITY, 4689, {"ProcessId": "0x1", "ProcessName": "a"})),
    ("evtx_script_blocks", block(1, 1, 3, "a"), block(9, 3, 3, "c")),
])  # fmt: skip
def test_a_planted_record_is_marked_beside_an_exported_log(over, macro, start, end):
    """An export numbers records from 1 on. Only without a filter, most numbers differ by the same from those of the events."""
    other = (5, start[1], start[2], {"MessageNumber": "1", "MessageTotal": "1", "ScriptBlockId": "x", "ProcessName": "x"})
    over(macro, [start, other, end])
    over.con.execute("UPDATE events SET filename = 'export.evtx', event_record_id = event_record_id + 99")
    assert set(over.query(macro, "contested")) == {(False,)}
    # Another record has the number of the first or of the last one, at a time between.
    over.con.execute("CREATE OR REPLACE TABLE export AS FROM events")
    for number, gap in [(99, 0), (101, 0), (99, 7)]:
        over.con.execute(f"""CREATE OR REPLACE TABLE events AS SELECT * REPLACE (event_record_id + {gap} * record_id AS event_record_id) FROM export UNION ALL
            SELECT * REPLACE ('planted.evtx' AS filename, 1 AS record_id, {number} AS event_record_id, '2024-03-05 08:00:04'::TIMESTAMP_NS AS time_created,
                              map_concat(event_data, MAP {{'ScriptBlockId': 'y'}}) AS event_data) FROM export WHERE record_id = 1""")
        assert ((True,) in over.query(macro, "contested")) == (gap == 0)


@pytest.mark.parametrize(("macro", "start", "end"), [
    ("evtx_logons", LOGON, LOGOFF),
    ("evtx_process_tree", START, (9, SECURITY, 4689, {"ProcessId": "0x1", "ProcessName": "a"})),
    ("evtx_script_blocks", block(1, 1, 3, "a"), block(9, 3, 3, "c")),
])  # fmt: skip
def test_a_planted_record_is_marked_in_the_log_of_the_other_one(over, macro, start, end):
    """At the end of the log, with the number of another event. It does not make the log one of forwarded events."""
    other = (5, start[1], start[2], {"MessageNumber": "1", "MessageTotal": "1", "ScriptBlockId": "x", "ProcessName": "x"})
    over(macro, [start, other, end])
    assert set(over.query(macro, "contested")) == {(False,)}
    over.con.execute("""INSERT INTO events SELECT * REPLACE (3 AS record_id, time_created - INTERVAL 5 SECONDS AS time_created,
        map_concat(event_data, MAP {'ScriptBlockText': 'planted'}) AS event_data, 0 AS event_record_id) FROM events WHERE record_id = 2""")
    assert (True,) in over.query(macro, "contested")


@pytest.mark.parametrize(("macro", "events", "column"), [
    ("evtx_logons", [LOGON, LOGOFF], "logoff_time"),
    ("evtx_process_tree", [START, (9, SECURITY, 4689, {"ProcessId": "0x1"})], "end_time"),
    ("evtx_process_tree", [(1, SYSMON, 1, {"ProcessId": "1"}), (9, SYSMON, 5, {"ProcessId": "1"})], "end_time"),
    ("evtx_process_tree", [START, (9, SECURITY, 4689, {"ProcessId": "0x1"}), (2, "Microsoft-Windows-Kernel-General", 12, {})], "end_time"),
])  # fmt: skip
def test_a_record_counts_only_in_the_log_of_its_kind(over, macro, events, column):
    """The last record in another log. The name of a log can have any case, and an export may lack it."""
    (true,) = over(macro, events, column)
    for channel in ("upper(channel)", "NULL::VARCHAR"):
        over.con.execute(f"CREATE OR REPLACE TABLE events AS SELECT * REPLACE ({channel} AS channel) FROM events")
        assert over.query(macro, column) == [true]
    over(macro, events, column)
    over.con.execute(f"UPDATE events SET channel = 'Application' WHERE record_id = {len(events) - 1}")
    assert over.query(macro, column) != [true]
    over.con.execute("UPDATE events SET channel = 'Application'")
    assert [row for row in over.query(macro, column) if row[0]] == []


def test_a_planted_record_hides_no_other_fact(over):
    """The service, and the person who cleared the log."""
    events = [
        (1, "Service Control Manager", 7045, {"ServiceName": "evil", "ImagePath": "C:/Temp/beacon.exe"}),
        (2, "Microsoft-Windows-Eventlog", 104, {"SubjectUserName": "mallory", "SubjectDomainName": "D", "Channel": "System"}),
    ]
    over("evtx_facts", events, copies=2)
    over.con.execute("""INSERT INTO events SELECT * REPLACE ('0.evtx' AS filename, map_concat(event_data, CASE event_id WHEN 104
        THEN MAP {'SubjectUserName': 'anna'} ELSE MAP {'ServiceName': 'Windows Update', 'ImagePath': 'svchost.exe'} END) AS event_data) FROM events""")
    doubts = ["another record has the place of this one"]
    assert sorted(over.query("evtx_facts", "topic::VARCHAR, target, account, events, doubts"), key=str) == [
        ("cleared logs", "System", "D\\anna", 1, doubts), ("cleared logs", "System", "D\\mallory", 1, doubts),
        ("services", "Windows Update", None, 1, doubts), ("services", "evil", None, 1, doubts)]  # fmt: skip


def planted(over, change):
    """Adds the records with a change as those of another log."""
    over.con.execute(f"INSERT INTO events SELECT * REPLACE ('planted.evtx' AS filename, map_concat(event_data, MAP {{{change}}}) AS event_data) FROM events")


def test_a_logoff_ends_a_session_of_its_user_only(over):
    """Two logs contradict each other about who logged on, or who logged off."""
    select = "user_sid, second(logoff_time), contested"
    over("evtx_logons", [LOGON])
    planted(over, "'TargetUserSid': 'S-1-5-21-2', 'TargetUserName': 'other'")
    over.con.execute("INSERT INTO events SELECT * REPLACE (9 AS record_id, 9 AS event_record_id, 4634 AS event_id, '2024-03-05 08:00:09' AS time_created) FROM events WHERE filename IS NULL")
    assert sorted(over.query("evtx_logons", select)) == [("S-1-5-21-1", 9, True), ("S-1-5-21-2", None, True)]
    other = (5, SECURITY, 4634, {"TargetLogonId": "0x1", "TargetUserSid": "S-1-5-21-2"})
    assert sorted(over("evtx_logons", [LOGON, other, LOGOFF], select)) == [("S-1-5-21-1", 9, False), ("S-1-5-21-2", 5, False)]


def test_a_child_of_a_contested_process_is_contested(over):
    """Two logs contradict each other about the program of the parent, about its end, or about what else had its ID."""
    child = security(5, 32, 16, "C:\\child.exe")
    select = "process, parent_process IS NULL, contested"
    over("evtx_process_tree", [security(1, 16, 4, "C:\\a.exe"), child])
    assert (r"C:\child.exe", False, False) in over.query("evtx_process_tree", select)
    over.con.execute("DELETE FROM events WHERE record_id = 1")
    planted(over, "'NewProcessName': 'C:\\b.exe'")
    over.con.execute("INSERT INTO events SELECT * REPLACE (1 AS record_id, 1 AS event_record_id, MAP {'NewProcessId': '0x20', 'ProcessId': '0x10', 'NewProcessName': 'C:\\child.exe'} AS event_data, '2024-03-05 08:00:05' AS time_created) FROM events WHERE filename IS NULL")
    assert sorted(over.query("evtx_process_tree", select)) == [(r"C:\a.exe", True, True), (r"C:\b.exe", True, True), (r"C:\child.exe", False, True)]
    for what in ((3, SECURITY, 4689, {"ProcessId": "0x10"}), security(3, 16, 4, "C:\\a.exe")):
        over("evtx_process_tree", [security(1, 16, 4, "C:\\a.exe"), what, child])
        over.con.execute("INSERT INTO events SELECT * REPLACE ('planted.evtx' AS filename, map_concat(event_data, MAP {'x': 'x'}) AS event_data) FROM events WHERE record_id = 1")
        assert {row for row in over.query("evtx_process_tree", select) if "child" in row[0]} == {(r"C:\child.exe", what[2] == 4689, True)}


@pytest.mark.parametrize("plant", [
    # The first part, 300 days before.
    "event_record_id, time_created - INTERVAL 300 DAYS AS time_created FROM events WHERE record_id = 0",
    "40 AS event_record_id, time_created - INTERVAL 300 DAYS AS time_created FROM events WHERE record_id = 0",
    # The part that is missing, with the number of the first one, and of a record of another script.
    "0 AS event_record_id, map_concat(event_data, MAP {'MessageNumber': '2', 'ScriptBlockText': '# harmless'}) AS event_data FROM events WHERE record_id = 0",
    "1 AS event_record_id, map_concat(event_data, MAP {'MessageNumber': '2', 'ScriptBlockText': '# harmless'}) AS event_data FROM events WHERE record_id = 0",
])  # fmt: skip
def test_a_planted_part_of_a_script_is_marked(over, plant):
    """In another log. What it says about the other script stays as it is."""
    over("evtx_script_blocks", [block(1, 1, 2, "evil "), block(5, 1, 1, "other", "x")], copies=2)
    select = "script_block_id, contested"
    over.con.execute("UPDATE events SET filename = 'live.evtx'")
    assert sorted(over.query("evtx_script_blocks", select)) == [("b", False), ("x", False)]
    columns, rows = plant.split(" FROM ")
    columns = ", ".join(column if " AS " in column else f"{column} AS {column}" for column in re.split(r", (?=time|map)", columns))
    over.con.execute(f"INSERT INTO events SELECT DISTINCT * REPLACE ('planted.evtx' AS filename, {columns}) FROM {rows}")
    claims_other = plant.startswith("1 ")
    assert sorted(over.query("evtx_script_blocks", select)) == [("b", True), ("x", claims_other)]
    # A part of another channel is of another script.
    over.con.execute("UPDATE events SET channel = 'Application' WHERE filename = 'planted.evtx'")
    assert sorted(over.query("evtx_script_blocks", select)) == [("b", False), ("b", False), ("x", False)]
