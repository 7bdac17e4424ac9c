"""Who, from where, and with which program: the columns of the time line that are compared with other tools, and what they leave over."""

import collections
import csv
import json
import os
import re

import pytest
from conftest import ROOT, SAMPLES, assert_same_rows
from made_up import ALICE, CALLER, SECURITY, logon_of

DATA = ROOT / "test/data/evtxecmd"
REASONS = {"extracted": 2, "detail": 16, "role": 8, "object": 39, "undeclared": 1, "text": 16}
NO_GUID = "{00000000-0000-0000-0000-000000000000}"


def lines(name):
    with open(DATA / name, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))


def field_of(source):
    """The field in a source of the list, without what wrote it, a pattern and conditions."""
    return re.sub(r"^\w+:|[~?].*$", "", source)


def test_the_fields_agree_with_evtxecmd(con):
    """Row by row, or with a reason. A line that is not needed fails."""
    ours = collections.defaultdict(set)
    for provider, event_id, account, domain, sid, host, program in con.execute("""
            SELECT provider, event_id, account, domain, sid, remote_host, process FROM evtx_timeline_fields()""").fetchall():
        for kind, texts in [("user", (account, domain, sid)), ("host", (host,)), ("program", (program,))]:
            ours[provider, str(event_id), kind].update(field_of(field) for text in texts if text for field in text.split("|"))
    maps = lines("maps.tsv")
    assert len(maps) == 297
    different = [
        (line["provider"], line["event_id"], line["property"], line["fields"]) for line in maps
        if not set(line["fields"].split("|")) <= ours[line["provider"], line["event_id"], line["property"]]
    ]
    known = lines("differences.tsv")
    declared = set(con.execute("SELECT DISTINCT provider, event_id::VARCHAR, field_name FROM evtx_event_catalog()").fetchall())
    assert sorted(different) == sorted((line["provider"], line["event_id"], line["property"], line["fields"]) for line in known)
    assert collections.Counter(line["reason"] for line in known) == REASONS
    for line in known:
        # The reason claims that the time line has a field for this.
        assert line["reason"] not in ("extracted", "detail", "role") or ours[line["provider"], line["event_id"], line["property"]], line
        assert line["reason"] != "undeclared" or not any((line["provider"], line["event_id"], field) in declared for field in line["fields"].split("|"))


def roles_of_events():
    with open(ROOT / "test/data/events/roles.tsv", encoding="utf-8", newline="") as file:
        return [(row["provider"], int(row["event_id"]), json.loads(row["fields"]), json.loads(row["roles"])) for row in csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE)]


@pytest.mark.parametrize(("provider", "event_id", "fields", "expected"), roles_of_events())
def test_fields_have_the_roles_of_the_list(con, provider, event_id, fields, expected):
    """The same whether the event has them in event_data or in user_data. What is not expected is NULL or false."""
    pairs, document = [{"k": key, "v": value} for key, value in fields.items()], json.dumps({"Element": fields})
    for event_data, user_data in [(pairs, None), (None, document)]:
        [(roles,)] = con.execute("SELECT evtx_event_roles($1, $2::UINTEGER, map_from_entries($3::STRUCT(k VARCHAR, v VARCHAR)[]), $4, 'pc', NULL)",
                                 [provider, event_id, event_data, user_data]).fetchall()  # fmt: skip
        assert {name: value for name, value in roles.items() if value and name not in ("event", "details")} == expected
        assert ("claims to be this machine" in (roles["details"] or "")) == roles["claims_own_name"]


