"""The page that reads logs in a browser."""

import os
import pathlib

import case
import pytest
from conftest import SAMPLES

pytest_plugins = "pages"
pytestmark = pytest.mark.skipif(case.browser.BROWSER is None, reason="Chromium is not installed")


def test_rows_are_those_of_the_extension_over_the_samples(samples, same):
    assert same(samples, "FROM events", SAMPLES.parent, f"FROM read_evtx('{SAMPLES.name}')") > 400


def test_rows_are_those_of_the_extension_over_collections(collections, same):
    folder = pathlib.Path(os.environ["EVTX_COLLECTIONS"])
    assert same(collections, "FROM events", folder.parent, f"FROM read_evtx('{folder.name}')") > 0


def test_rows_are_those_of_the_extension(same):
    if not os.environ.get("EVTX_CORPUS"):
        pytest.skip("EVTX_CORPUS names no folder")
    folder = pathlib.Path(os.environ["EVTX_CORPUS"])
    with case.shared(folder) as page:
        assert same(page, "FROM events", folder.parent, f"FROM read_evtx('{folder.name}')") > 0
