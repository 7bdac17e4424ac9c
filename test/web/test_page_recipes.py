"""The recipes of the cookbook, on the page."""

import case
import pytest
from conftest import SAMPLES

pytest_plugins = "pages"
pytestmark = pytest.mark.skipif(case.browser.BROWSER is None, reason="Chromium is not installed")


def test_recipes_run(samples):
    """Each one that people can choose runs over the samples, and most find something."""

    async def steps(page):
        titles = await page.page.run("Array.from(document.querySelector('#recipes').options, (option) => option.text).slice(1)")
        found, errors, queries = {}, {}, []
        for number, title in enumerate(titles):
            await page.page.run(f"""document.querySelector('#status').textContent = '';
                (() => {{ const list = document.querySelector('#recipes'); list.value = '{number}'; list.dispatchEvent(new Event('change')); }})()""")
            try:
                found[f"{number} {title}"] = await page.finished()
            except RuntimeError as error:
                errors[f"{number} {title}"] = str(error)
            queries.append(await page.text("#sql"))
        return found, errors, queries

    found, errors, queries = samples(steps)
    assert errors == {}
    assert len(found) >= 10
    assert any("'matches'" in sql for sql in queries)
    assert sum(count > 0 for count in found.values()) > len(found) / 2


def test_rules_that_were_not_dropped():
    async def steps(page):
        await page.load(SAMPLES / "DC01-System.evtx")
        for table in ("matches", "evtx_sigma_summary_of('matches')", "rules"):
            with pytest.raises(RuntimeError, match="drop Sigma rules"):
                await page.query(f"FROM {table}")

    case.visit(steps)
