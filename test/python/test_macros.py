"""The macros over made-up events that no sample contains. test/sql/macros.test runs them over the samples."""

import base64
import csv
import hashlib
import random
import re
import struct

import polars
import pytest
from conftest import ROOT, SAMPLES, assert_same_rows, interrupted, takes_at_most

SECURITY, SYSMON = "Microsoft-Windows-Security-Auditing", "Microsoft-Windows-Sysmon"
CHANNELS = {SECURITY: "Security", SYSMON: "Microsoft-Windows-Sysmon/Operational", "Microsoft-Windows-Kernel-General": "System"}


@pytest.fixture(name="over", params=["ASC", "DESC"])
def fixture_over(con, request):
    """Runs a macro over events, with both defaults of ORDER BY. An event is a tuple of seconds, provider, ID, fields, and optionally the SID of its user and the computer. It is in the
    log of its provider."""
    con.execute(f"SET default_order = '{request.param}'; SET default_null_order = '{'NULLS_LAST' if request.param == 'ASC' else 'NULLS_FIRST'}'")
    con.execute(f"CREATE TABLE events AS FROM read_evtx('{SAMPLES / 'DC01-Security.evtx'}') LIMIT 0")

    def run(macro, events, select="*", rest="", copies=1):
        con.execute("DELETE FROM events")
        rows = [
            (number, f"2024-03-05 08:00:00'::TIMESTAMP_NS + INTERVAL '{at * 1000000:.0f} microseconds", *rest)
            for number, (at, *rest) in enumerate(events)
        ]
        for _ in range(copies):
            for number, at, provider, event_id, fields, *origin in rows:
                user, computer = (*origin, *(None, "pc")[len(origin):])
                con.execute(
                    f"""INSERT INTO events (record_id, event_record_id, time_created, provider, event_id, event_data, computer, level, user_sid, channel)
                        SELECT ?, ?, '{at}', ?, ?, map_from_entries(?::STRUCT(k VARCHAR, v VARCHAR)[]), ?, 5, ?, ?""",
                    [number, number, provider, event_id, [{"k": k, "v": v} for k, v in fields.items()], computer, user, CHANNELS.get(provider, provider)],
                )
        return query(macro, select, rest)

    def query(macro, select="*", rest=""):
        return con.execute(f"SELECT {select} FROM {macro}_of('events') {rest}").fetchall()

    run.query, run.con = query, con
    return run


def base64_of(text, encoding):
    return base64.b64encode(text.encode(encoding)).decode()


TEXTS = [
    "whoami", "IEX (iwr 'http://a/b')", "a😀b", "naïve\r\n\ttext", "x" * 3000, "все файлы", "日本語テキスト", "한국어", "ελ и кир", "Հայերեն", "ქართული",
    "हिन्दी", "नमस्ते", "বাংলা", "தமிழ்", "తెలుగు", "മലയാളം", "አማርኛ", "ខ្មែរ", "עברית", "ไทย", "中文注释 α 这里是一段很长的文字", "한국漢字 섞어 쓰기 하는 문장 입니다",
    "Get-Process # \ue0b0 ქ 日本", "Write-Host '日本' # ελ",
]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16-le"])
@pytest.mark.parametrize("text", TEXTS)
def test_base64_gives_the_text(con, text, encoding):
    plain = base64_of(text, encoding)
    wrapped = "\r\n".join(plain[i:i + 76] for i in range(0, len(plain), 76))
    forms = [plain, plain.rstrip("="), f"  {wrapped}\n", plain.replace("+", "-").replace("/", "_"), base64_of("\ufeff" + text, encoding), base64_of(text + "\0", encoding)]
    assert con.execute("SELECT DISTINCT evtx_decode_base64(unnest(?))", [forms]).fetchall() == [(text,)]


def test_a_byte_order_mark_says_that_letters_of_any_kind_are_text(con):
    text = "ⴰⵎⴰⵣⵉⵖ ꆈꌠ"  # Tifinagh and Yi
    forms = [base64_of(mark + text, "utf-16-le") for mark in ("\ufeff", "")]
    assert con.execute("SELECT evtx_decode_base64(unnest(?))", [forms]).fetchall() == [(text,), (None,)]


def test_what_is_no_base64_is_null(con):
    forms = ["", "a", "abcde", "====", "a===", "ab=c", "!!!!", "ä", "AAAA", "/w==", "//79", None]
    assert con.execute("SELECT DISTINCT evtx_decode_base64(unnest(?::VARCHAR[]))", [forms]).fetchall() == [(None,)]


def test_bytes_that_are_no_text_are_null(con):
    chance = random.Random(1)
    forms = [base64.b64encode(chance.randbytes(60)).decode() for _ in range(2000)]
    assert con.execute("SELECT count(evtx_decode_base64(unnest)) FROM unnest(?)", [forms]).fetchone() == (0,)


def test_decoding_base64_takes_little_and_can_be_interrupted(con):
    text = base64_of("whoami " * 450_000, "utf-16-le")
    con.execute("SET memory_limit = '200MB'")
    assert con.execute("SELECT length(evtx_decode_base64($1))", [text]).fetchone() == (3_150_000,)
    con.execute("RESET memory_limit; CREATE TABLE texts AS SELECT $1 || i AS t FROM range(120) r(i)", [text[:4_000_000]])
    with interrupted(con, after=0.3):
        con.execute("SELECT sum(length(evtx_decode_base64(t))) FROM texts").fetchall()


@pytest.mark.parametrize(("event_id", "direction", "remote"), [
    (5152, "%%14592", "source"), (5152, "%%14593", "dest"), (5153, "%%14592", "source"), (5153, "%%14593", "dest"),
    (5156, "%%14592", "dest"), (5156, "%%14593", "dest"), (5157, "%%14592", "dest"), (5157, "%%14593", "dest"),
])
def test_the_remote_host_of_a_connection_is_the_other_end(over, event_id, direction, remote):
    """The source of a packet is its sender. The source of a connection is this machine (Microsoft Learn, events 5152 to 5157)."""
    event = (1, SECURITY, event_id, {"Application": "a.exe", "Direction": direction, "SourceAddress": "source", "DestAddress": "dest"})
    assert over("evtx_timeline", [event], "remote_host, process") == [(remote, "a.exe")]


