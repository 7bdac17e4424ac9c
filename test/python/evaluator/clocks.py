"""The order of a case, its machines, and their starts."""

import bisect
import collections
import datetime
import itertools

from evaluator.events import KERNEL, SECOND, SECURITY, is_change, moment, number_of


class Clocks:
    """The order of a case: in a log that of its records, and between the logs of a machine the time by its clock, as it was set last."""

    SLACK = 5 * SECOND

    def __init__(self, events, machine=lambda event: event.computer, wakes=()):
        self.wakes, self.logs, self.times, machines = wakes, collections.defaultdict(list), {}, collections.defaultdict(list)
        for event in events:
            for log, number in event.logs:
                self.logs[machine(event), log, (event.channel or event.provider).lower()].append((number, event))
        for key, found in self.logs.items():
            found.sort(key=lambda pair: (pair[0], pair[1].time))
            # Exports can have the newest record first.
            steps = [after.record - before.record for (_, before), (_, after) in itertools.pairwise(found)]
            if sum(step < 0 for step in steps) > 4 * sum(step > 0 for step in steps):
                found.reverse()
            machines[key[0]].append(key)
        for keys in machines.values():
            changes = self.changes([[change for _, change in self.own([event for _, event in self.logs[key]])] for key in keys])
            for key in keys:
                self.times[key] = self.placed([event for _, event in self.logs[key]], changes)
        self.of_event = collections.defaultdict(list)
        for key, found in self.logs.items():
            for (_, event), time in zip(found, self.times[key]):
                self.of_event[id(event)].append((-len(found), time))

    def changed(self, event):
        """The times before and after, if a record says that the clock was set: not that it went on while Windows slept."""
        if not is_change(event):
            return None
        old, new = moment(event.get("PreviousTime", "OldTime")), moment(event.get("NewTime"))
        is_set = old and new and event.time and abs(new - old) >= SECOND and abs(event.time - new) <= 300 * SECOND
        return (old, new) if is_set and all(abs(wake - new) > 60 * SECOND for wake in self.wakes) else None

    def own(self, events):
        """The changes that a log has, each with its place. Of two records of one change, the first counts."""
        found, since = [], []
        for place, event in enumerate(events):
            since.append(event.time)
            if (change := self.changed(event)) and not (found and self.is_same(found[-1][1], change) and max(since) <= change[1] + self.SLACK):
                found.append((place, change))
                since = [event.time]
        return found

    def is_late(self, event):
        """What the kernel says of its start is written after the event log has started."""
        return event.is_a(KERNEL, 12)

    def is_same(self, one, other):
        return all(abs(a - b) <= self.SLACK for a, b in zip(one, other))

    def changes(self, told):
        """The changes of all logs. What no log has after another one comes next: of several, the one that the clock reaches first."""
        told, found = [list(changes) for changes in told if changes], []
        while told:
            first = [changes[0] for changes in told if not any(self.is_same(changes[0], later) for other in told for later in other[1:])] or [told[0][0]]
            clock = found[-1][1] if found else datetime.datetime.min
            found.append(min(first, key=lambda change: (change[0] < clock - self.SLACK if found else False, change)))
            told = [rest for changes in told if (rest := changes[self.is_same(changes[0], found[-1]) :])]
        return found

    def placed(self, events, changes):
        """The times of a log. Epochs are between changes: as few records as possible are outside of theirs, or before the one before them."""
        moves = [sum((new - old for old, new in changes[epoch:]), 0 * SECOND) for epoch in range(len(changes) + 1)]
        starts, ends = [datetime.datetime.min, *(new - self.SLACK for _, new in changes)], [*(old + self.SLACK for old, _ in changes), datetime.datetime.max]
        own, epoch = {}, 0
        for place, change in self.own(events):
            epoch = next((at + 1 for at in range(epoch, len(changes)) if self.is_same(changes[at], change)), epoch)
            own[place] = epoch
        # The lowest and the highest epoch that the log's own changes leave each record.
        lowest = list(itertools.accumulate((own.get(place, 0) for place in range(len(events))), max))
        highest = list(itertools.accumulate((own.get(place, len(changes) + 1) - 1 for place in reversed(range(len(events)))), min))[::-1][1:] + [len(changes)]
        last = None
        best = {epoch: (0, None) for epoch in range(len(changes) + 1)}
        for place, (event, low, high) in enumerate(zip(events, lowest, highest)):
            following = {}
            for epoch in range(low, high + 1):
                falls = last is not None and not self.is_late(event) and event.time < last - self.SLACK and place not in own
                ways = [(cost + (falls and before == epoch), before) for before, (cost, _) in best.items() if before <= epoch]
                if ways:
                    cost, before = min(ways)
                    following[epoch] = (cost + (not self.is_late(event) and not starts[epoch] <= event.time <= ends[epoch]), (epoch, best[before][1]))
            best, last = following, last if self.is_late(event) else event.time
        path = min(best.values(), key=lambda way: way[0])[1] if events else None
        epochs = []
        while path:
            epochs.append(path[0])
            path = path[1]
        epochs.reverse()
        # A late record is in the epoch of the one before it, or else of the one after it.
        first = next((at for at, event in enumerate(events) if not self.is_late(event)), 0)
        epochs[:first] = [epochs[first]] * first if epochs else []
        times = [event.time + moves[epoch] for event, epoch in zip(events, epochs)]
        # As many as possible that never fall, and that are close together: for each length, the records that end a run of it, the highest first.
        ends, before = [], []
        for at, time in enumerate(times):
            if self.is_late(events[at]):
                before.append(None)
                continue
            length = bisect.bisect_right(ends, time, key=lambda found: times[found[-1]])
            before.append(next(end for end in ends[length - 1] if times[end] <= time) if length else None)
            ends += [[]] * (length == len(ends))
            ends[length] = [*ends[length], at] if len(ends[length]) < 60 else [*ends[length][1:], at]
        kept, at = set(), ends[-1][-1] if ends else None
        while at is not None:
            kept.add(at)
            at = before[at]
        placed, last = [], next((time for at, time in enumerate(times) if at in kept), None)
        for at, (event, time) in enumerate(zip(events, times)):
            last = time if at in kept else last
            placed.append(time if self.is_late(event) else last)
        return placed

    def time(self, event):
        """When a record was written: as the largest log says that has it."""
        return min(self.of_event[id(event)])[1]

    def place(self, event):
        return self.time(event), event.record, event.time, event.id

    def contested(self, events):
        """The events whose place another one claims: the number and the channel, in a log of the same time. Of a log that does not have the
        numbers of its events, or most moved as in an export, only the event's own time counts, as it does for the other records."""
        spans, found = collections.defaultdict(list), set()
        for key, records in self.logs.items():
            shifts = collections.defaultdict(list)
            for (number, event), time in zip(records, self.times[key]):
                shifts[event.record - number].append((event, time))
            for same in shifts.values():
                if len(same) * 2 > len(records):
                    for event, _ in same:
                        spans[id(event)] += [min(time for _, time in same), max(time for _, time in same)]
        claims = collections.defaultdict(list)
        for event in events:
            claims[event.computer, (event.channel or event.provider).lower(), event.record].append(event)
        for same in claims.values():
            for one, other in itertools.permutations(same, 2) if len(same) > 1 else ():
                [own, others] = (spans[id(event)] or [self.time(event)] for event in (one, other))
                if min(own) <= max(others) and min(others) <= max(own):
                    found.add(id(one))
        return found


