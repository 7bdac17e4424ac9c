"""The recipes of the cookbook over made-up events. The expected rows say what happened; no query made them."""

import collections
import json
import random
import re
from datetime import datetime, timedelta

import pytest
from conftest import SAMPLES
from test_cookbook import recipe

SECURITY, SHELL, TERMINAL = "Microsoft-Windows-Security-Auditing", "Microsoft-Windows-Shell-Core", "Microsoft-Windows-TerminalServices-"
START = datetime(2024, 7, 1, 8)
DOMAIN = "S-1-5-21-1-2-3"


@pytest.fixture(name="ask")
def fixture_ask(con):
    """Asks a question of the cookbook about events: (seconds, provider, ID, fields), and optionally other columns. Fields of UserData are a
    dictionary within a dictionary."""
    con.execute(f"CREATE TABLE events AS FROM read_evtx('{SAMPLES / 'DC01-Security.evtx'}') LIMIT 0")

    def ask(question, events, table="events", **replaced):
        con.execute("DELETE FROM events")
        for number, (at, provider, event_id, fields, *columns) in enumerate(events):
            user_data = json.dumps(fields) if any(isinstance(value, dict) for value in fields.values()) else None
            row = {
                "record_id": number, "event_record_id": number, "time_created": START + timedelta(seconds=at), "provider": provider, "event_id": event_id,
                "computer": "PC1", "channel": provider, "level": 4, "user_data": user_data,
                "event_data": None if user_data else [{"k": key, "v": value} for key, value in fields.items()], **(columns[0] if columns else {}),
            }
            row.setdefault("filename", f"{row['computer']}/{row['channel']}.evtx")
            values = ", ".join(
                "map_from_entries(?::STRUCT(k VARCHAR, v VARCHAR)[]) AS event_data" if name == "event_data" else f"? AS {name}" for name in row)
            con.execute(f"INSERT INTO events BY NAME SELECT {values}", list(row.values()))
        sql = re.sub(r"(evtx_\w+)\('samples[^()]*\)", rf"\1_of('{table}')", recipe(question))
        sql = re.sub(r"read_evtx\('samples[^()]*\)", "events", sql)
        assert "samples" not in sql
        for old, new in replaced.items():
            sql = sql.replace(old, new)
        return con.execute(sql).fetchall()

    return ask


def at(seconds):
    return START + timedelta(seconds=seconds)


def logon(seconds, account, source="-", kind=3, event_id=4624, sid=None, workstation="-", **fields):
    return seconds, SECURITY, event_id, {
        "TargetUserName": account, "TargetDomainName": "CORP", "TargetUserSid": sid or f"{DOMAIN}-{sum(map(ord, account))}",
        "LogonType": str(kind), "IpAddress": source, "WorkstationName": workstation, **fields}


def failure(seconds, account, source="-", status="0xc000006d", sub_status="0xc000006a", **fields):
    return logon(seconds, account, source, event_id=4625, sid="S-1-0-0", Status=status, SubStatus=sub_status, **fields)


OTHER_FAILURES = [
    (2000, SECURITY, 4776, {"TargetUserName": "carol", "Workstation": "KIOSK", "Status": "0xc0000072"}),
    (2100, SECURITY, 4771, {"TargetUserName": "dave", "TargetSid": f"{DOMAIN}-7", "IpAddress": "::ffff:10.0.0.3", "Status": "0x18"}),
    (2200, SECURITY, 4768, {"TargetUserName": "nobody", "TargetDomainName": "CORP", "TargetSid": "S-1-0-0", "IpAddress": "::ffff:10.0.0.4", "Status": "0x6"}),
    (2300, "MSSQLSERVER", 18456, {"param1": "sa", "param2": " Reason: Password did not match that for the login provided.", "param3": " [CLIENT: 10.0.0.5]"}),
    (2400, "OpenSSH", 4, {"process": "sshd", "payload": "Failed password for bob from 10.0.0.6 port 50422 ssh2"}),
    (2500, "Microsoft-Windows-RemoteDesktopServices-RdpCoreTS", 140, {"IPString": "10.0.0.7"}),
]


