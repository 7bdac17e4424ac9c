"""Stories: what happened in a small network, the events that Windows writes of it, and what the macros must say about it.

A story is a list of facts. Each fact says both: which events it leaves, and what an analyst should read. Nothing here shares code with the SQL. The
fields and values of the events are those of real logs and of Microsoft's pages about the events.
"""

import collections
import dataclasses
import datetime
import itertools
import json
import random
import zoneinfo

SECURITY, SYSMON, KERNEL = "Microsoft-Windows-Security-Auditing", "Microsoft-Windows-Sysmon", "Microsoft-Windows-Kernel-General"
EVENTLOG, SCM, TASKS = "Microsoft-Windows-Eventlog", "Service Control Manager", "Microsoft-Windows-TaskScheduler"
WAKE, SSH, RDP_CORE = "Microsoft-Windows-Power-Troubleshooter", "OpenSSH", "Microsoft-Windows-RemoteDesktopServices-RdpCoreTS"
SESSIONS, CONNECTIONS, GATEWAY = (f"Microsoft-Windows-TerminalServices-{part}" for part in ("LocalSessionManager", "RemoteConnectionManager", "Gateway"))
CHANNELS = {
    SECURITY: "Security", SSH: "OpenSSH/Operational", "MSSQLSERVER": "Application", "MSSQL$ERP": "Application",
    **{provider: f"{provider}/Operational" for provider in (SYSMON, TASKS, RDP_CORE, SESSIONS, CONNECTIONS, GATEWAY)},
}
TIME_ZONES = {  # As Windows calls them, and the minutes west of UTC without daylight saving time; IANA's names are from CLDR's windowsZones.xml
    "Pacific Standard Time": (480, "America/Los_Angeles"), "Eastern Standard Time": (300, "America/New_York"),
    "Romance Standard Time": (-60, "Europe/Paris"), "W. Europe Standard Time": (-60, "Europe/Berlin"),
    "India Standard Time": (-330, "Asia/Calcutta"), "UTC": (0, "Etc/UTC"), "AUS Eastern Standard Time": (-600, "Australia/Sydney"),
}
# Status and SubStatus of 4625, and the name of the reason: MS-ERREF.
REASONS = {
    "wrong password": ("0xc000006d", "0xc000006a", "%%2313", "STATUS_WRONG_PASSWORD"), "unknown user": ("0xc000006d", "0xc0000064", "%%2313", "STATUS_NO_SUCH_USER"),
    "disabled": ("0xc000006e", "0xc0000072", "%%2310", "STATUS_ACCOUNT_DISABLED"), "expired": ("0xc000006e", "0xc0000193", "%%2305", "STATUS_ACCOUNT_EXPIRED"),
    "password expired": ("0xc000006e", "0xc0000071", "%%2309", "STATUS_PASSWORD_EXPIRED"), "locked": ("0xc0000234", "0x0", "%%2307", "STATUS_ACCOUNT_LOCKED_OUT"),
    "must change": ("0xc0000224", "0x0", "%%2309", "STATUS_PASSWORD_MUST_CHANGE"), "not granted": ("0xc000015b", "0x0", "%%2308", "STATUS_LOGON_TYPE_NOT_GRANTED"),
}
# The event, its status, and the name: RFC 4120, section 7.5.9.
KERBEROS = {
    "wrong password": (4771, "0x18", "KDC_ERR_PREAUTH_FAILED"), "locked": (4771, "0x12", "KDC_ERR_CLIENT_REVOKED"),
    "password expired": (4771, "0x17", "KDC_ERR_KEY_EXPIRED"), "unknown user": (4768, "0x6", "KDC_ERR_C_PRINCIPAL_UNKNOWN"),
}
MSSQL = {
    "wrong password": "Password did not match that for the login provided", "unknown user": "Could not find a login matching the name provided",
    "only Windows": "An attempt to login using SQL authentication failed. Server is configured for Windows authentication only",
}
# The name of the machine, whatever that is at the time.
ITSELF = "itself"
# No session has this logon ID.
BROKEN_ID = "0x3e3"
PRIVILEGES = "SeSecurityPrivilege\r\n\t\t\tSeBackupPrivilege\r\n\t\t\tSeDebugPrivilege"


def seconds(count):
    return datetime.timedelta(seconds=count)


def stamp(time):
    """A time as event data has it: with seven digits."""
    return f"{time:%Y-%m-%dT%H:%M:%S.%f}0Z"


class OneOf(list):
    """Several answers are right."""

    def __eq__(self, other):
        return any(item == other for item in self)

    __hash__ = None

    def __repr__(self):
        return "one of " + super().__repr__()


class Near:
    """A time, or a number of seconds, that two events give slightly different."""

    def __init__(self, value, most=datetime.timedelta(seconds=2)):
        self.value, self.most = value, most

    def __eq__(self, other):
        return other is not None and abs(other - self.value) <= self.most

    def __repr__(self):
        return f"about {self.value}"


class Having(dict):
    """An entry that can have more fields."""

    def __eq__(self, other):
        return isinstance(other, dict) and all(name in other and value == other[name] for name, value in self.items())

    __hash__ = None


class Any:
    """Something, or nothing."""

    def __init__(self, is_something):
        self.is_something = is_something

    def __eq__(self, other):
        return bool(other) == self.is_something

    def __repr__(self):
        return "something" if self.is_something else "nothing"


class Text(str):
    """A text that can be in any case."""

    def __eq__(self, other):
        return other is not None and self.lower() == other.lower()

    def __hash__(self):
        return hash(self.lower())


@dataclasses.dataclass(frozen=True)
class Account:
    name: str
    domain: str
    sid: str

    def __str__(self):
        return f"{self.domain}\\{self.name}" if self.domain else self.name

    __repr__ = __str__


NOBODY = Account("-", "-", "S-1-0-0")
LOCAL_SERVICE = Account("LOCAL SERVICE", "NT AUTHORITY", "S-1-5-19")


@dataclasses.dataclass(eq=False)
class Machine:
    """A computer as the story begins. Its name, domain and clock can change."""

    name: str
    domain: str = "WORKGROUP"
    suffix: str = ""
    is_old: bool = False
    missing: tuple = ()
    copied: tuple = ()
    forwarded: tuple = ()

    def __repr__(self):
        return self.name + "".join(f", {what}" for what in (self.is_old and "old", self.missing and f"no {self.missing}", self.copied and f"copies {self.copied}", self.forwarded and f"forwards {self.forwarded}") if what)


