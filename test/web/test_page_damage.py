"""Damaged files are rows with errors, on the page as in the extension."""

import os
import pathlib
import shutil

import case
import pytest
from conftest import SAMPLES

pytest_plugins = "pages"
pytestmark = pytest.mark.skipif(case.browser.BROWSER is None, reason="Chromium is not installed")

# These take seconds, or more memory than archives may have on the page.
SLOW = ["names.evtx", "nodes.evtx", "samenames2.evtx", "zstd_seqs.evtx.zst"]


def test_hostile_files(same, tmp_path):
    """Logs and other files of a folder."""
    if not os.environ.get("EVTX_HOSTILE"):
        pytest.skip("EVTX_HOSTILE names no folder")
    folder = shutil.copytree(os.environ["EVTX_HOSTILE"], tmp_path / "hostile", ignore=shutil.ignore_patterns(*SLOW))
    with case.shared(folder) as page:
        assert same(page, "FROM events", folder.parent, "FROM read_evtx('hostile')") > 0
        # The page does not know the size of an image.
        sound = "WHERE filename NOT LIKE '%.raw'"
        assert same(page, f"FROM files {sound}", folder.parent, f"FROM evtx_file_metadata('hostile') {sound}") > 0


def test_files_that_are_dropped_by_themselves(same, tmp_path):
    log = (SAMPLES / "DC01-Security.evtx").read_bytes()
    files = {"cut.evtx": log[:40_000], "empty.evtx": b"", "header.evtx": log[:4096], "sound.evtx": log, "zeros.evtx": bytes(69632), "notes.txt": b"no log"}
    for name, data in files.items():
        (tmp_path / name).write_bytes(data)

    with case.shared(*(tmp_path / name for name in files)) as page:
        print(page(lambda case: case.page.run("document.body.innerText")), page(lambda case: case.ask("FROM events")))
        assert page(lambda case: case.text("#tab-damage")) == "Files (6, 5 with errors)"
        errors = page(lambda case: case.ask("SELECT filename, error FROM events WHERE event_id IS NULL ORDER BY filename"))
        assert [name for name, error in errors if error] == ["cut.evtx", "empty.evtx", "header.evtx", "notes.txt", "zeros.evtx"]
        assert 'notes.txt: not an EVTX log: it starts with "no log"' in errors[3][1]
        assert same(page, "FROM events WHERE filename != 'notes.txt'", tmp_path, "FROM read_evtx('*.evtx')") > 55
        assert same(page, "FROM files WHERE filename != 'notes.txt'", tmp_path, "FROM evtx_file_metadata('*.evtx')") == 5


def test_a_file_that_is_gone(tmp_path):
    """Reading again finds that a log was deleted. The others are read."""
    for name in ("DC01-Security.evtx", "DC01-System.evtx"):
        shutil.copy(SAMPLES / name, tmp_path)

    async def steps(page):
        await page.load(tmp_path / "DC01-Security.evtx", tmp_path / "DC01-System.evtx")
        before = await page.ask("SELECT filename, count(*), any_value(error) FROM events GROUP BY filename ORDER BY filename")
        (tmp_path / "DC01-Security.evtx").unlink()
        await page.click("#options")
        async with page.loading():
            await page.click("#choose-read")
        return before, await page.ask("SELECT filename, count(*), any_value(error) FROM events GROUP BY filename ORDER BY filename")

    before, after = case.visit(steps)
    assert [row[:2] for row in before] == [["DC01-Security.evtx", "55"], ["DC01-System.evtx", "10"]]
    assert after[0][:2] == ["DC01-Security.evtx", "1"] and "the browser cannot read the file" in after[0][2]
    assert after[1] == before[1]
