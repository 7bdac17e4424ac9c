"""Holds a report against the kept baseline. usage: compare.py BASELINE REPORT

Names each query that became slower, by its share of evtx_dump's time in the same run, so that two machines can be compared:
worse than 1.10 times in the median or 1.25 times in the 99th percentile. Exits with 1 if there is any.
"""

import json
import pathlib
import sys

MEDIAN = 1.10
P99 = 1.25


def shares(path):
    """By log, query and threads: the median and the 99th percentile, as shares of evtx_dump's median."""
    report = json.loads(pathlib.Path(path).read_text())
    measured = (result for result in report["results"] if "theirs" in result)
    return {
        (result["log"], result["query"], result["threads"]): {
            what: result["ours"][what] / result["theirs"]["median"] for what in ("median", "p99")
        }
        for result in measured
    }


def main(baseline, report):
    before, now = shares(baseline), shares(report)
    worse = 0
    for key in sorted(before.keys() & now.keys()):
        for what, limit in (("median", MEDIAN), ("p99", P99)):
            ratio = now[key][what] / before[key][what]
            if ratio > limit:
                worse += 1
                print(f"{key[0]} {key[1]} with {key[2]} threads: {what} {ratio:.2f} times the baseline's")
    print(f"{len(before.keys() & now.keys())} compared, {worse} worse; not compared: {len(before.keys() ^ now.keys())}")
    return 1 if worse else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
