"""A second evaluator of the macros in plain Python: from the JSON of evtx_dump (the evtx crate) to their rows.

Written from docs/macros.md. Of the extension, it uses neither the reader nor the SQL, only the names of codes, which have tests of their own.
"""

import collections
import dataclasses
import datetime
import functools
import ipaddress
import itertools
import json
import re
import statistics
import zoneinfo

import evtx

MICROSECOND = datetime.timedelta(microseconds=1)
SECOND = datetime.timedelta(seconds=1)
SECURITY, SYSMON = "Microsoft-Windows-Security-Auditing", "Microsoft-Windows-Sysmon"
KERNEL = "Microsoft-Windows-Kernel-General"
LOGS = {SECURITY: "security", SYSMON: "microsoft-windows-sysmon/operational", KERNEL: "system"}
NOBODY = "S-1-0-0"


# ---- Events


@dataclasses.dataclass
class Event:
    computer: str
    channel: str
    provider: str
    id: int
    level: int
    record: int
    time: datetime.datetime
    user_sid: str
    process_id: int
    data: dict
    log: str
    # The number of the record in its log.
    number: int
    # The place of the record in the case: logs by time, then by the number of the event.
    place: tuple = ()
    # The logs that have the record, and its numbers there: a log can have it twice.
    logs: list = dataclasses.field(default_factory=list)

    def get(self, *names):
        """The first value among some fields. An empty value or a hyphen is none."""
        return next((self.data[name] for name in names if self.data.get(name, "") not in ("", "-")), None)

    def is_a(self, provider, *ids):
        return self.provider == provider and self.id in ids

    def is_in(self, provider, *ids):
        """Whether the record is of a kind, and in the log that the kind belongs to."""
        return self.is_a(provider, *ids) and (self.channel or LOGS[provider]).lower() == LOGS[provider]


def text_of(value):
    return "" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def fields_of(element):
    """The fields of EventData, or of the one element in UserData. Those without a name are param1, param2, …"""
    fields = {}
    for name, value in (element or {}).items():
        if name == "#attributes":
            continue
        if isinstance(value, dict) and "#text" in value:
            value = value["#text"]
        if name == "Data":
            fields.update({f"param{at}": text_of(item) for at, item in enumerate(value if isinstance(value, list) else [value], 1)})
        else:
            fields[name] = json.dumps(value) if isinstance(value, (dict, list)) else text_of(value)
    return fields


def event_of(log, record):
    event = json.loads(record["data"])["Event"]
    system = event["System"]

    def attribute(element, name):
        return ((system.get(element) or {}).get("#attributes") or {}).get(name)

    # A time of 0, and the SID S-0-0, are those that nobody set.
    time, user_sid = datetime.datetime.fromisoformat(attribute("TimeCreated", "SystemTime")[:26].rstrip("Z")), attribute("Security", "UserID")
    event_id = system["EventID"]["#text"] if isinstance(system["EventID"], dict) else system["EventID"]
    user_data = event.get("UserData")
    # UserData is usually one element, which has the fields.
    elements = [value for name, value in (user_data or {}).items() if name != "#attributes"]
    content = elements[0] if len(elements) == 1 and isinstance(elements[0], dict) else user_data if elements else event.get("EventData")
    return Event(
        computer=system.get("Computer"), channel=text_of(system["Channel"]) if "Channel" in system else None, provider=attribute("Provider", "Name"), id=int(event_id),
        level=None if system.get("Level") is None else int(system["Level"]), record=int(system["EventRecordID"]),
        time=None if time.year == 1601 else time, user_sid=None if user_sid == "S-0-0" else user_sid,
        process_id=number_of(attribute("Execution", "ProcessID")), data=fields_of(content) if isinstance(content, dict) else {}, log=str(log),
        number=record["event_record_id"],
    )  # fmt: skip


def read(log):
    """The events of a log that the parser can read."""
    try:
        records = iter(evtx.PyEvtxParser(str(log)).records_json())
    except (RuntimeError, OSError):
        return
    while True:
        try:
            record = next(records)
        except StopIteration:
            return
        except (RuntimeError, OSError):
            continue
        try:
            yield event_of(log, record)
        except (AttributeError, KeyError, TypeError, ValueError):
            # The parser reads records of damaged chunks too, which can have any content.
            continue


def case(events):
    """The events of a case in the order of their records, without those of copies."""
    starts = collections.defaultdict(list)
    for event in events:
        starts[event.log].append(event.time or datetime.datetime.min)
    # A record whose time is broken does not move its log.
    starts = {log: statistics.median_low(times) for log, times in starts.items()}
    found = {}
    for event in sorted(events, key=lambda event: (starts[event.log], event.log, event.number)):
        event.place = (starts[event.log], event.record)
        # A copy says the same.
        says = (event.provider, event.id, event.user_sid, event.level, event.process_id, tuple(sorted(event.data.items())))
        first = found.setdefault((event.computer, event.channel, event.record, event.time, says), event)
        first.logs.append((event.log, event.number))
    return list(found.values())


def logs_of(events):
    """The times of the events of each log, by how the numbers of its records differ from those of their events."""
    times = collections.defaultdict(lambda: collections.defaultdict(list))
    for event in events:
        for log, number in event.logs:
            times[event.computer, log][event.record - number].append(event.time)
    return times


def is_usual(shift, times):
    """Whether most numbers of a log differ by this."""
    return len(times[shift]) * 2 > sum(map(len, times.values()))


def in_order(events):
    """The events in the order of their records: logs by their median time, then by the number of the event."""
    found = logs_of(events)
    medians = {log: statistics.median_low(itertools.chain(*times.values())) for log, times in found.items()}

    def place(event):
        logs = [(event.computer, log) for log, _ in event.logs]
        own = [log for log in logs if is_usual(0, found[log])]
        return min(medians[log] for log in own or logs), event.record, event.time

    return sorted(events, key=place)


