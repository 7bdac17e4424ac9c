"""Judges read_evtx_xml.

What read_evtx and the crate `evtx` write as XML must come back as the columns of read_evtx, and what ElementTree reads of other
XML must be there. Of damaged exports, rows may only disappear with a row that says so. EVTX_EXPORTS=600 asks for so many logs.
"""

import bz2
import collections
import gzip
import json
import os
import pathlib
import random
import re
import time
import xml.etree.ElementTree as ElementTree
from xml.sax.saxutils import escape, quoteattr

import crowds
import duckdb
import evtx
import pytest
from client import quoted
from conftest import DOCUMENTED, SAMPLES, interrupted, write_zip

FOLDERS = [SAMPLES, *(os.environ[name] for name in ("EVTX_CORPUS", "EVTX_VARIED", "EVTX_COLLECTIONS") if os.environ.get(name))]
LOGS = [log for folder in FOLDERS for log in sorted(pathlib.Path(folder).rglob("*.[eE][vV][tT][xX]"))]
NAMESPACE = "http://schemas.microsoft.com/win/2004/08/events/event"

# As Event Viewer writes them. An export can have them in any other way.
DECLARATION = '<?xml version="1.0" encoding="utf-8" standalone="yes"?>'
LAYOUTS = {
    "event viewer": lambda events: ("\ufeff" + DECLARATION + "\r\n<Events>" + "".join(events) + "</Events>\r\n").encode(),
    "wevtutil": lambda events: "\r\n".join(events).encode("utf-16"),
    "other end": lambda events: ("<Events>\n" + "\n".join(events) + "\n</Events>").encode("utf-16-be"),
    "evtx_dump": lambda events: "".join(f"Record {nth}\n{event}\n" for nth, event in enumerate(events)).encode(),
}

# Columns that XML does not tell, or tells in another way: see docs/exports.md.
OTHER = {"record_id", "message", "message_source", "insertions", "json"}


def some_logs():
    count = int(os.environ.get("EVTX_EXPORTS", "25"))
    return sorted(random.Random(54).sample(LOGS, min(count, len(LOGS))))


def rows(con, function, path, more="", options="xml := true, json := true, text := true, fields := true"):
    """The rows without the path, each by the names of its columns."""
    found = con.execute(f"SELECT * EXCLUDE (filename) FROM {function}({quoted(path)}, {options}) {more}")
    names = [column[0] for column in found.description]
    return [dict(zip(names, row)) for row in found.fetchall()]


def as_texts(value):
    """JSON whose numbers and booleans are texts."""
    if isinstance(value, dict):
        return {name: as_texts(item) for name, item in value.items()}
    if isinstance(value, list):
        return [as_texts(item) for item in value]
    return value if value is None or isinstance(value, str) else json.dumps(value)


def with_lines(value):
    """A value whose line breaks are those that every parser of XML gives."""
    if isinstance(value, dict):
        return {name: with_lines(item) for name, item in value.items()}
    if isinstance(value, list):
        return [with_lines(item) for item in value]
    return re.sub("\r\n?", "\n", value) if isinstance(value, str) else value


def plain(row):
    """A row as far as XML tells it."""
    row = {name: with_lines(value) for name, value in row.items() if name not in OTHER}
    row["user_data"] = row["user_data"] and as_texts(json.loads(row["user_data"]))
    row["xml"] = row["xml"] and re.sub("&quot;", '"', row["xml"])
    # A value can end in a carriage return.
    row["text"] = row["text"] and re.sub("\n+", "\n", row["text"])
    return row


def is_odd(row):
    """Whether it is the event of samples/oddities.evtx whose System has values of other types."""
    return "<EventID>eleven</EventID>" in (row["xml"] or "")


def has_repeated(xml):
    """Whether a name of the event data occurs again, as of an array."""
    names = re.findall('<Data Name="([^"]*)"', xml)
    return len(set(names)) < len(names)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_xml_of_read_evtx_comes_back(con, tmp_path, layout):
    path, compared = tmp_path / "export.xml", 0
    for log in some_logs():
        originals = rows(con, "read_evtx", log, "WHERE error IS NULL")
        if not originals:
            continue
        path.write_bytes(LAYOUTS[layout]([row["xml"] for row in originals]))
        found = rows(con, "read_evtx_xml", path)
        assert [row["error"] for row in found if row["error"] and not is_odd(row)] == [], log
        assert len(found) == len(originals), log
        for original, row in zip(originals, found):
            expected, own = plain(original), plain(row)
            if is_odd(row):
                assert "cannot read EventID 'eleven', Level '-1', TimeCreated SystemTime '0000-00-00" in own.pop("error")
                del expected["error"]
            if has_repeated(original["xml"]) or "EventPayload" in original["xml"] or "CDATA" in original["xml"]:
                # An array is one value, a payload can be text, and a section of characters is text in XML.
                for name in ("event_data", "text", "fields", "xml"):
                    del expected[name], own[name]
            assert own == expected, log
            compared += 1
    assert compared > 300 if len(FOLDERS) > 1 else compared == 407, compared


# What the crate writes in another way: GUIDs without braces, and a few types.
def folded(value):
    guid = re.fullmatch(r"\{?([0-9A-Fa-f-]{36})\}?", value or "")
    return guid[1].lower() if guid else with_lines(value or "")


def test_xml_of_the_crate_evtx_is_read(con, tmp_path):
    path, compared, other = tmp_path / "export.xml", 0, collections.Counter()
    for log in some_logs():
        records = []
        try:
            records = [record for record in evtx.PyEvtxParser(str(log)).records() if isinstance(record, dict)]
        except RuntimeError:
            continue
        path.write_bytes(LAYOUTS["evtx_dump"]([record["data"] for record in records]))
        originals = collections.defaultdict(list)
        for row in rows(con, "read_evtx", log, "WHERE error IS NULL"):
            originals[row["record_id"]].append(row)
        if not records:
            continue
        found = rows(con, "read_evtx_xml", path)
        assert [row["error"] for row in found if row["error"] and not is_odd(row)] == [], log
        assert len(found) == len(records), log
        for record, row in zip(records, found):
            if len(originals[record["event_record_id"]]) != 1:
                continue
            original = originals[record["event_record_id"]][0]
            for name in original.keys() - OTHER - {"event_data", "xml", "text", "fields", "user_data"} - ({"error"} if is_odd(row) else set()):
                assert row[name] == original[name], (log, name)
            data, own = original["event_data"] or {}, row["event_data"] or {}
            if not has_repeated(original["xml"]):
                # The crate writes elements that a template leaves out if their value is NULL.
                names = {name for name, value in [*own.items(), *data.items()] if value}
                other.update("event_data" for name in names if folded(own.get(name)) != folded(data.get(name)))
            compared += 1
    # Binary payloads, times and floats of a few events.
    assert other["event_data"] * 20 < compared
    assert compared > 300 if len(FOLDERS) > 1 else compared == 366, compared


def event(nth, data=None, more=""):
    data = f"<Data Name='Nth'>{nth}</Data>" if data is None else data
    return (
        f"<Event xmlns='{NAMESPACE}'><System><Provider Name='Some'/><EventID>{nth % 1000}</EventID>"
        f"<TimeCreated SystemTime='2024-03-05T08:00:00.{nth % 1000:03}4567Z'/><EventRecordID>{nth}</EventRecordID>"
        f"<Channel>Application</Channel><Computer>PC</Computer></System><EventData>{data}</EventData>{more}</Event>"
    )


def read(con, path, columns="event_record_id, error", options=""):
    return con.execute(f"SELECT {columns} FROM read_evtx_xml({quoted(path)}{options})").fetchall()


