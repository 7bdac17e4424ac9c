"""The rows of evtx_process_tree."""

import collections
import dataclasses
import datetime
import re

from evaluator.clocks import STARTS, Clocks, machines, starts_of
from evaluator.events import KERNEL, NOBODY, SECOND, SECURITY, SYSMON, Event, full_name, is_change, number_of
from evaluator.hosts import is_name_of_windows


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
    """The processes in the order of their starts, with ends and parents. A tree goes on when the machine gets another name."""
    machine_of = machines([event for event in events if event.computer])

    def machine(event):
        return event.computer and machine_of(event)

    own = [event for event in events if event.is_in(SECURITY, 4608, 4616, 4688, 4689, 4826) or event.is_in(SYSMON, 1, 5) or event.is_in(KERNEL, 1, 12) or event.is_in("EventLog", 6005)]
    clocks = Clocks(own, machine)
    events = sorted((event for event in own if not is_change(event)), key=lambda event: (event.computer is None, machine(event) or "", clocks.place(event)))
    (twins, others), claimed = twins_of(events), clocks.contested(events)
    starts = {id(start[0]) for start in starts_of(events, clocks, machine)}
    merged = {id(event) for event in twins.values()}
    found, last, last_of_guid, boots = [], {}, {}, collections.Counter()
    for at, event in enumerate(events):
        data = event.data
        own = machine(event)
        boots[own] += id(event) in starts
        if event.id in STARTS:
            continue
        if id(event) in merged:
            continue
        pid = number_of(data.get("NewProcessId", data.get("ProcessId")))
        key = (own, boots[own], pid)
        if key in last and last[key].ended_at is None:
            last[key].contested |= id(event) in claimed
        if event.id in (4689, 5):
            if key in last and last[key].ended_at is None:
                last[key].end, last[key].ended_at = event.time, at
            continue
        twin = twins.get(id(event))
        process = Process(event, twin, pid, number_of(data.get("ParentProcessId" if event.id == 1 else "ProcessId")), guid_of(data.get("ProcessGuid")),
                          data.get("NewProcessName", data.get("Image")), None, boots[own],
                          contested=id(event) in claimed or id(twin) in claimed or id(event) in others)  # fmt: skip
        process.parent_path = next((path for one in (event, twin) if one and (path := one.get("ParentProcessName") or one.get("ParentImage"))), None)
        by_guid = last_of_guid.get((own, guid_of(data.get("ParentProcessGuid"))))
        process.candidate = parent = by_guid or last.get((own, process.boot, process.parent_pid))
        is_named = not (parent and parent.path and process.parent_path) or process.parent_path.lower() == parent.path.lower()
        if parent and is_named and (by_guid or parent.ended_at is None):
            process.parent = parent
            parent.children.append(process)
        found.append(process)
        last[key] = process
        if process.guid:
            last_of_guid[own, process.guid] = process
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
    name = None if is_name_of_windows(name, sid, event.computer) else name
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
