"""evtx_arrow.sigma finds in events from anywhere what evtx_sigma finds in their logs."""

import gc
import os
import pathlib
import random
import subprocess
import sys
import threading

import evtx_arrow as evtx
import pandas
import polars
import pyarrow as pa
import pytest
from client import promised, quoted_name
from conftest import SAMPLES, assert_same_rows
from pyarrow import parquet

RULES = SAMPLES / "rules"
CORRELATIONS = SAMPLES / "correlations"
SIGMA = pathlib.Path(os.environ["EVTX_SIGMA"]) / "rules" if "EVTX_SIGMA" in os.environ else None
CORPUS = os.environ.get("EVTX_CORPUS")
# Not all rules of the samples load.
pytestmark = pytest.mark.filterwarnings("ignore:.*rules did not load")

EVERYTHING = """
title: Everything
logsource: {product: windows}
detection: {a: {EventID|exists: true}, condition: a}
"""


def assert_found(con, found, logs, rules):
    """Asserts that matches are those of evtx_sigma, and returns how many there are. A table does not say which logs the
    damage is in, so it also has rows on damage that no rule is for."""
    statement = f"SELECT * FROM evtx_sigma('{logs}', rules := '{rules}') WHERE rule_title IS NOT NULL"
    expected = con.sql(statement)
    names, types = expected.columns, expected.types
    own = pa.table(found)
    assert own.schema.names == names and own.schema == pa.schema(found)
    con.register("own_rows", own)
    ours = ", ".join(f"{quoted_name(name)}::{kind} AS {quoted_name(name)}" for name, kind in zip(names, types))
    assert_same_rows(con, f"SELECT {ours} FROM own_rows WHERE rule_title IS NOT NULL", statement)
    con.unregister("own_rows")
    return own.num_rows


def through_parquet(table, folder):
    parquet.write_table(table, folder / "events.parquet")
    return parquet.read_table(folder / "events.parquet")


def shapes(con, logs, folder):
    """The events of logs as many libraries have them."""
    scan = evtx.scan(logs)
    table = pa.table(scan)
    return {
        "a scan": scan,
        "a scan with native types": evtx.scan(logs, types="native"),
        "a table": table,
        "small batches": pa.table(scan).to_reader(max_chunksize=7),
        "Parquet": through_parquet(table, folder),
        "polars": polars.DataFrame(scan),
        "a relation of DuckDB": con.sql(f"FROM read_evtx('{logs}')"),
    }


def other_types(table):
    """The same values in other types."""
    columns = {}
    for number, name in enumerate(table.schema.names):
        column = table[name].combine_chunks()
        kind = column.type
        if pa.types.is_string(kind):
            column = [column.cast(pa.large_string()), column.cast(pa.string_view()), column.dictionary_encode()][number % 3]
        elif kind == pa.uint64():
            column = column.view(pa.int64())
        elif pa.types.is_integer(kind):
            column = column.cast([pa.int64(), pa.string(), pa.float64()][number % 3])
        elif pa.types.is_timestamp(kind):
            column = column.cast(pa.timestamp("ns", "Asia/Tokyo"))
        elif name == "event_data":
            pairs = [None if pairs is None else [{"key": key, "value": value} for key, value in pairs] for pairs in column.to_pylist()]
            column = pa.array(pairs, pa.large_list(pa.struct({"value": pa.large_string(), "key": pa.string_view()})))
        columns[name] = column
    return pa.table(columns)


@pytest.mark.parametrize("rules", [RULES, CORRELATIONS])
def test_events_from_everywhere(con, tmp_path, rules):
    for name, events in shapes(con, SAMPLES, tmp_path).items():
        assert assert_found(con, evtx.sigma(events, rules), SAMPLES, rules) > 15, name


@pytest.mark.parametrize("rules", [RULES, CORRELATIONS, *([SIGMA] if SIGMA else [])])
def test_types_of_other_libraries(rules):
    table = pa.table(evtx.scan(CORPUS or SAMPLES))
    found, expected = matches(other_types(table), rules), matches(table, rules)
    columns = expected.schema.names[:8]
    assert len(found) > 0 and found.select(columns).equals(expected.select(columns))
    assert found["record_id"].cast(pa.uint64()).equals(expected["record_id"])
    assert found["event_data"].to_pylist() == other_types(expected)["event_data"].to_pylist()


