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

    def __init__(self, folder, download, package):
        self.folder, self.package = folder, package
        (folder / "case").symlink_to(ROOT / "samples")
        (folder / "Downloads").mkdir()
        (folder / DOWNLOAD).symlink_to(download)
        (folder / "evtx.sql").write_text(self.here(example("In every session", "sql")))

    def here(self, text):
        """Text of the page, which is about the home of somebody else."""
        assert "/home/me" in text
        return text.replace("/home/me", str(self.folder))

    def run(self, command, duckdb=OWN, text=None, **variables):
        """The output of a command, which finds a version of DuckDB for Python."""
        return run(command, text, self.folder, **{**self.environment(duckdb), **variables})

    def environment(self, duckdb=OWN):
        return {"HOME": str(self.folder), "PATH": os.pathsep.join([str(CLIENTS / "bin"), os.environ["PATH"]]),
                "PYTHONPATH": os.pathsep.join([str(duckdb or self.package), str(self.package)])}

    def python(self, code, duckdb=OWN):
        return self.run([CLIENTS / "bin" / "python", "-c", code], duckdb)

    def install(self, duckdb=OWN):
        """What all tools for Python need."""
        self.python(example("Tools for Python", "python"), duckdb)


def run(command, text=None, folder=ROOT, **variables):
    process = subprocess.run(command, input=text, capture_output=True, text=True, cwd=folder, timeout=600,
                             env={**os.environ, **variables}, check=False)
    assert process.returncode == 0, process.stdout + process.stderr
    return process.stdout


@pytest.fixture(name="download", scope="session")
def fixture_download(tmp_path_factory):
    folder = tmp_path_factory.mktemp("repository")
    run([sys.executable, ROOT / "tools" / "make_repository.py", EXTENSION, folder])
    return next(folder.glob("*/*/*.gz"))


@pytest.fixture(name="package", scope="session")
def fixture_package(download, tmp_path_factory):
    """A folder with the package evtx-sql as it is installed."""
    package = tmp_path_factory.mktemp("package")
    run([sys.executable, ROOT / "tools" / "make_wheel.py", "sql", download.parents[2], download.parent.name])
    run([sys.executable, "-m", "zipfile", "-e", next(download.parents[2].glob("*.whl")), package])
    return package


@pytest.fixture(name="home")
def fixture_home(tmp_path, download, package):
    return Home(tmp_path, download, package)


@pytest.fixture(name="duckdb", params=[OWN, NEWEST], ids=["own", "newest"])
def fixture_duckdb(request):
    return request.param
