"""Compares every value that read_evtx reads with what other parsers read.

usage: compare_parsers.py EXTENSION FOLDER [--parsers NAME ...] [--show COUNT]

Records are matched by their ID, values by their name. tools/parsers/known_differences.txt has the known differences: classes with a reason,
and with a count for some sets of logs. Exits with 1 if a difference is in no class, or if a count has changed.
"""

import argparse
import base64
import collections
import datetime
import glob
import html
import io
import itertools
import json
import logging
import math
import pathlib
import re
import subprocess
import sys
import time
import uuid
import xml.parsers.expat
from concurrent.futures import ProcessPoolExecutor

ROOT = pathlib.Path(__file__).resolve().parents[1]
KNOWN = ROOT / "tools/parsers/known_differences.txt"

# What a difference of the field "record" says, if not an error.
READ, MISSING = "read", "missing"

# Our columns for the places in `System`, such as `Provider.Name`, as the documentation lists them.
COLUMNS = {
    path.replace("/@", "."): column
    for column, path in re.findall(r"^- `(\w+)` \w+ \(`System/(.+?)`\)", (ROOT / "docs/columns.md").read_text(encoding="utf-8"), re.MULTILINE)
}

# Characters that XML cannot contain, or changes. Others stand for them while the XML of a parser is read.
STAND_INS = {code: 0x10FF00 + index for index, code in enumerate([*range(9), *range(11, 32), 0xFFFE, 0xFFFF])}
ORIGINALS = {stand_in: code for code, stand_in in STAND_INS.items()}


# The parsers. Each yields the ID of every record, and the lists of its values by name, or an error.


class Values:
    """Collects the values of an event: those of `System` by our columns, others by the names in our column `fields`. No empty ones."""

    def __init__(self):
        self.lists = collections.defaultdict(list)
        # The open elements: name, label, text, whether there are children, the number of unnamed `Data` in it.
        self.open = []

    def add(self, label, value):
        if value:
            in_system = [name for name, *_ in self.open[:2]] == ["Event", "System"]
            self.lists[COLUMNS.get(label, label) if in_system else label].append(value)

    def start(self, name, attributes):
        is_called = name in ("Data", "ComplexData")
        label = is_called and attributes.get("Name")
        if self.open:
            self.open[-1][3] = True
            self.end_text()
            if name == "Data" and not label:
                self.open[-1][4] += 1
                label = f"param{self.open[-1][4]}"
        label = label or name
        self.open.append([name, label, "", False, 0])
        for key, value in attributes.items():
            if not re.match("xmlns(:|$)", key) and not (is_called and key == "Name"):
                self.add(f"{label}.{key}", value)

    def text(self, text):
        self.open[-1][2] += text

    def array(self, items):
        """Windows repeats an element for each item of an array, so that unnamed items are numbered on."""
        for index, item in enumerate(items):
            if index and len(self.open) > 1 and self.open[-1][1] == f"param{self.open[-2][4]}":
                self.open[-2][4] += 1
                self.open[-1][1] = f"param{self.open[-2][4]}"
            self.add(self.open[-1][1], item)

    def end_text(self):
        _, label, text, has_children, _ = self.open[-1]
        self.open[-1][2] = ""
        # python-evtx shows the items of an array as text.
        if text.startswith("<string>") and (items := re.findall("<string>(.*?)</string>\n", text, re.DOTALL)):
            self.array(items)
        # White space between elements is the layout of XML.
        elif text.strip() or not has_children:
            self.add(label, text)

    def end(self, _name=None):
        self.end_text()
        self.open.pop()


def from_xml(text):
    """Does not resolve namespaces: logs have prefixes that are not declared."""
    values, parser = Values(), xml.parsers.expat.ParserCreate()
    parser.buffer_text = True
    original = lambda text: text.translate(ORIGINALS)  # noqa: E731
    parser.StartElementHandler = lambda name, attributes: values.start(name, {key: original(attributes[key]) for key in attributes})
    parser.CharacterDataHandler = lambda text: values.text(original(text))
    parser.EndElementHandler = values.end
    parser.Parse(text.translate(STAND_INS), True)
    return values.lists


def read_libevtx(path):
    import pyevtx

    log = pyevtx.file()
    log.open(path)
    for index in range(log.number_of_records):
        record_id = None
        try:
            record = log.get_record(index)
            record_id = record.identifier
            yield record_id, from_xml(record.xml_string)
        except (OSError, xml.parsers.expat.ExpatError) as error:
            yield record_id, error