@pytest.mark.skipif(SIGMA is None or CORPUS is None, reason="set EVTX_SIGMA and EVTX_CORPUS")
def test_all_rules_of_sigma_over_the_corpus(con, tmp_path):
    for name, events in shapes(con, CORPUS, tmp_path).items():
        assert assert_found(con, evtx.sigma(events, SIGMA), CORPUS, SIGMA) > 500, name


def test_arguments_are_those_of_evtx_sigma(con):
    table = pa.table(evtx.scan(SAMPLES))
    tuned = pa.table(evtx.sigma(table, [RULES], min_level="high", status=("test", "stable"), exclude=["none"]))
    assert con.execute(f"SELECT count(*) FROM evtx_sigma('{SAMPLES}', rules := '{RULES}', min_level := 'high', status := ['test', 'stable'], exclude := ['none'])").fetchall() == [(tuned.num_rows,)]
    given = {"service_accounts": ["svc", "backup"], "other": "x"}
    names = pa.table(evtx.sigma(table, RULES, placeholders=given))["rule_title"]
    sql = f"SELECT count(*) FROM evtx_sigma('{SAMPLES}', rules := '{RULES}', placeholders := MAP {{'service_accounts': ['svc', 'backup'], 'other': ['x']}})"
    assert con.execute(sql).fetchall() == [(len(names),)]


def test_rules_that_do_not_load():
    with pytest.warns(UserWarning, match="3 of 8 rules did not load; evtx_sigma_rules gives the reason"):
        evtx.sigma(evtx.scan(SAMPLES), RULES)


@pytest.mark.parametrize("given, error, text", [
    ({"rules": None}, TypeError, "rules cannot be None"),
    ({"rules": 1.5}, TypeError, "rules must be a value or a list of them"),
    ({"rules": "nothing/*.yml"}, FileNotFoundError, "nothing"),
    ({"min_level": "huge"}, ValueError, "min_level"),
    ({"min_level": 3}, TypeError, "min_level must be text"),
    ({"status": ["new"]}, ValueError, "status"),
    ({"placeholders": "x"}, TypeError, "placeholders must be a dict"),
    ({"placeholders": {"a": {"b": object()}, "c": 1.5}}, TypeError, "placeholders must be a dict"),
    ({"level_tuning": "nothing.txt"}, (OSError, ValueError), "nothing.txt"),
])
def test_wrong_arguments(given, error, text):
    with pytest.raises(error, match=text):
        evtx.sigma(evtx.scan(SAMPLES), **{"rules": str(RULES), **given})


@pytest.fixture
def everything(tmp_path):
    """A rule that matches all events."""
    (tmp_path / "everything.yml").write_text(EVERYTHING)
    return tmp_path / "everything.yml"


@pytest.mark.parametrize("columns, text", [
    ({}, "events must have the columns channel and provider: rules choose events by them"),
    ({"channel": ["x"]}, "events must have the columns channel and provider"),
    ({"event_data": [1]}, "the column event_data of events must be a map of texts, or a list of structs .* but its type is Int64"),
    ({"event_data": ["x"]}, "event_data"),
    ({"event_data": [[1]]}, "event_data"),
    ({"event_data": [[{"key": 1, "value": "x"}]]}, "event_data"),
    ({"event_data": [[{"name": "a", "value": "x"}]]}, "event_data"),
    ({"computer": [pandas.Timestamp(0, tz="UTC")]}, "the column computer of events must be text"),
    ({"time_created": [[1]]}, "the column time_created of events must be a time"),
    ({"event_id": [{"a": 1}]}, "the column event_id of events must be a number"),
    ({"activity_id": [1]}, "the column activity_id of events must be a GUID"),
    ({"rule_title": ["x"]}, "events must not have a column rule_title, which"),
    ({"Channel": ["x"], "channel": ["x"]}, "events must not have two columns named channel"),
])
def test_wrong_columns(everything, columns, text):
    needed = {"channel": ["Security"], "provider": ["p"]} if columns and columns.keys() != {"channel"} else {}
    with pytest.raises(ValueError, match=text):
        evtx.sigma(pa.table({**needed, **columns}), everything)


