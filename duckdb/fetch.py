"""Downloads the source of a DuckDB that pin.txt names. usage: duckdb/fetch.py VERSION

It goes to source/VERSION. `fetch.py --newest` adds the newest DuckDB on PyPI to pin.txt, if pin.txt lacks it.
"""

import hashlib
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile

HERE = pathlib.Path(__file__).parent
PIN = HERE / "pin.txt"
PIP = [sys.executable, "-m", "pip", "--disable-pip-version-check"]


def download(requirement, folder, *options):
    """The archive of a source distribution, in which DuckDB's source is in external/duckdb."""
    lines = pathlib.Path(folder, "requirements.txt")
    lines.write_text(requirement)
    subprocess.run([*PIP, "download", "--quiet", "--no-deps", "--no-binary", "duckdb", *options, "-r", lines, "-d", folder], check=True)
    return next(lines.parent.glob("duckdb-*.tar.gz"))


def fetch(version, folder):
    print(f"fetching the source of DuckDB {version}", flush=True)
    requirement = next(line for line in PIN.read_text().splitlines() if line.startswith(f"duckdb=={version} "))
    prefix = f"duckdb-{version}/external/duckdb/"
    with tarfile.open(download(requirement, folder, "--require-hashes")) as archive:
        members = [member for member in archive if member.name.startswith(prefix)]
        archive.extractall(folder, members, filter="data")
    shutil.rmtree(HERE / "source" / version, ignore_errors=True)
    shutil.copytree(pathlib.Path(folder, prefix), HERE / "source" / version, symlinks=True)


def add_newest(folder):
    output = subprocess.run([*PIP, "index", "versions", "duckdb"], check=True, capture_output=True, text=True).stdout
    newest = re.search(r"\((.*?)\)", output)[1]
    text = PIN.read_text()
    if f"duckdb=={newest} " in text:
        print(f"pin.txt has the newest DuckDB, {newest}")
        return
    line = f"duckdb=={newest} --hash=sha256:{hashlib.sha256(download(f'duckdb=={newest}', folder).read_bytes()).hexdigest()}"
    PIN.write_text(text.replace("duckdb==", f"{line}\nduckdb==", 1))
    print(f"added to pin.txt: {line}")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as temporary:
        if sys.argv[1] == "--newest":
            add_newest(temporary)
        else:
            fetch(sys.argv[1], temporary)
