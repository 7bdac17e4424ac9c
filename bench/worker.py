"""Runs queries for the benchmarks in a DuckDB with the extension. usage: worker.py EXTENSION THREADS

Reads a line {"sql": ...} for each query from standard input. Answers with a line {"seconds": ..., "rows": ..., "peak": ..., "grown": ..., "load": ...}:
the time, the first row, the peak of the process's memory in bytes above the idle process and above the process before this query, and the
seconds that LOAD took.
"""

import json
import re
import sys
import time

import duckdb


def status(name):
    with open("/proc/self/status", encoding="ascii") as lines:
        return int(re.search(rf"^{name}:\s+(\d+) kB", lines.read(), re.MULTILINE)[1]) * 1024


def main(extension, threads):
    connection = duckdb.connect(config={"allow_unsigned_extensions": "true", "threads": int(threads)})
    connection.execute("SELECT count(*) FROM range(10)").fetchall()
    start = time.perf_counter()
    connection.load_extension(extension)
    load = time.perf_counter() - start
    idle = status("VmRSS")
    for line in sys.stdin:
        with open("/proc/self/clear_refs", "w", encoding="ascii") as resets:
            resets.write("5")
        before = status("VmRSS")
        start = time.perf_counter()
        rows = connection.execute(json.loads(line)["sql"]).fetchmany(1)
        seconds = time.perf_counter() - start
        answer = {"seconds": seconds, "rows": repr(rows), "peak": status("VmHWM") - idle, "grown": status("VmHWM") - before, "load": load}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
