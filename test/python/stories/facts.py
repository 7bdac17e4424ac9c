"""What happens on a machine: each fact says which events it leaves, and what an analyst should read."""

import dataclasses
import datetime
import zoneinfo

from stories.world import BROKEN_ID, EVENTLOG, KERNEL, PRIVILEGES, SCM, SECURITY, SYSMON, TASKS, WAKE, Account, Machine, Near, OneOf, seconds, stamp, subject, target

TIME_ZONES = {  # As Windows calls them, and the minutes west of UTC without daylight saving time; IANA's names are from CLDR's windowsZones.xml
    "Pacific Standard Time": (480, "America/Los_Angeles"), "Eastern Standard Time": (300, "America/New_York"),
    "Romance Standard Time": (-60, "Europe/Paris"), "W. Europe Standard Time": (-60, "Europe/Berlin"),
    "India Standard Time": (-330, "Asia/Calcutta"), "UTC": (0, "Etc/UTC"), "AUS Eastern Standard Time": (-600, "Australia/Sydney"),
}


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
        telling.desktops = {}
        started = telling.write(self.machine, at + seconds(1), "EventLog", 6005, {"Binary": "E40709000500120016003A0009006E000000000000000000"})
        if not self.machine.is_old:
            data = {"MajorVersion": "10", "MinorVersion": "0", "BuildVersion": "19041", "BootMode": "0", "StartTime": stamp(at + telling.shifts[self.machine])}
            started = telling.write(self.machine, at, KERNEL, 12, data, user="S-1-5-18") or started
        audited = telling.write(self.machine, at + seconds(1), SECURITY, 4608, {})
        telling.add(self.machine, "boots", [started, audited])

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
        if not any(times):
            telling.untold[self.machine] += seconds(self.moved)
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
                # What all macros read, because a log of two records does not show which of their times is broken.
                provider, event_id = (SCM, 7036) if self.kind == 7045 else (SECURITY, 4672)
                telling.write(self.machine, self.at + seconds(offset), provider, event_id, {} if self.kind == 7045 else subject(Account("SYSTEM", "NT AUTHORITY", "S-1-5-18"), "0x3e7"))

        # The records before and after it say what time it was.
        noise(-2, -1)
        if self.kind == 7045:
            data = {"ServiceName": "BrokenSvc", "ImagePath": "C:\\broken.exe", "ServiceType": "user mode service", "StartType": "demand start", "AccountName": "LocalSystem"}
            time = telling.write(self.machine, self.at, SCM, 7045, data, user=self.account.sid, time=self.time, told={"user_name": (self.account, False)})
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
                times.append(telling.write(self.machine, at + seconds(0.03), SYSMON, 1, data, user="S-1-5-18", version=5, told={"user_name": (self.account, "without SID"), "process": image}))
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
                "depth": rows[parent]["depth"] + 1 if parent is not None else 0, "event_ids": ids, "end_time": end, "user_name": (self.account, "without SID" if 1 in ids else self.is_named),
            })
            if ids:
                telling.processes.append(rows[-1])
