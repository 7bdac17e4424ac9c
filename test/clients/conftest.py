"""What docs/install.md shows, and a home folder to run it in, with the file that people download.

EVTX_PORTABLE names the portable extension, and EVTX_CLIENTS the folder with the clients.
"""

import os
import pathlib
import re
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[2]
EXTENSION = pathlib.Path(os.environ["EVTX_PORTABLE"])
CLIENTS = pathlib.Path(os.environ["EVTX_CLIENTS"])
PAGE = (ROOT / "docs" / "install.md").read_text(encoding="utf-8")
DOWNLOAD = "Downloads/evtx.linux_amd64.duckdb_extension.gz"
# The newest DuckDB, one of a version that is too old, and the one in between that is installed with the clients.
NEWEST, TOO_OLD, OWN = CLIENTS / "newest", CLIENTS / "too-old", None


def section(heading):
    """The text under a heading, up to the next one."""
    return re.search(rf"^#+ {re.escape(heading)}\n(.*?)(?=^#+ |\Z)", PAGE, re.DOTALL | re.MULTILINE)[1]


def example(heading, language):
    """The first code under a heading."""
    return re.search(rf"```{language}\n(.*?)```", section(heading), re.DOTALL)[1]


class Home:
    """A home folder with a download and a folder of logs. DuckDB installs extensions into it."""

    def __init__(self, folder, download):
        self.folder = folder
        (folder / "case").symlink_to(ROOT / "samples")
        (folder / "Downloads").mkdir()
        (folder / DOWNLOAD).symlink_to(download)
        (folder / "evtx.sql").write_text(self.here(example("In every session", "sql")))

    def here(self, text):
        """Text of the page, which is about the home of somebody else."""
        assert "/home/me" in text, text
        return text.replace("/home/me", str(self.folder))

    def run(self, command, duckdb=OWN, text=None, **variables):
        """The output of a command, which finds a version of DuckDB for Python."""
        path = os.pathsep.join([str(CLIENTS / "bin"), os.environ["PATH"]])
        return run(command, text, self.folder, HOME=str(self.folder), PATH=path, PYTHONPATH=str(duckdb or ""), **variables)

    def python(self, code, duckdb=OWN):
        return self.run([CLIENTS / "bin" / "python", "-c", code], duckdb)

    def install(self, duckdb=OWN):
        """Runs the lines for Python."""
        return self.python(self.here(example("Python", "python")), duckdb)


def run(command, text=None, folder=ROOT, **variables):
    process = subprocess.run(command, input=text, capture_output=True, text=True, cwd=folder, timeout=300,
                             env={**os.environ, **variables}, check=False)
    assert process.returncode == 0, process.stdout + process.stderr
    return process.stdout


@pytest.fixture(name="download", scope="session")
def fixture_download(tmp_path_factory):
    folder = tmp_path_factory.mktemp("repository")
    run([sys.executable, ROOT / "tools" / "make_repository.py", EXTENSION, folder])
    return next(folder.glob("*/*/*.gz"))


@pytest.fixture(name="home")
def fixture_home(tmp_path, download):
    return Home(tmp_path, download)


@pytest.fixture(name="duckdb", params=[OWN, NEWEST], ids=["own", "newest"])
def fixture_duckdb(request):
    return request.param
