"""Facts over made-up events."""

import random

import duckdb
import pytest
from conftest import SAMPLES
from made_up import ALICE, CONNECTIONS, DOMAIN, SECURITY, SESSIONS, clock, facts, failure, logon_of, record, success


def logons_failed(count, rest=""):
    return f"{count} failed logon{'s' * (count != 1)}{rest}"


SAME, OTHER = ", then a logon of the same account", ", then a logon of another account"


@pytest.mark.parametrize(("events", "found"), [
    # Seconds are counted from 08:00:00. NTLM has a name, but no address.
    ([failure(at, "bob", workstation="kali") for at in range(95)] + [success(96, "BOB", "kali")],
     [("high", logons_failed(95, SAME), "CORP\\bob", "kali", 0, 96, 95, "STATUS_LOGON_FAILURE; pause of 2 s")]),
    # One password for each of many accounts. That of another one was right.
    ([failure(at * 30, f"user{at}", "::ffff:10.0.0.9") for at in range(12)] + [success(500, "other", "10.0.0.9")],
     [("info", logons_failed(1), "CORP\\user0", "10.0.0.9", 0, 0, 1, "STATUS_LOGON_FAILURE"), ("medium", "12 failed logons of 12 accounts", None, "10.0.0.9", 0, 330, 12, "STATUS_LOGON_FAILURE"),
      *[("info", logons_failed(1), f"CORP\\user{at}", "10.0.0.9", at * 30, at * 30, 1, "STATUS_LOGON_FAILURE") for at in range(1, 12)],
      ("medium", logons_failed(12, OTHER), "CORP\\other", "10.0.0.9", 500, 500, 1, "failures of several accounts")]),
    ([success(1, "bob", "-"), failure(2, "bob")], [("info", logons_failed(1), "CORP\\bob", None, 2, 2, 1, "STATUS_LOGON_FAILURE")]),
    ([failure(1, "bob", "0.0.0.0"), failure(2, "bob", "127.0.0.1", "PC")], [("info", logons_failed(2), "CORP\\bob", None, 1, 2, 2, "STATUS_LOGON_FAILURE")]),
    # The log has two events for each failure.
    ([failure(at * 5, "bob", "10.0.0.9", event_id=event_id) for at in range(10) for event_id in (4625, 4776)],
     [("medium", logons_failed(10), "CORP\\bob", "10.0.0.9", 0, 45, 10, "STATUS_LOGON_FAILURE")]),
    ([(at, SECURITY, 4776, {"TargetUserName": "bob", "Workstation": "pc9", "Status": "0x0"}) for at in range(20)], []),
    # A day later, others begin.
    ([failure(at, "bob", "10.0.0.9") for at in (0, 90000, 90001)],
     [("info", logons_failed(count), "CORP\\bob", "10.0.0.9", first, last, count, "STATUS_LOGON_FAILURE") for count, first, last in ((1, 0, 0), (2, 90000, 90001))]),
])  # fmt: skip
def test_failed_logons_are_counted_by_source_and_account(over, events, found):
    times = ", ".join(f"(epoch({column}) - epoch(TIMESTAMP '2024-03-05 08:00:00'))::BIGINT" for column in ("first", "last"))
    assert facts(over, events, "failed logons", f"level::VARCHAR, fact, account, source, {times}, events, detail") == found


def test_reasons_of_failures_are_told(over):
    events = [
        (1, SECURITY, 4625, {"TargetUserName": "bob", "Status": "0xc0000071", "SubStatus": "0x0"}), (2, SECURITY, 4625, {"TargetUserName": "bob", "Status": "0xc000006d", "SubStatus": "0xc000006a"}),
        (10, SECURITY, 4776, {"TargetUserName": "bob", "Status": "0xc000006a"}), (20, SECURITY, 4771, {"TargetUserName": "bob", "Status": "0x18"}),
        (30, "MSSQL$PAY", 18456, {"param1": "sa", "param2": " Reason: Password did not match that for the login provided.", "param3": " [CLIENT: <local machine>]"}),
    ]
    assert facts(over, events, "failed logons", "fact, account, detail") == [
        ("4 failed logons", "bob", "KDC_ERR_PREAUTH_FAILED, STATUS_PASSWORD_EXPIRED, STATUS_WRONG_PASSWORD"),
        ("1 failed logon", "sa", "Password did not match that for the login provided."),
    ]


@pytest.mark.parametrize("column", ["event_record_id", "event_record_id, record_id"])
def test_logons_need_no_numbers_of_records(over, column):
    """Some exports have none."""
    events = [*(failure(at, "bob", "203.0.113.9") for at in range(6)), success(65, "bob", "203.0.113.9"), success(66, "eve", "203.0.113.9")]
    columns = "topic::VARCHAR, fact, account, source, events, detail"
    expected = over("evtx_facts", events, columns, "ORDER BY ALL ASC")
    over.con.execute(f"UPDATE events SET {', '.join(f'{name} = NULL' for name in column.split(', '))}")
    assert len(expected) == 3 and over.query("evtx_facts", columns, "ORDER BY ALL ASC") == expected


def test_a_success_has_failures_before_and_after_it(over):
    address = "10.0.0.9"
    events = [*(failure(at, "bob", address) for at in range(6)), success(65, "bob", address), *(failure(at, "bob", address) for at in range(100, 103))]
    columns = "level::VARCHAR, fact, events, detail, second(last), [it.event_id FOR it IN evidence].list_sort('ASC')"
    assert facts(over, events, "failed logons", columns) == [("high", logons_failed(6, SAME), 9, "STATUS_LOGON_FAILURE; pause of 60 s; 3 failures after it", 42, [4624] + [4625] * 5)]
    # Too late, from elsewhere, and of another account.
    for other in (success(5 + 86401, "bob", address), success(65, "bob", "10.0.0.8"), success(65, "eve", address)):
        assert facts(over, [*events[:6], other], "failed logons", "level::VARCHAR, fact, events") == [("low", logons_failed(6), 6)]


def test_each_guess_that_succeeds_is_a_fact(over):
    """A typing error in the morning hides no guess in the evening, while single errors are one fact."""
    guess = [*(failure(at, "bob", "10.0.0.9") for at in range(1000, 1060)), success(1070, "bob", "10.0.0.9"), failure(1080, "bob", "10.0.0.9")]
    single = [event for at in range(100, 700, 100) for event in (failure(at, "bob", "10.0.0.9"), success(at + 5, "bob", "10.0.0.9"))]
    columns = "level::VARCHAR, fact, events, detail"
    reason = "STATUS_LOGON_FAILURE; pause of {0} s; {1} failures after it".format
    assert facts(over, [*single, *guess], "failed logons", columns) == [("low", logons_failed(1, SAME), 6, reason(5, 5)), ("high", logons_failed(60, SAME), 61, reason(11, 1))]


@pytest.mark.parametrize(("failed", "succeeded", "is_same"), [
    ({"TargetDomainName": "PC"}, {}, False), ({}, {"TargetDomainName": "NORTHWIND.EXAMPLE"}, True), ({"TargetDomainName": "corp.example"}, {}, True), ({"TargetDomainName": "OTHER"}, {}, True), ({"TargetDomainName": "", "TargetUserName": "bob@corp.example"}, {}, True),
    *(({}, {"LogonType": logon_type, "IpAddress": "-"}, logon_type in ("3", "10")) for logon_type in ("2", "3", "4", "5", "7", "10")),
])  # fmt: skip
def test_who_can_be_who_failed(over, failed, succeeded, is_same):
    """Not an account of the machine for one of the domain, which has several names. Not a service, a task, or somebody at the keyboard."""
    def changed(event, fields):
        return (*event[:3], event[3] | fields)

    local = changed(success(1, "eve", "10.0.0.8"), {"TargetDomainName": "PC"})
    events = [local, *(changed(failure(at, "bob", "10.0.0.9"), failed) for at in range(10, 18)), changed(success(30, "bob", "10.0.0.9"), succeeded)]
    assert facts(over, events, "failed logons", "fact") == [(logons_failed(8, SAME if is_same else ""),)]


