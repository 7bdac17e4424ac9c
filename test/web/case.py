"""The page in a browser, as a person uses it: drops files, types SQL, reads the grid."""

import asyncio
import contextlib
import json
import os
import pathlib
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "python"))
import browser  # noqa: E402

WEB = pathlib.Path(os.environ.get("EVTX_WEB", pathlib.Path(__file__).resolve().parents[2] / "build/web"))
CONTROL = 2
# The time in seconds after which the page hangs.
HANG = 600


class Case:
    """The open page. `page.errors` has what its console shows."""

    def __init__(self, page):
        self.page = page

    async def until(self, script):
        """Waits until a script has a true value, and returns it."""
        end = time.monotonic() + HANG
        while not (value := await self.page.run(script)):
            if time.monotonic() > end or await self.page.run("document.body?.dataset.state === 'failed'"):
                raise AssertionError(f"still false: {script}; the page shows: {await self.page.run('document.body.innerText.slice(0, 2000)')}")
            await asyncio.sleep(0.02)
        return value

    async def state(self, name):
        await self.until(f"document.body?.dataset.state === '{name}'")

    async def drop(self, *paths):
        """Drops files and folders on the page."""
        place = await self.page.run("(() => { const box = document.querySelector('#drop').getBoundingClientRect(); return [box.x + 20, box.y + 20]; })()")
        data = {"items": [], "files": [str(path) for path in paths], "dragOperationsMask": 1}
        for kind in ("dragEnter", "dragOver", "drop"):
            await self.page.call("Input.dispatchDragEvent", type=kind, x=place[0], y=place[1], data=data)

    @contextlib.asynccontextmanager
    async def loading(self):
        """Waits until what the block starts to load is loaded."""
        await self.page.run("""globalThis.loads = 0; globalThis.seen ??= new MutationObserver(() => { loads += document.body.dataset.state === 'loaded'; });
            seen.observe(document.body, {attributeFilter: ['data-state']}); 1""")
        yield
        await self.until("loads > 0")

    async def load(self, *paths):
        """Drops files and waits until they are loaded."""
        async with self.loading():
            await self.drop(*paths)

    async def text(self, element):
        return await self.page.run(f"document.querySelector({json.dumps(element)}).innerText")

    async def click(self, element):
        await self.page.run(f"document.querySelector({json.dumps(element)}).click()")

    async def type_sql(self, sql):
        """Types SQL in place of what is in the box, and runs it."""
        await self.click("#tab-events")
        await self.page.run("document.querySelector('#status').textContent = ''; document.querySelector('#sql').focus(); 1")
        await self.press("a", "KeyA", 65)
        await self.press("Backspace", "Backspace", 8, 0)
        await self.page.call("Input.insertText", text=sql)
        await self.press("Enter", "Enter", 13)

    async def press(self, key, code, number, modifiers=CONTROL):
        """Presses a key, with Control unless other modifiers are given."""
        for kind in ("rawKeyDown", "keyUp"):
            await self.page.call("Input.dispatchKeyEvent", type=kind, key=key, code=code, modifiers=modifiers, windowsVirtualKeyCode=number)

    async def mouse(self, x, y):
        """Clicks at a place."""
        for kind in ("mousePressed", "mouseReleased"):
            await self.page.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    async def query(self, sql):
        """Runs SQL, and waits until its rows are shown. Returns their number, or raises the error that the page shows."""
        await self.type_sql(sql)
        return await self.finished()

    async def finished(self):
        """Waits until the query that was started has ended. Returns the number of its rows, or raises the error that the page shows."""
        await self.until("document.querySelector('#stop').disabled && (document.querySelector('#status').textContent || !document.querySelector('#error').hidden)")
        if error := await self.error():
            raise RuntimeError(error)
        status = await self.text("#status")
        return int(status.split()[0].replace(",", ""))

    async def error(self):
        """The error that the page shows; empty if there is none."""
        return await self.page.run("document.querySelector('#error').hidden ? '' : document.querySelector('#error').textContent")

    async def spent(self, what):
        """The processor time in seconds that the page has taken: `ThreadTime` without its workers, `ProcessTime` with them."""
        metrics = (await self.page.call("Performance.getMetrics"))["metrics"]
        return next(metric["value"] for metric in metrics if metric["name"] == what)

    async def rows(self):
        """The rows that the grid shows."""
        return await self.page.run("Array.from(document.querySelectorAll('#grid tbody tr'), (row) => Array.from(row.querySelectorAll('td'), (cell) => cell.textContent))")

    async def ask(self, sql):
        """Runs SQL. Returns the rows that the grid shows, or raises the error that the page shows."""
        return await self.rows() if await self.query(sql) else []

    async def save(self, button, path):
        """Saves a file by a button."""
        with tempfile.TemporaryDirectory(dir=path.parent) as folder:
            await self.page.call("Browser.setDownloadBehavior", behavior="allow", downloadPath=folder)
            await self.click(button)
            await self.until(f"!document.querySelector('{button}').disabled")
            end = time.monotonic() + HANG
            # An empty file holds the place of one that is on its way.
            while not (found := [file for file in pathlib.Path(folder).iterdir() if file.suffix in (".parquet", ".csv", ".html") and file.stat().st_size]):
                assert not await self.error() and time.monotonic() < end, await self.error()
                await asyncio.sleep(0.02)
            return found[0].rename(path)

    async def table(self, sql, path):
        """Runs SQL, and saves its rows as Parquet."""
        await self.query(sql)
        return await self.save("#save-parquet", path)


@contextlib.asynccontextmanager
async def opened(*options, address=None):
    """Opens the page, from the disk unless there is an address. The value is its case."""
    async with browser.opened(address or (WEB / "index.html").as_uri(), "--window-size=1400,1000", *options) as page:
        case = Case(page)
        await case.state("ready")
        yield case


def visit(steps, *options, address=None):
    """Opens the page, and runs an asynchronous function of its case."""

    async def run():
        async with opened(*options, address=address) as case:
            return await steps(case)

    return asyncio.run(run())


@contextlib.contextmanager
def shared(*paths):
    """An open page with logs and rules: what runs an asynchronous function of its case."""
    loop = asyncio.new_event_loop()
    run = loop.run_until_complete
    page = opened()
    try:
        steps = run(page.__aenter__())
        try:
            if paths:
                run(steps.load(*paths))
            yield lambda work: run(work(steps))
        finally:
            run(page.__aexit__(None, None, None))
    finally:
        loop.close()
