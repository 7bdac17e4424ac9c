"""evtx_arrow with bad input, consumers that stop early, interrupts, threads and forks. And leaks."""

import datetime
import gc
import operator
import os
import pathlib
import random
import signal
import struct
import subprocess
import sys
import textwrap
import threading
import time
import tracemalloc
import uuid

import evtx_arrow as evtx
import numpy
import pandas
import polars
import psutil
import pyarrow as pa
import pytest
from client import promised
from conftest import SAMPLES, write_log

LOG = SAMPLES / "DC01-Security.evtx"
on_unix = pytest.mark.skipif(sys.platform == "win32", reason="Windows has neither these signals nor file descriptors")


@pytest.mark.parametrize("make, error, texts", [
    (lambda: evtx.scan("/nowhere/a b.evtx"), FileNotFoundError, ["/nowhere/a b.evtx"]),
    (lambda: evtx.scan("/nowhere/*.evtx"), FileNotFoundError, ["/nowhere/*.evtx"]),
    (lambda: evtx.scan([LOG, "/nowhere/b.evtx"]), FileNotFoundError, ["/nowhere/b.evtx"]),
    (lambda: evtx.scan(""), ValueError, ["empty path"]),
    (lambda: evtx.scan(7), TypeError, ["files", "7"]),
    (lambda: evtx.scan([LOG, 7]), TypeError, ["path", "7"]),
    (lambda: evtx.scan(b"a.evtx"), TypeError, ["files"]),
    (lambda: evtx.scan(os.fsdecode(b"b\xe4.evtx")), ValueError, ["not UTF-8", "b"]),
    (lambda: evtx.scan(["s3://bucket/a.evtx", LOG]), ValueError, ["one file system", "s3"]),
    (lambda: evtx.scan(LOG, columns="event_id"), TypeError, ["columns", "event_id"]),
    (lambda: evtx.scan(LOG, columns=["event_id", "nothing"]), ValueError, ["\"nothing\"", "record_id"]),
    (lambda: evtx.scan(LOG, columns=[3]), TypeError, ["column", "3"]),
    (lambda: evtx.scan(LOG, where=[("nothing", "=", 1)]), ValueError, ["\"nothing\"", "record_id"]),
    (lambda: evtx.scan(LOG, where=[("event_id", "resembles", 1)]), ValueError, ["resembles", "event_id", "between"]),
    (lambda: evtx.scan(LOG, where=[("event_id", "=", "4624")]), TypeError, ["event_id", "'4624'"]),
    (lambda: evtx.scan(LOG, where=[("event_id", "=", 4.5)]), TypeError, ["event_id", "4.5"]),
    (lambda: evtx.scan(LOG, where=[("event_id", "=", True)]), TypeError, ["event_id", "True"]),
    (lambda: evtx.scan(LOG, where=[("event_id", "=", None)]), ValueError, ["event_id", "is null"]),
    (lambda: evtx.scan(LOG, where=[("event_id", "in", "4624")]), TypeError, ["event_id", "4624"]),
    (lambda: evtx.scan(LOG, where=[("event_id", "between", [1, 2, 3])]), ValueError, ["event_id", "between", "3"]),
    (lambda: evtx.scan(LOG, where=[("event_id", "contains", 4)]), TypeError, ["contains", "event_id"]),
    (lambda: evtx.scan(LOG, where=[("event_data", "=", "x")]), TypeError, ["event_data", "compared"]),
    (lambda: evtx.scan(LOG, where=[(("event_id", "x"), "=", "x")]), TypeError, ["event_id", "map"]),
    (lambda: evtx.scan(LOG, where=[("time_created", "<", "yesterday")]), TypeError, ["time_created", "yesterday"]),
    (lambda: evtx.scan(LOG, where=[("provider_guid", "=", "{no}")]), TypeError, ["provider_guid", "{no}"]),
    (lambda: evtx.scan(LOG, where=[("event_id",)]), TypeError, ["event_id"]),
    (lambda: evtx.scan(LOG, where="event_id = 1"), TypeError, ["where"]),
    (lambda: evtx.scan(LOG, where=[("event_id", 1, 1)]), TypeError, ["operator", "event_id"]),
    (lambda: evtx.scan(LOG, event_id="x"), ValueError, ["event_id", "x"]),
    (lambda: evtx.scan(LOG, event_id=-1), ValueError, ["event_id", "-1"]),
    (lambda: evtx.scan(LOG, event_id=1.5), TypeError, ["event_id", "1.5"]),
    (lambda: evtx.scan(LOG, event_id=True), TypeError, ["event_id", "True"]),
    (lambda: evtx.scan(LOG, provider=[b"x"]), TypeError, ["provider"]),
    (lambda: evtx.scan(LOG, on_error="ignore"), ValueError, ["on_error", "ignore", "report"]),
    (lambda: evtx.scan(LOG, on_error=None), TypeError, ["on_error"]),
    (lambda: evtx.scan(LOG, xml="yes"), TypeError, ["xml", "yes"]),
    (lambda: evtx.scan(LOG, verify=1), TypeError, ["verify", "1"]),
    (lambda: evtx.scan(LOG, types="arrow"), ValueError, ["types", "arrow", "plain"]),
    (lambda: evtx.scan(LOG, types=3), TypeError, ["types", "3"]),
    (lambda: evtx.scan(LOG, threads=0), ValueError, ["threads", "0"]),
    (lambda: evtx.scan(LOG, threads="2"), TypeError, ["threads", "'2'"]),
    (lambda: evtx.scan(LOG, sample_size=-3), ValueError, ["sample_size", "-3"]),
    (lambda: evtx.scan(LOG, sample_size=10**30), ValueError, ["sample_size", "10000"]),
    (lambda: evtx.scan(LOG).narrow("event_id"), TypeError, ["columns", "event_id"]),
    (lambda: evtx.scan(LOG).narrow([5]), TypeError, ["column", "5"]),
    (lambda: evtx.scan(LOG, filesystem=42), TypeError, ["filesystem", "42"]),
    (lambda: evtx.scan(LOG, nonsense=1), TypeError, ["nonsense"]),
    (lambda: evtx.scan(LOG).partitions(0), ValueError, ["target_bytes", "0"]),
    (lambda: evtx.scan(LOG).partitions("64 MiB"), TypeError, ["target_bytes", "64 MiB"]),
    (lambda: evtx.scan_polars(evtx.scan(LOG), xml=True), TypeError, ["Scan"]),
])
def test_bad_input_is_an_exception_that_names_it(make, error, texts):
    with pytest.raises(error) as raised:
        make()
    for text in texts:
        assert text in str(raised.value)


