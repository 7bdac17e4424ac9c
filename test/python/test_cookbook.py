"""Every query of the cookbook runs on the samples, and gives what stands behind it; those of all other pages give rows.

EVTX_DOCS=write writes the tables of the cookbook anew.
"""

import os
import re
import shutil
import zipfile

import pytest
from conftest import ROOT, SAMPLES

COOKBOOK = ROOT / "docs" / "cookbook.md"
# A query, with its question and the table that may stand behind it.
RECIPE = re.compile(
    r"^### (?P<question>[^\n]+)\n(?P<text>(?:(?!^#|^```).*\n)*)```sql\n(?P<sql>[^`]*)```\n(?P<table>\n(?:(?:\|.*\n)+|The samples hold none\.\n))?", re.M
)


def cell(value):
    return "" if value is None else " ".join(value.split()).replace("|", "\\|").replace("*", "\\*")


def table(con, sql):
    """The result as a table in Markdown; none for a statement that gives no rows of its own."""
    relation = con.sql(sql.rstrip().rstrip(";"))
    if not sql.startswith(("SELECT", "WITH")):
        return ""
    names = relation.columns
    rows = relation.project(", ".join(f"#{i + 1}::VARCHAR" for i in range(len(names)))).fetchall()
    if not rows:
        return "\nThe samples hold none.\n"
    lines = [names, ["---"] * len(names), *([cell(value) for value in row] for row in rows)]
    return "\n" + "".join("| " + " | ".join(line) + " |\n" for line in lines)


@pytest.fixture(name="case")
def fixture_case(con, tmp_path, monkeypatch):
    """A connection in an empty folder with the samples in it, and archives of a case."""
    (tmp_path / "samples").symlink_to(SAMPLES)
    (tmp_path / "collection").mkdir()
    with zipfile.ZipFile(tmp_path / "case.zip", "w") as archive:
        archive.write(SAMPLES / "DC01-Security.evtx", "C/Windows/System32/winevt/Logs/Security.evtx")
    shutil.copy(tmp_path / "case.zip", tmp_path / "collection/DC01.zip")
    monkeypatch.chdir(tmp_path)
    return con


def test_every_query_gives_what_the_cookbook_says(case):
    text = COOKBOOK.read_text(encoding="utf-8")
    recipes = list(RECIPE.finditer(text))
    assert len(recipes) >= 20
    assert len(recipes) == text.count("```sql")
    written = RECIPE.sub(
        lambda found: f"### {found['question']}\n{found['text']}```sql\n{found['sql']}```\n{table(case, found['sql'])}", text
    )
    if os.environ.get("EVTX_DOCS") == "write":
        COOKBOOK.write_text(written, encoding="utf-8")
    assert written == text or os.environ.get("EVTX_DOCS") == "write", "EVTX_DOCS=write writes the tables anew"


def test_every_python_example_of_the_cookbook_runs(case, capsys):
    examples = re.findall(r"```python\n([^`]*)```", COOKBOOK.read_text(encoding="utf-8"))
    assert examples
    for example in examples:
        exec(example, {"con": case})
    assert "Security.evtx" in capsys.readouterr().out


def test_every_query_of_the_other_pages_gives_rows(case):
    pages = [ROOT / "README.md", *sorted(set((ROOT / "docs").glob("*.md")) - {COOKBOOK})]
    queries = [sql for page in pages for sql in re.findall(r"```sql\n([^`]*)```", page.read_text(encoding="utf-8"))]
    assert len(queries) >= 10
    for sql in queries:
        assert case.sql(sql.rstrip().rstrip(";")).fetchall(), sql
