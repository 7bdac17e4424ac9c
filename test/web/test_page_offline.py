"""The page makes no connection, whatever it is asked to."""

import contextlib
import functools
import http.server
import threading

import case
import pytest
from conftest import SAMPLES

pytestmark = pytest.mark.skipif(case.browser.BROWSER is None, reason="Chromium is not installed")

# What a script that got into the page could try. Each attempt ends with how it failed.
ATTEMPTS = """
const outcome = (promise) => Promise.race([promise.then((value) => value, (error) => error.name), new Promise((done) => { setTimeout(done, 600000, 'no answer'); })]);
const event = (target, good, bad) => new Promise((done) => { target[good] = () => done('connected'); target[bad] = () => done('blocked'); });
const attempts = (url) => Promise.all([
  outcome(fetch(url + 'fetch')),
  outcome(new Promise((done) => {
    const request = new XMLHttpRequest();
    event(request, 'onload', 'onerror').then(done);
    request.open('GET', url + 'request');
    request.send();
  })),
  outcome(new Promise((done) => { event(new WebSocket(url.replace('http', 'ws')), 'onopen', 'onerror').then(done); })),
  typeof Image === 'undefined' ? 'blocked' : outcome(new Promise((done) => {
    const image = new Image();
    event(image, 'onload', 'onerror').then(done);
    image.src = url + 'image';
  })),
  outcome(import(url + 'module.js')),
]);
"""


@contextlib.contextmanager
def server(folder):
    """A server of a folder, on this machine. Gives its address, and the paths that it was asked for."""
    asked = []

    class Handler(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_):
            asked.append(self.path)

        def end_headers(self):
            self.send_header("Access-Control-Allow-Origin", "*")
            super().end_headers()

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Handler, directory=folder)) as running:
        threading.Thread(target=running.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{running.server_port}/", asked
        finally:
            running.shutdown()


async def watch(page):
    """Collects the addresses that the page and its workers ask for, from now on."""
    addresses = []

    async def attached(parameters):
        session = parameters["sessionId"]
        await page.page.send("Network.enable", session)
        await page.page.send("Target.setAutoAttach", session, autoAttach=True, waitForDebuggerOnStart=True, flatten=True)
        await page.page.send("Runtime.runIfWaitingForDebugger", session)

    async def asked(parameters):
        addresses.append(parameters["request"]["url"])

    page.page.on |= {"Target.attachedToTarget": attached, "Network.requestWillBeSent": asked}
    await page.page.call("Network.enable")
    await page.page.call("Target.setAutoAttach", autoAttach=True, waitForDebuggerOnStart=True, flatten=True)
    return addresses


async def use(page):
    """Everything that the page does. Returns the number of rows."""
    await page.load(SAMPLES)
    assert await page.ask("SELECT count(*) FROM evtx_timeline_of('events') WHERE event IS NOT NULL") != [["0"]]
    await page.query("FROM events")
    await page.click("#tab-matches")
    return await page.ask("SELECT count(*) FROM events")


def test_no_attempt_connects(tmp_path):
    """In the page and in a worker, which inherits its policy."""
    with server(tmp_path) as (address, asked):

        async def steps(page):
            tried = await page.page.run(f"(async () => {{ {ATTEMPTS} return attempts('{address}'); }})()")
            in_worker = await page.page.run(f"""(async () => {{
                const script = {ATTEMPTS!r} + "attempts('{address}').then(postMessage)";
                const worker = new Worker(URL.createObjectURL(new Blob([script], {{type: 'text/javascript'}})));
                return new Promise((done) => {{ worker.onmessage = ({{data}}) => done(data); worker.onerror = (event) => done(event.message); }});
            }})()""")
            return tried, in_worker

        tried, in_worker = case.visit(steps)
    failures = ["TypeError", "blocked", "blocked", "blocked", "TypeError"]
    assert (tried, in_worker) == (failures, failures)
    assert asked == []


def test_from_the_disk():
    """Only data and blobs of its own are asked for, by the page and by its workers."""

    async def steps(page):
        addresses = await watch(page)
        await page.page.run("document.body.dataset.state = 'old'")
        await page.page.call("Page.reload")
        await page.state("ready")
        await use(page)
        return addresses

    addresses = case.visit(steps)
    root = case.WEB.as_uri() + "/"
    assert any(address.startswith(root) for address in addresses) and any(address.startswith("blob:") for address in addresses)
    assert [address for address in addresses if not address.startswith((root, "blob:", "data:"))] == []


def test_from_a_server():
    """A server of the folder, such as Python's, is asked for its files only."""
    with server(case.WEB) as (address, asked):
        assert case.visit(use, address=f"{address}index.html") != [["0"]]
    files = {f"/{file.name}" for file in case.WEB.iterdir()}
    paths = {path for path in asked if not path.startswith("/favicon")}
    assert "/index.html" in paths and paths <= files