class Telling:
    """Writes the events of a story, and collects what is true of it."""

    def __init__(self, story):
        self.story, self.events = story, []
        self.names = {machine: machine.name for machine in story.machines}
        self.suffixes = {machine: machine.suffix for machine in story.machines}
        self.shifts = {machine: seconds(0) for machine in story.machines}
        self.ids, self.pids = collections.Counter(), collections.Counter()
        self.files, self.known = {}, {}
        self.facts = {machine: collections.defaultdict(list) for machine in story.machines}
        self.logons, self.open, self.processes, self.created = [], [], [], set()
        # What was written before a log was cleared is lost, unless the log was archived.
        self.starts = {(fact.machine, fact.log): fact.at for fact in story.facts if isinstance(fact, Cleared) and not fact.archived}
        for fact in story.facts:
            fact.tell(self)

    def computer(self, machine):
        return self.names[machine] + (f".{self.suffixes[machine]}" if self.suffixes[machine] else "")

    def system(self, machine):
        """How the Security log names the machine itself."""
        return Account(f"{self.names[machine]}$", machine.domain, "S-1-5-18")

    def logon_id(self, machine):
        self.ids[machine] += 1
        return f"0x{0x20000 + 0x1111 * self.ids[machine]:x}"

    def write(self, machine, at, provider, event_id, data=None, *, user=None, user_data=None, channel=None, names=(), told=None, level=4, version=0, time=None):
        """Writes an event, unless the log is missing. Returns its time on the machine's clock."""
        channel = channel or CHANNELS.get(provider, "System")
        if channel in machine.missing or at < self.starts.get((machine, channel), at):
            return None
        moment = time or at + self.shifts[machine]
        for account in names:
            if account.sid.count("-") > 3:
                self.known.setdefault(account, set()).add(self.computer(machine))
        log = self.files.setdefault((machine, channel), [0])
        self.events.append({
            "machine": machine, "at": at, "log": (machine, channel, log[0]), "time_created": moment, "provider": provider, "event_id": event_id, "channel": channel,
            "computer": self.computer(machine), "event_data": data if user_data is None else None, "user_data": user_data, "user_sid": user, "is_broken": time is not None,
            "level": 0 if provider == SECURITY else level, "version": version, "told": told,
        })
        return moment

    def add(self, machine, topic, times, **fact):
        """Adds a fact, if an event says so."""
        times = [time for time in times if time]
        if times:
            self.facts[machine][topic].append({"time": min(times), "last": max(times), "computer": self.computer(machine), **fact})

    def who(self, account, is_named):
        """The name of an account: if the event only has the SID, other events must name it. Call this at the end."""
        fixed = {"S-1-5-18": "Local System", "S-1-5-19": "Local Service"}
        # The number 500 is that of Administrator in every domain.
        last_resort = "Administrator" if account.sid.endswith("-500") else account.sid
        return str(account) if is_named or account in self.known else fixed.get(account.sid, last_resort)

    def rows(self):
        """The events as rows of read_evtx: with their copies, and numbered in each log."""
        rows, numbers = [], collections.Counter()
        for event in sorted(self.events, key=lambda event: event["at"]):
            machine, channel, generation = event["log"]
            numbers[event["log"]] += 1
            name = channel.replace("/", "%4")
            name = name if generation == self.files[machine, channel][0] else f"Archive-{name}-{generation}"
            event["record_id"] = event["event_record_id"] = numbers[event["log"]]
            for folder in ["C", "vss1"] if channel in machine.copied else ["C"]:
                event["filename"] = f"story{self.story.number}/{machine.name}/{folder}/{name}.evtx"
                rows.append({**event, "event": event, "is_own": True})
            if channel in machine.forwarded:
                # The first machine collects what others forward, in a log with record IDs of its own.
                collector = f"story{self.story.number}/{self.story.machines[0].name}/C/ForwardedEvents.evtx"
                numbers[collector] += 1
                rows.append({**event, "event": event, "is_own": False, "filename": collector, "record_id": numbers[collector]})
        return rows


def subject(account, logon_id="0x0"):
    return {"SubjectUserSid": account.sid, "SubjectUserName": account.name, "SubjectDomainName": account.domain, "SubjectLogonId": logon_id}


def target(account):
    return {"TargetUserName": account.name, "TargetDomainName": account.domain, "TargetSid": account.sid}


@dataclasses.dataclass(eq=False)
class Fact:
    """Something that happened on a machine. It ends before the next fact begins."""

    at: datetime.datetime
    machine: Machine

    def __str__(self):
        values = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)[2:] if getattr(self, field.name) != field.default}
        values = {name: value.at if isinstance(value, Fact) else value for name, value in values.items()}
        return f"{self.at} {self.machine.name}: {type(self).__name__} " + ", ".join(f"{name}={value}" for name, value in values.items())


@dataclasses.dataclass(eq=False)
class Noise(Fact):
    """What Windows writes all the time."""

    def tell(self, telling):
        telling.write(self.machine, self.at, SCM, 7036, {"param1": "Windows Update", "param2": "running"})
        system = telling.system(self.machine)
        telling.write(self.machine, self.at, SECURITY, 4672, {**subject(Account("SYSTEM", "NT AUTHORITY", "S-1-5-18"), "0x3e7"), "PrivilegeList": PRIVILEGES})
        logon = {**subject(system, "0x3e7"), "TargetUserSid": "S-1-5-18", "TargetUserName": "SYSTEM", "TargetDomainName": "NT AUTHORITY", "TargetLogonId": "0x3e7"}
        logon |= {"LogonType": "5", "LogonProcessName": "Advapi  ", "AuthenticationPackageName": "Negotiate", "WorkstationName": "-", "ProcessName": "C:\\Windows\\System32\\services.exe"}
        telling.write(self.machine, self.at, SECURITY, 4624, logon | {"IpAddress": "-", "IpPort": "-"})


@dataclasses.dataclass(eq=False)
class Installed(Fact):
    """A service was installed, once or several times, as PsExec does."""

    account: Account
    service: str
    path: str
    offsets: tuple
    sources: tuple
    delay: float
    other: str = None

    def event(self, telling, at, service):
        """Writes 7045. Returns the time."""
        data = {"ServiceName": service, "ImagePath": self.path, "ServiceType": "user mode service", "StartType": "demand start", "AccountName": "LocalSystem"}
        told = {"user_name": (self.account, False), "user_sid": self.account.sid, "process": self.path}
        return telling.write(self.machine, at, SCM, 7045, data, user=self.account.sid, told=told)

    def tell(self, telling):
        if self.other:
            # Another service of this program, which is not audited yet.
            time = self.event(telling, self.at + seconds(self.offsets[0] - 1.5), self.other)
            telling.add(self.machine, "services", [time], service=self.other, path=self.path, user_name=(self.account, False))
        for offset in self.offsets:
            at, times = self.at + seconds(offset), []
            if 4697 in self.sources:
                data = {**subject(self.account, "0x6a423"), "ServiceName": self.service, "ServiceFileName": self.path, "ServiceType": "0x10"}
                times.append(telling.write(self.machine, at, SECURITY, 4697, data | {"ServiceStartType": "3", "ServiceAccount": "LocalSystem"},
                                           told={"user_name": (self.account, True), "process": self.path}))
            if 7045 in self.sources:
                times.append(self.event(telling, at + seconds(self.delay), self.service))
            is_named = 4697 in self.sources and times[0] is not None
            telling.add(self.machine, "services", times, service=self.service, path=self.path, user_name=(self.account, is_named))


@dataclasses.dataclass(eq=False)
class Scheduled(Fact):
    """A task was created."""

    account: Account
    task: str
    sources: tuple
    delay: float

    def tell(self, telling):
        times = []
        if 4698 in self.sources:
            data = {**subject(self.account, "0x6a423"), "TaskName": self.task, "TaskContent": "<Task/>"}
            times.append(telling.write(self.machine, self.at, SECURITY, 4698, data, told={"user_name": (self.account, True)}))
        if 106 in self.sources:
            data = {"TaskName": self.task, "UserContext": str(self.account)}
            times.append(telling.write(self.machine, self.at + seconds(self.delay), TASKS, 106, data, user="S-1-5-18", told={"user_name": (self.account, True)}))
        telling.add(self.machine, "tasks", times, task=self.task, user_name=(self.account, True))
        # A change is not a creation.
        telling.write(self.machine, self.at + seconds(20), TASKS, 140, {"TaskName": self.task, "UserName": str(self.account)}, user="S-1-5-18")