def contested(events):
    """The events whose place another one claims: the number and the channel, in a log of the same time. Of a log that does not have the
    numbers of its events, or most moved as in an export, only the event's own time counts, as it does for the other records."""
    logs, found = logs_of(events), set()

    def span(event):
        places = [(event.record - number, logs[event.computer, log]) for log, number in event.logs]
        times = [time for shift, times in places if is_usual(shift, times) for time in times[shift]]
        return (min(times), max(times)) if times else (event.time, event.time)

    claims = collections.defaultdict(list)
    for event in events:
        claims[event.computer, event.channel and event.channel.lower(), event.record].append(event)
    for same in claims.values():
        for one, other in itertools.permutations(same, 2) if len(same) > 1 else ():
            if span(one)[0] <= span(other)[1] and span(other)[0] <= span(one)[1]:
                found.add(id(one))
    return found


def full_name(domain, name):
    return name if domain in (None, "", "-") else f"{domain}\\{name}"


# ---- evtx_accounts

# Other events have the name of a computer in the field for the domain.
NAMING = {
    SECURITY: {4624, 4634, 4647, 4648, 4672, 4688, 4720, 4722, 4723, 4724, 4725, 4726, 4738, 4741, 4742, 4768, 4781, 4798, 4799, 5145, 5379},
    "Microsoft-Windows-Eventlog": {1102},
    "User32": {1074},
}


def names_in(event):
    """What an event says about names: SID, domain, name, time, and whether the name has changed."""
    data = event.data
    target = data.get("TargetUserSid", data.get("TargetSid"))
    if event.id == 1074:
        *domain, name = data.get("param7", "").split("\\")
        yield event.user_sid, domain[-1] if domain else None, name, event.time, None
    elif event.id == 4781:
        yield target, data.get("TargetDomainName"), data.get("OldTargetUserName"), event.time - MICROSECOND, event.time - MICROSECOND
        yield target, data.get("TargetDomainName"), data.get("NewTargetUserName"), event.time, event.time
    else:
        yield data.get("SubjectUserSid"), data.get("SubjectDomainName"), data.get("SubjectUserName"), event.time, None
        yield target, data.get("TargetDomainName"), data.get("TargetUserName"), event.time, None


def accounts(events):
    found = collections.defaultdict(list)
    for event in events:
        if event.id in NAMING.get(event.provider, ()):
            for sid, domain, name, time, changed in names_in(event):
                # Fixed SIDs have one number, as S-1-5-18.
                if sid and re.match(r"S-1-\d+-.*-", sid) and not sid.startswith("S-1-5-32-") and name not in (None, "", "-"):
                    found[event.computer, sid, name.lower(), changed].append((time, full_name(domain, name)))
    for (computer, sid, _, changed), uses in found.items():
        spellings = sorted({name for _, name in uses}, key=lambda name: ("\\" not in name, "." in name.split("\\")[0], name))
        yield {
            "computer": computer, "user_sid": sid, "user_name": spellings[0], "first_seen": min(time for time, _ in uses),
            "last_seen": max(time for time, _ in uses), "is_renamed": changed is not None,
        }  # fmt: skip


class Names:
    """Names SIDs by the accounts of a case."""

    def __init__(self, events, sid_name):
        self.known, self.sid_name = collections.defaultdict(list), functools.cache(sid_name)
        for row in sorted(accounts(events), key=lambda row: (row["first_seen"], row["user_name"])):
            self.known[row["user_sid"]].append(row)

    def name(self, sid, computer, time):
        """The name of a SID at a time on a computer, or else on another one."""
        rows = self.known.get(sid, [])
        if len({row["user_name"].lower() for row in rows}) == 1:
            return min(row["user_name"] for row in rows)
        for some in ([row for row in rows if row["computer"] == computer], rows):
            before = [row for row in some if row["first_seen"] <= time]
            if before or some:
                return (before[-1] if before else some[0])["user_name"]
        # NT SERVICE is the name of many accounts, and so of none.
        name = sid and self.sid_name(sid)
        return name if name and name != self.sid_name(sid + "-0") else sid


# ---- evtx_logons

LOGON_TYPES = {
    2: "Interactive", 3: "Network", 4: "Batch", 5: "Service", 7: "Unlock", 8: "Network, password in clear", 9: "New credentials", 10: "Remote Desktop",
    11: "Cached credentials", 12: "Remote Desktop, cached credentials", 13: "Unlock, cached credentials",
}  # fmt: skip


def without_mapping(address):
    return address[7:] if address and address.lower().startswith("::ffff:") else address


def logons(events):
    chains = collections.defaultdict(list)
    events = in_order([event for event in events if event.is_in(SECURITY, 4624, 4634, 4647, 4672)])
    claimed = contested(events)
    for event in events:
        logon_id = event.data.get("TargetLogonId", event.data.get("SubjectLogonId"))
        sid = event.data.get("TargetUserSid", event.data.get("SubjectUserSid")) or ""
        if logon_id is None and (event.id != 4624 or sid in ("S-1-5-18", "S-1-5-19", "S-1-5-20")):
            continue
        if (logon_id or "").lower() in ("0x3e7", "0x3e5", "0x3e4") or sid.startswith(("S-1-5-90-", "S-1-5-96-")):
            continue
        chains[event.computer, logon_id and logon_id.lower(), sid].append(event)
    for (computer, logon_id, _), chain in chains.items():
        for session in sessions(chain):
            yield logon_row(computer, logon_id, session) | {"contested": any(id(event) in claimed for event in session)}


def sessions(chain):
    """The events with a logon ID in the order of their records, told apart by session."""
    found, waiting = [[]], []
    for at, event in enumerate(chain):
        if event.id == 4624:
            found.append([*waiting, event])
            waiting = []
        elif event.id == 4672 and is_of_next(found[-1], event, next((other for other in chain[at + 1 :] if other.id != 4672), None)):
            waiting.append(event)
        else:
            found[-1].append(event)
    return filter(None, found)


def is_of_next(session, event, after):
    """Whether privileges belong to the next logon: no session is open, or that logon is nearer and at most a second later."""
    if after is None or after.id != 4624:
        return False
    last = next((other for other in reversed(session) if other.id != 4672), None)
    if last is None or last.id != 4624:
        return True
    return after.time - event.time <= SECOND and after.time - event.time < event.time - last.time


