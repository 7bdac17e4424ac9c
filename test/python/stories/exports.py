"""The forms in which other tools export the events of a story."""

import dataclasses
import json
from collections.abc import Callable
from xml.sax.saxutils import escape, quoteattr


def time_of(row):
    """With seven digits, of which Python keeps six. Before 1970, the last one is none that rounding would change."""
    return f"{row['time_created']:%Y-%m-%dT%H:%M:%S.%f}{7 if row['time_created'].year >= 1970 else 0}Z"


def elements(name, value):
    """An element of UserData."""
    if not isinstance(value, dict):
        return f"<{name}>{escape(str(value))}</{name}>" if value is not None else f"<{name}/>"
    attributes = "".join(f" {key}={quoteattr(text)}" for key, text in value.get("#attributes", {}).items())
    return f"<{name}{attributes}>{''.join(elements(key, item) for key, item in value.items() if key != '#attributes')}</{name}>"


def xml_of(row):
    """An event as wevtutil writes it."""
    data = "".join(f"<Data Name={quoteattr(name)}>{escape(value)}</Data>" for name, value in (row["event_data"] or {}).items())
    content = f"<UserData>{''.join(elements(name, value) for name, value in row['user_data'].items())}</UserData>" if row["user_data"] is not None else f"<EventData>{data}</EventData>"
    user = f"<Security UserID='{row['user_sid']}'/>" if row["user_sid"] else "<Security/>"
    return (f"<Event xmlns='http://schemas.microsoft.com/win/2004/08/events/event'><System><Provider Name={quoteattr(row['provider'])}/><EventID>{row['event_id']}</EventID>"
            f"<Version>{row['version']}</Version><Level>{row['level']}</Level><TimeCreated SystemTime='{time_of(row)}'/><EventRecordID>{row['event_record_id']}</EventRecordID>"
            f"<Channel>{escape(row['channel'])}</Channel><Computer>{escape(row['computer'])}</Computer>{user}</System>{content}</Event>")


def evtx_dump_of(row):
    """A line of evtx_dump -o jsonl. Classic sources, such as SQL Server, have values without names."""
    system = {
        "Provider": {"#attributes": {"Name": row["provider"]}}, "EventID": row["event_id"], "Version": row["version"], "Level": row["level"],
        "TimeCreated": {"#attributes": {"SystemTime": time_of(row)}}, "EventRecordID": row["event_record_id"], "Channel": row["channel"], "Computer": row["computer"],
        "Security": {"#attributes": {"UserID": row["user_sid"]}} if row["user_sid"] else None,
    }  # fmt: skip
    data = row["event_data"] or {}
    if row["provider"].lower().startswith(("mssql", "eventlog")):
        texts = [value for name, value in data.items() if name.startswith("param")]
        data = {"Data": {"#text": texts}} | {name: value for name, value in data.items() if not name.startswith("param")}
    content = {"UserData": row["user_data"]} if row["user_data"] is not None else {"EventData": data or None}
    return json.dumps({"Event": {"#attributes": {"xmlns": "http://schemas.microsoft.com/win/2004/08/events/event"}, "System": system, **content}}) + "\n"


def winlogbeat_of(row):
    """A line of Winlogbeat. It calls the level of audits information, and names the element of UserData beside its fields."""
    winlog = {"api": "wineventlog", "channel": row["channel"], "computer_name": row["computer"], "event_id": str(row["event_id"]), "provider_name": row["provider"],
              "record_id": row["event_record_id"], "version": row["version"]}  # fmt: skip
    if row["user_sid"]:
        winlog["user"] = {"identifier": row["user_sid"]}
    if row["user_data"] is not None:
        [(name, fields)] = row["user_data"].items()
        winlog["user_data"] = {"xml_name": name} | {key: str(value) for key, value in fields.items() if key != "#attributes" and value is not None}
    elif row["event_data"]:
        winlog["event_data"] = row["event_data"]
    level = {2: "error", 3: "warning"}.get(row["level"], "information")
    return json.dumps({"@timestamp": time_of(row), "event": {"code": str(row["event_id"]), "provider": row["provider"]}, "log": {"level": level}, "winlog": winlog}) + "\n"


@dataclasses.dataclass(frozen=True)
class Form:
    """How events are written, and the function that reads them."""

    write: Callable
    ending: str
    function: str
    encoding: str = "utf-8"
    is_newest_first: bool = False
    # Whether the number of a record is its place in the file, and not that of its event.
    counts: bool = False


FORMS = {
    "xml": Form(xml_of, "xml", "read_evtx_xml", "utf-16"), "newest first": Form(xml_of, "xml", "read_evtx_xml", "utf-16", is_newest_first=True, counts=True),
    "evtx_dump": Form(evtx_dump_of, "jsonl", "evtx_from"), "winlogbeat": Form(winlogbeat_of, "ndjson", "evtx_from", is_newest_first=True),
}  # fmt: skip