STARTS = (12, 4608, 4826, 6005)


def starts_of(events, clocks, machine=lambda event: event.computer):
    """The events of each start of Windows. The next one is five minutes later, or has an event again. If the logs know more of starts, only
    the event log started with no more than a 6005."""
    found = collections.defaultdict(list)
    for event in events:
        program = (event.data.get("NewProcessName") or "").split("\\")[-1].lower()
        is_program = event.id == 4688 and number_of(event.data.get("ProcessId")) == 4 and program in ("smss.exe", "registry", "secure system")
        if event.id not in STARTS and not is_program:
            continue
        starts = found[machine(event)]
        if not starts or clocks.time(event) - clocks.time(starts[-1][-1]) > 300 * SECOND or event.id in STARTS and event.id in (other.id for other in starts[-1]):
            starts.append([])
        starts[-1].append(event)
    return [start for starts in found.values() for start in starts
            if any(event.id != 6005 for event in start) or not any(event.id == 12 for start in starts for event in start)]


DAY, MINUTE = datetime.timedelta(days=1), datetime.timedelta(minutes=1)


def broken(events, machine_of):
    """The records whose time is far from that of the two before and the two after them in their log, while the neighbours are close to each
    other, and that the clock did not show either when it was set. Not only the neighbours: around a long pause, the last record of before it can come after the first of after it."""
    logs, far, found = collections.defaultdict(list), datetime.timedelta(days=30), set()
    clocks = collections.defaultdict(list)
    for event in events:
        if is_change(event) and (old := moment(event.get("PreviousTime", "OldTime"))) and (new := moment(event.get("NewTime"))):
            clocks[machine_of(event)].append((min(old, new) - MINUTE, max(old, new) + MINUTE))
    for event in events:
        logs[event.log].append(event)
    for log in logs.values():
        log.sort(key=lambda event: event.number)
        for at in range(1, len(log) - 1):
            around = log[max(0, at - 2) : at] + log[at + 1 : at + 3]
            if abs(log[at + 1].time - log[at - 1].time) <= far and all(abs(log[at].time - event.time) > far for event in around) and not any(
                first <= log[at].time <= last for first, last in clocks[machine_of(log[at])]):
                found.add(id(log[at]))
    return found


def machines(events):
    """The machine of an event: the last name in its log, followed through other logs. Earlier names do not count, because machines of one
    image have the same. A log whose records have numbers of their own has what other machines forwarded."""
    logs = collections.defaultdict(list)
    for event in events:
        logs[event.log].append(event)
    own = {log: found for log, found in logs.items() if all(event.record == event.number for event in found)}
    last = {log: max(found, key=lambda event: event.number).computer for log, found in own.items()}
    ends = sorted((max(event.time for event in found), last[log], {event.computer for event in found}) for log, found in own.items())

    def final(name):
        later = next((end for _, end, names in reversed(ends) if name in names), name)
        return name if later == name else final(later)

    return lambda event: final(last.get(event.log, event.computer))


def is_resumed(event):
    """Whether the tools of a virtual machine set the clock forward."""
    is_tool = event.data.get("ProcessName", "").lower().endswith(("\\vmtoolsd.exe", "\\vboxservice.exe", "\\qemu-ga.exe"))
    return is_tool and event.is_a(SECURITY, 4616) and event.get("NewTime") > event.get("PreviousTime")


def woken(event):
    """When Windows woke up, if an event says so. The clock went on."""
    if event.is_a(KERNEL, 1):
        return moment(event.get("NewTime")) if event.data.get("Reason") == "2" else None
    if is_resumed(event):
        return moment(event.get("NewTime"))
    return moment(event.data.get("WakeTime")) if event.is_a("Microsoft-Windows-Power-Troubleshooter", 1) else None