@pytest.mark.parametrize(("event_id", "fields"), [
    (5150, {"Direction": "%%14592", "SourceAddress": "00-11-22-33-44-55", "DestAddress": "66-77-88-99-AA-BB"}),
    (5154, {"SourceAddress": "0.0.0.0", "SourcePort": "4444"}), (5158, {"SourceAddress": "::", "SourcePort": "4444"}),
])
def test_cards_and_ports_have_no_remote_host(over, event_id, fields):
    assert over("evtx_timeline", [(1, SECURITY, event_id, fields)], "remote_host") == [(None,)]


@pytest.mark.parametrize(("url", "host"), [
    ("https://a.example/x", "a.example"), ("http://a.example:8080/x", "a.example"), ("http://a.example?x=http://b", "a.example"), ("http://a.example#x@y", "a.example"),
    ("http://update.microsoft.com:443@evil.example/x", "evil.example"), ("http://user:pw@h/", "h"), ("http://a@b@c/", "c"), ("http://a/b@c", "a"),
    ("http://a.example\\@b/", "a.example"), ("http://[fe80::1]/", "fe80::1"), ("http://u@[fe80::1]:80/", "fe80::1"), ("http://10.0.0.1:80", "10.0.0.1"),
    ("", None), ("a/b?http://c", None),
])
def test_the_host_of_a_url_is_where_it_leads(over, url, host):
    assert over("evtx_timeline", [(1, "Microsoft-Windows-Bits-Client", 59, {"url": url})], "remote_host") == [(host,)]


CALLER = {"SubjectUserSid": "S-1-5-18", "SubjectUserName": "DC01$", "SubjectDomainName": "CORP"}
RDP, SMB = "Microsoft-Windows-TerminalServices-ClientActiveXCore", "Microsoft-Windows-SMBClient"
DEFENDER = "Microsoft-Windows-Windows Defender"


@pytest.mark.parametrize(("provider", "event_id", "fields", "columns"), [
    # This event has the calling computer in the field for the domain.
    (SECURITY, 4740, {"TargetUserName": "bob", "TargetDomainName": "WS01", **CALLER}, ("bob", "WS01", None)),
    (SECURITY, 5447, {"UserSid": "S-1-5-19", "UserName": "NT AUTHORITY\\LOCAL SERVICE"}, ("NT AUTHORITY\\LOCAL SERVICE", None, None)),
    (SECURITY, 5890, {"SubjectUserName": "SYSTEM", "SubjectUserDomainName": "NT AUTHORITY"}, ("NT AUTHORITY\\SYSTEM", None, None)),
    (SECURITY, 4688, {"TargetUserName": "-", "TargetDomainName": "-", "NewProcessName": "a.exe", **CALLER}, ("CORP\\DC01$", None, "a.exe")),
    (SECURITY, 4688, {"TargetUserName": "eve", "TargetDomainName": "X", "NewProcessName": "a.exe", **CALLER}, ("X\\eve", None, "a.exe")),
    # Other events than 1149 have fields with these names.
    ("Microsoft-Windows-PrintService", 316, {"Param1": "Windows x64", "Param2": "Generic", "Param3": "driver"}, (None, None, None)),
    (SMB, 30803, {"ServerName": "FS01"}, (None, "FS01", None)),
    (SMB, 30812, {"ServerName": "\\Device\\NetBT_Tcpip_{1}"}, (None, None, None)),
    ("Microsoft-Windows-RemoteDesktopServices-RdpCoreTS", 162, {"ServerName": "THIS"}, (None, None, None)),
    (RDP, 1024, {"Name": "Server Name", "Value": "FS01"}, (None, "FS01", None)),
    *[(DEFENDER, event_id, {"Domain": "CORP", "User": "bob"}, ("CORP\\bob", None, None)) for event_id in (2000, 2001, 2002)],
    (SECURITY, 4661, {"ProcessName": "{bf967a90-0de6-11d0-a285-00aa003049e2}\r\n%%5400", **CALLER}, ("CORP\\DC01$", None, None)),
    (SECURITY, 4624, {"TargetUserName": "jo@live.example", "TargetDomainName": "MicrosoftAccount"}, ("MicrosoftAccount\\jo@live.example", None, None)),
    (SECURITY, 4769, {"TargetUserName": "jo@CORP.EXAMPLE", "TargetDomainName": "CORP.EXAMPLE"}, ("CORP.EXAMPLE\\jo", None, None)),
    *[(SECURITY, 4776, {"TargetUserName": "bob", "Workstation": host}, ("bob", None, None)) for host in ("pc", "PC", "127.0.0.1", "::1", "localhost")],
    ("Some Provider", 4624, {"TargetUserName": "bob", "IpAddress": "10.0.0.1", "ProcessName": "a.exe", "User": "eve", "ServerName": "s"}, (None, None, None)),
])
def test_columns_come_from_the_fields_of_the_event(over, provider, event_id, fields, columns):
    assert over("evtx_timeline", [(1, provider, event_id, fields)], "user_name, remote_host, process") == [columns]


def test_details_do_not_repeat_other_columns(over):
    fields = {"TargetUserName": "bob", "TargetDomainName": "CORP", "IpAddress": "::ffff:10.0.0.1", "ProcessName": "a.exe", "Other": "x", "Machine": "pc", "Empty": "-"}
    assert over("evtx_timeline", [(1, SECURITY, 4624, fields)], "user_name, remote_host, process, details") == [("CORP\\bob", "10.0.0.1", "a.exe", "Other: x")]
    # The address stays in the details, because the column lacks the port.
    rdp = (1, "Microsoft-Windows-RemoteDesktopServices-RdpCoreTS", 131, {"ConnType": "TCP", "ClientIP": "10.0.0.1:5"})
    assert over("evtx_timeline", [rdp], "remote_host, details") == [("10.0.0.1", "ConnType: TCP ¦ ClientIP: 10.0.0.1:5")]


def test_every_field_of_the_timeline_is_declared(con):
    """The fields that the table takes from manifests exist there, and each event occurs once."""
    con.execute("CREATE TABLE kinds AS SELECT *, unnest(event_ids) AS event_id FROM (SELECT unnest(evtx_timeline_fields(), max_depth := 2))")
    assert con.execute("SELECT provider, event_id FROM kinds GROUP BY ALL HAVING count(*) > 1").fetchall() == []
    assert con.execute("SELECT * FROM kinds WHERE (coalesce(account, domain, remote_host, process) IS NULL) <> (source IS NULL)").fetchall() == []
    undeclared = con.execute("""
        SELECT provider, event_id, field
        FROM (SELECT provider, event_id, unnest(string_split(concat_ws('|', account, domain, remote_host, process), '|')) AS field FROM kinds WHERE source = 'manifest')
        WHERE field NOT IN (SELECT unnest(['@url', 'FilePath'])) AND (provider, event_id, field) NOT IN (SELECT (provider, event_id, field_name) FROM evtx_event_catalog())""")
    assert undeclared.fetchall() == []


