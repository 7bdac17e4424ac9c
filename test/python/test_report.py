"""The web page of evtx_sigma_report: its bytes, and what a browser does with it if there is one."""

import asyncio
import base64
import collections
import csv
import hashlib
import io
import json
import re

import browser
import pytest
from conftest import SAMPLES

RULES = SAMPLES / "rules"
SCRIPT = "</script><script>document.title = 'attacked'</script><!--<script>"
IMAGE = "<img src=x onerror=\"document.title = 'attacked'\">"
needs_browser = pytest.mark.skipif(browser.BROWSER is None, reason="there is no Chromium")


def written(con, path, call):
    con.execute(f"COPY (FROM {call}) TO '{path}' (FORMAT blob)")
    return path


def data_of(html):
    """What the page gets to show."""
    [text] = re.findall(rb'<script id="data" type="application/json">(.*?)</script>', html, re.S)
    assert b"<" not in text
    return json.loads(text)


@pytest.fixture(name="matches")
def fixture_matches(con):
    """A connection with a table of the matches in the samples."""
    con.execute(f"CREATE TABLE matches AS FROM evtx_sigma('{SAMPLES}/*.evtx', rules := '{RULES}')")
    return con


@pytest.fixture(name="hostile")
def fixture_hostile(matches):
    """The matches, and one whose every text would be a script if it were HTML."""
    matches.execute(
        """INSERT INTO matches BY NAME
           SELECT ? AS rule_title, ? AS rule_id, 'critical' AS rule_level, [?, 'attack.execution'] AS tags, ? AS computer, ? AS channel,
                  '2024-03-05 09:00:00' AS time_created, 1 AS event_id, ? AS filename, ? AS error, MAP {?: ?, '': chr(8238) || 'gpj.exe'} AS matched,
                  MAP {'a' || chr(0): ?} AS event_data""",
        [SCRIPT, IMAGE, IMAGE, IMAGE, SCRIPT, IMAGE, SCRIPT, IMAGE, SCRIPT, IMAGE],
    )
    return matches


def test_files_and_tables_give_the_same_page(matches, tmp_path):
    def data_from(call):
        data = data_of(written(matches, tmp_path / "report.html", call).read_bytes())
        return {name: sorted(value, key=str) if name in ("groups", "rows") else value for name, value in data.items()}

    matches.execute(f"COPY matches TO '{tmp_path}/matches.parquet'")
    data = data_from(f"evtx_sigma_report('{SAMPLES}/*.evtx', '{RULES}')")
    assert data == data_from("evtx_sigma_report_of('matches')") == data_from(f"evtx_sigma_report_of('{tmp_path}/matches.parquet')")
    assert (data["matches"], data["damaged"], len(data["rules"]), len(data["rows"])) == (49, 7, 5, 49)
    assert sum(events for *_, events in data["groups"]) == 49
    assert data["rules"][0][:2] == ["Security Log Cleared", 5]


def test_arguments_are_those_of_evtx_sigma(con):
    [(html,)] = con.execute(f"FROM evtx_sigma_report('{SAMPLES}/*.evtx', '{RULES}', min_level := 'high', status := ['stable'])").fetchall()
    assert [title for title, *_ in data_of(html)["rules"]] == ["Security Log Cleared", "Service with a Binary in ProgramData"]


def test_only_its_own_script_may_run(matches):
    [(html,)] = matches.execute("FROM evtx_sigma_report_of('matches')").fetchall()
    [script] = re.findall(rb"<script>(.*?)</script>", html, re.S)
    digest = base64.b64encode(hashlib.sha256(script).digest()).decode()
    assert f"script-src 'sha256-{digest}'".encode() in html, "write this digest into evtx_sigma_report.html"
    assert b"default-src 'none'" in html
    assert not re.search(rb"\b(src|href)=|@import|url\(", html)
    # Each of them would make HTML of a text.
    assert not re.search(rb"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval|srcdoc|\bon\w+=\"", html)


def test_hostile_texts_stay_in_the_data(hostile):
    [(html,)] = hostile.execute("FROM evtx_sigma_report_of('matches')").fetchall()
    data = data_of(html)
    assert html.count(b"<script") == 2 and b"<img" not in html and b"<!--<" not in html
    assert data["rules"][0] == [SCRIPT, 5, IMAGE, [IMAGE, "attack.execution"], ["execution"]]
    row = next(row for row in data["rows"] if row[0] == 0)
    assert row == [0, IMAGE, "2024-03-05 09:00:00", 1, None, SCRIPT, IMAGE, [None] * 3, [f"{IMAGE}: {SCRIPT} ¦ : \u202egpj.exe", f"a\0: {IMAGE}"]]
    assert SCRIPT in data["errors"]


