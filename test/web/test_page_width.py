"""Tables fit into a window of 1,400 pixels, or scroll."""

import case
import pytest

pytest_plugins = "pages"
pytestmark = pytest.mark.skipif(case.browser.BROWSER is None, reason="Chromium is not installed")

# The cells of the tables in a tab whose texts go beyond their own edges or those of the window.
CUT = """(() => {
    const right = document.documentElement.clientWidth;
    return Array.from(document.querySelectorAll('#TAB :is(th, td)')).filter((cell) =>
        cell.getBoundingClientRect().right > right || cell.getBoundingClientRect().left < 0 || cell.scrollWidth > cell.clientWidth + 1).map((cell) => cell.innerText);
})()"""


@pytest.mark.parametrize("tab", ["facts", "matches", "damage"])
def test_no_column_is_cut(samples, tab):
    async def steps(page):
        await page.click(f"#tab-{tab}")
        assert await page.page.run("innerWidth") == 1400
        assert await page.page.run("document.documentElement.scrollWidth") <= 1400
        assert await page.page.run(f"document.querySelectorAll('#{tab} td').length") > 0
        return await page.page.run(CUT.replace("TAB", tab))

    assert samples(steps) == []


def test_the_last_column_of_a_result_is_reached(samples):
    """Its right edge is inside the grid, which ends in the window."""

    async def steps(page):
        await page.query("FROM events")
        await page.page.run("document.querySelector('#grid').focus(); 1")
        await page.press("End", "End", 35, 0)
        return await page.until("""(() => {
            const [heading, grid] = [Array.from(document.querySelectorAll('#grid thead th')).at(-1), document.querySelector('#grid')];
            return heading?.textContent === 'filename' && heading.getBoundingClientRect().right <= grid.getBoundingClientRect().right;
        })()""")

    assert samples(steps)
