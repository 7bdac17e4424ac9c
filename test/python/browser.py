"""A page in Chromium without a window, by its debugging protocol."""

import asyncio
import re
import shutil
import subprocess
import tempfile

import aiohttp

BROWSER = next(filter(None, map(shutil.which, ["chromium", "chromium-browser", "google-chrome"])), None)


class Page:
    """An open page. `errors` has what its console shows."""

    def __init__(self, socket):
        self._socket, self._last, self.errors = socket, 0, []

    async def call(self, method, **parameters):
        self._last += 1
        await self._socket.send_json({"id": self._last, "method": method, "params": parameters})
        while True:
            message = await self._socket.receive_json(timeout=30)
            if message.get("method") in ("Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Log.entryAdded"):
                self.errors.append(message["params"])
            if message.get("id") == self._last:
                assert "error" not in message, message
                return message["result"]

    async def run(self, script):
        """The value of a script."""
        result = await self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in result, result
        return result["result"].get("value")

    async def press(self, key):
        """Presses a key, such as Enter."""
        text = {"Enter": {"text": "\r"}}.get(key, {})
        for kind in ("keyDown", "keyUp"):
            await self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key, **text)


def visit(path, steps, *options):
    """Opens a file, and runs an asynchronous function of the page."""

    async def session(port):
        async with aiohttp.ClientSession() as client:
            async with client.put(f"http://127.0.0.1:{port}/json/new?about:blank") as answer:
                address = (await answer.json())["webSocketDebuggerUrl"]
            async with client.ws_connect(address, max_msg_size=0) as socket:
                page = Page(socket)
                for domain in ("Page", "Runtime", "Log"):
                    await page.call(f"{domain}.enable")
                await page.call("Page.navigate", url=path.as_uri())
                while await page.run("location.protocol + document.readyState") != "file:complete":
                    await asyncio.sleep(0.05)
                return await steps(page)

    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        command = [BROWSER, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={profile}", "--remote-debugging-port=0", *options]
        with subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True) as browser:
            try:
                port = next(filter(None, (re.search(r"DevTools listening on ws://[^:]+:(\d+)/", line) for line in browser.stderr)))[1]
                return asyncio.run(session(port))
            finally:
                browser.terminate()
                browser.stderr.close()