def test_the_case_of_a_client_splits_no_run(over):
    events = [failure(at, "bob", workstation=name) for at, name in enumerate(["WS01", "ws01", "Ws01"] * 2)] + [success(9, "bob", "wS01")]
    assert facts(over, events, "failed logons", "level::VARCHAR, fact") == [("high", logons_failed(6, SAME))]


def test_a_failure_without_a_name_is_not_of_its_writer(over):
    ssh = (1, "OpenSSH", 4, {"process": "sshd", "payload": "Failed password for invalid user  from 203.0.113.9 port 5 ssh2"})
    for event in (ssh, (1, "MSSQLSERVER", 18456, {"param1": "", "param2": " Reason: x.", "param3": " [CLIENT: 203.0.113.9]"})):
        over("evtx_facts", [event])
        over.con.execute("UPDATE events SET user_sid = 'S-1-5-18'")
        assert over.query("evtx_facts", "account, account_sid, source", "WHERE topic = 'failed logons'") == [(None, None, "203.0.113.9")]


def test_failures_in_the_audit_of_sql_server_are_failed_logons(over):
    text = "audit_schema_version:1\naction_id:{}\nclass_type:LX\nsession_server_principal_name:\nserver_principal_name:sa\nobject_name:\n"
    text += "statement:Login failed for user 'sa'. Reason: Password did not match. [CLIENT: 10.23.23.9]\nadditional_information:<action_info><address>10.23.23.9</address></action_info>\n"
    failed = [(at, "MSSQL$RADAR$AUDIT", 33205, {"param1": text.format("LGIF")}) for at in range(27)]
    assert facts(over, failed, "failed logons", "fact, account, source, detail") == [(logons_failed(27), "sa", "10.23.23.9", "Password did not match.")]


def test_a_success_of_another_account_is_a_fact_of_its_own(over):
    """A logon of an account that came from that source before the failures, too, is info."""
    address, failures = "203.0.113.9", [failure(3600 + 12 * at, "sarah", "203.0.113.9") for at in range(22)]
    columns = "level::VARCHAR, fact, account, events, detail"
    sarah = ("medium", logons_failed(22), "CORP\\sarah", 22, "STATUS_LOGON_FAILURE")
    # Somebody else made a typing error, logged on, and had nothing to do with the failures.
    admin = ("low", logons_failed(1, SAME), "CORP\\admin", 1, "STATUS_LOGON_FAILURE; pause of 47 s")
    assert facts(over, [failure(0, "admin", address), success(47, "admin", address), *failures], "failed logons", columns) == [admin, sarah]
    other = ("medium", logons_failed(22, OTHER), "CORP\\other", 1, "failures of CORP\\sarah")
    assert facts(over, [*failures, success(9000, "other", address), success(9100, "other", address)], "failed logons", columns) == [sarah, other]
    assert facts(over, [success(0, "other", address), *failures, success(9000, "other", address)], "failed logons", columns) == [sarah, ("info", *other[1:])]
    # Nine failures may be an accident, and those of yesterday, of another source, or of the account itself do not count.
    for events in (failures[:9], [failure(at - 86400, *rest) for at, *rest in [(at, "sarah", address) for at in range(22)]], [failure(at, "sarah", "203.0.113.8") for at in range(22)],
                   [failure(at, "other", address) for at in range(22)]):  # fmt: skip
        assert [row for row in facts(over, [*events, success(9000, "other", address)], "failed logons", columns) if OTHER in row[1]] == []


def test_a_connection_is_no_logon_after_failures(over):
    """1149 can come before the password."""
    came = (100, CONNECTIONS, 1149, {"Param1": "bob", "Param2": "CORP", "Param3": "203.0.113.9"})
    began = (103, SESSIONS, 21, {"User": "CORP\\bob", "SessionID": "2", "Address": "203.0.113.9"})
    for who, other in (("bob", SAME), ("eve", OTHER)):
        failures = [failure(at, who, "203.0.113.9") for at in range(12)]
        found = [facts(over, [*failures, *events], "failed logons", "fact") for events in ([came], [came, began])]
        assert [any(other in fact for fact, in of_events) for of_events in found] == [False, True]


def test_a_connection_before_a_wrong_password_is_no_logon(over):
    """Without one, it may be. A logon over the network of the same seconds shows that the password was right."""
    came = [(60 * at, CONNECTIONS, 1149, {"Param1": "bob", "Param2": "", "Param3": "203.0.113.9"}) for at in range(6)]
    failed = [failure(60 * at + 5, "bob", "203.0.113.9") for at in range(6)]
    opening = (59, SECURITY, 4624, {"TargetUserName": "bob", "LogonType": "3", "WorkstationName": "kali"})
    columns = "level::VARCHAR, fact, source, events"
    of = lambda *events: facts(over, sorted(events, key=lambda event: event[0]), "logons from elsewhere", columns)
    connection, desktop = (("medium", f"{what} by remote desktop", "203.0.113.9") for what in ("Connection", "Logon"))
    assert of(*came, *failed) == []
    assert of(*came) == of(*came, *[failure(at + 60, "bob", "203.0.113.8") for at, *_ in failed], failure(500, "bob")) == [(*connection, 6)]
    assert of(*came, failed[0], *failed[2:], opening) == [(*desktop, 1)]


@pytest.mark.parametrize(("told", "address"), [
    (("Microsoft-Windows-RemoteDesktopServices-RdpCoreTS", 131, {"ConnType": "TCP", "ClientIP": "194.61.24.102:5"}), "194.61.24.102"),
    (("Microsoft-Windows-RemoteDesktopServices-RdpCoreTS", 140, {"IPString": "194.61.24.102"}), "194.61.24.102"),
    (("OpenSSH", 4, {"process": "sshd", "payload": "Failed password for bob from 194.61.24.102 port 5 ssh2"}), "194.61.24.102"),
    (("MSSQLSERVER", 18456, {"param1": "bob", "param2": " Reason: x.", "param3": " [CLIENT: 194.61.24.102]"}), "194.61.24.102"),
])  # fmt: skip
def test_an_address_of_the_same_seconds_is_the_source(over, told, address):
    """NTLM has the name that the client chose. An address is better evidence."""
    def at_once(at, *addresses):
        texts = [{name: value.replace(address, other) for name, value in told[2].items()} for other in addresses]
        by_ntlm = failure(at, "bob", workstation="kali")
        return [(*by_ntlm[:3], by_ntlm[3] | {"LogonType": "3"}), *((at + 0.5, *told[:2], fields) for fields in texts)]

    events = [event for at in range(0, 50, 5) for event in at_once(at, address)]
    assert facts(over, events, "failed logons", "fact, account, source") == [("10 failed logons", "CORP\\bob", address)]
    # Of two, none is that of the client.
    assert facts(over, at_once(0, address, "10.0.0.8"), "failed logons", "source")[0] != (address,) or told[1] in (4, 140, 18456)


def test_a_session_of_remote_desktop_is_one_logon(over):
    """The client logs on over the network first, with a name that it chose."""
    def opening(at, **fields):
        return at, SECURITY, 4624, {"TargetUserName": "bob", "TargetDomainName": "CORP", "LogonType": "3", "WorkstationName": "kali", "AuthenticationPackageName": "NTLM", "TargetLogonId": hex(at + 99), **fields}

    def session(at):
        return at, SECURITY, 4624, {"TargetUserName": "bob", "TargetDomainName": "CORP", "LogonType": "10", "IpAddress": "194.61.24.102", "AuthenticationPackageName": "Negotiate", "TargetLogonId": hex(at + 99)}

    columns = "level::VARCHAR, fact, source, events, detail, len(evidence)"
    desktop = "medium", "Logon by remote desktop", "194.61.24.102"
    events = [opening(0), session(2), opening(60), session(61)]
    assert facts(over, events, "logons from elsewhere", columns) == [(*desktop, 2, "Negotiate; client name kali", 4)]
    assert facts(over, [opening(0, WorkstationName="-", IpAddress="194.61.24.102"), session(2)], "logons from elsewhere", columns) == [(*desktop, 1, "Negotiate", 2)]
    # Failures of the client's name, too, are from where the session came.
    failures = [failure(at, "bob", workstation="kali") for at in range(-9, -1)]
    assert facts(over, failures + events, "failed logons", "fact, source") == [("8 failed logons, then a logon of the same account", "kali")]
    # Too long before it, from another address, and of another account.
    for other, source in ((opening(-4), "kali"), (opening(0, IpAddress="10.0.0.9"), "10.0.0.9"), (opening(0, TargetUserName="eve"), "kali")):
        assert ("info", "Network logon", source, 1, "NTLM", 1) in facts(over, [other, session(2)], "logons from elsewhere", columns)
    # Without a session, the log of connections has the address.
    connected = (0.5, "Microsoft-Windows-RemoteDesktopServices-RdpCoreTS", 131, {"ConnType": "TCP", "ClientIP": "194.61.24.102:5"})
    assert facts(over, [opening(1), connected], "logons from elsewhere", columns) == [("medium", "Network logon", "194.61.24.102", 1, "NTLM; client name kali", 2)]


