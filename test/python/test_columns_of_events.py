"""The columns of events, compared with the names and values of EventData and UserData in their XML."""

import contextlib
import datetime
import itertools
import json
import os
import pathlib
import re
import struct
import uuid
import xml.etree.ElementTree as ElementTree

from client import list_of, quoted_name
from conftest import SAMPLES

LOGS = sorted(SAMPLES.glob("*.evtx"))
for folder in filter(None, map(os.environ.get, ["EVTX_CORPUS", "EVTX_VARIED", "EVTX_COLLECTIONS"])):
    LOGS += sorted(pathlib.Path(folder).rglob("*.[eE][vV][tT][xX]"))

# The range of each integer type.
INTEGERS = {
    **{f"U{name}": (0, (1 << bits) - 1) for name, bits in [("TINYINT", 8), ("SMALLINT", 16), ("INTEGER", 32), ("BIGINT", 64)]},
    **{
        name: (-(1 << bits - 1), (1 << bits - 1) - 1)
        for name, bits in [("TINYINT", 8), ("SMALLINT", 16), ("INTEGER", 32), ("BIGINT", 64), ("HUGEINT", 128)]
    },
}


def local(tag):
    return tag.rpartition("}")[2]


def texts_of(element, root=True):
    """The leaves below an element and the texts beside elements, each with the element that has it."""
    if not root and not len(element):
        yield element, element.text or ""
    beside = [element.text, *(child.tail for child in element)] if len(element) else []
    for text, child in itertools.zip_longest(beside, element):
        if text and text.strip():
            yield element, text
        if child is not None:
            yield from texts_of(child, root=False)


def leaves(element):
    """The texts of an element, with their names."""
    unnamed, taken, last = 0, set(), {}
    for child, text in texts_of(element):
        tag = local(child.tag)
        name = child.get("Name") if tag in ("Data", "ComplexData") else None
        name = name or (None if tag == "Data" else tag)
        if name is None:
            unnamed += 1
            name = f"param{unnamed}"
        key = name
        while key in taken:
            last[name] = last.get(name, 0) + 1
            key = f"{name}_{last[name]}"
        taken.add(key)
        yield key, payload(tag, text)


def payload(tag, text):
    """Columns show the texts of a payload, and XML its bytes."""
    if tag not in ("EventPayload", "BinaryEventData") or not re.fullmatch("([0-9A-F]{4})+", text):
        return text
    texts = bytes.fromhex(text).decode("utf-16-le", "replace")
    is_text = texts.endswith("\0") and len(texts.replace("\0", "")) > 3 and "\ufffd" not in texts and texts.replace("\0", "").isprintable()
    return texts.rstrip("\0").replace("\0", "\n") if is_text else text


def attributes(user_data):
    """The attributes of the elements of UserData, with their names. The parser does not count namespace declarations."""
    for root in user_data:
        for name, text in root.attrib.items():
            if text:
                yield f"{local(root.tag)}.{local(name)}", text


def fields_of(xml):
    """The texts of an event's fields, by name."""
    root = ElementTree.fromstring(xml)
    fields = {}
    for wanted in ("EventData", "ProcessingErrorData", "DebugData", "BinaryEventData", "UserData"):
        for child in root:
            if local(child.tag) == wanted:
                # An element without children is a leaf itself.
                own = {wanted: payload(wanted, child.text)} if child.text and not len(child) else {}
                found = dict(leaves(child)) or own
                if wanted == "UserData":
                    found = dict(attributes(child)) | found
                # No event has both EventData and UserData.
                assert not fields or not found
                fields.update(found)
    return fields


def without_case(texts, names=()):
    """Texts by lower-case column name. SQL ignores case, so a field whose name differs from another one's in case only gets the next number
    that is the name of no field of the call."""
    names = {name.lower() for name in (*names, *texts)}
    named, free = {}, {}
    for name, text in texts.items():
        folded = name.lower()
        if folded in free:
            folded = next(free[folded])
        else:
            free[folded] = (key for key in map(f"{folded}_{{}}".format, itertools.count(1)) if key not in names)
        named[folded] = text
    return named


