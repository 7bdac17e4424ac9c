"""What the macros must say about a story."""

import collections
import datetime
import itertools

from stories.world import Any, Having, Near, OneOf, Text


def day_or_more(rows):
    """The days without an event. Changes of the clock that logs tell of are no time that passed, but corrections by less than a second are."""
    pairs = itertools.pairwise(sorted(rows, key=lambda row: (row["passed"], row["at"])))
    passed = [(first["time_created"], second["passed"] - first["passed"]) for first, second in pairs]
    return [{"start": start, "duration_seconds": Near(duration.total_seconds(), 0.2)} for start, duration in sorted(passed) if duration >= datetime.timedelta(days=1)]


def bare(account):
    return account and account.name.lower()


def groups(items, key):
    found = collections.defaultdict(list)
    for item in items:
        found[key(item)].append(item)
    return found.items()


def is_connected(own):
    """Whether a log connects the names of a machine, so that it is one machine in the answers."""
    # Two records are no log.
    # Nor does an export that has the newest event first prove anything by its numbers.
    large = {filename for filename, count in collections.Counter(row["filename"] for row in own if row["is_own"] and row["form"] != "newest first").items() if count > 2}
    files = [{row["computer"] for row in of_file} for _, of_file in groups(own, lambda row: row["filename"] in large and row["filename"] or row["computer"])]
    connected = files.pop()
    while other := next((names for names in files if names & connected), None):
        files.remove(other)
        connected |= other
    return not files


# The topic and the sentence of the facts that the list of events makes of one event each.
LISTED = {
    7045: ("services", "Service installed", "ServiceName"), 4697: ("services", "Service installed", "ServiceName"), 106: ("tasks", "Task created", "TaskName"),
    4698: ("tasks", "Task created", "TaskName"), 6008: ("starts", "Unexpected shutdown", None), 1102: ("cleared logs", "Log cleared", "channel"), 104: ("cleared logs", "Log cleared", "Channel"),
    **{number: ("accounts", name, "TargetUserName") for number, name in {4720: "Account created", 4726: "Account deleted", 4740: "Account locked out"}.items()},
    **{number: ("groups", f"Member {what} group", "TargetUserName") for number, what in {
        4728: "added to global", 4729: "removed from global", 4732: "added to local", 4733: "removed from local", 4756: "added to universal", 4757: "removed from universal"}.items()},
}  # fmt: skip


def listed_facts(telling, own):
    """How many events each fact of the list has, by topic, sentence, account and target."""
    found = collections.Counter()
    for event in {id(row["event"]): row["event"] for row in own}.values():
        if event["event_id"] in LISTED:
            topic, fact, field = LISTED[event["event_id"]]
            fields = event["event_data"] if event["user_data"] is None else next(iter(event["user_data"].values()))
            who = telling.who(*event["told"]["user_name"]).lower() if event["told"] else None
            # Who was locked out, of whatever domain: the event has the machine that tried in its place.
            found[(topic, fact, fields["TargetUserName"].lower(), None) if event["event_id"] == 4740 else (topic, fact, who, event["channel"] if field == "channel" else fields.get(field))] += 1
    return found


def failures(facts):
    """How many logons of an account failed from a source."""
    return collections.Counter((bare(fact["account"]), (fact["source"] or "").lower()) for fact in facts["failures"])


def zones(own):
    """The time zones that the event log reports in turn."""
    events = sorted({id(row["event"]): row["event"] for row in own if row["event_id"] == 6013}.values(), key=lambda event: event["at"])
    return [zone for zone, _ in itertools.groupby(event["event_data"]["param7"] for event in events)]


def facts(telling, rows, machine):
    """What evtx_facts must say about a machine, by topic. None if no log connects its names."""
    own = [row for row in rows if row["machine"] is machine]
    sound = [row for row in own if not row["is_broken"]]
    if not sound or not is_connected(sound):
        return None
    told = telling.facts[machine]
    return {
        "computer": Text(sound[-1]["computer"]), "listed": listed_facts(telling, own), "failures": failures(told), "starts": sorted(fact["time"] for fact in told["boots"]),
        "zones": zones(own),
        "gaps": [(gap["start"], Near(gap["duration_seconds"].value / 86400, 1.01)) for gap in day_or_more(sound)],
        "clock": [(fact["time"], fact["process"], telling.who(*fact["user_name"])) for fact in sorted(told["clock_changes"], key=lambda fact: fact["time"])],
        "visits": {(bare(fact["account"]), (fact["source"] or "").lower()) for fact in told["visits"]},
        "successes": {bare(fact["account"]) for fact in told["successes"]}, "broken": len(told["broken"]),
    }  # fmt: skip


def sessions(telling):
    """The rows of evtx_logons."""
    return [Having(logon) for logon in telling.logons] + list(desktop_sessions(telling))