@pytest.mark.parametrize("logs", ["Security", "sessions", "both"])
def test_each_connection_to_a_session_is_a_logon(over, logs):
    """At its own time and from its own address."""
    def come(at, logon_id, event_id, address):
        fields = {"TargetUserName": "bob", "TargetDomainName": "CORP", "LogonType": "10", "IpAddress": address, "TargetLogonId": logon_id, "AuthenticationPackageName": "Negotiate"}
        of_sessions = (at + 1, SESSIONS, event_id, {"User": "CORP\\bob", "SessionID": "2", "Address": address})
        return [(at, SECURITY, 4624, fields)] * (logs != "sessions") + [of_sessions] * (logs != "Security")

    events = come(0, "0xa1", 21, "10.0.0.5") + [(50, SESSIONS, 24, {"User": "CORP\\bob", "SessionID": "2", "Address": "10.0.0.5"})] * (logs != "Security")
    events += [failure(100 + at, "bob", "203.0.113.9") for at in range(20)] + come(200, "0xb1", 25, "203.0.113.9")
    columns = "level::VARCHAR, fact, source, events, second(first), detail"
    late, method = logs == "sessions", None if logs == "sessions" else "Negotiate"
    assert facts(over, events, "logons from elsewhere", columns) == [
        ("low", "Logon by remote desktop", "10.0.0.5", 1, late, method), ("medium", "Logon by remote desktop", "203.0.113.9", 1, 20 + late, method)]  # fmt: skip
    assert facts(over, events, "failed logons", "level::VARCHAR, fact") == [("high", logons_failed(20, SAME))]


def test_a_connection_to_a_session_at_the_console_is_from_elsewhere(over):
    """The logon at the console is not."""
    console = (100, SECURITY, 4624, {"TargetUserName": "bob", "TargetDomainName": "CORP", "LogonType": "2", "IpAddress": "127.0.0.1", "TargetLogonId": "0xa1"})
    back = (7200, SECURITY, 4778, {"AccountName": "bob", "AccountDomain": "CORP", "LogonID": "0xa1", "ClientName": "KALI", "ClientAddress": "203.0.113.9"})
    events = [*(failure(at, "bob", "203.0.113.9") for at in range(20)), console, back]
    columns = "fact, source, events, epoch(first)::INT % 86400 - 28800, epoch(last)::INT % 86400 - 28800"
    assert facts(over, events, "logons from elsewhere", columns) == [(fact, "203.0.113.9", 1, 7200, 7200) for fact in ("Logon by remote desktop", "Session reconnected")]
    assert facts(over, events, "failed logons", columns) == [(logons_failed(20, SAME), "203.0.113.9", 20, 0, 7200)]
    assert facts(over, events[:-1], "failed logons", columns) == [(logons_failed(20), "203.0.113.9", 20, 0, 19)]


def test_names_of_openssh_count_once(over):
    """Windows has a failure of NOUSER for a name that it does not know, and the log of OpenSSH has the name."""
    nouser = (1, SECURITY, 4625, {"TargetUserName": "NOUSER", "TargetDomainName": "PC", "IpAddress": "-", "LogonType": "8", "Status": "0xc000006d", "SubStatus": "0xc0000064"})
    failed = (1.2, "OpenSSH", 4, {"process": "sshd", "payload": "Failed password for invalid user oracle from 10.0.0.9 port 5 ssh2"})
    events = [(at + number * 5, *rest) for number in range(4) for at, *rest in (nouser, failed)]
    assert facts(over, events, "failed logons", "fact, account, source, detail") == [("4 failed logons", "oracle", "10.0.0.9", "Failed password for invalid user")]
    # Two clients at once.
    events = [(at + part, *event[1:3], event[3] | {"payload": f"Failed password for root from 10.0.0.{client} port 5 ssh2"} if part else event[3])
              for at in range(12) for client in (8, 9) for part, event in ((0, nouser), (0.1, failed))]  # fmt: skip
    assert sorted(facts(over, events, "failed logons", "events, account, source")) == [(12, "root", "10.0.0.8"), (12, "root", "10.0.0.9")]


def test_failures_of_vpn_and_exchange_count(over):
    vpn = (1, "RemoteAccess", 20271, {"param1": "{0}", "param2": "CORP\\bob", "param3": "10.0.0.9", "param4": "The password is wrong.", "param5": "0x10"})
    exchange = (2, "MSExchangeFrontEndTransport", 1035, {"param1": "LogonDenied", "param2": "Default Frontend EX01", "param3": "Login", "param4": "10.0.0.8"})
    assert facts(over, [vpn, exchange], "failed logons", "fact, account, source, detail") == [
        ("1 failed logon", "CORP\\bob", "10.0.0.9", "The password is wrong."), ("1 failed logon", None, "10.0.0.8", "LogonDenied")]  # fmt: skip


DEFENDER_FOLDER = "C:\\ProgramData\\Microsoft\\Windows Defender"


@pytest.mark.parametrize(("path", "level"), [
    ("C:\\Windows\\System32\\drivers\\a.sys", "low"), ('"C:\\Program Files\\A\\a.exe" -k cmdlets', "low"), ("\\??\\C:\\Windows\\a.sys", "low"), ("%SystemRoot%\\a.exe", "low"),
    ("C:\\ProgramData\\a.exe", "medium"), ("C:\\ProgramData\\A\\a.exe", "medium"), ("C:\\Users\\Public\\a.exe", "medium"), ("%TEMP%\\a.exe", "medium"), ("C:\\Windows\\Temp\\a.exe", "medium"),
    ("\\\\10.0.0.9\\share\\a.exe", "medium"), ('"\\\\?\\UNC\\host\\share\\a.exe"', "medium"), ("C:\\Windows\\System32\\cmd.exe", "medium"), ("cmd /c a", "medium"),
    # Defender updates itself there.
    (f'"{DEFENDER_FOLDER}\\Platform\\4.18.2201.10-0\\MsMpEng.exe"', "low"), (f"\\??\\{DEFENDER_FOLDER}\\Definition Updates\\{{7FE298A3-1ECC-4A5B-8E6C-C4C4BAEC2E1D}}\\MpKslDrv.sys", "low"),
    (f"{DEFENDER_FOLDER}\\a.exe", "medium"), (f"{DEFENDER_FOLDER}\\Platform\\..\\..\\a.exe", "medium"), (f"{DEFENDER_FOLDER}\\Platform\\4.18\\MpCmdRun.exe C:\\Users\\a.exe", "medium"),
    (f"C:\\Users\\a.exe {DEFENDER_FOLDER}\\Platform\\4.18\\MsMpEng.exe", "medium"),
])  # fmt: skip
def test_programs_of_services_and_tasks_have_a_level_by_where_they_are(over, path, level):
    events = [(1, "Service Control Manager", 7045, {"ServiceName": "s", "ImagePath": path}), (1, SECURITY, 4697, {"ServiceName": "s", "ServiceFileName": path})]
    assert facts(over, events, "services", "level::VARCHAR") == [(level,)] * 2
    command, _, arguments = path.partition(".exe ")
    command = f"<Command>{command + '.exe' * bool(arguments)}</Command>" + f"<Arguments>{arguments}</Arguments>" * bool(arguments)
    if path.endswith("MsMpEng.exe\""):
        command = f"<Command>{DEFENDER_FOLDER}\\Platform\\4.18.2201.10-0\\MpCmdRun.exe</Command> <Arguments>-IdleTask -TaskName WdCleanup</Arguments>"
    if not path.endswith("MpKslDrv.sys"):
        content = f'<Task><Actions Context="LocalSystem"><Exec>{command}</Exec></Actions></Task>'
        assert facts(over, [(1, SECURITY, 4698, {"TaskName": "t", "TaskContent": content})], "tasks", "level::VARCHAR") == [(level,)]


