"""Loads and queries that people cancel."""

import shutil

import case
import pytest
from conftest import SAMPLES, write_log

pytest_plugins = "pages"
pytestmark = pytest.mark.skipif(case.browser.BROWSER is None, reason="Chromium is not installed")


def test_a_load(tmp_path):
    """What was read until then stays, the page says so, and the next load works."""
    large = write_log(tmp_path / "large.evtx", "DC01-Security.evtx", 2000)

    async def steps(page):
        await page.page.run("""new MutationObserver((_, observer) => {
                if (!/[1-9].* rows/.test(document.querySelector('#loaded').textContent)) return;
                observer.disconnect();
                document.querySelector('#cancel').click();
            }).observe(document.querySelector('#loaded'), {subtree: true, childList: true, characterData: true}); 1""")
        async with page.loading():
            await page.drop(large)
        told = await page.text("#loaded")
        [[rows]] = await page.ask("SELECT count(*) FROM events")
        await page.load(SAMPLES / "DC01-System.evtx")
        return told, int(rows), await page.ask("SELECT filename, count(*) FROM events GROUP BY filename ORDER BY filename")

    told, rows, counts = case.visit(steps)
    assert told.startswith("Cancelled") and f"{rows:,} rows" in told
    assert 0 < rows < 55 * 2000
    assert counts == [["DC01-System.evtx", "10"], ["large.evtx", str(rows)]]


def test_a_load_before_its_first_rows(tmp_path):
    folder = tmp_path / "case"
    folder.mkdir()
    for number in range(200):
        shutil.copy(SAMPLES / "DC01-Security.evtx", folder / f"{number}.evtx")

    async def steps(page):
        await page.page.run("""new MutationObserver(() => document.querySelector('#loading').hidden || document.querySelector('#cancel').click())
            .observe(document.querySelector('#loading'), {attributes: true}); 1""")
        async with page.loading():
            await page.drop(folder)
        assert await page.error() == "" and "Cancelled" in await page.text("body")

    case.visit(steps)


def test_a_query(samples):
    async def steps(page):
        await page.type_sql("SELECT sum(a.range * b.range) FROM range(1_000_000) a, range(1_000_000) b")
        await page.until("!document.querySelector('#stop').disabled")
        # On a loaded machine, DuckDB may need more than the five seconds after which the page starts it again.
        await page.page.run("""globalThis.own = setTimeout;
            globalThis.setTimeout = (call, ms, ...more) => own(call, ms === 5000 ? 600000 : ms, ...more); 1""")
        await page.press("Escape", "Escape", 27, 0)
        await page.until("document.querySelector('#status').textContent === 'Stopped.'")
        await page.page.run("globalThis.setTimeout = own; 1")
        assert await page.error() == ""
        # A query that was stopped leaves nothing to save.
        assert await page.page.run("document.querySelector('#save-csv').disabled")
        assert await page.ask("SELECT 42 AS answer") == [["42"]]

    samples(steps)
