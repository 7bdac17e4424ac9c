"""The rows of evtx_logons."""

import collections
import dataclasses
import datetime
import re
import typing

from evaluator.clocks import Clocks
from evaluator.events import CONNECTIONS, GATEWAY, KERNEL, SECOND, SECURITY, SESSIONS, full_name
from evaluator.hosts import HERE, host_in, host_in_words, own_names, without_slashes

LOGON_TYPES = {
    0: "System", 2: "Interactive", 3: "Network", 4: "Batch", 5: "Service", 6: "Proxy", 7: "Unlock", 8: "NetworkCleartext", 9: "NewCredentials", 10: "RemoteInteractive",
    11: "CachedInteractive", 12: "CachedRemoteInteractive", 13: "CachedUnlock",
}  # fmt: skip
WINRM, SSH, SQL, VPN = "Microsoft-Windows-WinRM", "OpenSSH", "MSSQLSERVER", "RemoteAccess"
OF_WINDOWS, OF_DESKTOPS = (4624, 4634, 4647, 4672), {SECURITY: (4778, 4779), SESSIONS: (21, 23, 24, 25, 39, 40), CONNECTIONS: (1149,)}
OF_VISITS = {SSH: (4,), WINRM: (91, 169, 193), SQL: (18453, 18454, 18455), GATEWAY: (300, 302, 303), VPN: (20272, 20274, 20275)}
ENDS = r"(?:Disconnected from|Disconnecting|Connection closed by|Connection reset by|Timeout, client not responding from) user (.*) (\S+) port (\d+)(?:$|: )"


def bare(name):
    """An account without its domain, in lower case."""
    return re.sub(r"@[^\\]*$", "", name or "").split("\\")[-1].lower() or None


def instance(provider):
    return SQL if provider and provider.startswith("MSSQL$") else provider


def is_of_windows(session, sid):
    """Whether a session is that of Windows itself."""
    event = session[0]
    name = event.data.get("TargetUserName", event.data.get("SubjectUserName")) or ""
    if not (name.endswith("$") and len(name) > 1):
        address = next((event.data["IpAddress"] for event in session if "IpAddress" in event.data), None)
        return sid in ("S-1-5-18", "S-1-5-19", "S-1-5-20") and not host_in_words(address)
    is_other = name.rstrip("$").lower() not in own_names(event.computer)
    return sid in ("S-1-5-18", "S-1-5-19", "S-1-5-20") and not is_other


class Moment(typing.NamedTuple):
    """A time stamp that compares in the order of the log."""

    log_time: datetime.datetime
    number: int
    time: datetime.datetime

    def since(self, other):
        return max(self.log_time - other.log_time, abs(self.time - other.time))


def logons(events):
    plain = lambda time: time and time.time
    for row in logons_by_moment(events):
        visits = row["connections"] and [visit | {name: plain(visit[name]) for name in ("connected", "disconnected")} for visit in row["connections"]]
        yield row | {"logon_time": plain(row["logon_time"]), "logoff_time": plain(row["logoff_time"]), "connections": visits}


def logons_by_moment(events):
    chains = collections.defaultdict(list)
    # The log of sessions is short: what it has before the clock was set may be of no session.
    of_clock = [event for event in events if event.is_in(SECURITY, 4616) or event.is_in(KERNEL, 1) or event.provider == SESSIONS and event.id not in OF_DESKTOPS[SESSIONS]]
    events = [event for event in events if event.is_a(SECURITY, *OF_WINDOWS, *OF_DESKTOPS[SECURITY]) and event.is_in(SECURITY, event.id)
              or event.provider != SECURITY and (event.id in OF_DESKTOPS.get(event.provider, ()) or event.id in OF_VISITS.get(instance(event.provider), ()))]
    clocks = Clocks(events + of_clock)
    events.sort(key=clocks.place)
    contested = clocks.contested(events)
    known = lambda data: {name: value for name, value in data.items() if value not in ("", "-", "(NULL)")}
    placed = [(dataclasses.replace(event, time=Moment(*clocks.place(event)[:3]), data=known(event.data)), id(event) in contested) for event in events]
    events, claimed = [event for event, _ in placed], {id(event) for event, is_claimed in placed if is_claimed}
    for event in events:
        logon_id = event.data.get("TargetLogonId", event.data.get("SubjectLogonId"))
        sid = event.data.get("TargetUserSid", event.data.get("SubjectUserSid")) or ""
        if event.is_a(SECURITY, *OF_WINDOWS) and (logon_id is not None or event.id == 4624) and (logon_id or "").lower() not in ("0x3e7", "0x3e5", "0x3e4") and not sid.startswith(("S-1-5-90-", "S-1-5-96-")):
            chains[event.computer, logon_id and logon_id.lower(), sid].append(event)
    rows = [logon_row(computer, logon_id, session) | {"contested": any(id(event) in claimed for event in session)}
            for (computer, logon_id, sid), chain in chains.items() for session in sessions(chain) if not is_of_windows(session, sid)]
    desktops, rest = with_desktops(events, rows, claimed)
    yield from desktops
    yield from with_visits(events, rest, claimed, rows)