# Content of RenderingInfo, and why it cannot be read. Its end tag is missing in the last ones.
BROKEN = [
    ("<Message>a < b</Message></RenderingInfo>", "it has a `<` that starts no tag"),
    ("<Message>a & b</Message></RenderingInfo>", "a `&` in it starts no reference"),
    ("<Message>a</Level></RenderingInfo>", "expected `</Message>`, but `</Level>` was found"),
    ("<Message b='<'>a</Message></RenderingInfo>", "the value of an attribute does not end"),
    ("<Message><Message>a</Message></RenderingInfo>", "expected `</Message>`, but `</RenderingInfo>` was found"),
    ("<Message>a</RenderingInfo><x>", "expected `</Message>`, but `</RenderingInfo>` was found"),
    ("<Message>a", "expected `</Message>`, but `</Event>` was found"),
    ("<Message><![CDATA[<Event><System/></Event>]]> & </Message></RenderingInfo>", "a `&` in it starts no reference"),
]


@pytest.mark.parametrize(("content", "why"), BROKEN)
def test_a_broken_rendering_hides_no_event(con, tmp_path, content, why):
    """The values of its event, and the events around it."""
    path = tmp_path / "export.xml"
    broken = event(2, more=f"<RenderingInfo Culture='en-US'>{content}").replace("<x>", "")
    path.write_text(f"<Events>{event(1)}{broken}{event(3)}</Events>")
    found = read(con, path, "event_record_id, event_data, computer, message, error")
    at = path.read_text().index("<Event xmlns", 20)
    assert found == [(1, {"Nth": "1"}, "PC", None, None), (2, {"Nth": "2"}, "PC", None, f"{path}: cannot read RenderingInfo ({why}) of the event at byte {at}"),
                     (3, {"Nth": "3"}, "PC", None, None)]
    # A sound one before it, and one that ends with the file, or where another event starts.
    whole = event(2, more="<RenderingInfo><Message>text</Message></RenderingInfo>")
    for cut in range(whole.index("<Message>"), len(whole) - len("</Event>"), 3):
        for after in ("", event(3)):
            path.write_text(event(1) + whole[:cut] + after)
            rows = read(con, path, "event_record_id, event_data, error")
            is_whole = "</RenderingInfo>" in whole[:cut]
            # Without its own end tag, only the file can be at fault.
            assert is_whole or [row[:2] for row in rows[-3:] if row[0]][:2] == [(1, {"Nth": "1"}), (2, {"Nth": "2"})], (cut, rows)
            assert is_whole or [row[0] for row in rows if "cannot read RenderingInfo (" in (row[2] or "")] == [2], (cut, rows)
            assert (rows[-1][0] == 3) == (after != ""), (cut, rows)


def random_event(random, nth):
    """An event whose texts are written in many ways."""
    letters = "ab &<>\"'\u00e9\u4e2d\U0001f600\t]\r\n"

    def text():
        return "".join(random.choice(letters) for _ in range(random.randrange(6)))

    def written(value):
        parts = []
        for letter in value:
            ways = [escape(letter, {'"': "&quot;", "'": "&apos;"}), f"&#{ord(letter)};", f"&#x{ord(letter):X};"]
            if letter == "\n":
                ways.append("\r\n")
            if letter != "]":
                ways.append(f"<![CDATA[{letter}]]>")
            if letter not in "&<]":
                ways.append(letter)
            parts.append(random.choice(ways) + random.choice(["", "", "<!-- <Data>no</Data> -->", "<?no thing?>"]))
        return "".join(parts)

    def attribute(value):
        return random.choice([quoteattr(value), '"' + escape(value, {'"': "&quot;"}) + '"'])

    values = [(f"N{at}{text()}", text()) for at in range(random.randrange(5))]
    space = random.choice(["", "\n  ", "\t"])
    data = space + "".join(
        f"<Data Name{random.choice(['=', ' = '])}{attribute(name)}{random.choice(['', ' '])}>{written(value)}</Data>{space}"
        for name, value in values
    )
    prefix = random.choice(["", "", "e:"])
    whole = event(nth, data, space)
    if prefix:
        whole = re.sub(r"<(/?)(?=[A-Z](?!DATA))", r"<\1e:", re.sub("<!--.*?-->", "", whole)).replace("xmlns=", "xmlns:e=")
    return whole


def test_texts_are_those_of_element_tree(con, tmp_path):
    random_ = random.Random(54)
    path, count = tmp_path / "random.xml", 400
    events = [random_event(random_, nth) for nth in range(1, count + 1)]
    for layout in LAYOUTS.values():
        path.write_bytes(layout(events))
        found = read(con, path, "event_record_id, event_data, error")
        assert [row[0] for row in found] == list(range(1, count + 1)) and not any(row[2] for row in found)
        for text, (_, data, _) in zip(events, found):
            root = ElementTree.fromstring(text)
            expected = {item.get("Name"): item.text or "" for item in root.iter(f"{{{NAMESPACE}}}Data")}
            assert (data or {}) == expected, text


def decoy(random):
    """Markup that looks like an event, and is text where it is put."""
    namespace = random.choice(["", f" xmlns='{NAMESPACE}'", " xmlns='x'"])
    one = (f"<Event{namespace}><System><EventID>1102</EventID><EventRecordID>{random.randrange(10**6, 10**7)}</EventRecordID>"
           "</System></Event>")
    return random.choice(["", " ", "</Data></EventData></Event>"]) + one * random.randrange(1, 8) + random.choice(["", "<Event>", "</Events>"])


def hidden(random):
    """The same in a part of XML that is not markup."""
    return random.choice(["<!--{}-->", "<?some {}?>"]).format(decoy(random))


def random_document(random):
    """A document with events, and the texts of these. What is between them is no damage unless `is_other` is true."""
    default = random.choice(["", NAMESPACE, "urn:other"])
    root = f"Events xmlns='{default}'" if default else "Events"
    root += f" xmlns:e='{NAMESPACE}' xmlns:o='urn:other' note='>'"
    is_other, parts, events, nth = False, [], [], 0
    if random.random() < 0.5:
        parts.append(f"<!DOCTYPE Events [<!ENTITY a \"{decoy(random)}\"><!-- '{decoy(random)} --><?a ']>?><!ELEMENT b ANY>]>\n")
    parts += [f"<{root}>", *(hidden(random) for _ in range(random.randrange(3)))]
    for _ in range(random.randrange(1, 6)):
        noise = random.randrange(10)
        if noise < 3:
            parts.append(hidden(random))
        elif noise == 3:
            is_other = True
            parts.append(random.choice([
                f"<![CDATA[{decoy(random)}]]>",
                "<o:Event><o:System><o:EventRecordID>5000000</o:EventRecordID></o:System></o:Event>",
                "<Event xmlns='urn:x'><System><EventRecordID>5000000</EventRecordID></System></Event>",
                "<a xmlns='urn:x'><Event><System><EventRecordID>5000000</EventRecordID></System></Event></a>",
            ]))
        nth += 1
        values = []
        for at in range(random.randrange(4)):
            pieces = [random.choice(["text", "&lt;", f"<![CDATA[{decoy(random)}]]>", hidden(random)]) for _ in range(random.randrange(4))]
            values.append(f"<Data Name='N{at}' o=\"'>\">{''.join(pieces)}</Data>")
        system = (f"<System><EventID>{nth}</EventID><EventRecordID>{nth}</EventRecordID>{hidden(random)}"
                  "<Channel>Application</Channel></System>")
        before = random.choice(["", "", hidden(random), "<System xmlns='urn:x'><EventRecordID>5000000</EventRecordID></System>"])
        after = random.choice(["", "", f"<!--{decoy(random)}-->", f"<UserData>{decoy(random)}</UserData>"])
        if after.startswith("<UserData>"):
            after = f"<UserData>{event(7)}<a xmlns='urn:x'><Event/></a></UserData>"
        body = f"{before}{system}<EventData>{''.join(values)}</EventData>{after}"
        way = random.choice(["default", "own", "own", "prefix", "none"])
        if way == "prefix" or way == "default" and default == "urn:other":
            names = r"<(/?)(?=(?:Event|System|EventID|EventRecordID|Channel|EventData|Data|UserData)[ />])"
            # What is text stays.
            opaque = r"(<!--.*?-->|<!\[CDATA\[.*?\]\]>|<\?.*?\?>|<System xmlns='urn:x'>.*?</System>|<a xmlns='urn:x'>.*?</a>)"
            pieces = re.split(opaque, f"<Event>{body}</Event>")
            whole = "".join(piece if at % 2 else re.sub(names, r"<\1e:", piece) for at, piece in enumerate(pieces))
        else:
            declared = {"default": "", "own": f" xmlns='{NAMESPACE}'", "none": " xmlns=''"}[way]
            whole = f"<Event{declared}>{body}</Event>"
        parts.append(whole)
        events.append(whole)
    parts.append("</Events>" + random.choice(["", "\n", hidden(random)]))
    return parts, events, is_other


