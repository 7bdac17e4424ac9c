"""A DuckDB with the extension loaded that runs queries for the benchmarks. usage: worker.py EXTENSION THREADS

Each line of standard input is {"sql": ...}; each of standard output then {"seconds": ..., "rows": ..., "peak": ...}: what the
query took, its first rows, and by how many bytes it raised the process's peak of memory above what it held idle.
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
    connection.load_extension(extension)
    idle = status("VmRSS")
    for line in sys.stdin:
        with open("/proc/self/clear_refs", "w", encoding="ascii") as resets:
            resets.write("5")
        start = time.perf_counter()
        rows = connection.execute(json.loads(line)["sql"]).fetchmany(1)
        seconds = time.perf_counter() - start
        answer = {"seconds": seconds, "rows": repr(rows), "peak": status("VmHWM") - idle}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
