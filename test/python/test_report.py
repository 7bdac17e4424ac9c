"""The web page of evtx_case_report: its bytes, and what a browser does with it if there is one."""

import asyncio
import base64
import collections
import csv
import datetime
import hashlib
import io
import json
import re
import zoneinfo

import browser
import duckdb
import pytest
from conftest import SAMPLES

RULES = SAMPLES / "rules"
SCRIPT = "</script><script>document.title = 'attacked'</script><!--<script>"
IMAGE = "<img src=x onerror=\"document.title = 'attacked'\">"
CALL = "evtx_case_report_of('events', table_of_matches := 'matches', table_of_files := 'files')"
LEVELS = ["info", "low", "medium", "high", "critical"]
needs_browser = pytest.mark.skipif(browser.BROWSER is None, reason="Chromium is not installed")


def written(con, path, call=CALL):
    con.execute(f"COPY (FROM {call}) TO '{path}' (FORMAT blob)")
    return path


def data_of(html):
    """What the page gets to show: the items of each kind."""
    [text] = re.findall(rb'<script id="data" type="application/json">(.*?)</script>', html, re.S)
    assert b"<" not in text
    data = json.loads(text)
    items = collections.defaultdict(list)
    for item in data["items"]:
        items[item["kind"]].append(item)
    return items | {"zone": data["zone"]}


def page_of(con, call=CALL):
    [(html,)] = con.execute(f"FROM {call}").fetchall()
    return html


def in_order(data):
    return {kind: sorted(map(json.dumps, items)) if isinstance(items, list) else items for kind, items in data.items()}


def place(it):
    return it["file"], it["record"], it["event"], it["time"]


@pytest.fixture(name="case")
def fixture_case(con):
    """A connection with tables of the events in the samples, their files, and their matches."""
    con.execute(f"""CREATE TABLE events AS FROM read_evtx('{SAMPLES}/*.evtx'); CREATE TABLE files AS FROM evtx_file_metadata('{SAMPLES}/*.evtx');
                    CREATE TABLE matches AS FROM evtx_sigma_of('events', '{RULES}')""")
    return con


@pytest.fixture(name="hostile")
def fixture_hostile(case):
    """The case, and an event and a match whose every text would be a script if it were HTML."""
    case.execute(
        """INSERT INTO events BY NAME
           SELECT 7045 AS event_id, 'Service Control Manager' AS provider, 'System' AS channel, $2 AS computer, 1 AS record_id, 1 AS event_record_id,
                  TIMESTAMP_NS '2024-03-05 09:00:00' AS time_created, $1 AS filename, $2 AS error,
                  MAP {'ServiceName': $2, 'ImagePath': $1, 'AccountName': chr(8238) || 'gpj.exe', $2: 'a' || chr(0)} AS event_data""",
        [SCRIPT, IMAGE],
    )
    case.execute(
        """INSERT INTO matches BY NAME
           SELECT $1 AS rule_title, $2 AS rule_id, 'critical' AS rule_level, [$2, 'attack.execution'] AS tags, MAP {$2: $1} AS matched,
                  *
           FROM events WHERE computer = $2""",
        [SCRIPT, IMAGE],
    )
    return case


def test_files_and_tables_give_the_same_page(case, tmp_path):
    for table in ("events", "matches", "files"):
        case.execute(f"COPY {table} TO '{tmp_path}/{table}.parquet'")
    parquet = re.sub("'(events|matches|files)'", rf"'{tmp_path}/\1.parquet'", CALL)
    pages = []
    for threads in (1, 2, 8):
        case.execute(f"SET threads = {threads}")
        pages += [data_of(written(case, tmp_path / "report.html", call).read_bytes()) for call in (f"evtx_case_report('{SAMPLES}/*.evtx', rules := '{RULES}')", CALL, parquet)]
    assert all(in_order(page) == in_order(pages[0]) for page in pages)
    [figures] = pages[0]["figures"]
    assert (figures["matches"], figures["damaged"], figures["has_rules"]) == (49, 7, True)