@dataclasses.dataclass(eq=False)
class Came(Fact):
    """Somebody logged on: an account, the type of the logon, from where. The source is an address, a name, both, or neither."""

    account: Account
    type: int
    address: str = None
    workstation: str = None
    form: str = "{}"
    is_admin: bool = False
    has_other_half: bool = False
    lasts: float = None
    local: str = None  # The word for LOCAL in the language of Windows.

    @property
    def is_local(self):
        return self.address in ("::1", "127.0.0.1") or not self.address and self.workstation == ITSELF

    @property
    def source(self):
        return None if self.is_local else self.address or self.workstation

    def event(self, telling, at, kind):
        """Writes 4624, and its other half if Windows split the token. Returns the time."""
        halves = [telling.logon_id(self.machine) for _ in range(2 if self.has_other_half and not self.machine.is_old else 1)]
        is_network = kind in (3, 8)
        address, workstation = self.form.format(self.address) if self.address else "-" if is_network else "127.0.0.1", self.workstation or "-"
        workstation = telling.names[self.machine] if workstation == ITSELF else workstation
        times, source = [], self.address if self.address else None if is_network else "127.0.0.1"
        for half, logon_id in enumerate(halves):
            data = subject(NOBODY) if is_network else subject(telling.system(self.machine), "0x3e7")
            data |= {"TargetUserSid": self.account.sid, "TargetUserName": self.account.name, "TargetDomainName": self.account.domain, "TargetLogonId": logon_id}
            data |= {"LogonType": str(kind), "LogonProcessName": "NtLmSsp " if kind == 3 else "User32 ", "AuthenticationPackageName": "NTLM" if kind == 3 else "Negotiate"}
            data |= {"WorkstationName": workstation if is_network else telling.names[self.machine], "LogonGuid": "{00000000-0000-0000-0000-000000000000}"}
            data |= {"TransmittedServices": "-", "LmPackageName": "-", "KeyLength": "0", "ProcessId": "0x0" if is_network else "0x4c4"}
            data |= {"ProcessName": "-" if is_network else "C:\\Windows\\System32\\winlogon.exe", "IpAddress": address, "IpPort": "49165" if self.address else "-"}
            if not self.machine.is_old:
                data |= {"ImpersonationLevel": "%%1833", "VirtualAccount": "%%1843", "TargetLinkedLogonId": halves[1 - half] if len(halves) == 2 else "0x0"}
                data |= {"ElevatedToken": "%%1843" if half else "%%1842"}
            remote_host = None if self.is_local else self.source if is_network else self.address
            told = {"user_name": (self.account, True), "user_sid": self.account.sid, "remote_host": remote_host}
            time = telling.write(self.machine, at, SECURITY, 4624, data, names=[self.account], told=told, version=1 if self.machine.is_old else 2)
            is_elevated = self.is_admin and half == 0
            if is_elevated:
                telling.write(self.machine, at, SECURITY, 4672, {**subject(self.account, logon_id), "PrivilegeList": PRIVILEGES}, names=[self.account])
            times.append(time)
            telling.open.append((self, {
                "computer": telling.computer(self.machine), "logon_time": time, "logoff_time": None, "logon_id": logon_id, "user_name": str(self.account),
                "logon_type": kind, "privileges": Any(bool(time and is_elevated)), "remote_host": OneOf([source] if time and self.address and not self.is_local else [None, source]),
            }))
            if time:
                telling.logons.append(telling.open[-1][1])
        if self.lasts is not None:
            self.leave(telling, at + seconds(self.lasts))
        return times[0]

    def session(self, telling, at, event_id, account, address, told=None):
        """Writes an event of the local session manager. Returns the time."""
        data = {"EventXML": {"#attributes": {"xmlns": "Event_NS"}, "User": str(account), "SessionID": 2, "Address": address}}
        return telling.write(self.machine, at, SESSIONS, event_id, user_data=data, user="S-1-5-18", told=told)

    def leave(self, telling, at):
        """Ends the open sessions of this fact."""
        for session in [session for came, session in telling.open if came is self]:
            data = {"TargetUserSid": self.account.sid, "TargetUserName": self.account.name, "TargetDomainName": self.account.domain, "TargetLogonId": session["logon_id"]}
            session["logoff_time"] = telling.write(self.machine, at, SECURITY, 4634, data | {"LogonType": str(session["logon_type"])}, names=[self.account])
            if session["logoff_time"] and not session["logon_time"]:
                # The logon was lost, so the account and the type are all that is known.
                telling.logons.append(session)
        telling.open = [(came, session) for came, session in telling.open if came is not self]

    def tell(self, telling):
        """A logon at the console, over the network, or one that unlocks."""
        time = self.event(telling, self.at, self.type)
        if self.local:
            told = {"user_name": (self.account, True), "remote_host": None}
            self.session(telling, self.at + seconds(1), 21, self.account, self.local, told)
        kind = {3: "Network", 8: "NetworkCleartext", 7: "Reconnect", 13: "Reconnect"}.get(self.type)
        telling.add(self.machine, "successes", [time], account=self.account, source=self.source)
        if kind and self.source:
            telling.add(self.machine, "visits", [time], account=self.account, source=self.source, kinds={kind}, logons=1)


@dataclasses.dataclass(eq=False)
class RemoteDesktop(Came):
    """Somebody came by Remote Desktop: to a new session or back to one, once or several times."""

    sources: tuple = ()
    offsets: tuple = (0,)
    nla: tuple = (0,)
    nla_has_address: bool = True
    has_domain: bool = True
    is_back: bool = False

    def tell(self, telling):
        times, own, kinds, bare = [], [], set(), Account(self.account.name, "", self.account.sid)
        for offset in self.offsets:
            at = self.at + seconds(offset)
            # CredSSP logs on over the network first.
            for later in self.nla if 4624 in self.sources else ():
                first = dataclasses.replace(self, type=3, has_other_half=False, lasts=0.4, address=self.address if self.nla_has_address or not self.workstation else None)
                times.append(first.event(telling, at + seconds(later), 3))
                telling.add(self.machine, "successes", times[-1:], account=self.account, source=first.source)
            steps = [(1149, 0.5, self.has_domain), (4624, 2, True), (25 if self.is_back else 21, 3, True), (4778, 3.1, True)]
            for step, later, has_domain in steps:
                if step not in self.sources or (step == 4778 and not self.is_back):
                    continue
                moment, account = at + seconds(later), self.account if has_domain else bare
                told = {"user_name": (account, True), "remote_host": self.address}
                if step == 4624:
                    time = self.event(telling, moment, self.type)
                elif step == 1149:
                    data = {"EventXML": {"#attributes": {"xmlns": "Event_NS"}, "Param1": account.name, "Param2": account.domain or None, "Param3": self.address}}
                    time = telling.write(self.machine, moment, CONNECTIONS, 1149, user_data=data, user="S-1-5-20", told=told)
                elif step == 4778:
                    data = {"AccountName": account.name, "AccountDomain": account.domain, "LogonID": "0x6a423", "SessionName": "RDP-Tcp#8", "ClientName": "JUMP01"}
                    time = telling.write(self.machine, moment, SECURITY, 4778, data | {"ClientAddress": self.address})
                else:
                    time = self.session(telling, moment, step, account, self.address, told)
                    # 22 says that the shell has started.
                    self.session(telling, moment + seconds(0.2), 22, account, self.address)
                if time:
                    times.append(time)
                    # 1149 can come before the password.
                    own += [time] if step != 1149 else []
                    kinds.add("Reconnect" if step in (25, 4778) or step == 4624 and self.type in (7, 13) else "RemoteInteractive")
        if kinds:
            # 1149 does not say whether the session is new.
            kinds = {"Reconnect"} if "Reconnect" in kinds else kinds
            telling.add(self.machine, "visits", times, account=self.account, source=self.address, kinds=kinds, logons=len(self.offsets))
            if own:
                telling.add(self.machine, "successes", own, account=self.account, source=self.address)


@dataclasses.dataclass(eq=False)
class Left(Fact):
    """Somebody logged off, after whatever happened since the logon."""

    came: Came

    def tell(self, telling):
        self.came.leave(telling, self.at)


@dataclasses.dataclass(eq=False)
class Passed(Fact):
    """Somebody passed the RD Gateway."""

    account: Account
    address: str

    def tell(self, telling):
        data = {"#attributes": {"xmlns": "aag"}, "Username": str(self.account), "IpAddress": self.address, "AuthType": None, "Resource": "srv.example", "ConnectionProtocol": "HTTP", "ErrorCode": 0}
        # 300 says that the policy allows it, 303 that the connection has ended.
        telling.write(self.machine, self.at, GATEWAY, 300, user_data={"EventInfo": data}, user="S-1-5-20")
        time = telling.write(self.machine, self.at + seconds(1), GATEWAY, 302, user_data={"EventInfo": data}, user="S-1-5-20")
        telling.write(self.machine, self.at + seconds(50), GATEWAY, 303, user_data={"EventInfo": data}, user="S-1-5-20")
        telling.add(self.machine, "visits", [time], account=self.account, source=self.address, kinds={"RemoteInteractive"}, logons=1)
        telling.add(self.machine, "successes", [time], account=self.account, source=self.address)