def desktop_sessions(telling):
    """Sessions of Remote Desktop: connections and ends that share the number of a session or the ID of its logon."""
    groups, last, when = [], {}, lambda stamp: stamp.at
    for connection in sorted(telling.connections, key=lambda connection: when(connection["times"][0][1])):
        ids, start = connection["ids"], connection["times"][0][1]
        if not ids:
            known, ends = last.get(connection["place"], (None, []))
            is_open = known and connection["logons"] and all(when(end) >= when(start) for end in ends)
            ids = known if is_open else {id(connection)}
        else:
            last[connection["place"]] = ids, [logon["logoff_time"] for logon in connection["logons"] if logon["logoff_time"] and not connection["is_back"]]
        groups.append((set(ids), [connection], []))
    groups += [({name}, [], [(event_id, time, address)]) for name, event_id, time, address in telling.breaks]
    merged = []
    for group in groups:
        for other in [other for other in merged if other[0] & group[0]]:
            merged.remove(other)
            group = other[0] | group[0], other[1] + group[1], other[2] + group[2]
        merged.append(group)
    for names, connections, breaks in merged:
        connections.sort(key=lambda connection: when(connection["times"][0][1]))
        place, logons = next(((name[:2], None) for name in names if isinstance(name, tuple)), None), [(connection["is_back"], logon) for connection in connections for logon in connection["logons"]]
        (computer, account), own = place[0] if place else connections[0]["place"], [logon for is_back, logon in logons if not is_back]
        moments = [moment for connection in connections for moment in connection["times"]]
        starts = [time for step, time in moments if step == 21] + [logon["logon_time"] for logon in own]
        later = [time for step, time in moments if step == 1149] + [logon["logon_time"] for _, logon in logons]
        is_alone = not place and not own
        ends = [logon["logoff_time"] for logon in ([logon for _, logon in logons] if is_alone else own) if logon["logoff_time"]]
        over = sorted([(time, address) for _, time, address in breaks] + [(logon["logoff_time"], None) for logon in own if logon["logoff_time"]], key=lambda item: when(item[0]))
        entries, untils = [], [when(connection["times"][-1][1]) for connection in connections[1:]] + [datetime.datetime.max]
        if over and (not connections or when(over[0][0]) <= when(connections[0]["times"][-1][1])):
            entries.append({"connected": None, "disconnected": over[0][0], "remote_host": over[0][1]})
        for connection, until in zip(connections, untils):
            after = [time for time, _ in over if when(connection["times"][-1][1]) <= when(time) <= until]
            entries.append({"connected": connection["times"][0][1], "disconnected": min(after, key=when, default=None), "remote_host": connection["address"]})
        row = Having(computer=computer, kind="remote desktop", user_name=OneOf([str(account), account.name]), connections=entries,
                     logon_time=min(starts, key=when, default=min(later, key=when, default=None)),
                     logoff_time=min(ends + [time for event_id, time, _ in breaks if event_id == 23], key=when, default=None))
        if own:
            row["logon_id"], row["privileges"] = OneOf(logon["logon_id"] for logon in own), Any(any(bool(logon["privileges"].is_something) for logon in own))
        yield row


def process_tree(telling):
    """The rows of evtx_process_tree."""
    return [Having(process, user_name=telling.who(*process["user_name"])) for process in telling.processes]


def accounts(telling):
    """The rows that evtx_accounts must have. It can have others with the same names."""
    return [Having(computer=computer, user_sid=account.sid, user_name=str(account)) for account, computers in telling.known.items() for computer in computers]


def time_line(telling, rows):
    """Who, from where, and which program: of the rows of evtx_timeline that the story knows about."""
    for row in rows:
        if row["told"]:
            told = {name: telling.who(*value) if name == "user_name" else value for name, value in row["told"].items()}
            yield Having(told, filename=row["filename"], record_id=row["record_id"])


def moves(tellings):
    """Which account moves from machine to machine? The machines, by their first names, on which an account of a person did something, if there are several."""
    found = collections.defaultdict(set)
    for telling, _ in tellings:
        for event in telling.events:
            if event["event_id"] in (4624, 4688, 4697) and event["told"]:
                account = event["told"]["user_name"][0]
                if account.sid.startswith("S-1-5-21-") and not account.name.endswith("$"):
                    found[account.sid].add(event["machine"])
    return {sid: len(machines) for sid, machines in found.items() if len(machines) > 1}


def remote_desktop(tellings):
    """Who came in by Remote Desktop? The logons of each account from each address to each computer."""
    found = collections.Counter()
    for telling, _ in tellings:
        for of_machine in telling.facts.values():
            for visit in of_machine["visits"]:
                if visit["kinds"] & {"RemoteInteractive", "Reconnect"}:
                    found[visit["computer"].lower(), bare(visit["account"]), visit["source"]] += visit["logons"]
    return found
