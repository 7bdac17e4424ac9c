"""The time line over made-up events."""

import pytest
from conftest import SAMPLES, assert_same_rows
from made_up import SECURITY, SYSMON, users


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


@pytest.mark.parametrize(("path", "host"), [
    ("\\Device\\Mup\\fs01\\share\\a.exe", "fs01"), ("\\device\\mup\\;LanmanRedirector\\;Z:0000000000012345\\fs01\\share", "fs01"), ("\\Device\\HarddiskVolume2\\a.exe", None),
])  # fmt: skip
def test_a_device_of_shares_is_a_remote_host(over, path, host):
    assert over.con.execute("SELECT evtx_remote_host($1)", [path]).fetchall() == [(host,)]


def test_windows_has_one_name_under_that_of_a_long_host(over):
    """The account of the machine has the first 15 letters of its name, or all of them."""
    events = [(1, SECURITY, 4688, {"SubjectUserSid": "S-1-5-18", "SubjectUserName": name, "SubjectDomainName": "CORP"}, None, "fileserver-berlin1.corp.example")
              for name in ("FILESERVER-BERL$", "FILESERVER-BERLIN1$", "OTHER$")]  # fmt: skip
    assert users(over, events, 4688) == ["Local System"] * 3


def test_details_do_not_repeat_other_columns(over):
    fields = {"TargetUserName": "bob", "TargetDomainName": "CORP", "IpAddress": "::ffff:10.0.0.1", "ProcessName": "a.exe", "Other": "x", "Machine": "pc", "Empty": "-"}
    assert over("evtx_timeline", [(1, SECURITY, 4624, fields)], "user_name, remote_host, process, details") == [("CORP\\bob", "10.0.0.1", "a.exe", "Other: x")]
    # The address stays in the details, because the column lacks the port.
    rdp = (1, "Microsoft-Windows-RemoteDesktopServices-RdpCoreTS", 131, {"ConnType": "TCP", "ClientIP": "10.0.0.1:5"})
    assert over("evtx_timeline", [rdp], "remote_host, details") == [("10.0.0.1", "ConnType: TCP ¦ ClientIP: 10.0.0.1:5")]


def test_every_field_of_the_timeline_is_declared(con):
    """The fields that the list takes from manifests exist there."""
    undeclared = con.execute(r"""
        SELECT provider, event_id, field
        FROM (SELECT provider, event_id, regexp_replace(source_of, '^\w+:|[~?].*$', '', 'g') AS field, source
              FROM (SELECT *, unnest(regexp_split_to_array(concat_ws('|', account, domain, sid, remote_host, process, target, detail), '[|+]')) AS source_of FROM evtx_timeline_fields()))
        WHERE source = 'manifest' AND field NOT IN ('', 'FilePath', 'PackageBuffer', 'FilePathBuffer', 'url', 'RemoteName', 'Package', 'MemberName')
          AND (provider, event_id, field) NOT IN (SELECT (provider, event_id, field_name) FROM evtx_event_catalog())""")
    assert undeclared.fetchall() == []


def test_conditions_name_declared_fields(con):
    """A misspelled one would never hold. Those of rows from logs are not in the manifests."""
    undeclared = con.execute(r"""
        SELECT provider, event_id, field
        FROM (SELECT provider, event_id, source, regexp_extract(unnest(string_split(part, '?')[2:]), '^[^=~!]*') AS field
              FROM (SELECT *, unnest(regexp_split_to_array(concat_ws('|', topic, account, remote_host, process, target, detail), '[|+]')) AS part FROM evtx_timeline_fields()))
        WHERE source IS DISTINCT FROM 'logs' AND provider IN (SELECT provider FROM evtx_event_catalog())
          AND (provider, event_id, field) NOT IN (SELECT (provider, event_id, field_name) FROM evtx_event_catalog())""")
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


def test_who_writes_for_sysmon_has_not_caused_its_events(over):
    events = [(1, provider, 11, {"Image": "a.exe"}, "S-1-5-18") for provider in (SYSMON, "Another")]
    assert sorted(over("evtx_timeline", events, "provider, user_name")) == [("Another", "Local System"), (SYSMON, None)]
