"""Judges evtx_from_evtx_dump: the JSON of the `evtx` crate gives the events that read_evtx reads, in all columns.

Two versions of the crate: the Python package, which writes JSON as evtx_dump did before 0.15, and the one that `json` is from.
EVTX_CORPUS names a folder with more logs. The exports of the other tools are judged by test/sql/exports.test, by hand-made lines.
"""

import collections
import os
import pathlib
import re

import evtx
import pytest
from client import quoted
from conftest import SAMPLES, loaded

FOLDERS = [SAMPLES, *(os.environ[name] for name in ("EVTX_CORPUS", "EVTX_VARIED") if os.environ.get(name))]
LOGS = [log for folder in FOLDERS for log in sorted(pathlib.Path(folder).rglob("*.evtx"))]
# `oddities.evtx` has elements that no log of Windows has.
LOGS = [log for log in LOGS if log.name != "oddities.evtx"]


def before_0_15(_, log):
    """The events of a log, a line of JSON for each."""
    records = evtx.PyEvtxParser(str(log)).records_json()
    while True:
        try:
            record = next(records, None)
        except RuntimeError:
            continue
        if record is None:
            return
        yield record["data"].replace("\n", "")


def since_0_15(con, log):
    """The same, as newer versions write them."""
    for (text,) in con.execute(f"SELECT json FROM read_evtx({quoted(log)}, json := true) WHERE json IS NOT NULL").fetchall():
        yield text.replace("\n", "")


def reason(column, ours, theirs, is_old):
    """Why a value differs; None if nothing is known."""
    if column == "record_id":
        return "the ID of the event"
    if column == "channel" and (ours, theirs) == ("", None):
        return "empty element"
    if column == "message" and theirs is None:
        return "saved messages"
    if column == "error" and theirs is None:
        return "damage after the event"
    if column == "event_data" and (ours, theirs) == (None, {}):
        return "neither EventData nor UserData"
    if column == "event_data" and ours is not None and theirs is not None:
        names = [name for name in {*ours, *theirs} if ours.get(name) != theirs.get(name)]
        reasons = {value_reason(ours.get(name), theirs.get(name), is_old) for name in names}
        # The order counts, too.
        return reasons if reasons and None not in reasons else None
    if is_old and column == "time_created" and ours // 1000 == theirs // 1000:
        return "microseconds"
    if is_old and column == "user_data" and braceless(ours) == braceless(theirs):
        return "GUIDs"
    return None


def value_reason(ours, theirs, is_old):
    if ours is None and theirs == "":
        return "empty value" if is_old else None
    if is_old and re.fullmatch(r"\d{4}-.*\dZ", ours or "") and ours[:-2] == theirs[:-1]:
        return "microseconds"
    if theirs is None:
        return "ProcessingErrorData"
    return None


def braceless(text):
    return re.sub(r"\{([0-9a-f-]{36})\}", r"\1", text.lower())


def rows(con, query):
    """By event_record_id, in no order."""
    cursor = con.execute(f"SELECT * EXCLUDE (filename) REPLACE (epoch_ns(time_created) AS time_created) FROM {query}")
    columns, found = [column[0] for column in cursor.description], collections.defaultdict(list)
    for row in cursor.fetchall():
        record = dict(zip(columns, row))
        found[record["event_record_id"]].append(record)
    return found


@pytest.mark.parametrize(("lines", "of_samples"), [(before_0_15, 290), (since_0_15, 102)])
def test_the_crate_gives_the_same_events(tmp_path, lines, of_samples):
    is_old, reasons, compared = lines is before_0_15, collections.Counter(), 0
    with loaded() as con:
        # Each of the two forms for half of the logs.
        for log in LOGS[is_old::2]:
            export = tmp_path / "export.jsonl"
            try:
                export.write_text("".join(line + "\n" for line in lines(con, log)), encoding="utf-8")
            except OSError:
                continue  # The crate does not open the log.
            ours = rows(con, f"read_evtx({quoted(log)})")
            for record_id, theirs in rows(con, f"evtx_from_evtx_dump({quoted(export)})").items():
                for event in theirs:
                    # Several records can have one ID.
                    mine = min(ours[record_id], key=lambda record: sum(record[column] != event[column] for column in event))
                    compared += 1
                    for column, value in event.items():
                        if value != mine[column] or isinstance(value, dict) and [*value] != [*mine[column]]:
                            why = reason(column, mine[column], value, is_old)
                            assert why, (log.name, record_id, column, mine[column], value)
                            reasons[str(why)] += 1
    assert compared > 300 if len(FOLDERS) > 1 else compared == of_samples, compared
    assert set(reasons) >= {"the ID of the event", "saved messages"}


def test_bad_lines_are_rows(con, tmp_path):
    """Invalid JSON, invalid UTF-8, and what is not an event do not hide the other lines, nor stop the query."""
    good = '{"Event":{"System":{"EventID":{"#attributes":{"Qualifiers":7},"#text":42},"EventRecordID":"9"},"EventData":{"A":1,"A":"b"}}}'
    bad = [b"not JSON", b'{"Event":{"System":{"EventID":1}', b'{"Event":{"System":{"Channel":"\xff"}}}', b"[]", b"7", b'{"Event":5}', b'{"event":{}}']
    export = tmp_path / "export.jsonl"
    export.write_bytes(b"\n".join([good.encode(), *bad, b"", good.encode()]))
    found = con.execute(f"SELECT event_id, qualifiers, record_id, event_data, error FROM evtx_from_evtx_dump({quoted(export)})").fetchall()
    assert [row for row in found if row[-1] is None] == [(42, 7, 9, {"A": "1", "A_1": "b"}, None)] * 2
    errors = [row for row in found if row[-1] is not None]
    assert errors == [(None, None, None, None, f"{export}: cannot read a line")] * len(bad)