def logon_row(computer, logon_id, session):
    def first(*ids):
        return min((event.time for event in session if event.id in ids), default=None)

    def value(name):
        return next((event.data[name] for event in session if name in event.data), None)

    def known(name):
        return next(filter(None, (event.get(name) for event in session)), None)

    # 4672 names the account as the subject.
    start, logon_time, logoff_time = session[0].data, first(4624), first(4634, 4647)
    name, domain, sid = (start.get(f"Target{what}", start.get(f"Subject{what}")) for what in ("UserName", "DomainName", "UserSid"))
    logon_type = next((int(event.data["LogonType"]) for event in session if event.data.get("LogonType", "").isdigit()), None)
    privileges = value("PrivilegeList")
    return {
        "logon_time": logon_time, "logoff_time": logoff_time, "computer": computer, "user_name": full_name(domain, name), "user_sid": sid, "logon_type": logon_type, "logon_type_name": LOGON_TYPES.get(logon_type),
        "remote_host": host_of(known("IpAddress"), None), "workstation": known("WorkstationName"), "authentication": value("AuthenticationPackageName"),
        "process": known("ProcessName"), "logon_id": logon_id, "privileges": privileges if privileges is None else re.findall(r"\w+", privileges),
    }  # fmt: skip


# ---- evtx_process_tree


def number_of(text):
    try:
        return int(text, 16) if str(text).lower().startswith("0x") else int(text)
    except (TypeError, ValueError):
        return None


def guid_of(text):
    """A GUID in one form: in braces, in lower case."""
    return text and "{" + text.strip("{}").lower() + "}"


@dataclasses.dataclass
class Process:
    event: Event
    twin: Event
    pid: int
    parent_pid: int
    guid: str
    path: str
    parent_path: str
    boot: int
    end: datetime.datetime = None
    ended_at: int = None
    contested: bool = False
    parent: "Process" = None
    # The last process with the ID of the parent, which may have ended or be another program.
    candidate: "Process" = None
    children: list = dataclasses.field(default_factory=list)

    @property
    def command_line(self):
        return self.value("CommandLine")

    def value(self, *names):
        """The first value that its record has, or else its record of the other log."""
        return next((value for event in (self.event, self.twin) if event for name in names if (value := event.data.get(name))), None)


def process_order(event):
    return (event.computer is None, event.computer or "", event.time, event.record, event.id)


FIXED_SESSIONS = {"S-1-5-18": "0x3e7", "S-1-5-19": "0x3e5", "S-1-5-20": "0x3e4"}


def twins_of(events):
    """Each 4688 that Sysmon logged, too, by the ID of the record of Sysmon, and the records that contradict each other. Both are the only ones that could be."""
    alike = collections.defaultdict(list)
    for event in events:
        if event.is_a(SECURITY, 4688) or event.is_a(SYSMON, 1):
            pid, parent, path = ("ProcessId", "ParentProcessId", "Image") if event.id == 1 else ("NewProcessId", "ProcessId", "NewProcessName")
            alike[event.computer, number_of(event.data.get(pid)), number_of(event.data.get(parent)), event.data.get(path, "").lower()].append(event)
    found, others = [], set()
    for same in alike.values():
        for event in same:
            near = [other for other in same if abs(other.time - event.time) <= SECOND]
            theirs = [other for other in near if other.id == 1]
            if event.id == 4688 and len(theirs) == 1 and len(near) == 2:
                if agree(event, theirs[0]):
                    found.append((event, theirs[0]))
                else:
                    others |= {id(event), id(theirs[0])}
    uses = collections.Counter(id(other) for _, other in found)
    return {id(other): event for event, other in found if uses[id(other)] == 1}, others


def agree(event, other):
    """Whether a 4688 and a record of Sysmon have one user, parent and command line."""
    (sid, user), their_user = user_of(event), other.get("User")
    is_same = user is None or their_user is None or user.lower() == their_user.lower()
    domain = re.split(r"[^A-Z]", their_user.split("\\")[0]) if their_user and "\\" in their_user else []
    is_same |= "NT" in domain and FIXED_SESSIONS.get(sid, "") == other.data.get("LogonId", "-").lower()
    is_same &= len({path.lower() for path in (event.get("ParentProcessName"), other.get("ParentImage")) if path}) < 2
    return is_same and len({line.strip() for line in (event.data.get("CommandLine"), other.data.get("CommandLine")) if line}) < 2


def processes(events):
    """The processes in the order of their starts, with ends and parents."""
    events = sorted(
        (event for event in events
         if event.is_in(SECURITY, 4688, 4689) or event.is_in(SYSMON, 1, 5) or event.is_in(KERNEL, 12)),
        key=process_order)  # fmt: skip
    (twins, others), claimed = twins_of(events), contested(events)
    merged = {id(event) for event in twins.values()}
    found, last, last_of_guid, boots = [], {}, {}, collections.Counter()
    for at, event in enumerate(events):
        data = event.data
        if event.provider not in (SECURITY, SYSMON):
            boots[event.computer] += 1
            continue
        if id(event) in merged:
            continue
        pid = number_of(data.get("NewProcessId", data.get("ProcessId")))
        key = (event.computer, boots[event.computer], pid)
        if key in last and last[key].ended_at is None:
            last[key].contested |= id(event) in claimed
        if event.id in (4689, 5):
            if key in last and last[key].ended_at is None:
                last[key].end, last[key].ended_at = event.time, at
            continue
        twin = twins.get(id(event))
        process = Process(event, twin, pid, number_of(data.get("ParentProcessId" if event.id == 1 else "ProcessId")), guid_of(data.get("ProcessGuid")),
                          data.get("NewProcessName", data.get("Image")), None, boots[event.computer],
                          contested=id(event) in claimed or id(twin) in claimed or id(event) in others)  # fmt: skip
        process.parent_path = next((path for one in (event, twin) if one and (path := one.get("ParentProcessName") or one.get("ParentImage"))), None)
        by_guid = last_of_guid.get((event.computer, guid_of(data.get("ParentProcessGuid"))))
        process.candidate = parent = by_guid or last.get((event.computer, process.boot, process.parent_pid))
        is_named = not (parent and parent.path and process.parent_path) or process.parent_path.lower() == parent.path.lower()
        if parent and is_named and (by_guid or parent.ended_at is None):
            process.parent = parent
            parent.children.append(process)
        found.append(process)
        last[key] = process
        if process.guid:
            last_of_guid[event.computer, process.guid] = process
    claimed = {id(process) for process in found if process.contested}
    for process in found:
        process.contested |= id(process.candidate) in claimed
    return found


