"""Times the extension against evtx_dump, in turn. usage: run.py EXTENSION EVTX_DUMP LOGS REPORT [--against OTHER]

Each round runs `evtx_dump -t 1 -o jsonl` once per log, writing to /dev/null, and then every query with one thread and with two. The
first round is a warm-up and does not count. Alternating means that other load on the machine hits both programs. A query's share is the
median of its times divided by the median of evtx_dump's. Its memory is the peak above an idle DuckDB.

Before the rounds, each log is dropped from the page cache and read again, front to back. "Bytes alone" is the time that reading takes
without decoding: no query can be faster. New processes measure LOAD and the first query. At the end, folders of logs alternate with
one log that has the same chunks, macros with every column, and two threads with one that write tables and Parquet files.

REPORT receives every sample as JSON. --log, --query and --threads can be repeated and select what is measured. --against OTHER compares
with another build of the extension instead of evtx_dump. --pipe also asks the same questions of `evtx_dump | read_json`.
"""

import argparse
import contextlib
import datetime
import json
import math
import os
import pathlib
import platform
import statistics
import subprocess
import sys
import tempfile
import time

import duckdb
from logs import read, read_in

ROUNDS = 9

# The large logs that logs.py makes.
KINDS = ("security", "sysmon", "mixed", "full-tuned", "full-other", "all-tuned", "all-other", "large-other")

# For each query, the targets: its share of evtx_dump's time with one thread, for logs of full chunks and of all chunks.
QUERIES = {
    "count": ((0.08, 0.12), "SELECT count(*) FROM read_evtx('{log}')"),
    "group": ((0.14, 0.17), "SELECT event_id, count(*) FROM read_evtx('{log}') GROUP BY 1 ORDER BY 2 DESC"),
    "system": (
        (0.15, 0.18),
        "SELECT count(record_id), count(time_created), count(provider), count(channel), count(computer)"
        " FROM read_evtx('{log}') WHERE event_id = {event}",
    ),
    "fields": (
        (0.17, 0.20),
        "SELECT count(event_data['{field}']), count(event_data['{other}']) FROM read_evtx('{log}') WHERE event_id = {event}",
    ),
    "all": ((0.50, 0.50), "SELECT count(COLUMNS(*)) FROM read_evtx('{log}')"),
    "json": ((0.75, 0.68), "SELECT count(json) FROM read_evtx('{log}', json := true)"),
    "xml": ((0.62, 0.55), "SELECT count(xml) FROM read_evtx('{log}', xml := true)"),
}

# For each folder of logs, the targets: its share of the time of one log with the same chunks.
FOLDERS = {"thousand": {"count": 1.3, "group": 1.3, "all": 1.3}, "machines": {"count": 1.6, "group": 1.6, "all": 1.4}}

# For each macro, the target: its share of the time of every column, over a folder of machines.
MACROS = {"evtx_timeline": 2.5, "evtx_facts": 2.0, "evtx_logons": 0.6}

# The same questions, asked of the JSON that evtx_dump writes.
READ_JSON = "read_json('{pipe}', format = 'newline_delimited', columns = {{Event: 'JSON'}}, maximum_object_size = 33554432)"
EVENT_ID = "coalesce(Event->>'$.System.EventID.\"#text\"', Event->>'$.System.EventID')"
JSON_QUERIES = {
    "count": "SELECT count(*) FROM " + READ_JSON,
    "group": f"SELECT {EVENT_ID}, count(*) FROM {READ_JSON} GROUP BY 1 ORDER BY 2 DESC",
    "system": "SELECT count(Event->'$.System.EventRecordID'), count(Event->'$.System.TimeCreated'), count(Event->'$.System.Provider'),"
    f" count(Event->'$.System.Channel'), count(Event->'$.System.Computer') FROM {READ_JSON} WHERE {EVENT_ID} = '{{event}}'",
    "fields": "SELECT count(Event->'$.EventData.{field}'), count(Event->'$.EventData.{other}')"
    f" FROM {READ_JSON} WHERE {EVENT_ID} = '{{event}}'",
}


