"""The partitions of evtx_arrow together return the rows of the scan, in any process."""

import pickle
import subprocess
import sys

import evtx_arrow as evtx
import pyarrow as pa
import pytest
from client import list_of
from conftest import SAMPLES, write_log, write_zip
from structures import CHUNK
from test_columns_of_events import LOGS
from test_evtx_arrow import assert_same


def read(partitions):
    return pa.concat_tables([pa.table(pickle.loads(pickle.dumps(partition))) for partition in partitions])


@pytest.mark.parametrize("target", [1, 3 * CHUNK, 1 << 20, 64 << 20])
def test_partitions_have_the_rows_of_the_scan(con, target):
    partitions = evtx.scan(LOGS, location=True).partitions(target)
    assert list(dict.fromkeys(path for partition in partitions for path in partition.files)) == evtx.scan(LOGS).files
    assert_same(con, read(partitions), f"FROM read_evtx({list_of(LOGS)}, location := true)")
    assert len(partitions) <= len(evtx.scan(LOGS).partitions(target // 2 or 1))


@pytest.mark.parametrize("slots", [1, 2, 7])
def test_ranges_of_slots_have_the_rows_of_the_log(con, tmp_path, slots):
    logs = [write_log(tmp_path / "large.evtx", "DC01-Security.evtx", 23), *SAMPLES.glob("*.evtx")]
    # Cut the last slot short, and damage a chunk.
    data = bytearray((tmp_path / "large.evtx").read_bytes()[:-30000])
    data[4096 + 5 * CHUNK: 4096 + 5 * CHUNK + 600] = bytes(600)
    (tmp_path / "large.evtx").write_bytes(data)
    for options, sql in (({}, ""), ({"verify": True}, ", verify := true"), ({"on_error": "skip"}, ", on_error := 'skip'")):
        partitions = evtx.scan(logs, location=True, **options).partitions(slots * CHUNK)
        assert len(partitions) >= 23 // slots
        assert_same(con, read(partitions), f"FROM read_evtx({list_of(logs)}, location := true{sql})")


def test_only_the_first_range_says_that_a_file_is_no_log(con, tmp_path):
    no_log = tmp_path / "no-log.evtx"
    no_log.write_bytes(bytes(5 * CHUNK))
    partitions = evtx.scan(tmp_path).partitions(CHUNK)
    assert len(partitions) == 5
    assert [pa.table(partition).num_rows for partition in partitions] == [1, 0, 0, 0, 0]
    assert_same(con, read(partitions), f"FROM read_evtx('{tmp_path}')")
    named = evtx.scan(no_log).partitions(CHUNK)
    with pytest.raises(ValueError, match="no-log.evtx"):
        pa.table(named[0])
    assert pa.table(named[1]).num_rows == 0


def test_recovered_logs_are_never_split(con, tmp_path):
    write_log(tmp_path / "large.evtx", "DC01-Security.evtx", 20)
    partitions = evtx.scan(tmp_path, recover=True).partitions(CHUNK)
    assert len(partitions) == 1
    assert_same(con, read(partitions), f"FROM read_evtx('{tmp_path}', recover := true)")


def test_a_log_that_grows_gives_its_new_chunks_to_the_last_partition(tmp_path):
    log = write_log(tmp_path / "grows.evtx", "DC01-Security.evtx", 5)
    partitions = evtx.scan(log, columns=["record_id"]).partitions(2 * CHUNK)
    before = [pa.table(partition).num_rows for partition in partitions]
    write_log(log, "DC01-Security.evtx", 7)
    after = [pa.table(partition).num_rows for partition in partitions]
    assert len(before) == 3 and after[:2] == before[:2] and after[2] == 3 * before[2]


def test_entries_of_archives_are_pieces(con, tmp_path):
    logs = {f"C/{log.name}": log for log in SAMPLES.glob("*.evtx")}
    write_zip(tmp_path / "case.zip", {**logs, "C/log.bin": SAMPLES / "DC01-System.evtx"})
    for files in (tmp_path, tmp_path / "case.zip", f"{tmp_path}/case.zip/C/DC01-*.evtx", f"{tmp_path}/case.zip/C/log.bin"):
        for target in (1, 64 << 20):
            partitions = evtx.scan(files).partitions(target)
            assert len(partitions) == 1
            assert_same(con, read(partitions), f"FROM read_evtx('{files}')")


def test_columns_of_events_are_resolved_once(con, tmp_path):
    """A partition has all columns, even if its own files have fewer fields."""
    logs = sorted(SAMPLES.glob("*-Security.evtx")) + [SAMPLES / "DC01-System.evtx"]
    scan = evtx.scan(logs, event_id=[4624, 4625, 7045], where=("level", "is not null"))
    partitions = scan.partitions(1)
    assert len(partitions) == len(logs)
    tables = [pa.table(partition) for partition in partitions]
    assert {table.schema for table in tables} == {scan.schema}
    assert_same(con, pa.concat_tables(tables), f"FROM read_evtx({list_of(logs)}, event_id := [4624, 4625, 7045]) WHERE level IS NOT NULL")


def test_another_process_reads_a_partition(tmp_path):
    scan = evtx.scan(LOGS, columns=["record_id", "event_id"], where=("event_id", "=", 4624))
    with pytest.raises(TypeError, match="pickle its partitions instead"):
        pickle.dumps(scan)
    [partition] = scan.partitions(1 << 40)
    (tmp_path / "partition").write_bytes(pickle.dumps(partition))
    script = "import pickle, sys, pyarrow; print(pyarrow.table(pickle.load(open(sys.argv[1], 'rb'))).num_rows)"
    done = subprocess.run([sys.executable, "-c", script, str(tmp_path / "partition")], capture_output=True, text=True, check=True)
    assert int(done.stdout) == pa.table(scan).num_rows > 0


def test_no_rows_are_no_partitions_or_empty_ones(tmp_path):
    (tmp_path / "empty.evtx").write_bytes(b"")
    assert [pa.table(partition).num_rows for partition in evtx.scan(tmp_path).partitions()] == [pa.table(evtx.scan(tmp_path)).num_rows]