def test_a_folder_without_logs(tmp_path):
    (tmp_path / "notes.txt").write_text("none")
    for path in (tmp_path, f"{tmp_path}/"):
        with pytest.raises(FileNotFoundError, match="No logs found in"):
            evtx.scan(path)


@on_unix
def test_folders_of_a_circle_and_names_that_are_no_text(tmp_path):
    (tmp_path / "a").mkdir()
    write_log(tmp_path / "a/x.evtx", "DC01-Security.evtx", 1)
    (tmp_path / "a/circle").symlink_to(tmp_path)
    pathlib.Path(os.fsdecode(bytes(tmp_path) + b"/a/\xe4.evtx")).write_bytes(b"")
    for path in (tmp_path, f"{tmp_path}/**/*.evtx"):
        rows = pa.table(evtx.scan(path, columns=["filename", "error"]))
        files = {(row["filename"], row["error"]) for row in rows.to_pylist()}
        other = f"{tmp_path}/a/\ufffd.evtx"
        assert files == {(f"{tmp_path}/a/x.evtx", None), (other, f"{other}: cannot be read: its name is not UTF-8")}


@on_unix
def test_globs_find_what_the_globs_of_duckdb_find(tmp_path, con):
    for name in ("a.evtx", "d/b.evtx", "d/e/c.evtx", "d/e/f/B.EVTX", "x\\y.evtx", "d\\z/w.evtx"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        write_log(tmp_path / name, "DC01-Security.evtx", 1)
    for glob in ("", "/**", "/d/**", "/*/**", "/**/*", "/**/*.evtx", "/**.evtx", "/***", "/*/***.evtx", "/a**", "/*/*.evtx"):
        path = f"{tmp_path}{glob}"
        theirs = con.sql(f"SELECT filename FROM read_evtx('{path}') WHERE error IS NULL GROUP BY filename ORDER BY filename").fetchall()
        assert evtx.scan(path).files == [name for name, in theirs], glob
    assert len(evtx.scan(tmp_path).files) == 6


def test_float_and_binary_columns_are_not_compared():
    from test_columns_of_events import LOGS

    compared = set()
    for event_id in (4624, 1, 10, 11, 13, 4103, 4104, 7045, 5156, 16, 400, 1102):
        scan = evtx.scan(LOGS, event_id=event_id)
        for field in scan.schema:
            if pa.types.is_nested(field.type) or pa.types.is_binary(field.type) or pa.types.is_decimal(field.type):
                compared.add(str(field.type))
                with pytest.raises(TypeError, match="cannot be compared"):
                    scan.narrow(where=(field.name, "=", "x"))
    assert compared


def test_damage_is_a_row_or_an_exception_that_names_the_file(tmp_path):
    log = SAMPLES / "damaged-records.evtx"
    assert any(pa.table(evtx.scan(log))["error"].to_pylist())
    for threads in (1, 3):
        with pytest.raises(pa.ArrowInvalid, match="damaged-records.evtx"):
            pa.table(evtx.scan(log, on_error="fail", threads=threads))
    no_log = tmp_path / "no log.evtx"
    no_log.write_bytes(b"no log at all")
    with pytest.raises(ValueError, match="no log.evtx"):
        pa.table(evtx.scan(no_log))
    assert pa.table(evtx.scan(tmp_path))["error"].to_pylist() != [None]
    broken = tmp_path / "broken.zip"
    broken.write_bytes(b"PK\x03\x04")
    with pytest.raises(evtx.EvtxError, match="broken.zip"):
        evtx.scan(broken)
    with pytest.raises(OSError, match="gone.evtx"):
        gone = tmp_path / "gone.evtx"
        gone.write_bytes(LOG.read_bytes())
        scan = evtx.scan(gone)
        gone.unlink()
        pa.table(scan)


def test_a_file_that_shrinks_after_the_plan_is_an_exception(tmp_path):
    log = write_log(tmp_path / "shrinks.evtx", "DC01-Security.evtx", 40)
    for target in (1 << 20, 1 << 30):
        partitions = evtx.scan(tmp_path, columns=["record_id"]).partitions(target)
        with open(log, "r+b") as file:
            whole = file.read()
            file.truncate(len(whole) // 2)
        for partition in partitions:
            with pytest.raises(OSError, match="shrinks.evtx.*when the scan was planned"):
                pa.table(partition)
        log.write_bytes(whole)
        assert sum(pa.table(partition).num_rows for partition in partitions) == pa.table(evtx.scan(log, columns=["record_id"])).num_rows


def threads():
    return psutil.Process().num_threads()


@on_unix
def test_a_consumer_that_stops_half_way_leaves_nothing(big_log):
    pa.table(evtx.scan(LOG, threads=4))
    before, files = threads(), psutil.Process().num_fds()
    for count in (0, 1, 3):
        for workers in (1, 4):
            reader = pa.RecordBatchReader.from_stream(evtx.scan(big_log, threads=workers, xml=True))
            for _ in range(count):
                assert reader.read_next_batch().num_rows > 0
            del reader
    gc.collect()
    # Threads of other libraries may end in the meantime.
    assert threads() <= before and psutil.Process().num_fds() <= files
    # A capsule that is never read.
    evtx.scan(big_log, threads=4).__arrow_c_stream__()
    assert threads() <= before
    assert evtx.scan_polars(big_log).head(5).collect().height == 5


def test_nothing_leaks_over_100_rounds():
    def round_of(number):
        scan = evtx.scan([LOG, SAMPLES / "damaged-records.evtx"], where=("event_id", ">", 4000), xml=True, threads=1 + number % 3)
        assert pa.table(scan).num_rows > 0
        reader = pa.RecordBatchReader.from_stream(scan)
        reader.read_next_batch()
        [pa.table(partition) for partition in scan.partitions()]
        with pytest.raises(FileNotFoundError):
            evtx.scan("/nowhere.evtx")
        with pytest.raises(pa.ArrowInvalid):
            pa.table(evtx.scan(SAMPLES / "damaged-records.evtx", on_error="fail"))

    process = psutil.Process()
    for number in range(30):
        round_of(number)
    gc.collect()
    tracemalloc.start()
    resident, traced = process.memory_info().rss, tracemalloc.get_traced_memory()[0]
    for number in range(100):
        round_of(number)
    gc.collect()
    grown, grown_traced = process.memory_info().rss - resident, tracemalloc.get_traced_memory()[0] - traced
    tracemalloc.stop()
    # A round decodes more than 1 MiB, so a leak would show.
    assert grown < 24 << 20 and grown_traced < 1 << 20, (grown, grown_traced)


INTERRUPTED = """
import os, signal, sys, threading, time
import duckdb, pandas, polars
import pyarrow as pa
import pyarrow.fs as fs
import evtx_arrow as evtx

def read(scan):
    {work}

read(evtx.scan(sys.argv[1]))
# It takes hours to read them all.
scan = evtx.scan([sys.argv[2]] * 2000, xml=True, json=True, threads={threads}{options})
sent = []

def interrupt():
    begun = time.process_time()
    while time.process_time() < begun + 0.3:
        time.sleep(0.01)
    sent.extend([time.process_time(), time.perf_counter()])
    os.kill(os.getpid(), signal.SIGINT)

threading.Thread(target=interrupt, daemon=True).start()
try:
    try:
        read(scan)
    finally:
        # A stream can only say that it was interrupted. What Ctrl-C has raised follows as soon as Python runs.
        [None for _ in range(10)]
        time.sleep(0)
except (KeyboardInterrupt, RuntimeError) as error:
    # If DuckDB sees the signal first, its own error is the only one.
    name = "KeyboardInterrupt" if str(error) in ("", "Query interrupted") else error
    print(name, time.process_time() - sent[0], time.perf_counter() - sent[1], sep="\\n")
"""

CONSUMERS = {
    "pyarrow": "pa.table(scan)",
    "batches": "[0 for batch in pa.RecordBatchReader.from_stream(scan)]",
    "polars": "polars.DataFrame(scan)",
    "lazy": "evtx.scan_polars(scan).collect()",
    "pandas": "pandas.DataFrame.from_arrow(scan)",
    "duckdb": "duckdb.connect().execute('CREATE TABLE rows AS FROM scan')",
}


@on_unix
@pytest.mark.parametrize(("consumer", "workers", "options"), [(consumer, 4, "") for consumer in CONSUMERS] + [("batches", 1, ", filesystem=fs.LocalFileSystem()")])
def test_ctrl_c_ends_a_read(big_log, consumer, workers, options):
    script = textwrap.dedent(INTERRUPTED).format(work=CONSUMERS[consumer], threads=workers, options=options)
    done = subprocess.run([sys.executable, "-c", script, str(LOG), str(big_log)], capture_output=True, text=True, timeout=600)
    name, spent, took = [*done.stdout.splitlines(), "", ""][:3]
    assert name == "KeyboardInterrupt", done.stderr
    promised(float(took), 0.1)
    assert float(spent) < 1


@on_unix
def test_an_interrupt_is_answered_at_once_and_handlers_of_signals_run(big_log):
    """Any exception of a signal handler ends the read, not only KeyboardInterrupt."""
    class Enough(Exception):
        pass

    def handler(number, frame):
        at[:] = time.process_time(), time.perf_counter()
        raise Enough("that is enough")

    at = []
    # The timer counts processor time, so the read has come just as far on a loaded machine.
    previous = signal.signal(signal.SIGPROF, handler)
    try:
        for workers in (1, 4):
            signal.setitimer(signal.ITIMER_PROF, 0.2)
            with pytest.raises((pa.ArrowInvalid, Enough), match="that is enough"):
                pa.table(evtx.scan([big_log] * 20, xml=True, json=True, threads=workers))
            promised(time.perf_counter() - at[1], 0.1)
            assert time.process_time() - at[0] < 1
    finally:
        signal.signal(signal.SIGPROF, previous)


def test_the_lock_of_the_interpreter_is_free_while_logs_are_decoded(big_log):
    counted, done = [0], threading.Event()

    def count():
        while not done.is_set():
            counted[0] += 1
            time.sleep(0.001)

    thread = threading.Thread(target=count)
    thread.start()
    frame = polars.DataFrame(evtx.scan([big_log] * 2, columns=["xml"], threads=1))
    done.set()
    thread.join()
    assert frame.height > 0 and counted[0] > 10


def test_streams_are_read_on_several_threads_at_once(big_log):
    scan = evtx.scan(big_log, columns=["record_id"])
    expected = pa.table(scan)
    found = []
    readers = [threading.Thread(target=lambda: found.append(pa.table(scan))) for _ in range(4)]
    for reader in readers:
        reader.start()
    for reader in readers:
        reader.join()
    assert len(found) == 4 and all(rows.equals(expected) for rows in found)
    # A stream that another thread reads.
    stream = pa.RecordBatchReader.from_stream(scan)
    other = threading.Thread(target=lambda: found.append(stream.read_all()))
    other.start()
    other.join()
    assert found[-1].equals(expected)


def test_the_package_is_typed():
    folder = pathlib.Path(evtx.__file__).parent
    assert (folder / "py.typed").exists() and (folder / "_native.pyi").exists()
    assert os.path.basename(evtx._native.__file__).endswith(("abi3.so", ".pyd"))
    for name in evtx.__all__:
        assert getattr(evtx, name).__doc__


def test_iterators_as_arguments_reach_partitions():
    for options in [{"where": (condition for condition in [("event_id", "=", 4624)])},
                    {"where": [("event_id", "in", (number for number in [4624]))]},
                    {"event_id": iter([4624])}, {"provider": iter(["Microsoft-Windows-Sysmon"])}]:
        scan = evtx.scan([SAMPLES / "DC01-Security.evtx", SAMPLES / "DC01-Sysmon.evtx"], **options)
        rows = pa.table(scan).num_rows
        assert 0 < rows == sum(pa.table(part).num_rows for part in scan.partitions(target_bytes=1))


def test_events_of_numpy_and_pandas():
    expected = pa.table(evtx.scan(LOG, event_id=[4624, 4625]))
    for ids in (numpy.array([4624, 4625]), pandas.Series([4624, 4625]), [numpy.uint16(4624), 4625], (4624, numpy.int64(4625))):
        assert pa.table(evtx.scan(LOG, event_id=ids)) == expected
    assert pa.table(evtx.scan(LOG, event_id=numpy.int64(4624))).num_rows > 0
    with pytest.raises(TypeError, match="event_id"):
        evtx.scan(LOG, event_id=numpy.array([4624.5]))


def test_times_that_are_none():
    for value in [numpy.datetime64("NaT"), numpy.datetime64("9999-01-01"), pandas.NaT]:
        with pytest.raises(ValueError, match="no time"):
            evtx.scan(LOG, where=[("time_created", "<=", value)])


OPERATORS = {"=": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}
# Around the ends of the integers, with a sign and without.
EDGES = [0, *(sign * (1 << bits) + by for bits in (7, 8, 15, 16, 31, 32, 63, 64, 70) for sign in (1, -1) for by in (-1, 0, 1))]


def values_of(column):
    """The values of a column, times in nanoseconds; None if it cannot be compared."""
    if pa.types.is_timestamp(column.type):
        unit = {"us": 1000, "ns": 1}[column.type.unit]
        return [None if time is None else time * unit for time in column.cast(pa.int64()).to_pylist()]
    kinds = (pa.types.is_nested, pa.types.is_binary, pa.types.is_floating, pa.types.is_decimal)
    return None if any(is_kind(column.type) for is_kind in kinds) else column.to_pylist()


@pytest.fixture(scope="module")
def wide_log(tmp_path_factory):
    """A log with logon IDs at the ends of the unsigned integers of 64 bits. Its times are between two microseconds."""
    ids, data = pa.table(evtx.scan(LOG, event_id=4624, columns=["TargetLogonId"]))["TargetLogonId"].unique().to_pylist(), LOG.read_bytes()
    for known, number in zip(ids, (-5, -1, -1 << 63, (1 << 63) - 1), strict=False):
        data = data.replace(struct.pack("<Q", known), struct.pack("<q", number))
    path = tmp_path_factory.mktemp("wide") / "wide.evtx"
    path.write_bytes(data)
    return path


@pytest.mark.parametrize("types", ["plain", "native", "spark"])
@pytest.mark.parametrize("options", [{"location": True, "recover": True}, {"event_id": [4624, 4625, 4634, 4688]}], ids=str)
def test_conditions_are_those_on_the_rows_that_are_read(wide_log, types, options):
    """Every column that can be compared, with each operator. Python decides the same condition on the values of all rows."""
    scan = evtx.scan([wide_log, SAMPLES / "oddities.evtx"], types=types, threads=1, **options)
    whole, choose, counts = pa.table(scan), random.Random(types + str(options)), set()
    for name in whole.schema.names:
        values = values_of(whole[name])
        known = sorted({value for value in values or [] if value is not None})
        if not known:
            continue
        is_time = pa.types.is_timestamp(whole[name].type)
        if is_time:
            constants = [value + by for value in choose.sample(known, min(3, len(known))) for by in (0, 100, 999, -1)]
        elif isinstance(known[0], int) and not isinstance(known[0], bool):
            constants = [*choose.sample(known, min(3, len(known))), known[0], known[-1], *choose.sample(EDGES, 6)]
        else:
            constants = choose.sample(known, min(4, len(known)))
        given = (lambda value: numpy.datetime64(value, "ns")) if is_time else lambda value: value
        conditions = [((name, operator, given(value)), lambda row, test=test, value=value: test(row, value))
                      for operator, test in OPERATORS.items() for value in constants]
        for _ in range(4):
            some = choose.choices(constants, k=choose.randint(0, 4))
            low, high = choose.choices(constants, k=2)
            conditions += [((name, "in", list(map(given, some))), lambda row, some=some: row in some),
                           ((name, "not in", list(map(given, some))), lambda row, some=some: row not in some),
                           ((name, "between", [given(low), given(high)]), lambda row, low=low, high=high: low <= row <= high)]
        for condition, test in conditions:
            found = pa.table(scan.narrow([name], [condition])).num_rows
            assert found == sum(value is not None and test(value) for value in values), condition
            counts.add(found)
    assert len(counts) > 30


def test_guids_of_spark_are_texts():
    scan = evtx.scan(LOG, types="spark")
    guid = pa.table(scan)["provider_guid"][0].as_py()
    for value in (guid, uuid.UUID(guid)):
        assert pa.table(scan.narrow(["record_id"], [("provider_guid", "=", value)])).num_rows > 0
    with pytest.raises(ValueError, match=f"as Spark shows it, such as {guid}, not"):
        scan.narrow(["record_id"], [("provider_guid", "=", guid.upper())])


@pytest.mark.parametrize("types", ["plain", "spark"])
def test_polars_filters_the_rows_that_it_sees(wide_log, types):
    frame = evtx.scan_polars(wide_log, types=types, event_id=4624)
    whole = frame.collect()
    choose = random.Random(types)
    for name in ("record_id", "keywords", "TargetLogonId", "time_created", "LogonGuid", "provider_guid", "provider"):
        known = whole[name].drop_nulls()
        for value, test in zip(choose.choices(known.to_list(), k=2), choose.sample([*OPERATORS.values()], k=2)):
            predicate = test(polars.col(name), value)
            assert frame.filter(predicate).collect().height == whole.filter(predicate).height, (name, value, test)


@on_unix
def test_a_fork_does_not_read_the_streams_of_its_parent():
    logs = [str(LOG)] * 40
    reader = pa.RecordBatchReader.from_stream(evtx.scan(logs, threads=2))
    reader.read_next_batch()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            signal.alarm(20)
            reader.read_all()
        except Exception as error:
            status = 0 if "fork" in str(error) else 2
        del reader
        gc.collect()
        os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert reader.read_all().num_rows > 0


def test_a_uri_of_a_name_with_a_percent_sign(tmp_path):
    log = tmp_path / "Task%4Admin 1.evtx"
    log.write_bytes(LOG.read_bytes())
    rows = pa.table(evtx.scan(LOG)).num_rows
    for uri in [f"file://{log}", log.as_uri(), str(log)]:
        assert pa.table(evtx.scan(uri)).num_rows == rows