@pytest.mark.parametrize("threads", [1, 4])
def test_the_timeline_has_a_row_per_record(con, threads):
    con.execute(f"SET threads = {threads}")
    columns = "filename, record_id, time_created, error"
    assert_same_rows(con, f"SELECT {columns} FROM evtx_timeline('{SAMPLES}')", f"SELECT {columns} FROM read_evtx('{SAMPLES}')")


@pytest.mark.parametrize(("provider", "event_id", "fields", "details"), [
    (SECURITY, 4625, {"Status": "0xc000006d", "FailureReason": "%%2313", "SubStatus": "0xC000006A", "LogonType": "10"},
     "Status: 0xc000006d (STATUS_LOGON_FAILURE) ¦ FailureReason: Unknown user name or bad password ¦ SubStatus: 0xC000006A (STATUS_WRONG_PASSWORD) ¦ LogonType: 10 (RemoteInteractive)"),
    # The same field has codes of Kerberos in the events of Kerberos.
    (SECURITY, 4771, {"Status": "0x18", "PreAuthType": "2"}, "Status: 0x18 (KDC_ERR_PREAUTH_FAILED) ¦ PreAuthType: 2 (PA-ENC-TIMESTAMP)"),
    (SECURITY, 4776, {"Status": "0xc0000064"}, "Status: 0xc0000064 (STATUS_NO_SUCH_USER)"),
    (SECURITY, 4769, {"TicketOptions": "0x40810000", "TicketEncryptionType": "0x17"}, "TicketOptions: 0x40810000 (Name-canonicalize, Renewable, Forwardable) ¦ TicketEncryptionType: 0x17 (RC4-HMAC)"),
    (SECURITY, 4663, {"ObjectType": "File", "AccessMask": "0x2", "AccessList": "%%4417\r\n\t\t\t\t"}, "ObjectType: File ¦ AccessMask: 0x2 (FILE_WRITE_DATA) ¦ AccessList: WriteData (or AddFile)"),
    (SECURITY, 4662, {"ObjectType": "%{19195a5b-6da0-11d0-afd3-00c04fd930c9}", "AccessMask": "0x100", "Properties": "%%7688\r\n\t\t{1131f6aa-9c07-11d1-f79f-00c04fc2dcd2}\r\n\t"},
     "ObjectType: domainDNS ¦ AccessMask: 0x100 (DS_CONTROL_ACCESS) ¦ Properties: Control Access, DS-Replication-Get-Changes"),
    (SECURITY, 4738, {"OldUacValue": "0x10", "NewUacValue": "0x11", "UserAccountControl": "\r\n\t\t%%2080"},
     "OldUacValue: 0x10 (USER_NORMAL_ACCOUNT) ¦ NewUacValue: 0x11 (USER_ACCOUNT_DISABLED, USER_NORMAL_ACCOUNT) ¦ UserAccountControl: Account Disabled"),
    (SECURITY, 4697, {"ServiceType": "0x10", "ServiceStartType": "2"}, "ServiceType: 0x10 (Own process) ¦ ServiceStartType: 2 (Automatic)"),
    (SECURITY, 5156, {"Direction": "%%14593", "Protocol": "6"}, "Direction: Outbound ¦ Protocol: 6 (TCP)"),
    ("Service Control Manager", 7023, {"param1": "s", "param2": "%%1058"}, "param1: s ¦ param2: ERROR_SERVICE_DISABLED"),
    ("Microsoft-Windows-TaskScheduler", 201, {"ResultCode": "2147942402"}, "ResultCode: 2147942402 (ERROR_FILE_NOT_FOUND)"),
    # Small numbers, and numbers of other providers, have other meanings.
    ("Microsoft-Windows-TaskScheduler", 201, {"ResultCode": "2"}, "ResultCode: 2"),
    ("Another", 1, {"LogonType": "3", "Reason": "%%2313", "AccessMask": "0x2"}, "LogonType: 3 ¦ Reason: %%2313 ¦ AccessMask: 0x2"),
    # Unknown codes, and texts that somebody chose, stay.
    (SECURITY, 4625, {"Status": "0xc9999999", "FailureReason": "%%99999", "LogonType": "99"}, "Status: 0xc9999999 ¦ FailureReason: %%99999 ¦ LogonType: 99"),
    (SECURITY, 4688, {"CommandLine": "%%2313 {1131f6aa-9c07-11d1-f79f-00c04fc2dcd2}", "MandatoryLabel": "a %%2313"}, "CommandLine: %%2313 {1131f6aa-9c07-11d1-f79f-00c04fc2dcd2} ¦ MandatoryLabel: a %%2313"),
])
def test_codes_in_details_have_names(over, provider, event_id, fields, details):
    assert over("evtx_timeline", [(1, provider, event_id, fields)], "details") == [(details,)]


ALICE, DOMAIN = "S-1-5-21-1-2-3-1104", "S-1-5-21-9-9-9-1105"


def logon_of(at, sid, name, domain="CORP", computer="pc"):
    return at, SECURITY, 4624, {"TargetUserSid": sid, "TargetUserName": name, "TargetDomainName": domain}, None, computer


def service(at, sid, computer="pc"):
    return at, "Service Control Manager", 7045, {"ServiceName": "s"}, sid, computer


def users(over, events, event_id=7045):
    return [row[0] for row in over("evtx_timeline", events, "user_name", f"WHERE event_id = {event_id} ORDER BY time_created ASC, computer ASC")]


@pytest.mark.parametrize(("sid", "name"), [
    (ALICE, "CORP\\alice"), ("S-1-5-18", "Local System"), ("S-1-5-21-1-2-3-500", "Administrator"), ("S-1-5-80-1-2", "S-1-5-80-1-2"), ("S-1-5-80-3088073201-1464728630-1879813800-1107566885-823218052", "MpsSvc"), ("S-1-5-21-1-2-3-2000", "S-1-5-21-1-2-3-2000"),
    # Many accounts start like these.
    ("S-1-12-1-1-2-3-4", "S-1-12-1-1-2-3-4"), ("S-1-11-96-3623454863-58364-18864-2661722203", "S-1-11-96-3623454863-58364-18864-2661722203"), (None, None),
])
def test_a_sid_has_the_name_that_the_logs_know(over, sid, name):
    # An event of the computer itself has the SID of SYSTEM next to the name of the computer.
    events = [logon_of(1, ALICE, "alice"), logon_of(1, "S-1-5-18", "PC$"), logon_of(1, "S-1-5-32-544", "Admins"), service(2, sid)]
    assert over("evtx_timeline", events, "user_name, user_sid", "WHERE event_id = 7045") == [(name, sid)]