def row_of(kind, computer, **values):
    columns = ["logon_time", "logoff_time", "user_name", "user_sid", "logon_type", "logon_type_name", "remote_host", "workstation", "authentication", "process", "logon_id", "privileges", "connections"]
    return dict.fromkeys(columns) | {"computer": computer, "kind": kind, "doubts": (), "other_logon_ids": (), "contested": False} | values


def preferred(names):
    """A name with a domain, if there is one."""
    return min(names, key=lambda name: ("\\" not in name, name), default=None)


def with_desktops(events, rows, claimed):
    """Sessions that one can connect to again, and the rows that are no such."""
    acts, numbers, owners, later = [], collections.Counter(), {}, []
    for row in rows:
        role = {2: "console", 11: "console", 10: "start", 12: "start"}.get(row["logon_type"]) or (row["logon_type"] in (7, 13) and row["remote_host"] and "back")
        if role and row["logon_time"]:
            acts.append(dict(computer=row["computer"], who=bare(row["user_name"]), console=role == "console", step=2, role=role, time=row["logon_time"], row=row, host=row["remote_host"]))
    for event in events:
        act = dict(computer=event.computer, time=event.time, contested=id(event) in claimed, name=None, host=None, client=None)
        if event.is_a(SESSIONS, *OF_DESKTOPS[SESSIONS]):
            session = event.computer, event.data.get("SessionID", event.data.get("TargetSession", event.data.get("Session")))
            who = bare(event.data.get("User"))
            owners[session] = who or owners.get(session)
            numbers[session] += event.id == 21
            if owners[session]:
                act |= dict(who=owners[session], terminal=("terminal", *session, owners[session], numbers[session]), name=event.data.get("User"), host=host_in(event.data.get("Address")) if event.id != 23 else None)
                later.append(act | dict(id=event.id, role=None))
                if event.id in (21, 25):
                    acts.append(act | dict(step=3, role="terminal" if event.id == 21 else "return", console=not re.search("[0-9.:]", event.data.get("Address") or "")))
        elif event.is_a(CONNECTIONS, 1149):
            acts.append(act | dict(who=bare(event.data.get("Param1")), step=1, role="before", console=False, host=host_in(event.data.get("Param3")), name=full_name(event.data.get("Param2"), event.data.get("Param1"))))
        elif event.is_a(SECURITY, *OF_DESKTOPS[SECURITY]):
            logon_id, address = event.data.get("LogonID", "").lower(), event.data.get("ClientAddress")
            known = max((row for row in rows if (row["computer"], row["logon_id"], bare(row["user_name"])) == (event.computer, logon_id, bare(event.data.get("AccountName"))) and row["logon_time"] and row["logon_time"] <= event.time), key=lambda row: row["logon_time"], default=None)
            known = known if known and (not known["logoff_time"] or known["logoff_time"] >= event.time) else None
            act |= dict(who=bare(event.data.get("AccountName")), name=full_name(event.data.get("AccountDomain"), event.data.get("AccountName")), host=host_in(address), client=event.data.get("ClientName") or None)
            act |= dict(row=known) if known else dict(logon=("id", event.computer, logon_id, bare(event.data.get("AccountName"))), logon_id=logon_id)
            (acts if event.id == 4778 else later).append(act | dict(id=event.id, step=3, role="return", console=not re.search("[0-9.:]", address or "")))
    # Connections: the acts of an account, told apart by pauses and steps.
    connections, parts = [], collections.defaultdict(list)
    for act in acts:
        parts[act["computer"], act["who"], act["console"]].append(act)
    for part in parts.values():
        before = None
        for act in sorted(part, key=lambda act: (act["time"], act["step"])):
            pause = before and act["time"].since(before["time"])
            if before is None or act["step"] < before["step"] or pause > (5 if act["step"] == before["step"] else 60) * SECOND:
                connections.append([])
            connections[-1].append(act)
            before = act
    connections = [part for part in connections if any(act["role"] != "console" for act in part)]
    # Sessions: connections that share the number of a session or a logon.
    groups, last = [], {}
    for part in sorted(connections, key=lambda part: part[0]["time"]):
        names = {act["terminal"] for act in part if "terminal" in act}
        logons = [act for act in part if act["role"] == "return" and "terminal" not in act] or [act for act in part if act["role"] in ("start", "console")][:1]
        names |= {("row", id(act["row"])) if act.get("row") else act["logon"] for act in logons[:1]}
        account = part[0]["computer"], part[0]["who"], part[0]["console"]
        if not names:
            open_session = last.get(account)
            back = [act["row"] for act in part if act["role"] == "back"]
            named = [row for row in back if any(act.get("row") is row for act in acts + later if act["role"] == "return")]
            names = {("row", id(named[0]))} if named else open_session[0] if back and open_session and (not open_session[1] or open_session[1] >= part[0]["time"]) else {("visit", id(part))}
        else:
            ends = [act["row"]["logoff_time"] for act in part if act["role"] == "start" and not goes_back(part) and act["row"]["logoff_time"]]
            last[account] = names, min(ends, default=None)
        members = [act["row"] for act in part if act["role"] in ("start", "back")] + [act["row"] for act in logons[:1] if act.get("row")]
        groups.append([names | {("row", id(row)) for row in members}, [part], members, []])
    for act in later:
        groups.append([{act.get("terminal") or (("row", id(act["row"])) if act.get("row") else act["logon"])}, [], [act["row"]] if act.get("row") else [], [act]])
    merged = []
    for group in groups:
        for other in [other for other in merged if other[0] & group[0]]:
            merged.remove(other)
            group = [other[0] | group[0], other[1] + group[1], other[2] + group[2], other[3] + group[3]]
        merged.append(group)
    taken = {id(row) for _, _, members, _ in merged for row in members}
    return [desktop_row(*group[1:]) for group in merged], [row for row in rows if id(row) not in taken]


