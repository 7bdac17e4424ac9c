"""Logs whose texts attack the page, or what reads them."""

import json

import case
import pytest
from client import quoted
from conftest import SAMPLES

pytest_plugins = "pages"
pytestmark = pytest.mark.skipif(case.browser.BROWSER is None, reason="Chromium is not installed")

IMAGE = "<img src=0 onerror=a>"
# Texts of the sample, and what stands in their place, filled up to its length. In turn, records get one of the latter.
PLANTED = {
    "DC01.northwind.example": [IMAGE],
    "svc-backup": ["\"\\{}'=,[]:", "\u202egpj.exe", "'}}, {'x':", "\\\\\"\\\"=\\\\x", "\t\r\n\x1b[31m\x7f\u2028", "\U0001f600 \ufeff\u200d=\"\"'"],
    "NORTHWIND": [IMAGE[:9], "\"};{\\n=\u2066", "NULL", "a\0b"],
}


@pytest.fixture(name="log")
def fixture_log(con, tmp_path):
    """A log of the samples' records with other texts, and a name like them, beside a rule."""
    records = [
        (number, record)
        for sample in ("DC01-Security", "DC01-Sysmon", "WS07-Security")
        for number, (record,) in enumerate(con.execute(f"SELECT record FROM read_evtx('{SAMPLES}/{sample}.evtx', record := true)").fetchall())
    ]
    con.execute("CREATE TABLE planted (number INTEGER, record BLOB)")
    for number, record in records:
        for turn in range(6 if "svc-backup".encode("utf-16-le") in record else 1):
            data = bytes(record)
            for text, others in PLANTED.items():
                old, new = (value.encode("utf-16-le") for value in (text, others[(number + turn) % len(others)]))
                assert len(new) <= len(old)
                data = data.replace(old, new + "x".encode("utf-16-le") * ((len(old) - len(new)) // 2))
            con.execute("INSERT INTO planted VALUES (?, ?)", [number, data])
    log = tmp_path / f"{IMAGE}.evtx"
    con.execute(f"COPY (SELECT record FROM planted) TO {quoted(log)} (FORMAT evtx)")
    (tmp_path / "rule.yml").write_text(f"title: {json.dumps(IMAGE)}\nid: 6a5b3c0e-1111-4222-8333-944455556666\nlevel: critical\nlogsource: {{product: windows}}\n"
                                     "detection: {s: {EventID|exists: true}, condition: s}\n", encoding="utf-8")
    return log


def test_texts_are_shown_as_text(log):
    async def steps(page):
        await page.load(log, log.with_name("rule.yml"))
        shown = {}
        for tab in ("facts", "matches", "damage"):
            await page.click(f"#tab-{tab}")
            shown[tab] = await page.text(f"#{tab}")
        await page.query("SELECT computer, filename FROM events")
        shown["grid"] = await page.text("#grid")
        await page.query("SELECT * FROM events WHERE event_id = 1102 ORDER BY record_id")
        await page.page.run("document.querySelector('#grid').focus(); 1")
        await page.press("Enter", "Enter", 13, 0)
        for number in range(6):
            await page.until(f"document.querySelector('#detail strong')?.textContent === 'Row {number + 1}'")
            shown["detail"] = shown.get("detail", "") + await page.text("#detail")
            await page.press("ArrowDown", "ArrowDown", 40, 0)
        shown["cells"] = IMAGE + str(await page.ask("SELECT DISTINCT user_name FROM evtx_timeline_of('events') WHERE contains(user_name, chr(27))"))
        await page.ask(f"SELECT '{IMAGE}' AS \"{IMAGE}\"")
        shown["heading"] = await page.text("#grid thead")
        with pytest.raises(RuntimeError, match="img"):
            await page.ask(f'SELECT "{IMAGE}"')
        elements = await page.page.run("document.querySelectorAll('img, body script, iframe, object, svg').length")
        return shown, elements, await page.page.run("document.title"), page.page.errors

    shown, elements, title, errors = case.visit(steps)
    assert (elements, title, errors) == (0, "Event logs", [])
    assert {name for name, text in shown.items() if IMAGE not in text} == set()
    assert "<U+202E>gpj.exe" in shown["detail"] and "<U+001B>[31m" in shown["cells"]
    assert not set("\0\x1b\x7f\u202e\u2066\ufeff\u2028") & set("".join(shown.values()))


def test_macros_keep_texts(same, log):
    with case.shared(log, log.with_name("rule.yml")) as page:
        assert same(page, "FROM events", log.parent, f"FROM read_evtx('{log.name}')") > 100
        for macro, files in (("timeline", ""), ("accounts", ""), ("facts", ", table_of_files := 'files'"), ("case_summary", ", table_of_files := 'files'")):
            assert same(page, f"FROM evtx_{macro}_of('events'{files})", log.parent, f"FROM evtx_{macro}('{log.name}')") > 0
        assert same(page, "FROM evtx_sigma_timeline_of('matches', table_of_events := 'events')", log.parent, f"FROM evtx_sigma_timeline('{log.name}', 'rule.yml')") > 100
