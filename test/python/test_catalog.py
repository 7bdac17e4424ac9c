"""The catalog of events agrees with its sources.

EVTX_CATALOG_SOURCES names the folder of the sources: event-manifests.tsv.gz and sysmon-15.15-schema.xml.
"""

import collections
import gzip
import os
import pathlib
import re
import sys

import pytest
from conftest import ROOT

sys.path.insert(0, str(ROOT / "tools"))
import make_catalog  # noqa: E402

CATALOG = ROOT / "rust/extras/evtx-catalog/data/events.bin"
SOURCES = os.environ.get("EVTX_CATALOG_SOURCES")

# The column type of each field type.
COLUMN_TYPES = {
    "Null": "VARCHAR",
    "String": "VARCHAR",
    "AnsiString": "VARCHAR",
    "Int8": "TINYINT",
    "UInt8": "UTINYINT",
    "Int16": "SMALLINT",
    "UInt16": "USMALLINT",
    "Int32": "INTEGER",
    "UInt32": "UINTEGER",
    "Int64": "BIGINT",
    "UInt64": "UBIGINT",
    "Real32": "FLOAT",
    "Real64": "DOUBLE",
    "Boolean": "BOOLEAN",
    "Binary": "BLOB",
    "GUID": "UUID",
    "SizeT": "UBIGINT",
    "FILETIME": "TIMESTAMP_NS",
    "SYSTEMTIME": "TIMESTAMP_NS",
    "SID": "VARCHAR",
    "HexInt32": "UINTEGER",
    "HexInt64": "UBIGINT",
}


@pytest.fixture(name="sources", scope="module")
def fixture_sources():
    if not SOURCES:
        pytest.skip("EVTX_CATALOG_SOURCES is not set")
    folder = pathlib.Path(SOURCES)
    return folder / "event-manifests.tsv.gz", folder / "sysmon-15.15-schema.xml"


def rows_of(events):
    """The rows of evtx_event_catalog() for some events."""
    for event in events:
        head = (event.provider, event.id, event.version)
        if not event.fields:
            yield (*head, None, None, None, None, None)
        for position, field in enumerate(event.fields):
            yield (*head, position, field.name, field.type, COLUMN_TYPES[field.type], event.in_user_data)


def test_every_event_is_that_of_the_sources(con, sources):
    events = make_catalog.read_sources(*sources)
    rows = con.sql("FROM evtx_event_catalog()").fetchall()
    assert rows == list(rows_of(events))


def test_the_sources_are_read_whole(sources):
    """Compares the events that the script reads with the lines of the table."""
    manifests, _ = sources
    with gzip.open(manifests, "rt", encoding="utf-8") as file:
        lines = file.read().splitlines()[1:]
    declared = [line.split("\t") for line in lines]
    read = list(make_catalog.read_manifests(manifests))
    key = collections.Counter((provider, int(event_id), int(version)) for provider, event_id, version, _ in declared)
    assert collections.Counter((event.provider, event.id, event.version) for event in read) == key
    # The script drops only the length before a classic event's Binary.
    lengths = sum(line.count("__binLength") for line in lines)
    fields = sum(len(fields.split(", ")) if fields else 0 for *_, fields in declared)
    assert sum(len(event.fields) for event in read) == fields - lengths
    # Apart from Defender's and Binary, names are those of the table.
    for (provider, _, _, fields), event in zip(declared, read):
        names = re.findall(r"\S+ (\S+?)(?:, |$)", fields)
        plain = [re.sub(r"\W", "", field.name) for field in event.fields]
        if "__binLength" not in names:
            assert plain == names, (provider, event)


def test_the_script_writes_the_catalog_that_is_there(sources, tmp_path):
    """The unpacked data is the same. Compressed bytes depend on the version of zlib."""
    make_catalog.main(*sources, tmp_path / "events.bin")
    assert unpack(tmp_path / "events.bin") == unpack(CATALOG)


def unpack(path):
    """The blocks of a catalog, without its directory, which has their compressed sizes."""
    blocks, rest = [], path.read_bytes()
    while rest:
        inflate = make_catalog.zlib.decompressobj()
        blocks.append(inflate.decompress(rest))
        rest = inflate.unused_data
    return blocks[1:]


@pytest.mark.parametrize("types, structs", [
    ([], set()),
    ([8, 1, 8], set()),
    ([10, 1, 20], set()),
    # 3 may be a type: nothing proves that it is a struct.
    ([8, 3, 1], set()),
    # The first struct's members start after the 7 fields, the last one's at 29.
    ([7, 13, 20, 23, 16, 16, 29], {0, 1, 2, 3, 6}),
    ([16, 16, 16, 16, 16, 6, 9, 24, 8], {6, 7}),
    # 25 is also a type.
    ([16, 25, 20], set()),
])  # fmt: skip
def test_structs_are_told_from_types(types, structs):
    assert make_catalog.find_structs(types) == structs


def test_names_of_defender_have_their_spaces():
    for name, spaced in [
        ("ThreatName", "Threat Name"),
        ("DetectionID", "Detection ID"),
        ("FWLink", "FWLink"),
        ("Unused2", "Unused2"),
        ("SecurityintelligenceVersion", "Security intelligence Version"),
        ("Engineuptodate", "Engine up-to-date"),
    ]:
        assert make_catalog.name_of(make_catalog.DEFENDER, name) == spaced
