"""Functions and statements of the extension that the page does not have say what to do in their place."""

import re

import case
import pytest

pytest_plugins = "pages"
pytestmark = pytest.mark.skipif(case.browser.BROWSER is None, reason="Chromium is not installed")


def test_functions_over_files_name_what_has_their_rows(samples, con, tmp_path):
    """Also in capitals. What they name is there, or is a button."""
    path = samples(lambda page: page.table("SELECT function_name FROM duckdb_functions()", tmp_path / "functions.parquet"))
    missing = con.execute(f"""SELECT DISTINCT function_name FROM duckdb_functions() ANTI JOIN '{path}' USING (function_name)
        WHERE contains(function_name, 'evtx') AND function_type LIKE 'table%' AND len(parameters) > 0""").fetchall()

    async def steps(page):
        found = {}
        for (name,) in missing:
            with pytest.raises(RuntimeError) as error:
                await page.query(f"FROM {name.upper()}('logs')")
            text = str(error.value)
            assert f"There is no {name} on this page" in text and "Did you mean" not in text
            found[name] = re.search(r"(?:Use|The events are in) (?:the (\w+) )?(.*)\.", text).groups()
            kind, place = found[name]
            if kind != "button":
                await page.query(f"FROM {place}")
        return found

    found = samples(steps)
    assert found["read_evtx"] == ("table", "events") and found["evtx_schema"] == ("table", "events")
    assert found["evtx_timeline"] == (None, "evtx_timeline_of('events')") and found["evtx_case_report"][0] == "button"
    assert len(found) > 20


def test_a_function_with_a_typo(samples):
    async def steps(page):
        with pytest.raises(RuntimeError, match='Did you mean "evtx_timeline_of"'):
            await page.query("FROM evtx_timelin_of('events')")

    samples(steps)


def test_the_extension_is_there(samples):
    async def steps(page):
        assert await page.ask("INSTALL evtx; LOAD evtx; SELECT 42") == [["42"]]
        for statement in ["INSTALL evtx", "-- a comment\nload evtx", "INSTALL 'evtx' FROM community"]:
            [[text]] = await page.ask(statement)
            assert "does nothing here: the page already has the extension evtx" in text
        with pytest.raises(RuntimeError, match="no extensions of DuckDB"):
            await page.query("INSTALL httpfs")

    samples(steps)
