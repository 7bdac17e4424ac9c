"""Makes the catalog of events, which says what fields Windows' providers declare for their events.

usage: make_catalog.py MANIFESTS SYSMON CATALOG

MANIFESTS is a table of what providers' manifests declare, compressed by gzip: provider, event ID, version and fields, tab-separated.
The fields are "type name" each, with ", " between them. SYSMON is the schema that `sysmon -s` prints. CATALOG is written:
rust/evtx-catalog/data/events.bin, whose format rust/evtx-catalog/src/lib.rs describes.

The manifests were listed by way of Windows' Trace Data Helper, and differ from what templates in logs declare. What is known of the
differences is mended here: see `mend`. Python's standard library is enough.
"""

import collections
import gzip
import itertools
import re
import struct
import sys
import xml.etree.ElementTree
import zlib

Event = collections.namedtuple("Event", "provider id version in_user_data fields")
# A field of an event: its name, and the name of its BinXML type.
Field = collections.namedtuple("Field", "name type")

SYSMON_PROVIDER = "Microsoft-Windows-Sysmon"

# The numbers of the BinXML types (MS-EVEN6, section 2.2.12), by the names that evtx_schema has for them.
BINXML_TYPES = {
    "Null": 0,
    "String": 1,
    "AnsiString": 2,
    "Int8": 3,
    "UInt8": 4,
    "Int16": 5,
    "UInt16": 6,
    "Int32": 7,
    "UInt32": 8,
    "Int64": 9,
    "UInt64": 10,
    "Real32": 11,
    "Real64": 12,
    "Boolean": 13,
    "Binary": 14,
    "GUID": 15,
    "SizeT": 16,
    "FILETIME": 17,
    "SYSTEMTIME": 18,
    "SID": 19,
    "HexInt32": 20,
    "HexInt64": 21,
}

# The types of manifests by their numbers (TDH_INTYPE in tdh.h), each with the BinXML type of its fields in logs.
MANIFEST_TYPES = {
    "Null": "Null",
    "UnicodeString": "String",
    "AnsiString": "AnsiString",
    "Int8": "Int8",
    "UInt8": "UInt8",
    "Int16": "Int16",
    "UInt16": "UInt16",
    "Int32": "Int32",
    "UInt32": "UInt32",
    "Int64": "Int64",
    "UInt64": "UInt64",
    "Float": "Real32",
    "Double": "Real64",
    "Boolean": "Boolean",
    "Binary": "Binary",
    "GUID": "GUID",
    "Pointer": "SizeT",
    "FILETIME": "FILETIME",
    "SYSTEMTIME": "SYSTEMTIME",
    "SID": "SID",
    "HexInt32": "HexInt32",
    "HexInt64": "HexInt64",
    "CountedUtf16String": "String",
    "CountedMbcsString": "AnsiString",
    "Struct": "Null",
    "25": "Binary",
}
NUMBERS = {name: number for number, name in enumerate(MANIFEST_TYPES)}

# Providers whose events have their fields in UserData, as logs show, or public scripts that read them. Manifests say so, but the table
# does not.
USER_DATA = {
    "Microsoft-Windows-AppLocker",
    "Microsoft-Windows-CAPI2",
    "Microsoft-Windows-DriverFrameworks-UserMode",
    "Microsoft-Windows-Eventlog",
    "Microsoft-Windows-PrintService",
    "Microsoft-Windows-Program-Compatibility-Assistant",
    "Microsoft-Windows-Servicing",
    "Microsoft-Windows-TerminalServices-LocalSessionManager",
    "Microsoft-Windows-TerminalServices-RemoteConnectionManager",
    "Microsoft-Windows-UserPnp",
    "Microsoft-Windows-WMI-Activity",
}

# The table has names without spaces and signs. Defender's names have spaces between words, which start with a capital letter.
DEFENDER = "Microsoft-Windows-Windows Defender"

# The other names that are known to have spaces or signs, and Defender's that have none.
SPELLED_NAMES = {
    "Microsoft-Windows-Directory-Services-SAM": ("Default SD String:",),
    "Microsoft-Windows-SetupPlatform": (
        "Host OS Build number",
        "Host OS Major version",
        "Host OS Minor version",
        "Host OS Service pack major number",
        "Host OS Service pack minor number",
        "Installation choice",
    ),
    "Microsoft-Windows-Shell-Core": ("Failure reason",),
    DEFENDER: (
        "FWLink",
        "RuleType",
        "AS security intelligence creation time",
        "AS security intelligence version",
        "AV security intelligence creation time",
        "AV security intelligence version",
        "BM state",
        "Cloud protection intelligence Compilation Timestamp",
        "Cloud protection intelligence Type",
        "Cloud protection intelligence Type Index",
        "Cloud protection intelligence Version",
        "Current security intelligence Version",
        "Engine up-to-date",
        "Engine version",
        "IOAV state",
        "Last AS security intelligence age",
        "Last AV security intelligence age",
        "Last full scan age",
        "Last full scan end time",
        "Last full scan source",
        "Last full scan start time",
        "Last quick scan age",
        "Last quick scan end time",
        "Last quick scan source",
        "Last quick scan start time",
        "Latest engine version",
        "Latest platform version",
        "Loading engine version",
        "Loading security intelligence version",
        "NRI engine version",
        "NRI security intelligence version",
        "OA state",
        "Platform up-to-date",
        "Platform version",
        "Previous security intelligence Version",
        "Product status",
        "RTP state",
        "Security intelligence Attempted",
        "Security intelligence Attempted Index",
        "Security intelligence ID",
        "Security intelligence Type",
        "Security intelligence Type Index",
        "Security intelligence Version",
        "Security intelligence version",
        "Threat resource path",
    ),
}
# By provider and the name that the table has.
NAMES = {(provider, re.sub(r"\W", "", name)): name for provider, names in SPELLED_NAMES.items() for name in names}