def test_the_sids_of_services_come_from_their_names(con):
    services = con.execute("SELECT name, code FROM evtx_codes() WHERE table_name = 'sid_name' AND code LIKE 'S-1-5-80-%-%'").fetchall()
    assert len(services) > 10
    for name, sid in services:
        numbers = struct.unpack("<5I", hashlib.sha1(name.upper().encode("utf-16-le")).digest())
        assert sid == "S-1-5-80-" + "-".join(map(str, numbers))


def test_a_renamed_account_has_the_name_of_the_time(over):
    def renamed(at, old, new):
        return at, SECURITY, 4781, {"TargetSid": ALICE, "TargetDomainName": "CORP", "OldTargetUserName": old, "NewTargetUserName": new}

    events = [service(0, ALICE), logon_of(1, ALICE, "alice"), service(2, ALICE), renamed(3, "alice", "bob"), service(3, ALICE), logon_of(4, ALICE, "bob"), service(5, ALICE),
              renamed(6, "bob", "alice"), service(7, ALICE)]
    assert users(over, events) == ["CORP\\alice", "CORP\\alice", "CORP\\bob", "CORP\\bob", "CORP\\alice"]
    # The change is enough.
    assert users(over, [service(2, ALICE), renamed(3, "alice", "bob"), service(4, ALICE)]) == ["CORP\\alice", "CORP\\bob"]


def test_a_name_of_this_computer_comes_before_that_of_another(over):
    """Copies of a machine have the same SIDs, and names of their own. Another machine knows the accounts of a domain."""
    events = [logon_of(1, ALICE, "alice", "A", "a"), logon_of(2, ALICE, "root", "B", "b"), logon_of(3, DOMAIN, "carol", "CORP", "dc"), service(4, ALICE, "a"), service(4, ALICE, "b"),
              service(5, DOMAIN, "a")]
    assert users(over, events) == ["A\\alice", "B\\root", "CORP\\carol"]


def test_an_account_has_its_short_domain_and_is_one_in_any_case(over):
    events = [logon_of(1, ALICE, "ALICE", "CORP.EXAMPLE"), logon_of(2, ALICE, "alice", "corp"), logon_of(3, ALICE, "Alice", "CORP"), logon_of(4, ALICE, "alice", "-"), service(5, ALICE),
              (6, "User32", 1074, {"param7": "CORP\\alice"}, ALICE), (7, "User32", 1074, {"param7": "dave"}, DOMAIN), service(8, DOMAIN)]
    assert users(over, events) == ["CORP\\Alice", "dave"]
    accounts = over("evtx_accounts", events, "user_sid, user_name, last_seen - first_seen, is_renamed", "ORDER BY user_name ASC")
    assert [(sid, name, seconds.total_seconds(), renamed) for sid, name, seconds, renamed in accounts] == [(ALICE, "CORP\\Alice", 5, False), (DOMAIN, "dave", 0, False)]


def test_the_sid_is_that_of_the_name(over):
    subject = {"SubjectUserSid": ALICE, "SubjectUserName": "alice", "SubjectDomainName": "CORP"}
    target = {"TargetSid": DOMAIN, "TargetUserName": "carol", "TargetDomainName": "CORP"}
    failed = {"TargetUserSid": "S-1-0-0", "TargetUserName": "eve", "TargetDomainName": "CORP"}
    events = [(1, SECURITY, 4738, subject | target), (2, SECURITY, 4768, target), (3, SECURITY, 4625, subject | failed), (4, "Microsoft-Windows-Winlogon", 7001, {"UserSid": ALICE}, "S-1-5-18"),
              (5, SYSMON, 4, {}, "S-1-5-18"), (6, "Microsoft-Windows-PrintService", 307, {"Param3": "alice"}, "S-1-5-18")]
    rows = over("evtx_timeline", events, "user_name, user_sid", "ORDER BY time_created ASC")
    assert rows == [("CORP\\alice", ALICE), ("CORP\\carol", DOMAIN), ("CORP\\eve", None), ("CORP\\alice", ALICE), (None, None), ("alice", None)]


def test_a_thousand_accounts_have_their_own_names(over):
    events = [event for number in range(1000) for event in (logon_of(1, f"S-1-5-21-1-2-3-{number + 1104}", f"user{number}"),)]
    over("evtx_accounts", events)
    over.con.execute("INSERT INTO events BY NAME SELECT DISTINCT 7045 AS event_id, 'pc' AS computer, 'x' AS provider, TIMESTAMP_NS '2024-03-05 09:00:00' AS time_created, event_data['TargetUserSid'] AS user_sid FROM events")
    assert over.query("evtx_timeline", "count(*), count(*) FILTER (user_name = 'CORP\\user' || (split_part(user_sid, '-', 8)::INT - 1104))", "WHERE event_id = 7045") == [(1000, 1000)]


COMMANDS = [
    "C:\\Windows\\System32\\rundll32.exe x", "powershell.exe -File C:\\Users\\bob\\run.ps1", 'powershell.exe -c "IEX (x)"', '"C:\\Program Files\\PowerShell\\7\\pwsh.exe" -nop',
    "powershell.exe -c a\r\nb", "C:\\new\\table.exe",
]


@pytest.mark.parametrize("command", COMMANDS)
def test_the_program_of_the_old_powershell_log_is_as_it_was_written(over, command):
    def event(event_id, *strings):
        return 1, "PowerShell", event_id, {f"param{i}": text for i, text in enumerate(strings, 1)}

    engine = f"\tHostName=ConsoleHost\r\n\tHostId=1\r\n\tHostApplication={command}\r\n\tEngineVersion=5.1\r\n\tCommandLine="
    user = "\tDetailSequence=1\r\n\r\n\tUserId=DOMAIN\\name\r\n"
    forged = "[1]\r\nHostApplication=forged\r\nUserId=forged\r\n"
    events = [event(400, "Available", "None", engine), event(600, "Registry", "Started", engine), event(800, forged, user + engine, forged)]
    assert over("evtx_timeline", events, "event_id, process, user_name", "ORDER BY event_id ASC") == [(400, command, None), (600, command, None), (800, command, "DOMAIN\\name")]


def block(at, number, total, text, block_id="b"):
    fields = {"MessageNumber": str(number), "MessageTotal": str(total), "ScriptBlockText": text, "Path": ""}
    return at, "Microsoft-Windows-PowerShell", 4104, fields | ({"ScriptBlockId": block_id} if block_id else {})


