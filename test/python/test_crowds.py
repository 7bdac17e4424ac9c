"""The memory of each macro has the bound of SECURITY.md, however many names, hosts, SIDs, services or channels its logs have.

EVTX_CROWDS asks for so many logs, EVTX_CROWDS_SEED for others, and EVTX_CROWDS_RECORDS for larger ones.
"""

import json
import os
import random
import subprocess
import sys

import crowds
import pytest
from conftest import EXTENSION, ROOT, SAMPLES

SEED, COUNT, RECORDS = (int(os.environ.get(f"EVTX_CROWDS{name}", default)) for name, default in (("_SEED", 20), ("", 3), ("_RECORDS", 4000)))
# The bound of SECURITY.md: so many bytes, and so many times the size of the log. DuckDB alone takes four to five times its size to sort it.
BASE, FACTOR = 64 << 20, 5
FACTORS = {"evtx_script_blocks": 6, "evtx_process_tree": 8, "evtx_logons": 12}
# In such logs, each record is a fact of its own.
FACTS = {"evtx_facts", "evtx_case_summary", "evtx_case_report"}
ARGUMENTS = {"pattern": "'text 1'", "rules": f"rules := '{SAMPLES / 'rules'}'"}


@pytest.fixture(name="calls")
def fixture_calls(con):
    """A call of each macro over logs, with {log} for the path."""
    # What may take most comes last.
    macros = con.execute("""SELECT DISTINCT function_name, parameters FROM duckdb_functions() WHERE function_type = 'table_macro' AND parameters[1] = 'files'
        ORDER BY function_name = 'evtx_process_tree', function_name""").fetchall()
    calls = {name: f"{name}({', '.join(['{log}', *(value for parameter, value in ARGUMENTS.items() if parameter in parameters)])})" for name, parameters in macros}
    assert {"evtx_timeline", "evtx_logons", "evtx_process_tree", "evtx_script_blocks", "evtx_accounts", "evtx_search"} <= calls.keys()
    return calls


def bound(name, size):
    return 2 * BASE + 60 * size if name in FACTS else BASE + FACTORS.get(name, FACTOR) * size


def peaks(calls):
    """The most memory that a process has in each call, above what it has without one. It may keep some of what earlier calls took."""
    lines = [json.dumps({"sql": f"SELECT count(*), max(hash(macro)) FROM {call} AS macro"}) for call in calls.values()]
    worker = subprocess.run([sys.executable, ROOT / "bench/worker.py", EXTENSION, "2"], input="\n".join(lines), capture_output=True, text=True, check=True)
    return {name: json.loads(line)["peak"] for name, line in zip(calls, worker.stdout.splitlines(), strict=True)}


def test_a_program_that_starts_often_is_no_key(calls, tmp_path):
    """Both kinds of records of one program and user, once a minute or all at once."""
    for step in (60, 0):
        path = tmp_path / f"{step}.evtx"
        starts = (
            (number * step, *[(crowds.SECURITY, 4688, "Security"), (crowds.SYSMON, 1, "Microsoft-Windows-Sysmon/Operational")][number % 2], "H", crowds.account(1),
             {"SubjectUserName": "u", "NewProcessId": number, "ProcessId": number - number % 2, "NewProcessName": "C:\\p.exe", "Image": "C:\\p.exe", "CommandLine": "x"})
            for number in range(6000)
        )  # fmt: skip
        size = crowds.write(path, starts)
        name = "evtx_process_tree"
        taken = peaks({name: calls[name].format(log=f"'{path}'")})[name]
        assert taken <= bound(name, size), f"{taken >> 20} MiB for {size >> 10} KiB"


@pytest.mark.parametrize("seed", range(SEED, SEED + COUNT))
def test_memory_does_not_depend_on_what_a_log_says(calls, tmp_path, seed):
    path = tmp_path / "crowd.evtx"
    count = random.Random(seed).randint(RECORDS // 2, RECORDS)
    size = crowds.write(path, crowds.draw(seed, count))
    calls = {name: call.format(log=f"'{path}'") for name, call in calls.items()}
    found = peaks(calls)
    # What is above the bound counts if it is that in a process of its own.
    found |= {name: peaks({name: calls[name]})[name] for name, taken in found.items() if taken > bound(name, size)}
    over = {name: f"{taken >> 20} MiB" for name, taken in found.items() if taken > bound(name, size)}
    print(f"seed {seed}, {size >> 10} KiB: {({name: taken >> 20 for name, taken in found.items()})}")
    assert not over, f"for {count} records in {size >> 10} KiB, seed {seed}: {next(iter(crowds.draw(seed, 1)))}"
