"""When, and which machine: the records of a log are in their order, whatever their times say."""

import datetime

import pytest
from made_up import ALICE, CMD, LOGOFF, LOGON, SECURITY, SERVICES, SVCHOST, WHOAMI, clock, depths, facts, logon, record, started


@pytest.mark.parametrize("middle", [
    [clock(3600, 7200)], [clock(3600, 7200), clock(5400, 5000)], [],
    [clock(3600, 7200, "Microsoft-Windows-Kernel-General")],
], ids=["set back", "and forward", "without a record", "in another log"])  # fmt: skip
def test_a_process_keeps_its_parent_after_the_clock_was_set(over, middle):
    over("evtx_process_tree", [started(7000, 800, SERVICES, 4), started(7005, 900, SVCHOST, 800, SERVICES), *middle,
                               started(5500, 1000, CMD, 900, SVCHOST), started(5501, 1004, WHOAMI, 1000, CMD), (5600, SECURITY, 4689, {"ProcessId": "0x3e8"})])  # fmt: skip
    assert depths(over) == {800: 0, 900: 1, 1000: 2, 1004: 3}
    assert over.query("evtx_process_tree", "end_time IS NOT NULL", "WHERE pid = 1000") == [(True,)]


def test_an_export_can_have_the_newest_record_first(over):
    over("evtx_process_tree", [started(7000, 800, SERVICES, 4), started(7005, 900, SVCHOST, 800, SERVICES), clock(3600, 7200), started(5500, 1000, CMD, 900, SVCHOST),
                               (5600, SECURITY, 4689, {"ProcessId": "0x384"}), logon(6000, 4624, "0xa1"), clock(4000, 6100), logon(4100, 4634, "0xa1")])  # fmt: skip
    over.con.execute("UPDATE events SET record_id = 100 - record_id, event_record_id = event_record_id * event_record_id")
    assert depths(over) == {800: 0, 900: 1, 1000: 2}
    assert over.query("evtx_process_tree", "pid", "WHERE end_time IS NOT NULL") == [(900,)]
    assert over.query("evtx_logons", "logoff_time - logon_time") == [(datetime.timedelta(seconds=-1900),)]


def test_a_gap_is_the_same_in_an_export_with_the_newest_record_first(over):
    """Of an hour without facts, the first and the last record count."""
    day = 24 * 3600
    events = [(at, "EventLog", 2, {}) for at in (0, 60, 100, 3 * day, 3 * day + 5)]
    gap = [(datetime.datetime(2024, 3, 5, 8, 1, 40), datetime.datetime(2024, 3, 8, 8))]
    assert facts(over, events, "gaps", "first, last") == gap
    over.con.execute("UPDATE events SET record_id = 100 - record_id")
    assert over.query("evtx_facts", "first, last", "WHERE topic = 'gaps'") == gap


@pytest.mark.parametrize("starts", [
    [(100, SECURITY, 4826, {}), (105, SECURITY, 4608, {})], [(100, "EventLog", 6005, {})], [(100, "Microsoft-Windows-Kernel-General", 12, {})],
    [started(100, 300, "C:\\Windows\\System32\\smss.exe", 4)],
    # The log has it last.
    [(100, SECURITY, 4608, {}), (160, SECURITY, 4688, {}), (70, "Microsoft-Windows-Kernel-General", 12, {})],
    # After the clock was set back, in the hour that ran twice.
    [clock(50, 3000), (100, SECURITY, 4608, {}), clock(50, 3000, "Microsoft-Windows-Kernel-General"), (99, "Microsoft-Windows-Kernel-General", 12, {})],
])  # fmt: skip
def test_a_process_from_before_windows_started_is_no_parent(over, starts):
    over("evtx_process_tree", [started(60, 900, CMD, 4), *starts, started(200, 1000, WHOAMI, 900, CMD)])
    assert {pid: depth for pid, depth in depths(over).items() if pid in (900, 1000)} == {900: 0, 1000: 0}


def test_the_events_of_a_start_are_one_start(over):
    """A process of the start is a parent after the last of its events."""
    over("evtx_process_tree", [(100, SECURITY, 4826, {}), started(101, 800, SERVICES, 4), (102, SECURITY, 4608, {}), (103, "EventLog", 6005, {}),
                               (99, "Microsoft-Windows-Kernel-General", 12, {}), started(200, 1000, CMD, 800, SERVICES)])  # fmt: skip
    assert depths(over) == {800: 0, 1000: 1}
    # Two starts within a minute.
    starts = [(at + number * 60, provider, event_id, {}) for number in range(2) for at, provider, event_id in ((1, "Microsoft-Windows-Kernel-General", 12), (2, "EventLog", 6005), (2, SECURITY, 4608))]
    assert facts(over, starts, "starts", "fact, events") == [("Windows started", 3)] * 2