def test_the_numbers_are_those_of_sql(case):
    data = data_of(page_of(case))
    facts = case.execute("""SELECT computer, topic::VARCHAR, level::VARCHAR, fact, first::VARCHAR, last::VARCHAR, events, account, account_sid, source, target, detail, doubts, len(evidence)
        FROM evtx_facts_of('events', table_of_files := 'files')""").fetchall()
    fields = ("computer", "topic", "level", "fact", "first", "last", "events", "account", "sid", "source", "target", "detail", "doubts", "evidence")
    shown = [tuple(LEVELS[it] if name == "level" else len(it) if name == "evidence" else it for name, it in ((name, row[name]) for name in fields))
             for row in data["row"] if row["topic"] != "sigma"]
    assert sorted(shown, key=str) == sorted(facts, key=str) and len(facts) > 20
    [figures] = data["figures"]
    assert (figures["facts"], figures["rows"]) == (len(facts), len(data["row"]))

    matches = collections.Counter()
    for row in data["row"]:
        if row["topic"] == "sigma":
            matches[row["computer"], LEVELS[row["level"]], row["fact"]] += row["events"]
    summary = case.execute("SELECT computer, replace(level::VARCHAR, 'informational', 'info'), title, matches FROM evtx_sigma_summary_of('matches')").fetchall()
    assert matches == {(computer, level, title): count for computer, level, title, count in summary}

    above = collections.Counter(computer for computer, _, level, *_ in facts if level != "info")
    per_machine = collections.Counter()
    for (computer, *_), count in matches.items():
        per_machine[computer] += count
    spans = case.execute("SELECT computer, min(time_created)::VARCHAR, max(time_created)::VARCHAR, count(*), count(DISTINCT filename) FROM events WHERE computer IS NOT NULL GROUP BY 1").fetchall()
    expected = [(computer, *span, above[computer], per_machine[computer]) for computer, *span in spans]
    assert sorted(tuple(machine[name] for name in ("computer", "first", "last", "events", "logs", "facts", "matches")) for machine in data["machine"]) == sorted(expected)


def test_every_cited_record_says_what_it_says(case):
    data = data_of(page_of(case))
    cited = {place(it) for row in data["row"] for it in row["evidence"]}
    rows = case.execute("""SELECT filename, record_id::VARCHAR, event_id, time_created::VARCHAR, computer, channel, event, user_name, remote_host, process, details
        FROM evtx_timeline_of('events')""").fetchall()
    expected = sorted((row for row in rows if row[:4] in cited), key=str)
    names = ("file", "record", "event", "time", "computer", "channel", "name", "account", "source", "process", "text")
    assert sorted((tuple(record[name] for name in names) for record in data["record"]), key=str) == expected
    assert all(any(row[at] for row in expected) for at in range(len(names)))
    # A match cites the records that it is about.
    for row in data["row"]:
        if row["topic"] == "sigma" and row["events"] <= 10:
            assert len(row["evidence"]) == row["events"]


def test_matches_that_show_the_same_are_a_row_per_day(case):
    """What differs in anything that the row shows has a row of its own."""
    case.execute("DELETE FROM matches WHERE rule_title <> 'Security Log Cleared'")
    case.execute("""CREATE TABLE many AS
        SELECT * REPLACE (time_created + to_hours(n) AS time_created, record_id + n AS record_id, MAP {'a': (n % 2)::VARCHAR, 'b¦': 'c'} AS matched) FROM matches, range(30) hours(n)
        WHERE rule_title IS NOT NULL""")
    data = data_of(page_of(case, CALL.replace("matches'", "many'")))
    days = case.execute("SELECT count(*), min(time_created)::VARCHAR, max(time_created)::VARCHAR, 'a: ' || matched['a'] || ' ¦ b¦¦: c' FROM many GROUP BY date_trunc('day', time_created), matched").fetchall()
    rows = [row for row in data["row"] if row["topic"] == "sigma"]
    assert sorted((row["events"], row["first"], row["last"], row["detail"]) for row in rows) == sorted(days)
    for row in rows:
        times = [it["time"] for it in row["evidence"]]
        assert len(times) <= 10 and (min(times), max(times)) == (row["first"], row["last"])