@pytest.mark.parametrize(("provider", "event_id", "fields", "detail"), [
    ("Service Control Manager", 7023, {"param1": "IP Helper", "param2": "%%1058"}, "ERROR_SERVICE_DISABLED"),
    ("Service Control Manager", 7023, {"param1": "IP Helper", "param2": "%%99999"}, "%%99999"),
    ("Microsoft-Windows-Windows Firewall With Advanced Security", 2004, {"RuleName": "r", "Direction": "1", "Action": "3", "Protocol": "6", "LocalPorts": "445"},
     "Direction: 1 (Inbound) ¦ Action: 3 (Allow) ¦ Protocol: 6 (TCP) ¦ LocalPorts: 445"),
    ("Microsoft-Windows-Windows Firewall With Advanced Security", 2003, {"Profiles": "2", "SettingType": "1", "SettingValue": "00000000", "SettingValueString": "No"},
     "Profiles: 2 (Private) ¦ SettingType: 1 (Enable Firewall) ¦ SettingValueString: No"),
    ("Microsoft-Windows-Windows Firewall With Advanced Security", 2002, {"SettingType": "8", "SettingValueDisplay": "None"},
     "SettingType: 8 (Certificate Revocation Check) ¦ SettingValueDisplay: None"),
    (SECURITY, 4698, {"TaskName": "t", "TaskContent": "<Task><Exec><Command>cmd</Command><Arguments>/c a &gt; b &amp;&amp; echo &quot;&amp;lt;&quot;</Arguments></Exec></Task>"}, 'cmd ¦ /c a > b && echo "&lt;"'),
])  # fmt: skip
def test_codes_in_details_have_names(over, provider, event_id, fields, detail):
    assert over("evtx_facts", [(1, provider, event_id, fields)], "detail") == [(detail,)]


def test_an_account_of_windows_has_one_name(over):
    """In every language, with its SID or without it. A name that somebody tried is none."""
    names = "NT AUTHORITY\\SYSTEM", "nt authority\\System", "SYSTEM", "NT-AUTORITÄT\\SYSTEM", "AUTORITE NT\\Système"
    events = [(at, "Microsoft-Windows-TaskScheduler", 106, {"TaskName": "t", "UserContext": name}) for at, name in enumerate(names)]
    assert facts(over, events, "tasks", "account, account_sid, events") == [("Local System", "S-1-5-18", 5)]
    events = [(1, SECURITY, 4698, {"TaskName": "t", "SubjectUserSid": "S-1-5-18", "SubjectUserName": name, "SubjectDomainName": "CORP"}) for name in ("PC$", "OLD$")]
    assert facts(over, events, "tasks", "account, account_sid, events") == [("Local System", "S-1-5-18", 2)]
    others = [(1, "Microsoft-Windows-TaskScheduler", 106, {"TaskName": "t", "UserContext": name}) for name in ("CORP\\SYSTEM", "CORP\\PC$")]
    assert facts(over, others, "tasks", "account, account_sid") == [("CORP\\PC$", None), ("CORP\\SYSTEM", None)]
    assert facts(over, [(1, SECURITY, 4625, {"TargetUserName": "SYSTEM", "Status": "0xc000006d"})], "failed logons", "account") == [("SYSTEM",)]


def test_windows_setup_makes_no_facts_above_info(over):
    setup = {"SubjectUserSid": "S-1-5-18", "SubjectUserName": "MINWINPC$", "SubjectDomainName": ""}
    made = [(4731, {"TargetUserName": "IIS_IUSRS", "TargetSid": "S-1-5-32-568"}), (4720, {"TargetUserName": "WDAGUtilityAccount"}), (4717, {"TargetSid": "S-1-5-32-544", "AccessGranted": "SeBatchLogonRight"})]
    administrator = {"TargetUserName": "Administrator", "TargetSid": "S-1-5-21-1-2-3-500", "SamAccountName": "Administrator", "UserAccountControl": "-", "PasswordLastSet": "%%1794", "ScriptPath": "%%1793", "ProfilePath": "%%1793"}
    again = [(4735, {"TargetUserName": "Users", "TargetSid": "S-1-5-32-545", "SamAccountName": "Users"}), (4738, administrator)]
    member = (4728, {"TargetUserName": "None", "TargetSid": "S-1-5-21-1-2-3-513", "MemberSid": ALICE})

    def levels(of_events, **subject):
        return [level for level, in over("evtx_facts", [(at, SECURITY, event_id, fields | subject) for at, (event_id, fields) in enumerate(of_events)], "DISTINCT level::VARCHAR", "ORDER BY ALL")]

    assert levels([*made, *again, member], **setup) == ["info"]
    assert levels([*again, member], **setup | {"SubjectUserName": "WIN-28GFHAGEV4P$"}) == ["info"]
    # Whoever is not Windows, takes the name of the machine during its setup, or does anything else.
    for other in ({"SubjectUserSid": ALICE}, {"SubjectUserName": "PC$"}):
        assert "info" not in levels(made, **setup | other)
    assert "info" not in levels(again, **setup | {"SubjectUserSid": ALICE})
    assert "info" not in levels([(4735, again[0][1] | {"SamAccountName": "Other"}), (4738, administrator | {"UserAccountControl": "%%2048"})], **setup | {"SubjectUserName": "PC$"})
    assert levels([(1102, {})], **setup) == [] and levels([(4697, {"ServiceFileName": "cmd /c a"})], **setup) == ["medium"]


def test_a_start_cites_its_own_events(over):
    """The event log can write that it started before the kernel's record of the same start."""
    events = [(0, "Microsoft-Windows-Kernel-General", 12), (60, "EventLog", 6006), (98, "EventLog", 6005), (90, "Microsoft-Windows-Kernel-General", 12), (99, "EventLog", 6013), (400, "EventLog", 6013)]
    over("evtx_facts", [])
    for number, (at, provider, event_id) in enumerate(events, 1):
        record(over, "logs/System.evtx", number, provider, event_id, {}, "pc", "System")
        over.con.execute("UPDATE events SET time_created = TIMESTAMP_NS '2024-03-05 08:00:00' + to_seconds($1) WHERE record_id = $2", [at, number])
    cited = "[it.event_id::VARCHAR || ' ' || (epoch(it.time) - epoch(TIMESTAMP '2024-03-05 08:00:00'))::INTEGER FOR it IN evidence]"
    starts = over.query("evtx_facts", f"detail, {cited}", "WHERE fact = 'Windows started' ORDER BY first ASC")
    assert starts == [("ran for 1 min 0 s", ["12 0", "6006 60"]), ("ran for 5 min 10 s", ["6005 98", "12 90", "6013 400"])]


@pytest.mark.parametrize("broken", [[2049], [2049, 2039], [2039, 2049], [2049, 1999], [1999, 1989]])
def test_records_with_a_time_that_cannot_be_are_facts(over, broken):
    """Next to each other, too. Old records, each far from all others, are in their order."""
    year = 365 * 24 * 3600
    events = [(at, "EventLog", 2, {}) for at in (-900 * 24 * 3600, -800 * 24 * 3600, 0, 60, *[(other - 2024) * year for other in broken], 120, 180)]
    found = over("evtx_facts", events, "year(first)", "WHERE fact = 'Record with a time that cannot be'")
    assert sorted(found) == [(other,) for other in sorted(broken)]
    assert over.query("evtx_facts", "max(year(last))", "WHERE topic = 'gaps'") == [(2024,)]