def read_python_evtx(path):
    from Evtx.Evtx import Evtx

    with Evtx(path) as log:
        # Not log.chunks(): in a log that was open, the file header counts too few chunks.
        for chunk in log.get_file_header().chunks(include_inactive=True):
            for record in chunk.records():
                try:
                    yield record.record_num(), from_xml(record.xml())
                except Exception as error:  # Its errors have no common class.
                    yield record.record_num(), error


def read_dissect(path):
    """The loop of its ElfChnk.read, which gives no record IDs, and ends at the first error."""
    from dissect.eventlog import bxml, evtx

    log = pathlib.Path(path).read_bytes()
    for start in range(4096, len(log), 0x10000):
        try:
            chunk = evtx.ElfChnk(log[start : start + 0x10000])
        except (EOFError, evtx.MalformedElfChnkException):
            continue
        while True:
            offset = chunk.stream.tell()
            try:
                record = evtx.c_evtx.EVTX_RECORD(chunk.stream)
            except EOFError:
                break
            if record.signature != 0x2A2A:
                break
            if record.size != record.size_copy:
                continue
            stream = bxml.Bxml(bxml_stream=io.BytesIO(record.data), elf_chunk_stream=chunk.stream)
            stream.data_offset, stream.templates = offset + 24, chunk.templates
            stream.set_name_reader(evtx.EvtxNameReader(stream))
            try:
                root, values = bxml.BxmlToken.BXML_FRAGMENT_HEADER, Values()
                while root == bxml.BxmlToken.BXML_FRAGMENT_HEADER:
                    root = stream.read_token()
                walk_dissect(root, values)
                yield int(record.record_id), values.lists
            except Exception as error:  # Errors of all kinds.
                yield int(record.record_id), error


def walk_dissect(node, values):
    match type(node).__name__:
        case "Template":
            walk_dissect(node.element, values)
        case "BxmlSub":
            walk_dissect(node.get(), values)
        case "BxmlTag":
            values.start(node.name, {key: html.unescape(dissect_text(value)) for key, value in node.attributes.items()})
            for child in node.children:
                # It does not resolve the entities of templates.
                walk_dissect(html.unescape(child) if isinstance(child, str) else child, values)
            values.end()
        case "list":
            values.array(map(dissect_text, node))
        case _:
            values.text(dissect_text(node))


def dissect_text(value):
    value = value.get() if type(value).__name__ == "BxmlSub" else value
    return "" if value is None else value.decode("latin-1") if isinstance(value, bytes) else str(value)


def read_velocidex(path):
    output = subprocess.run([ROOT / "build/parsers/velocidex", path], capture_output=True, check=True).stdout
    for line in output.splitlines():
        record, values = json.loads(line), Values()
        walk_velocidex("Event", (record["event"] or {}).get("Event") or {}, values)
        yield record["id"], values.lists


def walk_velocidex(name, value, values):
    """Its dictionaries do not tell attributes from child elements, so that only the place tells."""
    for value in value if isinstance(value, list) else [value]:
        parts = dict(value) if isinstance(value, dict) else {"Value": value}
        text = parts.pop("Value", None)
        in_system = [element[0] for element in values.open] == ["Event", "System"]
        keys = [key for key in parts if in_system or key == "Name" or key.startswith("xmlns")]
        values.start(name, {key: str(parts.pop(key)) for key in keys})
        for key, part in parts.items():
            walk_velocidex(key, part, values)
        if isinstance(text, list):
            values.array(map(str, text))
        elif text is not None:
            values.text(str(text))
        values.end()


PARSERS = {"libevtx": read_libevtx, "python-evtx": read_python_evtx, "dissect": read_dissect, "velocidex": read_velocidex}


