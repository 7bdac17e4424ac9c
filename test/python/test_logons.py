"""Logon sessions over made-up events."""

import pytest
from made_up import CHANNELS, CONNECTIONS, GATEWAY, SECURITY, SESSIONS, clock, logon

LOGONS = "epoch(logon_time)::INT % 3600, epoch(logoff_time)::INT % 3600, user_name, logon_type, logon_id, len(privileges)"


def test_a_session_is_from_a_logon_to_the_next_logoff_with_its_id(over):
    events = [
        logon(1, 4634, "0x9", LogonType="3"),  # started before the log
        logon(10, 4624, "0xA1", LogonType="10"),
        logon(10, 4672, "0xa1", PrivilegeList="SeDebugPrivilege\r\n\t\t\tSeTcbPrivilege"),
        logon(20, 4647, "0xa1"),
        logon(21, 4634, "0xa1", LogonType="10"),
        logon(30, 4624, "0xa1", "bert", LogonType="2"),  # after a boot, with no end
        logon(40, 4624, "0xa2", LogonType="3"),
    ]
    for copies in (1, 2):
        assert sorted(over("evtx_logons", events, LOGONS, copies=copies), key=str) == [
            (10, 20, "D\\anna", 10, "0xa1", 2),
            (30, None, "D\\bert", 2, "0xa1", None),
            (40, None, "D\\anna", 3, "0xa2", None),
            (None, 1, "D\\anna", 3, "0x9", None),
        ]


def test_a_clock_that_was_set_back_splits_no_session(over):
    events = [
        logon(1000, 4624, "0xa1", LogonType="10"), logon(1000.2, 4672, "0xa1", PrivilegeList="SeDebugPrivilege"),
        logon(100, 4634, "0xa1", LogonType="10"), logon(200, 4624, "0xa1", "bert", LogonType="3"),
    ]
    assert sorted(over("evtx_logons", events, LOGONS), key=str) == [(1000, 100, "D\\anna", 10, "0xa1", 1), (200, None, "D\\bert", 3, "0xa1", None)]


def test_a_log_that_was_cleared_splits_no_session(over):
    """After clearing, records start at 1 again. The older ones are in an archived file."""
    over("evtx_logons", [logon(10, 4624, "0xa1", LogonType="10"), logon(20, 4624, "0xb1", LogonType="3"), logon(30, 4634, "0xa1", LogonType="10")])
    over.con.execute("UPDATE events SET filename = CASE WHEN record_id < 2 THEN 'archived' ELSE 'live' END")
    over.con.execute("UPDATE events SET event_record_id = CASE WHEN record_id < 2 THEN 5000 + record_id ELSE 1 END")
    assert sorted(over.query("evtx_logons", LOGONS), key=str) == [(10, 30, "D\\anna", 10, "0xa1", None), (20, None, "D\\anna", 3, "0xb1", None)]


def test_machine_accounts_are_no_services(over):
    events = [
        logon(1, 4624, "0x3e7", "SYSTEM", "S-1-5-18", LogonType="5"), logon(2, 4624, "0xb7", "DC01$", "S-1-5-18", LogonType="3"),
        logon(3, 4624, "0x1", "DWM-1", "S-1-5-90-0-1", LogonType="2"), logon(4, 4634, "0xb7", "DC01$", "S-1-5-18", LogonType="3"),
    ]
    assert over("evtx_logons", events, LOGONS) == [(2, 4, "D\\DC01$", 3, "0xb7", None)]


def test_privileges_that_come_before_their_logon_are_those_of_its_session(over):
    events = [logon(5, 4624, "0xa1", LogonType="3"), logon(9.5, 4672, "0xa1", PrivilegeList="SeDebugPrivilege"), logon(9.6, 4624, "0xa1", LogonType="3")]
    assert sorted(over("evtx_logons", events, LOGONS)) == [(5, None, "D\\anna", 3, "0xa1", None), (10, None, "D\\anna", 3, "0xa1", 1)]