def goes_back(part):
    """Whether the logons of a connection, of any type, go back to a session."""
    of = lambda role: {id(act["row"]) for act in part if act["role"] == role and act.get("row")}
    return {"return"} <= {act["role"] for act in part} and all(act["role"] != "terminal" for act in part) and not of("start") & of("return")


def desktop_row(connections, members, later):
    members = list({id(row): row for row in members}.values())
    is_back = {id(act["row"]) for part in connections if goes_back(part) for act in part if act["role"] == "start"} - {id(act["row"]) for part in connections if not goes_back(part) for act in part if act["role"] == "start"}
    role = lambda row: id(row) in is_back or bool(row["logon_type"] in (7, 13) and row["remote_host"])
    members.sort(key=lambda row: (role(row), row["privileges"] is None, row["logon_time"]))
    acts = [act for part in connections for act in part]
    starts = [row["logon_time"] for row in members if not role(row)] + [act["time"] for act in later if act.get("id") == 21]
    first = [act["time"] for act in acts if act["role"] in ("before", "back", "start")]
    is_only_back = all(role(row) for row in members) and not any("terminal" in act or "logon" in act for act in acts + later)
    ends = [row["logoff_time"] for row in members if row["logoff_time"] and (not role(row) or is_only_back and row is min(members, key=lambda row: row["logon_time"]))]
    over = [row["logoff_time"] for row in members if row["logoff_time"] and not role(row)]
    breaks = sorted([(act["time"], act.get("host")) for act in later if act["id"] in (23, 24, 39, 40, 4779)] + [(time, None) for time in over])
    entries, parts = [], sorted(((max(act["time"] for act in part), part) for part in connections), key=lambda item: item[0])
    for at, (settled, part) in enumerate(parts):
        hosts = [act["host"] for act in part if act["host"] and (act["role"] != "return" or "terminal" in act)] or [act["host"] for act in part if act["host"]]
        until = parts[at + 1][0] if at + 1 < len(parts) else Moment(datetime.datetime.max, 0, None)
        after = [time for time, _ in breaks if settled <= time <= until and not (at and time == settled)]
        entries.append({"connected": min(act["time"] for act in part), "disconnected": min(after, default=None), "remote_host": min(hosts, default=None)})
    if breaks and (not parts or breaks[0][0] <= parts[0][0]):
        entries.insert(0, {"connected": None, "disconnected": breaks[0][0], "remote_host": breaks[0][1]})
    ids = {row["logon_id"] for row in members if row["logon_id"]} | {act["logon_id"] for act in acts + later if act.get("logon_id")}
    names = [act["name"] for act in acts + later if act.get("name")]
    # The client of the first connection.
    until = parts[1][0] if len(parts) > 1 else Moment(datetime.datetime.max, 0, None)
    clients = [(settled, act["client"]) for settled, part in parts[:1] for act in part if act.get("client")] + [(act["time"], act["client"]) for act in later if act.get("client") and act["time"] <= until]
    client = without_slashes(min(clients)[1]) if clients else None
    is_remote = any(row["logon_type"] in (10, 12) or role(row) for row in members) or any(act["role"] == "before" for act in acts) or any(act.get("host") for act in acts + later)
    row = dict(members[0]) if members else row_of("", (acts + later)[0]["computer"], user_name=preferred(names), logon_id=min(ids, default=None))
    doubts = ("claims to be this machine",) if client and client.lower() in own_names(row["computer"]) | HERE else ()
    return row | {
        "kind": "remote desktop" if is_remote else "windows", "logon_time": min(starts, default=min(first, default=None)),
        "logoff_time": min(ends + [act["time"] for act in later if act.get("id") == 23], default=None), "remote_host": next((entry["remote_host"] for entry in entries if entry["remote_host"]), None),
        "workstation": client or row["workstation"], "doubts": doubts if client else row["doubts"], "connections": entries, "other_logon_ids": tuple(sorted(ids - {row["logon_id"]})),
        "contested": any(member["contested"] for member in members) or any(act.get("contested") for act in acts + later),
    }  # fmt: skip


