"""What people drop again, beside, and in place of something."""

import asyncio
import os
import shutil

import case
import pytest
from conftest import SAMPLES, write_log

pytest_plugins = "pages"
pytestmark = pytest.mark.skipif(case.browser.BROWSER is None, reason="Chromium is not installed")

COUNTS = "SELECT filename, count(*) FROM events GROUP BY filename ORDER BY filename"


def test_folders_with_the_same_name(tmp_path):
    """Each machine has a folder Logs. A file that is dropped again is not read again."""
    machines = []
    for machine, sample in [("a", "DC01-System.evtx"), ("b", "WS07-Security.evtx")]:
        folder = tmp_path / machine / "Logs"
        folder.mkdir(parents=True)
        shutil.copy(SAMPLES / sample, folder / "Security.evtx")
        machines.append(folder)

    async def steps(page):
        for folder in [machines[0], machines[1], machines[0]]:
            await page.load(folder)
        return await page.ask(COUNTS), await page.ask("SELECT count(*) FROM files")

    counts, files = case.visit(steps)
    assert [name for name, _ in counts] == ["(2) Logs/Security.evtx", "Logs/Security.evtx"]
    assert counts[1][1] == "10" and counts[0][1] != "10"
    assert files == [["2"]]


@pytest.mark.parametrize("at", [0, 8192, 5000, -1])
def test_two_copies_of_a_log_that_differ_in_a_byte(tmp_path, at):
    """Two acquisitions of one log have one name, size and time. One of them is damaged."""
    copies = []
    for number in range(2):
        folder = tmp_path / str(number) / "Logs"
        folder.mkdir(parents=True)
        data = bytearray((SAMPLES / "wrapped.evtx").read_bytes())
        data[at] ^= number
        (folder / "Security.evtx").write_bytes(data)
        os.utime(folder / "Security.evtx", (1_700_000_000, 1_700_000_000))
        copies.append(folder)

    async def steps(page):
        for folder in [*copies, *copies]:
            await page.load(folder)
        return await page.ask("SELECT filename FROM files ORDER BY filename")

    assert case.visit(steps) == [["(2) Logs/Security.evtx"], ["Logs/Security.evtx"]]


def test_a_load_that_was_cancelled_can_be_completed(tmp_path):
    folder = tmp_path / "case"
    folder.mkdir()
    shutil.copy(SAMPLES / "DC01-System.evtx", folder / "a.evtx")
    write_log(folder / "b.evtx", "DC01-Security.evtx", 1000)

    async def steps(page):
        async with page.loading():
            await page.drop(folder)
            await page.until("/[1-9].* rows/.test(document.querySelector('#loaded').textContent)")
            await page.click("#cancel")
        unread = await page.ask("SELECT filename, error FROM files WHERE error IS NOT NULL")
        await page.load(folder)
        return unread, await page.ask(COUNTS), await page.ask("SELECT count(*), count(error) FROM files"), await page.query("FROM events")

    unread, counts, files, rows = case.visit(steps)
    assert unread == [["case/b.evtx", "not read to its end: it was cancelled"]]
    assert counts == [["case/a.evtx", "10"], ["case/b.evtx", "55000"]]
    assert files == [["2", "0"]]
    assert rows == 55010


def test_rules_that_change_and_rules_that_are_broken(tmp_path):
    rule = tmp_path / "rule.yml"
    rule.write_text((SAMPLES / "rules/failed_logon.yml").read_text("utf-8"), "utf-8")
    (tmp_path / "broken.yml").write_text("title: [", "utf-8")

    async def steps(page):
        await page.load(SAMPLES / "DC01-Security.evtx", rule, tmp_path / "broken.yml")
        first = await page.ask("SELECT DISTINCT rule_title FROM matches"), await page.ask("SELECT rule_file, error IS NULL FROM rules ORDER BY rule_file")
        rule.write_text(rule.read_text("utf-8").replace("title: ", "title: Changed ", 1), "utf-8")
        await page.load(rule)
        return first, await page.ask("SELECT DISTINCT rule_title FROM matches")

    ([[before]], rules), after = case.visit(steps)
    assert after == [[f"Changed {before}"]]
    assert rules == [["broken.yml", "false"], ["rule.yml", "true"]]


def test_rows_that_were_deleted(samples):
    async def steps(page):
        [[before]] = await page.ask("SELECT count(*) FROM events")
        await page.query("CREATE TABLE kept AS FROM events; DELETE FROM events WHERE rowid < 100; FROM events")
        shown = await page.rows(), await page.query("FROM events")
        await page.query("DELETE FROM events; INSERT INTO events FROM kept; DROP TABLE kept; SELECT 1")
        return int(before), shown

    before, (rows, count) = samples(steps)
    assert rows and count == before - 100


