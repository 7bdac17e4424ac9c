"""Makes up stories."""

import dataclasses
import datetime
import itertools
import random

from stories.exports import FORMS
from stories.facts import TIME_ZONES, Booted, Broken, Cleared, ClockMoved, Created, Installed, Noise, Ran, Renamed, Reported, Scheduled, Slept
from stories.logons import FORGED, KERBEROS, MSSQL, REASONS, Accepted, Came, Failed, Left, Passed, Planted, Pretended, RemoteDesktop
from stories.world import CHANNELS, CLAIMS, CONNECTIONS, LOCAL_SERVICE, RDP_CORE, SESSIONS, SYSMON, TASKS, Account, Machine, seconds

# A log can be exported, or have records of its own numbers, as `wevtutil epl` writes it.
LOGS_BY_FORM = (*FORMS, "renumbered")


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


# How machines with names in other case write providers.
PROVIDERS = (str, str, str.lower, str.upper)


class Author:
    """Makes up a story. Its machines, accounts and SIDs are its own, so many stories can be in one table."""

    # The methods, as often as they are wanted.
    KINDS = """noise service task console network remote_desktop remote_desktop failure failure gateway rename boot clear account_change clock sleep zone
        zone broken processes processes forged planted pretended""".split()

    def __init__(self, seed, number):
        self.chance, self.number, self.facts, self.planned = random.Random(f"{seed}/{number}"), number, [], []
        self.domain, self.suffix = f"CORP{number}", f"corp{number}.example"
        self.authority = f"S-1-5-21-{1000 + number}-{self.chance.randrange(10**9)}-77"
        names = {500: "Administrator", 1101: "alice", 1102: "bob", 1103: "carol", 1104: "svc-backup"}
        self.people = [self.account_of(name, rid) for rid, name in names.items()]
        self.hidden = self.account_of(f"support{number}$", 1199)
        self.forwards, self.exports, self.spells = self.odds(0.2), self.odds(0.2), self.odds(0.15)
        self.machines = [self.machine("DC", True), *(self.machine(f"WIN-{letter}", self.odds(0.6)) for letter in "ABC"[:self.chance.randint(1, 3)])]
        self.sources = [(f"10.{number % 200}.0.{self.chance.randint(2, 250)}", name) for name in ("KALI", "LAPTOP7")]
        self.sources += [("203.0.113.45", None), (None, "kali"), ("fe80::2dcf:e660:be73:d220", None)]
        self.at = datetime.datetime(2024, 1, 1) + seconds(self.chance.randrange(300 * 86400)) + datetime.timedelta(microseconds=self.chance.randrange(10**6))

    def story(self):
        for _ in range(self.chance.randint(1, 14)):
            fact = self.next_fact()
            if isinstance(fact, (Accepted, Came, Failed, Passed, Pretended, Ran, Scheduled, Slept)):
                # Other logs than Security and System do not say that the clock was set. After that, an hour that runs twice could be the first one. Of an
                # hour of the clock, the summary knows the first and the last event only.
                self.at = fact.at = max([self.at, *(moved.at + seconds(3660 - moved.moved) for moved in self.facts if isinstance(moved, ClockMoved))])
            self.facts.append(fact)
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
        exported = {log: self.pick(*LOGS_BY_FORM) for log in [*logs, *map(CHANNELS.get, others)] if log not in copied + forwarded and self.exports and self.odds(0.5)}
        spelled = {log: self.pick(str.lower, str.upper) for log in ["Security", "System", *map(CHANNELS.get, others)] if self.spells and self.odds(0.5)}
        return Machine(f"{name}{self.number}", **joined, is_old=self.odds(0.3), missing=tuple(missing), copied=tuple(copied), forwarded=tuple(forwarded), exported=exported,
                       spelled=spelled, providers=self.pick(*PROVIDERS) if self.spells else str)

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
        if self.forwards or self.odds(0.7) or self.has_moved(came.machine):
            return end()
        self.planned = [lambda: Noise(self.at, came.machine), lambda: Broken(self.at, came.machine, self.far(), 4634, self.people[0]), end]
        return Cleared(self.at, came.machine, self.people[0], "Security", True)

    def success_after(self, failed):
        """One of the accounts whose logons failed logs on from the same machine."""
        account = next((account for account in failed.accounts if account.domain), self.people[1])
        if failed.way == "console":
            return Came(self.at, failed.machine, account, 2, lasts=50)
        if failed.way in ("ssh", "mssql"):
            return Accepted(self.at, failed.machine, failed.accounts[0], failed.way, failed.address, lasts=self.pick(None, 70))
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
        source = self.pick(*[(self.address, self.workstation)] * 4, ("::1", None), ("127.0.0.1", None), *((None, claim) for claim in CLAIMS))
        form = self.pick("{}", "::ffff:{}") if source[0] and "." in source[0] else "{}"
        return Came(self.at, self.place, account, self.pick(3, 3, 8), *source, form, is_admin=self.odds(0.3), lasts=self.pick(None, 0.5, 80))

    def forged(self):
        """A ticket with the SID of an account has another name. Logs know the account by its own."""
        name, place, account, source = self.pick("svc-ghost", "Administrator", "alice"), self.place, self.account, self.with_address()
        self.planned = [lambda: Came(self.at, place, dataclasses.replace(account, name=name), 3, *source, lasts=self.pick(None, 0.5))]
        return Came(self.at, place, account, 3, *source, lasts=0.5)

    def planted(self):
        came = [fact for fact in self.facts if type(fact) is Came and fact.type == 3 and not fact.machine.exported and not fact.machine.forwarded]
        if not came or any(isinstance(fact, Planted) and fact.came is came[-1] for fact in self.facts):
            return self.noise()
        return Planted(self.at, came[-1].machine, came[-1], self.account_of("mallory", 1198), "198.51.100.77")

    def pretended(self):
        return Pretended(self.at, self.place, self.pick(*FORGED), self.pick(*FORGED), self.with_address()[0], self.pick(1, 1, 3, 12))

    def remote_desktop(self):
        is_back = self.odds(0.4)
        kind, sources = (self.pick(7, 13), self.some(4624, 1149, 25, 4778)) if is_back else (self.pick(10, 10, 12), self.some(4624, 1149, 21))
        return RemoteDesktop(
            self.at, self.place, self.pick(self.account, self.account, self.hidden), kind, *self.with_address(), is_admin=self.odds(0.5),
            has_other_half=self.odds(0.3), lasts=self.pick(None, 100), sources=sources, offsets=self.pick((0,), (0,), (0, 20), (0, 10, 90)),
            nla=self.pick((), (), (0,), (0,), (0, 0.16)), nla_has_address=self.odds(0.7), has_domain=self.odds(0.7), is_back=is_back,
            leaves=self.pick((), (), (24,), (40, 24), (24, 4779), (4779,)))

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

    def has_moved(self, machine):
        """Whether a new log could be from before a change of the clock, because it has no record of it."""
        return any(isinstance(fact, ClockMoved) and fact.machine is machine and abs(fact.moved) > 100 for fact in self.facts)

    def clear(self):
        if self.has_moved(self.place):
            return self.noise()
        return Cleared(self.at, self.place, self.account, self.pick("Security", "System", CHANNELS[TASKS]), self.odds(0.7))

    def account_change(self):
        steps = self.pick((4720, 4722, 4738, 4732), (4720, 4724, 4728), (4740, 4767, 4725), (4726,), (4732,), (4720,), (4756, 4723, 4757), (4729, 4733))
        return Created(self.at, self.place, self.account, self.pick(self.hidden, self.account_of("mallory", 1198)), steps)

    def clock(self):
        moved, folder = self.pick(0.02, 59, 61.5, 3600, 86400, -61.5, -100, -3600, -90000), "C:\\Windows\\System32\\"
        who, program = self.pick((self.account, "SystemSettingsAdminFlows.exe"), (LOCAL_SERVICE, "svchost.exe"))
        # Only the clock tells what happened first if it is set back far.
        place, sources = self.place, (1, 4616) if abs(moved) > 100 else self.some(1, 4616)
        if self.odds(0.3):
            # For seconds.
            self.planned = [lambda: ClockMoved(self.at, place, who, folder + program, -moved, sources)]
        return ClockMoved(self.at, place, who, folder + program, moved, sources)

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