class Worker:
    """A process that runs DuckDB with one build of the extension."""

    def __init__(self, extension, threads):
        command = [sys.executable, str(pathlib.Path(__file__).with_name("worker.py")), str(extension), str(threads)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def run(self, sql):
        print(json.dumps({"sql": sql}), file=self.process.stdin, flush=True)
        line = self.process.stdout.readline()
        if not line:
            sys.exit(f"failed: {sql}")
        return json.loads(line)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.wait()


def dump(evtx_dump, logs, out=subprocess.DEVNULL):
    """Runs evtx_dump once per log, writing JSON lines. Returns the seconds."""
    start = time.perf_counter()
    for log in logs:
        subprocess.run([evtx_dump, "-t", "1", "-o", "jsonl", log], stdout=out, stderr=subprocess.DEVNULL, check=False)
    return time.perf_counter() - start


def dump_and_ask(worker, evtx_dump, logs, sql):
    """Runs a query over a pipe that evtx_dump writes to. Returns the seconds."""
    with tempfile.TemporaryDirectory() as folder:
        pipe = os.path.join(folder, "pipe")
        os.mkfifo(pipe)
        writes = ["sh", "-c", 'out=$1; dump=$2; shift 2; for log; do "$dump" -t 1 -o jsonl "$log"; done >"$out"', "sh", pipe, evtx_dump, *logs]
        start = time.perf_counter()
        writer = subprocess.Popen(writes, stderr=subprocess.DEVNULL)
        try:
            worker.run(sql.replace("{pipe}", pipe))
        finally:
            writer.kill()
            writer.wait()
        return time.perf_counter() - start


def about(extension, log):
    """Values to put into the queries: an event ID that about a tenth of the records have, two of its fields, and the numbers of records."""
    connection = duckdb.connect(config={"allow_unsigned_extensions": "true"})
    connection.load_extension(str(extension))
    events = f"SELECT event_id, count(*) AS records FROM read_evtx('{log}') WHERE event_data IS NOT NULL GROUP BY 1"
    total = connection.execute(f"SELECT count(*) FROM read_evtx('{log}')").fetchone()[0]
    event = connection.execute(f"SELECT event_id, records FROM ({events}) ORDER BY abs(records - {total} / 10), 1").fetchone()
    keys = f"SELECT unnest(map_keys(event_data)) AS key FROM read_evtx('{log}') WHERE event_id = {event[0]}"
    fields = connection.execute(f"SELECT key FROM ({keys}) GROUP BY 1 ORDER BY count(*) DESC, 1 LIMIT 2").fetchall()
    names = [name for (name,) in fields]
    return {"records": total, "event": event[0], "event_records": event[1], "field": names[0], "other": names[-1]}


def times(samples):
    ordered = sorted(samples)
    p99 = ordered[min(len(ordered) - 1, math.ceil(0.99 * len(ordered)) - 1)]
    return {"median": statistics.median(ordered), "min": ordered[0], "p99": p99, "samples": samples}


def measure(arguments, queries, files):
    """For each query and number of threads: our times, the peer's times, and our peak memory in bytes."""
    ours, theirs, peaks = {}, {}, {}
    with contextlib.ExitStack() as stack:
        start = lambda extension: {threads: stack.enter_context(Worker(extension, threads)) for threads in arguments.threads}
        workers, others = start(arguments.extension), start(arguments.against) if arguments.against else None
        for _ in range(arguments.rounds + 1):
            dumped = None if others else dump(arguments.evtx_dump, files)
            for name, sql in queries.items():
                for threads, worker in workers.items():
                    key = (name, threads)
                    theirs.setdefault(key, []).append(others[threads].run(sql)["seconds"] if others else dumped)
                    answer = worker.run(sql)
                    ours.setdefault(key, []).append(answer["seconds"])
                    peaks.setdefault(key, []).append(answer["peak"])
    # The first round is the warm-up.
    return {key: (times(ours[key][1:]), times(theirs[key][1:]), max(peaks[key])) for key in ours}


def bench(arguments):
    folder = pathlib.Path(arguments.logs)
    logs = {log.stem: ([str(log)], str(log)) for log in map(folder.joinpath, (f"{kind}.evtx" for kind in KINDS)) if log.exists()}
    logs["small"] = (sorted(str(log) for log in (folder / "small").glob("*.evtx")), str(folder / "small" / "*.evtx"))
    results = []
    peer = "other build" if arguments.against else "evtx_dump -t 1 -o jsonl"
    print(f"Time as a share of {peer}; speed-up with two threads; time, records and peak memory with one thread.\n")
    print("| log | query | share | target | 2 threads | time | bytes alone | records | memory |\n" + 9 * "| --- " + "|")
    for kind, (files, log) in logs.items():
        if arguments.log and kind not in arguments.log:
            continue
        facts = about(arguments.extension, log)
        size = sum(os.path.getsize(file) for file in files)
        for file in files:
            read_in(file)
        floor = times([sum(read(file) for file in files) for _ in range(5)])
        results.append({"log": kind, "query": "bytes alone", "threads": 1, "ours": floor})
        asked = {name: sql.format(log=log, **facts) for name, (_, sql) in QUERIES.items() if name in (arguments.query or QUERIES)}
        measured = measure(arguments, asked, files)
        for (name, threads), (ours, theirs, peak) in measured.items():
            target, ratio = QUERIES[name][0][kind.startswith("all-")], ours["median"] / theirs["median"]
            results.append(
                {
                    "log": kind, "query": name, "threads": threads, "sql": asked[name], "ours": ours, "theirs": theirs, "ratio": ratio,
                    "target": target, "bytes": size, "records": facts["records"], "peak_bytes": peak,
                }
            )  # fmt: skip
            if threads != arguments.threads[0]:
                continue
            with_two = measured.get((name, 2)) if threads == 1 else None
            faster = f"{ours['median'] / with_two[0]['median']:.1f}x" if with_two else ""
            print(
                f"| {kind} | {name} | {ratio:.2f} | {target:.2f} | {faster} | {ours['median'] * 1e3:.1f} ms | {floor['median'] * 1e3:.1f} ms"
                f" | {facts['records'] / ours['median'] / 1e6:.1f} M/s | {peak / 2**20:.0f} MiB |",
                flush=True,
            )
        if arguments.against or not arguments.pipe:
            continue
        for name, sql in JSON_QUERIES.items():
            if arguments.query and name not in arguments.query:
                continue
            with Worker(arguments.extension, 1) as worker:
                sql = sql.format(pipe="{pipe}", **facts)
                took = times([dump_and_ask(worker, arguments.evtx_dump, files, sql) for _ in range(4)][1:])
            results.append({"log": kind, "query": f"{name} by evtx_dump | read_json", "threads": 1, "ours": took})
            print(f"| {kind} | {name} by read_json | | | | {took['median'] * 1e3:.0f} ms | | | |", flush=True)
    return results


def starting(arguments):
    """The milliseconds that LOAD, the first count and later ones of a small log take in a new process, for each build."""
    if arguments.log and "start" not in arguments.log:
        return []
    log = min((pathlib.Path(arguments.logs) / "small").glob("*.evtx"), key=lambda log: (log.stat().st_size, log.name))
    builds = {"ours": arguments.extension, "theirs": arguments.against}
    took = {}
    for _ in range(2 * arguments.rounds + 1):
        for build, extension in builds.items():
            if extension:
                with Worker(extension, 2) as worker:
                    answers = [worker.run(f"SELECT count(*) FROM read_evtx('{log}')") for _ in range(10)]
                seconds = [answer["seconds"] for answer in answers]
                steps = (answers[0]["load"], seconds[0], statistics.median(seconds[1:]))
                for step, value in zip(("LOAD", "first count", "later count"), steps, strict=True):
                    took.setdefault(step, {}).setdefault(build, []).append(value)
    targets = {"LOAD": 12, "first count": 1.5, "later count": 0.8}
    print(f"\nFrom the first keystroke, in ms.\n\n| step | time | target | other build |\n{4 * '| --- '}|")
    results = []
    for step, samples in took.items():
        measured = {build: times(values[1:]) for build, values in samples.items()}
        results.append({"log": "start", "query": step, "threads": 2, "target": targets[step] / 1e3, **measured})
        texts = [f"{measured[build]['median'] * 1e3:.2f}" if build in measured else "" for build in builds]
        print(f"| {step} | {texts[0]} | {targets[step]} | {texts[1]} |", flush=True)
    return results


def folders(arguments):
    """The time for a folder of logs as a share of the time for one log with the same chunks."""
    results = []
    for kind, targets in FOLDERS.items():
        one, many = (pathlib.Path(arguments.logs) / name for name in (f"{kind}.evtx", kind))
        if arguments.against or arguments.log and kind not in arguments.log or not one.exists():
            continue
        logs = sorted(many.rglob("*.evtx"))
        for log in [one, *logs]:
            read_in(log)
        facts = about(arguments.extension, one)
        alone = [[sum(map(read, files)) for files in (logs, [one])] for _ in range(5)]
        ours, theirs = (times(list(samples)) for samples in zip(*alone, strict=True))
        print(f"\n{len(logs)} logs as a share of one log with their chunks: {kind}.\n\n| query | threads | share | target | time |\n{5 * '| --- '}|")
        print(f"| bytes alone | 1 | {ours['median'] / theirs['median']:.2f} | | {ours['median'] * 1e3:.1f} ms |")
        for name in [name for name in arguments.query or targets if name in QUERIES]:
            for threads in arguments.threads:
                took = {one: [], many: []}
                with Worker(arguments.extension, threads) as worker:
                    for _ in range(arguments.rounds + 1):
                        for log, path in ((one, one), (many, many / "**" / "*.evtx")):
                            took[log].append(worker.run(QUERIES[name][1].format(log=path, **facts))["seconds"])
                ours, theirs = times(took[many][1:]), times(took[one][1:])
                share, target = ours["median"] / theirs["median"], targets.get(name, "")
                results.append({"log": kind, "query": name, "threads": threads, "ours": ours, "theirs": theirs, "ratio": share, "target": target})
                print(f"| {name} | {threads} | {share:.2f} | {target} | {ours['median'] * 1e3:.1f} ms |", flush=True)
    return results


def macros(arguments):
    """The time of macros over a folder of machines, as a share of the time of every column, or of the other build."""
    results, kind = [], "machines"
    folder = pathlib.Path(arguments.logs) / kind
    if arguments.log and kind not in arguments.log or not folder.exists():
        return results
    for log in folder.rglob("*.evtx"):
        read_in(log)
    path = folder / "**" / "*.evtx"
    peer = "the other build" if arguments.against else "every column"
    print(f"\nMacros over {kind}, as a share of {peer}.\n\n| macro | threads | share | target | time |\n{5 * '| --- '}|")
    for name, target in MACROS.items():
        if arguments.query and name not in arguments.query:
            continue
        sql, every = f"SELECT count(COLUMNS(*)) FROM {name}('{path}')", QUERIES["all"][1].format(log=path)
        for threads in arguments.threads:
            with Worker(arguments.extension, threads) as worker, Worker(arguments.against or arguments.extension, threads) as other:
                compared = (worker, sql), (other, sql if arguments.against else every)
                took = [[asked.run(query)["seconds"] for asked, query in compared] for _ in range(arguments.rounds + 1)][1:]
            ours, theirs = (times(list(samples)) for samples in zip(*took, strict=True))
            share = ours["median"] / theirs["median"]
            results.append({"log": kind, "query": name, "threads": threads, "ours": ours, "theirs": theirs, "ratio": share, "target": target})
            print(f"| {name} | {threads} | {share:.2f} | {'' if arguments.against else target} | {ours['median'] * 1e3:.1f} ms |", flush=True)
    return results


def ordered_sinks(arguments):
    """The time of two threads as a share of one, for a table and a Parquet file in the order of the log, and DuckDB's own copy of the file."""
    log = pathlib.Path(arguments.logs) / "large-other.evtx"
    results = []
    if not log.exists() or arguments.log and log.stem not in arguments.log:
        return results
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        case, copy = f"{folder}/case.parquet", f"{folder}/copy.parquet"
        sinks = {
            "table": f"CREATE OR REPLACE TABLE log AS FROM read_evtx('{log}')",
            "parquet": f"COPY (FROM read_evtx('{log}')) TO '{case}'",
            "parquet to table": f"CREATE OR REPLACE TABLE log AS FROM '{case}'",
            "parquet to parquet": f"COPY (FROM '{case}') TO '{copy}'",
        }
        read_in(log)
        workers = [stack.enter_context(Worker(arguments.extension, threads)) for threads in (1, 2)]
        print(f"\nThe time of two threads as a share of one, in the order of the log.\n\n| sink | share | target | time |\n{4 * '| --- '}|")
        for name, sql in sinks.items():
            took = [[worker.run(sql)["seconds"] for worker in workers] for _ in range(arguments.rounds + 1)][1:]
            one, two = (times(list(samples)) for samples in zip(*took, strict=True))
            share, target = two["median"] / one["median"], "" if name.startswith("parquet to") else 0.55
            results.append({"log": log.stem, "query": name, "threads": 2, "ours": two, "theirs": one, "ratio": share, "target": target})
            print(f"| {name} | {share:.2f} | {target} | {two['median'] * 1e3:.1f} ms |", flush=True)
    return results


def machine():
    with open("/proc/cpuinfo", encoding="utf-8") as lines:
        model = next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), platform.machine())
    return {"cpu": model, "cores": os.cpu_count(), "system": platform.system(), "duckdb": duckdb.__version__}


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    for name in ("extension", "evtx_dump", "logs", "report"):
        parser.add_argument(name)
    parser.add_argument("--against", help="another build of the extension")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--log", action="append")
    parser.add_argument("--query", action="append")
    parser.add_argument("--threads", action="append", type=int)
    parser.add_argument("--pipe", action="store_true", help="also measure evtx_dump | read_json")
    arguments = parser.parse_args()
    arguments.threads = arguments.threads or [1, 2]
    made = json.loads((pathlib.Path(arguments.logs) / "logs.json").read_text())
    sha = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True, check=False).stdout.strip()
    report = {
        "time": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        "command": "make bench",
        "git": sha,
        "machine": machine(),
        "logs": {name: fact for name, fact in made.items() if name != "named"},
        "results": bench(arguments)
        + starting(arguments)
        + folders(arguments)
        + macros(arguments)
        + ordered_sinks(arguments),
    }
    pathlib.Path(arguments.report).write_text(json.dumps(report, indent=1))


if __name__ == "__main__":
    main()