def read_ours(connection, path):
    """The same of our columns. `fields` gives all values but those of `System`, and must agree with the columns and `event_data`."""
    columns = ", ".join(f"{column}::VARCHAR" for column in COLUMNS.values())
    query = f"SELECT record_id, error, fields, event_data, {columns} FROM read_evtx(?, fields := true)"
    for record_id, error, fields, event_data, *system in connection.execute(query, [glob.escape(path)]).fetchall():
        if error:
            yield None if fields else record_id, error
        if fields is None:
            continue
        values = collections.defaultdict(list)
        for field in fields:
            values[field["name"]].append(field["value"])
        for (place, column), value in zip(COLUMNS.items(), system):
            if value:
                # `System` comes first in `fields`.
                if values[place] and equal(None, values[place][0], value):
                    values[place].pop(0)
                values[column].append(value)
        for name, value in (event_data or {}).items():
            found = values.get(name) or values.get(re.sub(r"_\d+$", "", name)) or [*itertools.chain(*values.values())]
            items = [value]
            if value not in found and value.startswith("["):
                items = [item if isinstance(item, str) else json.dumps(item) for item in json.loads(value)]
            if not set(filter(None, items)) <= set(found):
                values[f"event_data[{name}]"].append(value)
        yield record_id, values


# Comparing.

GUID = re.compile(r"\{?([0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12})\}?")
TIME = re.compile(r"(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d:\d\d)(?:\.(\d+))?(?:Z|\+00:00)?")
HEXADECIMAL = re.compile("0[xX]([0-9a-fA-F]+)")


def plain(value):
    """One spelling for the same GUID, time, or number."""
    if match := GUID.fullmatch(value):
        return match[1].lower()
    if match := TIME.fullmatch(value):
        return f"{match[1]}T{match[2]}.{(match[3] or '').rstrip('0')}"
    if match := HEXADECIMAL.fullmatch(value):
        return str(int(match[1], 16))
    return value


def equal(parser, ours, theirs):
    """Whether two values are the same, apart from how the parser spells a type."""
    if plain(ours) == plain(theirs):
        return True
    if shows_payload(ours, theirs):
        return True
    if parser in (None, "libevtx"):
        return False
    if GUID.fullmatch(ours):
        # dissect takes the first three parts for big-endian numbers.
        return bool(GUID.fullmatch(theirs)) and parser == "dissect" and uuid.UUID(ours).bytes_le == uuid.UUID(theirs).bytes
    if TIME.fullmatch(ours):
        # Python's times have microseconds, and come from floats. Velocidex has seconds since 1970, as a float.
        return abs(seconds(ours) - seconds(theirs)) < 5e-6
    if ours in ("true", "false"):
        return theirs == (ours.title() if parser == "python-evtx" else "01"[ours == "true"])
    if re.fullmatch("([0-9A-F]{2})+", ours):
        return theirs in (ours.lower(), base64.b64encode(bytes.fromhex(ours)).decode())
    return False


def shows_payload(ours, theirs):
    """Whether hexadecimal digits or Base64 encode the payload that read_evtx shows as texts."""
    payload = ours.replace("\n", "\0").encode("utf-16-le")
    encoded = payload.hex().upper(), base64.b64encode(payload).decode().rstrip("=")[:-1]
    return len(payload) >= 8 and (theirs.upper().startswith(encoded[0]) or theirs.startswith(encoded[1]))


def seconds(value):
    if match := TIME.fullmatch(value):
        second = datetime.datetime.fromisoformat(f"{match[1]}T{match[2]}+00:00")
        return second.timestamp() + float(f"0.{match[3] or 0}")
    return float(value) if re.fullmatch(r"-?\d+\.\d+", value) else math.inf


# python-evtx leaves out the first items of an array if they are empty, so that the later ones have other numbers. Velocidex does not tell
# attributes from child elements.
SAME_NAMES = {"python-evtx": (r"^param\d+$", "param"), "velocidex": (r"^.*\.", "")}

# `damaged` says whether we report an error in the log.
Difference = collections.namedtuple("Difference", "parser file record_id field ours theirs damaged")


def compare(parser, path, mine):
    """Yields the differences of each record. `mine` has our records, or errors, by their IDs."""
    file = pathlib.Path(path).name
    damaged = any(isinstance(record, str) for records in mine.values() for record in records)
    mine = {record_id: list(records) for record_id, records in mine.items()}
    for record_id, theirs in PARSERS[parser](path):
        # Several records of a log can have the same ID. Take the most similar one.
        candidates = mine.get(record_id) or [MISSING]
        found = [differences(parser, file, record_id, ours, theirs, damaged) for ours in candidates]
        best = min(range(len(found)), key=lambda index: len(found[index]))
        candidates.pop(best)
        yield found[best]
    for record_id, records in mine.items():
        for ours in records:
            yield differences(parser, file, record_id, ours, MISSING, damaged)