def test_the_size_is_bounded(matches, tmp_path):
    """The matches of the highest levels are kept, and the page says how many are left out."""
    matches.execute(
        """CREATE TABLE many AS
           SELECT * REPLACE (time_created + to_minutes(n) AS time_created, computer || n || '-' || record_id AS computer, MAP {repeat('k', 400): repeat('v', 400)} AS matched)
           FROM matches, range(2100) numbers(n)"""
    )
    path = written(matches, tmp_path / "many.html", "evtx_sigma_report_of('many')")
    data = data_of(path.read_bytes())
    assert data["matches"] == 49 * 2100 and data["finest"] == 13
    assert len(data["rows"]) == 50_000 and len(data["groups"]) == 100_000 and len(data["errors"]) == 100
    kept = [data["rules"][row[0]][1] for row in data["rows"]]
    assert [kept.count(level) for level in (5, 4, 3, 2)] == [2100, 6300, 8400, 33_200]
    assert {len(row[-1][0]) for row in data["rows"]} == {300}


def test_matches_have_the_account_the_program_and_the_other_machine(matches):
    [(html,)] = matches.execute("FROM evtx_sigma_report_of('matches')").fetchall()
    rows = sorted(([*row[2:5], *row[7]] for row in data_of(html)["rows"]), key=str)
    expected = matches.execute("SELECT left(time_created::VARCHAR, 23), event_id, record_id, user_name, process, remote_host FROM evtx_sigma_timeline_of('matches') WHERE title IS NOT NULL")
    assert rows == sorted(map(list, expected.fetchall()), key=str)
    assert all(any(row[at] for row in rows) for at in (3, 4, 5))


def test_without_a_match_there_is_a_page(matches):
    matches.execute("DELETE FROM matches")
    [(html,)] = matches.execute("FROM evtx_sigma_report_of('matches')").fetchall()
    assert data_of(html) == {"finest": 16, "matches": 0, "rules": [], "groups": [], "rows": [], "damaged": 0, "errors": []}


# In a browser

COUNT = "document.getElementById('count').textContent"
ROWS = "[...document.querySelectorAll('tbody tr')].map(row => row.innerText)"
BARS = "document.querySelectorAll('#bars g').length"
LISTS = "Object.fromEntries(['hosts', 'rules', 'tactics'].map(id => [id, document.querySelectorAll(`#${id} button`).length]))"


def set_value(name, value, event):
    return f"(() => {{ const it = document.getElementById('{name}'); it.value = {json.dumps(value)}; it.dispatchEvent(new Event('{event}')); }})()"


@needs_browser
def test_filters(matches, tmp_path):
    path = written(matches, tmp_path / "report.html", "evtx_sigma_report_of('matches')")

    async def steps(page):
        assert await page.run(COUNT) == "49 matches"
        assert await page.run(LISTS) == {"hosts": 2, "rules": 5, "tactics": 5}
        assert "08:31" in await page.run("document.querySelector('#bars g').ariaLabel")
        bars = await page.run(BARS)
        # A bar, a text, a level, a host: each narrows the table, and the charts follow.
        await page.run("document.querySelector('#bars g:last-child .back').dispatchEvent(new MouseEvent('click', {bubbles: true}))")
        assert await page.run(COUNT) == "1 match"
        assert ["Security Log Cleared" in row for row in await page.run(ROWS)] == [True]
        assert await page.run(LISTS) == {"hosts": 1, "rules": 1, "tactics": 1}
        await page.run("document.getElementById('all').click()")
        assert (await page.run(COUNT), await page.run(BARS)) == ("49 matches", bars)
        await page.run(set_value("text", "WHOAMI", "input"))
        assert all("whoami" in row for row in await page.run(ROWS))
        assert await page.run(COUNT) == "4 matches"
        await page.run("document.getElementById('clear').click()")
        await page.run(set_value("level", "4", "change"))
        assert await page.run(COUNT) == "4 matches"
        await page.run(set_value("host", "0", "change"))
        assert await page.run(COUNT) == "3 matches"
        await page.run("document.querySelector('#tactics button').click()")
        assert await page.run("document.querySelector('#tactics [aria-pressed=true]').textContent") == "persistence2"
        assert await page.run(COUNT) == "2 matches"
        await page.run("document.getElementById('clear').click()")
        assert await page.run(COUNT) == "49 matches"
        # The table can be sorted, and the row of the log that was cleared is first.
        await page.run("document.querySelectorAll('th button')[1].click(); document.querySelectorAll('th button')[1].click()")
        assert "Security Log Cleared" in (await page.run(ROWS))[0]
        return page.errors

    assert browser.visit(path, steps) == []