def test_parts_of_a_script_are_joined_in_the_order_of_their_numbers(over):
    events = [block(11 - number, number, 11, f"{number},") for number in range(1, 12)]
    want = [(11, 0, "1,2,3,4,5,6,7,8,9,10,11,", [])]
    for copies in (1, 2):
        assert over("evtx_script_blocks", events, "parts, missing_parts, text, decoded", copies=copies) == want


def test_missing_parts_are_counted(over):
    events = [block(1, 1, 4, "a"), block(2, 4, 4, "d"), block(3, "x", "y", "?", "other"), block(3, 1, 2000000000, "z", "vast")]
    assert sorted(over("evtx_script_blocks", events, "script_block_id, parts, missing_parts, text")) == [
        ("b", 4, 2, "ad"), ("other", None, None, "?"), ("vast", 2000000000, 1999999999, "z"),
    ]


def test_a_part_without_a_number_of_its_script_is_alone(over):
    """Its number is no number, 0, or above the total. The text of the script stays."""
    strays = ["x", "", "-1", "0", "3", "4000000000", "99999999999999999999"]
    events = [block(1, 1, 2, "a"), block(2, 2, 2, "b"), *(block(3, number, 2, f"<{number}>") for number in strays), block(4, 1, -9223372036854775808, "n", "least")]
    for copies in (1, 2):
        assert sorted(over("evtx_script_blocks", events, "text, parts, missing_parts, contested", copies=copies)) == sorted([
            ("ab", 2, 0, False), ("n", None, None, True), *((f"<{number}>", 2, 2, True) for number in strays),
        ])


def test_scripts_without_an_id_are_apart(over):
    events = [block(1, 1, 1, "a", None), block(1, 1, 1, "b", None), block(2, 1, 2, "c", "id"), block(3, 2, 2, "d", "id")]
    for copies in (1, 2):
        assert sorted(over("evtx_script_blocks", events, "text, parts, script_block_id", copies=copies)) == [("a", 1, None), ("b", 1, None), ("cd", 2, "id")]


def test_scripts_with_one_id_are_all_shown(over):
    """Part 2 says two things, and the block "x" three, of which one is suspicious."""
    events = [block(1, 1, 2, "a"), block(2, 2, 2, "b"), block(3, 2, 2, "c"), block(4, 1, 1, "harmless", "x"), block(5, 1, 1, "evil", "x"), block(6, 1, 1, "other", "x")]
    for copies in (1, 2):
        over("evtx_script_blocks", events, copies=copies)
        over.con.execute("UPDATE events SET level = 3 WHERE event_data['ScriptBlockText'] = 'evil'")
        assert sorted(over.query("evtx_script_blocks", "text, is_suspicious, parts, missing_parts, contested")) == [
            ("ab", False, 2, 0, True), ("c", False, 2, 1, True), ("evil", True, 1, 0, False), ("harmless", False, 1, 0, True), ("other", False, 1, 0, True),
        ]


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


LOGON = (1, SECURITY, 4624, {"TargetLogonId": "0x1", "TargetUserName": "u", "TargetUserSid": "S-1-5-21-1"})
LOGOFF = (9, SECURITY, 4634, {"TargetLogonId": "0x1", "TargetUserSid": "S-1-5-21-1"})
START = (1, SECURITY, 4688, {"NewProcessId": "0x1", "NewProcessName": "a", "ProcessId": "0x2"})


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


def test_a_planted_record_hides_no_other_of_the_case_summary(over):
    """The service, and the person who cleared the log."""
    events = [
        (1, "Service Control Manager", 7045, {"ServiceName": "evil", "ImagePath": "C:/Temp/beacon.exe"}),
        (2, "Microsoft-Windows-Eventlog", 104, {"SubjectUserName": "mallory", "SubjectDomainName": "D", "Channel": "System"}),
    ]
    over("evtx_case_summary", events, copies=2)
    over.con.execute("""INSERT INTO events SELECT * REPLACE ('0.evtx' AS filename, map_concat(event_data, CASE event_id WHEN 104
        THEN MAP {'SubjectUserName': 'anna'} ELSE MAP {'ServiceName': 'Windows Update', 'ImagePath': 'svchost.exe'} END) AS event_data) FROM events""")
    select = "[service.service FOR service IN new_services], [log.user_name FOR log IN cleared_logs]"
    assert [tuple(map(sorted, row)) for row in over.query("evtx_case_summary", select)] == [(["Windows Update", "evil"], ["D\\anna", "D\\mallory"])]


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


@pytest.mark.parametrize("between", ["", " ", "s", "S", "*", "\r\n", "\t", "\x01", "\x7f", "\x85", "\u2028", "\ufffe", "\ufffd", "İ", "😀", "\x01\x02" * 50])
def test_an_asterisk_stands_for_any_text(con, between):
    con.execute("CREATE TABLE texts AS FROM read_evtx($1, text := true, fields := true) LIMIT 1", [str(SAMPLES / "DC01-System.evtx")])
    con.execute("UPDATE texts SET text = 'N: ' || $1, fields = [{'name': 'N', 'value': $1}]", [f"Straße İl{between}-ENC Q"])
    for pattern, found in [("IL*-enc", True), ("İL*-enc", True), ("İ*Q", True), (["x", "straße*q"], True), (["İ*zz", "-enc*q"], True), ("Q*STRA", False), ("İ*q*İ", False), ("İ*q*stra", False)]:
        assert (con.execute("SELECT count(*) FROM evtx_search_of('texts', $1)", [pattern]).fetchone() == (1,)) == found, pattern


def test_base64_in_a_script_is_decoded(over):
    hidden = base64_of("Write-Output 'hidden'", "utf-16-le")
    events = [block(1, 1, 1, f"powershell -enc {hidden} C:/Windows/System32/WindowsPowerShell")]
    assert over("evtx_script_blocks", events, "decoded") == [(["Write-Output 'hidden'"],)]


def logon(at, event_id, logon_id, user="anna", sid="S-1-5-21-1", **fields):
    kind = "Subject" if event_id == 4672 else "Target"
    return at, SECURITY, event_id, {f"{kind}UserSid": sid, f"{kind}UserName": user, f"{kind}DomainName": "D", f"{kind}LogonId": logon_id, **fields}


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