def outermost(element):
    """The events of a tree that are not inside of others."""
    if element.tag in (f"{{{NAMESPACE}}}Event", "Event"):
        return [element]
    return [event for child in element for event in outermost(child)]


def said(element):
    """The ID of an event and its data, by ElementTree."""
    def own(element, name):
        return [child for child in element if child.tag in (f"{{{NAMESPACE}}}{name}", name)]
    number = own(own(element, "System")[0], "EventRecordID")[0].text
    data = [item for part in own(element, "EventData") for item in own(part, "Data")]
    return int(number), {item.get("Name"): item.text or "" for item in data}


def documents(folder, count, encoding, change=lambda random, whole: whole):
    """Random documents, each in a file with its number. Returns what ElementTree reads of each."""
    random_, expected = random.Random(70), []
    for nth in range(count):
        parts, events, is_other = random_document(random_)
        read_by_tree = [said(event) for event in outermost(ElementTree.fromstring("".join(parts)))]
        assert len(read_by_tree) == len(events)
        expected.append((read_by_tree, is_other))
        (folder / f"{nth:04}.xml").write_bytes(change(random_, (parts, events)).encode(encoding))
    return expected


def found_in(con, folder):
    found = collections.defaultdict(list)
    for name, *row in read(con, folder, "filename, event_record_id, event_data, error, user_data IS NULL"):
        found[int(pathlib.Path(name).stem)].append(row)
    return found


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_documents_are_those_of_element_tree(con, tmp_path, encoding):
    """Comments, sections, instructions, declarations and other namespaces have no events in them."""
    expected = documents(tmp_path, 600, encoding, lambda _, whole: "".join(whole[0]))
    found = found_in(con, tmp_path)
    for nth, (events, is_other) in enumerate(expected):
        text = (tmp_path / f"{nth:04}.xml").read_text(encoding)
        rows = [(number, data or {}) for number, data, error, has_data in found[nth] if not error]
        # An event with UserData has no event_data.
        assert [row for row in rows if row[1]] == [event for event in events if event[0] in {number for number, data in rows if data}], text
        assert [number for number, _ in rows] == [number for number, _ in events], text
        assert any(error for _, _, error, _ in found[nth]) == is_other, text
    assert sum(len(events) for events, _ in expected) > 1000


def test_text_does_not_become_events_after_damage(con, tmp_path):
    """An event that is damaged is a row with an error; the others are there, and nothing else."""
    damaged = {}

    def change(random, whole):
        parts, events = whole
        nth = random.randrange(len(events))
        damaged[len(damaged)] = nth
        # The own element, not one in a text.
        tag = re.search(f"<(e:)?EventID>(?={nth + 1}<)", events[nth])
        new = random.choice(["<EventId>", "<EventID a='>", "<EventID", "<EventID><EventID>"])
        one = events[nth][:tag.start()] + new + events[nth][tag.end():]
        return "".join(one if part is events[nth] else part for part in parts)

    expected = documents(tmp_path, 600, "utf-8", change)
    found = found_in(con, tmp_path)
    for nth, (events, _) in enumerate(expected):
        text = (tmp_path / f"{nth:04}.xml").read_text()
        others = [number for at, (number, _) in enumerate(events) if at != damaged[nth]]
        rows = [number for number, _, error, _ in found[nth] if not error]
        assert [number for number in rows if number != 7] == others, text
        assert any(error for _, _, error, _ in found[nth]), text


NAMES = {"<!--": "comment", "<![CDATA[": "CDATA section", "<?": "processing instruction", "<!DOCTYPE": "DOCTYPE"}


def parts_without_markup(whole):
    """The parts of a sound document that have no markup in them: where each starts and ends, and its first bytes."""
    start = whole.index("]>\n") + 2 if whole.startswith("<!DOCTYPE") else 0
    yield from [(0, start, "<!DOCTYPE")][:start]
    tag = r"<(?:[^>\"']|\"[^\"]*\"|'[^']*')*>"
    for token in re.finditer(rf"<!--.*?-->|<!\[CDATA\[.*?\]\]>|<\?.*?\?>|{tag}", whole[start:], re.DOTALL):
        if token[0][1] in "!?":
            yield start + token.start(), start + token.end(), next(mark for mark in NAMES if token[0].startswith(mark))


def test_documents_cut_in_a_part_without_markup(con, tmp_path):
    """What is in such a part may be text: no event of it looks sound."""
    cuts = []

    def cut(random, whole):
        parts, events = whole
        text, ends, at = "".join(parts), [], 0
        for part in parts:
            at += len(part)
            if any(part is event for event in events):
                ends.append(at)
        places = [place for place in parts_without_markup(text) if place[1] - place[0] > 60]
        if not places:
            places, text = [(len(text), len(text) + 500, "<!--")], text + "<!--" + decoy(random) * 9
        start, end, mark = random.choice(places)
        length = random.randrange(start + len(mark) + 1, end - 2)
        cuts.append((start, mark, len([end for end in ends if end <= length])))
        return text[:length]

    expected = documents(tmp_path, 600, "utf-8", cut)
    found, doubted = found_in(con, tmp_path), collections.Counter()
    for nth, ((events, _), (start, mark, whole)) in enumerate(zip(expected, cuts)):
        text = (tmp_path / f"{nth:04}.xml").read_text()
        name = NAMES[mark]
        # An event in an event that was cut is one of its own.
        sound = [number for number, _, error, _ in found[nth] if not error and number != 7]
        assert sound == [number for number, _ in events[:whole]], text
        errors = [(number, error.split(".xml: ")[1]) for number, _, error, _ in found[nth] if error]
        assert any(number is None and f"the {name} at byte {start} does not end" in error for number, error in errors), (errors, text)
        for number, error in errors:
            if number is not None:
                assert error == f"the event may be text: the {name} before it, at byte {start}, does not end", text
                doubted[mark] += 1
    assert all(doubted[mark] > 20 for mark in NAMES), doubted


def test_attributes_that_a_document_type_declares(con, tmp_path):
    """They are not applied, so a row says that they are there."""
    path = tmp_path / "declared.xml"
    for subset, is_told in [
        ("<!ATTLIST Event xmlns CDATA 'urn:x'>", True),
        ("<!ELEMENT Event ANY> <!ATTLIST Event a CDATA #IMPLIED xmlns CDATA #FIXED \"urn:x\">", True),
        ("<!ENTITY % a '<!ATTLIST Event xmlns CDATA \"urn:x\">'> %a;", True),
        ("<!ATTLIST Event a CDATA #IMPLIED b (c|d) #REQUIRED>", False),
        ("<!-- <!ATTLIST Event xmlns CDATA 'urn:x'> --><?a <!ATTLIST Event xmlns CDATA 'urn:x'>?>", False),
        ("<!ENTITY a \"<!ATTLIST Event xmlns CDATA 'urn:x'>\">", False),
    ]:
        text = f"<!DOCTYPE Events [{subset}]><Events>" + event(1).replace(f" xmlns='{NAMESPACE}'", "") + "</Events>"
        assert ElementTree.fromstring(text)[0].tag == ("{urn:x}Event" if is_told and "%" not in subset else "Event")
        path.write_text(text)
        found = read(con, path)
        assert [row for row, error in found if not error] == [1]
        assert [error.split(".xml: ")[1].split(" for ")[0] for _, error in found if error] == ["the DOCTYPE at byte 0 declares attributes"] * is_told