def test_privileges_without_an_open_session_are_those_of_the_next_logon(over):
    events = [
        logon(1, 4672, "0xa1", PrivilegeList="SeDebugPrivilege"),
        logon(5, 4624, "0xa1", LogonType="3"),
        logon(6, 4634, "0xa1"),
        logon(10, 4672, "0xA1", PrivilegeList="SeDebugPrivilege\r\n\t\t\tSeTcbPrivilege"),  # the ID is reused
        logon(15, 4624, "0xa1", LogonType="3"),
        logon(16, 4672, "0xa2", PrivilegeList="SeDebugPrivilege"),  # of a logon before the log
        logon(17, 4634, "0xa2", LogonType="3"),
        logon(18, 4624, "0xa2", LogonType="2"),
        logon(19, 4624, "0xa3", LogonType="2"),
        logon(19, 4672, "0xa3", PrivilegeList="SeDebugPrivilege"),
        logon(19.2, 4634, "0xa3"),
        logon(30, 4624, "0xa3", LogonType="2"),
        logon(40, 4672, "0xa4", PrivilegeList="SeDebugPrivilege"),  # alone
    ]
    for copies in (1, 2):
        assert sorted(over("evtx_logons", events, LOGONS, copies=copies), key=str) == [
            (15, None, "D\\anna", 3, "0xa1", 2),
            (18, None, "D\\anna", 2, "0xa2", None),
            (19, 19, "D\\anna", 2, "0xa3", 1),
            (30, None, "D\\anna", 2, "0xa3", None),
            (5, 6, "D\\anna", 3, "0xa1", 1),
            (None, 17, "D\\anna", 3, "0xa2", 1),
            (None, None, "D\\anna", None, "0xa4", 1),
        ]


def test_logons_without_an_id_are_sessions_of_their_own(over):
    def without_id(at, event_id, **fields):
        at, provider, event_id, all_fields = logon(at, event_id, "", **fields)
        return at, provider, event_id, {name: value for name, value in all_fields.items() if not name.endswith("LogonId")}

    events = [without_id(1, 4624, user="anna", LogonType="3"), without_id(2, 4624, user="bert", LogonType="3"), without_id(3, 4634), without_id(4, 4672)]
    assert sorted(over("evtx_logons", events, LOGONS)) == [(1, None, "D\\anna", 3, None, None), (2, None, "D\\bert", 3, None, None)]


def desktop(at, event_id, session="2", user="D\\anna", address="203.0.113.9"):
    data = {39: {"TargetSession": session}, 40: {"Session": session, "Reason": "5"}, 23: {"User": user, "SessionID": session}}
    return at, SESSIONS, event_id, data.get(event_id, {"User": user, "SessionID": session, "Address": address})


def reconnect(at, event_id, logon_id, client="KALI"):
    return at, SECURITY, event_id, {"AccountName": "anna", "AccountDomain": "D", "LogonID": logon_id, "SessionName": "RDP-Tcp#1", "ClientName": client, "ClientAddress": "192.168.0.7"}


SESSION = "kind, epoch(logon_time)::INT % 3600, epoch(logoff_time)::INT % 3600, user_name, remote_host, logon_id"
VISITS = "[(epoch(visit.connected)::INT % 3600, epoch(visit.disconnected)::INT % 3600, visit.remote_host) FOR visit IN connections]"
COME = [(0, CONNECTIONS, 1149, {"Param1": "anna", "Param2": "", "Param3": "203.0.113.9"}), desktop(2, 21)]
LOGON_10 = [logon(1, 4624, "0xa1", LogonType="10", IpAddress="203.0.113.9")]
GO, BACK, END = [desktop(50, 24)], [desktop(200, 25, address="203.0.113.77")], [desktop(300, 23)]


