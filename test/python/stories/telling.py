"""The events of a story, and what is true of it."""

import collections

from stories.exports import FORMS
from stories.facts import Cleared
from stories.world import CHANNELS, SECURITY, Account, Stamp, Text, seconds


class Telling:
    """Writes the events of a story, and collects what is true of it."""

    def __init__(self, story):
        self.story, self.events = story, []
        self.names = {machine: machine.name for machine in story.machines}
        self.suffixes = {machine: machine.suffix for machine in story.machines}
        self.shifts = {machine: seconds(0) for machine in story.machines}
        # What logs do not tell of these.
        self.untold = {machine: seconds(0) for machine in story.machines}
        self.ids, self.pids = collections.Counter(), collections.Counter()
        self.files, self.known = {}, {}
        self.facts = {machine: collections.defaultdict(list) for machine in story.machines}
        self.logons, self.open, self.processes, self.created = [], [], [], set()
        # The event and the session of a logon.
        self.told_of = {}
        self.connections, self.breaks, self.desktops, self.numbers = [], [], {}, collections.Counter()
        self.desktops_of = collections.defaultdict(list)
        # What was written before a log was cleared is lost, unless the log was archived.
        self.starts = {(fact.machine, fact.log): fact.at for fact in story.facts if isinstance(fact, Cleared) and not fact.archived}
        for fact in story.facts:
            fact.tell(self)

    def computer(self, machine):
        return Text(self.names[machine] + (f".{self.suffixes[machine]}" if self.suffixes[machine] else ""))

    def system(self, machine):
        """How the Security log names the machine itself."""
        return Account(f"{self.names[machine]}$", machine.domain, "S-1-5-18")

    def logon_id(self, machine):
        self.ids[machine] += 1
        return f"0x{0x20000 + 0x1111 * self.ids[machine]:x}"

    def session_number(self, machine):
        """How the log of sessions calls a session. Windows uses numbers again only after a boot."""
        self.numbers[machine] += 1
        return str(self.numbers[machine])

    def write(self, machine, at, provider, event_id, data=None, *, user=None, user_data=None, channel=None, names=(), told=None, level=4, version=0, time=None, planted_at=None):
        """Writes an event, unless the log is missing. Returns its time on the machine's clock."""
        channel = channel or CHANNELS.get(provider, "System")
        if channel in machine.missing or at < self.starts.get((machine, channel), at):
            return None
        moment = time or at + self.shifts[machine]
        for account in names:
            if account.sid.count("-") > 3:
                self.known.setdefault(account, set()).add(self.computer(machine))
        log = self.files.setdefault((machine, channel), [0])
        computer = Text(machine.spelled.get(channel, str)(self.computer(machine)))
        self.events.append({
            "machine": machine, "at": at, "log": (machine, channel, log[0]), "time_created": moment, "provider": machine.providers(provider), "source": provider, "event_id": event_id, "channel": channel,
            "computer": computer, "planted_at": planted_at, "event_data": data if user_data is None else None, "user_data": user_data, "user_sid": user, "is_broken": time is not None and not planted_at, "passed": at + self.untold[machine],
            "level": 0 if provider == SECURITY else level, "version": version, "told": told,
        })
        return Stamp.of(moment, at)

    def add(self, machine, topic, times, **fact):
        """Adds a fact, if an event says so."""
        times = [time for time in times if time]
        if times:
            self.facts[machine][topic].append({"time": min(times), "last": max(times), "computer": self.computer(machine), **fact})

    def who(self, account, is_named):
        """The name of an account: if the event only has the SID, other events must name it. Call this at the end."""
        fixed = {"S-1-5-7": "Anonymous Logon", "S-1-5-18": "Local System", "S-1-5-19": "Local Service"}
        # The number 500 is that of Administrator in every domain.
        last_resort = "Administrator" if account.sid.endswith("-500") else account.sid
        # Windows has one name in events with its SID, although they name the machine. Sysmon writes the name alone.
        if account.sid in fixed and is_named != "without SID":
            return fixed[account.sid]
        return str(account) if is_named or account in self.known else last_resort

    def rows(self):
        """The events as rows of read_evtx: with their copies, and numbered in each log."""
        rows, numbers = [], collections.Counter()
        for event in sorted(self.events, key=lambda event: event["at"]):
            machine, channel, generation = event["log"]
            if event["planted_at"]:
                # A log of one record, with the number of another one.
                event["record_id"] = event["event_record_id"] = event["planted_at"]["record_id"]
                event["filename"] = f"story{self.story.number}/{machine.name}/C/planted{len(rows)}.evtx"
                rows.append({**event, "event": event, "is_own": True, "form": None})
                continue
            numbers[event["log"]] += 1
            name = channel.replace("/", "%4")
            name = name if generation == self.files[machine, channel][0] else f"Archive-{name}-{generation}"
            form = machine.exported.get(channel)
            event["record_id"] = numbers[event["log"]]
            event["event_record_id"] = event["record_id"] + (1000 if form == "renumbered" else 0)
            for folder in ["C", "vss1"] if channel in machine.copied else ["C"]:
                event["filename"] = f"story{self.story.number}/{machine.name}/{folder}/{name}.{FORMS[form].ending if form in FORMS else 'evtx'}"
                rows.append({**event, "event": event, "is_own": True, "form": form})
            if channel in machine.forwarded:
                # The first machine collects what others forward, in a log with record IDs of its own.
                collector = f"story{self.story.number}/{self.story.machines[0].name}/C/ForwardedEvents.evtx"
                numbers[collector] += 1
                rows.append({**event, "event": event, "is_own": False, "filename": collector, "record_id": numbers[collector], "form": None})
        for row in rows:
            if row["form"] in FORMS and FORMS[row["form"]].counts:
                row["record_id"] = numbers[row["log"]] + 1 - row["record_id"]
        return rows
