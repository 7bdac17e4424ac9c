"""The first tab: what happened, by level, topic and text."""

import json

import case
import pytest
from conftest import SAMPLES

pytest_plugins = "pages"
pytestmark = pytest.mark.skipif(case.browser.BROWSER is None, reason="Chromium is not installed")

SHOWN = """Array.from(document.querySelectorAll('#facts-list > div:last-child tbody tr'), (row) => Array.from(row.querySelectorAll('td'), (cell) => cell.innerText))"""


async def choose(page, label, value, kind="change"):
    """Sets one of the filters. Returns the rows that then are shown, once they are."""
    await page.page.run(f"""globalThis.drawn = false; new MutationObserver((_, observer) => {{ observer.disconnect(); drawn = true; }})
            .observe(document.querySelector('#facts-list > div:last-child'), {{childList: true}});
        (() => {{ const filter = document.querySelector('#facts [aria-label="{label}"]'); filter.value = {json.dumps(value)};
                  filter.dispatchEvent(new Event('{kind}')); }})()""")
    await page.until("drawn")
    return await page.page.run(SHOWN)


def test_filters(samples, con, monkeypatch):
    """Each filter keeps the facts of the extension that fit."""
    monkeypatch.chdir(SAMPLES.parent)
    con.execute("CREATE TABLE facts AS FROM evtx_facts('samples')")

    def expected(where):
        columns = "date_trunc('second', first::TIMESTAMP)::VARCHAR, level::VARCHAR, computer, topic::VARCHAR, fact, account, source, target, detail, events::VARCHAR"
        return sorted([value or "" for value in row] for row in con.execute(f"SELECT {columns} FROM facts WHERE {where}").fetchall())

    def shown(rows):
        return sorted(row[:10] for row in rows)

    async def steps(page):
        await page.click("#tab-facts")
        found = {"level <> 'info'": await page.page.run(SHOWN), "true": await choose(page, "Level", "info"), "level IN ('medium', 'high')": await choose(page, "Level", "medium")}
        await choose(page, "Level", "info")
        found["topic = 'services'"] = await choose(page, "Topic", "services")
        await choose(page, "Topic", "")
        found["contains(lower(concat_ws(' ', computer, fact, account, source, target, detail)), 'it''s')"] = await choose(page, "Text", "it's", "input")
        found["contains(lower(concat_ws(' ', computer, fact, account, source, target, detail)), 'sql-agent')"] = await choose(page, "Text", "SQL-agent", "input")
        return found

    found = samples(steps)
    assert {where: shown(rows) for where, rows in found.items()} == {where: expected(where) for where in found}
    assert all(rows for where, rows in found.items() if "it''s" not in where)


def test_a_fact_shows_its_records(samples):
    async def steps(page):
        await page.click("#tab-facts")
        rows = await choose(page, "Text", "", "input")
        await page.page.run("document.querySelector('#status').textContent = ''; document.querySelector('#facts-list > div:last-child td:last-child button').click()")
        count = await page.finished()
        return rows[0], count, await page.ask("SELECT len(evidence) FROM facts ORDER BY rowid LIMIT 1")

    row, count, [[cited]] = samples(steps)
    assert row[-1] == "Records" and count == int(cited) > 0