@pytest.mark.parametrize(["events", "rows"], [
    (COME + LOGON_10 + GO + BACK + END, [(1, 300, "0xa1", [(0, 50, "203.0.113.9"), (200, 300, "203.0.113.77")])]),
    # One log.
    (COME[1:] + GO + BACK + END, [(2, 300, None, [(2, 50, "203.0.113.9"), (200, 300, "203.0.113.77")])]),
    (COME[:1], [(0, None, None, [(0, None, "203.0.113.9")])]),
    (GO + END, [(None, 300, None, [(None, 50, "203.0.113.9")])]),
    (BACK, [(None, None, None, [(200, None, "203.0.113.77")])]),
    # 39 and 40 name no account.
    (COME + [desktop(50, 39)] + BACK, [(2, None, None, [(0, 50, "203.0.113.9"), (200, None, "203.0.113.77")])]),
    ([desktop(50, 40)], []),
    # The logon ID of the session. In 4778, the address is what the client says.
    (LOGON_10 + [reconnect(60, 4779, "0xA1"), logon(199, 4624, "0xb1", LogonType="7", IpAddress="203.0.113.77"), reconnect(200, 4778, "0xa1"), logon(201, 4634, "0xb1"), logon(300, 4647, "0xa1")],
     [(1, 300, "0xa1", [(1, 60, "203.0.113.9"), (199, 300, "203.0.113.77")])]),
    ([reconnect(200, 4778, "0xa1")], [(None, None, "0xa1", [(200, None, "192.168.0.7")])]),
    (LOGON_10 + [reconnect(60, 4779, "0xa1"), logon(199, 4624, "0xb1", LogonType="10", IpAddress="203.0.113.77"), reconnect(200, 4778, "0xa1"), logon(201, 4634, "0xb1"), logon(300, 4647, "0xa1")],
     [(1, 300, "0xa1", [(1, 60, "203.0.113.9"), (199, 300, "203.0.113.77")])]),
    (LOGON_10 + COME[1:] + GO + [logon(199, 4624, "0xb1", LogonType="10", IpAddress="203.0.113.77")] + BACK + [logon(201, 4634, "0xb1")] + END,
     [(1, 300, "0xa1", [(1, 50, "203.0.113.9"), (199, 300, "203.0.113.77")])]),
    # Nothing but the account says to which session.
    (LOGON_10 + [logon(200, 4624, "0xb1", LogonType="7", IpAddress="203.0.113.77"), logon(300, 4634, "0xa1")], [(1, 300, "0xa1", [(1, None, "203.0.113.9"), (200, 300, "203.0.113.77")])]),
    (LOGON_10 + [logon(100, 4634, "0xa1"), logon(200, 4624, "0xb1", LogonType="7", IpAddress="203.0.113.77")],
     [(1, 100, "0xa1", [(1, 100, "203.0.113.9")]), (200, None, "0xb1", [(200, None, "203.0.113.77")])]),
    # What comes before the new connection is complete ends the one before.
    (COME + [(200, CONNECTIONS, 1149, COME[0][3]), desktop(201, 24), desktop(202, 25)], [(2, None, None, [(0, 201, "203.0.113.9"), (200, None, "203.0.113.9")])]),
    # Windows uses the number of a session again.
    (COME[1:] + END + [desktop(400, 21), desktop(500, 24)], [(2, 300, None, [(2, 300, "203.0.113.9")]), (400, None, None, [(400, 500, "203.0.113.9")])]),
    # Both halves of a token. 4778 and 4779 can have the ID of either.
    (LOGON_10 + [logon(1.1, 4624, "0xa2", LogonType="10", IpAddress="203.0.113.9"), reconnect(60, 4779, "0xa2"), reconnect(200, 4778, "0xa2"), logon(300, 4647, "0xa2")],
     [(1, 300, "0xa1", [(1, 60, "203.0.113.9"), (200, 300, "192.168.0.7")])]),
    (LOGON_10 + [logon(1.1, 4624, "0xa2", LogonType="10", IpAddress="203.0.113.9"), *COME, logon(60, 4647, "0xa2")], [(1, 60, "0xa1", [(0, 60, "203.0.113.9")])]),
])  # fmt: skip
def test_a_session_of_remote_desktop_is_one_row(over, events, rows):
    found = over("evtx_logons", events, f"{SESSION}, {VISITS}", "ORDER BY coalesce(logon_time, logoff_time) ASC")
    assert [(start, end, logon_id, [tuple(visit.values()) if isinstance(visit, dict) else tuple(visit) for visit in visits]) for _, start, end, _, _, logon_id, visits in found] == rows
    assert {kind for kind, *_ in found} <= {"remote desktop"}


def logon_10(at, logon_id, host):
    return logon(at, 4624, logon_id, LogonType="10", IpAddress=host)