def test_a_query_that_does_not_end(tmp_path):
    """DuckDB is started again, with the events."""

    async def steps(page):
        await page.load(SAMPLES / "DC01-System.evtx")
        await page.type_sql("SELECT count(*) FROM range(100000) a, range(100000) b, range(10000000) c WHERE a.range + b.range + c.range = 1")
        # DuckDB plans the query first, and can end it then.
        start = await page.spent("ProcessTime")
        while await page.spent("ProcessTime") < start + 3:
            await asyncio.sleep(0.05)
        await page.press("Escape", "Escape", 27, 0)
        await page.until("/started again/.test(document.querySelector('#error').textContent)")
        return await page.ask("SELECT count(*) FROM events")

    assert case.visit(steps) == [["10"]]


def test_only_queries_are_run_again(tmp_path):
    async def steps(page):
        await page.load(SAMPLES / "DC01-Security.evtx")
        await page.query("CREATE TABLE mine AS SELECT 1 AS a; INSERT INTO mine VALUES (2)")
        await page.load(SAMPLES / "DC01-System.evtx")
        mine = await page.ask("FROM mine ORDER BY a")
        await page.query("DELETE FROM events WHERE event_id = 4624")
        await page.load(SAMPLES / "WS07-Security.evtx")
        text, error = await page.text("#sql"), await page.error()
        return mine, text, error, await page.ask("SELECT count(*) FROM events WHERE event_id = 4624")

    mine, text, error, logons = case.visit(steps)
    assert (mine, error) == ([["1"], ["2"]], "") and text.startswith("DELETE")
    assert logons == [["1"]]


def test_rules_of_which_none_can_be_used(tmp_path):
    (tmp_path / "broken.yml").write_text("title: x", "utf-8")

    async def steps(page):
        await page.load(tmp_path / "broken.yml", SAMPLES / "DC01-Security.evtx")
        assert await page.error() == ""
        await page.load(SAMPLES / "DC01-System.evtx")
        assert "Sigma matches (0)" in await page.text("#tabs") and "1 machine" in await page.text("#about")
        return await page.ask(COUNTS), await page.ask("SELECT rule_file, error IS NULL FROM rules")

    assert case.visit(steps) == ([["DC01-Security.evtx", "55"], ["DC01-System.evtx", "10"]], [["broken.yml", "false"]])


def test_rows_of_damage_are_no_matches(tmp_path):
    rule = SAMPLES / "rules/failed_logon.yml"
    log = tmp_path / "Security.evtx"
    log.write_bytes((SAMPLES / "DC01-Security.evtx").read_bytes() + 65536 * b"\xff")

    async def steps(page):
        await page.load(rule, log)
        return await page.text("#tab-matches"), await page.ask("SELECT count(*), count(rule_title) FROM matches")

    tab, [[rows, matches]] = case.visit(steps)
    assert int(rows) > int(matches) > 0
    assert tab == f"Sigma matches ({matches})"


def test_a_drop_before_the_page_is_ready():
    async def steps():
        async with case.browser.opened((case.WEB / "index.html").as_uri(), "--window-size=1400,1000") as opened:
            page = case.Case(opened)
            await page.state("starting")
            async with page.loading():
                await page.drop(SAMPLES / "DC01-System.evtx")
            return await page.ask(COUNTS)

    assert asyncio.run(steps()) == [["DC01-System.evtx", "10"]]


def test_a_drop_while_a_query_runs():
    """The files wait for the end of the query, which keeps what it made."""

    async def steps(page):
        await page.load(SAMPLES / "DC01-Security.evtx")
        await page.query("CREATE TABLE mine AS SELECT 1 AS a")
        await page.type_sql("SELECT sum(a.range * b.range) FROM range(1_000_000) a, range(1_000_000) b")
        await page.until("!document.querySelector('#stop').disabled")
        await page.drop(SAMPLES / "DC01-System.evtx")
        await page.until("/once the query has ended/.test(document.querySelector('#engine').textContent)")
        async with page.loading():
            await page.press("Escape", "Escape", 27, 0)
        return await page.ask("FROM mine"), await page.ask(COUNTS)

    assert case.visit(steps) == ([["1"]], [["DC01-Security.evtx", "55"], ["DC01-System.evtx", "10"]])


def test_files_that_are_not_read(tmp_path, con):
    """They are rows of `files`, as in the extension."""
    names = {"logs": ["a.evtx", "a.evtx.bak", "b.evt", "c.raw", "note.txt"], "others": ["d.evt"], "none": ["note.txt"]}
    for folder, files in names.items():
        (tmp_path / folder).mkdir()
        for file in files:
            shutil.copy(SAMPLES / "DC01-System.evtx", tmp_path / folder / file)

    async def steps(page):
        await page.load(*(tmp_path / folder for folder in names))
        about = await page.text("#about")
        return about, await page.ask("SELECT filename, error FROM files ORDER BY filename"), await page.ask(COUNTS)

    about, files, counts = case.visit(steps)
    expected = []
    for folder in ["logs", "others"]:
        rows = con.execute("SELECT filename, error FROM evtx_file_metadata($1)", [str(tmp_path / folder)]).fetchall()
        expected += [[filename.removeprefix(f"{tmp_path}/"), error or ""] for filename, error in rows]
    assert files == sorted([*expected, ["none", "not read: the folder has no logs"]])
    assert "from 1 file, 5 not read" in about
    assert counts == [["logs/a.evtx", "10"], ["none", "1"]]
