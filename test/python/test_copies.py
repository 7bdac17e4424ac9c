"""Judges logs that COPY wrote: other readers find the same records in them as in the originals, and Sigma finds the same.

EVTX_CORPUS and the like name folders with real logs, and `EVTX_COPIES=600` asks for so many logs of them, in place of a few.
"""

import collections
import itertools
import os
import pathlib
import random

import evtx
import Evtx.Evtx
import pyevtx
import pytest
from client import quoted
from conftest import ROOT, SAMPLES

FOLDERS = [SAMPLES, *(os.environ[name] for name in ("EVTX_CORPUS", "EVTX_VARIED", "EVTX_COLLECTIONS") if os.environ.get(name))]
LOGS = [log for folder in FOLDERS for log in sorted(pathlib.Path(folder).rglob("*.[eE][vV][tT][xX]"))]
SLOW_RECORDS = 20


def some_logs():
    count = int(os.environ.get("EVTX_COPIES", "20"))
    return sorted(random.Random(37).sample(LOGS, min(count, len(LOGS))))


def by_rust(path):
    """The ID and the XML of each record, as the crate `evtx` reads them. Records that it cannot read have no ID."""
    records = evtx.PyEvtxParser(str(path)).records()
    while True:
        try:
            record = next(records, None)
        except RuntimeError as error:
            yield None, str(error)
            continue
        if record is None:
            return
        yield record["event_record_id"], record["data"]


def by_libevtx(path):
    """The same, as libevtx reads them."""
    file = pyevtx.open(str(path))
    for index in range(file.number_of_records):
        try:
            record = file.get_record(index)
            yield record.identifier, record.xml_string
        except OSError as error:
            yield None, str(error)


def by_python(path):
    """The same, as python-evtx reads them. Only the first records: it reads some 100 in a second."""
    with Evtx.Evtx.Evtx(str(path)) as file:
        for record in itertools.islice((record for chunk in file.chunks() for record in chunk.records()), SLOW_RECORDS):
            try:
                yield record.record_num(), record.xml()
            except Exception as error:
                yield None, str(error)


JUDGES = {"evtx": by_rust, "libevtx": by_libevtx, "python-evtx": by_python}


@pytest.mark.parametrize("log", some_logs(), ids=lambda log: log.name)
def test_other_readers_find_the_same_records(con, tmp_path, log):
    copy = tmp_path / "copy.evtx"
    sound = f"read_evtx({quoted(log)}, record := true, on_error := 'skip') WHERE record IS NOT NULL"
    ids = [row for row, in con.execute(f"SELECT record_id FROM {sound}").fetchall()]
    con.execute(f"COPY (SELECT record FROM {sound}) TO {quoted(copy)} (FORMAT evtx)")
    assert con.execute(f"SELECT count(*), count(error) FROM read_evtx({quoted(copy)}, verify := true)").fetchone() == (len(ids), 0)
    for name, judge in JUDGES.items():
        of_copy = list(judge(copy))
        assert len(of_copy) == (len(ids) if name != "python-evtx" else min(len(ids), SLOW_RECORDS)), name
        originals = collections.defaultdict(list)
        try:
            for record, text in judge(log):
                originals[record].append(text)
        except Exception as error:  # It does not read the file: its header is stale or damaged.
            print(f"{name}: {log}: {error!r}")
            continue
        for place, (record, text) in enumerate(of_copy):
            of_original = originals.get(ids[place], [])
            if record is None:
                # What it cannot read of the copy, it cannot read of the original, or does not list.
                assert not of_original, (name, place, text)
                continue
            assert record == place + 1, name
            # It may list only one of two records with an ID.
            assert text in of_original or len(of_original) < ids.count(ids[place]), (name, place)


def test_sigma_finds_the_same_in_a_copy(con, tmp_path):
    rules = os.environ.get("EVTX_SIGMA", ROOT / "samples/rules")
    logs = [str(log) for log in some_logs()]
    sound = "read_evtx($logs, record := true, on_error := 'skip') WHERE record IS NOT NULL"
    con.execute(f"COPY (SELECT record FROM {sound}) TO {quoted(tmp_path / 'copy.evtx')} (FORMAT evtx)", {"logs": logs})

    def found(files):
        matches = con.execute("SELECT rule_id, rule_title, matched::VARCHAR FROM evtx_sigma($files, rules := $rules, on_error := 'skip') WHERE correlation IS NULL",
                              {"files": files, "rules": str(rules)}).fetchall()
        return collections.Counter(matches)

    of_originals = found(logs)
    assert of_originals and found(str(tmp_path / "copy.evtx")) == of_originals