def test_changes_of_the_clock_count_once_and_from_a_minute_on(over):
    def clock(at, moved, event_id, provider):
        old, new = (f"2024-03-05T08:00:0{second}.5000000Z" for second in (0, moved % 10))
        new = new.replace("08:00", f"08:{moved // 60:02}") if moved >= 60 else new
        return at, provider, event_id, {"NewTime": new, "OldTime" if event_id == 1 else "PreviousTime": old, "ProcessName": "a.exe"}

    events = [clock(at, moved, event_id, provider) for at, moved in ((1, 120), (2, 5)) for event_id, provider in ((1, "Microsoft-Windows-Kernel-General"), (4616, SECURITY))]
    assert facts(over, events, "clock", "level::VARCHAR, fact, target, events, detail") == [
        ("low", "Clock set forward by 2 min 0 s", "a.exe", 2, "from 2024-03-05 08:00:00.5 to 2024-03-05 08:02:00.5"),
        ("info", "Clock corrected by less than a minute", "a.exe", 2, None),
    ]
    subject = {"SubjectUserSid": ALICE, "SubjectUserName": "alice", "SubjectDomainName": "CORP"}
    by_alice = [(at, provider, event_id, fields | subject) for at, provider, event_id, fields in events if event_id == 4616]
    assert facts(over, by_alice, "clock", "level::VARCHAR, account, account_sid") == [("medium", "CORP\\alice", ALICE), ("info", "CORP\\alice", ALICE)]


def test_a_clock_that_is_set_back_at_once_was_set_twice(over):
    changes = [clock(3600 + 2, 2), clock(4, 3600 + 4)]
    assert [fact for fact, in facts(over, changes, "clock", "fact")] == ["Clock set back by 1 h 0 min", "Clock set forward by 1 h 0 min"]
    twice = [clock(7200, 10802), clock(3602, 7202)]
    assert facts(over, twice, "clock", "fact, detail") == [
        ("Clock set back by 1 h 0 min", f"from 2024-03-05 {old} to 2024-03-05 {new}") for old, new in (("10:00:02", "09:00:02"), ("11:00:02", "10:00:00"))]  # fmt: skip


@pytest.mark.parametrize(("by", "level"), [({"SubjectUserSid": ALICE, "SubjectUserName": "alice"}, "medium"), ({"SubjectUserSid": "S-1-5-19"}, "low")])
def test_small_changes_of_the_clock_have_a_sum(over, by, level):
    """Two logs tell of each."""
    changes = [change for at in range(3000, 1300, -57) for change in (clock(at, at + 58), clock(at, at + 58, "Microsoft-Windows-Kernel-General"))]
    changes = [(*change[:3], change[3] | by if change[1] == SECURITY else change[3], by["SubjectUserSid"]) for change in changes]
    assert facts(over, changes, "clock", "level::VARCHAR, fact, detail") == [(level, "Clock moved back by 29 min 0 s in small steps", None)]
    assert facts(over, changes[:2], "clock", "fact") == [("Clock corrected by less than a minute",)]


@pytest.mark.parametrize("reason", [{}, {"Reason": "2"}])
def test_a_wake_from_sleep_is_no_change_of_the_clock(over, reason):
    """Older versions of Windows give no reason."""
    slept = {"OldTime": "2024-03-05T08:00:00Z", "NewTime": "2024-03-05T13:00:00Z", **reason}
    woke = (18003, "Microsoft-Windows-Power-Troubleshooter", 1, {"SleepTime": "2024-03-05T08:00:00Z", "WakeTime": "2024-03-05T13:00:02Z"})
    events = [(18000, "Microsoft-Windows-Kernel-General", 1, slept), (18000, SECURITY, 4616, {"PreviousTime": slept["OldTime"], "NewTime": slept["NewTime"]}), woke]
    assert facts(over, events, "clock") == []
    # Without the wake, and long after it.
    if not reason:
        assert len(facts(over, events[:2], "clock")) == 1
        assert len(facts(over, [*events, clock(20000, 18100)], "clock")) == 1


def test_a_virtual_machine_that_was_resumed_moves_no_record(over):
    """The change of the clock is a fact, but the records before it have their own times."""
    resumed = {"PreviousTime": "2024-03-05T08:00:10Z", "NewTime": "2024-03-07T08:00:10Z", "ProcessName": "C:\\Program Files\\VMware\\VMware Tools\\vmtoolsd.exe"}
    events = [(0, SECURITY, 4720, {"TargetUserName": "bob"}), (2 * 86400 + 10, SECURITY, 4616, resumed)]
    assert facts(over, events, "accounts", "doubts") == [([],)]
    assert facts(over, events, "clock", "fact") == [("Clock set forward by 2 d 0 h",)]
    resumed["ProcessName"] = "C:\\Windows\\regedit.exe"
    assert facts(over, events, "accounts", "doubts") == [(["the order of the records suggests another time"],)]


def test_a_spray_that_succeeds_is_high(over):
    failures = [failure(at, f"user{at}", "203.0.113.9") for at in range(12)]
    fact = "12 failed logons, then one of the accounts got in"
    success_of = success(60, "user3", "203.0.113.9")
    assert ("high", fact) in facts(over, [*failures, success_of], "failed logons", "level::VARCHAR, fact")
    assert ("medium", fact) in facts(over, [success(-60, "user3", "203.0.113.9"), *failures, success_of], "failed logons", "level::VARCHAR, fact")


def test_a_failure_without_an_account_is_of_no_other_account(over):
    address = "203.0.113.9"
    nobody = (100, "Microsoft-Windows-RemoteDesktopServices-RdpCoreTS", 140, {"IPString": address})
    events = [*(failure(12 * at, "sarah", address) for at in range(12)), nobody, *(failure(12 * at, "sarah", address) for at in range(12, 24)), success(900, "other", address)]
    assert ("25 failed logons, then a logon of another account", "failures of CORP\\sarah") in facts(over, events, "failed logons", "fact, detail")


def test_the_other_machine_of_an_outgoing_logon_is_its_target(over):
    events = [(1, SECURITY, 4648, {"SubjectUserName": "bob", "TargetUserName": "admin", "TargetServerName": "FS01.corp"})]
    assert facts(over, events, "logons to elsewhere", "source, target, detail") == [(None, "FS01.corp", "admin")]


@pytest.mark.parametrize(("new", "old"), [("infinity", "-infinity"), ("290000-01-01", "290000-01-01 (BC)"), ("x", "infinity"), ("2024-03-05", "-infinity")])
def test_a_clock_that_no_time_fits_costs_nothing_else(over, new, old):
    events = [(1, SECURITY, 4616, {"NewTime": new, "PreviousTime": old}), failure(2, "bob")]
    assert facts(over, events, "clock", "fact, detail") == [("System time changed", f"PreviousTime: {old} ¦ NewTime: {new}")]
    assert len(over.query("evtx_facts")) == 2


def member(at, sid, **fields):
    return at, SECURITY, 4732, {"MemberSid": sid, "TargetUserName": "Administrators", **fields}


@pytest.mark.parametrize(("events", "detail"), [
    # The name on this computer, even if another one has a newer one.
    ([logon_of(1, ALICE, "alice"), member(2, ALICE), logon_of(3, ALICE, "other", computer="pc2")], f"CORP\\alice {ALICE}"),
    ([logon_of(1, ALICE, "alice", computer="pc2"), member(2, ALICE)], f"CORP\\alice {ALICE}"),
    # The common name in the directory is often not the name of the account.
    ([logon_of(1, ALICE, "alice", computer="pc2"), member(2, ALICE, MemberName="CN=Alice Doe,DC=corp")], f"CORP\\alice {ALICE}"),
    ([member(2, ALICE, MemberName="CN=Alice Doe,DC=corp")], "CN=Alice Doe,DC=corp"),
    ([member(2, ALICE, MemberName="-")], ALICE),
    ([member(2, "S-1-5-17")], "IIS Anonymous User S-1-5-17"),
])  # fmt: skip
def test_a_member_has_the_name_that_logs_give_its_sid(over, events, detail):
    assert over("evtx_facts", events, "fact, target, detail", "WHERE computer = 'pc' AND topic = 'groups'") == [("Member added to local group", "Administrators", detail)]


