"""The macros of the page return the rows of the extension."""

import os
import pathlib

import case
import pytest
from conftest import SAMPLES

pytest_plugins = "pages"
pytestmark = pytest.mark.skipif(case.browser.BROWSER is None, reason="Chromium is not installed")

# What is asked of the page, and of the extension over a folder.
CALLS = {
    "evtx_timeline": ("evtx_timeline_of('events')", "evtx_timeline('{}')"),
    "evtx_logons": ("evtx_logons_of('events')", "evtx_logons('{}')"),
    "evtx_process_tree": ("evtx_process_tree_of('events')", "evtx_process_tree('{}')"),
    "evtx_script_blocks": ("evtx_script_blocks_of('events')", "evtx_script_blocks('{}')"),
    "evtx_accounts": ("evtx_accounts_of('events')", "evtx_accounts('{}')"),
    "evtx_metrics": ("evtx_metrics_of('events')", "evtx_metrics('{}')"),
    "evtx_decoded": ("evtx_decoded_of('events')", "evtx_decoded('{}')"),
    "evtx_facts": ("evtx_facts_of('events', table_of_files := 'files')", "evtx_facts('{}')"),
    "evtx_case_summary": ("evtx_case_summary_of('events', table_of_files := 'files')", "evtx_case_summary('{}')"),
    "evtx_file_metadata": ("files", "evtx_file_metadata('{}')"),
}
RULES = {
    "evtx_sigma": ("matches", "evtx_sigma('{0}', rules := '{0}')"),
    "evtx_sigma_timeline": ("evtx_sigma_timeline_of('matches', table_of_events := 'events')", "evtx_sigma_timeline('{0}', '{0}')"),
    "evtx_sigma_summary": ("evtx_sigma_summary_of('matches')", "evtx_sigma_summary('{0}', '{0}')"),
}


@pytest.mark.parametrize("macro", [*CALLS, *RULES])
def test_rows_over_the_samples(samples, same, macro):
    call, expected = (CALLS | RULES)[macro]
    rows = same(samples, f"FROM {call}", SAMPLES.parent, f"FROM {expected.format(SAMPLES.name)}")
    assert rows > 0 or macro == "evtx_script_blocks"


@pytest.mark.parametrize("macro", CALLS)
def test_rows_over_collections(collections, same, macro):
    folder = pathlib.Path(os.environ["EVTX_COLLECTIONS"])
    call, expected = CALLS[macro]
    assert same(collections, f"FROM {call}", folder.parent, f"FROM {expected.format(folder.name)}") > 0


def test_codes(samples, same):
    assert same(samples, "FROM evtx_codes()", SAMPLES.parent, "FROM evtx_codes()") > 3000


def test_a_search(samples, same):
    texts = "array_to_string([e.value FOR e IN map_entries(event_data)], chr(10))"
    fields = "[{'name': e.key, 'value': e.value} FOR e IN map_entries(event_data)]"
    events = f"SELECT *, {fields} AS fields, {texts} AS text FROM"
    samples(lambda page: page.query(f"CREATE OR REPLACE VIEW searched AS {events} events"))
    expected = f"WITH searched AS ({events} read_evtx('{SAMPLES.name}')) FROM evtx_search_of('searched', 'whoami')"
    assert same(samples, "FROM evtx_search_of('searched', 'whoami')", SAMPLES.parent, expected) > 0
