"""The recipes of the cookbook over made-up events. The expected rows say what happened; no query made them."""

import json
import re
from datetime import datetime, timedelta

import pytest
from conftest import SAMPLES
from test_cookbook import recipe

SECURITY, SHELL = "Microsoft-Windows-Security-Auditing", "Microsoft-Windows-Shell-Core"
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
                "computer": "PC1", "channel": "Security" if provider == SECURITY else provider, "level": 4, "user_data": user_data,
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


@pytest.fixture(name="facts")
def fixture_facts(ask):
    """Asks for the facts of a topic."""
    def facts(topic, columns, events):
        return ask("What happened, when, and who did it?", events, **{"level, first, computer, fact, account, source, target": columns, "level >= 'medium'": f"topic = '{topic}'"})

    return facts


def test_one_account_with_95_failures_and_its_logon_is_a_fact(facts):
    """And 0.0.0.0 is not a source."""
    events = [failure(number / 5, "administrator", workstation="kali") for number in range(95)]
    events += [logon(94 / 5 + 0.217, "Administrator", workstation="kali"), logon(60, "alice", "10.0.0.2"), failure(70, "bob", "0.0.0.0")]
    assert facts("failed logons", "level, fact, source, events, last", events) == [
        ("high", "95 failed logons, then a logon of the same account", "kali", 95, at(94 / 5 + 0.217)), ("info", "1 failed logon", None, 1, at(70))]


def test_a_success_of_another_account_or_source_or_of_before_does_not_count(facts):
    events = [logon(0, "alice", "10.0.0.2"), failure(10, "alice", "10.0.0.2"), logon(20, "bob", "10.0.0.2"), logon(30, "alice", "10.0.0.3")]
    assert facts("failed logons", "fact, source", events) == [("1 failed logon", "10.0.0.2")]


def test_every_source_of_failures_counts(facts):
    assert set(facts("failed logons", "source, events", OTHER_FAILURES)) == {("KIOSK", 1), *((f"10.0.0.{number}", 1) for number in range(3, 8))}


def test_an_installation_is_one_fact_of_each_log(facts):
    subject = {"SubjectUserSid": f"{DOMAIN}-500", "SubjectUserName": "eve", "SubjectDomainName": "CORP"}
    installed = [
        (0, SECURITY, 4697, {"ServiceName": "PSEXESVC", "ServiceFileName": "C:\\PSEXESVC.exe", **subject}),
        (1, "Service Control Manager", 7045, {"ServiceName": "PSEXESVC", "ImagePath": "C:\\PSEXESVC.exe"})]
    assert facts("services", "fact, account, target", installed) == [("Service installed", "CORP\\eve", "PSEXESVC"), ("Service installed", None, "PSEXESVC")]


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