@pytest.mark.parametrize(["events", "rows"], [
    # Two sessions, the second at an earlier time by the clock.
    ([logon_10(1000, "0xa1", "203.0.113.9"), logon(1300, 4634, "0xa1"), logon_10(200, "0xb1", "203.0.113.77"), logon(400, 4634, "0xb1")],
     [(200, 400, "0xb1", [(200, 400, "203.0.113.77")]), (1000, 1300, "0xa1", [(1000, 1300, "203.0.113.9")])]),
    ([logon_10(1000, "0xa1", "203.0.113.9"), logon_10(200, "0xb1", "203.0.113.77"), logon(400, 4634, "0xb1")],
     [(200, 400, "0xb1", [(200, 400, "203.0.113.77")]), (1000, None, "0xa1", [(1000, None, "203.0.113.9")])]),
    ([desktop(1000, 21, "2"), desktop(1300, 23, "2"), desktop(200, 21, "3"), desktop(400, 23, "3")],
     [(200, 400, None, [(200, 400, "203.0.113.9")]), (1000, 1300, None, [(1000, 1300, "203.0.113.9")])]),
    # One session.
    ([logon_10(1000, "0xa1", "203.0.113.9"), logon(200, 4634, "0xa1")], [(1000, 200, "0xa1", [(1000, 200, "203.0.113.9")])]),
])  # fmt: skip
@pytest.mark.parametrize("is_reported", [True, False])
def test_sessions_are_in_the_order_of_their_log(over, events, rows, is_reported):
    at = next(place for place, event in enumerate(events) if event[0] < 1000)
    change = [clock(190, 1400)] if is_reported else []
    found = over("evtx_logons", events[:at] + change + events[at:], f"{SESSION}, {VISITS}", "ORDER BY logon_time ASC")
    assert [(start, end, logon_id, [tuple(visit) for visit in visits]) for _, start, end, _, _, logon_id, visits in found] == rows


@pytest.mark.parametrize(["fields", "address"], [({"LogonType": "2", "IpAddress": "127.0.0.1"}, "LOCAL"), ({"LogonType": "10", "IpAddress": "203.0.113.9"}, "203.0.113.9")])
def test_the_start_of_the_log_of_sessions_places_its_first_session(over, fields, address):
    events = [(1300, SESSIONS, 32, {"PluginName": "a"}), clock(190, 1400), logon(200, 4624, "0xa1", **fields), desktop(201, 21, address=address), desktop(400, 23), logon(401, 4647, "0xa1")]
    assert over("evtx_logons", events, f"user_sid, {VISITS}") == [("S-1-5-21-1", [(200, 400, None if address == "LOCAL" else address)])]


@pytest.mark.parametrize(["events", "workstation", "doubts"], [
    ([logon_10(1, "0xa1", "203.0.113.9"), reconnect(200, 4778, "0xa1", client="PC")], None, []),
    ([logon_10(1, "0xa1", "203.0.113.9"), reconnect(60, 4779, "0xa1", client="KALI"), reconnect(200, 4778, "0xa1", client="ATTIC"), reconnect(300, 4779, "0xa1", client="ATTIC")], "KALI", []),
    ([logon_10(1, "0xa1", "203.0.113.9"), reconnect(60, 4779, "0xa1", client="PC")], "PC", ["claims to be this machine"]),
])  # fmt: skip
def test_the_workstation_is_that_of_the_first_connection(over, events, workstation, doubts):
    assert over("evtx_logons", events, "workstation, doubts") == [(workstation, doubts)]


def test_a_session_at_the_console_is_that_of_its_logon(over):
    events = [logon(1, 4624, "0xa1", LogonType="2", IpAddress="127.0.0.1"), desktop(2, 21, address="LOKAL"), desktop(50, 23)]
    assert over("evtx_logons", events, SESSION) == [("windows", 1, 50, "D\\anna", None, "0xa1")]
    assert over("evtx_logons", events[1:], SESSION) == [("windows", 2, 50, "D\\anna", None, None)]


ACCEPTED, DISCONNECTED = "Accepted password for D\\anna from 203.0.113.9 port 4711 ssh2", "Disconnected from user D\\anna 203.0.113.9 port 4711"


def ssh(at, text):
    return at, "OpenSSH", 4, {"process": "sshd", "payload": text}