def visit_of(event):
    """The kind, the role, the step, the account, the session and other values of an event of a session with one connection."""
    data, provider = event.data, instance(event.provider)
    if provider == SSH:
        text = data.get("payload", "")
        if found := re.match(r"Accepted (\S+) for (.*?) from (\S+) port (\d+) ssh2", text):
            return "ssh", "start", 1, found[2], found[3] + found[4], {"authentication": found[1], "remote_host": host_in_words(found[3])}
        if found := re.match(ENDS, text):
            return "ssh", "end", 0, found[1], found[2] + found[3], {"remote_host": host_in_words(found[2])}
        return None
    if provider == WINRM:
        account = {169: data.get("username"), 193: data.get("param1"), 91: None}[event.id]
        return "winrm", "start", {169: 1, 193: 2, 91: 3}[event.id], account, None, {"authentication": data.get("authenticationMechanism") or None, **({"user_sid": event.user_sid} if event.id == 91 else {})}
    if provider == SQL:
        client = re.search(r"\[CLIENT: ([^\]]+)\]", data.get("param2", "") + " " + data.get("param3", ""))
        return "sql server", "start", 1, data.get("param1"), None, {"remote_host": host_in_words(client[1]) if client else None}
    if provider == GATEWAY:
        session = tuple(data.get(name, "").lower() for name in ("Username", "IpAddress", "Resource"))
        return "gateway", "end" if event.id == 303 else "start", {300: 1, 302: 2, 303: 0}[event.id], data.get("Username"), session, {"remote_host": host_in_words(data.get("IpAddress"))}
    return "vpn", "start" if event.id == 20274 else "end", int(event.id == 20274), None if event.id == 20275 else data.get("param2"), data.get("param1"), {}


def name_of(rows, computer, sid, time):
    """The name that most logons with a SID have until then, or else at all; of several, the first by letters."""
    own = [row for row in rows if sid and (row["computer"], row["user_sid"]) == (computer, sid)]
    counts = collections.Counter(row["user_name"] for row in [row for row in own if time and (row["logon_time"] or row["logoff_time"]) <= time] or own)
    return min(counts, key=lambda name: (-counts[name], name), default=None)