@dataclasses.dataclass(eq=False)
class Failed(Fact):
    """Logons failed: in turn with some accounts, in some way, for a reason."""

    accounts: tuple
    way: str
    reason: str
    address: str
    workstation: str
    count: int
    interval: float
    controller: Machine
    sources: tuple
    form: str = "{}"
    typed: str = None

    def tell(self, telling):
        for number in range(self.count):
            account, at = self.accounts[number % len(self.accounts)], self.at + seconds(number * self.interval)
            # 4625 has the domain that somebody typed.
            account = dataclasses.replace(account, domain=self.typed) if self.typed and self.way == "network" else account
            getattr(self, self.way)(telling, at, account)

    def add(self, telling, machine, times, account, reason, source):
        telling.add(machine, "failures", times, account=account, reason=reason, source=source)

    def network(self, telling, at, account, kind=3):
        """NTLM: 4625 on the machine, 4776 where the account is, and 140 if it was for Remote Desktop."""
        status, sub_status, text, words = REASONS[self.reason]
        failure = None
        address, workstation = self.form.format(self.address) if self.address else "-", self.workstation or "-"
        if 4625 in self.sources:
            data = {**subject(NOBODY), "TargetUserSid": "S-1-0-0", "TargetUserName": account.name, "TargetDomainName": account.domain, "Status": status, "FailureReason": text}
            data |= {"SubStatus": sub_status, "LogonType": str(kind), "LogonProcessName": "NtLmSsp ", "AuthenticationPackageName": "NTLM", "WorkstationName": workstation}
            data |= {"TransmittedServices": "-", "LmPackageName": "-", "KeyLength": "0", "ProcessId": "0x0", "ProcessName": "-", "IpAddress": address, "IpPort": "49165" if self.address else "-"}
            failure = telling.write(self.machine, at, SECURITY, 4625, data, told={"user_name": (account, True), "user_sid": None, "remote_host": self.address or self.workstation})
            self.add(telling, self.machine, [failure], account, words, self.address or self.workstation)
        if 4776 in self.sources and self.workstation:
            where = self.controller or self.machine
            data = {"PackageName": "MICROSOFT_AUTHENTICATION_PACKAGE_V1_0", "TargetUserName": account.name, "Workstation": self.workstation, "Status": status if sub_status == "0x0" else sub_status}
            time = telling.write(where, at + seconds(0.05), SECURITY, 4776, data, told={"user_name": (Account(account.name, "", ""), True), "remote_host": self.workstation})
            if where is not self.machine or not failure:
                self.add(telling, where, [time], account, words, self.workstation)
        if 140 in self.sources and self.address and self.reason == "wrong password":
            time = telling.write(self.machine, at + seconds(0.2), RDP_CORE, 140, {"IPString": self.address}, user="S-1-5-20", level=3, told={"remote_host": self.address})
            if not failure:
                self.add(telling, self.machine, [time], None, "user name or password is not correct", self.address)

    def console(self, telling, at, account):
        status, sub_status, text, words = REASONS[self.reason]
        data = {**subject(telling.system(self.machine), "0x3e7"), "TargetUserSid": "S-1-0-0", "TargetUserName": account.name, "TargetDomainName": account.domain, "Status": status}
        data |= {"FailureReason": text, "SubStatus": sub_status, "LogonType": "2", "LogonProcessName": "User32 ", "AuthenticationPackageName": "Negotiate"}
        data |= {"WorkstationName": telling.names[self.machine], "ProcessName": "C:\\Windows\\System32\\winlogon.exe", "IpAddress": "127.0.0.1", "IpPort": "0"}
        time = telling.write(self.machine, at, SECURITY, 4625, data, told={"user_name": (account, True), "remote_host": None})
        self.add(telling, self.machine, [time], account, words, None)

    def kerberos(self, telling, at, account):
        event_id, status, words = KERBEROS[self.reason]
        data = {"TargetUserName": account.name, "TargetSid": "S-1-0-0" if event_id == 4768 else account.sid, "ServiceName": "krbtgt", "TicketOptions": "0x40810010", "Status": status}
        data |= {"PreAuthType": "2", "IpAddress": f"::ffff:{self.address}", "IpPort": "49165"}
        data |= {"TargetDomainName": account.domain, "ServiceSid": "S-1-0-0", "TicketEncryptionType": "0xffffffff"} if event_id == 4768 else {}
        time = telling.write(self.controller, at, SECURITY, event_id, data, told={"remote_host": self.address})
        self.add(telling, self.controller, [time], account, words, self.address)

    def mssql(self, telling, at, account):
        data = {"param1": account.name, "param2": f" Reason: {MSSQL[self.reason]}.", "param3": f" [CLIENT: {self.address}]", "Binary": "184800000E000000"}
        time = telling.write(self.machine, at, "MSSQLSERVER", 18456, data, level=0)
        self.add(telling, self.machine, [time], account, MSSQL[self.reason] + ".", self.address)

    def ssh(self, telling, at, account):
        user = f"invalid user {account.name}" if self.reason == "unknown user" else account.name
        if self.reason == "unknown user":
            telling.write(self.machine, at, SSH, 4, {"process": "sshd", "payload": f"Invalid user {account.name} from {self.address} port 56605"}, user="S-1-5-18")
        time = telling.write(self.machine, at + seconds(0.3), SSH, 4, {"process": "sshd", "payload": f"Failed password for {user} from {self.address} port 56605 ssh2"}, user="S-1-5-18")
        telling.write(self.machine, at + seconds(0.4), SSH, 4, {"process": "sshd", "payload": f"Connection closed by authenticating user {account.name} {self.address} port 56605 [preauth]"}, user="S-1-5-18")
        self.add(telling, self.machine, [time], account, "Invalid user" if self.reason == "unknown user" else "Failed password", self.address)


@dataclasses.dataclass(eq=False)
class Accepted(Fact):
    """SSH or SQL Server accepted the password of an account."""

    account: Account
    way: str
    address: str

    def tell(self, telling):
        if self.way == "ssh":
            time = telling.write(self.machine, self.at, SSH, 4, {"process": "sshd", "payload": f"Accepted password for {self.account.name} from {self.address} port 56605 ssh2"}, user="S-1-5-18")
        else:
            data = {"param1": self.account.name, "param2": f" [CLIENT: {self.address}]", "Binary": "164800000A000000"}
            time = telling.write(self.machine, self.at, "MSSQLSERVER", 18454, data, level=0)
        telling.add(self.machine, "successes", [time], account=self.account, source=self.address)


@dataclasses.dataclass(eq=False)
class Renamed(Fact):
    """The machine got another name, or joined a domain, and booted."""

    name: str
    suffix: str

    def tell(self, telling):
        Booted.stop(self, telling)
        before = telling.names[self.machine]
        telling.names[self.machine], telling.suffixes[self.machine] = self.name or before, self.suffix or telling.suffixes[self.machine]
        Booted.start(self, telling)
        if self.name:
            telling.write(self.machine, self.at + seconds(40), "EventLog", 6011, {"param1": before, "param2": self.name})


@dataclasses.dataclass(eq=False)
class Booted(Fact):
    """The machine was shut down, or crashed, and started."""

    has_crashed: bool = False

    def stop(self, telling):
        telling.write(self.machine, self.at, "EventLog", 6006, {"Binary": "0100000000000000"})
        telling.write(self.machine, self.at, EVENTLOG, 1100, user_data={"ServiceShutdown": {"#attributes": {}}}, channel="Security")

    def start(self, telling):
        at = self.at + seconds(30)
        telling.ids[self.machine] = 0
        telling.open = [(came, session) for came, session in telling.open if came.machine is not self.machine]
        started = telling.write(self.machine, at + seconds(1), "EventLog", 6005, {"Binary": "E40709000500120016003A0009006E000000000000000000"})
        if not self.machine.is_old:
            data = {"MajorVersion": "10", "MinorVersion": "0", "BuildVersion": "19041", "BootMode": "0", "StartTime": stamp(at + telling.shifts[self.machine])}
            started = telling.write(self.machine, at, KERNEL, 12, data, user="S-1-5-18")
        telling.write(self.machine, at + seconds(1), SECURITY, 4608, {})
        telling.add(self.machine, "boots", [started])

    def tell(self, telling):
        if not self.has_crashed:
            self.stop(telling)
        self.start(telling)
        if self.has_crashed:
            time = telling.write(self.machine, self.at + seconds(32), "EventLog", 6008, {"param1": "10:15:12 PM", "param2": "3/5/2024", "param3": "", "param4": "", "param5": "4711"}, level=2)
            telling.add(self.machine, "crashes", [time])