def differences(parser, file, record_id, ours, theirs, damaged):
    states = [READ if isinstance(record, dict) else str(record) for record in (ours, theirs)]
    if states != [READ, READ]:
        return [Difference(parser, file, record_id, "record", [states[0]], [states[1]], damaged)] if READ in states else []
    if parser in SAME_NAMES:
        ours, theirs = renamed(ours, *SAME_NAMES[parser]), renamed(theirs, *SAME_NAMES[parser])
    found = []
    for field in sorted(ours.keys() | theirs.keys()):
        a, b = ours.get(field, []), theirs.get(field, [])
        if len(a) != len(b) or not all(equal(parser, *pair) for pair in zip(a, b)):
            found.append(Difference(parser, file, record_id, field, a, b, damaged))
    return found


def renamed(values, pattern, name):
    merged = collections.defaultdict(list)
    for field, items in values.items():
        merged[re.sub(pattern, name, field)] += items
    return merged


# The classes of known differences: whether a difference belongs to one, given all those of the record. The first one counts.


def is_lost(d, _):
    return d.field == "record" and d.theirs == [MISSING] and d.damaged


def is_rendering(d, record):
    return not d.theirs and any(other.field.startswith("RenderingInfo") for other in record)


def is_true(d, _):
    return d.theirs in (["true"], ["True"]) and "".join(d.ours).isdigit()


def are(pattern, d):
    return d.ours and d.theirs and all(re.fullmatch(pattern, value) for value in d.ours + d.theirs)


def has_markup(d, record):
    if d.field == "record":
        return re.search("mismatched tag|not well-formed", d.theirs[0])
    return not (d.ours and d.theirs) and any("".join(other.ours)[:1] == "<" and not other.theirs for other in record)


def without_control(values):
    return re.sub("[\x00-\x1f\x7f-\x9f]", "", "".join(values))


def are_bytes(ours, theirs):
    """Whether a number or a time of ours may be stored in these bytes. Some of them may not be valid UTF-8."""
    value = plain(ours[0]) if ours else ""
    if re.fullmatch(r"-?\d+", value):
        low = int(value) & 0xFF
        return ord(theirs[0]) == low if low < 0x80 else theirs[0] >= "\x80"
    return re.fullmatch(r"-?\d+\.\d+(e[-+]\d+)?", value) or ours and TIME.fullmatch(ours[0])


CLASSES = {
    "libevtx": {
        "damage": is_lost,
        "entity": lambda d, _: d.field == "record" and d.theirs == [MISSING],
        "markup": has_markup,
        "rendering": is_rendering,
        "blank": lambda d, _: not d.theirs and not "".join(d.ours).strip(),
        "size_t": lambda d, _: d.theirs == ["0x00000000"],
        "signed": lambda d, _: are("-[0-9]+", d) and int(d.ours[0]) & 0x7FFFFFFF == -int(d.theirs[0]),
        "float": lambda d, _: are(r"-?[0-9.]+(e[-+]\d+)?", d) and math.isclose(float(d.ours[0]), float(d.theirs[0]), rel_tol=1e-6),
        "mask": is_true,
    },
    "python-evtx": {
        "damage": is_lost,
        "spelled out": lambda d, _: d.field == "record" and re.search("beyond the end of the file|find_end_of_stream", d.theirs[0]),
        "array": lambda d, _: d.field == "record" and re.fullmatch(r"\d+", d.theirs[0]),
        "rendering": is_rendering,
        "mask": is_true,
        "control": lambda d, _: without_control(d.ours) == without_control(d.theirs),
        "empty items": lambda d, _: d.field == "param" and all(value in " ".join(d.ours) for value in d.theirs),
        "zero time": lambda d, _: d.theirs == ["0001-01-01 00:00:00"] or d.damaged and d.ours == ["1601-01-01T00:00:00.0000000Z"],
    },
    "dissect": {
        "damage": is_lost,
        "free space": lambda d, _: d.field == "record" and d.ours == [MISSING],
        "rendering": is_rendering,
        "mask": lambda d, _: are("[0-9]+", d) and int(d.ours[0]) & 0xFF == int(d.theirs[0]),
    },
    "velocidex": {
        "damage": lambda d, _: d.field == "record" and d.damaged,
        "dropped": lambda d, _: not d.theirs,
        "empty element": lambda d, _: not d.ours and d.field in ("channel", "EventData"),
        "repeated": lambda d, _: len(d.ours) > 1 and {*map(plain, d.theirs)} <= {*map(plain, d.ours)},
        "mask": is_true,
        "type": lambda d, _: len(d.theirs) == 1 and are_bytes(d.ours, d.theirs[0]),
        "zeros": lambda d, _: d.damaged and d.theirs[0] in ("-11644473600.0000000", "S-0-0-0"),
    },
}