def process_tree(events, names):
    order, rest = [], []
    found = processes(events)

    def walk(process):
        stack = [(process, 0)]
        while stack:
            process, depth = stack.pop()
            (order if depth <= 50 else rest).append((process, depth if depth <= 50 else None))
            stack.extend((child, depth + 1) for child in reversed(process.children))

    for process in found:
        if process.parent is None:
            walk(process)
    rest.sort(key=lambda pair: found.index(pair[0]))
    for place, (process, depth) in enumerate(order + rest, 1):
        event, parent, data = process.event, process.parent, process.event.data
        yield {
            "tree_order": place, "time_created": event.time, "end_time": process.end, "computer": event.computer, "depth": depth,
            "tree": None if depth is None or process.path is None else ". " * depth + process.path.split("\\")[-1], "process": process.path,
            "command_line": process.command_line, "user_name": process_user(event, names) or process.twin and process_user(process.twin, names), "pid": process.pid, "parent_pid": process.parent_pid,
            "parent_process": parent.path if parent and parent.path is not None else process.parent_path,
            "parent_command_line": parent and parent.command_line,
            "logon_id": (lambda value: value and value.lower())(process.value("LogonId", "SubjectLogonId")), "hashes": data.get("Hashes"),
            "process_guid": process.guid, "event_ids": [1, 4688] if process.twin else [event.id], "contested": process.contested,
        }  # fmt: skip


def process_user(event, names):
    """Who started it. In 4688, the target is who it runs as, if that is somebody else."""
    if event.id == 1:
        return event.get("User")
    sid, name = user_of(event)
    return name or (sid and names.name(sid, event.computer, event.time))


def user_of(event):
    """The SID and the name in a 4688."""
    for who in ("Target", "Subject"):
        sid = event.get(f"{who}UserSid")
        if name := event.get(f"{who}UserName"):
            return sid, full_name(event.data.get(f"{who}DomainName"), name)
        if sid and sid != NOBODY:
            return sid, None
    return None, None


# ---- evtx_script_blocks


def script_blocks(events, decode):
    # The texts of each part, each with the first event that has it. A part without a number of its script is alone.
    blocks = collections.defaultdict(lambda: collections.defaultdict(dict))
    events = [event for event in events if event.provider in ("Microsoft-Windows-PowerShell", "PowerShellCore") and event.id == 4104]
    claimed = contested(events)
    for event in events:
        script, total, path = event.data.get("ScriptBlockId"), number_of(event.data.get("MessageTotal")), event.data.get("Path") or None
        own = (event.record, event.time) if script is None else None
        number = number_of(event.data.get("MessageNumber"))
        stray = None if number and total and number <= total else (event.data.get("MessageNumber"),)
        texts = blocks[event.computer, event.channel and event.channel.lower(), event.provider, event.user_sid, event.process_id, event.level, script, own, total, path, stray][number]
        texts.setdefault(event.data.get("ScriptBlockText"), []).append(event)
    first = lambda text: (*min((event.time, event.record) for event in text[1]), text[0] or "")
    for (computer, _, _, user_sid, process_id, level, script, _, total, path, stray), numbers in blocks.items():
        ordered = {number: sorted(texts.items(), key=first) for number, texts in numbers.items()}
        for version in range(max(map(len, ordered.values()))):
            parts = {number: texts[version] for number, texts in ordered.items() if version < len(texts)}
            records = [min(event.record for event in events) for _, events in parts.values()]
            is_contested = stray is not None or any(len(ordered[number]) > 1 for number in parts) or len(set(records)) < len(records)
            # PowerShell logs a part once.
            is_contested |= any(len(events) > 1 or id(event) in claimed for _, events in parts.values() for event in events)
            text = "".join(text for _, (text, _) in sorted(parts.items(), key=lambda part: part[0] or 0) if text is not None)
            found = [decode(encoded) for encoded in re.findall(r"[A-Za-z0-9+/]{24,}={0,2}", text)]
            yield {
                "time_created": min(event.time for _, events in parts.values() for event in events), "computer": computer, "user_sid": user_sid, "process_id": process_id,
                "script_block_id": script, "path": path, "is_suspicious": level == 3, "contested": is_contested,
                "parts": total, "missing_parts": None if total is None else total - (len(parts) if stray is None else 0), "text": text, "decoded": [one for one in found if one is not None],
            }  # fmt: skip


# ---- evtx_timeline


class Fields:
    """The table that says which field each column of the time line comes from."""

    def __init__(self, rows):
        self.rows = {}
        for provider, ids, account, domain, remote_host, process, _ in rows:
            for event_id in ids:
                self.rows[provider, event_id] = [names.split("|") if names else [] for names in (account, domain, remote_host, process)]

    def of(self, event):
        # Each instance of SQL Server is a provider.
        provider = "MSSQLSERVER" if (event.provider or "").startswith("MSSQL$") else event.provider
        return self.rows.get((provider, event.id), [[], [], [], []])


