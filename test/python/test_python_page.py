"""The examples of docs/python.md and the notebook next to it run on the samples.

EVTX_DOCS=write rewrites the outputs of the notebook.
"""

import base64
import os
import re
import shutil

import nbformat
from conftest import EXTENSION, ROOT, SAMPLES, write_log, write_zip
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


def run_notebook(folder, logs):
    """The notebook with its outputs, over logs."""
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    environment = {**os.environ, "EVTX_EXTENSION": EXTENSION, "EVTX_LOGS": str(logs)}
    client = NotebookClient(notebook, timeout=600, resources={"metadata": {"path": str(folder)}})
    client.execute(env=environment)
    return notebook


def output_of(notebook, word, kind):
    """The output of the cell that has a word, such as its table as text."""
    [cell] = [cell for cell in notebook.cells if cell.cell_type == "code" and word in cell.source]
    return cell.outputs[-1]["data"][kind]


def test_the_notebook_runs(tmp_path):
    notebook = run_notebook(tmp_path, SAMPLES)
    outputs = [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]
    charts = [base64.b64decode(output["data"]["image/png"]) for output in outputs if "image/png" in output.get("data", {})]
    tables = [output for output in outputs if "text/html" in output.get("data", {})]
    assert len(charts) == 2 and len(tables) >= 8
    # The height of a PNG. However many channels a case has, the figure fits on a page or two.
    assert all(int.from_bytes(chart[20:24]) < 2000 for chart in charts)
    assert "41 failed logons of 14 accounts" in output_of(notebook, "topic = 'failed logons'", "text/plain")
    if os.environ.get("EVTX_DOCS") == "write":
        for cell in notebook.cells:
            cell.metadata.clear()
        text = nbformat.writes(notebook).replace(str(SAMPLES), "../samples")
        NOTEBOOK.write_text(text + "\n", encoding="utf-8")


def test_the_notebook_tells_copies(tmp_path):
    """An archive next to its unpacked copy doubles nothing, and the notebook says which files are copies."""
    logs = tmp_path / "logs"
    logs.mkdir()
    log = shutil.copy(SAMPLES / "DC01-Security.evtx", logs)
    write_zip(logs / "logs.zip", {"DC01-Security.evtx": log})
    write_log(logs / "older.evtx", "DC01-System.evtx", 1)
    notebook = run_notebook(tmp_path, logs)
    copies = output_of(notebook, "AS copy", "text/html")
    assert copies.count("<tr") == 2 and "<td>logs.zip/DC01-Security.evtx</td>" in copies and "<td>55</td>" in copies
    shared = output_of(notebook, "AS shared_events", "text/html")
    assert shared.count("<tr") == 2 and "[DC01-Security.evtx, DC01-Security.evtx]" in shared and "<td>55</td>" in shared
    assert "<td>65</td>" in output_of(notebook, "case.parquet", "text/html")
