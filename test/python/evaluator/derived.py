"""The derived facts of evtx_facts: failed logons, starts, gaps and the clock."""

import collections
import itertools
import re

from evaluator.clocks import DAY, MINUTE, Clocks, broken, is_resumed, machines, starts_of, woken
from evaluator.events import KERNEL, SECOND, SECURITY, SESSIONS, case, moment, number_of
from evaluator.hosts import is_address, without_mapping

RDP = "Microsoft-Windows-RemoteDesktopServices-RdpCoreTS"


class Derived:
    """The derived facts of a machine."""

    def __init__(self, events, placed, word):
        # Each event once, and all events whose time is not broken.
        self.wakes = [wake for event in events if (wake := woken(event))]
        self.resumed = [moment(event.get("NewTime")) for event in events if is_resumed(event)]
        self.clocks = Clocks(events, lambda event: None, self.wakes)
        self.events, self.placed, self.word = events, placed, word
        self.own = {event.computer.lower().split(".")[0] for event in events}

    def row(self):
        told = {id(event) for event in self.placed}
        passed = [(self.clocks.time(event), event) for event in sorted(self.events, key=self.clocks.place) if id(event) in told]
        return {
            "gaps": sorted((event.time, (later - time) // DAY) for (time, event), (later, _) in itertools.pairwise(passed) if later - time >= DAY),
            "starts": self.boots(), "clock": self.clock_changes(),
            "failed logons": sorted(collections.Counter(bare(account or "") for _, account, _, _ in self.failures()).items()),
        }  # fmt: skip

    def of(self, provider, *ids):
        return [event for event in self.events if event.is_a(provider, *ids)]

    def boots(self):
        events = sorted(self.of(KERNEL, 12) + self.of("EventLog", 6005) + self.of(SECURITY, 4608, 4826), key=self.clocks.place)
        # The event log can write 6005 with a time after those of the next records. The kernel (12) knows when it started.
        return [next((event for event in start if event.id == 12), start[0]).time for start in starts_of(events, self.clocks, lambda event: None)]

    def is_resumed(self, new):
        """Whether the tools of a virtual machine set the clock to a time. Two logs tell of it."""
        return any(abs(resumed - new) <= SECOND for resumed in self.resumed)

    def clock_changes(self):
        """When the clock was set by a minute or more, to what. Two logs tell of it."""
        found = {}
        for event in self.of(SECURITY, 4616) + self.of(KERNEL, 1):
            old, new = moment(event.get("OldTime", "PreviousTime")), moment(event.get("NewTime"))
            if old is None or new is None or abs(new - old) < MINUTE or not self.is_resumed(new) and any(abs(wake - new) <= MINUTE for wake in self.wakes):
                continue
            found[new] = min(event.time, found.get(new, event.time))
        return sorted(found.values())

    def source(self, event):
        """The other machine: an address, or else a name."""
        # The client chooses the name before its address.
        found = re.match(r".* from (\S+) port \d+", event.data.get("payload", "")) or re.match(r"\s*\[CLIENT: ([^<\]]+)", event.data.get("param3", event.data.get("param2", "")))
        fields = ("IpAddress", "Address", "ClientAddress", "IPString", "Param3", "WorkstationName", "Workstation", "ClientName")
        for host in [found and found[1], *(event.data.get(name) for name in fields)]:
            host = (host or "").strip().lstrip("\\")
            if address := re.fullmatch(r"\[([^\]]*)\](?::\d+)?|([^:]*):\d+", host):
                host = address[1] or address[2]
            host = without_mapping(host)
            here = host.lower() in ("", "-", "0.0.0.0", "::", "::1", "local", "localhost") or host.startswith("127.") or host.lower().split(".")[0] in self.own
            # Windows translates LOCAL.
            if not here and (event.provider != SESSIONS or is_address(host)):
                return host
        return None

    def failures(self):
        """Failed logons: time, account, source and reason. A failure that several events tell of counts once."""
        found = []
        for event in self.events:
            status, sub_status, account = event.get("Status"), event.get("SubStatus"), event.get("TargetUserName")
            if event.is_a(SECURITY, 4625):
                reason = self.word("evtx_status", sub_status if number_of(sub_status) else status)
            elif event.is_a(SECURITY, 4776) and number_of(status):
                reason = self.word("evtx_status", status)
            elif event.is_a(SECURITY, 4771) or event.is_a(SECURITY, 4768) and number_of(status):
                reason = self.word("evtx_kerberos_failure", status)
            elif event.is_a(RDP, 140):
                reason, account = "user name or password is not correct", None
            elif event.is_a("OpenSSH", 4) and (text := re.match(r"Failed \S+ for (invalid user )?(.*) from ", event.data.get("payload", ""))):
                reason, account = "Invalid user" if text[1] else "Failed password", text[2]
            elif (event.provider or "").startswith("MSSQL") and event.id == 18456:
                text = re.search(r"Reason: (.*?)\s*(?:\[|$)", event.data.get("param2", ""))
                reason, account = text and text[1], event.data.get("param1")
            else:
                continue
            found.append((event.time, account, self.source(event), reason, event.id))
        found.sort(key=lambda failure: failure[0])

        def runs(failures):
            """Failures at most two seconds apart."""
            run = []
            for failure in failures:
                if run and failure[0] - run[-1][0] > 2 * SECOND:
                    yield run
                    run = []
                run.append(failure)
            if run:
                yield run

        kept, of_account = [], collections.defaultdict(list)
        # Each 4625 is one of the 140, which name no account.
        for run in runs([failure for failure in found if failure[4] in (140, 4625)]):
            logons = sum(failure[4] == 4625 for failure in run)
            kept += [failure for failure in run if failure[4] == 140][logons:]
        for failure in found:
            if failure[4] != 140:
                of_account[bare(failure[1] or "")].append(failure)
        for failures in of_account.values():
            for run in runs(failures):
                # As many failures as the most frequent event tells of, and those from other addresses.
                def rank(event_id, run=run):
                    own = [failure for failure in run if failure[4] == event_id]
                    return -len(own), -sum(failure[2] is not None for failure in own), event_id != 4625, event_id

                best = min({failure[4] for failure in run}, key=rank)
                sources = {failure[2] for failure in run if failure[4] == best}
                has_address = any(source and is_address(source) for source in sources)
                kept += [failure for failure in run if failure[4] == best or has_address and failure[2] and is_address(failure[2]) and failure[2] not in sources]
        return sorted((failure[:4] for failure in kept), key=lambda failure: failure[0])


def bare(account):
    """A name without its domain, in lower case."""
    return account and account.split("\\")[-1].lower()


def derived_facts(events, word):
    """For each machine, its derived facts by topic, from all events, those of copies too."""
    known = [event for event in events if event.time and event.computer is not None]
    machine_of, rows = machines(known), collections.defaultdict(list)
    broken_events = broken(known, machine_of)
    for event in known:
        rows[machine_of(event)].append(event)
    once = {id(event) for event in case(events)}
    return {machine: Derived([event for event in own if id(event) in once], [event for event in own if id(event) not in broken_events] or own, word).row()
            for machine, own in rows.items()}  # fmt: skip
