"""Damaged logs: every unchanged record is still read, in every way to read it."""

import pathlib

import pytest
from client import promised
from conftest import EXTENSION, SAMPLES
from damage import KINDS
from judge import CHECKS, INTERRUPT, MAX_TIME, Cases, Judge
from structures import CHUNK, Chunk, slots

SEED, CASES = 20240305, 300


def test_damage_costs_only_what_it_touches(tmp_path):
    cases, judge = Cases(EXTENSION, sorted(SAMPLES.glob("*.evtx")), tmp_path), Judge(EXTENSION, tmp_path)
    found = list(judge.findings_of(cases, range(SEED, SEED + CASES)))
    counts = judge.counts
    print(f"{CASES} cases: {counts['records judged']} of {counts['records']} records judged, {len(found)} findings")
    print(f"`tools/campaign.py EXTENSION 0 --seed N` makes a case smaller. At worst: {dict(judge.worst)}")
    promised(judge.worst["query, ms"] / 1000, MAX_TIME)
    promised(judge.worst["interrupt, ms"] / 1000, INTERRUPT)
    assert found == []
    # Most records are unchanged, and every kind of damage and every check was used.
    assert counts["records judged"] > counts["records"] * 0.5 > CASES
    assert counts["records judged in strays"] > CASES / 2
    assert {kind for kind in KINDS if counts[f"damage: {kind}"]} == set(KINDS)
    assert {name for name in CHECKS if counts[f"check: {name}"]} == set(CHECKS)


@pytest.mark.parametrize("path", sorted(SAMPLES.glob("*.evtx")), ids=lambda path: path.stem)
def test_the_judge_knows_which_bytes_a_record_comes_from(path):
    """The judge understands every record of a sound chunk, and notices a change to its frame."""
    for slot in slots(pathlib.Path(path).read_bytes()):
        if len(slot) == CHUNK:
            chunk = Chunk(slot)
            if not path.stem.startswith("damaged"):
                assert set(chunk.records) == {offset for offset, _ in chunk.frames()}
            for record in chunk.records.values():
                assert chunk.is_unchanged(record, slot)
                other = bytearray(slot)
                other[record.offset + 8] ^= 1
                assert not chunk.is_unchanged(record, other)


def test_the_judge_misses_what_is_missing(tmp_path):
    """A sound log has no findings, unless other values are expected."""
    cases, judge = Cases(EXTENSION, [SAMPLES / "dirty.evtx"], tmp_path), Judge(EXTENSION, tmp_path)
    case = cases.make(SEED, only=[])
    case.log = case.sound.copy()
    assert judge.judge_all(case) == []
    record = next(iter(case.log.sources[0][0].records.values()))
    record.values = {**record.values, "computer": "another"}
    assert {finding.invariant for finding in judge.judge_all(case)} == {
        "an unchanged record has its values in a plain scan",
        "an unchanged record has its values in recover",
    }