def test_who_writes_for_sysmon_has_not_caused_its_events(over):
    events = [(1, provider, 11, {"Image": "a.exe"}, "S-1-5-18") for provider in (SYSMON, "Another")]
    assert sorted(over("evtx_timeline", events, "provider, user_name")) == [("Another", "Local System"), (SYSMON, None)]


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


def test_sessions_of_windows_itself_are_left_out(over):
    events = [
        logon(1, 4624, "0x3e7", "SYSTEM", "S-1-5-18"), logon(1, 4672, "0x3e7", "SYSTEM", "S-1-5-18"), logon(2, 4624, "0x3e4", "x"),
        logon(3, 4624, "0x3E5", "x"), logon(4, 4624, "0x11", "DWM-1", "S-1-5-90-0-1"), logon(5, 4624, "0x12", "UMFD-0", "S-1-5-96-0-0"),
    ]
    assert over("evtx_logons", events) == []


def security(at, pid, parent, image, parent_image=None, **fields):
    fields = {"NewProcessId": hex(pid), "ProcessId": hex(parent), "NewProcessName": image, "SubjectUserName": "u", "SubjectDomainName": "D", **fields}
    return at, SECURITY, 4688, fields | ({"ParentProcessName": parent_image} if parent_image else {})


def sysmon(at, pid, guid, parent_pid, parent_guid, image, **fields):
    return at, SYSMON, 1, {"ProcessId": str(pid), "ProcessGuid": guid, "ParentProcessId": str(parent_pid), "ParentProcessGuid": parent_guid, "Image": image, **fields}


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


@pytest.mark.parametrize("parents", [100, 100000])
def test_100000_events_take_seconds(over, parents):
    """Even if each process starts the next."""
    over.con.execute(f"""
        INSERT INTO events BY NAME SELECT
            i::UBIGINT AS record_id, i::UBIGINT AS event_record_id, '2024-03-05'::TIMESTAMP_NS + i * INTERVAL 1 SECOND AS time_created,
            '{SECURITY}' AS provider, 'Security' AS channel, CASE i % 2 WHEN 0 THEN 4688 ELSE 4624 END::UINTEGER AS event_id, 'pc' || i % 3 AS computer,
            MAP {{'NewProcessId': '0x' || to_hex(i % {parents}), 'ProcessId': '0x' || to_hex((i - 6) % {parents}), 'NewProcessName': 'a.exe',
                 'TargetLogonId': '0x' || to_hex(4096 + i % 1000), 'TargetUserName': 'u', 'LogonType': '3', 'SubjectUserName': 'u', 'SubjectDomainName': 'D'}} AS event_data
        FROM range(100000) numbers(i)""")
    for macro, rows in [("evtx_process_tree", 50000), ("evtx_logons", 50000)]:
        with takes_at_most(60):
            assert over.query(macro, "count(*), count(COLUMNS(*))")[0][0] == rows


def summary(over, events, column):
    return over("evtx_case_summary", events, column)[0][0]


def failure(at, account, source="-", workstation="-", event_id=4625):
    return at, SECURITY, event_id, {"TargetUserName": account, "TargetDomainName": "CORP", "IpAddress": source, "WorkstationName": workstation, "Status": "0xc000006d"}


def success(at, account, source):
    return at, SECURITY, 4624, {"TargetUserName": account, "TargetDomainName": "CORP", "IpAddress": source, "LogonType": "3"}


@pytest.mark.parametrize(("events", "found"), [
    # Seconds are counted from 08:00:00. NTLM has a name, but no address.
    ([failure(at, "bob", workstation="kali") for at in range(95)] + [success(96, "BOB", "kali")], [("kali", "CORP\\bob", 1, 95, 60, "CORP\\BOB")]),
    ([failure(at * 30, f"user{at}", "::ffff:10.0.0.9") for at in range(12)] + [success(500, "other", "10.0.0.9")], [("10.0.0.9", "CORP\\user9", 12, 12, 2, None)]),
    ([success(1, "bob", "-"), failure(2, "bob")], [(None, "CORP\\bob", 1, 1, 1, None)]),
    ([failure(1, "bob", "0.0.0.0"), failure(2, "bob", "127.0.0.1", "PC")], [(None, "CORP\\bob", 1, 2, 2, None)]),
    # The log has two events for each failure.
    ([failure(at * 5, "bob", "10.0.0.9", event_id=event_id) for at in range(10) for event_id in (4625, 4776)], [("10.0.0.9", "CORP\\bob", 1, 10, 10, None)]),
    ([(at, SECURITY, 4776, {"TargetUserName": "bob", "Workstation": "pc9", "Status": "0x0"}) for at in range(20)], []),
])
def test_failed_logons_are_counted_by_source_and_minute(over, events, found):
    rows = summary(over, events, "failed_logons")
    assert [(row["source"], row["account"], row["accounts"], row["failures"], row["most_in_a_minute"], row["success"] and row["success"]["account"]) for row in rows] == found


def test_reasons_of_failures_are_counted(over):
    events = [
        (1, SECURITY, 4625, {"TargetUserName": "bob", "Status": "0xc0000071", "SubStatus": "0x0"}), (2, SECURITY, 4625, {"TargetUserName": "bob", "Status": "0xc000006d", "SubStatus": "0xc000006a"}),
        (10, SECURITY, 4776, {"TargetUserName": "bob", "Status": "0xc000006a"}), (20, SECURITY, 4771, {"TargetUserName": "bob", "Status": "0x18"}),
        (30, "MSSQL$PAY", 18456, {"param1": "sa", "param2": " Reason: Password did not match that for the login provided.", "param3": " [CLIENT: <local machine>]"}),
    ]
    [row] = summary(over, events, "failed_logons")
    reasons = {reason["reason"]: reason["failures"] for reason in row["reasons"]}
    assert sorted(reasons.values()) == [1, 1, 1, 2] and reasons["Password did not match that for the login provided."] == 1
    assert [name for name, count in reasons.items() if count == 2 and "WRONG_PASSWORD" in name] and any("EXPIRED" in name for name in reasons), reasons


def test_changes_of_the_clock_count_once_and_from_a_minute_on(over):
    def clock(at, moved, event_id, provider):
        old, new = (f"2024-03-05T08:00:0{second}.5000000Z" for second in (0, moved % 10))
        new = new.replace("08:00", f"08:{moved // 60:02}") if moved >= 60 else new
        return at, provider, event_id, {"NewTime": new, "OldTime" if event_id == 1 else "PreviousTime": old, "ProcessName": "a.exe"}

    events = [clock(at, moved, event_id, provider) for at, moved in ((1, 120), (2, 5)) for event_id, provider in ((1, "Microsoft-Windows-Kernel-General"), (4616, SECURITY))]
    changes = summary(over, events, "clock_changes")
    assert [(change["moved_seconds"], change["process"]) for change in changes] == [(120, "a.exe")]