def test_zones_gaps_starts_and_clears_are_facts(over):
    def zone(at, text):
        return at, "EventLog", 6013, {"param7": text}

    day, eve = 24 * 3600, {"SubjectUserName": "eve", "SubjectDomainName": "CORP"}
    events = [zone(0, "480 Pacific Standard Time"), zone(60, "480 Pacific Standard Time"), zone(120, "0 Coordinated Universal Time"), zone(day, "480 Pacific Standard Time"),
              (day + 1, "EventLog", 6005, {}), (day + 2, "EventLog", 6008, {}), (3 * day, "Microsoft-Windows-Eventlog", 1102, eve), (3 * day, "Microsoft-Windows-Eventlog", 104, eve | {"Channel": "System"})]  # fmt: skip
    zones = ["480 Pacific Standard Time (America/Los_Angeles)", "0 Coordinated Universal Time (Etc/UTC)"]
    assert facts(over, events, "clock", "fact, detail, events") == [("Time zone reported", zones[number], count) for number, count in ((0, 2), (1, 1), (0, 1))]
    assert facts(over, [zone(0, "-2147483648")], "clock", "detail") == [("-2147483648",)]
    times = "day(first), second(first), day(last), second(last)"
    assert facts(over, events, "gaps", f"level::VARCHAR, fact, {times}, list_sort([it.event_id FOR it IN evidence], 'ASC')") == [("info", "No events for 1 day", 6, 2, 8, 0, [1102, 6008])]
    assert facts(over, [zone(0, "0 UTC"), zone(3 * day, "0 UTC")], "gaps", "level::VARCHAR, fact") == [("low", "No events for 3 days")]
    assert facts(over, events, "cleared logs", "level::VARCHAR, fact, account, target") == [("high", "Log cleared", "CORP\\eve", target) for target in ("Microsoft-Windows-Eventlog", "System")]
    assert facts(over, events, "starts", f"fact, {times}, detail")[1:] == [("Windows started", 6, 1, 8, 0, "ran for 1 d 23 h"), ("Unexpected shutdown", 6, 2, 6, 2, None)]
    # Kernel-General is preferred, because the event log can be restarted.
    version = {"MajorVersion": "10", "MinorVersion": "0", "BuildVersion": "19041"}
    boots = [(1, "Microsoft-Windows-Kernel-General", 12, version), (2, "EventLog", 6005, {}), (3, "EventLog", 6005, {}), (93, "EventLog", 2, {})]
    assert facts(over, boots, "starts", "fact, second(first), second(last), events, detail") == [("Windows started", 1, 33, 3, "version 10.0.19041; ran for 1 min 32 s")]


def test_offsets_of_time_zones_are_facts(over):
    """Kernel-General 24 says what the offset was at a start, as in Tokyo and in New York, and 22 what it was before."""
    general = "Microsoft-Windows-Kernel-General"
    events = [(at, general, 24, {"ExitReason": "0", "CurrentBias": bias}) for at, bias in ((0, "-540"), (36000, "300"))] + [(40000, general, 22, {"OldBias": "300", "NewBias": "240"})]
    assert facts(over, events, "clock", "level::VARCHAR, fact, detail") == [
        ("info", "Time zone information at boot", "-540"), ("info", "Time zone information at boot", "300"), ("low", "Time zone offset changed", "OldBias: 300 ¦ NewBias: 240")]  # fmt: skip


MEMBER = {"MemberName": "CN=m,DC=corp", "MemberSid": "S-1-5-21-1-2-3-2002", "TargetUserName": "X", "TargetDomainName": "CORP"}
AUDIT = {"SubcategoryGuid": "{0cce9215-69ae-11d9-bed3-505054503030}", "AuditPolicyChanges": "%%8448"}


@pytest.mark.parametrize(("event_id", "fields", "found"), [
    (4704, {"TargetSid": DOMAIN, "PrivilegeList": "SeDebugPrivilege"}, ("policies", "medium", "User right assigned", DOMAIN, "SeDebugPrivilege")),
    (4717, {"TargetSid": DOMAIN, "AccessGranted": "SeRemoteInteractiveLogonRight"}, ("policies", "low", "Logon right granted", DOMAIN, "SeRemoteInteractiveLogonRight")),
    (4719, AUDIT, ("policies", "medium", "Audit policy changed", AUDIT["SubcategoryGuid"], f"SubcategoryGuid: {AUDIT['SubcategoryGuid']} (Logon/Logoff: Logon) ¦ AuditPolicyChanges: Success removed")),
    (4739, {"DomainPolicyChanged": "Password Policy", "DomainName": "CORP"}, ("policies", "low", "Domain policy changed", "CORP", "DomainPolicyChanged: Password Policy")),
    *[(event_id, {"TargetUserName": "X"}, ("accounts", level, fact, "X", None)) for event_id, level, fact in [
        (4720, "medium", "Account created"), (4726, "low", "Account deleted"), (4741, "low", "Computer account created"), (4743, "low", "Computer account deleted")]],
    *[(event_id, {"TargetUserName": "X"}, ("groups", level, fact, "X", None)) for event_id, level, fact in [
        (4727, "low", "Global group created"), (4730, "low", "Global group deleted"), (4731, "low", "Local group created"), (4734, "low", "Local group deleted"), (4735, "info", "Local group changed"),
        (4737, "info", "Global group changed"), (4754, "low", "Universal group created"), (4755, "info", "Universal group changed"), (4758, "low", "Universal group deleted")]],
    *[(event_id, MEMBER, ("groups", "low", fact, "X", "CN=m,DC=corp")) for event_id, fact in [
        (4728, "Member added to global group"), (4729, "Member removed from global group"), (4732, "Member added to local group"), (4733, "Member removed from local group"),
        (4746, "Member added to local distribution group"), (4751, "Member added to global distribution group"), (4756, "Member added to universal group"),
        (4757, "Member removed from universal group"), (4761, "Member added to universal distribution group"), (4785, "Member added to basic application group"),
        (4787, "Non-member added to basic application group")]],
    (4764, {"TargetUserName": "X", "GroupTypeChange": "a to b"}, ("groups", "low", "Group type changed", "X", "a to b")),
    (4765, {"TargetUserName": "X", "SourceUserName": "old", "SourceSid": "S-1-5-21-9-9-9-500"}, ("accounts", "high", "SID history added", "X", "SourceUserName: old ¦ SourceSid: S-1-5-21-9-9-9-500")),
    (4794, {"Workstation": "WS1", "Status": "0x0"}, ("accounts", "high", "Recovery mode password set", "WS1", "0x0")),
])  # fmt: skip
def test_changes_of_accounts_groups_and_policies_are_facts(over, event_id, fields, found):
    subject = {"SubjectUserSid": ALICE, "SubjectUserName": "ken", "SubjectDomainName": "CORP"}
    columns = "topic::VARCHAR, level::VARCHAR, fact, target, detail, account, [it.event_id FOR it IN evidence]"
    assert over("evtx_facts", [(1, SECURITY, event_id, subject | fields)], columns) == [(*found, "CORP\\ken", [event_id])]


def test_an_overwritten_log_says_from_when_on_it_tells(con):
    con.execute(f"CREATE TABLE files AS FROM evtx_file_metadata('{SAMPLES}')")
    wrapped = con.execute("SELECT count(*) FROM files WHERE is_wrapped").fetchone()
    columns = "fact, level::VARCHAR, target IS NULL, first = last, evidence[1].time = first, len(evidence)"
    rows = con.execute(f"SELECT {columns}, evidence[1].filename FROM evtx_facts('{SAMPLES}') WHERE fact LIKE 'Log overwrote%'").fetchall()
    assert {row[:-1] for row in rows} == {("Log overwrote its oldest records", "info", False, True, True, 1)}
    assert {row[-1] for row in rows} == {name for name, in con.execute("SELECT filename FROM files WHERE is_wrapped AND records > 0").fetchall()} and wrapped[0] >= len(rows) > 3
    # A table of events does not say it.
    con.execute(f"CREATE TABLE events AS FROM read_evtx('{SAMPLES}')")
    assert con.execute("SELECT count(*) FROM evtx_facts_of('events') WHERE fact LIKE 'Log overwrote%'").fetchone() == (0,)