def test_objects_that_are_no_stream(everything):
    for events in (None, 1, "logs", [], object()):
        with pytest.raises(TypeError, match="events must have the Arrow C stream interface"):
            evtx.sigma(events, everything)
    with pytest.raises(ValueError, match="events cannot be read"):
        evtx.sigma(pa.chunked_array([[1, 2]]), everything)


EVENT = {"channel": ["Security"], "provider": ["Microsoft-Windows-Security-Auditing"], "event_id": [4625]}


def matches(events, rules):
    return pa.table(evtx.sigma(events, rules))


def test_columns_that_are_missing_are_absent_fields(everything):
    for given in (EVENT, {**EVENT, "other": [[1]]}):
        found = matches(pa.table(given), everything)
        assert found.num_rows == 1
        assert found.schema.names[-len(given) - 1:] == [*given, "error"] and found["error"].to_pylist() == [None]
    assert matches(pa.table({**EVENT, "event_id": pa.nulls(1)}), everything).num_rows == 0
    # Two columns of one name are no problem unless rules need them.
    twice = pa.Table.from_arrays([*pa.table(EVENT).columns, pa.array([1]), pa.array([2])], names=[*EVENT, "x", "x"])
    assert matches(twice, everything).num_rows == 1
    # pandas has a column without values as null or object.
    frame = pandas.DataFrame({**EVENT, "error": [None], "event_data": [None], "time_created": [pandas.NaT]})
    assert matches(frame, everything)["rule_title"].to_pylist() == ["Everything"]


def test_values_that_do_not_fit_are_null(tmp_path):
    detection = '{a: {EventID: null, Data: x, ActivityID: null}, condition: "a"}'
    (tmp_path / "rule.yml").write_text(f"title: Nothing\nlogsource: {{product: windows}}\ndetection: {detection}\n")
    events = pa.table({
        "channel": ["Security"] * 4, "provider": pa.array(["p"] * 4).dictionary_encode(),
        "event_id": [-1, 1 << 40, None, 4624], "version": ["x", "-1", "256", "1"],
        "activity_id": [b"short", None, b"", b"x" * 16], "time_created": ["never", "", None, "2024-01-01"],
        "event_data": pa.array([[("Data", "x")]] * 4, pa.map_(pa.string(), pa.string())),
    })
    found = matches(events, tmp_path)
    # The events come as they were.
    assert found["event_id"].to_pylist() == [-1, 1 << 40, None]


def test_batches_of_all_shapes(everything):
    table = pa.table(evtx.scan(SAMPLES))
    expected = matches(table, everything)
    assert expected.num_rows > 300
    schema = table.schema
    empty = schema.empty_table().to_batches() or [pa.RecordBatch.from_pylist([], schema)]
    chooser = random.Random(54)
    for _ in range(20):
        batches, at = [], 0
        whole = table.combine_chunks().to_batches()[0]
        while at < len(whole):
            length = chooser.choice([0, 1, 2, 63, 64, 65, 200])
            batches += [*empty, whole.slice(at, length)]
            at += length
        reader = pa.RecordBatchReader.from_batches(schema, batches)
        assert matches(reader, everything).equals(expected)
    assert matches(pa.RecordBatchReader.from_batches(schema, empty * 3), everything).num_rows == 0
    assert matches(schema.empty_table(), CORRELATIONS).num_rows == 0


def test_parts_of_arrays_in_other_types(tmp_path):
    table = pa.table(evtx.scan(SAMPLES))
    expected = matches(other_types(table), RULES).drop_columns(["event_data"])
    parts = [other_types(table).slice(at, 13) for at in range(0, len(table), 13)]
    assert pa.concat_tables(matches(part, RULES).drop_columns(["event_data"]) for part in parts).cast(expected.schema).equals(expected)


