"""The memory that the page takes."""

import pathlib
import sys
import time

import case
import pytest
from conftest import SAMPLES
from structures import CHUNK, FILE_HEADER, file_header

pytest_plugins = "pages"
pytestmark = [
    pytest.mark.skipif(case.browser.BROWSER is None, reason="there is no Chromium"),
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs /proc"),
]


def memory(process):
    """The memory of a process and of those that it started, in bytes. What they share counts once."""
    parents = {}
    for status in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            parents[int(status.parent.name)] = int(status.read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
    total, wanted = 0, [process]
    for each in wanted:
        wanted += [child for child, parent in parents.items() if parent == each]
        try:
            total += next(int(line.split()[1]) << 10 for line in pathlib.Path(f"/proc/{each}/smaps_rollup").read_text().splitlines() if line.startswith("Pss:"))
        except (OSError, StopIteration):
            continue
    return total


def test_a_sparse_log_of_2_gib(same, tmp_path):
    """Only its parts are in memory, and its last chunk is read."""
    data = (SAMPLES / "DC01-Security.evtx").read_bytes()
    chunk = data[FILE_HEADER:FILE_HEADER + CHUNK]
    chunks = (2 << 30) // CHUNK
    path = tmp_path / "sparse.evtx"
    with open(path, "wb") as log:
        log.write(file_header(data, chunks) + chunk)
        log.seek(FILE_HEADER + (chunks - 1) * CHUNK)
        log.write(chunk)

    async def load(page):
        before = most = memory(page.page.process)
        async with page.loading(seconds=1):
            await page.drop(path)
            await page.until("document.querySelector('#choose').open")
            await page.page.run("for (const box of document.querySelectorAll('#choose-columns input:not(:checked)')) box.click()")
            await page.click("#choose-read")
            end = time.monotonic() + 60
            while not await page.page.run("loads") and time.monotonic() < end:
                most = max(most, memory(page.page.process))
        return before, most

    with case.shared() as page:
        before, most = page(load)
        assert same(page, "FROM events", tmp_path, "FROM read_evtx('sparse.evtx')") >= 110
        assert same(page, "FROM files", tmp_path, "FROM evtx_file_metadata('sparse.evtx')") == 1
    assert most - before < 1 << 30
