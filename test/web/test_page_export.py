"""What people save: Parquet, CSV and the report."""

import case
import pytest
from conftest import SAMPLES, assert_same_rows
from test_report import data_of, in_order

pytest_plugins = "pages"
pytestmark = pytest.mark.skipif(case.browser.BROWSER is None, reason="Chromium is not installed")


@pytest.fixture(name="expected")
def fixture_expected(con, monkeypatch):
    """Makes a table of what the extension returns, in the folder of the samples. As Parquet has it, enums and intervals are texts, and integers of 128 bits doubles."""
    monkeypatch.chdir(SAMPLES.parent)

    def make(query):
        con.execute(f"CREATE OR REPLACE TABLE expected AS {query}")
        for name, type_, *_ in con.execute("DESCRIBE expected").fetchall():
            if type_ in ("evtx_level", "evtx_fact_level", "INTERVAL") or type_.startswith("ENUM"):
                con.execute(f"ALTER TABLE expected ALTER {name} TYPE VARCHAR")
            elif type_ == "HUGEINT":
                con.execute(f"ALTER TABLE expected ALTER {name} TYPE DOUBLE")
        return con

    return make


@pytest.mark.parametrize(
    ("query", "native"),
    [
        ("FROM events", "FROM read_evtx('samples')"),
        ("SELECT * EXCLUDE correlation FROM matches", "SELECT * EXCLUDE correlation FROM evtx_sigma('samples', rules := 'samples')"),
        ("SELECT record_id, correlation FROM matches", "SELECT record_id, correlation FROM evtx_sigma('samples', rules := 'samples')"),
        ("SELECT * EXCLUDE damaged_chunks FROM files", "SELECT * EXCLUDE damaged_chunks FROM evtx_file_metadata('samples')"),
        ("FROM facts", "FROM evtx_facts('samples')"),
        ("FROM evtx_accounts_of('events')", "FROM evtx_accounts('samples')"),
        ("FROM evtx_logons_of('events')", "FROM evtx_logons('samples')"),
        ("SELECT logoff_time - logon_time AS span FROM evtx_logons_of('events')", "SELECT logoff_time - logon_time AS span FROM evtx_logons('samples')"),
        ("FROM evtx_sigma_summary_of('matches')", "FROM evtx_sigma_summary('samples', 'samples')"),
        ("FROM events WHERE false", "FROM read_evtx('samples') WHERE false"),
        ("SELECT range AS i, range::VARCHAR AS text FROM range(300_000)",) * 2,
        (
            "SELECT true AS b, 1.5 AS d, -(2::HUGEINT ** 100)::HUGEINT AS h, DATE '2024-02-29' AS day, TIME '12:00:01' AS time, 'a'::BLOB AS blob",
        ) * 2,
        pytest.param(*("SELECT [true, NULL] AS list",) * 2, marks=pytest.mark.xfail(strict=True, reason="they become bytes")),
    ],
    ids=["events", "matches", "correlations", "files", "facts", "accounts", "logons", "intervals", "enums", "no rows", "many rows", "types", "booleans in a list"],
)
def test_parquet(samples, expected, tmp_path, query, native):
    path = samples(lambda page: page.table(query, tmp_path / "rows.parquet"))
    con = expected(native)
    assert con.execute(f"DESCRIBE FROM '{path}'").fetchall() == con.execute("DESCRIBE expected").fetchall()
    assert_same_rows(con, f"FROM '{path}'", "FROM expected")


@pytest.mark.parametrize(
    ("query", "native"),
    [
        ("SELECT * EXCLUDE event_data FROM events", "SELECT * EXCLUDE event_data FROM read_evtx('samples')"),
        ("SELECT range AS i, 'a,\"\n' || range AS text, NULL AS n, '' AS e FROM range(300_000)",) * 2,
    ],
    ids=["events", "many rows"],
)
def test_csv(samples, expected, tmp_path, query, native):
    async def steps(page):
        await page.query(query)
        return await page.save("#save-csv", tmp_path / "rows.csv")

    path = samples(steps)
    con = expected(native)
    assert_same_rows(con, f"FROM read_csv('{path}', all_varchar := true, allow_quoted_nulls := false)", "SELECT COLUMNS(*)::VARCHAR FROM expected")


def test_report(samples, con, monkeypatch, tmp_path):
    path = samples(lambda page: page.save("#save-report", tmp_path / "report.html"))
    monkeypatch.chdir(SAMPLES.parent)
    [(native,)] = con.execute("FROM evtx_case_report('samples', rules := 'samples')").fetchall()
    found, expected = data_of(path.read_bytes()), data_of(native)
    assert in_order(found) == in_order(expected)
    assert found["figures"][0]["matches"] > 49
