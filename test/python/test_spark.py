"""evtx_arrow.spark in a real Spark session (local[2]), which all tests share. Run `make test-spark`."""

import gc
import json
import os
import pickle
import re
import shutil
import sys
import time

import pyarrow as pa
import pytest
from client import list_of, quoted_name
from conftest import ROOT, SAMPLES, assert_same_rows, write_log
from structures import CHUNK
from test_columns_of_events import LOGS
from test_evtx_arrow import assert_same
from test_evtx_arrow_storage import SQL, named

pyspark = pytest.importorskip("pyspark", reason="pip install -r test/spark-requirements.txt")
pytestmark = pytest.mark.skipif(shutil.which("java") is None, reason="Spark needs Java: install OpenJDK 17 (openjdk-17-jre-headless)")

EVENTS = [4624, 4625, 4688, 7045, 1]


@pytest.fixture(scope="session")
def spark(tmp_path_factory, s3):
    from evtx_arrow.spark import register
    from pyspark.sql import SparkSession

    folder = tmp_path_factory.mktemp("spark")
    os.environ["PYSPARK_PYTHON"] = sys.executable
    # Spark's worker processes inherit these variables.
    os.environ.update({"AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_DEFAULT_REGION": "us-east-1", "AWS_ENDPOINT_URL": s3})
    settings = {
        "spark.driver.memory": "512m", "spark.ui.enabled": "false", "spark.sql.shuffle.partitions": "2",
        "spark.sql.warehouse.dir": str(folder / "warehouse"), "spark.sql.session.timeZone": "Asia/Tokyo",
        "spark.driver.bindAddress": "127.0.0.1", "spark.driver.host": "127.0.0.1",
    }
    builder = SparkSession.builder.master("local[2]").appName("evtx")
    for name, value in settings.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    register(session)
    yield session
    session.stop()


def load(spark, files, **options):
    return spark.read.format("evtx").options(**options).load(files)


def spark_sql(con, statement):
    """A DuckDB statement, cast to the types of Spark."""
    relation = con.sql(statement)
    columns = []
    for name, kind in zip(relation.columns, relation.types):
        name, kind = quoted_name(name), str(kind)
        match kind:
            case "UBIGINT":
                value = f"CASE WHEN {name} >= 9223372036854775808 THEN ({name}::HUGEINT - 18446744073709551616)::BIGINT ELSE {name}::BIGINT END"
            case "UINTEGER":
                value = f"{name}::BIGINT"
            case "USMALLINT":
                value = f"{name}::INTEGER"
            case "UTINYINT":
                value = f"{name}::SMALLINT"
            case "TIMESTAMP_NS":
                value = f"make_timestamp((epoch_ns({name}) - ((epoch_ns({name}) % 1000) + 1000) % 1000) // 1000)"
            case "UUID" | "JSON":
                value = f"{name}::VARCHAR"
            case "HUGEINT":
                value = f"{name}::DECIMAL(38, 0)"
            case _:
                value = name
        columns.append(f"{value} AS {name}")
    return f"SELECT {', '.join(columns)} FROM ({statement})"


def rows_of(frame, folder):
    """The rows of a frame, read back from Parquet."""
    path = folder / f"{time.monotonic_ns()}.parquet"
    frame.write.parquet(str(path))
    from pyarrow import parquet

    table = parquet.read_table(path)
    for index, field in enumerate(table.schema):
        # Convert instants to UTC times without a zone.
        if pa.types.is_timestamp(field.type):
            table = table.set_column(index, field.name, table[field.name].cast(pa.timestamp("us", "UTC")).cast(pa.timestamp("us")))
    return table


def test_parquet_of_all_logs_is_read_evtx(spark, con, tmp_path):
    frame = load(spark, [str(log) for log in LOGS])
    assert_same(con, rows_of(frame, tmp_path), spark_sql(con, f"FROM read_evtx({list_of(LOGS)})"))