def expected(text, column_type):
    """The value of a text in a column of some type, as text. None for NULL."""
    if text is None:
        return None
    if column_type in INTEGERS:
        text = text.strip()
        if not re.fullmatch(r"-?\d+|0[xX][0-9a-fA-F]+", text, re.ASCII):
            return None
        number = int(text, 16 if "x" in text.lower() else 10)
        low, high = INTEGERS[column_type]
        return str(number) if low <= number <= high else None
    if column_type == "UUID":
        try:
            return str(uuid.UUID(text.strip()))
        except ValueError:
            return None
    if column_type == "BOOLEAN":
        return text if text in ("true", "false") else None
    if column_type == "BLOB":
        return text.lower() if re.fullmatch("([0-9a-fA-F]{2})*", text) else None
    if column_type in ("FLOAT", "DOUBLE"):
        number = float(text) if text else None
        return struct.unpack("<f", struct.pack("<f", number))[0] if number and column_type == "FLOAT" else number
    if column_type == "TIMESTAMP_NS":
        found = re.fullmatch(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d+))?Z", text)
        if not found:
            return None
        seconds = int(datetime.datetime.fromisoformat(found[1] + "+00:00").timestamp())
        nanos = seconds * 10**9 + int((found[2] or "").ljust(9, "0"))
        return str(nanos) if -(1 << 63) <= nanos < 1 << 63 else None
    assert column_type == "VARCHAR", column_type
    return text


def shown(name, column_type):
    """SQL that formats a column as `expected` does."""
    name = quoted_name(name)
    if column_type == "TIMESTAMP_NS":
        return f"epoch_ns({name})::VARCHAR"
    if column_type == "BLOB":
        return f"lower(hex({name}))"
    return name if column_type in ("FLOAT", "DOUBLE") else f"{name}::VARCHAR"


def judge(con, log, event_id):
    """Compares all columns of an event's fields. Returns the number of values, and the texts that did not fit their column."""
    source = f"read_evtx({log}, event_id := {event_id}, xml := true)"
    columns = con.execute(f"SELECT column_name, column_type FROM (DESCRIBE FROM {source})").fetchall()
    names = [name for name, _ in columns]
    fields = columns[names.index("computer") + 1 : names.index("user_data")]
    values, misfits = 0, []
    rows = con.execute(
        f"SELECT record_id, xml, {', '.join(shown(*field) for field in fields) or 'NULL'} FROM {source} WHERE event_id IS NOT NULL AND xml IS NOT NULL"
    ).fetchall()
    read = []
    for row in rows:
        # An event can contain characters that XML does not allow.
        with contextlib.suppress(ElementTree.ParseError):
            read.append((fields_of(row[1]), *row))
    names = {name for texts, *_ in read for name in texts}
    for texts, record_id, xml, *found in read:
        texts = without_case(texts, names)
        left = set(texts)
        # An array with a name is one entry, but the XML does not show which elements are its items.
        has_array = any(isinstance(value, str) and value[:1] == "[" and value[-1:] == "]" for value in found)
        for (name, column_type), value in zip(fields, found):
            key = name.lower()
            key = key if key in texts else key.removeprefix("data_")
            left.discard(key)
            if column_type.endswith("[]"):
                # The text of the items cannot be predicted.
                assert (value is None) == (key not in texts), (log, event_id, record_id, name)
                continue
            if has_array and re.fullmatch(r".*_\d+", name):
                continue
            text = texts.get(key)
            if column_type == "VARCHAR" and value is not None:
                # XML normalizes line ends.
                value = value.replace("\r\n", "\n").replace("\r", "\n")
            if column_type == "VARCHAR" and value is not None and value[:1] == "[" and value != text:
                # An array of texts, where other templates have a single one.
                continue
            assert value == expected(text, column_type), (log, event_id, record_id, name, column_type, value, text)
            values += 1
            if text and value is None:
                misfits.append((name, column_type, text))
        # Every field has a column, except items of arrays with a name.
        assert not {name for name in left if not re.search(r"_\d+$", name)}, (log, event_id, left)
    return values, misfits


def items_of(text):
    """The texts of the items of a list, from the text of its entry in event_data."""
    if text == "":
        return []
    try:
        items = json.loads(text) if text.startswith("[") else [text]
    except ValueError:
        items = [text]
    return [item if isinstance(item, str) else json.dumps(item) for item in items]