def test_one_account_with_95_failures_and_its_logon_is_found(ask):
    """And 0.0.0.0 is not a source."""
    events = [failure(number / 5, "administrator", workstation="kali") for number in range(95)]
    events += [logon(94 / 5 + 0.217, "Administrator", workstation="kali"), logon(60, "alice", "10.0.0.2"), failure(70, "bob", "0.0.0.0")]
    found = {row[1]: row for row in ask("Did it work?", events)}
    assert found.keys() == {"kali", None}
    assert found["kali"][3:5] == (1, 95)
    assert found["kali"][6] == at(94 / 5 + 0.217)
    assert found[None][4:] == (1, [{"reason": "STATUS_WRONG_PASSWORD", "failures": 1}], None, None)


def test_a_success_of_another_account_or_source_or_of_before_does_not_count(ask):
    events = [logon(0, "alice", "10.0.0.2"), failure(10, "alice", "10.0.0.2"), logon(20, "bob", "10.0.0.2"), logon(30, "alice", "10.0.0.3")]
    assert [(row[1], row[-1]) for row in ask("Did it work?", events)] == [("10.0.0.2", None)]


def test_every_source_of_failures_counts(ask):
    sources = {(row[1], row[4]) for row in ask("Did it work?", OTHER_FAILURES)}
    assert sources == {("KIOSK", 1), *((f"10.0.0.{number}", 1) for number in range(3, 8))}


REASONS = {"0xc000006a": "STATUS_WRONG_PASSWORD", "0xc0000064": "STATUS_NO_SUCH_USER", "0xc0000072": "STATUS_ACCOUNT_DISABLED"}


@pytest.mark.parametrize("seed", range(5))
def test_random_failures_have_their_source_reasons_and_success(ask, seed):
    """A second evaluator, which goes through the events once."""
    chance, events, found = random.Random(seed), [], {}
    for time in sorted(chance.sample(range(5000), 80)):
        account, source, works = chance.choice(["alice", "Alice", "bob"]), chance.choice(["10.0.0.1", "::ffff:10.0.0.2", "KIOSK", "-", "0.0.0.0", "127.0.0.1", "::1"]), chance.random() < 0.2
        where = {"workstation": source} if source == "KIOSK" else {"source": source}
        row = found.setdefault(None if source in ("-", "0.0.0.0", "127.0.0.1", "::1") else source.removeprefix("::ffff:"), {"failed": set(), "reasons": collections.Counter(), "logon": None})
        if works:
            events.append(logon(time, account, kind=chance.choice([2, 3, 10]), **where))
            if account.lower() in row["failed"] and not row["logon"]:
                row["logon"] = at(time), account.lower()
        else:
            code, is_zero = chance.choice(list(REASONS)), chance.random() < 0.3
            events.append(failure(time, account, status=code if is_zero else "0xc000006d", sub_status="0x0" if is_zero else code, **where))
            row["failed"].add(account.lower())
            row["reasons"][REASONS[code]] += 1
    rows = {
        source: (accounts, failures, {reason["reason"]: reason["failures"] for reason in reasons}, time and (time, account.split("\\")[-1].lower()))
        for _, source, _, accounts, failures, reasons, time, account in ask("Did it work?", events)}
    assert rows == {source: (len(row["failed"]), row["reasons"].total(), row["reasons"], row["logon"]) for source, row in found.items() if row["failed"]}


def test_failures_of_a_minute_are_counted_by_source(ask):
    events = [failure(number, f"user{number}", "10.0.0.2") for number in range(12)] + [failure(600 + 60 * number, "alice", "10.0.0.3") for number in range(12)]
    assert [row[1:5] for row in ask("Who guessed passwords, or tried one on many accounts?", events)] == [("10.0.0.2", 12, 12, 12)]