@pytest.mark.parametrize(["events", "rows"], [
    ([ssh(1, ACCEPTED), ssh(9, DISCONNECTED)], [("ssh", 1, 9, "D\\anna", "203.0.113.9", None)]),
    ([ssh(9, DISCONNECTED)], [("ssh", None, 9, "D\\anna", "203.0.113.9", None)]),
    # Other texts, which can have a name that somebody chose.
    ([ssh(1, f"Failed password for invalid user {ACCEPTED} from 203.0.113.9 port 1 ssh2"), ssh(2, "Connection closed by authenticating user anna 203.0.113.9 port 4711 [preauth]")], []),
    # The logon that the service requests.
    ([logon(0, 4624, "0xa1", LogonType="8", ProcessName="C:\\Windows\\System32\\OpenSSH\\sshd.exe"), ssh(1, ACCEPTED), ssh(9, DISCONNECTED)], [("ssh", 0, 9, "D\\anna", "203.0.113.9", "0xa1")]),
    ([(1, "Microsoft-Windows-WinRM", 169, {"username": "D\\anna", "authenticationMechanism": "NTLM"}), (2, "Microsoft-Windows-WinRM", 91, {"resourceUri": "x"}, "S-1-5-21-1")], [("winrm", 2, None, "D\\anna", None, None)]),
    ([(2, "Microsoft-Windows-WinRM", 91, {"resourceUri": "x"}, "S-1-5-21-1")], [("winrm", 2, None, "S-1-5-21-1", None, None)]),
    ([logon(1, 4624, "0xa1", LogonType="3", IpAddress="203.0.113.9"), (2, "Microsoft-Windows-WinRM", 91, {"resourceUri": "x"}, "S-1-5-21-1"), logon(5, 4634, "0xa1")], [("winrm", 1, 5, "D\\anna", "203.0.113.9", "0xa1")]),
    ([logon(1, 4624, "0xa1", LogonType="3"), (20, "Microsoft-Windows-WinRM", 91, {"resourceUri": "x"}, "S-1-5-21-1")], [("windows", 1, None, "D\\anna", None, "0xa1"), ("winrm", 20, None, "D\\anna", None, None)]),
    ([(1, provider, event_id, {"param1": "sa", "param2": f"{text}[CLIENT: 203.0.113.9]"}) for provider, event_id, text in [("MSSQLSERVER", 18454, " "), ("MSSQL$ERP", 18454, ""), ("MSSQL$ERP", 18456, "")]],
     [("sql server", 1, None, "sa", "203.0.113.9", None)] * 2),
    ([(at, GATEWAY, event_id, {"Username": "D\\anna", "IpAddress": "203.0.113.9", "Resource": "srv"}) for at, event_id in [(1, 300), (2, 302), (9, 303), (20, 304)]], [("gateway", 2, 9, "D\\anna", "203.0.113.9", None)]),
    ([(at, "RemoteAccess", event_id, {"param1": "{1}", "param2": "D\\anna"}) for at, event_id in [(1, 20271), (2, 20274), (9, 20275), (9, 20272)]], [("vpn", 2, 9, "D\\anna", None, None)]),
])  # fmt: skip
def test_logons_to_services_have_their_kind(over, events, rows):
    assert over("evtx_logons", events, SESSION, "ORDER BY logon_time ASC") == rows


def test_each_session_of_a_service_has_its_own_logon(over):
    """The one that ends with it, if two start within a second."""
    sshd, texts = {"LogonType": "8", "ProcessName": "C:\\Windows\\System32\\OpenSSH\\sshd.exe"}, [ACCEPTED, ACCEPTED.replace("203.0.113.9", "10.0.0.5")]
    ends = [DISCONNECTED, DISCONNECTED.replace("203.0.113.9", "10.0.0.5")]
    events = [logon(0, 4624, "0xa1", **sshd), logon(0.2, 4624, "0xb1", **sshd), ssh(0.4, texts[0]), ssh(0.6, texts[1]), ssh(50, ends[0]), logon(51, 4634, "0xa1"), ssh(90, ends[1]), logon(90, 4634, "0xb1")]
    for order in (events, [*events[:2], events[3], events[2], *events[4:]]):
        assert over("evtx_logons", order, SESSION, "ORDER BY logoff_time ASC") == [("ssh", 0, 50, "D\\anna", "203.0.113.9", "0xa1"), ("ssh", 0, 90, "D\\anna", "10.0.0.5", "0xb1")]
    events = [logon(0, 4624, "0xa1", LogonType="3", IpAddress="10.0.0.5"), *[(at, f"MSSQL${at % 2}", 18453, {"param1": "D\\anna", "param2": "[CLIENT: 10.0.0.5]"}) for at in range(1, 9)]]
    assert [(kind, host) for kind, *_, host, _ in over("evtx_logons", events, SESSION)] == [("sql server", "10.0.0.5")] * 8
    # A logon can have several shells.
    shells = [(at, "Microsoft-Windows-WinRM", 91, {"resourceUri": "x"}, "S-1-5-21-1") for at in (2, 4)]
    assert over("evtx_logons", [*events[:1], *shells], SESSION) == [("winrm", 0, None, "D\\anna", "10.0.0.5", "0xa1")]