def test_arguments_are_those_of_evtx_sigma(con):
    data = data_of(page_of(con, f"evtx_case_report('{SAMPLES}/*.evtx', rules := '{RULES}', min_level := 'high', status := ['stable'])"))
    assert {row["fact"] for row in data["row"] if row["topic"] == "sigma"} == {"Security Log Cleared", "Service with a Binary in ProgramData"}
    with pytest.raises(Exception, match="evtx_sigma needs rules"):
        page_of(con, f"evtx_case_report('{SAMPLES}/*.evtx', rules := [])")


def test_rules_are_optional(case):
    [without, with_rules] = [data_of(page_of(case, call)) for call in (f"evtx_case_report('{SAMPLES}/*.evtx')", CALL)]
    assert (without["figures"][0]["has_rules"], without["figures"][0]["matches"], without["figures"][0]["damaged"]) == (False, None, 7)
    assert sorted(map(json.dumps, without["row"])) == sorted(json.dumps(row) for row in with_rules["row"] if row["topic"] != "sigma")


def test_a_zone_can_be_named_as_windows_does(case):
    zones = {"Europe/Berlin": "Europe/Berlin", "W. Europe Standard Time": "Europe/Berlin", "+05:45": "+05:45"}
    for given, expected in zones.items():
        [(html,)] = case.execute(f"FROM {CALL[:-1]}, time_zone := $1)", [given]).fetchall()
        assert data_of(html)["zone"] == expected
    assert data_of(page_of(case))["zone"] is None


@pytest.mark.parametrize("call", [CALL, f"evtx_case_report('{SAMPLES}/*.evtx')", "evtx_case_report_of('events', table_of_known := 'events')"])
def test_an_unknown_zone_is_an_error(case, call):
    with pytest.raises(duckdb.Error, match=r"unknown time zone 'Europe/Berln': .*\. Did you mean 'Europe/Berlin'\?"):
        case.execute(f"EXPLAIN FROM {call[:-1]}, time_zone := 'Europe/Berln')")


def test_only_its_own_script_may_run(case):
    html = page_of(case)
    [script] = re.findall(rb"<script>(.*?)</script>", html, re.S)
    digest = base64.b64encode(hashlib.sha256(script).digest()).decode()
    assert f"script-src 'sha256-{digest}'".encode() in html, f"write this digest into evtx_case_report.html: {digest}"
    assert b"default-src 'none'" in html
    assert not re.search(rb"\b(src|href)=|@import|url\(", html)
    # Each of them would make HTML of a text.
    assert not re.search(rb"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval|srcdoc|\bon\w+=\"", html)


def test_hostile_texts_stay_in_the_data(hostile):
    html = page_of(hostile)
    data = data_of(html)
    assert html.count(b"<script") == 2 and b"<img" not in html and b"<!--<" not in html
    rows = [row for row in data["row"] if row["computer"] == IMAGE]
    assert {row["topic"] for row in rows} == {"sigma", "services"}
    [row] = [row for row in rows if row["topic"] == "sigma"]
    assert (row["fact"], row["rule"], row["tags"], row["tactics"], row["detail"]) == (SCRIPT, IMAGE, [IMAGE, "attack.execution"], ["execution"], f"{IMAGE}: {SCRIPT}")
    assert all(it["file"] == SCRIPT for row in rows for it in row["evidence"])
    [record] = [record for record in data["record"] if record["file"] == SCRIPT]
    assert IMAGE in record["text"] and "a\0" in record["text"]
    assert {"kind": "damage", "file": SCRIPT, "error": IMAGE} in data["damage"]