def judge_map(con, log, event_id):
    """Compares the columns of an event with `event_data`, `fields` and `insertions` of the same rows. Returns how many values it compared."""
    source = f"read_evtx({log}, event_id := {event_id}, fields := true, insertions := true, sample_size := -1)"
    columns = con.execute(f"SELECT column_name, column_type FROM (DESCRIBE FROM {source})").fetchall()
    names = [name for name, _ in columns]
    fields = columns[names.index("computer") + 1 : names.index("user_data")]
    lists = [shown("item", column_type[:-2]) for _, column_type in fields]
    exprs = [f"[{item} FOR item IN {quoted_name(name)}]" if kind.endswith("[]") else shown(name, kind) for (name, kind), item in zip(fields, lists)]
    rows = con.execute(f"""SELECT filename, record_id, event_data, user_data, [(field.name, field.value) FOR field IN fields], insertions, {', '.join(exprs) or 'NULL'}
        FROM {source} WHERE event_id IS NOT NULL AND error IS NULL""").fetchall()
    values = 0
    for filename, record_id, event_data, user_data, listed, insertions, *found in rows:
        place = (filename, event_id, record_id)
        texts = without_case(event_data or {})
        left = set(texts)
        for (name, column_type), value in zip(fields, found):
            key = name.lower()
            key = key if key in texts else key.removeprefix("data_")
            left.discard(key)
            text = texts.get(key)
            if text is None:
                assert value is None or user_data, (place, name, value)
            elif column_type.endswith("[]"):
                assert value == [expected(item, column_type[:-2]) for item in items_of(text)], (place, name, column_type, value, text)
            else:
                assert value == expected(text, column_type), (place, name, column_type, value, text)
            values += 1
        assert not left, (place, left)
        # The list leaves out empty values, and has each item of an array with a name.
        for key, text in (event_data or {}).items():
            is_there = any((name, text) in listed for name in (key, re.sub(r"_\d+$", "", key)))
            assert is_there or text == "" or text.startswith("["), (place, key, text, listed)
        # The strings of an event without a manifest are its insertions. Without any, there is one empty value.
        unnamed = [text for key, text in (event_data or {}).items() if re.fullmatch(r"param\d+", key)]
        if unnamed and set(event_data) <= {*(f"param{number}" for number in range(1, len(unnamed) + 1)), "Binary"}:
            assert insertions[: len(unnamed)] == unnamed or unnamed == [""], (place, insertions, unnamed)
    return values


def test_event_data_and_columns_agree(con):
    """For every record and every name: in its own log, and in all logs that have its event."""
    paths = list_of(str(log)[:-1] + "[xX]" for log in LOGS)
    of_events = con.execute(
        f"SELECT event_id, list(DISTINCT filename ORDER BY filename) FROM read_evtx({paths}) WHERE event_id IS NOT NULL GROUP BY 1 ORDER BY 1"
    ).fetchall()
    values = 0
    for event_id, logs in of_events:
        for log in {list_of(logs), *(list_of([log]) for log in logs)}:
            values += judge_map(con, log, event_id)
    print(f"{values} values of {len(of_events)} events in {len(LOGS)} logs")
    assert values > 1000


def test_every_field_is_what_the_xml_says(con):
    """For each event over all logs that contain it, so that all of its templates and versions share the columns."""
    # With globs, files that are not logs become rows instead of errors.
    paths = list_of(str(log)[:-1] + "[xX]" for log in LOGS)
    of_events = con.execute(
        f"SELECT event_id, list(DISTINCT filename ORDER BY filename) FROM read_evtx({paths}) WHERE event_id IS NOT NULL GROUP BY 1 ORDER BY 1"
    ).fetchall()
    values, misfits = 0, []
    for event_id, logs in of_events:
        of_event = judge(con, list_of(logs), event_id)
        values += of_event[0]
        misfits += of_event[1]
    print(f"{values} values of {len(of_events)} events; texts that do not fit their column: {sorted(set(misfits))[:50]}")
    assert values > 1000 if os.environ.get("EVTX_CORPUS") else values == 2869, values
