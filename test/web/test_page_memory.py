"""The memory that the page takes."""

import pathlib
import sys
import time
import zipfile

import case
import pytest
from conftest import SAMPLES
from structures import CHUNK, FILE_HEADER, file_header

pytest_plugins = "pages"
pytestmark = [
    pytest.mark.skipif(case.browser.BROWSER is None, reason="Chromium is not installed"),
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


async def loads(page, path, choose=None):
    """Loads a file, which may need a choice of columns. Returns how much memory that takes at most, in bytes."""
    before = most = memory(page.page.process)
    async with page.loading():
        await page.drop(path)
        if choose:
            await choose(page)
        end = time.monotonic() + case.HANG
        while not await page.page.run("loads") and time.monotonic() < end:
            most = max(most, memory(page.page.process))
    return most - before


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

    async def choose(page):
        await page.until("document.querySelector('#choose').open")
        await page.page.run("for (const box of document.querySelectorAll('#choose-columns input:not(:checked)')) box.click()")
        await page.click("#choose-read")

    with case.shared() as page:
        assert page(lambda page: loads(page, path, choose)) < 1 << 30
        assert same(page, "FROM events", tmp_path, "FROM read_evtx('sparse.evtx')") >= 110
        assert same(page, "FROM files", tmp_path, "FROM evtx_file_metadata('sparse.evtx')") == 1


def test_a_compressed_log_of_192_mib(same, tmp_path):
    """It is held compressed: there is no folder for temporary files."""
    data = (SAMPLES / "DC01-Security.evtx").read_bytes()
    chunk = data[FILE_HEADER:FILE_HEADER + CHUNK]
    chunks = (192 << 20) // CHUNK
    with zipfile.ZipFile(tmp_path / "large.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("large.evtx", file_header(data, chunks) + chunk * chunks)

    with case.shared() as page:
        assert page(lambda page: loads(page, tmp_path / "large.zip")) < 1 << 30
        rows = "SELECT count(*), count(error), sum(record_id), sum(length(event_data::VARCHAR)) FROM"
        assert same(page, f"{rows} events", tmp_path, f"{rows} read_evtx('large.zip')") == 1
        assert page(lambda page: page.ask("SELECT count(*) > 100000 FROM events WHERE error IS NULL")) == [["true"]]
