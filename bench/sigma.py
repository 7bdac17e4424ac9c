"""Times Sigma rules as a scan. usage: sigma.py EXTENSION RULES LARGE SMALL ... [--chainsaw BIN --mapping FILE] [--hayabusa BIN]

RULES is a folder of rules, LARGE a folder of logs of 64 MiB and more (`make bench-logs`), SMALL folders of small logs. Each query loads the
rules anew; PAIRS times with one thread and with two in turn, after a warm-up. A log of 256 MiB is made of four of the large ones.

Chainsaw and Hayabusa run in turn with the queries if their programs are given. If not, what is divided by is what they took
elsewhere (two shared cores, all rules of SigmaHQ for Windows): FASTER seconds for a log of 64 MiB, and PER_EVENT seconds for each
event of small logs. Such shares compare two machines, and only their order of magnitude counts.
"""

import argparse
import pathlib
import statistics
import subprocess
import tempfile
import time

from run import Worker

PAIRS = 5
# Hayabusa 4.0.0, the faster of the two, one thread: 64 MiB; and 21.4 s for 30,964 events in 531 logs of 98 MiB.
FASTER = 34.0
PER_EVENT = 21.4 / 30_964
# The most that the scan may take of that, and the most bytes of memory.
TARGETS = {"small": 1 / 20, "large": 1 / 35}
PEAK = 150 << 20


def rival(command):
    start = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return time.perf_counter() - start


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("extension")
    parser.add_argument("rules")
    parser.add_argument("large", type=pathlib.Path)
    parser.add_argument("small", nargs="*", type=pathlib.Path)
    parser.add_argument("--chainsaw")
    parser.add_argument("--mapping")
    parser.add_argument("--hayabusa")
    options = parser.parse_args()
    large = sorted(options.large.glob("*.evtx"))
    sets = [("large", log.stem, [str(log)]) for log in large]
    sets += [("large", "four at once", [str(log) for log in large[:1] * 4])] if large else []
    sets += [("small", folder.name, [f"{folder}/**/*.evtx"]) for folder in options.small]
    print(f"| logs | events | hits | 1 thread | 2 threads | gain | share of the faster rival | target | peak MiB |\n|{' --- |' * 9}")
    with Worker(options.extension, 1) as one, Worker(options.extension, 2) as two:
        for kind, name, files in sets:
            events = eval(one.run(f"SELECT count(*) FROM read_evtx({files})")["rows"])[0][0]  # noqa: S307
            sql = f"SELECT count(rule_id), count(matched), count(event_data) FROM evtx_sigma({files}, rules := '{options.rules}')"
            took, others, peak, hits = ([], []), [], 0, 0
            for pair in range(PAIRS + 1):
                for worker, times in zip((one, two), took):
                    answer = worker.run(sql)
                    hits = eval(answer["rows"])[0][0]  # noqa: S307
                    if pair:
                        times.append(answer["seconds"])
                        peak = max(peak, answer["peak"])
            folder = files[0].split("*")[0]
            with tempfile.TemporaryDirectory() as out:
                if options.chainsaw:
                    others.append(rival([options.chainsaw, "hunt", folder, "-s", options.rules, "--mapping", options.mapping, "--num-threads", "1",
                                         "-o", f"{out}/chainsaw.json", "--json"]))
                if options.hayabusa:
                    kind_of = "-d" if pathlib.Path(folder).is_dir() else "-f"
                    others.append(rival([options.hayabusa, "csv-timeline", kind_of, folder, "-r", options.rules, "-t", "1", "-w", "-q", "-o", f"{out}/h.csv"]))
            seconds = [statistics.median(times) for times in took]
            size = sum(pathlib.Path(file).stat().st_size for file in files) if kind == "large" else 0
            against = min(others) if others else FASTER * size / (64 << 20) if kind == "large" else PER_EVENT * events
            share = seconds[0] / against
            mark = "" if share <= TARGETS[kind] and peak <= PEAK else " **above**"
            print(f"| {name} | {events} | {hits} | {seconds[0]:.2f} s | {seconds[1]:.2f} s | {seconds[0] / seconds[1]:.2f} | "
                  f"1/{1 / share:.0f}{mark} | 1/{1 / TARGETS[kind]:.0f} | {peak / (1 << 20):.0f} |", flush=True)


if __name__ == "__main__":
    main()
