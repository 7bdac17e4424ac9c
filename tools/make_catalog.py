"""Makes the catalog of events: the fields that Windows' providers declare.

usage: make_catalog.py MANIFESTS SYSMON CATALOG

MANIFESTS is a table of the providers' manifests, tab-separated and compressed with gzip: provider, event ID, version, fields. Fields are
written as "type name" and separated by ", ". SYSMON is the schema that `sysmon -s` prints. CATALOG is the output,
rust/extras/evtx-catalog/data/events.bin. rust/extras/evtx-catalog/src/lib.rs describes its format.

The table was listed with Windows' Trace Data Helper. It differs from the templates in logs; `mend` corrects the known differences.
"""

import collections
import gzip
import itertools
import re
import sys
import xml.etree.ElementTree
import zlib

Event = collections.namedtuple("Event", "provider id version in_user_data fields")
# A field of an event: its name, and the name of its BinXML type.
Field = collections.namedtuple("Field", "name type")

SYSMON_PROVIDER = "Microsoft-Windows-Sysmon"

# The numbers of the BinXML types (MS-EVEN6, section 2.2.12), by their names in evtx_schema.
BINXML_TYPES = {
    name: number
    for number, name in enumerate(
        "Null String AnsiString Int8 UInt8 Int16 UInt16 Int32 UInt32 Int64 UInt64 Real32 Real64 Boolean Binary GUID SizeT FILETIME SYSTEMTIME "
        "SID HexInt32 HexInt64".split()
    )
}

# The types of manifests in the order of their numbers (TDH_INTYPE in tdh.h), each with the BinXML type that logs use.
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

# Providers with fields in UserData, according to logs or public scripts. The table lacks this information.
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

# The table drops spaces and punctuation from names. In Defender's names, a space precedes most capital letters.
DEFENDER = "Microsoft-Windows-Windows Defender"

# Other names with spaces or punctuation, and exceptions among Defender's names.
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
# The names by provider and name in the table.
NAMES = {(provider, re.sub(r"\W", "", name)): name for provider, names in SPELLED_NAMES.items() for name in names}

# A block is complete once it has this many characters. A provider is never split.
BLOCK_SIZE = 16 << 10


def main(manifests, sysmon, catalog):
    events = read_sources(manifests, sysmon)
    data = encode(events)
    with open(catalog, "wb") as file:
        file.write(data)
    providers = len({event.provider for event in events})
    print(f"{len(events):,} events of {providers:,} providers in {len(data):,} bytes")


def read_sources(manifests, sysmon):
    """The events of both sources in the order of the catalog: provider (ignoring case), ID, version."""
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
    """Turns the table's types and names into fields as templates in logs declare them."""
    structs = find_structs([NUMBERS.get(type, type) for type, _ in declared])
    fields = []
    for place, (type, name) in enumerate(declared):
        before = fields[-1] if fields else None
        if before and before.name == "__binLength":
            # The binary data of classic events. Logs name the element Binary, and omit its length.
            fields[-1] = Field("Binary", "Binary")
        else:
            # The table lacks the members of structs.
            fields.append(Field(name_of(provider, name), "Null" if place in structs else MANIFEST_TYPES[type]))
    return tuple(fields)


def find_structs(types):
    """The positions of structs among the fields.

    For a struct, the table contains the number of its first member instead of a type. Members are numbered after all fields, so the first
    struct's number is the number of fields, and later structs have higher numbers. If no such number exceeds those of types, they count
    as types.
    """
    numbers = [int(type) for type in types]
    found = []
    for place, number in enumerate(numbers):
        if number == len(numbers) and not found or found and number > numbers[found[-1]]:
            found.append(place)
    is_certain = any(numbers[place] >= NUMBERS["Struct"] for place in found)
    return set(found) if is_certain else set()


def name_of(provider, name):
    """A field's name in templates."""
    if (provider, name) in NAMES:
        return NAMES[provider, name]
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name) if provider == DEFENDER else name


def encode(events):
    """The bytes of the catalog."""
    blocks, size = [[]], 0
    for provider, group in itertools.groupby(events, key=lambda event: event.provider):
        if size >= BLOCK_SIZE:
            blocks.append([])
            size = 0
        lines = [provider, *(line_of(event) for event in group)]
        blocks[-1].append(lines)
        size += sum(len(line) + 1 for line in lines)
    packed = [compress(line for lines in block for line in lines) for block in blocks]
    directory = ("\t".join([str(len(bytes)), *(lines[0] for lines in block)]) for block, bytes in zip(blocks, packed))
    return b"".join([compress(directory), *packed])


def line_of(event):
    fields = (chr(ord("A") + BINXML_TYPES[field.type]) + field.name for field in event.fields)
    return "\t".join([str(event.id), str(event.version), str(int(event.in_user_data)), *fields])


def compress(lines):
    return zlib.compress("".join(line + "\n" for line in lines).encode(), 9)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
