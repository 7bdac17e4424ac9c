"""Events with several EventData or UserData. The judge reads the column xml with ElementTree, and evaluates rules over what it finds."""

import collections
import random
import xml.etree.ElementTree

import evtx_arrow
import pyarrow
import pytest
from test_sigma import rule, write
from test_sigma_of import log_of

WITH_FIELDS = ["EventData", "EventData", "EventData", "ProcessingErrorData", "DebugData"]
NAMES, LEAVES, VALUES = ["A", "B", "B", "c d", None], ["U1", "U2"], ["one", "two", "three", "two words", ""]


def draw(rng):
    """The elements of an event, as XML."""
    for _ in range(rng.randint(1, 4)):
        values = [rng.choice(VALUES) for _ in range(rng.randint(0, 4))]
        if rng.random() < 0.3:
            leaves = "".join(f"<{name}>{value}</{name}>" for value in values for name in [rng.choice(LEAVES)])
            attribute = rng.choice(["", f" of='{rng.choice(VALUES)}'"])
            yield f"<UserData{attribute}><Inner{attribute}>{leaves}</Inner></UserData>"
        else:
            name = rng.choice(WITH_FIELDS)
            leaves = "".join(f"<Data>{value}</Data>" if name is None else f"<Data Name='{name}'>{value}</Data>" for value in values for name in [rng.choice(NAMES)])
            yield f"<{name}>{leaves}</{name}>"


def event(number, elements):
    return f"""<Event xmlns='http://schemas.microsoft.com/win/2004/08/events/event'><System><Provider Name='Any'/><EventID Qualifiers='1'>7</EventID>
        <Level>4</Level><TimeCreated SystemTime='2024-03-05T00:00:00Z'/><EventRecordID>{number}</EventRecordID><Channel>Any</Channel>
        <Computer>pc</Computer></System>{''.join(elements)}</Event>"""


def tag(element):
    return element.tag.split("}")[-1]


def leaves_of(text):
    """The fields of an event: whether each is in UserData, its name in rules and its value."""
    for child in list(xml.etree.ElementTree.fromstring(text.split("\n", 1)[1]))[1:]:
        in_user_data = tag(child) == "UserData"
        yield from (("attribute", f"UserData.{name}", value) for name, value in child.items())
        for leaf in child.iter():
            if in_user_data and leaf is not child:
                yield from (("root", f"{tag(leaf)}.{name}", value) for name, value in leaf.items())
            if not len(leaf) and leaf is not child:
                name = leaf.get("Name", "") if tag(leaf) == "Data" else tag(leaf)
                yield in_user_data, name, leaf.text or ""


def mapped(leaves):
    """The names of columns and keys, and the names without numbers."""
    taken, unnamed = collections.Counter(), 0
    for name, value in leaves:
        if not name:
            unnamed += 1
            name = f"param{unnamed}"
        taken[name] += 1
        yield (name if taken[name] == 1 else f"{name}_{taken[name] - 1}"), name, value


@pytest.fixture(name="log", scope="module")
def fixture_log(tmp_path_factory):
    return tmp_path_factory.mktemp("several")


@pytest.fixture(name="events")
def fixture_events(con, log):
    rng = random.Random(70)
    path = log_of(con, log, [event(number, draw(rng)) for number in range(1, 301)])
    rows = con.execute("FROM (SELECT record_id, xml, event_data, user_data, fields, error FROM read_evtx($1, xml := true, fields := true)) ORDER BY record_id", [path]).fetchall()
    assert len(rows) == 300 and not any(error for *_, error in rows)
    return path, rows


def test_the_map_the_columns_and_the_list_have_every_field(con, events):
    path, rows = events
    columns = con.execute("FROM read_evtx($1, event_id := 7) ORDER BY record_id", [path])
    names = [name for name, *_ in columns.description]
    columns = [dict(zip(names, row, strict=True)) for row in columns.fetchall()]
    several = 0
    for (_, text, event_data, user_data, fields, _), row in zip(rows, columns, strict=True):
        leaves = list(leaves_of(text))
        of_data = list(mapped([leaf[1:] for leaf in leaves if leaf[0] is False]))
        of_user = list(mapped([leaf[1:] for leaf in leaves if leaf[0] in (True, "root")]))
        several += len(of_data) > len({name for _, name, _ in of_data})
        assert (event_data or {}) == {key: value for key, _, value in of_data}
        assert row["event_data"] == event_data and row["user_data"] == user_data
        assert {name: row[name] or "" for name, _, _ in of_data + of_user} == {name: value for name, _, value in of_data + of_user}
        absent = [name for name, value in row.items() if value is not None and name.startswith(("A", "B", "c d", "U", "Inner", "param"))]
        assert set(absent) <= {name for name, _, _ in of_data + of_user}
        # The list has the fields in the order of the event, without those that are empty.
        without_numbers = iter([name for _, name, _ in of_data])
        shown = [(next(without_numbers) if place is False else name, value) for place, name, value in leaves]
        shown = [pair for pair in shown if pair[1]]
        assert [(field["name"], field["value"]) for field in fields][-len(shown) or len(fields) :] == shown
    assert several > 50


def test_rules_over_logs_and_tables_see_every_field(con, events, log):
    path, rows = events
    con.execute("CREATE OR REPLACE TABLE events AS FROM read_evtx($1)", [path])
    names = ["A", "B", "cd", "Data", "U1", "U2", "Inner.of"]
    detections = {f"{name}={value}": {name: value} for name in names for value in VALUES if value}
    detections |= {f"{name}|exists": {f"{name}|exists": True} for name in names}
    detections |= {f"word {value}": [value] for value in VALUES if value}
    detections |= {f"{name} all {one} {other}": {f"{name}|all": [one, other]} for name in ["A", "B", "U1"] for one in VALUES[:3] for other in VALUES[:3]}
    (log / "rules").mkdir(exist_ok=True)
    texts = {f"r{at}": rule(title, {"a": detection, "condition": "a"}) for at, (title, detection) in enumerate(detections.items())}
    rules = write(log / "rules", **texts)
    expected = set()
    for number, text, *_ in rows:
        leaves = [(name.replace(" ", "") or "Data", value) for _, name, value in leaves_of(text)]
        there = {f"{name}={value}" for name, value in leaves}
        there |= {f"word {value}" for value in VALUES if value and any(value in leaf for _, leaf in leaves)}
        there |= {f"{name}|exists" for name, _ in leaves}
        for name in ["A", "B", "U1"]:
            of_name = {value for known, value in leaves if known == name}
            there |= {f"{name} all {one} {other}" for one in of_name for other in of_name}
        expected |= {(number, title) for title in there & detections.keys()}
    assert len(expected) > 1000
    for source in [f"evtx_sigma('{path}', rules := $1)", "evtx_sigma_of('events', $1)"]:
        found = con.execute(f"SELECT record_id, rule_title FROM {source}", [rules]).fetchall()
        assert len(found) == len(set(found)) and set(found) ^ expected == set(), source
    matches = pyarrow.table(evtx_arrow.sigma(con.sql("FROM events").to_arrow_table(), rules))
    found = set(zip(matches["record_id"].to_pylist(), matches["rule_title"].to_pylist(), strict=True))
    assert found == expected
