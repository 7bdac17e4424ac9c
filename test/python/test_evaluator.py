"""Each column of each macro is what a second evaluator says, which shares no code with the macros: the package `evaluator`.

Over the samples, over copies of them, and over the folders in those that EVTX_CORPUS and EVTX_COLLECTIONS name. Each folder is a case, and all
machines of EVTX_COLLECTIONS together are one.
"""

import collections
import datetime
import functools
import os
import pathlib
import random
import shutil

import pyarrow
import pytest
import test_stories
from conftest import SAMPLES, loaded
from evaluator.accounts import Names, accounts
from evaluator.derived import derived_facts
from evaluator.events import CONNECTIONS, GATEWAY, KERNEL, MICROSECOND, SECOND, SECURITY, SESSIONS, SYSMON, Event, read, text_of
from evaluator.events import case as case_of
from evaluator.logons import logons
from evaluator.processes import process_tree
from evaluator.scripts import script_blocks
from evaluator.timeline import timeline
from stories.author import draw
from stories.telling import Telling

CORPUS, COLLECTIONS = ([pathlib.Path(os.environ[name])] if os.environ.get(name) else [] for name in ("EVTX_CORPUS", "EVTX_COLLECTIONS"))
COPIES = pathlib.Path("copies")
FOLDERS = [SAMPLES, COPIES, *sorted({log.parent for root in CORPUS + COLLECTIONS for log in root.rglob("*.evtx")} | set(COLLECTIONS))]


class Case:
    """The events of a folder for both: those that both read without an error."""

    def __init__(self, folder):
        self.con = loaded()
        self.con.execute(f"CREATE TABLE every AS FROM read_evtx('{folder}/**/*.evtx')")
        sound = "error IS NULL AND record_id IS NOT NULL"
        ours = collections.Counter(self.con.execute(f"SELECT filename, record_id FROM every WHERE {sound}").fetchall())
        self.folder, self.logs = folder, {str(log): list(read(log)) for log in sorted(folder.rglob("*.evtx"))}
        events = [event for found in self.logs.values() for event in found]
        theirs = collections.Counter((event.log, event.number) for event in events)
        both = {key for key, count in ours.items() if count == 1 == theirs[key]}
        self.con.execute("CREATE TABLE known (filename VARCHAR, record_id UBIGINT)")
        self.con.executemany("INSERT INTO known VALUES (?, ?)", sorted(both)) if len(both) < 1000 else self.con.execute(
            "INSERT INTO known SELECT unnest(?), unnest(?)", [[log for log, _ in both], [number for _, number in both]])
        self.con.execute(f"CREATE TABLE events AS FROM every SEMI JOIN known USING (filename, record_id) WHERE {sound}")
        self.shares = len(both), len(ours)
        self.all = [event for event in events if (event.log, event.number) in both]
        self.events = case_of(self.all)
        self.names = Names(self.events, lambda sid: self.word("evtx_sid_name", sid))

    @functools.cache
    def word(self, function, *values):
        """The name of a code."""
        return self.con.execute(f"SELECT {function}({', '.join('?' * len(values))})", values).fetchone()[0]

    def rows(self, macro, columns):
        return self.con.execute(f"SELECT {', '.join(columns)} FROM {macro}_of('events')").fetchall()


@pytest.fixture(scope="module", params=FOLDERS, ids=lambda folder: folder.name)
def case(request, tmp_path_factory):
    if request.param != COPIES:
        return Case(request.param)
    folder = tmp_path_factory.mktemp("copies")
    for name in ("live", "shadow copy"):
        (folder / name).mkdir()
        for log in SAMPLES.glob("*.evtx"):
            shutil.copy(log, folder / name)
    return Case(folder)


def plain(value):
    """A value that can be compared and sorted. A GUID has braces, and any case."""
    if isinstance(value, list):
        return tuple(plain(item) for item in value)
    return tuple((name, plain(item)) for name, item in value.items()) if isinstance(value, dict) else value


def assert_same(case, macro, expected):
    """The rows, in any order. If they differ, the first differences by column."""
    expected = list(expected)
    if not expected:
        [(count,)] = case.con.execute(f"SELECT count(*) FROM {macro}_of('events')").fetchall()
        assert count == 0
        return
    columns = list(expected[0])
    ours = collections.Counter(plain(list(row)) for row in case.rows(macro, columns))
    theirs = collections.Counter(plain([row[column] for column in columns]) for row in expected)
    if found := differences(columns, ours - theirs, theirs - ours):
        pytest.fail("the macro, and the evaluator:\n" + "\n".join(map(str, found)), pytrace=False)