def test_providers_of_sessions_compare_without_case(over):
    def of(change):
        events = [*LOGON_10, *COME, reconnect(60, 4779, "0xa1"), ssh(1, ACCEPTED), (9, "MSSQL$ERP", 18454, {"param1": "sa"}), logon(90, 4634, "0xa1")]
        over("evtx_logons", [])
        for at, event in enumerate(events):
            over.con.execute("""INSERT INTO events BY NAME SELECT $1 AS record_id, $1 AS event_record_id, TIMESTAMP_NS '2024-03-05 08:00:00' + to_seconds($2) AS time_created,
                $3 AS provider, $4 AS event_id, map_from_entries($5::STRUCT(k VARCHAR, v VARCHAR)[]) AS event_data, 'pc' AS computer, $6 AS channel""",
                [at, event[0], change(event[1]), event[2], [{"k": k, "v": v} for k, v in event[3].items()], CHANNELS.get(event[1], event[1])])  # fmt: skip
        return over.query("evtx_logons", SESSION, "ORDER BY kind ASC")

    expected = [("remote desktop", 1, 90, "D\\anna", "203.0.113.9", "0xa1"), ("sql server", 9, None, "sa", None, None), ("ssh", 1, None, "D\\anna", "203.0.113.9", None)]
    assert [of(str), of(str.lower), of(str.upper)] == [expected] * 3


@pytest.mark.parametrize(["fields", "workstation", "doubts"], [
    ({"LogonType": "3", "WorkstationName": "KALI"}, "KALI", []), ({"LogonType": "3", "WorkstationName": "PC"}, "PC", ["claims to be this machine"]),
    *[({"LogonType": "3", "WorkstationName": name}, name.strip("\\"), ["claims to be this machine"]) for name in ("\\\\PC", "localhost", "127.0.0.1")], ({"LogonType": "3", "WorkstationName": "\\\\KALI"}, "KALI", []),
    *[({"LogonType": str(kind), "WorkstationName": "PC"}, None, []) for kind in (2, 4, 5, 7, 10, 11)], ({"LogonType": "10", "WorkstationName": "OLDNAME"}, "OLDNAME", []),
    ({"LogonType": "8", "WorkstationName": "pc", "ProcessName": "-"}, "pc", ["claims to be this machine"]), ({"LogonType": "8", "WorkstationName": "pc", "ProcessName": "C:\\w3wp.exe"}, None, []),
])  # fmt: skip
def test_only_other_machines_claim_to_be_this_one(over, fields, workstation, doubts):
    assert over("evtx_logons", [logon(1, 4624, "0xa1", **fields)], "workstation, doubts") == [(workstation, doubts)]
    assert over("evtx_logons", [reconnect(1, 4778, "0xa1", client="PC")], "workstation, doubts") == [("PC", ["claims to be this machine"])]


def test_all_accounts(over):
    events = [logon(1, 4624, "0x3e7", "SYSTEM", "S-1-5-18", LogonType="5"), logon(2, 4624, "0xb7", "PC$", "S-1-5-18", LogonType="3"), logon(3, 4624, "0x12", "UMFD-0", "S-1-5-96-0-0", LogonType="2")]
    assert over("evtx_logons", events) == []
    found = over.con.execute("SELECT logon_type FROM evtx_logons_of('events', all_accounts := true) ORDER BY logon_time ASC").fetchall()
    assert found == [(5,), (3,), (2,)]


@pytest.mark.parametrize(["user", "address", "is_shown"], [("eve", "203.0.113.9", True), ("SYSTEM", "-", False), ("eve", "127.0.0.1", False), ("PC$", "203.0.113.9", False)])
def test_logons_as_system_from_another_machine_stay(over, user, address, is_shown):
    events = [logon(1, 4624, "0xb7", user, "S-1-5-18", LogonType="3", IpAddress=address), logon(2, 4634, "0xb7", user, "S-1-5-18", LogonType="3")]
    assert over("evtx_logons", events, LOGONS) == [(1, 2, f"D\\{user}", 3, "0xb7", None)][:is_shown]


def test_sessions_of_windows_itself_are_left_out(over):
    events = [
        logon(1, 4624, "0x3e7", "SYSTEM", "S-1-5-18"), logon(1, 4672, "0x3e7", "SYSTEM", "S-1-5-18"), logon(2, 4624, "0x3e4", "x"),
        logon(3, 4624, "0x3E5", "x"), logon(4, 4624, "0x11", "DWM-1", "S-1-5-90-0-1"), logon(5, 4624, "0x12", "UMFD-0", "S-1-5-96-0-0"),
    ]
    assert over("evtx_logons", events) == []
