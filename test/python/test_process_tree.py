"""Process trees over made-up events."""

import pytest
from made_up import CMD, SECURITY, SERVICES, SVCHOST, SYSMON, depths, security, sysmon


def tree(over, events, **arguments):
    return [row[0] for row in over("evtx_process_tree", events, "tree", "ORDER BY tree_order ASC", **arguments)]


def test_a_parent_is_the_process_that_had_the_id_then(over):
    events = [
        security(1, 16, 4, "C:\\a.exe"),
        security(2, 32, 16, "C:\\b.exe"),
        (3, SECURITY, 4689, {"ProcessId": "0x10", "ProcessName": "C:\\a.exe"}),
        security(4, 48, 16, "C:\\orphan.exe"),
        security(5, 16, 4, "C:\\second.exe"),
        security(6, 64, 16, "C:\\c.exe"),
        security(7, 80, 16, "C:\\d.exe", "C:\\other.exe"),
        (8, "Microsoft-Windows-Kernel-General", 12, {}),
        security(9, 96, 16, "C:\\e.exe"),
    ]
    want = ["a.exe", ". b.exe", "orphan.exe", "second.exe", ". c.exe", "d.exe", "e.exe"]
    assert tree(over, events) == want
    assert tree(over, events, copies=2) == want
    assert over.query("evtx_process_tree", "tree, epoch(end_time - time_created) AS lived", "WHERE lived > 0") == [("a.exe", 2.0)]


def test_a_process_of_both_logs_is_one_row(over):
    events = [
        security(1, 16, 4, "C:\\a.exe"), sysmon(1.1, 16, "{A}", 4, "{0}", "c:\\A.exe"),
        security(2, 32, 16, "C:\\b.exe"), sysmon(2.1, 32, "{B}", 16, "{a}", "C:\\b.exe", User="d\\U"),
        security(3, 48, 32, "C:\\c.exe"), sysmon(3.1, 64, "{D}", 32, "{B}", "C:\\d.exe"),
        (4, SYSMON, 5, {"ProcessId": "32", "ProcessGuid": "{B}"}),
    ]
    assert tree(over, events) == ["A.exe", ". b.exe", ". . c.exe", ". . d.exe"]
    columns = "event_ids, end_time IS NOT NULL"
    assert over.query("evtx_process_tree", columns, "ORDER BY tree_order ASC") == [([1, 4688], False), ([1, 4688], True), ([4688], False), ([1], False)]


@pytest.mark.parametrize(("command_line", "planted"), [
    ("a.exe -evil", {"CommandLine": "harmless"}), ("", {"parent_pid": 8}), ("", {"User": "D\\bob"}), ("", {"User": "NT AUTHORITY\\SYSTEM", "LogonId": "0x3e7"}),
    ("", {"ParentImage": "C:\\explorer.exe"}), ("a.exe -evil", {"ParentImage": "C:\\explorer.exe", "CommandLine": "", "User": ""}),
    ("", {"at": 2.2}), ("", {"image": "C:\\b.exe"}),
])  # fmt: skip
def test_a_record_of_sysmon_that_says_something_else_is_another_process(over, command_line, planted):
    """A planted log does not replace what a process did, who started it, and what started it."""
    record = {"at": 1.1, "pid": 16, "guid": "{A}", "parent_pid": 4, "parent_guid": "{0}", "image": "C:\\a.exe", "User": "D\\u"}
    true = security(1, 16, 4, "C:\\a.exe", "C:\\word.exe", CommandLine=command_line)
    assert over("evtx_process_tree", [true, sysmon(**record)], "event_ids, contested") == [([1, 4688], False)]
    found = over("evtx_process_tree", [true, sysmon(**record | planted)], "event_ids, command_line, user_name, parent_pid, parent_process, contested", "ORDER BY event_ids ASC")
    # Two processes, or two stories about one.
    is_contested = not planted.keys() & {"at", "image", "parent_pid"}
    assert [(ids, contested) for ids, *_, contested in found] == [([1], is_contested), ([4688], is_contested)]
    assert found[1][1:5] == (command_line or None, "D\\u", 4, "C:\\word.exe")