def everybody(seconds, computer):
    """The accounts that every machine has."""
    names = {"SYSTEM": "S-1-5-18", "LOCAL SERVICE": "S-1-5-19", "NETWORK SERVICE": "S-1-5-20", "DWM-1": "S-1-5-90-0-1", "UMFD-0": "S-1-5-96-0-0",
             "ANONYMOUS LOGON": "S-1-5-7", "-": "S-1-0-0", "PC9$": f"{DOMAIN}-1109"}
    return [(*logon(seconds, name, sid=sid), {"computer": computer}) for name, sid in names.items()]


def test_only_people_move_and_only_between_machines(ask):
    one, two, renamed = {"computer": "PC1"}, {"computer": "PC2"}, {"filename": "old/Security.evtx"}
    events = [
        *everybody(0, "PC1"), *everybody(1, "PC2"), (*logon(10, "alice"), one), (*logon(20, "alice", kind=10), two), (*failure(30, "bob"), one), (*logon(40, "bob"), two),
        # A machine that was joined to a domain, and then got another name.
        *((*logon(50 + number, "carol"), {"computer": name, **renamed}) for number, name in enumerate(["DESKTOP-1", "DESKTOP-1.corp.example", "PC3.corp.example"])),
        # Both machines have an account of this name.
        (*logon(60, "Admin", sid="S-1-5-21-4-5-6-1001"), one), (*logon(61, "Admin", sid="S-1-5-21-7-8-9-1001"), two),
    ]
    assert ask("Which account moves from machine to machine?", events) == [("CORP\\alice", ["PC1", "PC2"], at(10), at(20))]


def session(seconds, event_id, user, address):
    return seconds, TERMINAL + "LocalSessionManager", event_id, {"EventXML": {"User": user, "SessionID": 3, "Address": address}}


def connection(seconds, user, domain, address):
    return seconds, TERMINAL + "RemoteConnectionManager", 1149, {"EventXML": {"Param1": user, "Param2": domain, "Param3": address}}


def test_one_logon_by_remote_desktop_is_one_row(ask):
    far, service = "203.0.113.9", {"user_sid": "S-1-5-20"}
    events = [
        # Three logons of alice. The first has all events, and two tokens. Only the first two are less than a minute apart.
        connection(0, "alice", "", far), logon(1.5, "alice", far, kind=10), logon(1.6, "Alice", far, kind=10), session(3, 21, "CORP\\alice", far),
        connection(20, "alice", "", far), logon(20.3, "alice", far, kind=10), logon(500, "alice", far, kind=12),
        # A reconnect.
        connection(900, "alice", "CORP", far), logon(901, "alice", far, kind=7), session(902, 25, "CORP\\alice", far),
        (902.1, SECURITY, 4778, {"AccountName": "alice", "AccountDomain": "CORP", "ClientAddress": far, "ClientName": "KALI"}),
        # A gateway has its own row, as has another account.
        (10, TERMINAL + "Gateway", 302, {"EventInfo": {"Username": "CORP\\alice", "IpAddress": far, "Resource": "pc1"}}, {"computer": "GATE"}),
        logon(2, "bob", far, kind=10),
        # No logons by Remote Desktop: at the console, over the network, unlocked at the machine, a connection that did not name an account.
        session(50, 21, "CORP\\alice", "LOCAL"), logon(60, "alice", far, kind=3), logon(70, "alice", "127.0.0.1", kind=7), logon(80, "alice", "-", kind=7),
        (*connection(90, "", "", far), service),
        # Through a tunnel.
        connection(2000, "alice", "CORP", "127.0.0.1"), logon(2001, "alice", "127.0.0.1", kind=10),
    ]
    assert ask("Who came in by Remote Desktop?", events) == [
        (at(0), "PC1", "CORP\\alice", far, False, [21, 1149, 4624]), (at(2), "PC1", "CORP\\bob", far, False, [4624]), (at(10), "GATE", "CORP\\alice", far, False, [302]),
        (at(20), "PC1", "CORP\\alice", far, False, [1149, 4624]), (at(500), "PC1", "CORP\\alice", far, False, [4624]), (at(900), "PC1", "CORP\\alice", far, True, [25, 1149, 4624, 4778]),
        (at(2000), "PC1", "CORP\\alice", None, False, [1149, 4624])]


