"""Each column of each macro is what a second evaluator says, which shares no code with the macros: evaluator.py.

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

import evaluator
import pyarrow
import pytest
import stories
import test_stories
from conftest import SAMPLES, loaded

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
        self.folder, self.logs = folder, {str(log): list(evaluator.read(log)) for log in sorted(folder.rglob("*.evtx"))}
        events = [event for found in self.logs.values() for event in found]
        theirs = collections.Counter((event.log, event.number) for event in events)
        both = {key for key, count in ours.items() if count == 1 == theirs[key]}
        self.con.execute("CREATE TABLE known (filename VARCHAR, record_id UBIGINT)")
        self.con.executemany("INSERT INTO known VALUES (?, ?)", sorted(both)) if len(both) < 1000 else self.con.execute(
            "INSERT INTO known SELECT unnest(?), unnest(?)", [[log for log, _ in both], [number for _, number in both]])
        self.con.execute(f"CREATE TABLE events AS FROM every SEMI JOIN known USING (filename, record_id) WHERE {sound}")
        self.shares = len(both), len(ours)
        self.all = [event for event in events if (event.log, event.number) in both]
        self.events = evaluator.case(self.all)
        self.names = evaluator.Names(self.events, lambda sid: self.word("evtx_sid_name", sid))

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
    assert_same(case, "evtx_accounts", evaluator.accounts(case.events))


def test_logons(case):
    assert_same(case, "evtx_logons", evaluator.logons(case.events))
    for start, end, duration in case.rows("evtx_logons", ["logon_time", "logoff_time", "duration_seconds"]):
        # The parser cuts times to microseconds, so a duration can differ by one.
        assert duration is None if start is None or end is None else abs((end - start).total_seconds() - duration) < 2e-6


def test_process_tree(case):
    assert_same(case, "evtx_process_tree", evaluator.process_tree(case.events, case.names))


def test_script_blocks(case):
    assert_same(case, "evtx_script_blocks", evaluator.script_blocks(case.events, lambda text: case.word("evtx_decode_base64", text)))


def test_timeline(case):
    fields = evaluator.Fields(case.con.execute("SELECT unnest(evtx_timeline_fields(), max_depth := 2)").fetchall())
    assert_same(case, "evtx_timeline", evaluator.timeline(case.all, case.names, fields))


def is_same(one, other):
    """Whether values are the same. The parser cuts times to microseconds. Accounts are compared without their domain,
    because events write the same one in different ways. A set holds the names that count as right."""
    if isinstance(other, dict):
        return isinstance(one, dict) and one.keys() == other.keys() and all(is_same(one[name], other[name]) for name in other)
    if isinstance(other, list):
        return isinstance(one, list) and len(one) == len(other) and all(map(is_same, one, other))
    if isinstance(other, datetime.datetime):
        return one is not None and abs(one - other) <= 2 * evaluator.MICROSECOND
    if isinstance(other, float):
        return one is not None and abs(one - other) <= 2e-6
    return evaluator.bare(one) in other if isinstance(other, set) else one == other


def unmatched(ours, theirs):
    """The entries of two lists, in any order, that the other does not have."""
    left, mine = list(theirs), []
    for entry in ours:
        same = next((other for other in left if is_same(entry, other)), None)
        left.remove(same) if same is not None else mine.append(entry)
    return mine, left


def test_case_summary(case):
    expected = {row["computer"]: row for row in evaluator.case_summary(case.all, case.names, case.word)}
    columns = list(next(iter(expected.values())))
    ours = {row[0]: dict(zip(columns, row)) for row in case.rows("evtx_case_summary", columns)}
    found = [f"not in both: {sorted(ours.keys() ^ expected.keys())}"] * (ours.keys() != expected.keys())
    for computer, column in ((computer, column) for computer in expected if computer in ours for column in columns):
        one, other = ours[computer][column], expected[computer][column]
        if isinstance(one, list):
            if column == "failed_logons":
                # The most failures first.
                keys = [-entry["failures"] for entry in one]
            else:
                keys = [next(entry[name] for name in ("time", "first", "start") if name in entry) if isinstance(entry, dict) else entry for entry in one]
            if column not in ("wrapped_logs", "unused_logs", "broken_times", "time_zones") and keys != sorted(keys):
                found.append(f"{computer}: {column} is not in order")
            mine, theirs = unmatched(one, other)
            if mine or theirs:
                found.append(f"{computer}: {column}: {len(one)} of the macro, {len(other)} of the evaluator")
                found += [f"  macro     {entry}" for entry in mine[:10]] + [f"  evaluator {entry}" for entry in theirs[:10]]
        elif not is_same(one, other):
            found.append(f"{computer}: {column}: {one} of the macro, {other} of the evaluator")
    if found:
        pytest.fail("\n".join(found), pytrace=False)


def test_states_of_logs(case):
    rows = case.con.execute(f"SELECT computer, wrapped_logs, unused_logs FROM evtx_case_summary('{case.folder}/**/*.evtx')").fetchall()
    assert {computer: (wrapped, unused) for computer, wrapped, unused in rows} == evaluator.log_states(case.logs)


# The evaluator can be wrong itself: stories know what happened.


def event_of(row):
    """An event of a story. UserData is one element, which has the fields."""
    content = next(iter(row["user_data"].values())) if row["user_data"] else row["event_data"] or {}
    data = {name: evaluator.text_of(value) for name, value in content.items() if not name.startswith("#")}
    names = {"computer", "channel", "provider", "level", "user_sid"}
    return evaluator.Event(id=row["event_id"], record=row["event_record_id"], number=row["record_id"], time=row["time_created"], log=row["filename"], process_id=None, data=data,
                           **{name: row[name] for name in names})  # fmt: skip


def one_of(entry):
    """An entry with one of the accounts that are right."""
    return {name: next(filter(None, value), None) if isinstance(value, set) else one_of(value) if isinstance(value, dict) else value for name, value in entry.items()}


def test_the_evaluator_tells_the_stories(con):
    word = functools.cache(lambda function, *values: con.execute(f"SELECT {function}({', '.join('?' * len(values))})", values).fetchone()[0])
    fields = evaluator.Fields(con.execute("SELECT unnest(evtx_timeline_fields(), max_depth := 2)").fetchall())
    for number in range(200):
        telling = stories.Telling(stories.draw(test_stories.SEED, number))
        rows = telling.rows()
        every = list(map(event_of, rows))
        events = evaluator.case(every)
        names = evaluator.Names(events, lambda sid: word("evtx_sid_name", sid))
        summaries = list(evaluator.case_summary(every, names, word))
        for summary in summaries:
            for column in ("failed_logons", "remote_logons"):
                summary[column] = [one_of(entry) for entry in summary[column]]
        found = {
            "evtx_case_summary": summaries, "evtx_logons": list(evaluator.logons(events)), "evtx_process_tree": list(evaluator.process_tree(events, names)),
            "evtx_accounts": list(evaluator.accounts(events)), "evtx_timeline": list(evaluator.timeline(every, names, fields)),
        }  # fmt: skip
        assert list(test_stories.of_story(telling, rows, found)) == [], telling.story


# Real logs do not have every order of events: random ones do.


def random_rows(chance):
    """Events of two machines that often have the same IDs, programs and accounts. A shadow copy has the first of each log."""
    time, numbers, rows, copied = datetime.datetime(2024, 3, 5), collections.Counter(), [], chance.randrange(20)
    planted = chance.random() < 0.5
    pick = chance.choice
    # Logons, processes, or all.
    kinds = pick([range(3), range(3, 8), range(10)])
    channels = {evaluator.SECURITY: "Security", evaluator.SYSMON: "Microsoft-Windows-Sysmon/Operational", evaluator.KERNEL: "System"}
    for _ in range(chance.randrange(5, 120)):
        time += pick([0.001, 0.3, 0.9, 1, 1.1, 4, 100, 5000, -7.7]) * evaluator.SECOND
        computer, pid, parent = pick(["A", "B"]), pick([4, 8, 12]), pick([4, 8, 12])
        sid, name = pick([("S-1-5-21-1-2-3-1001", "anna"), ("S-1-5-21-1-2-3-1001", "Anna"), ("S-1-5-21-1-2-3-1002", "-"), ("S-1-5-18", "A$")])
        who = {"UserSid": sid, "UserName": name, "DomainName": pick(["CORP", "corp.example"]), "LogonId": pick(["0x1", "0x2", "0x3e7"])}
        target, subject = ({f"{kind}{field}": value for field, value in who.items()} for kind in ("Target", "Subject"))
        programs = ["C:\\a.exe", "C:\\A.EXE", "C:\\b.exe"]
        guids = {"ProcessGuid": "{" + f"{chance.randrange(9):08}-0000-0000-0000-000000000000" + "}"}
        guids |= {"ParentProcessGuid": "{" + f"{chance.randrange(9):08}-0000-0000-0000-000000000000" + "}"} if chance.random() < 0.5 else {}
        named = {"ParentProcessName": pick(programs)} if chance.random() < 0.5 else {}
        provider, event_id, data = [
            (evaluator.SECURITY, 4624, target | {"LogonType": pick("2357"), "IpAddress": pick(["-", "::1", "10.0.0.1", "::ffff:10.0.0.2"])}),
            (evaluator.SECURITY, pick([4634, 4647]), target), (evaluator.SECURITY, 4672, subject | {"PrivilegeList": "SeA\n\tSeB"}),
            (evaluator.SECURITY, 4688, subject | named | {"NewProcessId": hex(pid), "ProcessId": hex(parent), "NewProcessName": pick(programs), "CommandLine": pick(["", "x"])}),
            (evaluator.SECURITY, 4689, subject | {"ProcessId": hex(pid), "ProcessName": pick(programs)}),
            (evaluator.SYSMON, 1, guids | {"ProcessId": str(pid), "ParentProcessId": str(parent), "Image": pick(programs), "ParentImage": ["", "-", *programs][(pid + parent) // 4 % 5], "User": "NT AUTHORITY\\SYSTEM" if sid == "S-1-5-18" else "CORP\\anna", "LogonId": "0x3e7"}),
            (evaluator.SYSMON, 5, guids | {"ProcessId": str(pid), "Image": pick(programs)}), ("Microsoft-Windows-Kernel-General", 12, {}),
            (evaluator.SECURITY, 4781, {"TargetSid": "S-1-5-21-1-2-3-1001", "TargetDomainName": "CORP", "OldTargetUserName": "anna", "NewTargetUserName": "eve"} | subject),
            ("Microsoft-Windows-PowerShell", 4104, {"ScriptBlockId": pick("ab"), "MessageNumber": pick("0123x"), "MessageTotal": pick("33y"), "ScriptBlockText": pick("xxz"), "Path": ""}),
        ][pick(kinds)]  # fmt: skip
        numbers[computer, provider] += 1
        row = {"record_id": numbers[computer, provider], "event_record_id": numbers[computer, provider], "time_created": time, "event_id": event_id, "level": pick([3, 5]), "version": 0,
               "provider": provider, "channel": channels.get(provider, provider), "computer": computer, "user_sid": None, "event_data": data, "user_data": None}  # fmt: skip
        # An export has other numbers.
        exported = {"record_id": row["record_id"] + 5} if copied % 2 else {}
        rows += [row | {"filename": f"{folder}/{computer}/{provider}"} | (exported if folder != "live" else {}) for folder in ["live", "shadow copy"][: 1 + (numbers[computer, provider] <= copied)]]
        if planted and chance.random() < 0.1:
            # At the place of another record, at another time, perhaps long before or after.
            other = {"event_record_id": chance.randrange(1, numbers[computer, provider] + 1), "time_created": time + pick([-9, 0, 9, 90000]) * evaluator.SECOND}
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
        case.con, case.events = con, evaluator.case(list(map(event_of, rows)))
        names = evaluator.Names(case.events, lambda sid: case.word("evtx_sid_name", sid))
        assert_same(case, "evtx_accounts", evaluator.accounts(case.events))
        assert_same(case, "evtx_logons", evaluator.logons(case.events))
        assert_same(case, "evtx_process_tree", evaluator.process_tree(case.events, names))
        assert_same(case, "evtx_script_blocks", evaluator.script_blocks(case.events, lambda text: None))