@dataclasses.dataclass(eq=False)
class Cleared(Fact):
    """A log was cleared. What it had is lost, unless it was archived."""

    account: Account
    log: str
    archived: bool

    def tell(self, telling):
        if (self.machine, self.log) in telling.files:
            telling.files[self.machine, self.log][0] += 1
        data = {"SubjectUserName": self.account.name, "SubjectDomainName": self.account.domain}
        told, names = {"user_name": (self.account, True)}, [self.account] if self.log == "Security" else []
        if self.log == "Security":
            data = {"LogFileCleared": {"#attributes": {}, "SubjectUserSid": self.account.sid, **data, "SubjectLogonId": "0x30550"}}
            time = telling.write(self.machine, self.at, EVENTLOG, 1102, user_data=data, channel="Security", names=names, told=told)
        else:
            data = {"LogFileCleared": {"#attributes": {}, **data, "Channel": self.log, "BackupPath": None}}
            time = telling.write(self.machine, self.at, EVENTLOG, 104, user_data=data, user=self.account.sid, told=told)
        telling.add(self.machine, "clears", [time], log=self.log, user_name=str(self.account))


@dataclasses.dataclass(eq=False)
class Created(Fact):
    """An account was created, changed, and put into a group."""

    account: Account
    user: Account
    steps: tuple

    def tell(self, telling):
        names = {4720: "Account created", 4722: "Account enabled", 4723: "Password change tried", 4738: "Account changed", 4724: "Password reset tried", 4725: "Account disabled",
                 4740: "Account locked out", 4767: "Account unlocked", 4726: "Account deleted", 4732: "Member added to local group", 4733: "Member removed from local group",
                 4728: "Member added to global group", 4729: "Member removed from global group", 4756: "Member added to universal group", 4757: "Member removed from universal group"}
        groups = dict.fromkeys((4732, 4733), Account("Administrators", "Builtin", "S-1-5-32-544"))
        groups |= dict.fromkeys((4728, 4729, 4756, 4757), Account("Domain Admins", self.user.domain, "S-1-5-21-1-1-1-512"))
        for number, step in enumerate(self.steps):
            data, shown, detail = target(self.user), str(self.user), None
            group = groups.get(step)
            if group:
                member = "-" if group.domain == "Builtin" else f"CN={self.user.name},CN=Users,DC=corp,DC=example"
                data, shown, detail = {"MemberName": member, "MemberSid": self.user.sid, **target(group)}, str(group), member
            # Everybody changes their own password.
            account = self.user if step == 4723 else self.account
            is_named = not group
            if step == 4740:
                # The machine itself locks. What looks like a domain is the machine that tried.
                data, shown, account = {**data, "TargetDomainName": "KALI"}, OneOf([str(self.user), self.user.name]), telling.system(self.machine)
            data |= subject(account, "0x3c50c") | {"PrivilegeList": "-"}
            time = telling.write(self.machine, self.at + seconds(number * 0.2), SECURITY, step, data, names=[self.user, account] if is_named and step not in (4740, 4767) else [],
                                 told={"user_name": (account, True)} if step != 4740 else None)
            if step == 4720 and time:
                telling.created.add(self.user)
            telling.add(self.machine, "account_changes", [time], event=names[step], account=shown, user_name=str(account), detail=None if is_named else (self.user, detail))


@dataclasses.dataclass(eq=False)
class ClockMoved(Fact):
    """Somebody set the clock, or Windows corrected it."""

    account: Account
    process: str
    moved: float
    sources: tuple

    def tell(self, telling):
        old = self.at + telling.shifts[self.machine]
        telling.shifts[self.machine] += seconds(self.moved)
        new, times, device = old + seconds(self.moved), [], self.process.replace("C:", "\\Device\\HarddiskVolume3")
        if 1 in self.sources:
            data = {"NewTime": stamp(new), "OldTime": stamp(old), **({} if self.machine.is_old else {"Reason": "1", "ProcessName": device, "ProcessID": "1292"})}
            times.append(telling.write(self.machine, self.at, KERNEL, 1, data, user=self.account.sid, version=0 if self.machine.is_old else 2))
        if 4616 in self.sources:
            data = {**subject(self.account, "0x3e5"), "PreviousTime": stamp(old), "NewTime": stamp(new), "ProcessId": "0x608", "ProcessName": self.process}
            times.append(telling.write(self.machine, self.at, SECURITY, 4616, data, told={"user_name": (self.account, True)}))
        is_named = 4616 in self.sources and times[-1] is not None
        process = self.process if is_named else None if self.machine.is_old else device
        if abs(self.moved) >= 60:
            telling.add(self.machine, "clock_changes", times, old_time=Near(old), new_time=Near(new), moved_seconds=Near((new - old).total_seconds(), 2), process=process, user_name=(self.account, is_named))


@dataclasses.dataclass(eq=False)
class Slept(Fact):
    """The machine slept, and read the time from its hardware clock when it woke. The clock did not change."""

    hours: float
    has_audit: bool

    def tell(self, telling):
        wake = self.at + seconds(self.hours * 3600)
        old, new = (time + telling.shifts[self.machine] for time in (self.at, wake))
        telling.write(self.machine, self.at, "Microsoft-Windows-Kernel-Power", 42, {"TargetState": "2", "EffectiveState": "2", "Reason": "7", "Flags": "0", "TransitionsToOn": "1"})
        reason = {} if self.machine.is_old else {"Reason": "2", "ProcessName": "", "ProcessID": "4"}
        woke = telling.write(self.machine, wake, KERNEL, 1, {"NewTime": stamp(new), "OldTime": stamp(old), **reason}, user="S-1-5-18", version=0 if self.machine.is_old else 2)
        if self.has_audit and woke:
            data = {**subject(telling.system(self.machine), "0x3e7"), "PreviousTime": stamp(old), "NewTime": stamp(new), "ProcessId": "0x4", "ProcessName": ""}
            telling.write(self.machine, wake, SECURITY, 4616, data)
        telling.write(self.machine, wake + seconds(2.8), WAKE, 1, {"SleepTime": stamp(old), "WakeTime": stamp(new + seconds(2)), "TargetState": "2"}, user="S-1-5-19")


