"""Records without a chunk, whose template definitions only other logs of the scan have. The logs that they are from judge."""

import os
import random
from pathlib import Path

from conftest import SAMPLES

CHUNK = 65536


def without_first_clusters(log: bytes, rng: random.Random) -> bytes:
    """The chunks of a log as in free space: another file has overwritten the first clusters of each."""
    image = bytearray(1024)
    for start in range(4096, len(log) - CHUNK + 1, CHUNK):
        lost = 4096 * rng.choice([1, 1, 1, 2, 4])
        image += rng.randbytes(lost) + log[start + lost : start + CHUNK]
    return bytes(image)


def orphans(con, image, logs, condition="filename LIKE '%.raw'"):
    """For each orphan: its XML and that of its log, if that has no error, and whether the other columns are the same."""
    return con.execute(
        f"""WITH read AS MATERIALIZED (FROM read_evtx($files, recover := true, json := true, xml := true) WHERE {condition}),
            live AS (FROM read_evtx($logs, recover := true, json := true, xml := true) WHERE error IS NULL)
        SELECT orphan.record_id, orphan.xml, live.xml, orphan.error,
            (orphan.json, orphan.event_data, orphan.user_data, orphan.event_id, orphan.user_sid)
                IS NOT DISTINCT FROM (live.json, live.event_data, live.user_data, live.event_id, live.user_sid)
        FROM read AS orphan LEFT JOIN live USING (record_id, time_created) WHERE orphan.filename LIKE '%.raw' AND orphan.recovered""",
        {"files": [str(image), *map(str, logs)], "logs": [str(log) for log in logs or [image]]},
    ).fetchall()


def test_definitions_of_other_logs_complete_orphans(con, tmp_path):
    rng, lent = random.Random(1), 0
    corpus = os.environ.get("EVTX_CORPUS")
    logs = sorted([*SAMPLES.glob("*.evtx"), *(Path(corpus).rglob("*.evtx") if corpus else [])])
    for log in logs:
        (tmp_path / "x.raw").write_bytes(without_first_clusters(log.read_bytes(), rng))
        for record, xml, of_log, error, is_same in orphans(con, tmp_path / "x.raw", [log]):
            if xml and error and "one with the same ID was used" in error and of_log:
                assert (xml, is_same) == (of_log, True), (log, record)
                lent += 1
    assert lent > 12000 if corpus else lent == 240, lent


def test_definitions_do_not_depend_on_conditions_but_on_the_logs(con, tmp_path):
    log = (SAMPLES / "wrapped.evtx").read_bytes()
    (tmp_path / "x.raw").write_bytes(without_first_clusters(log, random.Random(2)))
    (tmp_path / "a.evtx").write_bytes(log)
    alone = orphans(con, tmp_path / "x.raw", [])
    with_log = orphans(con, tmp_path / "x.raw", [tmp_path / "a.evtx"])
    complete = [record for record, xml, *_ in with_log if xml]
    assert len(alone) == len(with_log) >= len(complete) > 30
    assert not [record for record, xml, *_ in alone if xml and record in complete]
    # The condition keeps the scan from reading the log, but not its definitions.
    assert orphans(con, tmp_path / "x.raw", [tmp_path / "a.evtx"], f"filename = '{tmp_path}/x.raw'") == with_log
    # If two logs disagree on a template, nobody knows which one is right.
    other = log.replace("schemas".encode("utf-16-le"), "schemaz".encode("utf-16-le"))
    (tmp_path / "b.evtx").write_bytes(other)
    contested = orphans(con, tmp_path / "x.raw", [tmp_path / "a.evtx", tmp_path / "b.evtx"])
    assert not [record for record, xml, *_ in contested if xml and record in complete]


def test_two_halves_of_records_have_an_error(con, tmp_path):
    """Clusters of two logs with records of one size: the tail of a record overwrites that of another."""
    log = bytearray((SAMPLES / "wrapped.evtx").read_bytes())
    orphaned = log[4096 + 512:][:65536 - 512]
    first = orphaned.index(b"**\0\0")
    size = int.from_bytes(orphaned[first + 4:][:4], "little")
    # The header of the record says another ID than its event.
    orphaned[first + 8] ^= 1
    (tmp_path / "x.raw").write_bytes(bytes(1000) + orphaned)
    rows = con.execute("SELECT record_id, event_record_id, error FROM read_evtx(?, recover := true)", [str(tmp_path / "x.raw")]).fetchall()
    different = [(error or "") for record, event, error in rows if record != event]
    assert len(different) == 1 and "the event has another record ID or time than the record" in different[0], (size, different)