@pytest.mark.parametrize("slots", [1, 2, 5])
def test_ranges_of_slots(spark, con, tmp_path, slots):
    log = write_log(tmp_path / "large.evtx", "DC01-Security.evtx", 9)
    frame = load(spark, str(log), location="true", target_bytes=str(slots * CHUNK))
    assert frame.rdd.getNumPartitions() == -(-9 // slots)
    assert_same(con, rows_of(frame, tmp_path), spark_sql(con, f"FROM read_evtx('{log}', location := true)"))


def test_fields_of_events_over_several_partitions(spark, con, tmp_path):
    ids = ",".join(map(str, EVENTS))
    frame = load(spark, str(SAMPLES), event_id=ids, target_bytes="1")
    assert frame.rdd.getNumPartitions() > 5
    assert_same(con, rows_of(frame, tmp_path), spark_sql(con, f"FROM read_evtx('{SAMPLES}', event_id := [{ids}])"))


def test_options_of_the_reader(spark, con, tmp_path):
    where = json.dumps([["event_id", "in", [4624, 4625]], [["event_data", "LogonType"], "=", "3"]])
    frame = load(spark, str(SAMPLES), columns="event_id, computer,time_created", where=where)
    assert frame.columns == ["event_id", "computer", "time_created"]
    statement = f"SELECT event_id, computer, time_created FROM read_evtx('{SAMPLES}') WHERE event_id IN (4624, 4625) AND event_data['LogonType'] = '3'"
    assert frame.count() > 0
    assert_same(con, rows_of(frame, tmp_path), spark_sql(con, statement))
    stated = spark.read.format("evtx").schema("computer string, event_id bigint").load(str(SAMPLES))
    assert stated.columns == ["computer", "event_id"]
    assert_same(con, rows_of(stated, tmp_path), spark_sql(con, f"SELECT computer, event_id FROM read_evtx('{SAMPLES}')"))
    assert load(spark, str(SAMPLES), provider="Microsoft-Windows-Sysmon").count() > 0
    spelled = spark.read.format("evtx").schema("COMPUTER string, Event_ID bigint").load(str(SAMPLES))
    assert_same(con, rows_of(spelled, tmp_path), spark_sql(con, f"SELECT computer AS COMPUTER, event_id AS Event_ID FROM read_evtx('{SAMPLES}')"))
    for make, why in [
        (lambda: load(spark, str(SAMPLES), columns="computer,computer"), "the column computer is named twice"),
        (lambda: spark.read.format("evtx").schema("event_id bigint not null").load(str(SAMPLES)).count(), "can be NULL"),
    ]:
        with pytest.raises(Exception, match=why):
            make()


def test_the_examples_of_the_page_run(spark, tmp_path, capsys):
    logs = tmp_path / "logs"
    shutil.copytree(SAMPLES, logs)
    names = {"spark": spark}
    examples = re.findall(r"```python\n([^`]*)```", (ROOT / "docs/spark.md").read_text(encoding="utf-8"))
    assert len(examples) == 3
    for example in examples:
        exec(re.sub(r'"/(logs|state|events)', rf'"{tmp_path}/\1', example), names)
    shown = capsys.readouterr().out
    assert "203.0.113.45" in shown and "STATUS_WRONG_PASSWORD" in shown
    assert names["events"].where("event_id = 4624").count() > 0
    (query,) = spark.streams.active
    query.processAllAvailable()
    query.stop()
    read = spark.read.parquet(str(tmp_path / "events"))
    assert read.count() == load(spark, [str(log) for log in logs.glob("*.evtx")]).count() > 0


def test_a_frame_that_is_used_twice(spark):
    """A union, a join and a view of one frame, with different filters on each side."""
    frame = load(spark, str(SAMPLES))
    logons, failures = frame.where("event_id = 4624"), frame.where("event_id = 4625")
    counts = logons.count(), failures.count()
    assert min(counts) > 0
    assert logons.union(failures).count() == sum(counts)
    assert logons.unionAll(frame).count() == counts[0] + frame.count()
    joined = logons.alias("a").join(failures.alias("b"), "computer")
    per = [{row[0]: row[1] for row in side.groupBy("computer").count().collect()} for side in (logons, failures)]
    assert joined.count() == sum(count * per[1].get(computer, 0) for computer, count in per[0].items())
    frame.createOrReplaceTempView("events")
    found = spark.sql("SELECT (SELECT count(*) FROM events WHERE event_id = 4624), (SELECT count(*) FROM events WHERE event_id = 4625), count(*) FROM events")
    assert found.first()[:] == (*counts, frame.count())
    assert logons.count() == counts[0]


def test_names_lists_empty_files_and_damage(spark, con, tmp_path):
    folder = tmp_path / "Ünï ordner"
    folder.mkdir()
    for name in ("a%4b.evtx", "with blank.evtx", "日本.evtx"):
        (folder / name).write_bytes((SAMPLES / "DC01-System.evtx").read_bytes())
    (folder / "damaged.evtx").write_bytes((SAMPLES / "damaged-records.evtx").read_bytes())
    (folder / "empty.evtx").write_bytes(b"")
    assert_same(con, rows_of(load(spark, str(folder)), tmp_path), spark_sql(con, f"FROM read_evtx('{folder}')"))
    two = [str(folder / "a%4b.evtx"), str(folder / "日本.evtx")]
    assert_same(con, rows_of(load(spark, two), tmp_path), spark_sql(con, f"FROM read_evtx({list_of(two)})"))
    assert load(spark, str(folder), on_error="skip").where("error IS NOT NULL").count() == 0
    with pytest.raises(Exception, match="nowhere"):
        load(spark, "/nowhere/*.evtx").count()
    with pytest.raises(Exception, match="damaged.evtx"):
        load(spark, str(folder), on_error="fail").count()
    with pytest.raises(Exception, match="no column.*nothing"):
        load(spark, str(folder), columns="nothing").count()
    with pytest.raises(Exception, match="verify must be true or false"):
        load(spark, str(folder), verify="perhaps").count()


def test_logs_in_s3(spark, con, tmp_path):
    frame = load(spark, "s3://logs/case 1/*.evtx", target_bytes=str(1 << 20))
    assert frame.rdd.getNumPartitions() > 1
    assert_same(con, named(rows_of(frame, tmp_path)), spark_sql(con, SQL))


def test_decode_over_binary_files(spark, con, tmp_path):
    from evtx_arrow.spark import decode

    for log in SAMPLES.glob("*.evtx"):
        (tmp_path / log.name).write_bytes(log.read_bytes())
    binary = spark.read.format("binaryFile").load(f"{tmp_path}/*.evtx")
    own = "SELECT * EXCLUDE (filename, error), parse_filename(filename) AS filename, error IS NULL AS sound FROM"
    for options, sql in (({}, ""), ({"event_id": EVENTS, "sample": str(SAMPLES)}, f", event_id := {EVENTS}"), ({"xml": True, "location": True}, ", xml := true, location := true")):
        rows = rows_of(decode(binary, **options), tmp_path)
        con.register("decoded", rows)
        con.execute("CREATE OR REPLACE TEMP TABLE of_spark AS FROM decoded")
        ours = con.execute(f"{own} of_spark").to_arrow_table()
        theirs = spark_sql(con, f"{own} read_evtx('{SAMPLES}', messages := ''{sql})")
        assert_same(con, ours, theirs)
    some = decode(binary, columns=["event_id", "computer"], where=("event_id", "=", 4625))
    assert some.columns == ["event_id", "computer"] and some.count() == load(spark, str(SAMPLES)).where("event_id = 4625").count()
    # Without a sample, the columns come from the providers' manifests.
    assert "TargetUserName" in decode(binary, event_id=4625).columns
    with pytest.raises(TypeError, match="nonsense"):
        decode(binary, nonsense=1)


def test_decode_of_a_stream_that_runs_twice(spark, tmp_path):
    from evtx_arrow.spark import decode

    logs, out, state = tmp_path / "logs", tmp_path / "out", tmp_path / "state"
    logs.mkdir()

    def run():
        files = spark.readStream.format("binaryFile").schema("path string, modificationTime timestamp, length bigint, content binary").load(str(logs))
        query = decode(files, columns=["record_id", "filename"]).writeStream.format("parquet").option("checkpointLocation", str(state))
        query.trigger(availableNow=True).start(str(out)).awaitTermination()
        return spark.read.parquet(str(out)).count()

    (logs / "one.evtx").write_bytes((SAMPLES / "DC01-Security.evtx").read_bytes())
    first = run()
    (logs / "two.evtx").write_bytes((SAMPLES / "DC01-System.evtx").read_bytes())
    second = run()
    expected = [load(spark, str(SAMPLES / name)).count() for name in ("DC01-Security.evtx", "DC01-System.evtx")]
    assert (first, second) == (expected[0], sum(expected))


def test_times_are_instants_whatever_the_zone_of_the_session(spark, con):
    log = SAMPLES / "DC01-Security.evtx"
    frame = load(spark, str(log)).selectExpr("unix_micros(min(time_created))", "date_format(min(time_created), 'yyyy-MM-dd HH:mm')")
    micros, shown = frame.first()[:]
    expected = con.execute(f"SELECT epoch_us(min(time_created)), strftime(min(time_created) + INTERVAL 9 HOUR, '%Y-%m-%d %H:%M') FROM read_evtx('{log}')").fetchone()
    assert (micros, shown) == expected


def test_a_task_is_sent_one_partition_and_not_all(tmp_path):
    from evtx_arrow.spark import EvtxDataSource

    log = write_log(tmp_path / "large.evtx", "DC01-Security.evtx", 40)

    def reader(target):
        source = EvtxDataSource({"path": str(log), "target_bytes": str(target)})
        return source.reader(source.schema())

    few, many = reader(40 * CHUNK), reader(CHUNK)
    assert (len(few.partitions()), len(many.partitions())) == (1, 40)
    assert len(pickle.dumps(many)) == len(pickle.dumps(few))
    rows = sum(batch.num_rows for part in many.partitions() for batch in pickle.loads(pickle.dumps(many)).read(pickle.loads(pickle.dumps(part))))
    assert rows == 40 * 55


def test_garbage_of_a_worker_is_collected_without_its_modules(spark):
    from evtx_arrow.spark import _freeze

    def frozen(batches):
        for batch in batches:
            _freeze()
            yield pa.RecordBatch.from_pydict({"frozen": [gc.get_freeze_count()] * batch.num_rows})

    assert spark.range(1).mapInArrow(frozen, "frozen bigint").first()[0] > 10_000
    _freeze()
    assert gc.get_freeze_count() == 0, "this process is not a worker"


def test_no_reader_takes_filters():
    from evtx_arrow.spark import EvtxReader
    from pyspark.sql.datasource import DataSourceReader

    assert EvtxReader.pushFilters is DataSourceReader.pushFilters


def assert_found(con, frame, folder, logs, rules):
    """Asserts that matches in a frame are those of evtx_sigma."""
    sql = f"SELECT * REPLACE (rule_level::VARCHAR AS rule_level) FROM evtx_sigma('{logs}', rules := '{rules}') WHERE rule_title IS NOT NULL"
    relation = con.sql(spark_sql(con, sql))
    # DuckDB's struct of a correlation has unsigned numbers.
    own = rows_of(frame.where("rule_title IS NOT NULL"), folder)
    assert own.schema.names == relation.columns and len(own) > 15
    con.register("own_rows", own)
    names = [name for name in relation.columns if name != "correlation"]
    ours = ", ".join(f"{quoted_name(name)}::{kind} AS {quoted_name(name)}" for name, kind in zip(relation.columns, relation.types) if name in names)
    one, other = f"SELECT {ours}, correlation['count'] AS n FROM own_rows", f"SELECT {', '.join(map(quoted_name, names))}, correlation['count'] AS n FROM ({relation.sql_query()})"
    assert_same_rows(con, one, other)
    con.unregister("own_rows")


@pytest.mark.filterwarnings("ignore:.*rules did not load")
def test_sigma_in_a_frame(spark, con, tmp_path):
    from evtx_arrow.spark import sigma

    frame = load(spark, str(SAMPLES), target_bytes="1")
    assert frame.rdd.getNumPartitions() > 5
    rules, correlations = SAMPLES / "rules", SAMPLES / "correlations"
    assert_found(con, sigma(frame, rules), tmp_path, SAMPLES, rules)
    frame.write.parquet(str(tmp_path / "events"))
    stored = spark.read.parquet(str(tmp_path / "events"))
    assert_found(con, sigma(stored, str(rules)), tmp_path, SAMPLES, rules)
    assert_found(con, sigma(stored.coalesce(1), correlations), tmp_path, SAMPLES, correlations)
    high = sigma(stored.repartition(3), [rules], min_level="high").select("rule_level").distinct().collect()
    assert {row.rule_level for row in high} - {None} == {"critical", "high"}
    with pytest.raises(Exception, match="one partition: call events.coalesce"):
        sigma(stored.repartition(4), correlations).count()
    with pytest.raises(ValueError, match="events must have the columns channel and provider"):
        sigma(stored.drop("channel"), rules)
    with pytest.raises(TypeError, match="sigma\\(\\) has no argument level"):
        sigma(stored, rules, level="high")
    assert sigma(stored.where("false"), rules).count() == 0