def test_the_size_is_bounded(case):
    """The rows of the highest levels are kept, and the page knows how many are left out. All numbers of matches stay."""
    case.execute(
        """CREATE TABLE many AS
           SELECT * REPLACE (time_created + to_days(n) AS time_created, computer || n || '-' || record_id AS computer, MAP {repeat('k', 400): repeat('v', 400)} AS matched)
           FROM matches, range(2100) numbers(n)"""
    )
    data = data_of(page_of(case, CALL.replace("matches'", "many'")))
    [figures] = data["figures"]
    assert figures["matches"] == 49 * 2100 and figures["damaged"] == 7 * 2100
    assert len(data["row"]) == 10_000 and figures["rows"] == 49 * 2100 + figures["facts"]
    assert len(data["damage"]) == 100
    kept = collections.Counter(LEVELS[row["level"]] for row in data["row"] if row["topic"] == "sigma")
    assert (kept["critical"], kept["high"]) == (2100, 6300) and not kept["low"]
    assert {len(row["detail"]) for row in data["row"] if row["topic"] == "sigma"} == {402}


def test_few_texts_of_records_are_kept(case):
    """The rows of the highest levels keep them, and each has up to 1,000 characters."""
    case.execute("""CREATE TABLE many AS
        SELECT 5000::UINTEGER AS event_id, 'A provider' AS provider, (3 * n + i)::UBIGINT AS record_id, time_created + to_seconds(i) AS time_created, MAP {'Long': repeat('x', 3000)} AS event_data,
               event_record_id, computer, channel, user_sid, NULL::VARCHAR AS user_data, filename, error
        FROM (FROM events WHERE event_id = 1102 LIMIT 1), range(10_000) numbers(n), range(3) others(i)""")
    case.execute("CREATE TABLE found AS SELECT *, 'A rule' AS rule_title, NULL AS rule_id, 'low' AS rule_level, NULL AS tags, NULL AS correlation, MAP {'n': (record_id // 3)::VARCHAR} AS matched FROM many")
    case.execute("INSERT INTO found BY NAME SELECT * REPLACE ('high' AS rule_level) FROM found WHERE record_id >= 29_997")
    data = data_of(page_of(case, "evtx_case_report_of('many', table_of_matches := 'found')"))
    assert [len(row["evidence"]) for row in data["row"]] == [3] * 10_000
    cited = {place(it) for row in data["row"] for it in row["evidence"]}
    known = {place(record) for record in data["record"]}
    assert (len(data["record"]), len(known), known - cited) == (19_998, 19_998, set())
    assert all(place(it) in known for row in data["row"] if row["level"] == 3 for it in row["evidence"])
    assert {len(record["text"]) for record in data["record"]} == {1000}


def test_without_an_event_there_is_a_page(case):
    case.execute("DELETE FROM events; DELETE FROM matches")
    data = data_of(page_of(case))
    assert {kind: len(items) for kind, items in data.items() if kind != "zone" and items} == {"figures": 1}


def test_tables_may_have_the_names_that_the_macro_uses(case):
    expected = in_order(data_of(page_of(case)))
    for old, new in (("events", "found"), ("matches", "kept"), ("files", "cited")):
        case.execute(f"ALTER TABLE {old} RENAME TO {new}")
    assert in_order(data_of(page_of(case, "evtx_case_report_of('found', table_of_matches := 'kept', table_of_files := 'cited')"))) == expected


# In a browser

COUNT = "document.getElementById('count').textContent.split('.')[0]"
ROWS = "[...document.querySelectorAll('#what > .scroll > table > tbody > tr:not(.proof)')].map(row => row.innerText)"
PROOFS = "[...document.querySelectorAll('.proof')].map(row => row.innerText)"
BARS = "document.querySelectorAll('#bars g').length"
LISTS = "Object.fromEntries(['topics', 'accounts', 'sources', 'rules', 'tactics'].map(id => [id, document.querySelectorAll(`#${id} button`).length]))"


