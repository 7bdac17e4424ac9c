"""Logs in which every record has something new: a host, an account, a SID, a service, a channel. The records of a chunk share a template."""

import datetime
import hashlib
import random
import struct
import zlib

from structures import CHUNK, CHUNK_HEADER, FILE_HEADER

SECURITY, SYSMON, SCRIPTS, SERVICES = "Microsoft-Windows-Security-Auditing", "Microsoft-Windows-Sysmon", "Microsoft-Windows-PowerShell", "Service Control Manager"
SESSIONS, KERNEL = "Microsoft-Windows-TerminalServices-LocalSessionManager", "Microsoft-Windows-Kernel-General"
GATEWAY = "Microsoft-Windows-TerminalServices-Gateway"
STRING, UINT8, UINT16, UINT64, FILETIME, SID = 1, 4, 6, 10, 17, 19
FORMATS = {UINT8: "<B", UINT16: "<H", UINT64: "<Q", FILETIME: "<Q"}
EPOCH, SECOND = datetime.datetime(1601, 1, 1), 10_000_000


def filetime(time):
    return int((time - EPOCH).total_seconds()) * SECOND


# When a record was written whose event has a time that is a text.
WRITTEN = filetime(datetime.datetime(2024, 1, 1))


def value(kind, value):
    if kind == SID:
        authority, *parts = (int(part) for part in value.split("-")[2:])
        return struct.pack("<BB", 1, len(parts)) + authority.to_bytes(6, "big") + struct.pack(f"<{len(parts)}I", *parts)
    return value.encode("utf-16-le") if kind == STRING else struct.pack(FORMATS[kind], value)


class Chunk:
    """A chunk of records. `add` returns false if a record does not fit."""

    def __init__(self, first):
        self.out, self.first, self.count, self.templates, self.names, self.last = bytearray(CHUNK_HEADER), first, 0, {}, {}, 0

    def name(self, name):
        self.out += struct.pack("<I", self.names.get(name, len(self.out) + 4))
        if name not in self.names:
            self.names[name] = len(self.out)
            hashed = 0
            for unit in name.encode("utf-16-le")[::2]:
                hashed = (hashed * 65599 + unit) & 0xFFFFFFFF
            self.out += struct.pack("<IHH", 0, hashed & 0xFFFF, len(name)) + name.encode("utf-16-le") + b"\0\0"

    def element(self, name, attributes, content):
        """Content is the number and type of a value, or a function that writes elements."""
        start = len(self.out)
        self.out += struct.pack("<BHI", 0x41 if attributes else 0x01, 0xFFFF, 0)
        self.name(name)
        if attributes:
            self.out += bytes(4)
            list_start = len(self.out)
            for name, text in attributes:
                self.out += b"\x06"
                self.name(name)
                self.out += struct.pack("<BHB", 0x0D, *text) if isinstance(text, tuple) else struct.pack("<BBH", 0x05, STRING, len(text)) + text.encode("utf-16-le")
            struct.pack_into("<I", self.out, list_start - 4, len(self.out) - list_start)
        if content is None:
            self.out += b"\x03"
        else:
            self.out += b"\x02"
            content() if callable(content) else self.out.extend(struct.pack("<BHB", 0x0D, *content))
            self.out += b"\x04"
        struct.pack_into("<I", self.out, start + 3, len(self.out) - start - 7)

    def event(self, fields):
        """The elements of an event with the fields of a kind, whose values come after those of System."""
        def system():
            self.element("Provider", [("Name", (0, STRING))], None)
            self.element("EventID", [], (1, UINT16))
            self.element("Level", [], (2, UINT8))
            self.element("TimeCreated", [("SystemTime", (3, FILETIME))], None)
            self.element("EventRecordID", [], (4, UINT64))
            self.element("Channel", [], (5, STRING))
            self.element("Computer", [], (6, STRING))
            self.element("Security", [("UserID", (7, SID))], None)

        def data():
            for number, (name, kind) in enumerate(fields):
                self.element("Data", [("Name", name)], (8 + number, kind))

        self.element("Event", [], lambda: (self.element("System", [], system), self.element("EventData", [], data)))

    def add(self, number, time, event):
        before = bytes(self.out), dict(self.templates), dict(self.names)
        provider, event_id, channel, computer, user, data = event
        fields = tuple((name, STRING if isinstance(text, str) and not text.startswith("S-1-") else SID if isinstance(text, str) else UINT64) for name, text in data.items())
        start, guid = len(self.out), hashlib.md5(repr(fields).encode()).digest()
        self.out += struct.pack("<4sIQQ", b"**\0\0", 0, number, WRITTEN if isinstance(time, str) else time) + b"\x0f\x01\x01\x00" + struct.pack("<BB4s", 0x0C, 1, guid[:4])
        is_new = fields not in self.templates
        self.out += struct.pack("<I", self.templates.setdefault(fields, len(self.out) + 4))
        if is_new:
            place = len(self.out)
            self.out += struct.pack("<I16sI", 0, guid, 0) + b"\x0f\x01\x01\x00"
            self.event(fields)
            self.out += b"\0"
            struct.pack_into("<I", self.out, place + 20, len(self.out) - place - 24)
        values = [(STRING, provider), (UINT16, event_id), (UINT8, 4), (STRING if isinstance(time, str) else FILETIME, time), (UINT64, number), (STRING, channel), (STRING, computer), (SID, user),
                  *((kind, data[name]) for name, kind in fields)]
        values = [(kind, value(kind, text)) for kind, text in values]
        self.out += struct.pack("<I", len(values)) + b"".join(struct.pack("<HBB", len(text), kind, 0) for kind, text in values)
        self.out += b"".join(text for _, text in values) + b"\0"
        self.out += bytes(-(len(self.out) - start + 4) % 8)
        self.out += struct.pack("<I", len(self.out) - start + 4)
        if len(self.out) > CHUNK:
            self.out, self.templates, self.names = bytearray(before[0]), *before[1:]
            return False
        struct.pack_into("<I", self.out, start + 4, len(self.out) - start)
        self.count, self.last = self.count + 1, start
        return True

    def written(self):
        last = self.first + self.count - 1
        head = bytearray(struct.pack("<8sQQQQIIII", b"ElfChnk\0", self.first, last, self.first, last, 128, self.last, len(self.out), zlib.crc32(self.out[CHUNK_HEADER:])))
        head = head.ljust(CHUNK_HEADER, b"\0")
        struct.pack_into("<I", head, 124, zlib.crc32(head[:120] + head[128:]))
        return (head + self.out[CHUNK_HEADER:]).ljust(CHUNK, b"\0")


