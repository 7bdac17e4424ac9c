"""The rows of evtx_accounts, and the name of a SID at a time."""

import collections
import functools
import re

from evaluator.events import MICROSECOND, SECURITY, full_name

# Other events have the name of a computer in the field for the domain.
NAMING = {
    SECURITY: {4624, 4634, 4647, 4648, 4672, 4688, 4720, 4722, 4723, 4724, 4725, 4726, 4738, 4741, 4742, 4768, 4781, 4798, 4799, 5145, 5379},
    "Microsoft-Windows-Eventlog": {1102},
    "User32": {1074},
}


def names_in(event):
    """What an event says about names: SID, domain, name, time, and whether it is about the name."""
    data = event.data
    target = data.get("TargetUserSid", data.get("TargetSid"))
    if event.id == 1074:
        *domain, name = data.get("param7", "").split("\\")
        yield event.user_sid, domain[-1] if domain else None, name, event.time, None
    elif event.id == 4781:
        yield target, data.get("TargetDomainName"), data.get("OldTargetUserName"), event.time - MICROSECOND, "renamed"
        yield target, data.get("TargetDomainName"), data.get("NewTargetUserName"), event.time, "renamed"
    else:
        yield data.get("SubjectUserSid"), data.get("SubjectDomainName"), data.get("SubjectUserName"), event.time, None
        about = {4720: "created", 4741: "created", 4738: "changed", 4742: "changed"}.get(event.id)
        # The target of 4799 is a group.
        yield target, data.get("TargetDomainName"), data.get("TargetUserName") if event.id != 4799 else None, event.time, about


def accounts(events):
    scopes = collections.defaultdict(list)
    local = set()
    for event in events:
        if event.id in NAMING.get(event.provider, ()):
            for sid, domain, name, time, about in names_in(event):
                # Fixed SIDs have one number, as S-1-5-18.
                if sid and re.match(r"S-1-\d+-.*-", sid) and not re.match(r"S-1-5-(32-|21-.*-5(1[2-9]|[2-9].)$)", sid) and name not in (None, "", "-"):
                    scopes[sid].append((time, event.computer, name.lower(), full_name(domain, name), about))
                    if domain and event.computer and domain.lower() == event.computer.split(".")[0].lower():
                        local.add((event.computer, sid))
    for sid, uses in scopes.items():
        parts = collections.defaultdict(list)
        for use in uses:
            parts[use[1] if (use[1], sid) in local else None].append(use)
        for part in parts.values():
            yield from names_of(sid, sorted(part, key=lambda use: (use[0], use[2])))


def names_of(sid, uses):
    """The names of an account: from events about them, or else those that lead by their uses."""
    told = [(time, name, about) for time, _, name, _, about in uses if about]
    counts, leads = collections.Counter(), {}
    for time, name in sorted({(time, name) for time, _, name, _, _ in uses}):
        counts[name] += 1
        if counts[name] > max((count for other, count in counts.items() if other != name), default=0):
            leads.setdefault(name, time)
    rows = collections.defaultdict(list)
    for use in uses:
        rows[use[1], use[2], use[0] if use[4] == "renamed" else None].append(use)
    for (computer, name, renamed), own in rows.items():
        # Events at one time count once.
        spelled = collections.Counter(text for _, text in {(use[0], use[3]) for use in own})
        best = min(spelled, key=lambda text: ("\\" not in text, "." in text.split("\\")[0], -spelled[text], text))
        first, since = own[0][0], min((time for time, other, _ in told if other == name), default=None)
        about = max((use[4] for use in own if use[4]), default=None)
        if about:
            first = first if name == told[0][1] else max(first, since)
        elif told:
            is_known = since is not None and (first >= since or name == told[0][1])
            about = max(about for _, other, about in told if other == name) if is_known else "second name"
        else:
            about = "second name" if name not in leads else "most events" if name == next(iter(leads)) else "more events"
            first = max(first, leads.get(name, first))
        yield {"computer": computer, "user_sid": sid, "user_name": best, "first_seen": first, "last_seen": own[-1][0], "is_renamed": renamed is not None, "name_source": about}


class Names:
    """Names SIDs by the accounts of a case."""

    def __init__(self, events, sid_name):
        self.known, self.sid_name = collections.defaultdict(list), functools.cache(sid_name)
        for row in sorted(accounts(events), key=lambda row: (row["first_seen"], row["user_name"])):
            if row["name_source"] == "second name":
                continue
            self.known[row["user_sid"]].append(row)

    def name(self, sid, computer, time):
        """The name of a SID at a time on a computer, or else on another one."""
        rows = self.known.get(sid, [])
        if len({row["user_name"].lower() for row in rows}) == 1:
            return min(row["user_name"] for row in rows)
        for some in ([row for row in rows if row["computer"] == computer], rows):
            before = [row for row in some if row["first_seen"] <= time]
            if before or some:
                return (before[-1] if before else some[0])["user_name"]
        # NT SERVICE is the name of many accounts, and so of none.
        name = sid and self.sid_name(sid)
        return name if name and name != self.sid_name(sid + "-0") else sid