def set_value(name, value, event):
    return f"(() => {{ const it = document.getElementById('{name}'); it.value = {json.dumps(value)}; it.dispatchEvent(new Event('{event}')); }})()"


def click(text, parent="body"):
    return f"[...document.querySelectorAll({json.dumps(parent + ' button')})].find(it => it.textContent.startsWith({json.dumps(text)})).click()"


@needs_browser
def test_filters(case, tmp_path):
    path = written(case, tmp_path / "report.html")
    data = data_of(path.read_bytes())["row"]

    def count(wanted, level=1):
        found = sum(row["level"] >= level and wanted(row) for row in data)
        return f"{found} row" + "s" * (found != 1)

    async def steps(page):
        assert await page.run(COUNT) == count(lambda row: True) != count(lambda row: True, 0)
        assert "Rows below low are hidden" in await page.run("document.getElementById('count').textContent")
        await page.run(set_value("level", "0", "change"))
        assert await page.run(COUNT) == count(lambda row: True, 0)
        lists = await page.run(LISTS)
        assert lists["topics"] == len({row["topic"] for row in data}) and lists["rules"] == 5 and lists["tactics"] == 5
        assert lists["sources"] == len({row["source"] for row in data if row["source"]})
        # A bar, a text, a level, a machine, a topic, a source: each narrows the table, and the lists follow.
        bar = await page.run("document.querySelector('#bars g:last-child').dataset.at")
        await page.run("document.querySelector('#bars g:last-child .back').dispatchEvent(new MouseEvent('click', {bubbles: true}))")
        assert await page.run(COUNT) == count(lambda row: (row["first"] or "").startswith(bar), 0)
        await page.run("document.getElementById('clear').click()")
        assert await page.run(COUNT) == count(lambda row: True)
        await page.run(set_value("text", "WHOAMI", "input"))
        # The text can be in a record.
        assert await page.run("document.getElementById('open').click()") is None
        assert all("whoami" in text for text in await page.run(PROOFS)) and len(await page.run(PROOFS)) > 0
        await page.run("document.getElementById('clear').click()")
        for level in (4, 3, 2, 1, 0):
            await page.run(set_value("level", str(level), "change"))
            assert await page.run(COUNT) == count(lambda row: True, level)
        await page.run("document.getElementById('clear').click()")
        await page.run(click("WS07", "#hosts"))
        assert await page.run(COUNT) == count(lambda row: row["computer"].startswith("WS07"))
        assert await page.run("document.activeElement.ariaPressed") == "true"
        await page.run(click("WS07", "#hosts"))
        await page.run(click("failed logons", "#topics"))
        assert await page.run(COUNT) == count(lambda row: row["topic"] == "failed logons")
        await page.run(click("Sigma rules", "#topics"))
        await page.run(click("203.0.113.45", "#sources"))
        assert await page.run(COUNT) == count(lambda row: row["topic"] == "sigma" and row["source"] == "203.0.113.45")
        await page.run("document.getElementById('clear').click()")
        await page.run(click("persistence", "#tactics"))
        assert await page.run(COUNT) == count(lambda row: "persistence" in (row["tactics"] or []))
        await page.run("document.getElementById('clear').click()")
        # The table can be sorted, and the row of the log that was cleared is first.
        for _ in range(2):
            await page.run("document.querySelectorAll('#what th button')[1].click()")
        assert "Security Log Cleared" in (await page.run(ROWS))[0]
        assert await page.run("document.querySelectorAll('#what th')[1].ariaSort") == "descending"
        return page.errors

    assert browser.visit(path, steps) == []


