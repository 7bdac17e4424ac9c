"""The events of a case, from the JSON of evtx_dump (the evtx crate)."""

import collections
import dataclasses
import datetime
import json
import re
import statistics

import evtx

MICROSECOND = datetime.timedelta(microseconds=1)
SECOND = datetime.timedelta(seconds=1)
SECURITY, SYSMON = "Microsoft-Windows-Security-Auditing", "Microsoft-Windows-Sysmon"
KERNEL = "Microsoft-Windows-Kernel-General"
LOGS = {SECURITY: "security", SYSMON: "microsoft-windows-sysmon/operational", KERNEL: "system", "EventLog": "system"}
NOBODY = "S-1-0-0"


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
        event.logs = []
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


def is_change(event):
    return event.is_a(SECURITY, 4616) or event.is_a(KERNEL, 1)


def full_name(domain, name):
    return name if domain in (None, "", "-") or name is None else f"{domain}\\{name}"


SESSIONS, CONNECTIONS, GATEWAY = (f"Microsoft-Windows-TerminalServices-{part}" for part in ("LocalSessionManager", "RemoteConnectionManager", "Gateway"))


def number_of(text):
    try:
        return int(text, 16) if str(text).lower().startswith("0x") else int(text)
    except (TypeError, ValueError):
        return None


def moment(text):
    """A time in a field; none if no calendar has it."""
    try:
        return datetime.datetime.fromisoformat(re.sub(r"(\.\d{6})\d*", r"\1", text).rstrip("Z"))
    except (TypeError, ValueError):
        return None