@pytest.mark.parametrize("seed", range(3))
def test_a_hundred_logons_by_remote_desktop_are_a_hundred_rows(ask, seed):
    """Of people who come and go at the same time, with any of the events missing."""
    chance, events, expected = random.Random(seed), [], []
    for account in ("alice", "bob", "carol@corp.example"):
        for address in ("203.0.113.9", "::ffff:10.0.0.8"):
            time = chance.uniform(0, 100)
            for _ in range(17):
                time, name, host = time + chance.uniform(95, 900), account.split("@")[0], address.removeprefix("::ffff:")
                is_new = chance.random() < 0.6
                possible = [
                    connection(time, account, "", address), logon(time + chance.uniform(1, 5), name, address, kind=chance.choice([10, 12] if is_new else [7, 13])),
                    session(time + chance.uniform(6, 30), 21 if is_new else 25, f"CORP\\{name}", address),
                    *([] if is_new else [(time + chance.uniform(6, 30), SECURITY, 4778, {"AccountName": name, "AccountDomain": "CORP", "ClientAddress": address})]),
                ]
                found = chance.sample(possible, chance.randint(1, len(possible)))
                # The second token of an administrator.
                found += [(seconds + 0.01, *rest) for seconds, *rest in found if rest[1] == 4624 and chance.random() < 0.5]
                ids = sorted({event[2] for event in found})
                events += found
                expected.append((at(min(event[0] for event in found)), "PC1", account if ids == [1149] else f"CORP\\{name}", host, not is_new and ids != [1149], ids))
    noise = [logon(chance.uniform(0, 9000), "alice", "203.0.113.9") for _ in range(50)] + [failure(chance.uniform(0, 9000), "bob", "10.0.0.8") for _ in range(50)]
    rows = ask("Who came in by Remote Desktop?", events + noise)
    assert sorted(rows) == sorted(expected)


def test_an_install_is_one_row(ask):
    subject = {"SubjectUserSid": f"{DOMAIN}-500", "SubjectUserName": "eve", "SubjectDomainName": "CORP"}
    installs = [(seconds + part, *event) for seconds in (0, 600) for part, event in enumerate([
        (SECURITY, 4697, {"ServiceName": "PSEXESVC", "ServiceFileName": "C:\\PSEXESVC.exe", **subject}), ("Service Control Manager", 7045, {"ServiceName": "PSEXESVC", "ImagePath": "C:\\PSEXESVC.exe"})])]
    assert ask("Which services were installed?", installs) == [("PC1", at(seconds), "PSEXESVC", "C:\\PSEXESVC.exe", "CORP\\eve") for seconds in (0, 600)]


