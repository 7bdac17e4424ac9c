"""Lists of facts that the page leaves out."""

import json
import shutil

import case
import pytest
from conftest import SAMPLES
from test_report import data_of

pytest_plugins = "pages"
pytestmark = pytest.mark.skipif(case.browser.BROWSER is None, reason="Chromium is not installed")

COLUMNS = "topic, fact, account, source, target, detail"


def test_known_facts_are_left_out(same, con, monkeypatch, tmp_path):
    """Facts in each kind of file, dropped in the folder of the logs or later. A list that changed replaces the one before."""
    folder = shutil.copytree(SAMPLES, tmp_path / "samples")
    (folder / "other.csv").write_text("topic,subject\n", "utf-8")
    monkeypatch.chdir(tmp_path)
    con.execute("CREATE TABLE facts AS FROM evtx_facts('samples')")
    topics = [topic for (topic,) in con.execute("SELECT topic::VARCHAR FROM facts GROUP BY topic ORDER BY count(DISTINCT fact) DESC").fetchall()]
    con.execute(f"CREATE TABLE known AS SELECT {COLUMNS} FROM facts LIMIT 0")

    def listed(path, topic, form):
        rows = f"SELECT DISTINCT {COLUMNS} FROM facts WHERE topic = '{topic}'"
        con.execute(f"COPY ({rows}) TO '{path}' ({form}); INSERT INTO known {rows}")
        return path

    def left(page):
        return same(page, "FROM facts", tmp_path, "FROM evtx_facts('samples', known := 'known')")

    listed(folder / "known.csv", topics[0], "FORMAT csv")
    with case.shared(folder) as page:
        counts = [con.execute("SELECT count(*) FROM facts").fetchone()[0], left(page)]
        assert "known facts" in page(lambda case: case.text("#about"))
        for topic, (name, form) in zip(topics[1:], [("a.json", "FORMAT json, ARRAY true"), ("b.jsonl", "FORMAT json"), ("c.parquet", "FORMAT parquet")]):
            page(lambda case: case.load(listed(tmp_path / name, topic, form)))
            counts.append(left(page))
        assert counts == sorted(set(counts), reverse=True), counts
        con.execute("DELETE FROM known WHERE topic = $1", [topics[1]])
        (tmp_path / "a.json").write_text(json.dumps([{"topic": "a", "fact": "b", "account": 1, "source": None, "target": "c", "detail": {}}]), "utf-8")
        page(lambda case: case.load(tmp_path / "a.json"))
        assert left(page) > counts[-1]
        report = data_of(page(lambda case: case.save("#save-report", tmp_path / "report.html")).read_bytes())
        assert topics[0] not in {row["topic"] for row in report["row"]}
        assert same(page, "FROM files", tmp_path, "FROM evtx_file_metadata('samples')") > 0


def test_lists_that_cannot_be_read(tmp_path):
    """They are rows of `files` with an error, until they are dropped again."""
    path = tmp_path / "known.csv"
    bad = {path.name: "topic,fact\n", "known.json": "[", "known.jsonl": f'{{"{COLUMNS}": 1}}\n]', "known.parquet": f"PAR1 {COLUMNS} PAR1"}
    for name, text in bad.items():
        (tmp_path / name).write_text(text, "utf-8")

    async def steps(page):
        await page.load(SAMPLES / "DC01-System.evtx", *(tmp_path / name for name in bad))
        errors = await page.ask("SELECT filename, error FROM files WHERE error IS NOT NULL ORDER BY filename")
        path.write_text(f"{COLUMNS}\na,b,c,d,e,f\n", "utf-8")
        await page.load(path)
        left = await page.ask("SELECT filename FROM files WHERE error IS NOT NULL ORDER BY filename")
        return errors, left, await page.ask("FROM known"), await page.error()

    errors, left, known, error = case.visit(steps)
    assert [name for name, text in errors if text.startswith("not read: ")] == sorted(bad)
    assert f"the columns {COLUMNS}" in errors[0][1]
    assert [name for (name,) in left] == sorted(set(bad) - {path.name})
    assert (known, error) == ([[path.name, *"abcdef"]], "")