@pytest.mark.parametrize(("new", "old"), [("infinity", "-infinity"), ("290000-01-01", "290000-01-01 (BC)"), ("x", "infinity")])
def test_a_clock_that_no_time_fits_costs_nothing_else(over, new, old):
    assert summary(over, [(1, SECURITY, 4616, {"NewTime": new, "PreviousTime": old}), failure(2, "bob")], "clock_changes") == []


def member(at, sid, **fields):
    return at, SECURITY, 4732, {"MemberSid": sid, "TargetUserName": "Administrators", **fields}


@pytest.mark.parametrize(("events", "detail"), [
    # The name on this computer, even if another one has a newer one.
    ([logon_of(1, ALICE, "alice"), member(2, ALICE), logon_of(3, ALICE, "other", computer="pc2")], "CORP\\alice"),
    ([logon_of(1, ALICE, "alice", computer="pc2"), member(2, ALICE)], "CORP\\alice"),
    # The common name in the directory is often not the name of the account.
    ([logon_of(1, ALICE, "alice", computer="pc2"), member(2, ALICE, MemberName="CN=Alice Doe,DC=corp")], "CORP\\alice"),
    ([member(2, ALICE, MemberName="CN=Alice Doe,DC=corp")], "CN=Alice Doe,DC=corp"),
    ([member(2, ALICE, MemberName="-")], ALICE),
    ([member(2, "S-1-5-17")], "IIS Anonymous User"),
])
def test_a_member_has_the_name_that_logs_give_its_sid(over, events, detail):
    changes = over("evtx_case_summary", events, "account_changes", "WHERE computer = 'pc'")[0][0]
    assert [change["detail"] for change in changes] == [detail]


def test_zones_gaps_boots_and_clears_are_listed(over):
    def zone(at, text):
        return at, "EventLog", 6013, {"param7": text}

    day = 24 * 3600
    events = [zone(0, "480 Pacific Standard Time"), zone(60, "480 Pacific Standard Time"), zone(120, "0 Coordinated Universal Time"), zone(day, "480 Pacific Standard Time"),
              (day + 1, "EventLog", 6005, {}), (day + 2, "EventLog", 6008, {}), (3 * day, "Microsoft-Windows-Eventlog", 1102, {"SubjectUserName": "eve", "SubjectDomainName": "CORP"}),
              (3 * day, "Microsoft-Windows-Eventlog", 104, {"SubjectUserName": "eve", "SubjectDomainName": "CORP", "Channel": "System"})]
    assert [zone["zone"] for zone in summary(over, events, "time_zones")] == ["America/Los_Angeles", "Etc/UTC", "America/Los_Angeles"]
    assert [zone["utc_offset_seconds"] for zone in summary(over, events, "time_zones")] == [-8 * 3600.0, 0.0, -8 * 3600.0]
    assert [zone["utc_offset_seconds"] for zone in summary(over, [zone(0, "-2147483648")], "time_zones")] == [2147483648 * 60.0]
    assert [gap["duration_seconds"] for gap in summary(over, events, "gaps")] == [2 * day - 2]
    assert sorted((clear["log"], clear["user_name"]) for clear in summary(over, events, "cleared_logs")) == [("Security", "CORP\\eve"), ("System", "CORP\\eve")]
    assert over("evtx_case_summary", events, "len(boots), len(unexpected_shutdowns), events, computer") == [(1, 1, 8, "pc")]
    # Kernel-General is preferred, because the event log can be restarted.
    boots = [(1, "Microsoft-Windows-Kernel-General", 12, {}), (2, "EventLog", 6005, {}), (3, "EventLog", 6005, {})]
    assert len(summary(over, boots, "boots")) == 1


def test_accounts_services_tasks_and_remote_logons_are_listed(over):
    subject = {"SubjectUserSid": ALICE, "SubjectUserName": "alice", "SubjectDomainName": "CORP"}
    events = [
        (1, SECURITY, 4720, subject | {"TargetSid": DOMAIN, "TargetUserName": "eve", "TargetDomainName": "CORP"}), (2, SECURITY, 4732, subject | {"TargetUserName": "Administrators", "TargetDomainName": "Builtin", "MemberSid": DOMAIN}),
        # Both logs have the service.
        (3, "Service Control Manager", 7045, {"ServiceName": "s", "ImagePath": "s.exe"}, ALICE), (4, SECURITY, 4697, subject | {"ServiceName": "s", "ServiceFileName": "s.exe"}),
        (5, "Microsoft-Windows-TaskScheduler", 106, {"TaskName": "\\t", "UserContext": "CORP\\alice"}), (6, SECURITY, 4698, subject | {"TaskName": "\\t"}),
    ]
    logons = [(kind, address) for kind in ("3", "10", "2") for address in ("10.0.0.9", "127.0.0.1", "-")]
    events += [(7, SECURITY, 4624, {"TargetUserName": name, "TargetDomainName": "CORP", "LogonType": kind, "IpAddress": address}) for name in ("eve", "PC9$") for kind, address in logons]
    accounts = [(row["event"], row["account"], row["detail"], row["user_name"]) for row in summary(over, events, "account_changes")]
    assert accounts == [("Account created", "CORP\\eve", None, "CORP\\alice"), ("Member added to local group", "Builtin\\Administrators", "CORP\\eve", "CORP\\alice")]
    assert [(row["service"], row["path"], row["user_name"]) for row in summary(over, events, "new_services")] == [("s", "s.exe", "CORP\\alice")]
    assert [(row["task"], row["user_name"]) for row in summary(over, events, "new_tasks")] == [("\\t", "CORP\\alice")]
    assert [(row["account"], row["source"], row["kinds"], row["logons"]) for row in summary(over, events, "remote_logons")] == [(name, source, ["RemoteInteractive"], logons) for name in ("CORP\\PC9$", "CORP\\eve") for source, logons in (("10.0.0.9", 1), (None, 2))]


def test_lists_of_the_summary_have_one_order_for_events_of_one_time(over):
    names = [f"{number:02}" for number in range(60)]
    shuffled = random.Random(1).sample(names, len(names))
    events = [(1, SECURITY, 4720, {"TargetUserName": name}) for name in shuffled]
    events += [(1, "Service Control Manager", 7045, {"ServiceName": name, "ImagePath": "a.exe"}) for name in shuffled]
    events += [(1, SECURITY, 4698, {"TaskName": name}) for name in shuffled]
    events += [(1, SECURITY, 4624, {"TargetUserName": name, "LogonType": "3", "IpAddress": "10.0.0.9"}) for name in shuffled]
    for column, field in [("account_changes", "account"), ("new_services", "service"), ("new_tasks", "task"), ("remote_logons", "account")]:
        assert [row[field] for row in summary(over, events, column)] == names, column