def class_of(difference, record):
    if difference.file == "oddities.evtx":
        return "oddities"
    return next((name for name, belongs in CLASSES[difference.parser].items() if belongs(difference, record)), None)


def connect(extension):
    global CONNECTION
    import duckdb

    logging.disable()
    CONNECTION = duckdb.connect(config={"allow_unsigned_extensions": "true", "threads": 1})
    CONNECTION.execute(f"LOAD '{extension}'")


def compare_log(path, parsers):
    """Our records and values, each parser's seconds, the size of each class, and the differences without one."""
    mine, times, counts, unknown = collections.defaultdict(list), collections.Counter(), collections.Counter(), []
    for record_id, record in read_ours(CONNECTION, path):
        mine[record_id].append(record)
    records = [record for records in mine.values() for record in records if isinstance(record, dict)]
    for parser in parsers:
        start = time.monotonic()
        for record in compare(parser, path, mine):
            for difference in record:
                name = class_of(difference, record)
                counts[parser, name] += 1
                unknown += [] if name else [difference]
        times[parser] += time.monotonic() - start
    values = sum(len(items) for record in records for items in record.values())
    return collections.Counter(records=len(records), values=values), times, counts, unknown


def read_known():
    """The names of sets of logs, by their count and bytes, and the counts of each class in them."""
    sets, classes = {}, {}
    for line in KNOWN.read_text(encoding="utf-8").splitlines():
        match line.split(" | "):
            case [name, logs, size] if not line.startswith("#"):
                sets[int(logs), int(size)] = name
            case [parser, name, counts, _] if not line.startswith("#"):
                classes[parser, name] = {count.split()[0]: int(count.split()[1]) for count in counts.split(", ")}
    return sets, classes


def main(arguments):
    sizes = {str(log): log.stat().st_size for log in pathlib.Path(arguments.folder).rglob("*.evtx") if log.is_file()}
    totals = collections.Counter(), collections.Counter(), collections.Counter(), []
    with ProcessPoolExecutor(2, initializer=connect, initargs=[arguments.extension]) as pool:
        # The largest log first.
        for result in pool.map(compare_log, sorted(sizes, key=sizes.get, reverse=True), itertools.repeat(arguments.parsers)):
            for total, part in zip(totals, result):
                total.extend(part) if isinstance(total, list) else total.update(part)
    ours, times, counts, unknown = totals
    print(f"{len(sizes)} logs, {ours['records']} records, {ours['values']} values")
    for parser in arguments.parsers:
        count = sum(count for (of, _), count in counts.items() if of == parser)
        print(f"{parser}: {count} differences, {times[parser]:.0f} seconds")
    for difference in sorted(unknown, key=str)[: arguments.show]:
        print(f"\n{difference.parser}: {difference.file}, record {difference.record_id}, {difference.field}")
        print(f"  ours   {difference.ours!r:.300}\n  theirs {difference.theirs!r:.300}")
    problems = [f"{len(unknown)} differences are in no class"] if unknown else []

    sets, classes = read_known()
    name = sets.get((len(sizes), sum(sizes.values())))
    if not name:
        print(f"{KNOWN.name} has no counts for these logs, of {sum(sizes.values())} bytes.")
    for parser, of in sorted(key for key in counts | classes if key[1] and key[0] in arguments.parsers):
        known = classes.get((parser, of), {}).get(name, 0)
        if (parser, of) not in classes or name and counts[parser, of] != known:
            problems.append(f"{parser}: {counts[parser, of]} differences are of class {of}, and {KNOWN.name} has {known}")
    print("\n" + "\n".join(problems) if problems else "All differences are known.")
    return bool(problems)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("extension")
    parser.add_argument("folder")
    parser.add_argument("--parsers", nargs="+", default=list(PARSERS), choices=PARSERS)
    parser.add_argument("--show", type=int, default=20, help="how many differences without a class to show")
    sys.exit(main(parser.parse_args()))