@needs_browser
def test_entries_count_each_level(matches, tmp_path):
    """A host with a few critical matches among many of a low level has few critical matches."""
    matches.execute("INSERT INTO matches BY NAME SELECT matches.* REPLACE ('low' AS rule_level) FROM matches, range(1000) WHERE rule_level = 'critical'")
    path = written(matches, tmp_path / "report.html", "evtx_sigma_report_of('matches')")
    hosts = "[...document.querySelectorAll('#hosts button')].map(entry => [entry.title, ...[...entry.children].map(part => part.innerText)])"

    async def steps(page):
        return await page.run(hosts), await page.run("document.getElementById('levels').innerText.split('\\n')"), page.errors

    shown, levels, errors = browser.visit(path, steps)
    counts = collections.defaultdict(collections.Counter)
    for host, level, count in matches.execute("SELECT computer, rule_level, count(*) FROM matches WHERE rule_title IS NOT NULL GROUP BY ALL").fetchall():
        counts[host][level] = count
    names = ["critical", "high", "medium", "low", "informational"]
    expected = [[(name, count[name]) for name in names if count[name]] for count in counts.values()]
    told = [[f"{count:,} {name}" for name, count in levels] for levels in expected]
    assert sorted(shown) == sorted([", ".join(levels), host, *[level.split()[0] for level in levels]] for host, levels in zip(counts, told))
    assert any("low" in title and not title.startswith("1,0") for title, *_ in shown)
    of_all = sum(counts.values(), collections.Counter())
    assert (levels, errors) == ([f"{name} {of_all[name]:,}" for name in names if of_all[name]], [])


@needs_browser
def test_the_file_has_what_is_filtered(hostile, tmp_path):
    """All of it, in the order of the table, and nothing that a spreadsheet would run."""
    hostile.execute("INSERT INTO matches BY NAME SELECT matches.* FROM matches, range(100) WHERE rule_level = 'high'")
    hostile.execute("INSERT INTO matches BY NAME SELECT '=cmd|''/c calc''!A0' AS rule_title, 'high' AS rule_level, MAP {'+a': '\"'} AS matched")
    path = written(hostile, tmp_path / "report.html", "evtx_sigma_report_of('matches')")
    saved = tmp_path / "saved" / "matches.csv"

    async def save(page):
        saved.unlink(missing_ok=True)
        await page.run("document.getElementById('save').click()")
        # At most ten minutes.
        for _ in range(12_000):
            await asyncio.sleep(0.05)
            if saved.exists() and saved.stat().st_size:
                break
        return saved.read_bytes().decode("utf-8")

    async def steps(page):
        await page.call("Browser.setDownloadBehavior", behavior="allow", downloadPath=str(saved.parent))
        await page.run(set_value("level", "4", "change"))
        await page.run("document.querySelectorAll('th button')[3].click()")
        count, all_rows = await page.run(COUNT), await save(page)
        await page.run(set_value("text", "cmd|", "input"))
        return count, all_rows, await save(page), page.errors

    count, all_rows, one, errors = browser.visit(path, steps)
    rows = list(csv.DictReader(io.StringIO(all_rows.removeprefix("\ufeff"), newline="")))
    high = hostile.execute("SELECT count(*) FROM matches WHERE rule_level IN ('high', 'critical') AND rule_title IS NOT NULL").fetchone()[0]
    assert (all_rows[0], len(rows), count) == ("\ufeff", high, f"{high} matches, the first 200 shown")
    assert [row["Rule"].lstrip("'") for row in rows] == sorted(row["Rule"].lstrip("'") for row in rows)
    assert {row["Level"] for row in rows} == {"high", "critical"}
    [row] = csv.DictReader(io.StringIO(one.removeprefix("\ufeff"), newline=""))
    assert (row["Rule"], row["Matched"], row["Host"]) == ("'=cmd|'/c calc'!A0", "'+a: \"", "")
    assert errors == []