def test_texts_that_are_not_utf8(everything):
    bad = pa.StringArray.from_buffers(2, pa.py_buffer(b"\0\0\0\0\x08\0\0\0\x09\0\0\0"), pa.py_buffer(b"Security\xff"))
    found = matches(pa.table({"channel": bad, "provider": ["p", "p"], "event_id": [1, 2]}), everything)
    assert found["event_id"].to_pylist() == [1, 2]


@pytest.mark.parametrize("rules", [RULES, CORRELATIONS])
def test_a_stream_that_fails_in_the_middle(rules):
    table = pa.table(evtx.scan(SAMPLES))

    def batches():
        yield table.to_batches()[0]
        raise OSError("the disk is gone")

    found = evtx.sigma(pa.RecordBatchReader.from_batches(table.schema, batches()), rules)
    with pytest.raises(Exception, match="events cannot be read: .*the disk is gone"):
        pa.table(found)


def test_events_are_read_batch_by_batch(everything):
    batch = pa.table(EVENT).to_batches()[0]
    taken = []

    def batches():
        for number in range(1000):
            taken.append(number)
            yield batch

    reader = pa.RecordBatchReader.from_stream(evtx.sigma(pa.RecordBatchReader.from_batches(batch.schema, batches()), everything))
    assert taken == []
    reader.read_next_batch()
    assert len(taken) <= 2
    del reader
    gc.collect()
    assert len(taken) <= 2


def test_the_libraries_read_matches(con, everything):
    table = pa.table(EVENT)
    found = evtx.sigma(table, everything)
    expected = pa.table(found)
    assert pa.table(found).equals(expected), "they can be read again"
    assert polars.DataFrame(found).height == 1
    assert list(pandas.DataFrame.from_arrow(found)["rule_title"]) == ["Everything"]
    assert con.sql("SELECT rule_title, event_id FROM found").fetchall() == [("Everything", 4625)]
    # A reader gives its events once.
    once = evtx.sigma(table.to_reader(), everything)
    assert con.sql("SELECT rule_title, event_id FROM once").fetchall() == [("Everything", 4625)]


def test_threads_share_rules(everything):
    found = evtx.sigma(pa.table(evtx.scan(SAMPLES)), everything)
    counts = []
    threads = [threading.Thread(target=lambda: counts.append(pa.table(found).num_rows)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(counts) == 4 and len(set(counts)) == 1


INTERRUPTED = """
import os, signal, sys, threading, time
import duckdb, evtx_arrow as evtx, polars, pyarrow as pa

logs, rules = sys.argv[1:]
table = pa.table(evtx.scan(logs))
found = evtx.sigma(pa.concat_tables([table] * 10_000), rules)
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
        {work}
    finally:
        # As for a scan, the exception follows as soon as Python runs.
        [None for _ in range(10)]
        time.sleep(0)
except (KeyboardInterrupt, RuntimeError) as error:
    # If DuckDB sees the signal first, its own error is the only one.
    name = "KeyboardInterrupt" if str(error) in ("", "Query interrupted") else error
    print(name, time.process_time() - sent[0], time.perf_counter() - sent[1], sep="\\n")
"""


@pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGINT for a process")
@pytest.mark.parametrize("work", [
    "pa.table(found)",
    "polars.DataFrame(found)",
    # With more threads, Python's may wait for one that reads and cannot see signals.
    "duckdb.connect(config={'threads': 1}).execute('CREATE TABLE rows AS FROM found')",
])
def test_ctrl_c_ends_a_read(tmp_path, work):
    (tmp_path / "nothing.yml").write_text(EVERYTHING.replace("EventID|exists: true", "EventID: 77777"))
    script = INTERRUPTED.format(work=work)
    done = subprocess.run([sys.executable, "-c", script, str(SAMPLES), str(tmp_path)], capture_output=True, text=True, timeout=600)
    name, spent, took = [*done.stdout.splitlines(), "", ""][:3]
    assert name == "KeyboardInterrupt", done.stderr
    promised(float(took), 0.1)
    assert float(spent) < 1