def computed(event, name):
    """A value that the table calls @name: from several fields, or from a text in one."""
    data = event.data

    def found(pattern, field, flags=0):
        match = re.search(pattern, data.get(field, ""), flags)
        return match and next(filter(None, match.groups()), "")

    match event.provider, name:
        case "Microsoft-Windows-Security-Auditing", "@remote":
            return data.get("SourceAddress" if data.get("Direction") == "%%14592" else "DestAddress")
        case _, "@remote":
            return data.get("SourceIp" if data.get("Initiated") == "false" else "DestinationIp")
        case _, "@url":
            return found(r"^[^:/?#]+://(?:[^/?#\\]*@)?(\[[^\]]*\]|[^/?#\\:]*)", "url" if "url" in data else "RemoteName")
        case _, "@client":
            if event.provider == "OpenSSH":
                # The client chooses the name before the address, and the reason after it.
                return found(r"^(?:Received disconnect|Disconnected|Connection(?: closed| reset)?) (?:from|by) (\S+) port \d+|^.* (\S+) port \d+", "payload")
            return found(r"^\s*\[CLIENT: ([^\]]*)\]", "param3" if "param3" in data else "param2")
        case "OpenSSH", "@user":
            return found(r"^(?:Failed|Accepted|Postponed|Partial) \S+ for (?:invalid user )?(.*) from \S+ port|^Invalid user (.*) from \S+ port| user (\S+) \S+ port", "payload")
        case _, "@user" if event.id == 33205:
            return found(r"^session_server_principal_name:([^\r\n]*)", "param1", re.MULTILINE)
        case "Microsoft-Windows-User Profiles Service", "@user":
            return found(r"\\Users\\([^\\]*)$", "LocalPath", re.IGNORECASE)
        case "User32", "@program":
            # The name of the machine follows.
            return re.sub(r" \([^()]*\)$", "", data.get("param1", ""))
        case "Windows Error Reporting", "@program":
            return found(r"^(.*\.exe)$", "param6", re.IGNORECASE)
        case "PowerShell", "@user":
            return found(r"^\s*UserId=([^\r\n]*)", "param2" if event.id == 800 else "param3", re.MULTILINE)
        case "PowerShell", "@program":
            # A command line can have several lines.
            return found(r"^\s*HostApplication=(.*?)(?:\r?\n\s*EngineVersion=|\s*\Z)", "param2" if event.id == 800 else "param3", re.MULTILINE | re.DOTALL)
        case _, "@user":
            return found(r"^\s*User = ([^\r\n]*)", "ContextInfo", re.MULTILINE)
        case _, "@program":
            return found(r"^\s*Host Application = ([^\r\n]*)", "ContextInfo", re.MULTILINE)


def value_of(event, name):
    value = computed(event, name) if name.startswith("@") else event.data.get(name)
    return value if value not in (None, "", "-") else None


def timeline(events, names, fields):
    for event in events:
        accounts, domains, hosts, programs = fields.of(event)
        name, sid = timeline_user(event, accounts, domains)
        yield {
            "computer": event.computer, "channel": event.channel, "event_id": event.id, "provider": event.provider, "record_id": event.number,
            "filename": event.log, "time_created": event.time, "user_name": name or names.name(sid, event.computer, event.time), "user_sid": None if sid == NOBODY else sid,
            "remote_host": host_of(next((host for host in (value_of(event, host) for host in hosts) if host not in (None, "0.0.0.0", "::") and (event.provider != SESSIONS or is_address(host))), None), event.computer),
            "process": next((path for path in (value_of(event, program) for program in programs) if path and not path.startswith("{")), None),
        }  # fmt: skip


def timeline_user(event, accounts, domains):
    """The name and the SID of who logged on, who caused the event, or else whose program wrote it."""

    def sid_next_to(field):
        found = [event.get(field.replace("UserName", "UserSid")), event.get(field.replace("UserName", "Sid"))]
        return next((sid for sid in found if sid and sid.startswith("S-1-")), None)

    for at, field in enumerate(accounts):
        value = value_of(event, field)
        # Some events have NULL in place of a SID.
        if value and (not field.endswith("Sid") or value.startswith("S-1-")):
            if value.startswith("S-1-"):
                return None, value
            domain = event.data.get(domains[at]) if at < len(domains) else None
            # The account of 4769 repeats the domain.
            if domain not in (None, "", "-"):
                value = full_name(domain, value.split("@")[0] if event.id == 4769 else value)
            return value, sid_next_to(field)
    for field in accounts:
        if (sid := sid_next_to(field)) and sid != NOBODY:
            return None, sid
    # Sysmon is a service.
    return None, None if event.provider == SYSMON else event.user_sid


def host_of(host, computer):
    """An address or a name in one form; none for this machine, and for values that name no machine."""
    host = (host or "").lstrip("\\")
    if found := re.fullmatch(r"\[([^\]]*)\](?::\d+)?|([^:]*):\d+", host):
        host = found[1] or found[2]
    host = without_mapping(host)
    if found := re.fullmatch(r"([^:]*):\d+", host):
        host = found[1]
    own = (computer or "").lower()
    nothing = ("", "-", "null", "localhost", "local", "::", "::1", "0.0.0.0", own, own.split(".")[0])
    return None if host.lower() in nothing or re.match(r"127(\.\d+){3}$|localhost \(|<", host, re.IGNORECASE) else host


# ---- evtx_case_summary

DAY, MINUTE = datetime.timedelta(days=1), datetime.timedelta(minutes=1)
EVENTLOG, KERNEL, SERVICES = "Microsoft-Windows-Eventlog", "Microsoft-Windows-Kernel-General", "Service Control Manager"
SESSIONS, CONNECTIONS = "Microsoft-Windows-TerminalServices-LocalSessionManager", "Microsoft-Windows-TerminalServices-RemoteConnectionManager"
GATEWAY, RDP, TASKS = "Microsoft-Windows-TerminalServices-Gateway", "Microsoft-Windows-RemoteDesktopServices-RdpCoreTS", "Microsoft-Windows-TaskScheduler"
ACCOUNT_CHANGES = (4720, 4722, 4723, 4724, 4725, 4726, 4728, 4729, 4732, 4733, 4738, 4740, 4741, 4756, 4757, 4767, 4781)


def broken(events):
    """The records whose time is far from that of the two before and the two after them in their log, while the neighbours are close to each
    other. Not only the neighbours: around a long pause, the last record of before it can come after the first of after it."""
    logs, far, found = collections.defaultdict(list), datetime.timedelta(days=30), set()
    for event in events:
        logs[event.log].append(event)
    for log in logs.values():
        log.sort(key=lambda event: event.number)
        for at in range(1, len(log) - 1):
            around = log[max(0, at - 2) : at] + log[at + 1 : at + 3]
            if abs(log[at + 1].time - log[at - 1].time) <= far and all(abs(log[at].time - event.time) > far for event in around):
                found.add(id(log[at]))
    return found


def machines(events):
    """The machine of an event: the last name in its log, followed through other logs. Earlier names do not count, because machines of one
    image have the same. A log whose records have numbers of their own has what other machines forwarded."""
    logs = collections.defaultdict(list)
    for event in events:
        logs[event.log].append(event)
    own = {log: found for log, found in logs.items() if all(event.record == event.number for event in found)}
    last = {log: max(found, key=lambda event: event.number).computer for log, found in own.items()}
    ends = sorted((max(event.time for event in found), last[log], {event.computer for event in found}) for log, found in own.items())

    def final(name):
        later = next((end for _, end, names in reversed(ends) if name in names), name)
        return name if later == name else final(later)

    return lambda event: final(last.get(event.log, event.computer))


