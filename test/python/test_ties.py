"""The rows of each macro depend on what records say: not on threads, the order of files and rows, or whether they come from logs or from a table.

Two logs have records at the same places, some of which contradict each other. EVTX_TIES asks for so many drawn logs, EVTX_TIES_SEED for others.
"""

import collections
import os
import random

import crowds
import pytest
from conftest import SAMPLES

SEED, COUNT = int(os.environ.get("EVTX_TIES_SEED", 20)), int(os.environ.get("EVTX_TIES", 40))
# The other arguments of macros.
ARGUMENTS = {"pattern": "'text 1'", "rules": f"'{SAMPLES / 'rules'}'"}
# Of equal records, any file stays. The page of a case has one row: test_report.py compares it.
WITHOUT = {"filename"}
OTHERS = {"evtx_case_report"}


def drawn(seed):
    """Events of many logs, each of machines of its own, and the same events, a third of which say something else in one field."""
    events, others, draws = [], [], random.Random(seed)
    for log in range(seed, seed + COUNT):
        for time, provider, event_id, channel, computer, user, data in crowds.draw(log, draws.choice([6, 12, 24])):
            field, other = draws.choice(sorted(data)), dict(data)
            if draws.random() < 0.3:
                value = data[field]
                other[field] = value + 1 if isinstance(value, int) else crowds.account(draws.randrange(3)) if value.startswith("S-1-") else value + "x"
            for list_, fields in ((events, data), (others, other)):
                list_.append((time, provider, event_id, channel, f"{log}{computer}", user, fields))
    return events, others


def rows(con, call):
    # A table of events does not say which logs are wrapped.
    result = con.execute(f"FROM {call}" + " WHERE fact NOT LIKE 'Log overwrote %'" * ("evtx_facts" in call))
    kept = [number for number, (name, *_) in enumerate(result.description) if name not in WITHOUT]
    return collections.Counter(repr([row[number] for number in kept]) for row in result.fetchall())


@pytest.fixture(name="macros")
def fixture_macros(con):
    """The macros that read logs, with their other arguments."""
    macros = con.execute("""SELECT DISTINCT function_name, parameters FROM duckdb_functions() WHERE function_type = 'table_macro' AND parameters[1] = 'files'
        ORDER BY ALL""").fetchall()
    macros = {name: [ARGUMENTS[parameter] for parameter in parameters if parameter in ARGUMENTS] for name, parameters in macros if name not in OTHERS}
    assert {"evtx_accounts", "evtx_case_summary", "evtx_facts", "evtx_logons", "evtx_process_tree", "evtx_script_blocks", "evtx_search", "evtx_sigma_timeline", "evtx_timeline"} <= macros.keys()
    return macros


def test_rows_depend_on_what_records_say(con, macros, tmp_path):
    logs = [str(tmp_path / name) for name in ("a.evtx", "b.evtx")]
    for path, events in zip(logs, drawn(SEED)):
        crowds.write(tmp_path / path, events)
    con.execute("CREATE TABLE events AS FROM read_evtx($1, fields := true, text := true) ORDER BY hash(record_id, filename)", [logs])
    con.execute(f"CREATE TABLE matches AS FROM evtx_sigma($1, rules := {ARGUMENTS['rules']}) ORDER BY hash(record_id, filename)", [logs])
    for macro, arguments in macros.items():
        names = ["table_of_events := 'events'"] * (macro == "evtx_sigma_timeline")
        table = ["'matches'", *names] if macro.startswith("evtx_sigma") else ["'events'", *arguments]
        calls = [f"{macro}({', '.join([str(files), *arguments])})" for files in (logs, logs[::-1])] + [f"{macro}_of({', '.join(table)})"]
        found = []
        for threads in (1, 4):
            con.execute(f"SET threads = {threads}")
            found += [rows(con, call) for call in calls]
        for other in found[1:]:
            assert other == found[0], (macro, *((other - found[0]) + (found[0] - other)))
        print(f"{macro}: {found[0].total()} rows")
