"""Measures large inputs. usage: scale.py EXTENSION LOGS REPORT [GIB]

Writes GIB (default 10) gibibytes of logs of 64 MiB, and one log of 0.4 x GIB, from the chunks of mixed.evtx in LOGS. Reads growing numbers
of the files, and the large one, with one thread and with two. Prints time and peak memory, and how long a scan continues after an
interrupt. Adds the results to REPORT and deletes the logs.
"""

import json
import pathlib
import shutil
import statistics
import sys
import threading
import time

import duckdb
from logs import CHUNK, HEADER, read_in, write_log
from run import Worker

QUERIES = {
    "count": "SELECT count(*) FROM read_evtx({files})",
    "group": "SELECT event_id, count(*) FROM read_evtx({files}) GROUP BY 1",
    "all": "SELECT count(COLUMNS(*)) FROM read_evtx({files})",
}
INTERRUPTS = 10


def interrupt(extension, files):
    """The median and longest time in seconds from an interrupt to the end of the scan, of INTERRUPTS tries."""
    connection = duckdb.connect(config={"allow_unsigned_extensions": "true", "threads": 2})
    connection.load_extension(str(extension))
    took = []
    for number in range(INTERRUPTS):
        ended = []

        def scan():
            try:
                connection.execute(QUERIES["all"].format(files=files)).fetchall()
            except duckdb.InterruptException:
                ended.append(time.perf_counter())

        thread = threading.Thread(target=scan)
        thread.start()
        time.sleep(0.2 + 0.03 * number)
        start = time.perf_counter()
        connection.interrupt()
        thread.join()
        took.append(ended[0] - start)
    return {"median": statistics.median(took), "max": max(took)}


def main(extension, logs, report, gib="10"):
    files = 16 * int(gib)
    folder = pathlib.Path(logs).parent / "scale"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    results = []
    try:
        mixed = (pathlib.Path(logs) / "mixed.evtx").read_bytes()[HEADER:]
        chunks = [mixed[at : at + CHUNK] for at in range(0, len(mixed), CHUNK)]
        for number in range(files):
            # Each file starts with another chunk, so that no two are the same.
            write_log(folder / f"{number:04}.evtx", chunks[number * 6 % len(chunks) :] + chunks[: number * 6 % len(chunks)])
        large = folder / "large.evtx"
        write_log(large, chunks, 16 * 64 * files * 2 // 5)
        for log in folder.glob("*.evtx"):
            read_in(log)
        sets = [[f"{folder}/{number:04}.evtx" for number in range(part)] for part in (files // 8, files // 4, files // 2, files)]
        print(f"{'files':>5} {'size':>8} {'query':6} {'thr':>3} {'time':>8} {'GB/s':>6} {'peak':>9}")
        for paths in [*sets, [str(large)]]:
            size = sum(pathlib.Path(path).stat().st_size for path in paths)
            for name, sql in QUERIES.items():
                for threads in (1, 2):
                    with Worker(extension, threads) as worker:
                        answers = [worker.run(sql.format(files=paths)) for _ in range(3)]
                    seconds = statistics.median(answer["seconds"] for answer in answers)
                    peak = max(answer["peak"] for answer in answers)
                    results.append({"files": len(paths), "bytes": size, "query": name, "threads": threads, "seconds": seconds, "peak_bytes": peak})
                    print(
                        f"{len(paths):5} {size / 2**30:4.1f} GiB {name:6} {threads:3} {seconds:6.2f} s {size / seconds / 1e9:6.2f} {peak / 2**20:5.1f} MiB",
                        flush=True,
                    )
        stops = interrupt(extension, sets[-1])
        print(f"interrupted: median {stops['median'] * 1e3:.1f} ms, longest {stops['max'] * 1e3:.1f} ms of {INTERRUPTS}")
    finally:
        shutil.rmtree(folder)
    report = pathlib.Path(report)
    whole = json.loads(report.read_text()) if report.exists() else {}
    whole["scale"] = {"results": results, "interrupt": stops}
    report.write_text(json.dumps(whole, indent=1))


if __name__ == "__main__":
    main(*sys.argv[1:])
