"""The people and machines of stories, the events that machines write, and values that a right answer can have."""

import dataclasses
import datetime
from collections.abc import Callable

SECURITY, SYSMON, KERNEL = "Microsoft-Windows-Security-Auditing", "Microsoft-Windows-Sysmon", "Microsoft-Windows-Kernel-General"
EVENTLOG, SCM, TASKS = "Microsoft-Windows-Eventlog", "Service Control Manager", "Microsoft-Windows-TaskScheduler"
WAKE, SSH, RDP_CORE = "Microsoft-Windows-Power-Troubleshooter", "OpenSSH", "Microsoft-Windows-RemoteDesktopServices-RdpCoreTS"
SESSIONS, CONNECTIONS, GATEWAY = (f"Microsoft-Windows-TerminalServices-{part}" for part in ("LocalSessionManager", "RemoteConnectionManager", "Gateway"))
CHANNELS = {
    SECURITY: "Security", SSH: "OpenSSH/Operational", "MSSQLSERVER": "Application", "MSSQL$ERP": "Application",
    **{provider: f"{provider}/Operational" for provider in (SYSMON, TASKS, RDP_CORE, SESSIONS, CONNECTIONS, GATEWAY)},
}
# The name of the machine, whatever that is at the time.
ITSELF = "itself"
# What a client writes to be taken for this machine.
CLAIMS = (ITSELF, "localhost", "127.0.0.1")
# No session has this logon ID.
BROKEN_ID = "0x3e3"
PRIVILEGES = "SeSecurityPrivilege\r\n\t\t\tSeBackupPrivilege\r\n\t\t\tSeDebugPrivilege"


def seconds(count):
    return datetime.timedelta(seconds=count)


def stamp(time):
    """A time as event data has it: with seven digits."""
    return f"{time:%Y-%m-%dT%H:%M:%S.%f}0Z"


class Stamp(datetime.datetime):
    """A time that a clock showed. Clocks are set: `at` is when that was."""

    at = None

    @classmethod
    def of(cls, time, at):
        stamp = cls(time.year, time.month, time.day, time.hour, time.minute, time.second, time.microsecond)
        stamp.at = at
        return stamp


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
    # The logs that exist as exports, with the form of each.
    exported: dict = dataclasses.field(default_factory=dict)
    # The logs that have the computer in another case, with the function.
    spelled: dict = dataclasses.field(default_factory=dict)
    # The case of providers.
    providers: Callable = str

    def __repr__(self):
        spelled = {log: change.__name__ for log, change in self.spelled.items()}
        forms = (self.is_old and "old", self.missing and f"no {self.missing}", self.copied and f"copies {self.copied}", self.forwarded and f"forwards {self.forwarded}",
                 self.exported and f"exports {self.exported}", spelled and f"spells {spelled}", self.providers is not str and f"{self.providers.__name__} providers")
        return self.name + "".join(f", {what}" for what in forms if what)


def subject(account, logon_id="0x0"):
    return {"SubjectUserSid": account.sid, "SubjectUserName": account.name, "SubjectDomainName": account.domain, "SubjectLogonId": logon_id}


def target(account):
    return {"TargetUserName": account.name, "TargetDomainName": account.domain, "TargetSid": account.sid}
