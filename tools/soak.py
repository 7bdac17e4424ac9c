"""Runs generated statements over read_evtx and over tables of the same logs, and prints differences.

usage: soak.py EXTENSION SECONDS [--seed N] [--logs FOLDER]

Reads the logs in FOLDER and its subfolders. Without --logs, EVTX_CORPUS, EVTX_VARIED and EVTX_COLLECTIONS name the folders, or samples/ is
read. A difference is printed as the smallest statements that still show it, ready to run. Exits with 1 if there was one. Each round has its
own seed, starting with N.
"""

import argparse
import collections
import pathlib
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "test/python"))

from judge import find_logs  # noqa: E402
from statements import FAULT, Comparison, make_statements, partition  # noqa: E402

# The statements and calls of a round, and the largest log in bytes.
STATEMENTS, CALLS, LOG_SIZE = 500, 40, 2 << 20


def main(arguments):
    logs = find_logs([arguments.logs] if arguments.logs else None, LOG_SIZE)
    end = time.monotonic() + arguments.seconds
    seed, found, statements = arguments.seed, collections.Counter(), 0
    first = partition(pathlib.Path(tempfile.mkdtemp(prefix="evtx-soak-")), logs)
    print(f"{len(logs)} logs, from seed {seed} on", flush=True)
    while time.monotonic() < end:
        comparison = Comparison(arguments.extension, seed)
        for statement in make_statements(arguments.extension, logs, seed, STATEMENTS, CALLS, first):
            _, difference = comparison.run(statement)
            statements += 1
            if difference:
                found[difference.kind] += 1
                if difference.kind != FAULT:
                    print(f"\n{comparison.shrink(difference).text()}\n", flush=True)
            if time.monotonic() >= end:
                break
        differences = ", ".join(f"{count}: {kind}" for kind, count in found.items()) or "no difference"
        print(f"seed {seed}: {statements} statements so far, {differences}", flush=True)
        seed += 1
    return 1 if set(found) - {FAULT} else 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("extension")
    parser.add_argument("seconds", type=float)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--logs")
    sys.exit(main(parser.parse_args()))
