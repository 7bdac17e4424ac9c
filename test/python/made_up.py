"""Made-up events that no sample contains. The fixture `over` runs macros over them."""

import base64

SECURITY, SYSMON = "Microsoft-Windows-Security-Auditing", "Microsoft-Windows-Sysmon"
CHANNELS = {SECURITY: "Security", SYSMON: "Microsoft-Windows-Sysmon/Operational", "Microsoft-Windows-Kernel-General": "System", "EventLog": "System"}


def base64_of(text, encoding):
    return base64.b64encode(text.encode(encoding)).decode()


CALLER = {"SubjectUserSid": "S-1-5-18", "SubjectUserName": "DC01$", "SubjectDomainName": "CORP"}
ALICE, DOMAIN = "S-1-5-21-1-2-3-1104", "S-1-5-21-9-9-9-1105"


def logon_of(at, sid, name, domain="CORP", computer="pc"):
    return at, SECURITY, 4624, {"TargetUserSid": sid, "TargetUserName": name, "TargetDomainName": domain}, None, computer


def service(at, sid, computer="pc"):
    return at, "Service Control Manager", 7045, {"ServiceName": "s"}, sid, computer


def users(over, events, event_id=7045):
    return [row[0] for row in over("evtx_timeline", events, "user_name", f"WHERE event_id = {event_id} ORDER BY time_created ASC, computer ASC")]


def block(at, number, total, text, block_id="b"):
    fields = {"MessageNumber": str(number), "MessageTotal": str(total), "ScriptBlockText": text, "Path": ""}
    return at, "Microsoft-Windows-PowerShell", 4104, fields | ({"ScriptBlockId": block_id} if block_id else {})


LOGON = (1, SECURITY, 4624, {"TargetLogonId": "0x1", "TargetUserName": "u", "TargetUserSid": "S-1-5-21-1"})
LOGOFF = (9, SECURITY, 4634, {"TargetLogonId": "0x1", "TargetUserSid": "S-1-5-21-1"})
START = (1, SECURITY, 4688, {"NewProcessId": "0x1", "NewProcessName": "a", "ProcessId": "0x2"})


def logon(at, event_id, logon_id, user="anna", sid="S-1-5-21-1", **fields):
    kind = "Subject" if event_id == 4672 else "Target"
    return at, SECURITY, event_id, {f"{kind}UserSid": sid, f"{kind}UserName": user, f"{kind}DomainName": "D", f"{kind}LogonId": logon_id, **fields}


SESSIONS, CONNECTIONS, GATEWAY = (f"Microsoft-Windows-TerminalServices-{part}" for part in ("LocalSessionManager", "RemoteConnectionManager", "Gateway"))


def security(at, pid, parent, image, parent_image=None, **fields):
    fields = {"NewProcessId": hex(pid), "ProcessId": hex(parent), "NewProcessName": image, "SubjectUserName": "u", "SubjectDomainName": "D", **fields}
    return at, SECURITY, 4688, fields | ({"ParentProcessName": parent_image} if parent_image else {})


def sysmon(at, pid, guid, parent_pid, parent_guid, image, **fields):
    return at, SYSMON, 1, {"ProcessId": str(pid), "ProcessGuid": guid, "ParentProcessId": str(parent_pid), "ParentProcessGuid": parent_guid, "Image": image, **fields}


def facts(over, events, topic, columns="fact, account, source"):
    """The facts of a topic in the order of time."""
    of_topic = f"WHERE topic = '{topic}' ORDER BY first ASC, fact ASC, account ASC NULLS LAST, source ASC NULLS LAST, target ASC NULLS LAST"
    return over("evtx_facts", events, columns, of_topic)


def failure(at, account, source="-", workstation="-", event_id=4625):
    return at, SECURITY, event_id, {"TargetUserName": account, "TargetDomainName": "CORP", "IpAddress": source, "WorkstationName": workstation, "Status": "0xc000006d"}


def success(at, account, source):
    return at, SECURITY, 4624, {"TargetUserName": account, "TargetDomainName": "CORP", "IpAddress": source, "LogonType": "3"}


SERVICES, SVCHOST, CMD, WHOAMI = (f"C:\\Windows\\System32\\{name}.exe" for name in ("services", "svchost", "cmd", "whoami"))


def started(at, pid, process, parent_pid, parent=""):
    return at, SECURITY, 4688, {"NewProcessId": hex(pid), "NewProcessName": process, "ProcessId": hex(parent_pid), "ParentProcessName": parent}


def clock(at, old, provider=SECURITY):
    """The clock was set. Times are seconds after eight."""
    old, new = (f"2024-03-05T{8 + time // 3600:02}:{time // 60 % 60:02}:{time % 60:02}Z" for time in (old, at))
    return (at, provider, 4616, {"PreviousTime": old, "NewTime": new}) if provider == SECURITY else (at, provider, 1, {"OldTime": old, "NewTime": new, "Reason": "1"})


def depths(over):
    return dict(over.query("evtx_process_tree", "pid, depth"))


RECORD = """INSERT INTO events (filename, record_id, event_record_id, time_created, provider, event_id, event_data, computer, level, channel)
    SELECT $1, $2, $2 + 90, TIMESTAMP_NS '2024-03-05 08:00:00' + to_seconds($2), $3, $4, map_from_entries($5::STRUCT(k VARCHAR, v VARCHAR)[]), $6, 4, $7"""


def record(over, filename, number, provider, event_id, data, computer, channel):
    over.con.execute(RECORD, [filename, number, provider, event_id, [{"k": k, "v": v} for k, v in data.items()], computer, channel])