FORMULA_STARTS = tuple("=+-@＝＋－＠")
NOT_SHOWN = "".join(char for char in map(chr, range(0x10000)) if char.isspace() or not char.isprintable())


def is_formula(cell):
    """Whether a spreadsheet would run a cell. White space and characters that are not shown do not count, nor does the quote of a field."""
    shown = cell.lstrip(NOT_SHOWN + '"')
    # Numbers stay as they are. Before a comma, as where the file is split elsewhere, they are no formula either.
    return shown.startswith(FORMULA_STARTS) and not re.match(r"[+-]?[\d.]*(,|$)", shown)


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
@pytest.mark.parametrize("quoting", [csv.QUOTE_MINIMAL, csv.QUOTE_NONE])
def test_no_cell_of_a_csv_file_is_a_formula(con, tmp_path, delimiter, quoting):
    """Spreadsheets of other countries split the file in other places, as Python's csv module does with another delimiter."""
    if delimiter == "," and quoting == csv.QUOTE_NONE:
        pytest.skip("DuckDB quotes commas, and whoever splits at commas reads quotes")
    draw = random.Random(51)
    alphabet = ["=", "+", "-", "@", "＝", ";", ",", "\t", "\n", "\r", "\0", "\u00a0", "\ufeff", "\x0b", "\x1f", " ", '"', "'", "x", "1", "1+1", "cmd|'/c calc'!A0"]
    texts = ["\t=1+1", '"\t=1+1"', "x\n\n=cmd|'/c calc'!A0", "\0=1+1", "a;;\t\r\n=1", "-1.5", "+"]
    texts += ["".join(draw.choices(alphabet, k=draw.randint(1, 8))) for _ in range(2996)]
    con.execute("CREATE TABLE texts AS SELECT unnest($1) AS a, unnest($2) AS b, unnest($3) AS c", [texts[at::3] for at in range(3)])

    def cells(columns):
        path = tmp_path / "texts.csv"
        con.execute(f"COPY (SELECT {columns} FROM texts) TO '{path}' (FORMAT csv, HEADER false)")
        with path.open(newline="", encoding="utf-8") as file:
            return [cell for row in csv.reader(file, delimiter=delimiter, quoting=quoting) for cell in row]

    assert any(map(is_formula, cells("a, b, c"))), "the judge sees formulas"
    assert [cell for cell in cells("evtx_csv_safe(a), evtx_csv_safe(b), evtx_csv_safe(c)") if is_formula(cell)] == []
    # Without the marks, a text is what it was.
    assert con.execute("SELECT count(*) FROM texts WHERE replace(evtx_csv_safe(a), '''', '') <> replace(a, '''', '')").fetchone() == (0,)


# The arguments of functions by their first parameter, and of those that need others.
USUAL = {"files": "'{samples}'", "table_name": "'events'", "rules": "'{samples}/rules'"}
CALLS = {
    "evtx_from_evtx_dump": "'{data}/exports/evtx_dump.jsonl'", "evtx_from_evtxecmd": "'{data}/exports/evtxecmd.json'",
    "evtx_from_evtxecmd_csv": "'{data}/exports/evtxecmd.csv'", "evtx_from_velociraptor": "'{data}/exports/velociraptor.json'",
    "evtx_from_winlogbeat": "'{data}/exports/winlogbeat.ndjson'", "evtx_json_lines": "'{data}/exports/evtx_dump.jsonl'", "evtx_message_catalog": "'{data}/messages'", "evtx_offset_rows": "'zones'",
    "evtx_search": "'{samples}', 'alice'", "evtx_search_of": "'texts', 'alice'", "evtx_sigma": "'{samples}', rules := '{samples}/correlations'",
    "evtx_sigma_rows": """'events', '{{"rules": "{samples}/rules"}}'""",
    **dict.fromkeys(["evtx_sigma_of", "evtx_sigma_report", "evtx_sigma_summary", "evtx_sigma_timeline"], "'{first}', '{samples}/rules'"),
    **dict.fromkeys(["evtx_sigma_report_of", "evtx_sigma_summary_of", "evtx_sigma_timeline_of"], "'matches'"), "evtx_sigma_report_rows": "'matches', 'events'",
    "read_evtx": "'{samples}', event_id := [4624, 4688, 7045], record := true, fields := true, insertions := true", "read_evtx_xml": "'{samples}/exported.xml'",
}
# They get tables of other macros.
PARTS = {"evtx_event_rows", "evtx_evtxecmd_rows"}


def test_polars_reads_every_table(con, tmp_path):
    """polars reads no intervals, neither from Arrow nor from Parquet."""
    con.execute(f"""
        CREATE TABLE events AS FROM read_evtx('{SAMPLES}');
        CREATE TABLE texts AS FROM read_evtx('{SAMPLES}', text := true, fields := true);
        CREATE TABLE matches AS FROM evtx_sigma_of('events', '{SAMPLES}/rules');
        CREATE TABLE zones AS SELECT TIMESTAMP_NS '2024-03-31' AS time, 'Europe/Berlin' AS zone""")
    functions = con.execute("""
        SELECT DISTINCT function_name, parameters[1] FROM duckdb_functions()
        WHERE function_name LIKE '%evtx%' AND function_type IN ('table', 'table_macro') ORDER BY ALL""").fetchall()
    functions = [(name, first) for name, first in functions if name not in PARTS]
    assert len(functions) >= 40
    for name, first in functions:
        given = CALLS.get(name, USUAL.get(first, ""))
        given = given.format(samples=SAMPLES, data=ROOT / "test" / "data", first="events" if first == "table_name" else SAMPLES)
        types = {column: kind for column, kind, *_ in con.execute(f"DESCRIBE FROM {name}({given})").fetchall()}
        assert types and not any("INTERVAL" in kind for kind in types.values()), (name, types)
    for name in ("evtx_logons", "evtx_case_summary"):
        frame = con.sql(f"FROM {name}_of('events')").pl()
        con.execute(f"COPY (FROM {name}_of('events')) TO '{tmp_path}/{name}.parquet'")
        assert frame.shape == polars.read_parquet(tmp_path / f"{name}.parquet").shape and frame.height > 0


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