def write(path, events):
    """Writes a log of events: the time in seconds or as a text, provider, event ID, channel, computer, user SID and fields."""
    start, chunks, chunk = filetime(datetime.datetime(2024, 1, 1)), [], Chunk(1)
    for number, (time, *event) in enumerate(events, 1):
        time = time if isinstance(time, str) else start + time * SECOND
        if not chunk.add(number, time, event):
            chunks.append(chunk.written())
            chunk = Chunk(number)
            assert chunk.add(number, time, event), "a record larger than a chunk"
    chunks.append(chunk.written())
    head = bytearray(struct.pack("<8sQQQIHHHH", b"ElfFile\0", 0, len(chunks) - 1, number + 1, 128, 1, 3, FILE_HEADER, len(chunks)).ljust(FILE_HEADER, b"\0"))
    struct.pack_into("<I", head, 124, zlib.crc32(head[:120]))
    path.write_bytes(head + b"".join(chunks))
    return path.stat().st_size


def account(number):
    return f"S-1-5-21-1-2-3-{number}"


# A kind of event for each topic of the macros: provider, event ID, channel and fields of record n. `x` chooses what is new in each record: a number that
# changes or stays.
KINDS = {
    "plain": lambda x: ("Northwind", 1, "Application", {"Text": f"text {x('text')}"}),
    "logon": lambda x: (SECURITY, 4624, "Security", {
        "SubjectUserSid": account(x("subject")), "TargetUserSid": account(x("sid")), "TargetUserName": f"u{x('user')}", "TargetDomainName": f"D{x('domain')}",
        "TargetLogonId": x("id"), "LogonType": "3", "WorkstationName": f"W{x('host')}", "IpAddress": f"10.{x('host') >> 16}.{x('host') >> 8 & 255}.{x('host') & 255}"}),
    "failure": lambda x: (SECURITY, 4625, "Security", {
        "TargetUserName": f"u{x('user')}", "TargetDomainName": "D", "Status": "0xc000006d", "SubStatus": f"0xc{x('status'):07x}", "LogonType": "3", "IpAddress": f"10.1.{x('host')}"}),
    "logoff": lambda x: (SECURITY, 4634, "Security", {"TargetUserSid": account(x("sid")), "TargetUserName": f"u{x('user')}", "TargetLogonId": x("id")}),
    "desktop": lambda x: (SECURITY, 4624, "Security", {
        "TargetUserSid": account(x("sid")), "TargetUserName": f"u{x('user')}", "TargetLogonId": x("id"), "LogonType": str((7, 10)[x("number") % 2]), "IpAddress": f"10.4.{x('host')}"}),
    "return": lambda x: (SECURITY, 4778, "Security", {
        "AccountName": f"u{x('user')}", "AccountDomain": "D", "LogonID": x("id"), "ClientName": f"W{x('host')}", "ClientAddress": f"10.5.{x('host')}"}),
    "ssh": lambda x: ("OpenSSH", 4, "OpenSSH/Operational", {
        "process": "sshd", "payload": f"{('Accepted password for', 'Disconnected from user')[x('number') % 2]} u{x('user')} {('from ', '')[x('number') % 2]}10.6.{x('host')} port {x('id')}{(' ssh2', '')[x('number') % 2]}"}),
    "gateway": lambda x: (GATEWAY, 302 + x("number") % 2, "Gateway", {"Username": f"D\\u{x('user')}", "IpAddress": f"10.7.{x('host')}", "Resource": f"r{x('text')}"}),
    "winrm": lambda x: ("Microsoft-Windows-WinRM", 169, "WinRM", {"username": f"D\\u{x('user')}", "authenticationMechanism": "NTLM"}),
    "process": lambda x: (SECURITY, 4688, "Security", {
        "SubjectUserSid": account(x("sid")), "SubjectUserName": f"u{x('user')}", "NewProcessId": x("id") + 1, "ProcessId": x("id"), "NewProcessName": f"C:\\p{x('text')}.exe"}),
    "sysmon": lambda x: (SYSMON, 1, "Microsoft-Windows-Sysmon/Operational", {
        "ProcessGuid": f"{{{x('id') + 1}}}", "ParentProcessGuid": f"{{{x('id')}}}", "ProcessId": x("id") + 1, "Image": f"p{x('text')}.exe", "User": f"D\\u{x('user')}"}),
    "member": lambda x: (SECURITY, 4728, "Security", {"MemberSid": account(x("sid")), "TargetUserName": f"g{x('text')}", "SubjectUserSid": account(x("subject"))}),
    "renamed": lambda x: (SECURITY, 4781, "Security", {
        "TargetSid": account(x("sid")), "OldTargetUserName": f"u{x('user')}", "NewTargetUserName": f"u{x('user') + 1}", "TargetDomainName": "D"}),
    "service": lambda x: (SERVICES, 7045, "System", {"ServiceName": f"s{x('service')}", "ImagePath": f"C:\\s{x('text')}.exe"}),
    "session": lambda x: (SESSIONS, (21, 24, 25, 23)[x("number") % 4], "Sessions", {"User": f"D\\u{x('user')}", "SessionID": str(x("id") % 3), "Address": f"10.2.{x('host')}"}),
    "zone": lambda x: ("EventLog", 6013, "System", {"param7": f"{x('bias') % 1000} Zone {x('text')}"}),
    "clock": lambda x: (KERNEL, 1, "System", {
        "NewTime": f"2024-01-{x('time') % 28 + 1:02}T00:00:00Z", "OldTime": "2023-01-01T00:00:00Z", "Reason": "1", "ProcessName": f"p{x('text')}"}),
    "boot": lambda x: (KERNEL, 12, "System", {"StartTime": str(x("time"))}),
    "script": lambda x: (SCRIPTS, 4104, "PowerShell", {
        "MessageNumber": str(x("number") + 1), "MessageTotal": str(x("total") + 1), "ScriptBlockText": f"text {x('text')}", "ScriptBlockId": f"b{x('id')}"}),
}


def draw(seed, count):
    """Events of one to three kinds, in which some values are new in every record, and others stay."""
    draws = random.Random(seed)
    kinds = draws.sample(sorted(KINDS), draws.choice([1, 1, 2, 3]))
    share = draws.choice([0.2, 0.5, 0.8, 1])
    is_new = {}
    step = draws.choice([0, 1, 1, 5, 7200])
    for number in range(count):
        def of(name):
            return number if is_new.setdefault(name, draws.random() < share) else 1
        provider, event_id, channel, data = KINDS[kinds[number % len(kinds)]](of)
        suffix = of("channel") if of("is_channel_new") != 1 else ""
        yield (number * step, provider, event_id, f"{channel}{suffix}", f"H{of('computer')}", account(of("user_sid")), data)