def test_a_clock_that_was_set_makes_no_gap(over):
    day = 24 * 3600

    def change(at, old):
        old, new = ((datetime.datetime(2024, 3, 5, 8) + datetime.timedelta(seconds=time)).isoformat() for time in (old, at))
        return at, SECURITY, 4616, {"PreviousTime": old, "NewTime": new}

    events = [(300 * day, SECURITY, 5061, {}), change(0, 300 * day + 18), (1, SECURITY, 5061, {}), change(121 * day, 5), (121 * day + 20, SECURITY, 5061, {})]
    assert facts(over, events, "gaps") == []
    assert facts(over, [*events, (124 * day, SECURITY, 5061, {})], "gaps", "fact, last - first") == [("No events for 2 days", datetime.timedelta(seconds=3 * day - 20))]


def test_a_gap_begins_with_the_last_event_of_an_hour(over):
    """The log has an event from after the gap before those with which the gap begins, as after sleep."""
    later = 2 * 24 * 3600
    events = [(0, "EventLog", 2, {}), (later + 0.8, "EventLog", 6013, {"param7": "0 UTC"}), (5, "EventLog", 2, {}), (later + 0.5, "EventLog", 2, {}), (later + 1, "EventLog", 2, {})]
    assert facts(over, events, "gaps", "first") == [(datetime.datetime(2024, 3, 5, 8, 0, 5),)]


def machines(over, events):
    """The machines of events of one exported log, by the names of computers."""
    over("evtx_logons", [])
    for number, (computer, *more) in enumerate(events, 1):
        filename, record_id, event_id, data = (*more, *("logs/System.evtx", number, 1, {})[len(more):])
        record(over, filename, record_id, "EventLog", event_id, data, computer, "System")
    found = over.con.execute("SELECT list(DISTINCT computer) FROM evtx_machines_of('events') GROUP BY machine").fetchall()
    return sorted(sorted(names) for names, in found)


def test_names_of_one_machine_have_evidence(over):
    assert machines(over, [("a",), ("a",), ("b",)]) == [["a", "b"]]
    # Two records, a log with a gap between the names, and names that other logs have.
    assert machines(over, [("a",), ("b",)]) == [["a"], ["b"]]
    assert machines(over, [("a",), ("a",), ("b", "logs/System.evtx", 7)]) == [["a"], ["b"]]
    assert machines(over, [("a",), ("a",), ("b", "logs/Other.evtx", 3)]) == [["a"], ["b"]]
    renamed = ("b", "logs/Other.evtx", 3, 6011, {"param1": "A", "param2": "B"})
    assert machines(over, [("a",), ("a",), renamed]) == [["a", "b"]]
    # Logs in which both names are in use at the same time, and at different times.
    planted, others = [("a",), ("a",), ("b",)], [("a", "logs/A.evtx", 11), ("a", "logs/A.evtx", 19), ("b", "logs/B.evtx", 12), ("b", "logs/B.evtx", 18)]
    assert machines(over, [*planted, *others]) == [["a"], ["b"]]
    assert machines(over, [*planted, *others[:1], *others[2:]]) == [["a", "b"]]
    # The domain of the machine's own accounts changes with its name.
    for sids, found in ((["1-2-3-500", "1-2-3-1001"], [["a", "b"]]), (["1-2-3-500", "1-2-4-500"], [["a"], ["b"]])):
        over("evtx_logons", [])
        for number, computer, sid in ((1, "a", sids[0]), (5, "a", sids[0]), (9, "b", sids[1])):
            fields = {"TargetUserSid": f"S-1-5-21-{sid}", "TargetUserName": "anna", "TargetDomainName": computer.upper()}
            record(over, "logs/Security.evtx", number, SECURITY, 4624, fields, computer, "Security")
        assert sorted(sorted(names) for names, in over.con.execute("SELECT list(DISTINCT computer) FROM evtx_machines_of('events') GROUP BY machine").fetchall()) == found
    # Another machine has forwarded its events to the same log.
    machines(over, [("a",), ("a",), ("b",)])
    record(over, "logs/System.evtx", 4, SECURITY, 4608, {}, "c", "Security")
    record(over, "logs/System.evtx", 5, SECURITY, 4608, {}, "d", "Security")
    assert len(over.con.execute("SELECT DISTINCT machine FROM evtx_machines_of('events')").fetchall()) == 3
    # Names in other case, and one that NetBIOS has cut.
    assert machines(over, [("PC.corp", "1.evtx"), ("pc.CORP", "2.evtx")]) == [["PC.corp", "pc.CORP"]]
    long = "FILESERVER-BERLIN1.corp"
    assert machines(over, [(long, "1.evtx"), ("FILESERVER-BERL", "2.evtx")]) == [["FILESERVER-BERL", long]]
    assert len(machines(over, [(long, "1.evtx"), ("FILESERVER-BERL", "2.evtx"), ("FILESERVER-BERLIN2.corp", "3.evtx")])) == 3