def differences(columns, ours, theirs):
    """Pairs of rows that differ in the fewest columns, as the columns that differ."""
    found, left = [], list(theirs.elements())
    for row in list(ours.elements())[:20]:
        nearest = max(left[:3000], key=lambda other: sum(a == b for a, b in zip(row, other)), default=None)
        if nearest is None:
            found.append(("only the macro", dict(zip(columns, row))))
            continue
        left.remove(nearest)
        found.append({column: (a, b) if a != b else a for column, a, b in zip(columns, row, nearest) if a != b or a is not None})
    if sum(theirs.values()) > sum(ours.values()):
        found += [("only the evaluator", dict(zip(columns, row))) for row in left[:20]]
    return found and [f"{sum(ours.values())} of the macro, {sum(theirs.values())} of the evaluator", *found]


def test_both_read_the_events(case):
    both, ours = case.shares
    assert both > 0.9 * ours


def test_accounts(case):
    assert_same(case, "evtx_accounts", accounts(case.events))


def test_logons(case):
    assert_same(case, "evtx_logons", logons(case.events))
    for start, end, duration in case.rows("evtx_logons", ["logon_time", "logoff_time", "duration_seconds"]):
        # The parser cuts times to microseconds, so a duration can differ by one.
        assert duration is None if start is None or end is None else abs((end - start).total_seconds() - duration) < 2e-6


def test_process_tree(case):
    assert_same(case, "evtx_process_tree", process_tree(case.events, case.names))


def test_script_blocks(case):
    assert_same(case, "evtx_script_blocks", script_blocks(case.events, lambda text: case.word("evtx_decode_base64", text)))


def test_timeline(case):
    assert_same(case, "evtx_timeline", timeline(case.all, case.names))


# The clock of this machine was off by ten hours after each start, and the macro knows only the first and the last records of an hour. Neither is
# right. Record 455, of 10:53:26, is the last before the first gap.
DIFFERENT = {"WIN-L0ZZQ76PMUF": {"gaps"}}
# What the evaluator says of each topic, in SQL over the facts.
DERIVED = {
    "gaps": "SELECT first, regexp_extract(fact, '\\d+')::INTEGER AS days FROM facts WHERE topic = 'gaps' AND fact LIKE 'No events %'",
    "starts": "SELECT first FROM facts WHERE fact = 'Windows started'",
    "clock": "SELECT first FROM facts WHERE fact LIKE 'Clock set %'",
    "failed logons": """SELECT lower(regexp_extract(coalesce(account, ''), '[^\\\\]*$')) AS who, sum(events)::INTEGER AS failures FROM facts
        WHERE topic = 'failed logons' AND regexp_matches(fact, '^\\d+ failed logons?(, then a logon of the same account)?$') GROUP BY ALL""",
}


# Where a clock was set, the records that the macro places can tell another last record before a gap, by seconds.
NEAR = {"gaps": 10 * SECOND}


def is_near(topic, one, other):
    """The parser cuts times to microseconds."""
    return abs(one - other) <= NEAR.get(topic, 2 * MICROSECOND) if isinstance(one, datetime.datetime) else one == other


def test_derived_facts(case):
    expected = derived_facts(case.all, case.word)
    case.con.execute("CREATE OR REPLACE TEMP TABLE facts_of_all AS SELECT computer, topic::VARCHAR AS topic, fact, first, events, account FROM evtx_facts_of('events')")
    found = []
    for computer, topics in expected.items():
        case.con.execute("CREATE OR REPLACE TEMP TABLE facts AS FROM facts_of_all WHERE computer = $1", [computer])
        for topic, theirs in topics.items():
            ours = sorted(row if len(row) > 1 else row[0] for row in case.con.execute(DERIVED[topic]).fetchall())
            pairs = zip(ours, sorted(theirs))
            near = functools.partial(is_near, topic)
            same = len(ours) == len(theirs) and all(all(map(near, *pair)) if isinstance(pair[0], tuple) else near(*pair) for pair in pairs)
            if not same and topic not in DIFFERENT.get(computer, ()):
                found += [f"{computer}: {topic}", f"  macro     {[row for row in ours if row not in theirs][:10]}", f"  evaluator {[row for row in theirs if row not in ours][:10]}"]
    if found:
        pytest.fail("\n".join(found), pytrace=False)


# The evaluator can be wrong itself: stories know what happened.


def event_of(row):
    """An event of a story. UserData is one element, which has the fields."""
    content = next(iter(row["user_data"].values())) if row["user_data"] else row["event_data"] or {}
    data = {name: text_of(value) for name, value in content.items() if not name.startswith("#")}
    names = {"computer", "channel", "level", "user_sid"}
    # The evaluator knows providers as Windows spells them.
    return Event(provider=row.get("source", row["provider"]), id=row["event_id"], record=row["event_record_id"], number=row["record_id"], time=row["time_created"], log=row["filename"], process_id=None, data=data,
                 **{name: row[name] for name in names})  # fmt: skip


