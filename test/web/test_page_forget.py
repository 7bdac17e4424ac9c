"""Nobody loses a case by one click."""

import case
import pytest
from conftest import SAMPLES

pytestmark = pytest.mark.skipif(case.browser.BROWSER is None, reason="Chromium is not installed")


def test_the_page_asks_before_it_forgets():
    """The browser asks before it reloads or closes the page, and the page asks before it starts over; neither without files."""
    asked = []

    async def steps(page):
        async def refuse(parameters):
            asked.append(parameters["type"])
            await page.page.send("Page.handleJavaScriptDialog", accept=False)

        page.page.on["Page.javascriptDialogOpening"] = refuse
        await page.page.run("document.body.dataset.state = 'old'")
        # Browsers ask nobody who has not used the page.
        await page.mouse(5, 5)
        await page.page.call("Page.reload")
        await page.state("ready")
        assert asked == []

        await page.load(SAMPLES / "DC01-System.evtx")
        await page.mouse(5, 5)
        for leave in ("Page.reload", "Page.close"):
            await page.page.call(leave)
            await page.until("1")
        assert asked == ["beforeunload"] * 2
        await page.click("#reset")
        await page.click("#forget [value='']")
        await page.until("!document.querySelector('#forget').open")
        rows = await page.ask("SELECT count(*) FROM events")

        await page.page.run("document.body.dataset.state = 'old'")
        await page.click("#reset")
        await page.click("#forget .main")
        await page.state("ready")
        assert await page.page.run("document.querySelector('#case').hidden")
        return rows

    assert case.visit(steps) == [["10"]]
    assert asked == ["beforeunload"] * 2