def test_different_machines_stay_apart(over):
    def log(name, computer, *numbers):
        return [(computer, f"logs/{name}.evtx", number) for number in numbers]

    def renamed(name, number, old, new):
        return [(new, f"logs/{name}.evtx", number, 6011, {"param1": old, "param2": new})]

    # WS2 became WS3, and WS1 took its name.
    first = [*log("b", "ws2", 1, 2), *renamed("b", 3, "ws2", "ws3"), *log("b", "ws3", 4, 5, 6, 7, 8, 9)]
    second = [*log("a", "ws1", 2, 3, 4), *renamed("a", 5, "ws1", "ws2"), *log("a", "ws2", 6, 7)]
    assert machines(over, [*first, *second]) == [["ws1", "ws2"], ["ws2", "ws3"]]
    # Event 6011 says that two machines are one, but they write at the same time.
    both, planted = [*log("A", "a", 1, 8), *log("B", "b", 2, 7)], renamed("x", 9, "a", "b")
    assert machines(over, [*both, *planted]) == [["a"], ["b"]]
    assert machines(over, [*both[:2], *log("B", "b", 8, 9), *planted]) == [["a", "b"]]
    # One name is the first 15 letters of the other.
    hosts = "SRV-BERLIN-0001", "SRV-BERLIN-00012"
    assert machines(over, [*log("a", hosts[0], 1, 8), *log("b", hosts[1], 2, 7)]) == [[hosts[0]], [hosts[1]]]
    assert machines(over, [*log("a", hosts[0], 1, 3, 5), *log("a", hosts[1], 2, 4, 6)]) == [[*hosts]]


def test_a_log_of_sessions_follows_the_clock(over):
    """Only an event that is not of a session shows that the log is older than the change."""
    old, new = ((datetime.datetime(2024, 3, 5, 8) + datetime.timedelta(seconds=time)).isoformat() for time in (10801, 0))
    logon = {"TargetUserSid": ALICE, "TargetUserName": "alice", "TargetDomainName": "CORP", "TargetLogonId": "0x1", "LogonType": "2"}
    session = {"User": "CORP\\alice", "SessionID": "1", "Address": "LOCAL"}
    sessions = "Microsoft-Windows-TerminalServices-LocalSessionManager"
    events = [(10800, sessions, 34, {}), (0, SECURITY, 4616, {"PreviousTime": old, "NewTime": new}), (3, SECURITY, 4624, logon), (3.2, sessions, 21, session)]
    assert len(over("evtx_logons", events)) == 1


def test_a_session_has_the_name_that_the_machine_had(over):
    over("evtx_logons", [])
    for number, computer in enumerate(("old", "old", "new"), 1):
        record(over, "logs/WinRM.evtx", number, "Microsoft-Windows-WinRM", 169, {"username": "CORP\\anna"}, computer, "Microsoft-Windows-WinRM/Operational")
    assert {computer for computer, in over.query("evtx_logons", "computer")} == {"old", "new"}


def test_sessions_and_trees_go_on_across_a_rename(over):
    over("evtx_logons", [])
    for number, (event, computer) in enumerate([(LOGON, "old"), (started(0, 900, CMD, 4), "old"), (started(0, 1000, WHOAMI, 900, CMD), "NEW"), (LOGOFF, "new")], 1):
        record(over, "Security.evtx", number, *event[1:], computer, "Security")
    assert over.query("evtx_logons", "computer, duration_seconds") == [("old", 3.0)]
    assert sorted(over.query("evtx_process_tree", "computer, depth")) == [("NEW", 1), ("old", 0)]