def test_remote_tools_are_found_by_service_product_and_events(ask):
    def service(seconds, name, path):
        return seconds, "Service Control Manager", 7045, {"ServiceName": name, "ImagePath": path}

    events = [
        service(1, "ScreenConnect Client (5f60)", '"C:\\Program Files (x86)\\ScreenConnect Client (5f60)\\ScreenConnect.ClientService.exe" "?e=Access"'),
        (2, "ScreenConnect Client (5f60)", 100, {"param1": "Cloud account administrator connected"}), service(3, "AnyDesk Service", '"C:\\AnyDesk.exe" --service'),
        service(4, "TeamViewer", "C:\\TeamViewer_Service.exe"), (5, "TeamViewer", 0, {"param1": "Service started"}), (6, "Splashtop-Splashtop Streamer-Remote Session", 1000, {"SRC_Name": "pc"}),
        (7, "MsiInstaller", 1033, {"param1": "Splashtop Streamer", "param2": "3.5"}),
        # These only mention one.
        service(8, "Spooler", "C:\\Windows\\spoolsv.exe"), (9, "MsiInstaller", 1033, {"param1": "Office"}), (10, SECURITY, 4688, {"NewProcessName": "C:\\notepad.exe", "CommandLine": "notepad anydesk.txt"}),
    ]
    assert [row[0] for row in ask("Which remote tools are there?", events)] == [at(number) for number in range(1, 8)]


def test_commands_have_the_run_key_they_are_in(ask):
    def shell(seconds, event_id, thread=1, user=f"{DOMAIN}-1001", **fields):
        return seconds, SHELL, event_id, fields, {"process_id": 7, "thread_id": thread, "user_sid": user}

    run, once = (f"Software\\Microsoft\\Windows\\CurrentVersion\\{name}" for name in ("Run", "RunOnce"))
    events = [
        shell(0, 9707, Command="unregmp2.exe /FirstLogon"), shell(1, 9705, KeyName=run), shell(2, 9705, thread=2, KeyName=once), shell(3, 9707, Command="evil.exe"),
        shell(4, 9707, thread=2, Command="once.exe"), shell(5, 9708, Command="evil.exe", PID="9"), shell(6, 9706, KeyName=run), shell(7, 9707, Command="later.exe"),
        shell(100, 9705, KeyName=run), shell(101, 9707, Command="evil.exe", user=f"{DOMAIN}-1001"),
    ]
    # Another event names one of the users.
    events += [shell(200, 9707, Command="evil.exe", user=f"{DOMAIN}-1002"), logon(300, "alice", sid=f"{DOMAIN}-1001")]
    assert sorted(ask("What did Run keys start?", events), key=lambda row: row[5]) == [
        ("PC1", "unregmp2.exe /FirstLogon", None, "CORP\\alice", 1, at(0), at(0)), ("PC1", "evil.exe", run, "CORP\\alice", 2, at(3), at(101)),
        ("PC1", "once.exe", once, "CORP\\alice", 1, at(4), at(4)), ("PC1", "later.exe", None, "CORP\\alice", 1, at(7), at(7)),
        ("PC1", "evil.exe", run, f"{DOMAIN}-1002", 1, at(200), at(200))]


def test_encoded_commands_of_services_and_processes_are_found(ask):
    command = "powershell.exe -nop -e SQBFAFgAIAAoACcAYQAnACkA"
    events = [(1, "Service Control Manager", 7045, {"ServiceName": "s", "ImagePath": f"%COMSPEC% /c {command}"}), (2, SECURITY, 4688, {"NewProcessName": "p.exe", "CommandLine": command}),
              (3, SECURITY, 4688, {"NewProcessName": "p.exe", "CommandLine": "powershell -ep RemoteSigned"})]
    assert [(row[0], row[4]) for row in ask("What do encoded commands say?", events)] == [(at(1), "IEX ('a')"), (at(2), "IEX ('a')")]


def test_a_transfer_counts_once(ask):
    def bits(seconds, event_id, transfer, **fields):
        return seconds, "Microsoft-Windows-Bits-Client", event_id, {"transferId": transfer, "url": "http://a/b", "name": "job", **fields}

    events = [bits(1, 59, "{1}"), bits(2, 60, "{1}", hr="0"), bits(3, 59, "{2}"), bits(4, 61, "{2}", hr="2149580817")]
    assert [row[4:] for row in ask("What did BITS download?", events)] == [(at(1), 2, 1)]