@pytest.mark.parametrize(("host", "shown"), [
    ("203.0.113.9", "203.0.113.9"), ("203.0.113.9:50122", "203.0.113.9"), ("::ffff:203.0.113.9", "203.0.113.9"), ("::FFFF:203.0.113.9:445", "203.0.113.9"), ("[::ffff:203.0.113.9]:445", "203.0.113.9"),
    ("fe80::1", "fe80::1"), ("[fe80::1]", "fe80::1"), ("[fe80::1]:445", "fe80::1"), ("fe80::1%5", "fe80::1%5"), ("\\\\fs01", "fs01"), ("fs01.corp.example", "fs01.corp.example"), ("localhost2", "localhost2"),
    ("\\\\FS01\\share\\dir", "FS01"), ("FS01\\IPC$", "FS01"), ("fs01:445", "fs01"),
    ("\\\\fs01@SSL\\DavWWWRoot", "fs01"), ("\\\\?\\UNC\\fs01\\share", "fs01"), ("fs01.", "fs01"),
    *[(local, None) for local in ("", "-", "0.0.0.0", "0.0.0.0:0", "::", "[::]:0", "::1", "[::1]:445", "127.0.0.1", "127.0.0.2", "127.9.9.9:1", "::ffff:127.0.0.1", "LOCAL", "localhost", "LocalHost (Using LRPC)", "<named pipe>", "PC", "pc.corp.example", "PC.", "NULL", "C:\\x", "\\\\*\\SYSVOL", "\\\\?\\C:\\x", "\\\\.\\pipe\\x")],
])
def test_a_remote_host_is_another_machine(over, host, shown):
    event = (1, SECURITY, 4648, {"TargetServerName": host}, None, "pc.corp.example")
    assert over("evtx_timeline", [event], "remote_host") == [(shown,)]
    assert over.con.execute("SELECT evtx_remote_host($1, computer := 'pc.corp.example')", [host]).fetchone() == (shown,)


@pytest.mark.parametrize(("host", "shown"), [
    ("ws07", "ws07"), ("\\\\ws07", "ws07"), ("203.0.113.9:50122", "203.0.113.9:50122"), ("::ffff:203.0.113.9", "::ffff:203.0.113.9"), ("a\\b", "a\\b"),
    *[(own, None) for own in ("FILESERVER-BERL", "fileserver-berlin1", "fileserver-berlin1.corp.example", "localhost", "::1")],
])
def test_a_claimed_name_is_not_read(over, host, shown):
    """The row stays, and says that the other machine claims to be this one."""
    computer = "FILESERVER-BERLIN1.corp.example"
    claim = None if shown else f"Workstation: {host} (claims to be this machine)"
    [(remote_host, details)] = over("evtx_timeline", [(1, SECURITY, 4776, {"TargetUserName": "bob", "Workstation": host}, None, computer)], "remote_host, details")
    assert remote_host == shown and (details == claim or shown and claim is None)
    assert over.con.execute("SELECT evtx_remote_host($1, computer := $2, written_by := 'client')", [host, computer]).fetchone() == (shown,)


NOBODY = {"TargetUserSid": "S-1-0-0", "TargetUserName": "-", "TargetDomainName": "-"}


@pytest.mark.parametrize(("fields", "others", "user"), [
    ({"SubjectUserSid": "S-1-5-18", "SubjectUserName": "-", "SubjectDomainName": "-", **NOBODY}, [], ("Local System", "S-1-5-18")),
    ({"SubjectUserSid": ALICE, "SubjectUserName": "", "SubjectDomainName": ""}, [], (ALICE, ALICE)),
    # The name on this computer, then on another one.
    ({"SubjectUserSid": ALICE, "SubjectUserName": "-", "SubjectDomainName": "-"}, [("old", "pc2"), ("alice", "pc")], ("CORP\\alice", ALICE)),
    ({"SubjectUserSid": ALICE, "SubjectUserName": "-", "SubjectDomainName": "-"}, [("alice", "pc2")], ("CORP\\alice", ALICE)),
    # Windows gives its own SIDs many names, such as a former one of the computer, but others may not.
    ({**CALLER, **NOBODY}, [], ("Local System", "S-1-5-18")),
    ({**CALLER, "SubjectUserName": "PC$", **NOBODY}, [], ("Local System", "S-1-5-18")),
    ({**CALLER, "SubjectUserName": "Système", "SubjectDomainName": "AUTORITE NT", **NOBODY}, [], ("Local System", "S-1-5-18")),
    ({**CALLER, "SubjectUserName": "evil", **NOBODY}, [], ("CORP\\evil", "S-1-5-18")),
    ({**CALLER, "TargetUserSid": ALICE, "TargetUserName": "alice", "TargetDomainName": "CORP"}, [], ("CORP\\alice", ALICE)),
])
def test_an_account_without_a_name_has_that_of_its_sid(over, fields, others, user):
    logons = [logon_of(1, ALICE, name, computer=computer) for name, computer in others]
    assert over("evtx_timeline", [*logons, (2, SECURITY, 4688, fields)], "user_name, user_sid", "WHERE event_id = 4688") == [user]


