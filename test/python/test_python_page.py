"""The examples of docs/python.md and the notebook next to it run on the samples.

EVTX_DOCS=write rewrites the outputs of the notebook.
"""

import os
import re

import nbformat
from conftest import EXTENSION, ROOT, SAMPLES
from nbclient import NotebookClient

PAGE = ROOT / "docs" / "python.md"
NOTEBOOK = ROOT / "docs" / "triage.ipynb"


def test_every_example_runs(con, tmp_path, monkeypatch, capsys):
    (tmp_path / "samples").symlink_to(SAMPLES)
    monkeypatch.chdir(tmp_path)
    examples = re.findall(r"```python\n([^`]*)```", PAGE.read_text(encoding="utf-8"))
    assert len(examples) >= 8
    names = {"con": con}
    for example in examples:
        # The fixture already has a connection with the extension loaded.
        if "duckdb.connect" not in example:
            exec(example, names)
    assert "203.0.113.45" in capsys.readouterr().out
    assert (tmp_path / "case.parquet").exists()


def test_the_notebook_runs(tmp_path, monkeypatch):
    monkeypatch.setenv("EVTX_EXTENSION", EXTENSION)
    monkeypatch.setenv("EVTX_LOGS", str(SAMPLES))
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    NotebookClient(notebook, timeout=120, resources={"metadata": {"path": str(tmp_path)}}).execute()
    outputs = [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]
    charts = [output for output in outputs if "image/png" in output.get("data", {})]
    tables = [output for output in outputs if "text/html" in output.get("data", {})]
    assert len(charts) == 2 and len(tables) >= 5
    if os.environ.get("EVTX_DOCS") == "write":
        for cell in notebook.cells:
            cell.metadata.clear()
        text = nbformat.writes(notebook).replace(str(SAMPLES), "../samples")
        NOTEBOOK.write_text(text + "\n", encoding="utf-8")