def test_new_computer_accounts_have_who_added_them(ask):
    event = (5, SECURITY, 4741, {"TargetUserName": "EVIL$", "DnsHostName": "-", "SubjectUserName": "bob", "SubjectDomainName": "CORP"}, {"computer": "DC1"})
    assert ask("Who added a computer to the domain?", [event, logon(6, "bob")]) == [(at(5), "DC1", "EVIL$", "-", "CORP\\bob")]


def test_a_log_that_falls_silent_for_minutes_is_found(ask):
    """Not one that writes a few times a day, nor one of a machine that sleeps."""
    def event(minute, channel, computer="PC1"):
        return 60 * minute, "any", 1, {}, {"channel": channel, "computer": computer}

    awake = [minute for minute in range(600) if not 300 <= minute < 480]
    events = [event(minute, "System") for minute in awake] + [event(minute, "Sysmon") for minute in awake if minute % 2 == 0 and not 100 <= minute < 140]
    events += [event(minute, "Setup") for start in (*range(0, 300, 50), *range(500, 600, 50)) for minute in range(start, start + 5)] + [event(minute, "System", "PC2") for minute in range(0, 600, 3)]
    rows = ask("Which log fell silent while others went on?", events)
    assert [(row[0], row[1], row[2], row[3]) for row in rows] == [("PC1", "Sysmon", at(98 * 60), at(140 * 60))]


def test_rare_matches_come_before_the_noise_of_a_rule(ask, con):
    con.execute(f"CREATE TABLE matches AS FROM evtx_sigma('{SAMPLES}/*.evtx', rules := '{SAMPLES}/rules') LIMIT 0")
    for title, level, computers, matches in [("noise", "high", 10, 400), ("attack", "high", 1, 2), ("lesser attack", "medium", 1, 1), ("chatter", "low", 1, 1)]:
        for number in range(matches):
            con.execute("INSERT INTO matches BY NAME SELECT ? AS rule_title, ? AS rule_id, ? AS rule_level, ? AS computer, ? AS time_created, 'p' AS provider, 1 AS event_id",
                        [title, title, level, f"PC{number % computers}", at(number)])
    rows = ask("Which rules matched, and which matches are rare?", [], table="matches")
    assert [(row[3], row[5]) for row in rows] == [("attack", 2), ("lesser attack", 1), ("chatter", 1)]


def test_a_device_is_one_row_however_windows_names_it(ask):
    pnp, umdf, partition = "Microsoft-Windows-Kernel-PnP", "Microsoft-Windows-DriverFrameworks-UserMode", "Microsoft-Windows-Partition"
    stick = "USBSTOR\\Disk&Ven_SanDisk&Prod_Cruzer&Rev_1.00\\4C53&0"
    volume = "_??_USBSTOR#DISK&VEN_SANDISK&PROD_CRUZER&REV_1.00#4C53&0#{53f56307-b6bf-11d0-94f2-00a0c91efb8b}"
    disk = {"BusType": "7", "Manufacturer": "SanDisk", "Model": "Cruzer", "SerialNumber": "4C53", "ParentId": "USB\\VID_0781&PID_5597\\4C53"}
    events = [
        (0, pnp, 400, {"DeviceInstanceId": "USB\\VID_0781&PID_5597\\4C53"}), (1, pnp, 410, {"DeviceInstanceId": stick}), (2, partition, 1006, {**disk, "Capacity": "16008609792"}),
        (3, umdf, 2003, {"UMDFHostDeviceArrivalBegin": {"LifetimeId": "{1}", "InstanceId": f"SWD\\WPDBUSENUM\\{volume}"}}),
        # As Windows 7 wrote it.
        (60, umdf, 2100, {"UMDFHostDeviceRequest": {"#attributes": {"lifetime": "{1}", "instance": f"WPDBUSENUMROOT\\UMB\\2&37C186B&0&STORAGE#VOLUME#{volume}"}}}),
        (61, partition, 1006, {**disk, "Capacity": "0"}),
        # A card, which only the disk names, and a keyboard without a serial number.
        (5, partition, 1006, {"BusType": "12", "Manufacturer": "NULL", "Model": "SD32G", "SerialNumber": "0x12", "ParentId": "PCI\\VEN_10EC", "Capacity": "31914983424"}),
        (6, pnp, 400, {"DeviceInstanceId": "USB\\VID_046D&PID_C31C\\5&2C8&0&3"}),
        # The disk of the machine, a hub, a part of a device, and a printer are not asked for.
        (7, partition, 1006, {"BusType": "17", "Model": "NVMe", "SerialNumber": "1", "ParentId": "PCI\\VEN_144D", "Capacity": "512110190592"}),
        *((8, pnp, 400, {"DeviceInstanceId": device}) for device in ("USB\\ROOT_HUB30\\4&1&0&0", "USB\\VID_046D&PID_C31C&MI_01\\6&1&0&0001", "SWD\\PRINTENUM\\{A5}")),
    ]
    rows = [(*row[:8], sorted(row[9])) for row in ask("Which USB devices and removable media were connected?", events)]
    assert rows == [
        ("PC1", "4C53", "USB", "SanDisk Cruzer", 16008609792, at(0), at(61), at(61), [400, 410, 1006, 2003, 2100]), ("PC1", "0x12", "SD", "SD32G", 31914983424, at(5), at(5), None, [1006]),
        ("PC1", "5&2C8&0&3", None, "", None, at(6), at(6), None, [400])]


