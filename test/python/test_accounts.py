"""The names of accounts over made-up events."""

import hashlib
import struct

import pytest
from made_up import ALICE, DOMAIN, SECURITY, SYSMON, clock, logon_of, service, users


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


def test_a_new_name_counts_after_the_clock_was_set_back(over):
    by = {"TargetSid": ALICE, "TargetDomainName": "CORP"}
    events = [(7000, SECURITY, 4720, by | {"TargetUserName": "anna"}), (7100, SECURITY, 4781, by | {"OldTargetUserName": "anna", "NewTargetUserName": "berta"}),
              clock(3600, 7200), logon_of(3700, ALICE, "berta"), service(3800, ALICE)]  # fmt: skip
    assert over("evtx_accounts", events, "user_name, name_source", "ORDER BY first_seen ASC, user_name ASC") == [
        ("CORP\\berta", "renamed"), ("CORP\\anna", "created"), ("CORP\\anna", "renamed"), ("CORP\\berta", "renamed")]  # fmt: skip
    assert users(over, events) == ["CORP\\berta"]


def test_a_renamed_account_has_the_name_of_the_time(over):
    def renamed(at, old, new):
        return at, SECURITY, 4781, {"TargetSid": ALICE, "TargetDomainName": "CORP", "OldTargetUserName": old, "NewTargetUserName": new}

    events = [service(0, ALICE), logon_of(1, ALICE, "alice"), service(2, ALICE), renamed(3, "alice", "bob"), service(3, ALICE), logon_of(4, ALICE, "bob"), service(5, ALICE),
              renamed(6, "bob", "alice"), service(7, ALICE)]
    assert users(over, events) == ["CORP\\alice", "CORP\\alice", "CORP\\bob", "CORP\\bob", "CORP\\alice"]
    # The change is enough.
    assert users(over, [service(2, ALICE), renamed(3, "alice", "bob"), service(4, ALICE)]) == ["CORP\\alice", "CORP\\bob"]


def test_a_rename_is_placed_by_the_order_of_the_log(over):
    """The clock was set back by an hour after the first rename."""
    def renamed(at, old, new):
        return at, SECURITY, 4781, {"TargetSid": ALICE, "TargetDomainName": "CORP", "OldTargetUserName": old, "NewTargetUserName": new}

    def asked(at):
        return at, SECURITY, 4907, {"SubjectUserSid": ALICE, "SubjectUserName": "-"}

    events = [asked(7000), renamed(7100, "alice", "bob"), asked(7150), clock(3600, 7200), asked(3700),
              (3750, "User32", 1074, {"param7": "CORP\\bob"}, ALICE), renamed(3800, "bob", "carol"), asked(3900)]
    over("evtx_timeline", events)
    assert over.query("evtx_timeline", "user_name", "WHERE event_id = 4907 ORDER BY record_id ASC") == [("CORP\\alice",), ("CORP\\bob",), ("CORP\\bob",), ("CORP\\carol",)]


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


def test_a_forged_name_names_nobody_else(over):
    """A ticket can have any name. The name of an account is that of most events until then, or what an event says."""
    forged = [logon_of(1, ALICE, "alice"), logon_of(2, ALICE, "not_existing_user"), service(3, ALICE)]
    assert users(over, forged) == ["CORP\\alice"]
    assert sorted(over.query("evtx_accounts", "user_name, name_source")) == [("CORP\\alice", "most events"), ("CORP\\not_existing_user", "second name")]
    # On another machine of the domain, and more often.
    assert users(over, [logon_of(0, ALICE, "alice", computer="pc2"), *forged[1:]]) == ["CORP\\alice"]
    created = (0, SECURITY, 4720, {"TargetSid": ALICE, "TargetUserName": "alice", "TargetDomainName": "CORP"})
    assert users(over, [created, *[logon_of(at, ALICE, "mallory") for at in range(5)], service(9, ALICE)]) == ["CORP\\alice"]
    # More events than the other name has.
    assert users(over, [*forged, logon_of(4, ALICE, "bob"), service(5, ALICE), *[logon_of(at, ALICE, "bob") for at in (6, 7)], service(8, ALICE)]) == ["CORP\\alice", "CORP\\alice", "CORP\\bob"]
    # The rows say that no event explains why another name took over.
    assert sorted(over.query("evtx_accounts", "user_name, name_source")) == [("CORP\\alice", "most events"), ("CORP\\bob", "more events"), ("CORP\\not_existing_user", "second name")]


def test_groups_are_no_accounts(over):
    def of(event_id, number, name, **fields):
        return 1, SECURITY, event_id, {"TargetSid": f"S-1-5-21-1-2-3-{number}", "TargetUserName": name, "TargetDomainName": "CORP", **fields}

    renamed = {"OldTargetUserName": "None", "NewTargetUserName": "None"}
    events = [of(4781, 513, "", **renamed), of(4738, 512, "Domain Admins"), of(4799, 1105, "DnsAdmins"), of(4798, 503, "DefaultAccount"), of(4798, 1513, "eve")]
    assert sorted(over("evtx_accounts", events, "user_name")) == [("CORP\\DefaultAccount",), ("CORP\\eve",)]