@pytest.mark.parametrize(("user_data", "details"), [
    ({"Text": {"#attributes": {"xmlns": "c"}, "#text": "the payload"}}, "Text: the payload"),
    ({"Text": "the payload"}, "Text: the payload"),
    ({"N": 5}, "N: 5"),
    ({"Text": "a ¦ B: c"}, "Text: a ¦¦ B: c"),
    ({"A": {"x": "1", "x_1": "2"}, "B": {"y": "3"}}, 'A: {"x":"1","x_1":"2"} ¦ B: {"y":"3"}'),
    ({"Install": {"#attributes": {"xmlns": "c", "version": "2.21.0"}, "Device": "SWD\\WPD"}}, "Device: SWD\\WPD ¦ version: 2.21.0"),
    ({"Shutdown": {"#attributes": {"xmlns:a": "b", "xmlns": "c"}}}, None),
    ({"Shutdown": None}, None),
    ({"Failure": {"Error": {"#attributes": {"Code": 15007}}, "EventID": 4647}}, 'Error: {"#attributes":{"Code":15007}} ¦ EventID: 4647'),
])
def test_details_have_all_of_user_data(over, user_data, details):
    over("evtx_timeline", [(1, "Contoso", 1, {})])
    over.con.execute("UPDATE events SET event_data = NULL, user_data = ?", [json.dumps(user_data, separators=(",", ":"))])
    assert over.query("evtx_timeline", "details") == [(details,)]


DEFENDER, POLICY = "Microsoft-Windows-Windows Defender", "Microsoft-Windows-GroupPolicy"


@pytest.mark.parametrize(("provider", "fields", "details"), [
    # The number is in the details of an alert, and decides whether the file is still there.
    (DEFENDER, {"Action Name": "%%809"}, "Action Name: Quarantine"),
    (DEFENDER, {"Action Name": "%%811", "Execution Name": "%%813"}, "Action Name: Allow ¦ Execution Name: Suspended"),
    (DEFENDER, {"Source Name": "%%818", "Origin Name": "%%845"}, "Source Name: Real-Time Protection ¦ Origin Name: Local machine"),
    (POLICY, {"InfoDescription": "%%4168"}, "InfoDescription: The Group Policy Client service is currently configured as a shared service"),
    (POLICY, {"LinkDescription": "%%4113"}, "LinkDescription: fast"),
    # Unknown numbers stay as they are. They are not Win32 errors.
    (DEFENDER, {"Action Name": "%%5"}, "Action Name: %%5"), (POLICY, {"InfoDescription": "%%809"}, "InfoDescription: %%809"),
    (DEFENDER, {"Path": "a %%809"}, "Path: a %%809"),
])
def test_codes_of_defender_and_group_policy_are_in_words(over, provider, fields, details):
    assert over("evtx_timeline", [(1, provider, 1, fields)], "details") == [(details,)]


def test_bytes_that_are_a_text_are_readable(over):
    service = (1, "Service Control Manager", 7036, {"param1": "Software Protection", "Binary": "7300700070007300760063002F0034000000"})
    number = (2, "Service Control Manager", 7036, {"param1": "x", "Binary": "D90600000000"})
    assert over("evtx_timeline", [service, number], "details", "ORDER BY time_created ASC") == [
        ("param1: Software Protection ¦ Binary: 7300700070007300760063002F0034000000 (sppsvc/4)",), ("param1: x ¦ Binary: D90600000000",)]