@pytest.mark.parametrize("others", [
    [sysmon(0.9, 16, "{B}", 4, "{0}", "C:\\a.exe", CommandLine="harmless")], [sysmon(1.3, 16, "{B}", 4, "{0}", "C:\\a.exe", CommandLine="harmless", User="D\\bob")],
    [security(1.6, 16, 4, "C:\\a.exe")], [security(2, 16, 4, "C:\\a.exe", CommandLine="x")],
])  # fmt: skip
def test_records_of_which_several_could_be_one_process_stay(over, others):
    events = [security(1, 16, 4, "C:\\a.exe"), sysmon(1.2, 16, "{A}", 4, "{0}", "C:\\a.exe"), *others]
    found = over("evtx_process_tree", events, "event_ids, command_line")
    assert sorted(found, key=str) == sorted((([event[2]], event[3].get("CommandLine")) for event in events), key=str)


@pytest.mark.parametrize("user", ["NT AUTHORITY\\SYSTEM", "NT-AUTORITÄT\\SYSTEM", "AUTORITE NT\\Système", "AUTORIDADE NT\\SISTEMA"])
def test_sysmon_names_the_accounts_of_windows_in_its_language(over, user):
    who = {"SubjectUserSid": "S-1-5-18", "SubjectUserName": "PC$", "SubjectDomainName": "CORP", "SubjectLogonId": "0x3e7"}
    for theirs, merged in [({"User": user, "LogonId": "0x3e7"}, True), ({"User": user, "LogonId": "0x3e4"}, False), ({"User": "CORP\\bob", "LogonId": "0x3e7"}, False)]:
        events = [security(1, 16, 4, "C:\\a.exe", **who), sysmon(1.1, 16, "{A}", 4, "{0}", "C:\\a.exe", **theirs)]
        assert len(over("evtx_process_tree", events)) == 2 - merged


def test_parents_that_are_their_own_children_do_no_harm(over):
    events = [sysmon(1, 1, "{A}", 2, "{B}", "a.exe"), sysmon(2, 2, "{B}", 1, "{A}", "b.exe"), sysmon(3, 3, "{C}", 3, "{C}", "c.exe")]
    assert tree(over, events) == ["a.exe", ". b.exe", "c.exe"]


def test_computers_are_apart(over):
    assert tree(over, [security(1, 16, 4, "C:\\a.exe")]) == ["a.exe"]
    over.con.execute("INSERT INTO events BY NAME SELECT * REPLACE ('other' AS computer, MAP {'NewProcessId': '0x20', 'ProcessId': '0x10', 'NewProcessName': 'b.exe'} AS event_data, time_created + INTERVAL 1 SECOND AS time_created) FROM events")
    assert sorted(over.query("evtx_process_tree", "depth, process")) == [(0, "C:\\a.exe"), (0, "b.exe")]


@pytest.mark.parametrize("empty", [{}, {"CommandLine": "", "ParentImage": "", "ParentProcessName": "", "User": "", "LogonId": ""}, {"ParentImage": "-", "ParentProcessName": "-", "User": "-"}])
def test_a_merged_process_has_what_one_of_its_records_says(over, empty):
    """A planted record of Sysmon without a value hides none, even if it names another process as the parent."""
    by_security = {"CommandLine": "real", "ParentProcessName": "C:\\word.exe", "SubjectUserName": "u", "SubjectLogonId": "0x7"}
    by_sysmon = {"CommandLine": "real", "ParentImage": "C:\\word.exe", "User": "u", "LogonId": "0x7"}
    for one, other in [(by_security, empty), ({"SubjectUserName": "u"} | empty, by_sysmon)]:
        events = [
            security(0, 4, 1, "C:\\word.exe"), sysmon(0, 8, "{E}", 1, "{0}", "C:\\explorer.exe"),
            (2, SECURITY, 4688, {"NewProcessId": "0x10", "ProcessId": "0x4", "NewProcessName": "C:\\p.exe", **one}), sysmon(2, 16, "{P}", 4, "{E}", "C:\\p.exe", **other),
            security(5, 32, 16, "C:\\child.exe"),
        ]
        select = "event_ids, command_line, parent_process, user_name, logon_id"
        assert over("evtx_process_tree", events, select, "WHERE pid = 16") == [([1, 4688], "real", "C:\\word.exe", "u", "0x7")]
        assert over.query("evtx_process_tree", "parent_command_line", "WHERE pid = 32") == [("real",)]


def test_a_parent_without_a_program_is_no_other_program(over):
    def process(at, pid, parent_pid, image):
        return at, SYSMON, 1, {"ProcessId": str(pid), "Image": image, "ParentProcessId": str(parent_pid), "ParentImage": "-", "ProcessGuid": "{" + f"{pid:08}-0" + "}"}
    over("evtx_process_tree", [process(0, 800, 700, SERVICES), process(1, 900, 800, SVCHOST), process(2, 1000, 900, CMD)])
    assert depths(over) == {800: 0, 900: 1, 1000: 2}