class Summary:
    """The row of a machine."""

    def __init__(self, events, placed, created, names, word):
        # Each event once, all events whose time is not broken, and the accounts that any machine created.
        self.events, self.placed, self.created, self.names_of_sids, self.word = events, placed, created, names, word
        self.own = {event.computer.lower().split(".")[0] for event in events}

    def row(self):
        times = sorted(event.time for event in self.placed)
        spans = collections.defaultdict(list)
        for event in self.placed:
            spans[event.computer].append(event.time)
        names = sorted(({"name": name, "first": min(seen), "last": max(seen)} for name, seen in spans.items()), key=lambda name: (name["first"], name["name"]))
        return {
            "computer": max(names, key=lambda name: name["last"])["name"], "names": names, "first_event": times[0], "last_event": times[-1],
            "logs": len({event.log for event in self.placed}), "time_zones": self.time_zones(), "clock_changes": self.clock_changes(),
            "gaps": [{"start": a, "duration_seconds": (b - a).total_seconds()} for a, b in zip(times, times[1:]) if b - a >= DAY],
            "cleared_logs": ordered({"time": event.time, "log": event.data.get("Channel", "Security"), "user_name": self.user(event)}
                                    for event in self.of(EVENTLOG, 104, 1102)),
            "boots": self.times(KERNEL, 12) or self.times("EventLog", 6005), "unexpected_shutdowns": self.times("EventLog", 6008),
            "account_changes": self.account_changes(), "failed_logons": self.failed_logons(), "new_services": self.new_services(),
            "new_tasks": self.new_tasks(), "remote_logons": self.remote_logons(),
        }  # fmt: skip

    def of(self, provider, *ids):
        return [event for event in self.events if event.is_a(provider, *ids)]

    def times(self, *kind):
        return sorted(event.time for event in self.of(*kind))

    def user(self, event):
        """Who did it: the subject, or else the account of the process that wrote the event."""
        if name := event.get("SubjectUserName", "UserContext"):
            return full_name(event.data.get("SubjectDomainName"), name)
        return self.names_of_sids.name(event.get("SubjectUserSid") or event.user_sid, event.computer, event.time)

    def time_zones(self):
        """Each zone or offset that differs from that before, in the order of the log, because the clock often changes too. A change of the bias
        has no name: the next name counts, if it fits."""
        told = []
        for event in sorted(self.of("EventLog", 6013) + self.of(KERNEL, 22), key=lambda event: event.place):
            found = re.match(r"(-?\d+)(?: (.+))?$", event.data.get("param7", event.data.get("NewBias", "")))
            if found:
                told.append((event.time, datetime.timedelta(minutes=-int(found[1])), found[2]))
        rows = []
        for at, (time, bias, name) in enumerate(told):
            after = next((other for _, _, other in told[at:] if other), None)
            if name is None and self.offset(after, time) == bias:
                name = after
            offset = self.offset(name, time)
            row = {"time": time, "zone": name and self.word("evtx_time_zone", name), "windows_zone": name, "utc_offset_seconds": (bias if offset is None else offset).total_seconds()}
            if not rows or (row["windows_zone"] or row["utc_offset_seconds"]) != (rows[-1]["windows_zone"] or rows[-1]["utc_offset_seconds"]):
                rows.append(row)
        return rows

    def offset(self, name, time):
        zone = name and self.word("evtx_time_zone", name)
        return zone and time.replace(tzinfo=datetime.timezone.utc).astimezone(zoneinfo.ZoneInfo(zone)).utcoffset()

    def clock_changes(self):
        wakes = [wake for event in self.of("Microsoft-Windows-Power-Troubleshooter", 1) if (wake := moment(event.data.get("WakeTime")))]
        rows = []
        for event in self.of(SECURITY, 4616) + self.of(KERNEL, 1):
            old, new = moment(event.get("OldTime", "PreviousTime")), moment(event.get("NewTime"))
            if old is None or new is None or abs(new - old) < MINUTE or event.data.get("Reason") == "2" or any(abs(wake - new) <= MINUTE for wake in wakes):
                continue
            row = {"time": event.time, "old_time": old, "new_time": new, "moved_seconds": (new - old).total_seconds(), "user_name": self.user(event), "process": event.get("ProcessName")}
            same = next((other for other in rows if other["new_time"] == new), None)
            if same:
                same["time"] = min(same["time"], event.time)
                same["process"] = same["process"] or row["process"]
            else:
                rows.append(row)
        return ordered(rows)

    def account_changes(self):
        rows = []
        for event in self.of(SECURITY, *ACCOUNT_CHANGES):
            # Windows Setup renames groups to the name that they have.
            if event.id == 4781 and event.data.get("OldTargetUserName") == event.data.get("NewTargetUserName"):
                continue
            member = event.get("MemberSid")
            detail = event.get("NewTargetUserName")
            if member:
                name = self.names_of_sids.name(member, event.computer, event.time)
                detail = name if member in self.names_of_sids.known else event.get("MemberName") or name
            # The domain of 4740 is the machine that tried the passwords.
            domain = None if event.id == 4740 else event.data.get("TargetDomainName")
            rows.append({"time": event.time, "event": self.word("evtx_event_name", SECURITY, event.id),
                         "account": full_name(domain, event.get("TargetUserName", "OldTargetUserName")), "detail": detail, "user_name": self.user(event)})  # fmt: skip
        return ordered(rows)

    def installs(self, first, second, name_of):
        """The events of a kind, each with that of another log about the same, at most 5 seconds apart."""
        found, others = [], list(second)
        for event in sorted(first, key=lambda event: event.time):
            near = [other for other in others if name_of(other) == name_of(event) and abs(other.time - event.time) <= 5 * SECOND]
            if near:
                others.remove(near[0])
            found.append((event, near[0] if near else None))
        return found + [(None, other) for other in others]

    def new_services(self):
        pairs = self.installs(self.of(SECURITY, 4697), self.of(SERVICES, 7045), lambda event: event.data.get("ServiceName"))
        return ordered({
            "time": min(event.time for event in pair if event), "service": (pair[0] or pair[1]).data.get("ServiceName"),
            "path": (pair[1] or pair[0]).get("ImagePath", "ServiceFileName"), "user_name": self.user(pair[0] or pair[1])} for pair in pairs)  # fmt: skip

    def new_tasks(self):
        pairs = self.installs(self.of(SECURITY, 4698), self.of(TASKS, 106), lambda event: event.data.get("TaskName"))
        return ordered({
            "time": min(event.time for event in pair if event), "task": (pair[0] or pair[1]).data.get("TaskName"), "user_name": self.user(pair[0] or pair[1])}
            for pair in pairs)  # fmt: skip

    def source(self, event):
        """The other machine: an address, or else a name."""
        # The client chooses the name before its address.
        found = re.match(r".* from (\S+) port \d+", event.data.get("payload", "")) or re.match(r"\s*\[CLIENT: ([^<\]]+)", event.data.get("param3", event.data.get("param2", "")))
        fields = ("IpAddress", "Address", "ClientAddress", "IPString", "Param3", "WorkstationName", "Workstation", "ClientName")
        for host in [found and found[1], *(event.data.get(name) for name in fields)]:
            host = (host or "").strip().lstrip("\\")
            if address := re.fullmatch(r"\[([^\]]*)\](?::\d+)?|([^:]*):\d+", host):
                host = address[1] or address[2]
            host = without_mapping(host)
            here = host.lower() in ("", "-", "0.0.0.0", "::", "::1", "local", "localhost") or host.startswith("127.") or host.lower().split(".")[0] in self.own
            # Windows translates LOCAL.
            if not here and (event.provider != SESSIONS or is_address(host)):
                return host
        return None

    def failures(self):
        """Failed logons: time, account, source and reason. A failure that several events tell of counts once."""
        found = []
        for event in self.events:
            status, sub_status, account = event.get("Status"), event.get("SubStatus"), event.get("TargetUserName")
            if event.is_a(SECURITY, 4625):
                reason = self.word("evtx_status", sub_status if number_of(sub_status) else status)
            elif event.is_a(SECURITY, 4776) and number_of(status):
                reason = self.word("evtx_status", status)
            elif event.is_a(SECURITY, 4771) or event.is_a(SECURITY, 4768) and number_of(status):
                reason = self.word("evtx_kerberos_failure", status)
            elif event.is_a(RDP, 140):
                reason, account = "user name or password is not correct", None
            elif event.is_a("OpenSSH", 4) and (text := re.match(r"Failed \S+ for (invalid user )?(.*) from ", event.data.get("payload", ""))):
                reason, account = "Invalid user" if text[1] else "Failed password", text[2]
            elif (event.provider or "").startswith("MSSQL") and event.id == 18456:
                text = re.search(r"Reason: (.*?)\s*(?:\[|$)", event.data.get("param2", ""))
                reason, account = text and text[1], event.data.get("param1")
            else:
                continue
            found.append((event.time, account, self.source(event), reason, event.id))
        found.sort(key=lambda failure: failure[0])

        def runs(failures):
            """Failures at most two seconds apart."""
            run = []
            for failure in failures:
                if run and failure[0] - run[-1][0] > 2 * SECOND:
                    yield run
                    run = []
                run.append(failure)
            if run:
                yield run

        kept, of_account = [], collections.defaultdict(list)
        # Each 4625 is one of the 140, which name no account.
        for run in runs([failure for failure in found if failure[4] in (140, 4625)]):
            logons = sum(failure[4] == 4625 for failure in run)
            kept += [failure for failure in run if failure[4] == 140][logons:]
        for failure in found:
            if failure[4] != 140:
                of_account[bare(failure[1] or "")].append(failure)
        for failures in of_account.values():
            for run in runs(failures):
                # As many failures as the most frequent event tells of, and those from other addresses.
                def rank(event_id, run=run):
                    own = [failure for failure in run if failure[4] == event_id]
                    return -len(own), -sum(failure[2] is not None for failure in own), event_id != 4625, event_id

                best = min({failure[4] for failure in run}, key=rank)
                sources = {failure[2] for failure in run if failure[4] == best}
                has_address = any(source and is_address(source) for source in sources)
                kept += [failure for failure in run if failure[4] == best or has_address and failure[2] and is_address(failure[2]) and failure[2] not in sources]
        return sorted((failure[:4] for failure in kept), key=lambda failure: failure[0])

    def successes(self):
        for event in self.events:
            text = re.match(r"Accepted \S+ for (.*) from ", event.data.get("payload", "")) if event.is_a("OpenSSH", 4) else None
            if event.is_a(GATEWAY, 302) or event.is_a(SESSIONS, 21, 25) or event.is_a(SECURITY, 4778):
                yield event.time, bare(event.get("Username", "Param1", "User", "AccountName")), self.source(event)
            elif event.is_a(SECURITY, 4624) or event.is_a(SECURITY, 4776, 4768) and number_of(event.data.get("Status")) == 0:
                yield event.time, event.get("TargetUserName"), self.source(event)
            elif text:
                yield event.time, text[1], self.source(event)
            elif (event.provider or "").startswith("MSSQL") and event.id in (18453, 18454):
                yield event.time, event.data.get("param1"), self.source(event)

    def failed_logons(self):
        sources = collections.defaultdict(list)
        for failure in self.failures():
            sources[failure[2]].append(failure)
        successes, rows = sorted(self.successes(), key=lambda success: success[0]), []
        for source, failures in sources.items():
            counts = collections.Counter(bare(account) for _, account, _, _ in failures if account)
            first = {}
            for time, account, _, _ in failures:
                first.setdefault(bare(account), time)
            nobody = min((time for time, account, _, _ in failures if not account), default=None)
            success = next(((time, account) for time, account, origin in successes if (origin or "").lower() == (source or "").lower() and account
                            and (time > first.get(bare(account), time) or nobody and time > nobody)), None)  # fmt: skip
            reasons = collections.Counter(reason for *_, reason in failures)
            minutes = collections.Counter(time.replace(second=0, microsecond=0) for time, *_ in failures)
            rows.append({
                "source": source, "account": {name for name, count in counts.items() if count == max(counts.values())} or {None, ""}, "accounts": len(counts),
                "failures": len(failures), "reasons": [{"reason": reason, "failures": count} for reason, count in sorted(reasons.items(), key=lambda pair: (-pair[1], pair[0] or ""))],
                "most_in_a_minute": max(minutes.values()), "first": failures[0][0], "last": failures[-1][0],
                "success": success and {"time": success[0], "account": {bare(success[1])}},
            })  # fmt: skip
        return sorted(rows, key=lambda row: (-row["failures"], row["source"] is not None, row["source"]))

    def remote_logons(self):
        network, desktop, linked = [], collections.defaultdict(list), {}
        for event in sorted(self.events, key=lambda event: (event.time, event.record)):
            logon_type, account = event.data.get("LogonType"), event.get("TargetUserName", "AccountName", "User", "Username", "Param1")
            if event.is_a(SECURITY, 4624):
                kind = {"10": "RemoteInteractive", "12": "RemoteInteractive", "7": "Reconnect", "13": "Reconnect", "3": "Network", "8": "NetworkCleartext"}.get(logon_type)
            elif event.is_a(SESSIONS, 21) or event.is_a(CONNECTIONS, 1149) or event.is_a(GATEWAY, 302):
                kind = "RemoteInteractive"
            else:
                kind = "Reconnect" if event.is_a(SESSIONS, 25) or event.is_a(SECURITY, 4778) else None
            source = self.source(event)
            # Through a tunnel, Remote Desktop comes from the machine itself.
            is_tunnel = source is None and (event.is_a(CONNECTIONS, 1149) or event.is_a(SECURITY, 4624) and logon_type in ("10", "12"))
            if kind is None or account is None or source is None and not is_tunnel:
                continue
            if kind.startswith("Network") and account.endswith("$") and bare(account) not in self.created:
                continue
            # The two logons of an administrator name each other.
            if event.id == 4624 and number_of(event.data.get("TargetLinkedLogonId")):
                ids = event.data["TargetLogonId"].lower(), event.data["TargetLinkedLogonId"].lower()
                if linked.pop(ids[::-1], None):
                    continue
                linked[ids] = event
            if kind.startswith("Network"):
                network.append((event.time, bare(account), source, kind))
            else:
                desktop[bare(account), source].append((event.time, kind, event.id))
        logons = []
        for (account, source), found in desktop.items():
            groups = []
            for one in found:
                if not groups or one[0] - groups[-1][-1][0] >= MINUTE:
                    groups.append([])
                groups[-1].append(one)
            for group in groups:
                [(most, count)] = collections.Counter(event_id for *_, event_id in group).most_common(1)
                kinds = {kind for _, kind, _ in group}
                kind = "Reconnect" if "Reconnect" in kinds and not any(event_id == 21 for *_, event_id in group) else "RemoteInteractive"
                logons.append((group[0][0], group[-1][0], account, source, kind, count))
                # Each logon can have one of Network Level Authentication. NTLM often knows the name of the other machine only.
                for start in [time for time, _, event_id in group if event_id == most]:
                    before = [one for one in network if one[1] == account and (one[2] == source or not is_address(one[2])) and one[3] == "Network"
                              and 0 * SECOND <= start - one[0] <= 30 * SECOND]  # fmt: skip
                    # It can have two, at once.
                    for one in [one for one in before if before[-1][0] - one[0] <= SECOND]:
                        network.remove(one)
        logons += [(time, time, account, source, kind, 1) for time, account, source, kind in network]
        pairs = collections.defaultdict(list)
        for logon in logons:
            pairs[logon[2:4]].append(logon)
        rows = [
            {"account": {account}, "source": source, "kinds": sorted({logon[4] for logon in found}), "logons": sum(logon[5] for logon in found),
             "first": min(logon[0] for logon in found), "last": max(logon[1] for logon in found)}
            for (account, source), found in pairs.items()
        ]  # fmt: skip
        return sorted(rows, key=lambda row: row["first"])