# How many bytes the providers of a block have before it is compressed, or more if its last provider has many events.
BLOCK_BYTES = 48 << 10


def main(manifests, sysmon, catalog):
    events = read_sources(manifests, sysmon)
    data = encode(events)
    with open(catalog, "wb") as file:
        file.write(data)
    providers = len({event.provider for event in events})
    print(f"{len(events):,} events of {providers:,} providers in {len(data):,} bytes")


def read_sources(manifests, sysmon):
    """The events of both sources, in the order of the catalog: by provider without regard to case, ID and version."""
    events = [*read_manifests(manifests), *read_sysmon(sysmon)]
    return sorted(events, key=lambda event: (event.provider.lower(), event.id, event.version))


def read_manifests(path):
    with gzip.open(path, "rt", encoding="utf-8") as file:
        for number, line in enumerate(file):
            provider, event_id, version, fields = line.rstrip("\n").split("\t")
            if number > 0:
                declared = [tuple(field.split(" ", 1)) for field in fields.split(", ")] if fields else []
                yield Event(provider, int(event_id), int(version), provider in USER_DATA, mend(provider, declared))


def read_sysmon(path):
    for event in xml.etree.ElementTree.parse(path).iter("event"):
        fields = (Field(data.get("name"), MANIFEST_TYPES[data.get("inType").removeprefix("win:")]) for data in event.iter("data"))
        yield Event(SYSMON_PROVIDER, int(event.get("value")), int(event.get("version")), False, tuple(fields))


def mend(provider, declared):
    """The fields as templates in logs declare them, of the types and names that the table has."""
    structs = find_structs([NUMBERS.get(type, type) for type, _ in declared])
    fields = []
    for place, (type, name) in enumerate(declared):
        before = fields[-1] if fields else None
        if before and before.name == "__binLength":
            # What classic events carry beside their strings: the element is named so, and its length is none in a log.
            fields[-1] = Field("Binary", "Binary")
        else:
            # What a struct holds is not in the table.
            fields.append(Field(name_of(provider, name), "Null" if place in structs else MANIFEST_TYPES[type]))
    return tuple(fields)


def find_structs(types):
    """The places of structs among the fields.

    In place of its type, the table has the number of a struct's first member. Members are numbered behind all fields, so the first struct
    has the number of fields, and each further one a higher number. Where none of them is beyond the numbers of types, the number of a
    type and that of a member cannot be told apart, and the type is believed.
    """
    numbers = [int(type) for type in types]
    found = []
    for place, number in enumerate(numbers):
        if number == len(numbers) and not found or found and number > numbers[found[-1]]:
            found.append(place)
    is_certain = any(numbers[place] >= NUMBERS["Struct"] for place in found)
    return set(found) if is_certain else set()


def name_of(provider, name):
    """A field's name as templates have it."""
    if (provider, name) in NAMES:
        return NAMES[provider, name]
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name) if provider == DEFENDER else name


def encode(events):
    """The bytes of the catalog."""
    blocks, block, size = [], [], 0
    for provider, group in itertools.groupby(events, key=lambda event: event.provider):
        block.append((provider, list(group)))
        size += len(encode_block(block[-1:]))
        if size >= BLOCK_BYTES:
            blocks.append(block)
            block, size = [], 0
    if block:
        blocks.append(block)
    directory, bodies = [varint(len(blocks))], []
    for block in blocks:
        raw = encode_block(block)
        bodies.append(compress(raw))
        directory += [varint(len(bodies[-1])), varint(len(raw)), varint(len(block)), *(text(provider) for provider, _ in block)]
    raw = b"".join(directory)
    packed = compress(raw)
    return struct.pack("<II", len(packed), len(raw)) + packed + b"".join(bodies)


def encode_block(providers):
    names, shapes = {}, {}
    body = []
    for _, events in providers:
        body.append(varint(len(events)))
        last = 0
        for event in events:
            for field in event.fields:
                names.setdefault(field.name, len(names))
            shape = shapes.setdefault((event.in_user_data, event.fields), len(shapes))
            body += [varint(event.id - last), bytes([event.version]), varint(shape)]
            last = event.id
    head = [varint(len(names)), *(text(name) for name in names), varint(len(shapes))]
    for in_user_data, fields in shapes:
        head.append(varint(len(fields) << 1 | in_user_data))
        head += [varint(names[field.name]) + bytes([BINXML_TYPES[field.type]]) for field in fields]
    return b"".join(head + body)


def compress(raw):
    return zlib.compress(raw, 9)


def text(value):
    encoded = value.encode()
    return varint(len(encoded)) + encoded


def varint(number):
    """Seven bits a byte, the lowest first; all but the last byte have their top bit set."""
    encoded = bytearray()
    while number > 0x7F:
        encoded.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes(encoded + bytes([number]))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