def test_parts_without_end(con, tmp_path):
    """A long part hides what is in it; one whose end is lost hides nothing, but what comes after it may be text."""
    path, events = tmp_path / "parts.xml", "".join(event(nth) for nth in range(1, 6))
    for encoding in ("utf-8", "utf-16"):
        for start, end in [("<!--", "-->"), ("<![CDATA[", "]]>"), ("<?a", "?>")]:
            section = start.startswith("<![")
            for part, is_told, doubted in [
                (start + event(9) * 8_000 + end, section, []),
                (start + event(9) * 3 + "<!--" + end, True, [9] * 3) if start == "<!--" else (start + end, section, []),
                (start + event(9) * 8_000 + "<!--" + end, True, [9] * 8_000) if start == "<!--" else (start + end, section, []),
                (start, True, [2, 3, 4, 5]),
                (start + " " * 3_000_000, True, [2, 3, 4, 5]),
                (start[:-1], True, [] if start != "<?a" else [2, 3, 4, 5]),
            ]:
                path.write_bytes(("<Events>" + events[:len(event(1))] + part + events[len(event(1)):] + "</Events>").encode(encoding))
                found = read(con, path)
                assert [row for row, error in found if not error] == [row for row in [1, 2, 3, 4, 5] if row not in doubted], (encoding, part[:20])
                assert any(error for _, error in found) == is_told, (encoding, part[:20], found[:2])
                told = [(row, error) for row, error in found if row and error]
                assert [row for row, _ in told] == doubted, (encoding, part[:20])
                at = len(("<Events>" + event(1)).encode(encoding))
                assert all(error.endswith(f"before it, at byte {at}, does not end") for _, error in told)
                # Damage, as every other.
                assert len(read(con, path, options=", on_error := 'skip'")) == 5 - len({2} & set(doubted)) * 4
        # A section that makes an event too long.
        text = f"<Data Name='x'><![CDATA[{event(9) * 8_000}]]></Data>"
        path.write_bytes(("<Events>" + event(1) + event(2, text) + event(3) + "</Events>").encode(encoding))
        found = read(con, path)
        assert [row for row, error in found if not error] == [1, 3] and len(found) == 3


def test_a_prefix_that_nothing_declares(con, tmp_path):
    """The tag that declares it can be lost: the event is there, and so is an error."""
    path = tmp_path / "prefix.xml"
    path.write_text("<Events>" + event(1) + "<e:Event><e:System><e:EventRecordID>2</e:EventRecordID></e:System></e:Event>" + event(3) + "</Events>")
    found = read(con, path)
    assert [row for row, error in found if not error] == [1, 2, 3]
    assert [error.split(": ")[1] for _, error in found if error] == [f"the event at byte {8 + len(event(1))} has a prefix that nothing declares"]


def test_elements_of_other_namespaces_are_not_those_of_events(con, tmp_path):
    path = tmp_path / "other.xml"
    other = "<System xmlns='urn:x'><EventID>1</EventID><EventRecordID>9</EventRecordID></System>"
    path.write_text(event(2).replace("<System>", other + "<System><EventID xmlns='urn:x'>1102</EventID>"))
    assert read(con, path, "event_record_id, event_id, error") == [(2, 2, None)]
    [(xml,)] = read(con, path, "xml", ", xml := true")
    tree = ElementTree.fromstring(xml)
    assert [child.tag for child in tree][:2] == ["{urn:x}System", f"{{{NAMESPACE}}}System"]


def test_long_texts(con, tmp_path):
    """A script block and its message are longer than a chunk is in UTF-16."""
    path, random_ = tmp_path / "long.xml", random.Random(54)
    scripts = ["".join(random_.choices("Get-Item \u00e9\u00a0$x;\r\n" * 9 + "\u20ac", k=random_.randrange(10_000, 27_000))) for _ in range(30)]
    scripts += ["x" * length for length in (31_000, 31_500, 32_000, 32_500, 33_000, 60_000)]
    path.write_text("".join(
        event(nth, f"<Data Name='ScriptBlockText'>{script}</Data>", f"<RenderingInfo><Message>{message}</Message></RenderingInfo>")
        for nth, script in enumerate(scripts, 1)
        for message in ["Creating Scriptblock text: " + (script if len(script) < 30_000 else "")]
    ), encoding="utf-8", newline="")
    found = read(con, path, "event_data['ScriptBlockText'], message, error, event_record_id")
    assert [row[2] for row in found if row[2]] == []
    scripts = with_lines(scripts)
    assert [row[0] for row in found] == scripts
    assert [row[1] for row in found[:30]] == ["Creating Scriptblock text: " + script for script in scripts[:30]]
    found = read(con, path, "ScriptBlockText", ", event_id := [3, 36]")
    assert found == [(scripts[2],), (scripts[35],)]


def offset_of(error):
    return int(re.search(r" at byte (\d+)", error)[1])


def test_an_export_cut_at_any_byte(con, tmp_path):
    """A cut export has its whole events, and a row for the event that was cut."""
    events = [event(nth) for nth in range(1, 4)]
    whole = ("<Events>" + "".join(events) + "</Events>").encode()
    starts = [whole.index(f"<Event xmlns='{NAMESPACE}'>".encode(), at) for at in (0,)]
    ends, at = [], 0
    for one in events:
        start = whole.index(one.encode(), at)
        at = start + len(one)
        ends.append(at)
        starts.append(start)
    for length in range(1, len(whole)):
        (tmp_path / f"{length:05}.xml").write_bytes(whole[:length])
    found = collections.defaultdict(list)
    for name, record, error in read(con, tmp_path, "filename, event_record_id, error"):
        found[int(pathlib.Path(name).stem)].append((record, error))
    for length in range(1, len(whole)):
        there = [nth for nth, end in enumerate(ends, 1) if end <= length]
        assert [record for record, error in found[length] if not error] == there, length
        errors = [error for _, error in found[length] if error]
        last = ends[len(there) - 1] if there else len("<Events>")
        is_whole = length == last or there == [1, 2, 3] or length <= len("<Events>")
        if is_whole:
            # The end tag of the root is lost, or cut.
            assert len(errors) == 1 or length < len("<Events>"), (length, errors)
        else:
            assert len(errors) == 1, (length, errors)
            if there:
                assert offset_of(errors[0]) == last, (length, errors)


def test_flipped_bytes(con, tmp_path):
    """Events that were not touched are there, and what is missing has a row."""
    random_ = random.Random(54)
    events = [event(nth) for nth in range(1, 6)]
    whole = ("<Events>" + "".join(events) + "</Events>").encode()
    touched = {}
    for case in range(1500):
        at, value = random_.randrange(len(whole)), random_.randrange(256)
        damaged = bytearray(whole)
        damaged[at] = value
        (tmp_path / f"{case:05}.xml").write_bytes(damaged)
        touched[case] = next((nth for nth, one in enumerate(events, 1) if whole.index(one.encode()) <= at < whole.index(one.encode()) + len(one)), None)
    found = collections.defaultdict(list)
    for name, nth, error in read(con, tmp_path, "filename, event_data['Nth'], error"):
        found[int(pathlib.Path(name).stem)].append((nth, error))
    lost = 0
    for case, nth in touched.items():
        ids = [row for row, error in found[case] if not error]
        others = [str(one) for one in range(1, 6) if one != nth]
        # Behind `<?` all that follows may be text.
        there = [row for row, error in found[case] if not error or "may be text" in error]
        assert [one for one in there if one in others] == others, case
        if len(ids) < 5:
            lost += 1
            assert any(error for _, error in found[case]), case
    assert 100 < lost < 1500