def test_levels_of_a_parquet_file_compare_in_their_order(con, tmp_path):
    matches = tmp_path / "matches.parquet"
    con.execute(f"COPY (FROM evtx_sigma('{SAMPLES}', rules := '{SAMPLES / 'rules'}')) TO '{matches}'")
    for macro, columns in [("evtx_sigma_timeline", "title, record_id, filename"), ("evtx_sigma_summary", "title, computer, matches")]:
        assert_same_rows(
            con, f"SELECT level, {columns} FROM {macro}_of('{matches}') WHERE level >= 'medium'",
            f"SELECT level, {columns} FROM {macro}('{SAMPLES}', '{SAMPLES / 'rules'}') WHERE level >= 'medium'")
        levels = con.execute(f"SELECT DISTINCT level FROM {macro}_of('{matches}') WHERE level >= 'medium' ORDER BY level").fetchall()
        assert levels == [("medium",), ("high",), ("critical",)]


SYSTEM = re.compile(r"(Provider\.|EventID|Version$|Level$|Task$|Opcode$|Keywords$|TimeCreated|EventRecordID|Correlation|Execution|Channel$|Computer$|Security\.|RenderingInfo|Provider$|Keyword$)")


WITH_CODES = {SECURITY, "Service Control Manager", "NETLOGON", DEFENDER, POLICY}


def shown_elsewhere(row, name, value):
    """Why a value is not there as it is written."""
    return (
        # The name of the template, which the provider's manifest has.
        name == "EventData.Name"
        # An attribute of an element of EventData, which event_data leaves out.
        or (row["provider"], name) == ("Northwind-Oddities", "Leaf.Name")
        # Codes, SIDs and GUIDs in words, under the same name.
        or (row["provider"] in WITH_CODES and re.search(r"%%\d|%?\{", value) and f" ¦ {name}: " in f" ¦ {row['details']}")
        # The remote host has no prefix, and the account of 4769 no realm, because this is the domain.
        or value.lower() == f"::ffff:{row['remote_host']}"
        or (row["event_id"] == 4769 and name == "TargetUserName" and row["user_name"].lower().endswith("\\" + value.split("@")[0].lower()))
    )


def test_the_time_line_has_every_value_of_the_event(con):
    """Each text of the event is in the row of the time line, apart from the columns of read_evtx, which name themselves."""
    logs = os.environ.get("EVTX_CORPUS", str(SAMPLES))
    con.execute("CREATE TABLE events AS FROM read_evtx($1, fields := true) WHERE error IS NULL", [logs])
    result = con.execute("""
        SELECT t.*, e.fields FROM evtx_timeline_of('events') t JOIN events e USING (filename, record_id)
        WHERE (filename, record_id) IN (SELECT (filename, record_id) FROM events GROUP BY ALL HAVING count(*) = 1)""")
    columns = [column[0] for column in result.description]
    values, missing = 0, {}
    while batch := result.fetchmany(10_000):
        for row in (dict(zip(columns, values_of_row, strict=True)) for values_of_row in batch):
            texts = (row[column] for column in ("details", "user_name", "user_sid", "remote_host", "process", "computer", "provider", "message"))
            shown = re.sub(r"\s+", " ", " ¦ ".join(text for text in texts if text))
            for name, value in ((field["name"], re.sub(r"\s+", " ", field["value"] or "").strip()) for field in row["fields"]):
                if SYSTEM.match(name) or value in ("", "-", NO_GUID):
                    continue
                values += 1
                if not (value in shown or json.dumps(value, ensure_ascii=False)[1:-1] in shown or shown_elsewhere(row, name, value)):
                    missing[row["provider"], row["event_id"], name] = (value, row["details"], row["filename"], row["record_id"])
    assert values > 1000 if os.environ.get("EVTX_CORPUS") else values == 1996, values
    assert missing == {}