def test_the_evaluator_tells_the_stories(con):
    word = functools.cache(lambda function, *values: con.execute(f"SELECT {function}({', '.join('?' * len(values))})", values).fetchone()[0])
    for number in range(200):
        telling = Telling(draw(test_stories.SEED, number))
        rows = telling.rows()
        every = list(map(event_of, rows))
        events = case_of(every)
        names = Names(events, lambda sid: word("evtx_sid_name", sid))
        found = {
            "evtx_logons": list(logons(events)), "evtx_process_tree": list(process_tree(events, names)),
            "evtx_accounts": list(accounts(events)), "evtx_timeline": list(timeline(every, names)),
        }  # fmt: skip
        assert list(test_stories.of_story(telling, rows, found)) == [], telling.story


# Real logs do not have every order of events: random ones do.


def random_rows(chance):
    """Events of two machines that often have the same IDs, programs and accounts. A shadow copy has the first of each log."""
    time, numbers, rows, copied = datetime.datetime(2024, 3, 5), collections.Counter(), [], chance.randrange(20)
    planted = chance.random() < 0.5
    pick = chance.choice
    # Logons, processes, or all; Remote Desktop; other logons.
    kinds = pick([range(3), range(3, 8), range(10), [0, 1, *range(10, 15)], [0, 1, *range(14, 20)]])
    channels = {SECURITY: "Security", SYSMON: "Microsoft-Windows-Sysmon/Operational", KERNEL: "System"}
    for _ in range(chance.randrange(5, 120)):
        time += pick([0.001, 0.3, 0.9, 1, 1.1, 4, 100, 5000, -7.7]) * SECOND
        computer, pid, parent = pick(["A", "B"]), pick([4, 8, 12]), pick([4, 8, 12])
        sid, name = pick([("S-1-5-21-1-2-3-1001", "anna"), ("S-1-5-21-1-2-3-1001", "Anna"), ("S-1-5-21-1-2-3-1002", "-"), ("S-1-5-18", "A$")])
        who = {"UserSid": sid, "UserName": name, "DomainName": pick(["CORP", "corp.example"]), "LogonId": pick(["0x1", "0x2", "0x3e7"])}
        target, subject = ({f"{kind}{field}": value for field, value in who.items()} for kind in ("Target", "Subject"))
        programs = ["C:\\a.exe", "C:\\A.EXE", "C:\\b.exe"]
        guids = {"ProcessGuid": "{" + f"{chance.randrange(9):08}-0000-0000-0000-000000000000" + "}"}
        guids |= {"ParentProcessGuid": "{" + f"{chance.randrange(9):08}-0000-0000-0000-000000000000" + "}"} if chance.random() < 0.5 else {}
        named = {"ParentProcessName": pick(programs)} if chance.random() < 0.5 else {}
        provider, event_id, data = [
            (SECURITY, 4624, target | {"LogonType": pick(["2", "3", "5", "7", "10"]), "WorkstationName": pick(["-", "A", "KALI"]), "ProcessName": pick(["-", "C:\\sshd.exe"]), "IpAddress": pick(["-", "::1", "10.0.0.1", "::ffff:10.0.0.2"])}),
            (SECURITY, pick([4634, 4647]), target), (SECURITY, 4672, subject | {"PrivilegeList": "SeA\n\tSeB"}),
            (SECURITY, 4688, subject | named | {"NewProcessId": hex(pid), "ProcessId": hex(parent), "NewProcessName": pick(programs), "CommandLine": pick(["", "x"])}),
            (SECURITY, 4689, subject | {"ProcessId": hex(pid), "ProcessName": pick(programs)}),
            (SYSMON, 1, guids | {"ProcessId": str(pid), "ParentProcessId": str(parent), "Image": pick(programs), "ParentImage": ["", "-", *programs][(pid + parent) // 4 % 5], "User": "NT AUTHORITY\\SYSTEM" if sid == "S-1-5-18" else "CORP\\anna", "LogonId": "0x3e7"}),
            (SYSMON, 5, guids | {"ProcessId": str(pid), "Image": pick(programs)}), ("Microsoft-Windows-Kernel-General", 12, {}),
            (SECURITY, 4781, {"TargetSid": "S-1-5-21-1-2-3-1001", "TargetDomainName": "CORP", "OldTargetUserName": "anna", "NewTargetUserName": "eve"} | subject),
            ("Microsoft-Windows-PowerShell", 4104, {"ScriptBlockId": pick("ab"), "MessageNumber": pick("0123x"), "MessageTotal": pick("33y"), "ScriptBlockText": pick("xxz"), "Path": ""}),
            (SESSIONS, pick([21, 21, 23, 24, 25]), {"User": f"CORP\\{name}", "SessionID": pick("23"), "Address": pick(["LOCAL", "10.0.0.1"])}),
            (SESSIONS, *pick([(39, {"TargetSession": pick("23"), "Source": "1"}), (40, {"Session": pick("23"), "Reason": "5"})])),
            (CONNECTIONS, 1149, {"Param1": name, "Param2": pick(["", "CORP"]), "Param3": pick(["10.0.0.1", "10.0.0.3"])}),
            (SECURITY, pick([4778, 4779]), {"AccountName": name, "AccountDomain": "CORP", "LogonID": pick(["0x1", "0x2"]), "ClientName": pick(["B", "KALI"]), "ClientAddress": pick(["LOCAL", "10.0.0.4"])}),
            (SECURITY, 4624, target | {"LogonType": pick(["7", "10", "10"]), "WorkstationName": computer, "IpAddress": pick(["10.0.0.1", "127.0.0.1"])}),
            ("OpenSSH", 4, {"process": "sshd", "payload": pick(["Accepted password for {} from 10.0.0.1 port {} ssh2", "Disconnected from user {} 10.0.0.1 port {}", "Failed password for {} from 10.0.0.1 port {} ssh2",
                                                               "Connection closed by authenticating user {} 10.0.0.1 port {} [preauth]", "Connection closed by user {} 10.0.0.1 port {}"]).format(name, pid)}),
            ("Microsoft-Windows-WinRM", *pick([(169, {"username": f"CORP\\{name}", "authenticationMechanism": "NTLM"}), (91, {"resourceUri": "x"}), (193, {"param1": f"CORP\\{name}"})])),
            (pick(["MSSQLSERVER", "MSSQL$ERP"]), pick([18453, 18454, 18456]), {"param1": f"CORP\\{name}", "param2": pick(["[CLIENT: 10.0.0.1]", " [CLIENT: <local machine>]"])}),
            *[(GATEWAY, event_id, {"Username": f"CORP\\{name}", "IpAddress": "10.0.0.1", "Resource": pick("ab")}) for event_id in [pick([300, 302, 303])]],
            *[("RemoteAccess", event_id, {"param1": pick("ab"), "param2": f"CORP\\{name}"}) for event_id in [pick([20271, 20272, 20274, 20275])]],
        ][pick(kinds)]  # fmt: skip
        numbers[computer, provider] += 1
        row = {"record_id": numbers[computer, provider], "event_record_id": numbers[computer, provider], "time_created": time, "event_id": event_id, "level": pick([3, 5]), "version": 0,
               "provider": provider, "channel": channels.get(provider, provider), "computer": computer, "user_sid": sid if event_id == 91 else None, "event_data": data, "user_data": None}  # fmt: skip
        # An export has other numbers.
        exported = {"record_id": row["record_id"] + 5} if copied % 2 else {}
        rows += [row | {"filename": f"{folder}/{computer}/{provider}"} | (exported if folder != "live" else {}) for folder in ["live", "shadow copy"][: 1 + (numbers[computer, provider] <= copied)]]
        if planted and chance.random() < 0.1:
            # At the place of another record, at another time, perhaps long before or after.
            other = {"event_record_id": chance.randrange(1, numbers[computer, provider] + 1), "time_created": time + pick([-9, 0, 9, 90000]) * SECOND}
            number = pick([other["event_record_id"], 7])
            other["channel"] = [row["channel"], row["channel"].lower(), "Application"][other["event_record_id"] % 3]
            rows.append(row | other | {"record_id": number, "filename": pick(["planted", "before", "live"]) + f"/{computer}/{provider}"})
    return rows


def test_random_events(con):
    con.execute(f"CREATE TABLE events AS FROM read_evtx('{SAMPLES / 'DC01-Security.evtx'}') LIMIT 0")
    # In 813, a log has a record twice, under two numbers.
    for seed in (*range(40), 813):
        rows = random_rows(random.Random(seed))
        columns = {name: [row[name] for row in rows] for name in test_stories.COLUMNS}
        columns["data"] = pyarrow.array([list(row["event_data"].items()) for row in rows], pyarrow.map_(pyarrow.string(), pyarrow.string()))
        con.register("rows", pyarrow.table(columns))
        con.execute("DELETE FROM events")
        con.execute("INSERT INTO events BY NAME SELECT * RENAME (data AS event_data) FROM rows")
        case = Case.__new__(Case)
        case.con, case.events = con, case_of(list(map(event_of, rows)))
        names = Names(case.events, lambda sid: case.word("evtx_sid_name", sid))
        assert_same(case, "evtx_accounts", accounts(case.events))
        assert_same(case, "evtx_logons", logons(case.events))
        assert_same(case, "evtx_process_tree", process_tree(case.events, names))
        assert_same(case, "evtx_script_blocks", script_blocks(case.events, lambda text: None))
