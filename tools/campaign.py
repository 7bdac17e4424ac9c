"""Damages logs, reads them in many ways, and prints broken invariants (see test/python/judge.py).

usage: campaign.py EXTENSION SECONDS [--seed N] [--logs FOLDER ...] [--out FOLDER]

Reads the logs in the FOLDERs and their subfolders. Without --logs, EVTX_CORPUS, EVTX_VARIED and EVTX_COLLECTIONS name the folders, or
samples/ is read. Each case has its own seed. With 0 SECONDS, only the case of --seed runs, with every check. A separate process runs the
cases, so that crashes and hangs are findings, too. Damaged logs with findings are kept in --out, with the seed in their names. Exits with
1 if there was a finding.
"""

import argparse
import atexit
import collections
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import threading
import time

try:
    import resource
except ImportError:  # Windows has no such limits.
    resource = None

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "test/python"))

from judge import Cases, Judge, find_logs, shrink  # noqa: E402

# A case hangs after HANG seconds. A process runs up to CASES cases, with MEMORY bytes. The first SHOWN findings of an invariant are
# shown in full.
HANG, CASES, MEMORY, SHOWN = 600, 1000, 8 << 30, 10


def work(arguments):
    """Runs cases, and prints a line of JSON before and after each one."""
    if resource:
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    logs = find_logs(arguments.logs)
    with tempfile.TemporaryDirectory(prefix="evtx-campaign-") as folder:
        cases, judge = Cases(arguments.extension, logs, folder), Judge(arguments.extension, folder)
        shown = collections.Counter()
        end = time.monotonic() + arguments.seconds
        for seed in range(arguments.seed, arguments.seed + (CASES if arguments.seconds else 1)):
            tell(start=seed)
            case = cases.make(seed)
            findings = case and (judge.judge(case) if arguments.seconds else judge.judge_all(case))
            for invariant in dict.fromkeys(finding.invariant for finding in findings or []):
                shown[invariant] += 1
                report(arguments, cases, judge, case, [f for f in findings if f.invariant == invariant], shown[invariant] <= SHOWN)
            tell(done=seed, counts=judge.counts, worst=judge.worst, notes=judge.notes)
            judge.counts.clear()
            judge.notes.clear()
            if arguments.seconds and time.monotonic() >= end:
                break


def tell(**what):
    print(json.dumps(what), flush=True)


def report(arguments, cases, judge, case, findings, in_full):
    """Shrinks the damage, keeps the log, and prints the finding."""
    invariant = findings[0].invariant
    path = keep(arguments, case, invariant)
    counts, judge.counts = judge.counts, collections.Counter()
    text = [f"{case.title()}", f"  broken: {invariant} ({len(findings)} times)"]
    if in_full:
        smaller, spans = shrink(cases, judge, case, findings[0])
        path = keep(arguments, smaller, invariant)
        text[0] = smaller.title()
        checks = [findings[0].check] if findings[0].check else []
        findings = [finding for finding in judge.judge_by(smaller, checks) if finding.invariant == invariant] or findings
        for start, end in spans[:8]:
            old, new = smaller.sound.data[start:end], smaller.log.data[start:end]
            text.append(f"  bytes {start:#x} to {end:#x}: {old[:16].hex(' ')} became {new[:16].hex(' ')}")
        if len(spans) > 8:
            text.append(f"  and {len(spans) - 8} other spans")
    judge.counts = counts
    text.append(f"  found: {findings[0].detail[:600]}")
    text += [f"  {query.replace(judge.path, str(path))[:500]}" for query in findings[0].queries]
    text.append(f"  again: {sys.argv[0]} {arguments.extension} 0 --seed {case.seed}{logs_option(arguments)}")
    tell(finding=invariant, text="\n".join(text))


def keep(arguments, case, invariant):
    arguments.out.mkdir(parents=True, exist_ok=True)
    path = arguments.out / f"{case.seed}-{re.sub('[^a-z0-9]+', '-', invariant.lower())}.evtx"
    path.write_bytes(case.log.data)
    return path


def logs_option(arguments):
    return "".join(f" --logs {folder}" for folder in arguments.logs or [])


def main(arguments):
    """Starts and watches the processes that run cases."""
    print(f"{len(find_logs(arguments.logs))} logs, from seed {arguments.seed} on", flush=True)
    end = time.monotonic() + arguments.seconds
    counts, worst, found, seed = collections.Counter(), collections.Counter(), collections.Counter(), arguments.seed
    told = time.monotonic()
    while True:
        left = max(end - time.monotonic(), 0.001) if arguments.seconds else 0
        command = [sys.executable, __file__, str(arguments.extension), str(left), "--seed", str(seed), "--out", str(arguments.out)]
        for folder in arguments.logs or []:
            command += ["--logs", folder]
        child = subprocess.Popen([*command, "--work"], stdout=subprocess.PIPE, text=True)
        atexit.register(child.kill)
        timer = None
        current = None
        for line in child.stdout:
            message = json.loads(line)
            if timer:
                timer.cancel()
            timer = threading.Timer(HANG, child.kill)
            timer.daemon = True
            timer.start()
            if "start" in message:
                current = message["start"]
            elif "finding" in message:
                found[message["finding"]] += 1
                print(f"\n{message['text']}\n", flush=True)
            else:
                counts.update(message["counts"])
                worst |= collections.Counter(message["worst"])
                seed, current = message["done"] + 1, None
                for note in message["notes"]:
                    print(note, flush=True)
            if time.monotonic() - told > 60:
                told = time.monotonic()
                print(summary(counts, worst, found), flush=True)
        child.wait()
        atexit.unregister(child.kill)
        if timer:
            timer.cancel()
        if child.returncode and current is not None:
            invariant = "a hang" if child.returncode == -9 else f"a crash ({child.returncode})"
            found[invariant] += 1
            print(f"\nseed {current}: {invariant}\n  {sys.argv[0]} {arguments.extension} 0 --seed {current}{logs_option(arguments)}\n")
            with tempfile.TemporaryDirectory() as folder:
                case = Cases(arguments.extension, find_logs(arguments.logs), folder).make(current)
                print(f"  {case.title()}: {keep(arguments, case, invariant)}", flush=True)
            seed = current + 1
        elif child.returncode:
            print(f"the process that runs cases exited with {child.returncode}")
            return 1
        if time.monotonic() >= end:
            break
    print(f"up to seed {seed - 1}: {summary(counts, worst, found)}", flush=True)
    return 1 if found else 0


def summary(counts, worst, found):
    broken = "; ".join(f"{count}: {invariant}" for invariant, count in found.most_common()) or "nothing"
    names = ["rows", "records", "records judged", "predicates", "interrupts", "interrupts over 100 ms"]
    numbers = ", ".join(f"{counts[name]} {name}" for name in names)
    most = ", ".join(f"{name}: {number}" for name, number in worst.items())
    return f"{counts['cases']} cases, {numbers}; at worst {most}; found {broken}"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("extension", type=pathlib.Path)
    parser.add_argument("seconds", type=float)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--logs", action="append")
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "build/campaign")
    parser.add_argument("--work", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    given.out = given.out.resolve()
    sys.exit(work(given) if given.work else main(given))
