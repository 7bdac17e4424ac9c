"""Times evtx_sigma. usage: sigma.py EXTENSION RULES LARGE SMALL ... [--against OTHER] [--chainsaw BIN --mapping FILE] [--hayabusa BIN]

First, it times the loading of the rules alone; --against OTHER does the same with another build, in turn.

RULES is a folder of rules, LARGE the folder of large logs that `make bench-logs` writes, SMALL folders of small logs. Each query loads the
rules again. After a warm-up, each query runs PAIRS times with one thread and with two, in turn.

With --chainsaw (2.16) or --hayabusa (4.0), those programs run once on the same logs and rules, with one thread. Hayabusa needs rules in its own
form: pass those of hayabusa-rules, and run this where its folders `config` and `rules/config` are. Without either, the shares divide by times
from another machine (two shared cores, all Windows rules of SigmaHQ): FASTER seconds for 64 MiB, PER_EVENT seconds per event of small logs.
Such shares compare two machines, so trust only their order of magnitude.
"""

import argparse
import contextlib
import glob
import pathlib
import shutil
import statistics
import subprocess
import tempfile
import time

from run import Worker

PAIRS = 5
LOADS = 9
# Hayabusa 4.0.0 is the faster of the two. With one thread, it took 34 s for 64 MiB, and 21.4 s for 30,964 events in 531 logs (98 MiB).
FASTER = 34.0
PER_EVENT = 21.4 / 30_964
# The targets: the largest share of that time, and the largest peak of memory in bytes.
TARGETS = {"small": 1 / 20, "large": 1 / 35}
PEAK = 150 << 20


def rival(command):
    start = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return time.perf_counter() - start


def rivals(options, logs):
    """The seconds that each rival takes for some logs, in a folder of copies."""
    with tempfile.TemporaryDirectory(dir=options.large) as out:
        folder = pathlib.Path(out, "logs")
        folder.mkdir()
        for number, log in enumerate(logs):
            shutil.copyfile(log, folder / f"{number}.evtx")
        if options.chainsaw:
            yield rival([options.chainsaw, "--num-threads", "1", "hunt", folder, "-s", options.rules, "--mapping", options.mapping,
                         "--json", "-o", f"{out}/chainsaw.json"])
        if options.hayabusa:
            yield rival([options.hayabusa, "dfir-timeline", "-d", folder, "-r", options.rules, "--threads", "1", "-w", "-q", "-N",
                         "-o", f"{out}/hayabusa.csv"])


def anew(number):
    """An argument without effect, with which rules are not those of the last call."""
    return f"placeholders := MAP {{'bench': ['{number}']}}"


def load(options):
    """Prints how long the rules take to load, without a log: for the first time, and again."""
    builds = [build for build in (options.against, options.extension) if build]
    print(f"| build | rules | refused | 1 thread | 2 threads | again, 1 thread | again, 2 threads |\n|{' --- |' * 7}")
    with contextlib.ExitStack() as stack:
        workers = [[stack.enter_context(Worker(build, threads)) for threads in (1, 2)] for build in builds]
        took = [([], [], [], []) for _ in builds]
        for pair in range(LOADS + 1):
            sql = f"SELECT count(*), count(error) FROM evtx_sigma_rules('{options.rules}', {anew(pair)})"
            for build, times in zip(workers, took):
                for worker, seconds in zip(build * 2, times):
                    answer = worker.run(sql)
                    seconds += [answer["seconds"]] if pair else []
        rules, refused = eval(answer["rows"])[0]  # noqa: S307
        for build, times in zip(builds, took):
            medians = " | ".join(f"{1000 * statistics.median(seconds):.0f} ms" for seconds in times)
            print(f"| {build} | {rules} | {refused} | {medians} |", flush=True)
    print()


def over_table(worker, files, rules):
    """The seconds that the rules take over a table of the events."""
    worker.run(f"CREATE OR REPLACE TABLE events AS FROM read_evtx({files})")
    sql = f"SELECT count(rule_id), count(matched), count(event_data) FROM evtx_sigma_of('events', '{rules}', "
    took = [worker.run(f"{sql}{anew(pair)})")["seconds"] for pair in range(PAIRS + 1)]
    worker.run("DROP TABLE events")
    return statistics.median(took[1:])


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("extension")
    parser.add_argument("rules")
    parser.add_argument("large", type=pathlib.Path)
    parser.add_argument("small", nargs="*", type=pathlib.Path)
    parser.add_argument("--against")
    parser.add_argument("--chainsaw")
    parser.add_argument("--mapping")
    parser.add_argument("--hayabusa")
    options = parser.parse_args()
    load(options)
    large = sorted(options.large.glob("*.evtx"))
    sets = [("large", log.stem, [str(log)]) for log in large]
    sets += [("large", "four at once", [str(log) for log in large[:1] * 4])] if large else []
    sets += [("small", folder.name, [f"{folder}/**/*.evtx"]) for folder in options.small]
    print(f"| logs | events | hits | 1 thread | 2 threads | gain | share of the faster rival | target | peak MiB | over a table |\n|{' --- |' * 10}")
    with Worker(options.extension, 1) as one, Worker(options.extension, 2) as two:
        for kind, name, files in sets:
            events = eval(one.run(f"SELECT count(*) FROM read_evtx({files})")["rows"])[0][0]  # noqa: S307
            rules = f"rules := '{options.rules}'"
            took, others, peak, hits = ([], []), [], 0, 0
            for pair in range(PAIRS + 1):
                sql = f"SELECT count(rule_id), count(matched), count(event_data) FROM evtx_sigma({files}, {rules}, {anew(pair)})"
                for worker, times in zip((one, two), took):
                    answer = worker.run(sql)
                    hits = eval(answer["rows"])[0][0]  # noqa: S307
                    if pair:
                        times.append(answer["seconds"])
                        peak = max(peak, answer["peak"])
            if options.chainsaw or options.hayabusa:
                others = list(rivals(options, files if kind == "large" else glob.glob(files[0], recursive=True)))
            seconds = [statistics.median(times) for times in took]
            size = sum(pathlib.Path(file).stat().st_size for file in files) if kind == "large" else 0
            against = min(others) if others else FASTER * size / (64 << 20) if kind == "large" else PER_EVENT * events
            share = seconds[0] / against
            table = over_table(one, files, options.rules) / seconds[0]
            mark = "" if share <= TARGETS[kind] and peak <= PEAK else " **above**"
            print(f"| {name} | {events} | {hits} | {seconds[0]:.2f} s | {seconds[1]:.2f} s | {seconds[0] / seconds[1]:.2f} | "
                  f"1/{1 / share:.0f}{mark} | 1/{1 / TARGETS[kind]:.0f} | {peak / (1 << 20):.0f} | {table:.2f}x |", flush=True)


if __name__ == "__main__":
    main()