@needs_browser
def test_a_row_opens_its_evidence(case, tmp_path):
    """File, record ID, event ID, time, and what the record says: all that somebody needs who checks the sentence."""
    path = written(case, tmp_path / "report.html")
    data = data_of(path.read_bytes())
    rows = [row for row in data["row"] if row["topic"] == "cleared logs" and row["level"] > 2]
    [[record]] = [[record for record in data["record"] if place(record) in map(place, row["evidence"])] for row in rows]

    async def steps(page):
        await page.run(click("cleared logs", "#topics"))
        assert await page.run(PROOFS) == []
        await page.run("document.querySelector('#what tbody .link').focus()")
        await page.press("Enter")
        assert await page.run("[document.activeElement.ariaExpanded, document.activeElement.className]") == ["true", "link line"]
        [proof] = await page.run(PROOFS)
        await page.press("Enter")
        assert await page.run(PROOFS) == []
        return proof, page.errors

    proof, errors = browser.visit(path, steps)
    name = record["file"].rsplit("/", 1)[-1]
    for text in (f"{name} #{record['record']}", record["file"].removesuffix(name), f"{record['event']} {record['name']}", record["channel"], record["account"], record["text"]):
        assert text in proof, text
    assert re.sub(r"(\.\d{3})\d+", r"\1", record["time"]) in proof
    assert errors == []


@needs_browser
@pytest.mark.parametrize("zone", ["America/New_York", "Asia/Kathmandu", "Pacific/Apia"])
def test_times_in_a_zone(case, tmp_path, zone):
    """Against Python's zones. The clock of New York goes forward on 10 March 2024, and Apia has skipped a day."""
    moments = ["2024-03-10 06:59:59.5", "2024-03-10 07:00:00", "2024-11-03 05:59:59", "2024-11-03 06:00:00", "2011-12-30 09:59:59", "2011-12-30 10:00:00", "1999-12-31 23:59:59.9999999"]
    case.execute("INSERT INTO matches BY NAME SELECT 'Made at ' || time AS rule_title, 'critical' AS rule_level, time::TIMESTAMP_NS AS time_created FROM (SELECT unnest($1) AS time)", [moments])
    path = written(case, tmp_path / "report.html", f"{CALL[:-1]}, time_zone := '{zone}')")

    def expected(text):
        fraction = "." + text.split(".")[1] if "." in text else ""
        moment = datetime.datetime.fromisoformat(text.split(".")[0]).replace(tzinfo=datetime.UTC).astimezone(zoneinfo.ZoneInfo(zone))
        return f"{moment:%Y-%m-%d %H:%M:%S}{fraction[:4]}{moment.isoformat()[-6:]}", f"{text.split('.')[0]}{fraction[:4]} UTC"

    async def steps(page):
        assert await page.run("document.getElementById('zone').value") == zone
        await page.run(set_value("text", "Made at", "input"))
        local = await page.run(ROWS)
        assert zone in await page.run("document.getElementById('unit').textContent")
        await page.run(set_value("zone", "UTC", "change"))
        return local, await page.run(ROWS), page.errors

    local, utc, errors = browser.visit(path, steps)
    assert (len(local), errors) == (len(moments), [])
    for moment in moments:
        [row] = [row for row in local if f"Made at {moment}" in row]
        at, in_utc = expected(moment)
        assert at in row and in_utc in row, (at, in_utc, row)
        [row] = [row for row in utc if f"Made at {moment}" in row]
        assert in_utc.removesuffix(" UTC") in row and at not in row


@needs_browser
def test_a_zone_that_the_browser_lacks_is_reported(case, tmp_path):
    path = written(case, tmp_path / "report.html", f"{CALL[:-1]}, time_zone := 'Europe/Berlin')")
    path.write_bytes(path.read_bytes().replace(b'{"zone":"Europe/Berlin"', b'{"zone":"Middle/Earth"'))

    async def steps(page):
        return await page.run("[document.getElementById('bad').textContent, document.getElementById('zone').value]"), page.errors

    assert browser.visit(path, steps) == (["Unknown time zone: Middle/Earth. Times are in UTC.", "UTC"], [])


