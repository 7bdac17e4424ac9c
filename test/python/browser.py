"""A page in Chromium without a window, by its debugging protocol."""

import asyncio
import contextlib
import re
import shutil
import subprocess
import tempfile

import aiohttp

BROWSER = next(filter(None, map(shutil.which, ["chromium", "chromium-browser", "google-chrome"])), None)


class Navigated(Exception):
    """Another page has come while a script ran."""


class Page:
    """An open page. `errors` has what its console shows. `on` has functions that are called with the parameters of other events."""

    def __init__(self, socket):
        self._socket, self._last, self.errors, self.on = socket, 0, [], {}

    async def send(self, method, session=None, **parameters):
        """Sends a command, to the page or to a session of one of its workers, without waiting for the answer."""
        self._last += 1
        target = {"sessionId": session} if session else {}
        await self._socket.send_json({"id": self._last, "method": method, "params": parameters, **target})
        return self._last

    async def call(self, method, **parameters):
        number = await self.send(method, **parameters)
        while True:
            message = await self._socket.receive_json(timeout=600)
            if message.get("method") in ("Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Log.entryAdded"):
                self.errors.append(message["params"])
            if message.get("method") in self.on:
                await self.on[message["method"]](message["params"])
            if message.get("id") == number:
                if re.search("navigated|context", message.get("error", {}).get("message", "")):
                    raise Navigated
                assert "error" not in message, message
                return message["result"]

    async def run(self, script):
        """The value of a script. If another page comes meanwhile, it runs there."""
        try:
            result = await self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        except Navigated:
            await asyncio.sleep(0.05)
            return await self.run(script)
        assert "exceptionDetails" not in result, result
        return result["result"].get("value")

    async def press(self, key):
        """Presses a key, such as Enter."""
        text = {"Enter": {"text": "\r"}}.get(key, {})
        for kind in ("keyDown", "keyUp"):
            await self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key, **text)


@contextlib.asynccontextmanager
async def opened(address, *options):
    """Opens the page at an address."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        command = [BROWSER, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={profile}", "--remote-debugging-port=0", *options]
        with subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True) as browser:
            try:
                port = next(filter(None, (re.search(r"DevTools listening on ws://[^:]+:(\d+)/", line) for line in browser.stderr)))[1]
                async with aiohttp.ClientSession() as client:
                    async with client.put(f"http://127.0.0.1:{port}/json/new?about:blank") as answer:
                        place = (await answer.json())["webSocketDebuggerUrl"]
                    async with client.ws_connect(place, max_msg_size=0) as socket:
                        page = Page(socket)
                        page.process = browser.pid
                        for domain in ("Page", "Runtime", "Log", "Performance"):
                            await page.call(f"{domain}.enable")
                        await page.call("Page.navigate", url=address)
                        scheme = address.split(":")[0]
                        while await page.run("location.protocol + document.readyState") != f"{scheme}:complete":
                            await asyncio.sleep(0.05)
                        yield page
            finally:
                browser.terminate()
                browser.stderr.close()


def visit(path, steps, *options):
    """Opens a file, and runs an asynchronous function of the page."""

    async def session():
        async with opened(path.as_uri(), *options) as page:
            return await steps(page)

    return asyncio.run(session())
