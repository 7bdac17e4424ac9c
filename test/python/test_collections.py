"""Logs of whole machines, undamaged, in the folders that EVTX_COLLECTIONS names."""

import collections
import os
import re
from datetime import timedelta

import pytest
from conftest import EXTENSION, ROOT
from judge import Cases, Judge, find_logs
from statements import FAULT, Comparison, make_statements

FOLDER = os.environ.get("EVTX_COLLECTIONS", "")
pytestmark = pytest.mark.skipif(not FOLDER, reason="EVTX_COLLECTIONS is not set")
SEED, CASES, STATEMENTS, CALLS, LOG_SIZE = 20260905, 100, 300, 30, 2 << 20


def test_sound_machines_have_no_damage(con):
    every = f"'{FOLDER}/**/*.evtx'"
    rows, errors, recovered = con.execute(f"SELECT count(*), count(error), count(*) FILTER (recovered) FROM read_evtx({every}, recover := true)").fetchone()
    live = con.execute(f"SELECT count(*), count(error) FROM read_evtx({every}, on_error := 'fail', verify := true)").fetchone()
    assert live == (rows - recovered, 0)
    assert rows > errors
    records, damaged, slack = con.execute(f"SELECT sum(records), sum(damaged_chunks), sum(slack_records) FROM evtx_file_metadata({every})").fetchone()
    assert (records, damaged) == (live[0], 0)
    # Duplicates are returned once.
    assert 0.95 * slack < recovered <= slack


def test_a_log_has_the_events_of_its_own_channel(con):
    """The unused space of a log may contain records of other logs, which a plain scan must not return."""
    odd = con.execute(f"""
        SELECT filename, list(DISTINCT channel) FROM read_evtx('{FOLDER}/**/*.evtx')
        WHERE filename NOT LIKE '%ForwardedEvents%' GROUP BY 1 HAVING count(DISTINCT channel) > 1""").fetchall()
    assert odd == []


@pytest.mark.parametrize("arguments", ["", "event_id := 4624", "provider := 'Microsoft-Windows-Security-Auditing'", "on_error := 'skip'", "verify := true"])
def test_recover_only_adds(con, arguments):
    columns = "filename, record_id, time_created, event_id, provider, error"
    missing = con.execute(f"""
        SELECT count(*) FROM (SELECT {columns} FROM read_evtx('{FOLDER}/**/*.evtx'{", " * bool(arguments)}{arguments})
                              EXCEPT ALL SELECT {columns} FROM read_evtx('{FOLDER}/**/*.evtx', recover := true{", " * bool(arguments)}{arguments}))""")
    assert missing.fetchone() == (0,)


def test_damage_costs_only_what_it_touches(tmp_path):
    cases, judge = Cases(EXTENSION, find_logs([FOLDER]), tmp_path), Judge(EXTENSION, tmp_path)
    assert list(judge.findings_of(cases, range(SEED, SEED + CASES))) == []
    assert judge.counts["records judged"] > CASES


def test_statements_give_the_same_over_logs_and_over_tables():
    comparison, kinds = Comparison(EXTENSION, SEED), collections.Counter()
    for statement in make_statements(EXTENSION, find_logs([FOLDER], LOG_SIZE), SEED, STATEMENTS, CALLS):
        _, difference = comparison.run(statement)
        kinds[difference.kind if difference else "the same"] += 1
        assert not difference or difference.kind == FAULT, comparison.shrink(difference).text()
    assert kinds["the same"] > STATEMENTS * 0.9


SZECHUAN, RATHBUN = "CITADEL-DC01.C137.local", "DESKTOP-GNCCVRK"


def test_the_timeline_names_accounts_and_events(con):
    rows, events, accounts, sids = con.execute(f"""
        SELECT count(*), count(event), count(user_name), count(*) FILTER (user_name LIKE 'S-1-%')
        FROM evtx_timeline('{FOLDER}/**/*.evtx') WHERE computer IN ('{SZECHUAN}', '{RATHBUN}')""").fetchone()
    assert rows > 100_000
    assert events > 0.97 * rows
    assert accounts > 0.95 * rows
    assert sids == 0
    # Only the provider knows these codes.
    left = con.execute(f"SELECT DISTINCT provider FROM evtx_timeline('{FOLDER}/**/*.evtx') WHERE regexp_matches(details, '%%[0-9]')").fetchall()
    assert {provider for provider, in left} <= {"Microsoft-Windows-GroupPolicy", "Microsoft-Windows-Windows Defender", "NETLOGON"}


def test_the_timeline_says_who_installed_a_service(con):
    (installed,) = con.execute(f"""
        SELECT user_name, user_sid, event, process FROM evtx_timeline('{FOLDER}/**/*.evtx')
        WHERE computer = '{SZECHUAN}' AND event_id = 7045 AND details LIKE '%coreupdater%'""").fetchall()
    assert installed == ("C137\\Administrator", "S-1-5-21-2232410529-1445159330-2725690660-500", "Service installed", "C:\\Windows\\System32\\coreupdater.exe")


def test_facts_tell_of_the_attack(con):
    con.execute(f"CREATE TABLE facts AS SELECT * REPLACE (topic::VARCHAR AS topic) FROM evtx_facts('{FOLDER}/**/*.evtx') WHERE computer IN ('{SZECHUAN}', '{RATHBUN}')")
    def of(topic, columns, computer=SZECHUAN, rest="true"):
        return con.execute(f"SELECT {columns} FROM facts WHERE topic = $1 AND computer = $2 AND {rest} ORDER BY first", [topic, computer]).fetchall()

    # 1.5 seconds of failures, whose address the log of Remote Desktop has, and a logon.
    [(level, fact, events, account, source, detail, span)] = of("failed logons", "level, fact, events, account, source, detail, epoch(last) - epoch(first)", rest="level = 'high'")
    assert (level, fact, events, source) == ("high", "95 failed logons, then a logon of the same account", 95, "194.61.24.102")
    assert account.endswith("Administrator") and "WRONG_PASSWORD" in detail and span < 60, (account, detail, span)
    assert ("coreupdater",) in of("services", "target")
    assert ("194.61.24.102",) in of("logons from elsewhere", "source")
    assert len(of("starts", "fact", rest="fact = 'Windows started'")) == 11
    # All of the machine's names.
    assert len(of("identities", "target")) > 0
    assert of("failed logons", "fact", RATHBUN, "level <> 'info'") == []
    zones = of("clock", "detail", RATHBUN, "fact = 'Time zone reported'")
    assert "America/New_York" in zones[-1][0] and len(of("clock", "fact", RATHBUN, "fact LIKE 'Clock set%'")) > 5


def test_the_query_of_the_readme_finds_the_attack(con):
    queries = re.findall(r"```sql\n(SELECT[^`]*)```\n\n\|", (ROOT / "README.md").read_text(encoding="utf-8"))
    assert len(queries) == 2
    rows = con.execute(queries[0].replace("'samples'", f"'{FOLDER}/**/*.evtx'")).fetchall()
    assert rows[0][:2] == (SZECHUAN, "kali")