@needs_browser
def test_entries_count_each_level(case, tmp_path):
    path = written(case, tmp_path / "report.html")
    counts = collections.defaultdict(collections.Counter)
    for row in data_of(path.read_bytes())["row"]:
        if row["level"]:
            counts["Sigma rules" if row["topic"] == "sigma" else row["topic"]][row["level"]] += 1
    topics = "[...document.querySelectorAll('#topics button')].map(entry => [entry.title, ...[...entry.children].map(part => part.innerText)])"

    async def steps(page):
        return await page.run(topics), page.errors

    shown, errors = browser.visit(path, steps)
    levels = {topic: sorted(count.items(), reverse=True) for topic, count in counts.items()}
    assert sorted(shown) == sorted([", ".join(f"{count} {LEVELS[level]}" for level, count in found), topic, *(str(count) for _, count in found)] for topic, found in levels.items())
    assert errors == []


@needs_browser
def test_the_file_has_what_is_filtered(hostile, tmp_path):
    """All of it, in the order of the table, and nothing that a spreadsheet would run."""
    hostile.execute("INSERT INTO matches BY NAME SELECT matches.* REPLACE (computer || n AS computer) FROM matches, range(100) numbers(n) WHERE rule_level = 'high'")
    hostile.execute("INSERT INTO matches BY NAME SELECT '=cmd|''/c calc''!A0' AS rule_title, 'high' AS rule_level, MAP {'+a': '\"'} AS matched")
    path = written(hostile, tmp_path / "report.html")
    saved = tmp_path / "saved" / "report.csv"

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
        await page.run(set_value("level", "3", "change"))
        await page.run("document.querySelectorAll('#what th button')[3].click()")
        count, all_rows = await page.run(COUNT), await save(page)
        await page.run(set_value("text", "cmd|", "input"))
        return count, all_rows, await save(page), page.errors

    count, all_rows, one, errors = browser.visit(path, steps)
    rows = list(csv.DictReader(io.StringIO(all_rows.removeprefix("\ufeff"), newline="")))
    high = [row for row in data_of(path.read_bytes())["row"] if row["level"] >= 3]
    assert len(high) > 200
    assert (all_rows[0], len(rows), count) == ("\ufeff", len(high), f"{len(high)} rows, the first 200 shown")
    assert [row["What"].lstrip("'") for row in rows] == sorted(row["What"].lstrip("'") for row in rows)
    assert {row["Level"] for row in rows} == {"high", "critical"}
    [row] = csv.DictReader(io.StringIO(one.removeprefix("\ufeff"), newline=""))
    assert (row["What"], row["Detail"], row["Machine"]) == ("'=cmd|'/c calc'!A0", "'+a: \"", "")
    assert errors == []


@needs_browser
def test_keys(case, tmp_path):
    path = written(case, tmp_path / "report.html")
    focused = "document.activeElement.dataset?.at ?? document.activeElement.id"

    async def steps(page):
        bars = await page.run("[...document.querySelectorAll('#bars g')].map(it => it.dataset.at)")
        await page.press("Tab")
        assert await page.run("document.activeElement.tagName") == "SUMMARY"
        await page.press("Tab")
        assert await page.run(focused) == "zone"
        machines = await page.run("document.querySelectorAll('#hosts button').length")
        for _ in range(machines + 1):
            await page.press("Tab")
        assert await page.run(focused) == bars[0]
        await page.press("ArrowRight")
        await page.press("ArrowRight")
        assert await page.run(focused) == bars[2]
        before = await page.run(COUNT)
        await page.press("Enter")
        assert (await page.run(focused), await page.run("document.activeElement.ariaPressed")) == (bars[2], "true")
        assert await page.run(COUNT) != before
        await page.press("Enter")
        assert await page.run(COUNT) == before
        return page.errors

    assert browser.visit(path, steps) == []


