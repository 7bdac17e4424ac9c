"""tools/compare_parsers.py: values that differ are reported, and spellings of the same value are not. Needs none of the parsers."""

import sys

from conftest import ROOT

sys.path.insert(0, str(ROOT / "tools"))

import compare_parsers  # noqa: E402

XML = """<Event xmlns="http://example.org">
  <System><Provider Name="P" Guid="{0000000A-0000-0000-0000-000000000000}"/><EventID>7</EventID><TimeCreated SystemTime="{time}"/></System>
  <EventData><Data Name="User">a&amp;b\r\n\x01</Data><Data>one</Data><Data/><Data>three</Data><Data Name="Data">named</Data><More id="5"><s:x>  </s:x></More></EventData>
</Event>"""


def read(time="2024-03-05T09:00:00.123456700Z"):
    return compare_parsers.from_xml(XML.replace("{time}", time))


def differing(parser, ours, theirs):
    found = compare_parsers.differences(parser, "a.evtx", 1, ours, theirs, False)
    return [(difference.field, difference.ours, difference.theirs) for difference in found]


def test_values_have_the_names_of_our_columns():
    assert read() == {
        "provider": ["P"],
        "provider_guid": ["{0000000A-0000-0000-0000-000000000000}"],
        "event_id": ["7"],
        "time_created": ["2024-03-05T09:00:00.123456700Z"],
        "User": ["a&b\r\n\x01"],
        "param1": ["one"],
        "param3": ["three"],
        "Data": ["named"],
        "More.id": ["5"],
        "s:x": ["  "],
    }


def test_a_changed_value_is_a_difference_and_another_spelling_is_not():
    theirs = read()
    ours = {**theirs, "provider_guid": ["0000000a-0000-0000-0000-000000000000"]}
    ours["time_created"] = ["2024-03-05 09:00:00.1234567"]
    assert differing("libevtx", ours, theirs) == []
    assert differing("libevtx", {**ours, "event_id": ["8"]}, theirs) == [("event_id", ["8"], ["7"])]
    assert differing("libevtx", {**ours, "param1": ["one", "two"]}, theirs) == [("param1", ["one", "two"], ["one"])]
    assert differing("libevtx", ours, {**theirs, "param2": ["x"]}) == [("param2", [], ["x"])]
    assert [field for field, *_ in differing("python-evtx", ours, read("2024-03-05 09:00:00.123556+00:00"))] == ["time_created"]


def test_a_record_that_only_one_reader_has_is_a_difference():
    read_of = compare_parsers.READ
    assert differing("libevtx", read(), compare_parsers.MISSING) == [("record", [read_of], [compare_parsers.MISSING])]
    assert differing("libevtx", "chunk 0: damaged", read()) == [("record", ["chunk 0: damaged"], [read_of])]
    assert differing("libevtx", "chunk 0: damaged", OSError("unable to read")) == []
