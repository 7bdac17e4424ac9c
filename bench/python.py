"""Times the Python package evtx_arrow against its peers. usage: python.py EXTENSION LOGS [--spark] [--rounds N]

LOGS is the folder that logs.py writes. All columns of a log of 64 MiB are read into Arrow, with one thread, by evtx_arrow, by DuckDB with
the extension, and by pyevtx-rs. The JSON of pyevtx-rs is parsed into a pandas frame (json_normalize), as a JSON text has no columns yet.

With --spark, Spark with two cores writes all columns of 1 GiB to Parquet, next to DuckDB's COPY with two threads. Spark then runs some
queries over the same files, and one that reads nothing.
"""

import argparse
import json
import os
import pathlib
import shutil
import statistics
import sys
import tempfile
import time

import duckdb
import evtx
import evtx_arrow
import evtx_arrow.spark
import pandas
import pyarrow

ROUNDS = 5


def timed(work):
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def in_turn(works, rounds):
    """The median time in seconds of each function, by name. They run in turn, after a warm-up."""
    times = {name: [] for name in works}
    for _ in range(rounds + 1):
        for name, work in works.items():
            times[name].append(timed(work))
    return {name: statistics.median(samples[1:]) for name, samples in times.items()}


def connect(extension, threads):
    connection = duckdb.connect(config={"allow_unsigned_extensions": "true", "threads": threads})
    connection.load_extension(str(extension))
    return connection


def into_arrow(extension, folder, rounds):
    connection = connect(extension, 1)
    print("| log | evtx_arrow | of DuckDB | of pyevtx-rs |\n| --- | --- | --- | --- |")
    for kind in ("security", "full-tuned", "full-other"):
        log = str(folder / f"{kind}.evtx")
        if not pathlib.Path(log).exists():
            continue
        took = in_turn(
            {
                "ours": lambda log=log: pyarrow.table(evtx_arrow.scan(log, threads=1)),
                "duckdb": lambda log=log: connection.sql(f"FROM read_evtx('{log}')").to_arrow_table(),
                "pyevtx": lambda log=log: pandas.json_normalize(
                    [json.loads(record["data"]) for record in evtx.PyEvtxParser(log, number_of_threads=1).records_json()]
                ),
            },
            rounds,
        )
        shares = [took["ours"] / took[peer] for peer in ("duckdb", "pyevtx")]
        print(f"| {kind} | {took['ours'] * 1e3:.0f} ms | {shares[0]:.2f} | {shares[1]:.3f} |", flush=True)


def in_spark(extension, folder, rounds):
    # Workers of Spark run the Python of this process.
    os.environ["PYSPARK_PYTHON"] = sys.executable
    from pyspark.sql import SparkSession

    spark = (
        SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").config("spark.ui.showConsoleProgress", "false").config("spark.driver.memory", "1g").getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    evtx_arrow.spark.register(spark)
    connection = connect(extension, 2)
    with tempfile.TemporaryDirectory(dir=folder) as temporary:
        logs, out, one = (pathlib.Path(temporary) / name for name in ("logs", "out", "one.parquet"))
        logs.mkdir()
        source = folder / "full-other.evtx"
        for number in range(16):
            (logs / f"{number:02}.evtx").hardlink_to(source)
        read = lambda **options: spark.read.format("evtx").options(**options).load(str(logs))

        def clean(work):
            shutil.rmtree(out, ignore_errors=True)
            work()

        # The same rows without this package: from Parquet to Parquet.
        kept = pathlib.Path(temporary) / "kept"
        read().write.parquet(str(kept))
        took = in_turn(
            {
                "again": lambda: clean(lambda: spark.read.parquet(str(kept)).write.parquet(str(out))),
                "noop": lambda: read().write.format("noop").mode("overwrite").save(),
                "Spark": lambda: clean(lambda: read().write.parquet(str(out))),
                "DuckDB": lambda: clean(lambda: connection.execute(f"COPY (FROM read_evtx('{logs}/*.evtx')) TO '{out}' (FORMAT parquet, PER_THREAD_OUTPUT)")),
                "one file": lambda: connection.execute(f"COPY (FROM read_evtx('{logs}/*.evtx')) TO '{one}'"),
            },
            rounds,
        )
        print(f"\nall columns of 1 GiB to Parquet: Spark {took['Spark']:.2f} s, DuckDB {took['one file']:.2f} s into one file, {took['DuckDB']:.2f} s "
              f"into one for each thread; to nowhere: {took['noop']:.2f} s; from Parquet to Parquet: {took['again']:.2f} s", flush=True)
        queries = {
            "a query that reads nothing": lambda: spark.range(16, numPartitions=16).groupBy("id").count().collect(),
            "count": lambda: read(columns="record_id").count(),
            "group by event": lambda: read(columns="event_id").groupBy("event_id").count().collect(),
            "one event": lambda: read(event_id="4624").count(),
        }
        for name, seconds in in_turn(queries, rounds).items():
            print(f"{name}: {seconds:.2f} s", flush=True)
    spark.stop()


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("extension")
    parser.add_argument("logs", type=pathlib.Path)
    parser.add_argument("--spark", action="store_true")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    arguments = parser.parse_args()
    into_arrow(arguments.extension, arguments.logs, arguments.rounds)
    if arguments.spark:
        in_spark(arguments.extension, arguments.logs, min(arguments.rounds, 3))


if __name__ == "__main__":
    main()