@needs_browser
def test_hostile_texts_are_shown_as_text(hostile, tmp_path):
    path = written(hostile, tmp_path / "report.html")

    async def steps(page):
        await page.run(set_value("text", "onerror", "input"))
        await page.run("document.getElementById('open').click()")
        rows, proofs = await page.run(ROWS), await page.run(PROOFS)
        assert len(rows) == len(proofs) == 2
        assert any(SCRIPT in row and IMAGE in row for row in rows)
        assert all(IMAGE in proof and SCRIPT in proof and "a<U+0000>" in proof for proof in proofs)
        assert "<U+202E>gpj.exe" in "".join([*rows, *proofs])
        for place_ in ("#hosts", "#host", "#damage"):
            assert IMAGE in await page.run(f"document.querySelector('{place_}').textContent"), place_
        assert SCRIPT in await page.run("document.querySelector('#rules').textContent")
        assert await page.run("document.images.length + document.scripts.length") == 2
        assert await page.run("document.title") == "Case report"
        return page.errors

    assert browser.visit(path, steps) == []


@needs_browser
def test_no_script_of_a_value_would_run(case, tmp_path):
    """Even if a text became HTML, the policy of the page stops it."""
    path = written(case, tmp_path / "report.html")
    path.write_text(path.read_text(encoding="utf-8").replace("<h1>", f"<h1>{IMAGE}<script>document.title = 'attacked'</script>"), encoding="utf-8")

    async def steps(page):
        assert await page.run("document.images.length") == 1
        return await page.run("document.title"), len(page.errors) > 0

    assert browser.visit(path, steps) == ("Case report", True)


@needs_browser
def test_a_large_page_says_what_is_left_out(case, tmp_path):
    case.execute("CREATE TABLE many AS SELECT * REPLACE (time_created + to_days(n) AS time_created) FROM matches, range(1200) numbers(n) WHERE rule_title IS NOT NULL")
    path = written(case, tmp_path / "many.html", CALL.replace("matches'", "many'"))
    data = data_of(path.read_bytes())
    left_out = data["figures"][0]["rows"] - 10_000
    known = {place(record) for record in data["record"]}
    without = sum(any(place(it) not in known for it in row["evidence"]) for row in data["row"])

    async def steps(page):
        assert await page.run("document.getElementById('cut').textContent") == f"{left_out:,} rows of the lowest levels are left out. {without:,} rows cite records whose texts are left out."
        assert await page.run(COUNT) == "10,000 rows, the first 200 shown"
        await page.run("document.getElementById('more').click()")
        assert len(await page.run(ROWS)) == 400
        # Months, then the days of one, then its hours and minutes.
        units = [await page.run("document.getElementById('unit').textContent")]
        for _ in range(4):
            await page.run("document.querySelector('#bars g').dispatchEvent(new MouseEvent('click', {bubbles: true}))")
            units.append(await page.run("document.getElementById('unit').textContent"))
        return units, page.errors

    units, errors = browser.visit(path, steps)
    assert [re.findall(r"per (\w+) .*, UTC(?:, (.*))?$", unit)[0] for unit in units] == [
        ("month", ""), ("day", "2024-03"), ("hour", "2024-03-05"), ("minute", "2024-03-05 08"), ("minute", "2024-03-05 08")]
    assert errors == []


@needs_browser
def test_any_times_and_machines(case, tmp_path):
    """Times of six centuries, none, and a match of a correlation, which has no event."""
    case.execute("""INSERT INTO matches BY NAME SELECT 'A rule' AS rule_title, NULL AS rule_level, moment AS time_created
                    FROM (VALUES ('1678-01-01 00:00:00'::TIMESTAMP_NS), ('2262-01-01 00:00:00'), (NULL)) t(moment)""")
    path = written(case, tmp_path / "report.html", f"{CALL[:-1]}, time_zone := 'Europe/Berlin')")

    async def steps(page):
        assert await page.run("document.getElementById('unit').textContent.split(' ').slice(0, 3).join(' ')") == "rows per year"
        assert await page.run("document.getElementById('first').textContent") == "1678"
        await page.run(click("A rule", "#rules"))
        assert await page.run(COUNT) == "3 rows"
        # Without a level, a rule counts as low.
        assert all("low" in row for row in await page.run(ROWS))
        return page.errors

    assert browser.visit(path, steps) == []
