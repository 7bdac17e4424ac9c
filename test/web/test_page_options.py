"""The dialog of what to read."""

import case
import pytest
from conftest import SAMPLES
from structures import FILE_HEADER, file_header

pytest_plugins = "pages"
pytestmark = pytest.mark.skipif(case.browser.BROWSER is None, reason="Chromium is not installed")

COLUMNS = "SELECT string_agg(column_name, ' ') FROM (DESCRIBE events)"


async def choose(page, columns, event_ids=""):
    """Chooses columns and event IDs in the open dialog."""
    await page.page.run(f"""for (const box of document.querySelectorAll('#choose-columns input')) if (box.checked !== {columns}.includes(box.value)) box.click();
        document.querySelector('#choose-events').value = '{event_ids}'; 1""")
    await page.click("#choose-read")


def test_columns_and_events(con):
    """What people choose applies to the next files, and to those that are there."""

    offered = []

    async def steps(page):
        offered.extend(await page.page.run("[...document.querySelectorAll('#choose-columns input')].map((box) => box.value)"))
        await page.click("#options")
        await choose(page, ["record_id", "time_created", "event_id", "filename"], "4625, 1102")
        await page.load(SAMPLES / "DC01-Security.evtx")
        assert "only event 4625, 1102 and 4 columns" in await page.text("#about")
        few = await page.ask("SELECT event_id, count(*) FROM events GROUP BY ALL ORDER BY ALL"), await page.ask(COLUMNS)
        await page.click("#options")
        async with page.loading():
            await choose(page, ["event_id", "computer"])
        return few, (await page.ask("SELECT count(*) FROM events"), await page.ask(COLUMNS))

    few, more = case.visit(steps)
    log = f"read_evtx('{SAMPLES}/DC01-Security.evtx')"
    assert offered == [name for name, *_ in con.execute(f"DESCRIBE FROM {log}").fetchall()]
    expected = con.execute(f"SELECT event_id::VARCHAR, count(*)::VARCHAR FROM {log} WHERE event_id IN (4625, 1102) GROUP BY ALL ORDER BY ALL").fetchall()
    assert few == ([list(row) for row in expected], [["record_id time_created event_id filename"]])
    [(rows,)] = con.execute(f"SELECT count(*) FROM {log}").fetchall()
    assert more == ([[str(rows)]], [["event_id computer"]])


def test_the_dialog_refuses_events_that_cannot_be(samples):
    async def steps(page):
        await page.click("#options")
        for ids in ["4625-4630", "-1", "4294967296"]:
            await page.page.run(f"""document.querySelector('#choose-events').value = '{ids}';
                document.querySelector('#choose-events').dispatchEvent(new Event('input')); 1""")
            await page.click("#choose-read")
            assert await page.page.run("document.querySelector('#choose').open"), ids
        await page.click("#choose button:not(.main)")
        await page.until("!document.querySelector('#choose').open")
        await page.click("#options")
        assert await page.page.run("document.querySelector('#choose-events').value") == ""
        await page.click("#choose button:not(.main)")

    samples(steps)


def test_a_log_that_may_not_fit(tmp_path):
    """The page says how large it is, and offers to read less; or nothing."""
    large = tmp_path / "large.evtx"
    data = (SAMPLES / "DC01-Security.evtx").read_bytes()
    with open(large, "wb") as log:
        log.write(file_header(data, 16_000) + data[FILE_HEADER:])
        log.truncate(1 << 30)

    async def steps(page):
        await page.drop(large)
        await page.until("document.querySelector('#choose').open")
        why = await page.text("#choose-why")
        boxes = await page.page.run("document.querySelectorAll('#choose-columns input:checked').length")
        await page.click("#choose button:not(.main)")
        await page.state("ready")
        await page.load(SAMPLES / "DC01-System.evtx")
        rows = await page.ask("SELECT filename, count(*) FROM events GROUP BY ALL")
        async with page.loading():
            await page.drop(large)
            await page.until("document.querySelector('#choose').open")
            await choose(page, ["event_id", "filename"])
        return why, boxes, rows, await page.ask("SELECT DISTINCT filename FROM events ORDER BY filename")

    why, boxes, rows, files = case.visit(steps)
    assert "1024 MiB" in why and "memory" in why
    assert 5 < boxes < 20
    assert rows == [["DC01-System.evtx", "10"]]
    # The files from before are read again with the columns that were chosen.
    assert files == [["DC01-System.evtx"], ["large.evtx"]]
