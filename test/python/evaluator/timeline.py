"""The rows of evtx_timeline."""

import csv
import pathlib
import re

from evaluator.events import NOBODY, SECURITY, SESSIONS, SYSMON, full_name
from evaluator.hosts import host_of, is_address, is_name_of_windows


def listed():
    """The fields of the columns, by provider in small letters and event ID. Not those of the extension."""
    rows = {}
    with open(pathlib.Path(__file__).parents[2] / "data/events/fields.tsv", encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE):
            for event_id in row["event_ids"].split():
                rows[row["provider"].lower(), int(event_id)] = [row[name].split("|") if row[name] else [] for name in ("account", "domain", "remote_host", "process")]
    return rows


LISTED = listed()
# The other machine chose these names.
CLAIMED = {"WorkstationName", "Workstation", "RemoteClientMachine", "SRC_Name"}
CLAIMS = {("netlogon", "param1"), ("microsoft-windows-printservice", "Param4"), (SECURITY.lower(), "TargetDomainName"), (SECURITY.lower(), "ClientName")}


def fields_for(event):
    # Each instance of SQL Server is a provider.
    provider = re.sub(r"^mssql\$.*", "mssqlserver", (event.provider or "").lower())
    return LISTED.get((provider, event.id), [[], [], [], []])


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
        case _, "@dc":
            return data.get("Parameter") if data.get("OperationDescription") == ("%%4119" if event.id == 4017 else "%%4120") else None
        case _, "@spn":
            return found(r"^[^/]+/(\[[^\]]*\]|[^/:@]+)", "TargetName")
        case _, "@connection":
            return found(r"^(?:[^:/?#]+://)?(\[[^\]]*\]|[^/?#\\:]*)", "connection")
        case _, "@url":
            return found(r"^[^:/?#]+://(?:[^/?#\\]*@)?(\[[^\]]*\]|[^/?#\\:]*)", "url" if "url" in data else "RemoteName")
        case _, "@client":
            if event.provider == "OpenSSH":
                # The client chooses the name before the address, and the reason or another name after it.
                if data.get("payload", "").startswith("Disconnecting") and "(" in data["payload"]:
                    return None
                return found(r"^(?:Received disconnect|Disconnected|Connection(?: closed| reset)?) (?:from|by) (\S+) port \d+|^.* (\S+) port \d+", "payload")
            return found(r"^\s*\[CLIENT: ([^\]]*)\]", "param3" if "param3" in data else "param2")
        case "OpenSSH", "@user":
            if data.get("payload", "").startswith("Disconnecting") and "(" in data["payload"]:
                return None
            return found(r"^(?:Failed|Accepted|Postponed|Partial) \S+ for (?:invalid user )?(.*) from \S+ port|^Invalid user (.*) from \S+ port|^(?!Received|Invalid|Failed|Bad).*?\buser (.*) \S+ port", "payload")
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
    return value if value not in (None, "", "-", "(NULL)") else None


def timeline(events, names):
    for event in events:
        accounts, domains, _, programs = fields_for(event)
        name, sid = timeline_user(event, accounts, domains)
        name = None if is_name_of_windows(name, sid, event.computer) else name
        yield {
            "computer": event.computer, "channel": event.channel, "event_id": event.id, "provider": event.provider, "record_id": event.number,
            "filename": event.log, "time_created": event.time, "user_name": name or names.name(sid, event.computer, event.time), "user_sid": None if sid == NOBODY else sid,
            "remote_host": remote_host(event),
            "process": next((path for path in (value_of(event, program) for program in programs) if path and not path.startswith("{")), None),
        }  # fmt: skip


def timeline_user(event, accounts, domains):
    """The name and the SID of who logged on, who caused the event, or else whose program wrote it."""

    def sid_next_to(field):
        found = [event.get(field.replace("UserName", "UserSid")), event.get(field.replace("UserName", "Sid"))]
        if event.provider == "MSExchange CmdletLogs":
            found = [event.get("param4")]
        return next((sid for sid in found if sid and sid.startswith("S-1-")), None)

    for at, field in enumerate(accounts):
        value = value_of(event, field)
        # Some events have NULL in place of a SID.
        if value and (not field.endswith("Sid") or value.startswith("S-1-")):
            if value.startswith("S-1-"):
                return None, value
            domain = event.data.get(domains[at]) if at < len(domains) else None
            # The account of 4769 repeats the domain.
            if domain not in (None, "", "-", "(NULL)"):
                name, _, realm = value.rpartition("@")
                value = full_name(domain, name if name and realm.lower() == domain.lower() else value)
            return value, sid_next_to(field)
    for field in accounts:
        if (sid := sid_next_to(field)) and sid != NOBODY:
            return None, sid
    # Sysmon is a service.
    return None, None if event.provider == SYSMON else event.user_sid


def hosts_of(event):
    """The other machines that the fields of an event name, by what wrote them: the name, and whether the other machine claimed it. None is this machine."""
    for field in fields_for(event)[2]:
        host = value_of(event, field)
        # Windows translates LOCAL.
        if host is None or event.provider == SESSIONS and not is_address(host):
            continue
        logon_type = event.data.get("LogonType")
        itself = logon_type in ("2", "4", "5", "7", "9", "10", "11", "12", "13") or logon_type == "8" and value_of(event, "ProcessName") or event.id == 4797
        claimed = not itself and field in CLAIMED or (event.provider.lower(), field) in CLAIMS
        if (found := host_of(host, event.computer, claimed)) != "":
            yield found, claimed


def remote_host(event):
    """The first other machine; none if Windows says first that it is this one."""
    return next((host for host, claimed in hosts_of(event) if host or not claimed), None)


def claims_own_name(event):
    """Whether the other machine gives the name of this one, and Windows does not say first that it is."""
    hosts = list(hosts_of(event))
    return next((host is not None or claimed for host, claimed in hosts), False) and (None, True) in hosts