def test_addresses_have_the_country_of_their_range(ask, tmp_path):
    ranges = tmp_path / "ranges.csv"
    ranges.write_text('10.0.0.0,10.255.255.255,ZZ\n"203.0.113.0","203.0.113.127","NL"\n203.0.114.0,203.0.114.255,DE\n2001:db8::,2001:db8::ffff,FR\n')
    events = [logon(number, "bob", address) for number, address in enumerate(["203.0.113.127", "203.0.113.127", "203.0.113.128", "203.0.114.0", "9.9.9.9", "2001:db8::1"])]
    rows = ask("In which country is an address?", events, **{"ranges.csv": str(ranges)})
    assert {row[0]: row[1:3] for row in rows} == {"203.0.113.127": ("NL", 2), "203.0.113.128": (None, 1), "203.0.114.0": ("DE", 1), "9.9.9.9": (None, 1)}


def test_local_time_is_right_in_summer_and_in_winter(ask):
    """Event 6013 has the minutes of standard time in summer, too."""
    winter = -183 * 24 * 3600
    events = [(seconds + part, *event) for seconds in (winter, 0) for part, event in enumerate([
        ("EventLog", 6013, {"param7": "-60 W. Europe Standard Time"}), ("Service Control Manager", 7045, {"ServiceName": "s"})])]
    events.append((winter - 1, "Service Control Manager", 7045, {"ServiceName": "before"}))
    hours = [row[1] and (row[1] - row[0]).total_seconds() / 3600 for row in ask("What was the local time of an event?", events)]
    assert hours == [None, 1, 2]


def test_duckdb_knows_every_zone(con):
    zones = con.execute("SELECT code, name FROM evtx_codes() WHERE table_name = 'time_zone'").fetchall()
    assert len(zones) > 140
    assert {name for _, name in zones} <= {row[0] for row in con.execute("SELECT name FROM pg_timezone_names()").fetchall()}
    # From CLDR, by hand, among them zones of half hours and of the other hemisphere.
    for zone, name in [("W. Europe Standard Time", "Europe/Berlin"), ("India Standard Time", "Asia/Calcutta"), ("AUS Eastern Standard Time", "Australia/Sydney"),
                       ("E. South America Standard Time", "America/Sao_Paulo"), ("Line Islands Standard Time", "Pacific/Kiritimati"), ("UTC-08", "Etc/GMT+8")]:
        assert (zone, name) in zones