@needs_browser
def test_keys(matches, tmp_path):
    path = written(matches, tmp_path / "report.html", "evtx_sigma_report_of('matches')")
    focused = "document.activeElement.ariaLabel ?? document.activeElement.id"

    async def steps(page):
        await page.press("Tab")
        assert await page.run("document.activeElement.tagName") == "SUMMARY"
        await page.press("Tab")
        assert "08:31" in await page.run(focused)
        await page.press("ArrowRight")
        await page.press("ArrowRight")
        assert "08:37" in await page.run(focused)
        await page.press("Enter")
        assert await page.run(COUNT) == "9 matches"
        assert "08:37" in await page.run(focused)
        await page.press("Enter")
        assert await page.run(COUNT) == "49 matches"
        return page.errors

    assert browser.visit(path, steps) == []


@needs_browser
def test_hostile_texts_are_shown_as_text(hostile, tmp_path):
    path = written(hostile, tmp_path / "report.html", "evtx_sigma_report_of('matches')")

    async def steps(page):
        await page.run(set_value("level", "5", "change"))
        await page.run(set_value("text", "onerror", "input"))
        [row] = await page.run(ROWS)
        assert SCRIPT in row and IMAGE in row and "<U+202E>gpj.exe" in row and "a<U+0000>" in row
        for place in ("#hosts", "#host", "#rules"):
            assert (IMAGE if "host" in place else SCRIPT) in await page.run(f"document.querySelector('{place}').textContent")
        assert SCRIPT in await page.run("document.querySelector('#damage').textContent")
        assert await page.run("document.images.length + document.scripts.length") == 2
        assert await page.run("document.title") == "Sigma report"
        return page.errors

    assert browser.visit(path, steps) == []


@needs_browser
def test_no_script_of_a_value_would_run(matches, tmp_path):
    """Even if a text became HTML, the policy of the page stops it."""
    path = written(matches, tmp_path / "report.html", "evtx_sigma_report_of('matches')")
    path.write_text(path.read_text(encoding="utf-8").replace("<h1>", f"<h1>{IMAGE}<script>document.title = 'attacked'</script>"), encoding="utf-8")

    async def steps(page):
        assert await page.run("document.images.length") == 1
        return await page.run("document.title"), len(page.errors) > 0

    assert browser.visit(path, steps) == ("Sigma report", True)


@needs_browser
def test_a_large_page_says_what_is_left_out(matches, tmp_path):
    matches.execute(
        "CREATE TABLE many AS SELECT * REPLACE (time_created + to_hours(n * 24) AS time_created) FROM matches, range(1200) numbers(n) WHERE rule_title IS NOT NULL")
    path = written(matches, tmp_path / "many.html", "evtx_sigma_report_of('many')")

    async def steps(page):
        assert await page.run("document.getElementById('cut').textContent") == "The table leaves out 8,800 matches of the lowest levels."
        assert await page.run(COUNT) == "50,000 matches, the first 200 shown"
        await page.run("document.getElementById('more').click()")
        assert len(await page.run(ROWS)) == 400
        # Months, then the days of one, then its hours and minutes.
        units = [await page.run("document.getElementById('unit').textContent")]
        for _ in range(4):
            await page.run("document.querySelector('#bars g').dispatchEvent(new MouseEvent('click', {bubbles: true}))")
            units.append(await page.run("document.getElementById('unit').textContent"))
        return units, page.errors

    assert browser.visit(path, steps) == (["per month, UTC", "per day, UTC, 2024-03", "per hour, UTC, 2024-03-05", "per minute, UTC, 2024-03-05 08", "per minute, UTC, 2024-03-05 08"], [])


@needs_browser
def test_any_times_and_hosts(matches, tmp_path):
    """Times of six centuries, none, and a match of a correlation, which has no event."""
    matches.execute("""INSERT INTO matches BY NAME SELECT 'A rule' AS rule_title, NULL AS rule_level, moment AS time_created
                       FROM (VALUES ('1678-01-01 00:00:00'::TIMESTAMP_NS), ('2262-01-01 00:00:00'), (NULL)) t(moment)""")
    path = written(matches, tmp_path / "report.html", "evtx_sigma_report_of('matches')")

    async def steps(page):
        assert await page.run("[document.getElementById('unit').textContent, document.getElementById('first').textContent]") == ["per year, UTC", "1678"]
        assert await page.run(COUNT) == "52 matches"
        assert "(none)" in await page.run("document.getElementById('hosts').textContent")
        return page.errors

    assert browser.visit(path, steps) == []
