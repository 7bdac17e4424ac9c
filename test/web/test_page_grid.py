"""The table of a result: many rows, by keyboard and mouse."""

import case
import pytest

pytest_plugins = "pages"
pytestmark = pytest.mark.skipif(case.browser.BROWSER is None, reason="Chromium is not installed")

ROWS = "SELECT range AS i, 'row ' || range AS name, [range, NULL] AS list FROM range(1_000_000)"
CELLS = "document.querySelectorAll('#grid td').length"


def seen(text):
    return f"Array.from(document.querySelectorAll('#grid tbody tr')).some((row) => row.querySelector('td')?.textContent === '{text}')"


def first(text):
    return f"document.querySelector('#grid tbody td')?.textContent === '{text}'"


async def focus(page):
    await page.page.run("document.querySelector('#grid').focus(); 1")


def test_a_million_rows_scroll_by_keyboard(samples):
    async def steps(page):
        assert await page.query(ROWS) == 1_000_000
        assert await page.page.run(first("0"))
        await focus(page)
        await page.press("End", "End", 35)
        await page.until(seen("999999"))
        assert 0 < await page.page.run(CELLS) < 1000
        await page.press("PageUp", "PageUp", 33, 0)
        await page.press("Enter", "Enter", 13, 0)
        await page.until("!document.querySelector('#detail').hidden")
        number = int((await page.text("#detail strong")).removeprefix("Row ").replace(",", ""))
        assert 999_900 < number < 1_000_000
        assert f"row {number - 1}" in await page.text("#detail")
        await page.press("Escape", "Escape", 27, 0)
        await page.until("document.querySelector('#detail').hidden")

    samples(steps)


def test_a_million_rows_scroll_by_mouse(samples):
    async def steps(page):
        await page.query(ROWS)
        await page.page.run("(() => { const grid = document.querySelector('#grid'); grid.scrollTop = (grid.scrollHeight - grid.clientHeight) / 2; })()")
        await page.until("(() => { const at = Number(document.querySelector('#grid tbody td')?.textContent); return at > 490_000 && at < 510_000; })()")
        assert 0 < await page.page.run(CELLS) < 1000

    samples(steps)


def test_headings_sort(samples):
    """Up, down, and as before."""

    async def steps(page):
        await page.query("SELECT (range * 7) % 1000 AS i FROM range(1000)")
        for text in ("0", "999", "0"):
            place = await page.page.run("(() => { const box = document.querySelector('#grid thead th').getBoundingClientRect(); return [box.x + 15, box.y + 10]; })()")
            await page.mouse(*place)
            await page.until(first(text))
        await focus(page)
        await page.press("s", "KeyS", 83, 0)
        await page.press("s", "KeyS", 83, 0)
        await page.until(first("999"))

    samples(steps)


def test_a_row_opens(samples):
    """All of its values, also long ones, and the entries of lists."""

    async def steps(page):
        await page.query("SELECT repeat('x', 100_000) AS long, ['one', 'two'] AS list, NULL AS nothing, MAP {'key': 'value'} AS map")
        place = await page.page.run("(() => { const box = document.querySelector('#grid tbody td').getBoundingClientRect(); return [box.x + 5, box.y + 5]; })()")
        await page.mouse(*place)
        await page.until("!document.querySelector('#detail').hidden")
        long, *others = await page.page.run("Array.from(document.querySelectorAll('#detail dd'), (value) => value.innerText)")
        assert (long, [text.split() for text in others]) == ("x" * 100_000, [["value", "one", "two"], ["NULL"], ["key", "value"]])

    samples(steps)


def test_what_duckdb_has_in_extensions_is_named(samples):
    async def steps(page):
        for sql in ["SELECT time_created AT TIME ZONE 'Europe/Berlin' FROM events", "SELECT date_trunc('day', now())", "SELECT current_date"]:
            with pytest.raises(RuntimeError, match="not on this page|no extensions"):
                await page.query(sql)
        assert await page.ask("SELECT 42 AS answer") == [["42"]]

    samples(steps)