def with_visits(events, rows, claimed, named):
    """Sessions with one connection, which Windows may have a network logon for."""
    visits, last = [], {}
    for event in events:
        if event.provider == SECURITY or event.id not in OF_VISITS.get(instance(event.provider), ()) or not (found := visit_of(event)):
            continue
        kind, role, step, account, session, values = found
        before = last.get((event.computer, kind, session))
        is_new = role == "start" and (before is None or before[0] != "start" or before[1] >= step or event.time.since(before[2]) > 60 * SECOND)
        if is_new or before is None:
            visits.append(visit := {"kind": kind, "computer": event.computer, "starts": [], "ends": [], "names": [], "values": [], "contested": False})
        else:
            visit = before[3]
        last[event.computer, kind, session] = role, step, event.time, visit
        visit["starts" if role == "start" else "ends"].append(event.time)
        visit["names"] += [account] if account not in (None, "", "-") else []
        visit["values"].append(values)
        visit["contested"] |= id(event) in claimed
    alone, named = [], sorted((row for row in named if row["user_name"] and (row["logon_time"] or row["logoff_time"])), key=lambda row: row["logon_time"] or row["logoff_time"])
    used = set()
    for visit in sorted(visits, key=lambda visit: max(visit["starts"] or visit["ends"])):
        name = preferred(visit["names"])
        if not visit["starts"] and not name:
            continue
        values = {column: min((one[column] for one in visit["values"] if one.get(column)), default=None) for column in ("authentication", "remote_host", "user_sid")}
        time, end, who = max(visit["starts"], default=None), min(visit["ends"], default=None), min(map(bare, visit["names"]), default=(values["user_sid"] or "").lower())
        types = {"winrm": (3,), "sql server": (3,), "ssh": (3, 8)}.get(visit["kind"], ())
        recent = [row for row in rows if time and row["logon_time"] and 0 * SECOND <= time.log_time - row["logon_time"].log_time <= 10 * SECOND and id(row) not in used]
        near = [row for row in recent if row["computer"] == visit["computer"] and row["logon_type"] in types and who in (bare(row["user_name"]), (row["user_sid"] or "").lower())
                and (visit["kind"] != "ssh" or (row["process"] or "").lower().endswith("\\sshd.exe"))
                and (not values["remote_host"] or not row["remote_host"] or values["remote_host"] == row["remote_host"])]
        ends_with = lambda row, end=end: bool(end and row["logoff_time"]) and abs(end.log_time - row["logoff_time"].log_time) <= 2 * SECOND
        row = max(near, key=lambda row: (ends_with(row), row["logon_time"]), default=None)
        if row:
            used |= {id(row)} if visit["kind"] != "winrm" else set()
            row |= {"kind": visit["kind"], "logoff_time": end or row["logoff_time"], "remote_host": values["remote_host"] or row["remote_host"],
                    "authentication": values["authentication"] or row["authentication"], "contested": row["contested"] or visit["contested"]}
        else:
            alone.append(row_of(visit["kind"], visit["computer"], logon_time=time, logoff_time=end, user_name=name or name_of(named, visit["computer"], values["user_sid"], time) or values["user_sid"], contested=visit["contested"], **values))
    return rows + alone


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
    before, event, after = last.time.time, event.time.time, after.time.time
    return after - event <= SECOND and after - event < event - before


def logon_row(computer, logon_id, session):
    def first(*ids):
        return next((event.time for event in session if event.id in ids), None)

    def value(name):
        return next((event.data[name] for event in session if name in event.data), None)

    def known(name):
        return next(filter(None, (event.get(name) for event in session)), None)

    # 4672 names the account as the subject.
    start, logon_time, logoff_time = session[0].data, first(4624), first(4634, 4647)
    name, domain, sid = (start.get(f"Target{what}", start.get(f"Subject{what}")) for what in ("UserName", "DomainName", "UserSid"))
    logon_type = next((int(event.data["LogonType"]) for event in session if event.data.get("LogonType", "").isdigit()), None)
    privileges, workstation = known("PrivilegeList"), without_slashes(known("WorkstationName"))
    is_own = (workstation or "").lower() in own_names(computer) | HERE and workstation is not None
    is_from_windows = logon_type in (2, 4, 5, 7, 9, 10, 11, 12, 13) or logon_type == 8 and known("ProcessName") is not None
    return {
        "kind": "remote desktop" if logon_type in (10, 12) else "windows", "doubts": ("claims to be this machine",) if is_own and not is_from_windows else (),
        "connections": None, "other_logon_ids": (),
        "logon_time": logon_time, "logoff_time": logoff_time, "computer": computer, "user_name": full_name(domain, name), "user_sid": sid, "logon_type": logon_type, "logon_type_name": LOGON_TYPES.get(logon_type),
        "remote_host": host_in_words(known("IpAddress")), "workstation": None if is_own and is_from_windows else workstation, "authentication": known("AuthenticationPackageName"),
        "process": known("ProcessName"), "logon_id": logon_id, "privileges": privileges if privileges is None else re.findall(r"\w+", privileges),
    }  # fmt: skip