@dataclasses.dataclass(eq=False)
class Reported(Fact):
    """The System log reports how long the machine is up, and its time zone."""

    zone: str
    is_changed: bool

    def tell(self, telling):
        minutes, name = TIME_ZONES[self.zone]
        zones = telling.facts[self.machine]["zones"]
        offset_of = lambda name: (self.at + telling.shifts[self.machine]).replace(tzinfo=datetime.timezone.utc).astimezone(zoneinfo.ZoneInfo(name)).utcoffset()
        if self.is_changed and zones and offset_of(zones[-1]["zone"]) != offset_of(name):
            # Somebody chose the zone. The next report names it.
            old, new = (str(int(-offset_of(zone).total_seconds() // 60)) for zone in (zones[-1]["zone"], name))
            time = telling.write(self.machine, self.at - seconds(60), KERNEL, 22, {"NewBias": new, "OldBias": old}, user="S-1-5-18")
            telling.add(self.machine, "zones", [time], zone=name, windows_zone=self.zone, utc_offset_seconds=offset_of(name).total_seconds())
        data = {"param1": "", "param2": "", "param3": "", "param4": "", "param5": "427579", "param6": "60", "param7": f"{minutes} {self.zone}"}
        time = telling.write(self.machine, self.at, "EventLog", 6013, data)
        if time and (not zones or zones[-1]["windows_zone"] != self.zone):
            telling.add(self.machine, "zones", [time], zone=name, windows_zone=self.zone, utc_offset_seconds=offset_of(name).total_seconds())


@dataclasses.dataclass(eq=False)
class Broken(Fact):
    """A record got a time that cannot be. What it says is kept, but it is not the first or last of anything."""

    time: datetime.datetime
    kind: int
    account: Account

    def tell(self, telling):
        def noise(*offsets):
            for offset in offsets:
                provider, event_id = (SCM, 7036) if self.kind == 7045 else (SECURITY, 4608)
                telling.write(self.machine, self.at + seconds(offset), provider, event_id, {})

        # The records before and after it say what time it was.
        noise(-2, -1)
        if self.kind == 7045:
            data = {"ServiceName": "BrokenSvc", "ImagePath": "C:\\broken.exe", "ServiceType": "user mode service", "StartType": "demand start", "AccountName": "LocalSystem"}
            time = telling.write(self.machine, self.at, SCM, 7045, data, user=self.account.sid, time=self.time)
            telling.add(self.machine, "services", [time], service="BrokenSvc", path="C:\\broken.exe", user_name=(self.account, False))
        else:
            data = {"TargetUserSid": self.account.sid, "TargetUserName": self.account.name, "TargetDomainName": self.account.domain, "TargetLogonId": BROKEN_ID, "LogonType": "3"}
            time = telling.write(self.machine, self.at, SECURITY, 4634, data, time=self.time, names=[self.account])
        telling.add(self.machine, "broken", [time], event=telling.events[-1] if time else None)
        noise(1, 2)


@dataclasses.dataclass(eq=False)
class Ran(Fact):
    """Programs started each other: each has the number of its parent before it."""

    account: Account
    tree: tuple
    sources: tuple
    is_named: bool
    has_ended: bool

    def tell(self, telling):
        base = 0x1000 + 0x100 * telling.pids[self.machine]
        telling.pids[self.machine] += not self.has_ended
        rows = []
        for number, (program, parent) in enumerate(self.tree):
            at, pid, image = self.at + seconds(2 * number), base + 4 * number, f"C:\\Windows\\System32\\{program}"
            parent_pid, parent_image = (base + 4 * parent, rows[parent]["process"]) if parent is not None else (0x44, "C:\\Windows\\explorer.exe")
            guid = lambda value: f"{{{0x747f3d96 + self.at.microsecond:08x}-{self.at.toordinal():04x}"[:14] + f"-5d46-0000-{value:012x}}}"
            logon_id = {"S-1-5-18": "0x3e7", "S-1-5-19": "0x3e5", "S-1-5-20": "0x3e4"}.get(self.account.sid, "0x6a423")
            shown, times, ids = self.account if self.is_named else dataclasses.replace(self.account, name="-", domain="-"), [], []
            if 4688 in self.sources:
                data = {**subject(shown, logon_id), "NewProcessId": hex(pid), "NewProcessName": image, "TokenElevationType": "%%1936", "ProcessId": hex(parent_pid), "CommandLine": program}
                data |= {"TargetUserSid": "S-1-0-0", "TargetUserName": "-", "TargetDomainName": "-", "TargetLogonId": "0x0", "ParentProcessName": parent_image, "MandatoryLabel": "S-1-16-12288"}
                times.append(telling.write(self.machine, at, SECURITY, 4688, data, version=2, names=[self.account] if self.is_named else [],
                                           told={"user_name": (self.account, self.is_named), "user_sid": self.account.sid, "process": image}))
                ids += [4688] if times[-1] else []
            if 1 in self.sources:
                data = {"RuleName": "-", "UtcTime": f"{at:%Y-%m-%d %H:%M:%S.%f}"[:-3], "ProcessGuid": guid(pid), "ProcessId": str(pid), "Image": image, "CommandLine": program, "User": str(self.account)}
                data |= {"LogonId": logon_id, "ParentProcessGuid": guid(parent_pid), "ParentProcessId": str(parent_pid), "ParentImage": parent_image}
                times.append(telling.write(self.machine, at + seconds(0.03), SYSMON, 1, data, user="S-1-5-18", version=5, told={"user_name": (self.account, True), "process": image}))
                ids = [1] * bool(times[-1]) + ids
            end = None
            if self.has_ended:
                at = self.at + seconds(100 - number)
                ends = [telling.write(self.machine, at, SECURITY, 4689, {**subject(shown, logon_id), "Status": "0x0", "ProcessId": hex(pid), "ProcessName": image}) if 4688 in self.sources else None]
                data = {"RuleName": "-", "UtcTime": "", "ProcessGuid": guid(pid), "ProcessId": str(pid), "Image": image}
                ends += [telling.write(self.machine, at, SYSMON, 5, data, user="S-1-5-18", version=3) if 1 in self.sources else None]
                end = next(filter(None, ends), None)
            rows.append({
                "time_created": OneOf(time for time in times if time), "computer": telling.computer(self.machine), "process": image, "pid": pid, "parent_pid": parent_pid, "parent_process": parent_image,
                "depth": rows[parent]["depth"] + 1 if parent is not None else 0, "event_ids": ids, "end_time": end, "user_name": (self.account, self.is_named or 1 in ids),
            })
            if ids:
                telling.processes.append(rows[-1])


class Story:
    """A number of facts on some machines."""

    def __init__(self, number, machines, facts):
        self.number, self.machines, self.facts = number, machines, facts

    def __str__(self):
        involved = [machine for machine in self.machines if any(machine in vars(fact).values() for fact in self.facts)]
        return f"Story {self.number} with {involved}:\n" + "\n".join(f"  {fact}" for fact in self.facts)

    def accounts(self):
        return {value for fact in self.facts for value in vars(fact).values() if isinstance(value, Account)}

    def without(self, fact):
        return Story(self.number, self.machines, [other for other in self.facts if other is not fact])


class Author:
    """Makes up a story. Its machines, accounts and SIDs are its own, so many stories can be in one table."""

    # The methods, as often as they are wanted.
    KINDS = """noise service task console network remote_desktop remote_desktop failure failure gateway rename boot clear account_change clock sleep zone
        zone broken processes processes""".split()

    def __init__(self, seed, number):
        self.chance, self.number, self.facts, self.planned = random.Random(f"{seed}/{number}"), number, [], []
        self.domain, self.suffix = f"CORP{number}", f"corp{number}.example"
        self.authority = f"S-1-5-21-{1000 + number}-{self.chance.randrange(10**9)}-77"
        names = {500: "Administrator", 1101: "alice", 1102: "bob", 1103: "carol", 1104: "svc-backup"}
        self.people = [self.account_of(name, rid) for rid, name in names.items()]
        self.hidden = self.account_of(f"support{number}$", 1199)
        self.forwards = self.odds(0.2)
        self.machines = [self.machine("DC", True), *(self.machine(f"WIN-{letter}", self.odds(0.6)) for letter in "ABC"[:self.chance.randint(1, 3)])]
        self.sources = [(f"10.{number % 200}.0.{self.chance.randint(2, 250)}", name) for name in ("KALI", "LAPTOP7")]
        self.sources += [("203.0.113.45", None), (None, "kali"), ("fe80::2dcf:e660:be73:d220", None)]
        self.at = datetime.datetime(2024, 1, 1) + seconds(self.chance.randrange(300 * 86400)) + datetime.timedelta(microseconds=self.chance.randrange(10**6))

    def story(self):
        for _ in range(self.chance.randint(1, 14)):
            self.facts.append(self.next_fact())
            # Every fact ends within its time. Sleeps and bursts of failures last longest.
            lasts = {Slept: 40 * 3600 + 300, Failed: 1200}.get(type(self.facts[-1]), 300)
            self.at += seconds(lasts + round(self.pick(0, 600, 20000, 200000, 3000000) * self.chance.random(), 3))
        return Story(self.number, self.machines, self.facts)

    def pick(self, *values):
        return self.chance.choice(values)

    def odds(self, probability):
        return self.chance.random() < probability

    def some(self, *values):
        return tuple(value for value in values if self.odds(0.7)) or (self.pick(*values),)

    def account_of(self, name, rid):
        return Account(name, self.domain, f"{self.authority}-{rid}")

    def machine(self, name, is_joined):
        logs, others = ["Security", "System"], [SYSMON, TASKS, RDP_CORE, SESSIONS, CONNECTIONS]
        missing = [log for log in logs if self.odds(0.1)] + [CHANNELS[log] for log in others if self.odds(0.2)]
        forwarded = [log for log in logs if name != "DC" and self.forwards and self.odds(0.5)]
        copied = [log for log in logs if self.odds(0.1)]
        joined = {"domain": self.domain, "suffix": self.suffix} if is_joined else {}
        return Machine(f"{name}{self.number}", **joined, is_old=self.odds(0.3), missing=tuple(missing), copied=tuple(copied), forwarded=tuple(forwarded))

    def next_fact(self):
        self.place, self.account = self.pick(*self.machines), self.pick(*self.people)
        self.address, self.workstation = self.pick(*self.sources)
        last = self.facts[-1] if self.facts else None
        stays = [came for came in self.facts if isinstance(came, Came) and came.lasts is None]
        if self.planned:
            return self.planned.pop(0)()
        if stays and self.odds(0.2):
            return self.end_of(stays[-1])
        if isinstance(last, Failed) and self.odds(0.3):
            return self.success_after(last)
        return getattr(self, self.pick(*self.KINDS))()

    def end_of(self, came):
        """The session ends. It can be in another log than its start, in which a record has a broken time."""
        def end():
            return Left(self.at, came.machine, came)
        if self.forwards or self.odds(0.7):
            return end()
        self.planned = [lambda: Noise(self.at, came.machine), lambda: Broken(self.at, came.machine, self.far(), 4634, self.people[0]), end]
        return Cleared(self.at, came.machine, self.people[0], "Security", True)

    def success_after(self, failed):
        """One of the accounts whose logons failed logs on from the same machine."""
        account = next((account for account in failed.accounts if account.domain), self.people[1])
        if failed.way == "console":
            return Came(self.at, failed.machine, account, 2, lasts=50)
        if failed.way in ("ssh", "mssql"):
            return Accepted(self.at, failed.machine, failed.accounts[0], failed.way, failed.address)
        source = failed.controller if failed.way == "kerberos" else failed.machine, account
        if not failed.address or self.odds(0.5):
            return Came(self.at, *source, 3, failed.address, failed.workstation, lasts=self.pick(None, 0.5))
        return RemoteDesktop(self.at, *source, 10, failed.address, failed.workstation, sources=self.some(4624, 1149, 21), lasts=100)

    def far(self):
        return datetime.datetime(self.pick(1700, 2030), 5, 1) + seconds(self.chance.randrange(3 * 10**9))

    def with_address(self):
        self.address, self.workstation = self.pick(*(source for source in self.sources if source[0]))
        return self.address, self.workstation

    def noise(self):
        return Noise(self.at, self.place)

    def service(self):
        system = Account("SYSTEM", "NT AUTHORITY", "S-1-5-18") if "Security" in self.place.missing else Account(f"{self.place.name}$", self.place.domain, "S-1-5-18")
        offsets = itertools.accumulate(round(self.chance.uniform(3, 20), 1) for _ in range(self.pick(1, 1, 2, 5)))
        service, path = self.pick("PSEXESVC", "BTOBTO"), self.pick("%SystemRoot%\\PSEXESVC.exe", "C:\\tools\\x.exe")
        who, delay, sources = self.pick(self.account, self.account, system), round(self.chance.uniform(-1, 1), 1), self.some(4697, 7045)
        return Installed(self.at, self.place, who, service, path, tuple(offsets), sources, delay, other=self.pick(None, None, "AAAA") if 7045 in sources else None)

    def task(self):
        return Scheduled(self.at, self.place, self.account, self.pick("\\CYAlyNSS", "\\Updater"), self.some(4698, 106), round(self.chance.uniform(0, 3), 1))

    def console(self):
        local = self.pick(None, None, "LOCAL", "YEREL", "LOKAL", "ローカル")
        return Came(self.at, self.place, self.account, self.pick(2, 11, 7), is_admin=self.odds(0.5), has_other_half=self.odds(0.3), lasts=self.pick(None, 90), local=local)

    def network(self):
        number = self.chance.randrange(len(self.machines))
        computer = self.account_of(f"{self.machines[number].name}$", 1600 + number)
        account = self.pick(self.account, self.hidden, computer, Account("ANONYMOUS LOGON", "NT AUTHORITY", "S-1-5-7"))
        source = self.pick(*[(self.address, self.workstation)] * 4, ("::1", None), ("127.0.0.1", None), (None, ITSELF))
        form = self.pick("{}", "::ffff:{}") if source[0] and "." in source[0] else "{}"
        return Came(self.at, self.place, account, self.pick(3, 3, 8), *source, form, is_admin=self.odds(0.3), lasts=self.pick(None, 0.5, 80))

    def remote_desktop(self):
        is_back = self.odds(0.4)
        kind, sources = (self.pick(7, 13), self.some(4624, 1149, 25, 4778)) if is_back else (self.pick(10, 10, 12), self.some(4624, 1149, 21))
        return RemoteDesktop(
            self.at, self.place, self.pick(self.account, self.account, self.hidden), kind, *self.with_address(), is_admin=self.odds(0.5),
            has_other_half=self.odds(0.3), lasts=self.pick(None, 100), sources=sources, offsets=self.pick((0,), (0,), (0, 20), (0, 10, 90)),
            nla=self.pick((), (), (0,), (0,), (0, 0.16)), nla_has_address=self.odds(0.7), has_domain=self.odds(0.7), is_back=is_back)

    def failure(self):
        way = self.pick("network", "network", "console", "kerberos", "mssql", "ssh")
        reasons = {"kerberos": KERBEROS, "mssql": MSSQL, "ssh": ["wrong password", "unknown user"]}.get(way, REASONS)
        reason, accounts = self.pick(*reasons), self.chance.sample(self.people, self.pick(1, 1, 1, 3, 5))
        if reason == "unknown user":
            accounts = [Account(name, "", "S-1-0-0") for name in ("sa", "test", "oracle")[:self.chance.randint(1, 3)]]
        if way != "network" or self.odds(0.5):
            self.with_address()
        if way == "kerberos":
            # The controller writes addresses of IPv4 as those of IPv6.
            self.address, self.workstation = self.pick(*self.sources[:3])
        controller = self.machines[0] if way == "kerberos" or self.odds(0.5) else None
        return Failed(self.at, self.place, tuple(accounts), way, reason, self.address, self.workstation, self.pick(1, 2, 3, 12, 30), self.pick(0.1, 0.7, 3.3, 31),
                      controller, self.some(4625, 4776, 140), typed=self.pick(None, None, "WORKGROUP", ".", "KALI"))

    def gateway(self):
        return Passed(self.at, self.place, self.account, self.with_address()[0])

    def rename(self):
        name = f"{self.pick('SRV', 'WS', 'FILE')}{len(self.facts)}-{self.number}"
        return Renamed(self.at, self.pick(*self.machines[1:]), name, self.pick("", self.suffix))

    def boot(self):
        return Booted(self.at, self.place, self.odds(0.4))

    def clear(self):
        return Cleared(self.at, self.place, self.account, self.pick("Security", "System", CHANNELS[TASKS]), self.odds(0.7))

    def account_change(self):
        steps = self.pick((4720, 4722, 4738, 4732), (4720, 4724, 4728), (4740, 4767, 4725), (4726,), (4732,), (4720,), (4756, 4723, 4757), (4729, 4733))
        return Created(self.at, self.place, self.account, self.pick(self.hidden, self.account_of("mallory", 1198)), steps)

    def clock(self):
        # The clock is never set back into what happened before, so the order of the facts is clear.
        moved, folder = self.pick(0.02, 59, 61.5, 3600, 86400, -61.5, -100), "C:\\Windows\\System32\\"
        who, program = self.pick((self.account, "SystemSettingsAdminFlows.exe"), (LOCAL_SERVICE, "svchost.exe"))
        return ClockMoved(self.at, self.place, who, folder + program, moved, self.some(1, 4616))

    def sleep(self):
        return Slept(self.at, self.place, self.pick(0.1, 5, 40), self.odds(0.5))

    def zone(self):
        return Reported(self.at, self.place, self.pick(*TIME_ZONES), self.odds(0.4))

    def broken(self):
        return self.noise() if self.forwards else Broken(self.at, self.place, self.far(), self.pick(7045, 4634), self.account)

    def processes(self):
        tree = (("cmd.exe", None), ("powershell.exe", 0), ("whoami.exe", 1), ("net.exe", self.pick(0, 1, None)))[:self.chance.randint(1, 4)]
        account = self.pick(self.account, self.account, Account("SYSTEM", "NT AUTHORITY", "S-1-5-18"))
        return Ran(self.at, self.place, account, tree, self.some(4688, 1), self.odds(0.6), self.odds(0.7))


def draw(seed, number):
    """A random story."""
    return Author(seed, number).story()


def day_or_more(times):
    return [{"start": first, "duration_seconds": (second - first).total_seconds()} for first, second in itertools.pairwise(times) if second - first >= datetime.timedelta(days=1)]


def by_time(facts, *names):
    """The entries of a list of the summary."""
    return [{name: fact[name] for name in names} for fact in sorted(facts, key=lambda fact: fact["time"])]


def forms(accounts):
    """How events write an account: with the domain or without."""
    return OneOf(dict.fromkeys(Text(form) for account in accounts for form in (str(account), account.name))) if accounts else None


def bare(account):
    return account and account.name.lower()


def failed_logons(facts):
    """The failures of each source, and the first success after them."""
    entries = []
    for source, failures in groups(facts["failures"], lambda fact: fact["source"]):
        failures.sort(key=lambda fact: fact["time"])
        counts = collections.Counter(bare(fact["account"]) for fact in failures)
        first = {}
        for fact in failures:
            first.setdefault(bare(fact["account"]), fact["time"])
        named = [fact["account"] for fact in failures if fact["account"]]
        top = [account for account in named if counts[bare(account)] == max(counts[bare(other)] for other in named)]
        # RdpCoreTS 140 names no account, so anybody's logon counts.
        nobody = [fact["time"] for fact in failures if not fact["account"]][:1]
        # The case of a machine's name can differ.
        successes = [fact for fact in facts["successes"] if (fact["source"] or "").lower() == (source or "").lower()
                     and any(fact["time"] > time for time in [*nobody, *[first[name] for name in [bare(fact["account"])] if name in first]])]  # fmt: skip
        success = min(successes, key=lambda fact: fact["time"], default=None)
        reasons = collections.Counter(fact["reason"] for fact in failures)
        entries.append({
            "source": source, "account": forms(top), "accounts": len(counts.keys() - {None}), "failures": len(failures),
            "reasons": [{"reason": reason, "failures": count} for reason, count in sorted(reasons.items(), key=lambda item: (-item[1], item[0]))],
            "most_in_a_minute": max(collections.Counter(fact["time"].replace(second=0, microsecond=0) for fact in failures).values()),
            "first": failures[0]["time"], "last": failures[-1]["time"],
            "success": success and {"time": success["time"], "account": forms([success["account"]])},
        })
    return sorted(entries, key=lambda entry: (-entry["failures"], entry["source"] is not None, entry["source"]))


def remote_logons(telling, facts):
    """The logons of each account and source. Network logons of names that end in $ are those of machines, unless an event says that the account was created."""
    entries = []
    of_people = [fact for fact in facts["visits"] if not fact["account"].name.endswith("$") or fact["account"] in telling.created or not fact["kinds"] & {"Network", "NetworkCleartext"}]
    for (_, source), visits in groups(of_people, lambda fact: (bare(fact["account"]), fact["source"])):
        visits.sort(key=lambda fact: fact["time"])
        entries.append({
            "account": forms([visit["account"] for visit in visits]), "source": source, "kinds": sorted(set().union(*(visit["kinds"] for visit in visits))),
            "logons": sum(visit["logons"] for visit in visits), "first": Between(visits[0]["time"], visits[0]["time"] + seconds(2.1)), "last": Between(visits[-1]["time"], visits[-1]["last"]),
        })
    return entries


def groups(items, key):
    found = collections.defaultdict(list)
    for item in items:
        found[key(item)].append(item)
    return found.items()


class Between:
    """A time from the first to the last event of a fact."""

    def __init__(self, first, last):
        self.first, self.last = first, last

    def __eq__(self, other):
        return other is not None and self.first <= other <= self.last

    def __repr__(self):
        return f"from {self.first} to {self.last}"


def summary(telling, rows, machine):
    """The row of evtx_case_summary, but for what only files say. None if no log connects the names of a machine."""
    own = [row for row in rows if row["machine"] is machine and not row["is_broken"]]
    if not own:
        return None
    files = [{row["computer"] for row in of_file} for _, of_file in groups(own, lambda row: row["is_own"] and row["filename"] or row["computer"])]
    connected = files.pop()
    while other := next((names for names in files if names & connected), None):
        files.remove(other)
        connected |= other
    if files:
        return None
    facts, who = telling.facts[machine], lambda fact: {**fact, "user_name": telling.who(*fact["user_name"])}
    times = sorted(row["time_created"] for row in own)
    names = [{"name": name, "first": min(row["time_created"] for row in of_name), "last": max(row["time_created"] for row in of_name)} for name, of_name in groups(own, lambda row: row["computer"])]
    changes = [{**fact, "detail": member(telling, fact["detail"])} for fact in facts["account_changes"]]
    number_of = {id(event): row["record_id"] for row in rows for event in [row["event"]] if row["is_own"]}
    return {
        "computer": own[-1]["computer"], "names": sorted(names, key=lambda name: name["first"]), "first_event": times[0], "last_event": times[-1],
        "events": sum(row["machine"] is machine for row in rows), "logs": len({row["filename"] for row in own}),
        "broken_times": sorted((Having(record_id=number_of[id(fact["event"])], time=fact["time"]) for fact in facts["broken"]), key=lambda entry: entry["time"]),
        "time_zones": by_time(facts["zones"], "time", "zone", "windows_zone", "utc_offset_seconds"),
        "clock_changes": by_time(map(who, facts["clock_changes"]), "time", "old_time", "new_time", "moved_seconds", "user_name", "process"),
        "gaps": day_or_more(times), "cleared_logs": by_time(facts["clears"], "time", "log", "user_name"),
        "boots": sorted(fact["time"] for fact in facts["boots"]), "unexpected_shutdowns": sorted(fact["time"] for fact in facts["crashes"]),
        "account_changes": by_time(changes, "time", "event", "account", "detail", "user_name"), "failed_logons": failed_logons(facts),
        "new_services": by_time(map(who, facts["services"]), "time", "service", "path", "user_name"),
        "new_tasks": by_time(map(who, facts["tasks"]), "time", "task", "user_name"), "remote_logons": remote_logons(telling, facts),
    }


def sessions(telling):
    """The rows of evtx_logons."""
    return [Having(logon) for logon in telling.logons]


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


def of_summaries(tellings, column):
    """The entries of a list, with the computer."""
    for telling, rows in tellings:
        for row in filter(None, (summary(telling, rows, machine) for machine in telling.story.machines)):
            yield from ((row["computer"], entry) for entry in row[column])


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
                    found[visit["computer"], bare(visit["account"]), visit["source"]] += visit["logons"]
    return found


def member(telling, detail):
    """A member of a group: the name in any log, else that in the directory, else the SID."""
    if detail is None:
        return None
    account, directory = detail
    if account in telling.known:
        return str(account)
    return directory if directory != "-" else telling.who(account, False)