@pytest.mark.parametrize("text, why", [
    (event(2, "<Data>&lol9;</Data>", "<!DOCTYPE lolz [<!ENTITY lol 'lol'>]>"), "a declaration"),
    (event(2, "<a>" * 200 + "</a>" * 200), "nested more than 96 levels"),
    (event(2, f"<Data>{'x' * 3_000_000}</Data>"), "more than 1048576 bytes"),
    (event(2, "<Data " + " ".join(f"a{nth}=''" for nth in range(500)) + "/>"), "more than 256 attributes"),
    (event(2, "<Data " + "a='' " * 1_000_000 + "/>"), "cannot be read"),
    (event(2, "<Data a='' a=''/>"), "attribute"),
    (event(2, "<Data a='&unknown;'/>"), "unknown"),
    (event(2, f"<Data>{'x' * 40_000}</Data>" * 2), "does not fit"),
    (event(2, "<Data>a\0b</Data>"), "zero"),
    (event(2, "<Data>&#0;</Data>"), "cannot be read"),
    (event(2, "<Data>&#x110000;</Data>"), "cannot be read"),
    (event(2, "<Data></Dat>"), "cannot be read"),
    (event(2)[:-20], "another event starts"),
    (f"<Event xmlns='{NAMESPACE}'></Event>", "System"),
    ("<Event>" * 100_000, "another event starts"),
    ("<Event><!--" * 100_000, "a comment in it does not end"),
    ("<Event><![CDATA[" * 100_000, "more than 1048576 bytes"),
    ("<Event><?" * 100_000, "cannot be read"),
    (event(2, "<Data>a<!-- b -- c -->d</Data>"), "`--` in it"),
    (event(2, "<Data>a & b; c</Data>"), "starts no reference"),
    (event(2, "<Data a='<'/>"), "does not end"),
    (f"<o:Event xmlns:o='urn:other'>{event(2)[7:]}".replace("</Event>", "</o:Event>"), "are not events"),
    ("<![CDATA[" + event(2) + "]]>", "are not events"),
    ("<!-- a -- " + event(2) + "-->", "are not events"),
    ("<!-- " * 100_000 + "-->", "does not end"),
    ("<!DOCTYPE a [<!-- " * 100_000, "does not end"),
    ("<!DOCTYPE a '" + "<!DOCTYPE b [<?" * 100_000, "does not end"),
    ('<Event "' * 100_000, "cannot be read"),
    ("<Evant><System/></Evant>", "are not events"),
    ("\0" * 3_000_000, "are not events"),
    ("Some text.", "are not events"),
    ("<!DOCTYPE lolz [<!ENTITY lol 'lol'>]>", "are not events"),
])
def test_hostile_events_are_rows(con, tmp_path, text, why):
    """The events around such an event are there, and a row with its offset."""
    path = tmp_path / "hostile.xml"
    before = ("<Events>" + event(1)).encode()
    path.write_bytes(before + text.encode() + event(3).encode() + b"</Events>")
    found = read(con, path)
    assert [row for row, error in found if not error or "may be text" in error] == [1, 3]
    errors = [error for _, error in found if error]
    assert 1 <= len(errors) <= 1002 and why in errors[0]
    assert errors[0].startswith(f"{path}: ") and offset_of(errors[0]) == len(before)