def test_known_facts_are_left_out(over):
    """Whatever their machine and time."""
    events = [(1, "Service Control Manager", 7045, {"ServiceName": name, "ImagePath": "a.exe"}) for name in ("old", "new")]
    over("evtx_facts", events[:1])
    over.con.execute("CREATE TABLE known AS FROM evtx_facts_of('events')")
    over("evtx_facts", [(100000, *event[1:], None, "other") for event in events])
    assert over.con.execute("SELECT target FROM evtx_facts_of('events', table_of_known := 'known')").fetchall() == [("new",)]
    assert over.con.execute("SELECT count(*) FROM evtx_facts_of('events')").fetchall() == [(2,)]


def test_doubts_are_told(over):
    """A client that gives the name of this machine, and a clock that was set."""
    claim = success(1, "bob", "-")
    claim[3]["WorkstationName"] = "PC"
    assert facts(over, [claim], "logons from elsewhere", "account, source, doubts") == [("CORP\\bob", None, ["claims to be this machine"])]
    # Windows wrote the name for a program of this machine.
    here = [failure(1, "bob", workstation="PC"), (1, SECURITY, 4776, {"TargetUserName": "bob", "Workstation": "PC", "Status": "0xc000006a"})]
    for kind, doubts in (("2", []), ("7", []), ("3", ["claims to be this machine"])):
        here[0][3]["LogonType"] = kind
        assert facts(over, here, "failed logons", "events, doubts") == [(1, doubts)]
    assert facts(over, here[1:], "failed logons", "doubts") == [(["claims to be this machine"],)]
    late = (3600, "Service Control Manager", 7045, {"ServiceName": "s", "ImagePath": "a.exe"})
    assert facts(over, [late, clock(60, 3660), (70, *late[1:3], late[3] | {"ServiceName": "t"})], "services", "target, doubts") == [
        ("t", []), ("s", ["the order of the records suggests another time"])]  # fmt: skip
    assert facts(over, [success(3600, "bob", "10.0.0.9"), clock(60, 3660)], "logons from elsewhere", "doubts") == [(["the order of the records suggests another time"],)]
    # A correction says nothing of earlier days.
    assert facts(over, [late, clock(3600 + 60, 3600 + 180)], "services", "doubts") == [([],)]


def test_accounts_services_tasks_and_remote_logons_are_facts(over):
    subject = {"SubjectUserSid": ALICE, "SubjectUserName": "alice", "SubjectDomainName": "CORP"}
    events = [
        (1, SECURITY, 4720, subject | {"TargetSid": DOMAIN, "TargetUserName": "eve", "TargetDomainName": "CORP"}),
        (2, SECURITY, 4732, subject | {"TargetUserName": "Administrators", "TargetDomainName": "Builtin", "TargetSid": "S-1-5-32-544", "MemberSid": DOMAIN}),
        # Both logs have the service, and the task.
        (3, "Service Control Manager", 7045, {"ServiceName": "s", "ImagePath": "s.exe"}, ALICE), (4, SECURITY, 4697, subject | {"ServiceName": "s", "ServiceFileName": "s.exe"}),
        (5, "Microsoft-Windows-TaskScheduler", 106, {"TaskName": "\\t", "UserContext": "CORP\\alice"}), (6, SECURITY, 4698, subject | {"TaskName": "\\t"}),
    ]
    kinds = [(kind, address) for kind in ("3", "10", "2") for address in ("10.0.0.9", "127.0.0.1", "-")]
    logons = [(name, *kind) for name in ("eve", "PC9$") for kind in kinds]
    events += [(7 + 100 * at, SECURITY, 4624, {"TargetUserName": name, "TargetDomainName": "CORP", "LogonType": kind, "IpAddress": address, "TargetLogonId": hex(at + 99)})
               for at, (name, kind, address) in enumerate(logons)]  # fmt: skip
    assert facts(over, events, "accounts", "level::VARCHAR, fact, target, account") == [("medium", "Account created", "eve", "CORP\\alice")]
    assert facts(over, events, "groups", "level::VARCHAR, fact, target, detail, account") == [("medium", "Member added to local group", "Administrators", f"CORP\\eve {DOMAIN}", "CORP\\alice")]
    assert facts(over, events, "services", "fact, target, detail, account") == [("Service installed", "s", detail, "CORP\\alice") for detail in ("ImagePath: s.exe", "s.exe")]
    assert facts(over, events, "tasks", "fact, target, account") == [("Task created", "\\t", "CORP\\alice")] * 2
    # Without a source, or from the machine itself, Remote Desktop may come through a tunnel.
    kinds = [("10.0.0.9", "Network logon", "info", 1), ("10.0.0.9", "Logon by remote desktop", "low", 1), (None, "Logon by remote desktop", "low", 2), ("10.0.0.9", "Interactive logon", "info", 1)]
    assert facts(over, events, "logons from elsewhere", "account, source, fact, level::VARCHAR, events") == [(name, *kind) for name in ("CORP\\eve", "CORP\\PC9$") for kind in kinds]


def test_lists_of_facts_have_one_order_for_events_of_one_time(over):
    """The evidence too."""
    names = [f"{number:02}" for number in range(60)]
    shuffled = random.Random(1).sample(names, len(names))
    events = [(1, SECURITY, 4720, {"TargetUserName": name}) for name in shuffled]
    events += [(1, "Service Control Manager", 7045, {"ServiceName": "s", "ImagePath": "a.exe", "AccountName": name[:0]}) for name in shuffled]
    events += [(1, SECURITY, 4624, {"TargetUserName": name, "LogonType": "3", "IpAddress": "10.0.0.9"}) for name in shuffled]
    over("evtx_facts", events)
    rows = []
    for threads in (1, 4):
        over.con.execute(f"SET threads = {threads}; CREATE OR REPLACE TABLE events AS FROM events ORDER BY hash(record_id, {threads})")
        rows.append(sorted(map(str, over.query("evtx_facts"))))
    assert rows[0] == rows[1] and len(rows[0]) == 121


def test_a_former_name_that_a_client_claims_hides_nothing(over):
    """It is a name of the machine, but not before the machine had it. Windows can write it for a logon at the machine itself."""
    claim = {"TargetUserName": "anna", "TargetDomainName": "CORP", "WorkstationName": "OLD", "LogonType": "3"}
    over("evtx_facts", [])
    for number, (computer, fields) in enumerate([("old", claim), ("old", claim | {"WorkstationName": "NEW"}), ("new", claim), ("new", claim | {"LogonType": "2"})], 1):
        record(over, "logs/Security.evtx", number, SECURITY, 4624, fields, computer, "Security")
    logons = over.query("evtx_facts", "computer, source, fact, events, detail, doubts", "WHERE topic = 'logons from elsewhere' ORDER BY source ASC NULLS LAST")
    assert logons == [("new", "NEW", "Network logon", 1, None, []), ("new", None, "Network logon", 2, "client name OLD", ["claims to be this machine"])]


def test_providers_are_compared_without_case(over):
    fields = {"param1": "sa", "param2": " Reason: Password did not match that for the login provided.", "param3": " [CLIENT: 10.0.0.1]"}
    failed = (*failure(0, "anna", "10.0.0.1")[:1], SECURITY.upper(), *failure(0, "anna", "10.0.0.1")[2:])
    assert facts(over, [(0, "mssql$erp", 18456, fields), failed], "failed logons") == [("1 failed logon", account, "10.0.0.1") for account in ("CORP\\anna", "sa")]


def test_user_data_hides_no_fields(con):
    """A planted event can have both kinds of fields."""
    con.execute(f"""CREATE TABLE events AS SELECT * REPLACE ('{{"x": {{"b": "1"}}}}' AS user_data) FROM read_evtx('{SAMPLES}/DC01-System.evtx') WHERE event_id = 7045""")
    con.execute("CREATE TABLE plain AS SELECT * REPLACE (NULL AS user_data) FROM events")
    facts = [con.execute(f"SELECT fact, account, target, detail FROM evtx_facts_of('{table}') ORDER BY ALL").fetchall() for table in ("events", "plain")]
    assert facts[0] == facts[1] and "wusvc.exe" in str(facts[0])
    rows = [con.execute(f"SELECT event, user_name, process FROM evtx_timeline_of('{table}') ORDER BY ALL").fetchall() for table in ("events", "plain")]
    assert rows[0] == rows[1]