def bare(account):
    """A name without its domain, in lower case."""
    return account and account.split("\\")[-1].lower()


def is_address(host):
    try:
        return bool(ipaddress.ip_address(host.split("%")[0]))
    except ValueError:
        return False


def moment(text):
    """A time in a field; none if no calendar has it."""
    try:
        return datetime.datetime.fromisoformat(re.sub(r"(\.\d{6})\d*", r"\1", text).rstrip("Z"))
    except (TypeError, ValueError):
        return None


def ordered(rows):
    return sorted(rows, key=lambda row: row["time"])


def case_summary(events, names, word):
    """Rows of all events, those of copies too."""
    known = [event for event in events if event.time and event.computer is not None]
    machine_of, broken_events, rows = machines(known), broken(known), collections.defaultdict(list)
    for event in known:
        rows[machine_of(event)].append(event)
    once = {id(event) for event in case(events)}
    created = {bare(event.get("TargetUserName")) for event in known if event.is_a(SECURITY, 4720)}
    for own in rows.values():
        told = [event for event in own if id(event) not in broken_events]
        row = Summary([event for event in own if id(event) in once], told or own, created, names, word).row()
        row["events"] = len(own)
        row["broken_times"] = [{"log": event.log.split("/")[-1], "record_id": event.number, "time": event.time}
                               for event in sorted(own, key=lambda event: (event.time, event.number)) if id(event) in broken_events & once]  # fmt: skip
        yield row


def log_states(logs):
    """The wrapped and the unused logs of each machine, from the events of each log in the order of the file."""
    events = [event for found in logs.values() for event in found if event.time and event.computer is not None]
    machine_of, states = machines(events), collections.defaultdict(lambda: ([], []))
    writers, folders = collections.defaultdict(collections.Counter), collections.defaultdict(collections.Counter)
    for event in events:
        writers[event.log][machine_of(event)] += 1
        folders[event.log.rpartition("/")[0]][machine_of(event)] += 1
        states[machine_of(event)]
    for log, found in logs.items():
        # A log without records belongs to the machine that wrote most of its folder.
        folder, _, name = log.rpartition("/")
        [(machine, _)] = (writers[log] or folders[folder]).most_common(1) or [(None, 0)]
        numbers = [event.number for event in found]
        if not numbers:
            states[machine][1].append(name)
        elif numbers[0] > 1 or numbers[0] != min(numbers):
            states[machine][0].append(name)
    return states