@pytest.mark.parametrize("piece", ["<", "< ", "</", "<!", "<a", "<<a", "<a b='", "<Event", "x<Event<"])
def test_runs_of_broken_tags_take_no_more_than_their_length(con, tmp_path, piece):
    def taken(count):
        path = tmp_path / f"{count}.xml"
        path.write_text(event(1) + piece * (count // len(piece)) + event(2))
        start = time.process_time()
        assert [row for row, error in read(con, path) if not error] == [1, 2]
        return time.process_time() - start

    # With the square of the length, 200,000 bytes take four times as long as 100,000, some ten seconds.
    assert taken(200_000) < 3 * taken(100_000) + 0.3


def test_an_unknown_entity_stays_a_reference(con, tmp_path):
    """Nothing is expanded: not even entities that the file declares. That it declares them is no damage."""
    bomb = '<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa">' + "".join(
        f'<!ENTITY {chr(98 + nth)} "{f"&{chr(97 + nth)};" * 10}">' for nth in range(9)) + "]>"
    path = tmp_path / "bomb.xml"
    path.write_text(bomb + "<Events>" + event(1, "<Data Name='x'>1&j;2</Data>") + "</Events>")
    found = read(con, path, "event_data, error")
    assert found == [({"x": "1&j;2"}, None)]


def test_bytes_that_are_not_utf8_are_replaced(con, tmp_path):
    path = tmp_path / "latin.xml"
    path.write_bytes(event(1, "<Data Name='x'>caf\xe9</Data>").encode("latin-1") + event(2).encode())
    found = read(con, path, "event_record_id, event_data['x'], error")
    assert [row[:2] for row in found if not row[2]] == [(1, "caf\ufffd"), (2, None)]
    assert [offset_of(row[2]) for row in found if row[2]] == [0]
    declared = '<?xml version="1.0" encoding="windows-1252"?>' + event(1, "<Data Name='x'>caf\xe9 \u20ac</Data>")
    path.write_bytes(declared.encode("cp1252"))
    assert read(con, path, "event_data['x'], error") == [("caf\xe9 \u20ac", None)]


@pytest.mark.parametrize("label, encoding, read_as", [
    ("utf-7", "utf-8", "UTF-8"), ("x-other", "utf-8", "UTF-8"), ("shift_jis", "shift_jis", "UTF-8"), ("iso-2022-jp", "iso-2022-jp", "UTF-8"), ("utf-8", "utf-8", None),
    ("us-ascii", "utf-8", None), ("utf-16", "utf-8", None), ("utf-16", "utf-16", None), ("x-other", "utf-16", None), ("windows-1252", "cp1252", None), ("koi8-r", "koi8-r", None)])
def test_an_encoding_that_is_not_that_of_the_text_is_told(con, tmp_path, label, encoding, read_as):
    path = tmp_path / "labelled.xml"
    text = f"<?xml version='1.0' encoding='{label}'?><Events>{event(1)}{event(2)}</Events>"
    path.write_bytes(text.encode(encoding))
    errors = [f'{path}: the declaration at byte 0 has the encoding "{label}", but the text is read as {read_as}'] if read_as else []
    assert read(con, path) == [*((None, error) for error in errors), (1, None), (2, None)]
    # A second declaration.
    again = f"<?xml version='1.0' encoding='windows-1250'?><Events>{event(3)}</Events>"
    path.write_bytes((text + again).encode(encoding))
    found = read(con, path)
    told = f'the declaration at byte {len(text.encode(encoding))} has the encoding "windows-1250", but the text is read as '
    assert [row for row, _ in found if row] == [1, 2, 3]
    assert any(error and told in error for _, error in found) == (encoding != "utf-16")
    assert sum(error is not None for _, error in found) == len(errors) + (encoding != "utf-16")


def test_offsets_are_those_of_the_file(con, tmp_path):
    path = tmp_path / "wide.xml"
    before = "<Events>" + event(1, "<Data>\u4e2d\U0001f600</Data>") + event(2, "<Data>\u00e9</Data>")
    for encoding in ("utf-8-sig", "utf-16", "utf-16-be"):
        path.write_bytes((before + event(3, "</Data>") + event(4)).encode(encoding))
        found = read(con, path)
        assert [row for row, error in found if not error] == [1, 2, 4]
        errors = [error for _, error in found if error]
        assert [offset_of(error) for error in errors] == [len(before.encode(encoding))], encoding


def test_times_without_an_offset_are_utc(con, tmp_path):
    texts = ["2015-12-22 02:23:19.165775", "2015-12-22 02:23:19.165775 UTC", "2015-12-22T02:23:19.165775", "2015-12-22T03:23:19.165775+01:00", "soon"]
    events = [event(1).replace("2024-03-05T08:00:00.0014567Z", text) for text in texts]
    (tmp_path / "times.xml").write_text("".join(events))
    times = [str(time) for time, in read(con, tmp_path / "times.xml", "time_created")]
    assert times == ["2015-12-22 02:23:19.165775"] * 4 + ["None"]


def test_record_ids(con, tmp_path):
    """The IDs of the events while they rise, and numbers from 1 on of exports that begin with the newest event."""
    path = tmp_path / "ids.xml"
    for ids, expected in [
        ([7, 9, 20], [7, 9, 20]),
        ([20, 9, 7], [1, 2, 3]),
        ([7, 9, 8, 30], [7, 9, 10, 30]),
        ([5], [5]),
        ([2**64 - 1, 3], [1, 3]),
    ]:
        path.write_text("".join(event(nth) for nth in ids))
        assert read(con, path, "record_id, event_record_id") == list(zip(expected, ids))


def test_where_exports_are(con, tmp_path):
    """Files, globs, folders, lists, compressed files and archives, as of read_evtx."""
    text = ("<Events>" + event(1) + event(2) + "</Events>").encode()
    (tmp_path / "deep").mkdir()
    (tmp_path / "a.xml").write_bytes(text)
    (tmp_path / "deep/B.XML").write_bytes(text)
    (tmp_path / "c.xml.gz").write_bytes(gzip.compress(text))
    (tmp_path / "d.xml.bz2").write_bytes(bz2.compress(text))
    write_zip(tmp_path / "e.zip", {"x/y.xml": tmp_path / "a.xml", "z.txt": tmp_path / "a.xml"})
    (tmp_path / "other.txt").write_bytes(text)
    files = ["a.xml", "c.xml.gz", "d.xml.bz2", "deep/B.XML", "e.zip/x/y.xml"]
    found = read(con, tmp_path, "DISTINCT filename")
    assert sorted(str(pathlib.Path(name).relative_to(tmp_path)) for name, in found) == sorted(files)
    assert con.execute(f"SELECT count(*), count(error) FROM read_evtx_xml({quoted(tmp_path)})").fetchone() == (10, 0)
    for path in ["*.xml", "other.txt", "e.zip", "e.zip/*/*.xml", "c.xml.gz"]:
        assert len(read(con, tmp_path / path)) == 2, path
    both = f"[{quoted(tmp_path / 'a.xml')}, {quoted(tmp_path / 'deep')}]"
    assert con.execute(f"SELECT count(*) FROM read_evtx_xml({both})").fetchone() == (4,)
    cut = gzip.compress(text + event(3).encode() * 2000)[:-300]
    (tmp_path / "c.xml.gz").write_bytes(cut)
    found = read(con, tmp_path / "c.xml.gz")
    assert [row for row, error in found if not error][:2] == [1, 2]
    assert any("cut short" in error for _, error in found if error)


def test_what_is_no_export(con, tmp_path):
    """A named file fails the query; one that a glob finds is a row."""
    for name, content, why in [
        ("empty", b"", "the file is empty"),
        ("text", b"no XML at all", "no events"),
        ("other", b"<catalog><book/></catalog>", "no events"),
        ("log", (SAMPLES / "DC01-System.evtx").read_bytes(), "no events"),
        ("spaces", b" " * 3_000_000, "no events"),
    ]:
        path = tmp_path / f"{name}.xml"
        path.write_bytes(content)
        with pytest.raises(duckdb.Error, match=why):
            read(con, path)
        found = read(con, tmp_path / f"{name}*")
        assert [row for row, _ in found] == [None] and why in found[0][1]
    for root in ("<Events/>", "<Events></Events>", DECLARATION + "<Events>\r\n</Events>"):
        path.write_text(root)
        assert read(con, path) == []


def test_damage_as_the_call_asks(con, tmp_path):
    path = tmp_path / "damaged.xml"
    path.write_text(event(1) + event(2, "</x>") + event(3))
    assert len(read(con, path)) == 3
    assert read(con, path, options=", on_error := 'skip'") == [(1, None), (3, None)]
    with pytest.raises(duckdb.Error, match=f"damaged.xml: the event at byte {len(event(1))} cannot be read"):
        read(con, path, options=", on_error := 'fail'")
    path.write_text(event(1) + event(2, "</x>") * 5000)
    errors = [error for _, error in read(con, path) if error]
    assert len(errors) == 1001 and errors[-1].endswith("4000 more places of the file are damaged")
    # A reason quotes what is wrong, but not a megabyte of it.
    path.write_text(event(1) + event(2, "</" + "\u00e9" * 500_000 + ">"), encoding="utf-8")
    [error] = [error for _, error in read(con, path) if error]
    assert "cannot be read" in error and error.endswith("\u00e9\u2026") and len(error) < 500


def test_fields_have_the_types_of_the_declarations(con, tmp_path):
    """With event_id, as in read_evtx: the declared events give the types that XML does not tell."""
    path = tmp_path / "export.xml"
    log = SAMPLES / "DC01-Security.evtx"
    path.write_bytes(LAYOUTS["event viewer"]([row["xml"] for row in rows(con, "read_evtx", log, "WHERE error IS NULL")]))
    sql = "SELECT * EXCLUDE (filename, message) FROM {}({}, event_id := [4624, 4625], provider := 'Microsoft-Windows-Security-Auditing')"
    expected = con.execute(sql.format("read_evtx", quoted(log)))
    types = [(column[0], str(column[1])) for column in expected.description]
    expected = expected.fetchall()
    found = con.execute(sql.format("read_evtx_xml", quoted(path)))
    assert [(column[0], str(column[1])) for column in found.description] == types
    assert found.fetchall() == expected and len(expected) > 10


def random_mixed(random, depth=0):
    """An element with text beside its elements, at random."""
    name = random.choice(["Data", "Data", "ComplexData", "Leaf", "Other"])
    attribute = random.choice(["", f" Name='N{random.randrange(3)}'"])
    parts = [random.choice(["", "", "\n ", "text", "<![CDATA[ <b> ]]>", "&#13; &lt;", "1"])]
    for _ in range(random.randrange(3) if depth < 3 else 0):
        parts += [random_mixed(random, depth + 1), random.choice(["", "", " ", "tail", "&amp;"])]
    return f"<{name}{attribute}>{''.join(parts)}</{name}>"


def values_of(element):
    """The values of an element of ElementTree that are not blank: their names and texts, in order."""
    def runs(element, name):
        texts = [element.text] + [child.tail for child in element]
        found, unnamed = [], 0
        for text, child in zip(texts, [*element, None]):
            if text and text.strip(" \t\r\n"):
                found.append((name, text))
            if child is None:
                continue
            own = child.tag.split("}")[1]
            given = child.get("Name") if own in ("Data", "ComplexData") else None
            if not given and own == "Data":
                unnamed += 1
                given = f"param{unnamed}"
            found += runs(child, given or own)
        return found
    return runs(element, element.tag.split("}")[1])


def test_text_beside_elements_is_a_value_of_its_element(con, tmp_path):
    """Each text is in event_data and in fields, with one name; read from XML, and from the log that is made of it."""
    random_, export, log = random.Random(71), tmp_path / "mixed.xml", tmp_path / "mixed.evtx"
    # Each twice: a record like the one before it is read in another way.
    events = [event(nth, data + random_mixed(random_) + random.choice(["", "tail"])) for nth in range(1, 401, 2) for data in [
        "".join(random.choice(["", "\n", "lead"]) + random_mixed(random_) for _ in range(random_.randrange(3)))]]
    events = [one.replace(f">{nth}</EventRecordID>", f">{nth + again}</EventRecordID>")
              for one, nth in zip(events, range(1, 401, 2)) for again in (0, 1)]
    export.write_text("".join(events))
    con.execute(f"COPY (SELECT record FROM read_evtx_xml({quoted(export)}, record := true)) TO {quoted(log)} (FORMAT evtx)")
    def data_of(text):
        return values_of(ElementTree.fromstring(text).find(f"{{{NAMESPACE}}}EventData"))

    # The crate indents the texts.
    crate = [[(name, text.strip()) for name, text in data_of(record["data"])] for record in evtx.PyEvtxParser(str(log)).records()]
    assert crate == [[(name, text.strip()) for name, text in data_of(one)] for one in events]
    count = 0
    for function, path in [("read_evtx_xml", export), ("read_evtx", log)]:
        found = con.execute(f"SELECT event_data, fields, insertions, text FROM {function}({quoted(path)}, fields := true, insertions := true, "
                            f"text := true)").fetchall()
        for (data, fields, insertions, text), xml in zip(found, events, strict=True):
            expected = data_of(xml)
            blank = lambda value: not (value or "").strip(" \t\r\n")
            # Attributes are in fields only, and blank values of leaves have a name, too.
            own = [(item["name"], item["value"]) for item in fields if not blank(item["value"]) and not item["name"].endswith(".Name")]
            own = own[[name for name, _ in own].index("Computer") + 1:]
            assert own == expected, xml
            # Siblings are numbered, and here all unnamed values of the event.
            base = lambda name: re.sub(r"^param\d+", "param", re.sub(r"(?<!param)_\d+$", "", name))
            in_map = [(base(name), value) for name, value in (data or {}).items() if not blank(value)]
            assert in_map == [(base(name), value) for name, value in expected], xml
            assert [value for value in insertions if not blank(value)] == [value for _, value in expected], xml
            assert all(value in text for _, value in expected)
            count += len(expected)
    assert count > 1000


def test_text_beside_elements_has_a_column(con, tmp_path):
    path = tmp_path / "mixed.xml"
    path.write_text(event(4, "hello<Data Name='a'>x<b>y</b>z</Data>tail<Leaf Name='n'>v</Leaf>"))
    data = {"EventData": "hello", "a": "x", "b": "y", "a_1": "z", "EventData_1": "tail", "Leaf": "v"}
    found = con.execute(f"SELECT EventData, a, b, a_1, EventData_1, Leaf, event_data FROM read_evtx_xml({quoted(path)}, event_id := 4)").fetchall()
    assert found == [(*data.values(), data)]
    con.execute(f"CREATE TABLE mixed AS FROM read_evtx_xml({quoted(path)}, fields := true, text := true)")
    for name, value in data.items():
        found = con.execute(f"SELECT field FROM evtx_search_of('mixed', '{value}') WHERE value = '{value}'").fetchall()
        assert found == [(name.removesuffix("_1"),)]


KINDS = {"UTINYINT": 8, "USMALLINT": 16, "UINTEGER": 32, "UBIGINT": 64, "TIMESTAMP_NS": "time", "UUID": "guid", "VARCHAR": "text"}
# The columns of System: the element and the attribute of each, and the kind of value.
SYSTEM = {name: ((*path[len("System/"):].split("/@"), None)[:2], KINDS[kind]) for name, kind, path in DOCUMENTED if path.startswith("System/")}
PARTS = {("Execution", "ProcessorID"): "text"} | dict(SYSTEM.values())
PART_COLUMNS = {part: name for name, (part, _) in SYSTEM.items()}
TEXTS = ["", " ", "0", "7", " 7 ", "255", "256", "65535", "65536", "4294967295", "4294967296", "18446744073709551615", "18446744073709551616", "-1",
         "+7", "4624.5", "7.0", "0x10", "0X1F", "0x", "0x1ffffffffffffffff", "x", "garbage", "infinity", "epoch", "2024-03-05T08:00:00Z",
         "2024-03-05T08:00:00.1234567+01:00", "2024-03-05 08:00:00", "1601-01-01T00:00:00Z", "2300-01-01T00:00:00Z", "99999-01-01T00:00:00Z", "2024-13-01T00:00:00Z",
         "{fc65ddd8-d6ef-4962-83d5-6e5cfe9ce148}", "fc65ddd8-d6ef-4962-83d5-6e5cfe9ce148", "{fc65ddd8}", "y" * 500, "\u0663"]


def is_part(kind, text):
    """Whether the text of a part of System is a value of its type, or none."""
    text = text.strip(" ")
    if kind == "text" or not text:
        return True
    if kind == "guid":
        return re.fullmatch(r"(\{)?[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}(?(1)\})", text) is not None
    if kind == "time":
        return re.fullmatch(r"(2024|1601)-0[13]-0[15][T ]0[08]:00:00.*", text) is not None
    number = re.fullmatch("([0-9]+)|0[xX]([0-9a-fA-F]+)", text)
    return number is not None and (int(number[1]) if number[1] else int(number[2], 16)) < 2**kind


def test_parts_of_system_without_a_value_of_their_type(con, tmp_path):
    """The error names each part whose column is NULL, and its text; ElementTree says which text that is."""
    random_, path = random.Random(72), tmp_path / "parts.xml"
    cases = [{part: text} for part in PARTS for text in TEXTS]
    cases += [{part: random_.choice(TEXTS) for part in random_.sample(sorted(PARTS, key=str), 4)} for _ in range(400)]
    events = []
    for nth, changes in enumerate(cases, 1):
        values = {part: "7" for part in PARTS} | {("TimeCreated", "SystemTime"): "2024-03-05T08:00:00Z", ("EventRecordID", None): str(nth)}
        values |= {part: "{fc65ddd8-d6ef-4962-83d5-6e5cfe9ce148}" for part, kind in PARTS.items() if kind == "guid"} | changes
        parts = []
        for name in dict.fromkeys(name for name, _ in PARTS):
            attributes = "".join(f" {attribute}={quoteattr(text)}" for (own, attribute), text in values.items() if own == name and attribute)
            inner = escape(values.get((name, None), ""))
            if inner and random_.random() < 0.2:
                at = random_.randrange(len(inner))
                inner = inner[:at] + random_.choice(["<!-- 1 -->", f"<![CDATA[{inner[at]}]]>", f"&#{ord(inner[at])};"]) + inner[at + 1:]
            parts.append(f"<{name}{attributes}>{inner}</{name}>")
        system = "".join(random_.sample(parts, len(parts)))
        other = random_.choice(["", "<x:EventID xmlns:x='urn:x'>x</x:EventID>", "<EventID xmlns='urn:x'>x</EventID>"])
        # The same names elsewhere are fields.
        events.append(f"<Event xmlns='{NAMESPACE}'><System>{system}{other}</System><UserData><EventID>x</EventID></UserData></Event>")
    path.write_text("<Events>" + "".join(events) + "</Events>", encoding="utf-8")
    columns = ", ".join(PART_COLUMNS.values())
    found = con.execute(f"SELECT {columns}, error FROM read_evtx_xml({quoted(path)})").fetchall()
    told, offset = 0, len("<Events>")
    for text, changes, row in zip(events, cases, found, strict=True):
        system, misfits = ElementTree.fromstring(text)[0], []
        for (name, attribute), kind in PARTS.items():
            element = system.find(f"{{{NAMESPACE}}}{name}")
            value = (element.get(attribute) if attribute else element.text) or ""
            if not is_part(kind, value):
                value = value.strip(" ")
                misfits.append(f"{name}{' ' * bool(attribute)}{attribute or ''} '{value[:60]}{'…' * (len(value) > 60)}'")
                assert row[[*PART_COLUMNS].index((name, attribute))] is None
            elif value.strip(" ") and (name, attribute) in PART_COLUMNS and not value.startswith("1601"):
                assert row[[*PART_COLUMNS].index((name, attribute))] is not None, (text, name, attribute)
        assert (row[-1] is not None) == bool(misfits), (changes, row[-1])
        if misfits:
            told += 1
            # After a thousand, the error says only that.
            shown = re.fullmatch(r".*\.xml: cannot read (.*) of the event at byte (\d+)", row[-1], re.DOTALL)
            assert shown is None and told > 1000 or sorted(shown[1].split(", ")) == sorted(misfits) and int(shown[2]) == offset, (row[-1], misfits)
        offset += len(text.encode())
    assert told > 500


def test_parts_of_system_that_occur_twice(con, tmp_path):
    path = tmp_path / "twice.xml"
    first, second = event(1), event(2).replace("<Channel>", "<EventID>9</EventID><Channel>Other</Channel><Channel>")
    path.write_text(first + second)
    [sound, twice] = read(con, path, "event_id, channel, error")
    assert sound == (1, "Application", None)
    assert twice == (2, "Other", f"{path}: cannot read the second EventID, the second Channel of the event at byte {len(first)}")


@pytest.mark.parametrize(("change", "what"), [
    (("</System>", "{inner}</System>"), "the event in System"), (("<EventID>", "{inner}<EventID>"), "the event in System"),
    (("</Event>", "{inner}</Event>"), "the event in Event"), (("</Event>", "{inner}{inner}<a/></Event>"), "the event in Event"),
    (("</Event>", "<RenderingInfo>{inner}</RenderingInfo></Event>"), "the event in RenderingInfo"),
    (("</Event>", "<x:UserData xmlns:x='urn:x'>{inner}</x:UserData></Event>"), "the event in other:UserData"),
    (("<EventID>2", "<EventID>2{inner}"), "the element Event in EventID, the event in System"),
    (("</Event>", "<UserData>{inner}</UserData></Event>"), None), (("</EventData>", "<a>{inner}</a></EventData>"), None),
])  # fmt: skip
def test_an_event_in_another_one_does_not_vanish(con, tmp_path, change, what):
    """It is in the data of that one, or in its error."""
    path, inner = tmp_path / "inner.xml", event(9)
    old, new = change
    text = event(2)
    before, after = text.rsplit(old, 1)
    path.write_text(event(1) + before + new.format(inner=inner) + after + event(3))
    [first, outer, last] = read(con, path, "event_record_id, channel, error, user_data || event_data")
    assert [first[:3], last[:3]] == [(1, "Application", None), (3, "Application", None)]
    assert outer[:3] == (2, "Application", what and f"{path}: cannot read {what} of the event at byte {len(event(1))}")


@pytest.mark.parametrize("text", ["4624<x>9</x>", "<x>9</x>", "4<x/>624", "4624<x>9</x>1", "<x>a<y>9</y></x>"])
def test_elements_in_a_part_of_system(con, tmp_path, text):
    """Their text is not that of the part, in any column."""
    path = tmp_path / "mixed.xml"
    path.write_text("".join(event(nth).replace("<EventID>1<", f"<EventID>{text}<").replace(">1</EventRecordID>", f">{text}</EventRecordID>") for nth in (1, 2)))
    [mixed, sound] = read(con, path, "event_record_id, event_id, error")
    assert mixed == (None, None, f"{path}: cannot read the element x in EventID, the element x in EventRecordID of the event at byte 0")
    assert sound == (2, 2, None)


@pytest.mark.parametrize(("nanos", "is_time"), [
    ("2262-04-11T23:47:16.854775807", False), ("1677-09-21T00:12:43.145224193", False), ("2262-04-11T23:47:16.854775806", True), ("1677-09-21T00:12:43.145224194", True)])
def test_times_that_are_infinite_in_duckdb(con, tmp_path, nanos, is_time):
    path = tmp_path / "times.xml"
    path.write_text(re.sub("SystemTime=(.)[^'\"]*", rf"SystemTime=\g<1>{nanos}Z", event(1)))
    [(time_created, error)] = read(con, path, "time_created::VARCHAR, error")
    assert time_created == (nanos.replace("T", " ") if is_time else None)
    assert error == (None if is_time else f"{path}: cannot read TimeCreated SystemTime '{nanos}Z' of the event at byte 0")


def test_times_at_the_edges_are_those_of_a_log(con, tmp_path):
    """An export has the same times as a log whose records have them as texts, and both show the texts as they are."""
    random_, export, log = random.Random(70), tmp_path / "edges.xml", tmp_path / "edges.evtx"
    edges = ["2262-04-11T23:47:16.8547758{:02}", "1677-09-21T00:12:43.1452241{:02}", "00{:02}-01-01T00:00:00", "308{:02}-01-01T00:00:00",
             "1601-01-01T00:00:00.0000000{:02}", "9999-12-31T23:59:59.99999{:02}", "-0000{:02}-01-01T00:00:00", "+0100{:02}-01-01T00:00:00"]
    texts = [edge.format(nth) + random_.choice(["Z", "", " UTC", "+00:00", "-00:01"]) for edge in edges for nth in range(100)]
    export.write_text("".join(
        re.sub("SystemTime=(.)[^'\"]*", rf"SystemTime=\g<1>{text}", event(nth, f"<Data Name='t'>{text}</Data>"))
        for nth, text in enumerate(texts, 1)))
    crowds.write(log, ((text, "Some", 1, "Application", "PC", crowds.account(1), {"t": text}) for text in texts))
    sql = r"""SELECT event_record_id, time_created::VARCHAR, isfinite(time_created::TIMESTAMP), event_data['t'],
        regexp_extract(xml, 'SystemTime=.([^''"]*)', 1) FROM {}({}, xml := true)"""
    found = con.execute(sql.format("read_evtx_xml", quoted(export))).fetchall()
    assert found == con.execute(sql.format("read_evtx", quoted(log))).fetchall()
    assert [row[3:] for row in found] == [(text, text) for text in texts]
    assert {row[2] for row in found} == {None, True}


def test_many_events_with_such_parts(con, tmp_path):
    """A thousand errors name the part. The others are there, and take no memory for each. The events between them are sound."""
    path = tmp_path / "many.xml"
    path.write_text("".join(event(nth).replace("<EventID>", "<Level>x</Level><EventID>" if nth % 3 else "<EventID>") for nth in range(1, 6001)))
    found = read(con, path)
    assert [error is None for _, error in found] == [nth % 3 == 0 for nth in range(1, 6001)]
    named = [error for _, error in found if error and "Level 'x'" in error]
    assert len(named) == 1000 and {error for _, error in found if error} - {*named} == {
        f"{path}: cannot read a part of the event, as in 1000 events before it"}


def test_such_parts_in_doubted_events(con, tmp_path):
    path = tmp_path / "doubted.xml"
    events = [event(nth).replace("<EventID>", "<Level>x</Level><EventID>" if nth == 3 else "<EventID>") for nth in range(1, 6)]
    path.write_text(events[0] + "<!--" + "".join(events[1:]))
    found = [error and error.removeprefix(f"{path}: ") for number, error in read(con, path) if number]
    doubt = f"the event may be text: the comment before it, at byte {len(events[0])}, does not end"
    third = len(events[0]) + 4 + len(events[1])
    assert found == [None, doubt, f"cannot read Level 'x' of the event at byte {third}; {doubt}", doubt, doubt]


def test_an_export_becomes_a_log(con, tmp_path):
    """The column record writes the events to a log."""
    export, log = tmp_path / "export.xml", tmp_path / "copy.evtx"
    export.write_text("".join(event(nth) for nth in range(1, 2000)))
    con.execute(f"COPY (SELECT record FROM read_evtx_xml({quoted(export)}, record := true)) TO {quoted(log)} (FORMAT evtx)")
    sql = "SELECT event_record_id, time_created, event_data FROM {}({})"
    assert con.execute(sql.format("read_evtx", quoted(log))).fetchall() == con.execute(sql.format("read_evtx_xml", quoted(export))).fetchall()
    assert sum(1 for _ in evtx.PyEvtxParser(str(log)).records()) == 1999


def test_a_query_on_a_large_export_can_be_interrupted(con, tmp_path):
    path = tmp_path / "large.xml"
    for events in (event(1) * 100_000, "<Event>" * 3_000_000):
        path.write_text("<Events>" + events + "</Events>")
        with interrupted(con, after=0.3):
            con.execute(f"SELECT max(time_created) FROM read_evtx_xml([{', '.join([quoted(path)] * 20)}])").fetchall()