def test_names_without_a_file_take_no_machine_of_others(con):
    told = """{file: f, computer: 'pc', channel: 'c', time: NULL::TIMESTAMP_NS, old_host: NULL::VARCHAR, new_host: NULL::VARCHAR, own_sid: NULL::VARCHAR}"""
    assert con.execute(f"SELECT [m.filename || m.machine FOR m IN evtx_machines([], [{told} FOR f IN [NULL, 'a', NULL, 'b']])]").fetchone() == (["apc", "bpc"],)


def test_no_log_is_too_strange_for_machines(con):
    """Numbers that fall, and more records than there are numbers."""
    hour = '{"filename":"f","computer":"%s","channel":"c","hour":1,"records":%d,"numbers":[9,1],"times":[1,2],"shifts":[0,0],"ends":[]}'
    hours = [hour % (name, 2**64 - 1) for name in ("a", "a", "b")]
    assert con.execute("SELECT len(evtx_machines($1, []))", [hours]).fetchone() == (2,)
    with pytest.raises(duckdb.InvalidInputException, match="not of evtx_log_hours"):
        con.execute("SELECT evtx_machines(['{}'], [])")


def test_texts_of_many_rows_are_made_once(con):
    """DuckDB would call a function again for the rows that a condition on its result leaves."""
    con.execute(f"CREATE TABLE events AS FROM read_evtx('{SAMPLES}')")
    hours = "evtx_log_hours(filename, record_id, computer, channel, provider, event_record_id, time_created, event_id, false)"
    lines = f"SELECT unnest(string_split(hours, chr(10))) AS line FROM (SELECT {hours} AS hours FROM events) WHERE hours IS NOT NULL"
    counts = con.execute(f"""SELECT sum(regexp_extract(line, '"records":(\\d+)', 1)::BIGINT), (SELECT count(*) FROM events) FROM ({lines})""").fetchone()
    assert counts[0] == counts[1]


def test_an_account_that_writes_of_its_own_failure_keeps_its_name(con):
    for sid, name in (("S-1-5-21-1-2-3-500", "Administrator"), ("S-1-5-18", "Local System")):
        table = f"""(SELECT 1 AS record_id, 1 AS event_record_id, TIMESTAMP_NS '2024-01-01' AS time_created, 4625 AS event_id, 'Microsoft-Windows-Security-Auditing' AS provider,
            'Security' AS channel, 'WS07' AS computer, '{sid}' AS user_sid, MAP {{'TargetUserSid': '{sid}'}} AS event_data, NULL::VARCHAR AS user_data, 'a.evtx' AS filename)"""
        con.execute(f"CREATE OR REPLACE TABLE events AS FROM {table}")
        assert con.execute("SELECT fact, account, account_sid FROM evtx_facts_of('events') WHERE topic = 'failed logons'").fetchall() == [("1 failed logon", name, sid)]


def test_infinity_is_no_time(con):
    """Neither a fact nor a gap begins or ends then."""
    con.execute(f"CREATE TABLE events AS FROM read_evtx('{SAMPLES}/DC01-System.evtx')")
    columns = "fact, account, target, events, first, last"
    expected = con.execute(f"SELECT {columns} FROM evtx_facts_of('events') ORDER BY ALL").fetchall()
    for time in ("infinity", "-infinity"):
        con.execute(f"INSERT INTO events SELECT * REPLACE ('{time}'::TIMESTAMP_NS AS time_created) FROM read_evtx('{SAMPLES}/DC01-System.evtx')")
    assert expected and con.execute(f"SELECT {columns} FROM evtx_facts_of('events') ORDER BY ALL").fetchall() == expected


def test_numbers_stand_for_the_file_and_the_computer(con):
    part = "MAP {'ScriptBlockId': 'x', 'MessageNumber': '1', 'MessageTotal': '1', 'ScriptBlockText': 'whoami'}"
    con.execute(f"""CREATE TABLE events AS SELECT * REPLACE (7 AS computer, 1 AS filename, 4104 AS event_id, 'Microsoft-Windows-PowerShell' AS provider, {part} AS event_data)
        FROM read_evtx('{SAMPLES}/DC01-System.evtx') LIMIT 1""")
    assert con.execute("SELECT text FROM evtx_script_blocks_of('events')").fetchall() == [("whoami",)]


def test_names_in_many_records_are_kept_once(con):
    """A file server writes an event for each file that somebody opens."""
    data = "MAP {'SubjectUserSid': 'S-1-5-21-1-2-3-' || (1000 + i % 50), 'SubjectUserName': 'user' || (i % 50), 'SubjectDomainName': 'CORP'}"
    con.execute(f"""CREATE TABLE events AS SELECT i AS record_id, i AS event_record_id, make_timestamp_ns(1700000000000000000 + i * 1000000000) AS time_created, 5145 AS event_id,
        'Microsoft-Windows-Security-Auditing' AS provider, 'Security' AS channel, 'PC' AS computer, NULL::VARCHAR AS user_sid, {data} AS event_data, NULL::VARCHAR AS user_data,
        'Security.evtx' AS filename FROM range(50000) AS t(i)""")
    row = "evtx_fact_row(filename, record_id::UBIGINT, 1::UBIGINT, computer, channel, provider, record_id::UBIGINT, time_created, event_id::UINTEGER, user_sid, event_data, user_data)"
    assert con.execute(f"SELECT sum(length({row})) / count(*) < 30, count({row}) < 100 FROM events").fetchone() == (True, True)
    assert con.execute("SELECT count(*) FROM evtx_facts_of('events')").fetchone() == (0,)
    # Each account is known to a fact.
    con.execute("""INSERT INTO events SELECT 60000, 60000, '2024-01-01', 104, 'Microsoft-Windows-Eventlog', 'System', 'PC', 'S-1-5-21-1-2-3-1007', NULL, NULL, 'System.evtx'""")
    assert con.execute("SELECT account FROM evtx_facts_of('events') WHERE topic = 'cleared logs'").fetchall() == [("CORP\\user7",)]


@pytest.mark.parametrize("time", ["NULL", "'infinity'", "'-infinity'", "'2024-01-01'"])
def test_names_need_no_time(con, time):
    con.execute(f"""CREATE TABLE events AS SELECT 1 AS record_id, 1 AS event_record_id, {time}::TIMESTAMP_NS AS time_created, 4720 AS event_id,
        'Microsoft-Windows-Security-Auditing' AS provider, 'Security' AS channel, 'PC' AS computer, NULL::VARCHAR AS user_sid,
        MAP {{'TargetSid': 'S-1-5-21-1-2-3-1001', 'TargetUserName': 'anna', 'TargetDomainName': 'CORP'}} AS event_data, NULL::VARCHAR AS user_data, 'a.evtx' AS filename
        UNION ALL SELECT 9, 9, '2024-01-01 12:00:00'::TIMESTAMP_NS, 104, 'Microsoft-Windows-Eventlog', 'System', 'PC', 'S-1-5-21-1-2-3-1001', NULL, NULL, 'a.evtx'""")
    assert con.execute("SELECT account FROM evtx_facts_of('events') WHERE topic = 'cleared logs'").fetchall() == [("CORP\\anna",)]
    assert con.execute("SELECT user_name FROM evtx_accounts_of('events')").fetchall() == [("CORP\\anna",)]


def test_only_texts_of_rows_become_facts(con):
    empty = "NULL, NULL"
    assert con.execute(f"SELECT evtx_fact_list([NULL], {empty}) FROM range(3)").fetchall() == [([],)] * 3
    for text in ("", "[]", "{}", "[1]", "name ", "name [1]", "name []\nname []"):
        with pytest.raises(duckdb.InvalidInputException, match="not of evtx_fact_row"):
            con.execute(f"SELECT evtx_fact_list(['{text}'], {empty})")
