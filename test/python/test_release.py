"""What a release needs before a tag can be pushed: one version everywhere, notes of its own, and workflows that cannot change by themselves."""

import hashlib
import importlib
import json
import re
import shutil
import subprocess
import sys

import evtx_arrow
import pytest
from conftest import ROOT


def read(path):
    return (ROOT / path).read_text(encoding="utf-8")


def release(*arguments):
    return subprocess.run([sys.executable, ROOT / "tools/release.py", *arguments], capture_output=True, text=True, encoding="utf-8")


PINNED = re.search(r"^duckdb==(\S+)", read("duckdb/pin.txt"), re.MULTILINE)[1]
VERSION = re.search(r"EXTENSION_VERSION (\S+)", read("extension_config.cmake"))[1]


def test_every_part_has_the_same_version():
    assert evtx_arrow.__version__ == VERSION
    assert re.search(r'^version = "(.*)"', read("rust/Cargo.toml"), re.MULTILINE)[1] == VERSION
    assert re.search(r"^  version: (.*)", read("community/description.yml"), re.MULTILINE)[1] == VERSION
    assert re.search(r"^version: (.*)", read("CITATION.cff"), re.MULTILINE)[1] == VERSION


def test_the_community_repository_builds_the_name_of_its_descriptor():
    name = re.search(r"^  name: (.*)", read("community/description.yml"), re.MULTILINE)[1]
    assert re.search(r"EXTENSION_NAME \?= (.*)", read("community/Makefile"))[1] == name


def test_the_version_has_notes_whose_links_work_elsewhere():
    done = release("notes", f"v{VERSION}", "https://host.example/owner/name")
    assert done.returncode == 0, done.stderr
    links = re.findall(r"\]\((.*?)\)", done.stdout)
    assert f"https://host.example/owner/name/blob/v{VERSION}/docs/install.md" in links
    assert all(link.startswith("https://") for link in links)


def test_a_tag_of_another_version_is_refused():
    done = release("notes", "v99.0.0", "https://host.example/owner/name")
    assert done.returncode != 0 and "v99.0.0" in done.stderr


@pytest.fixture
def dist(tmp_path):
    """What `make dist` builds, with the names of the files as their contents."""
    platforms = re.search(r"^PLATFORMS \?= (.*)", read("make/platforms.mk"), re.MULTILINE)[1].split()
    extensions = [f"{version}/{platform}/evtx.duckdb_extension.gz" for version in [f"v{PINNED}", "v1.5.6"] for platform in platforms]
    packages = [f"evtx_arrow-{VERSION}-cp311-abi3-win_amd64.whl", f"evtx_arrow-{VERSION}.tar.gz", "evtx_arrow-0.0.1-cp311-abi3-win_amd64.whl"]
    for name in [*extensions, *packages, "evtx-web.zip", "evtx.cdx.json"]:
        (tmp_path / "dist" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "dist" / name).write_text(name)
    return tmp_path / "dist"


def digest(text):
    return hashlib.sha256(text if isinstance(text, bytes) else text.encode()).hexdigest()


def test_files_say_for_which_duckdb_and_platform_they_are(dist, tmp_path):
    done = release("files", dist, tmp_path / "release", "https://host.example/owner/name")
    assert done.returncode == 0, done.stderr
    sums = dict(reversed(line.split("  ")) for line in (tmp_path / "release/SHA256SUMS").read_text().splitlines())
    assert sums[f"evtx.v{PINNED}.linux_arm64.duckdb_extension.gz"] == digest(f"v{PINNED}/linux_arm64/evtx.duckdb_extension.gz")
    assert sums["evtx.linux_arm64.duckdb_extension.gz"] == digest("v1.5.6/linux_arm64/evtx.duckdb_extension.gz")
    assert sums[f"evtx-{VERSION}.cdx.json"] == digest("evtx.cdx.json")
    assert sums["LICENSE"] == digest((ROOT / "LICENSE").read_bytes())
    # Of an older package, nothing.
    assert [name for name in sums if name.startswith("evtx_arrow")] == [f"evtx_arrow-{VERSION}-cp311-abi3-win_amd64.whl", f"evtx_arrow-{VERSION}.tar.gz"]
    assert len(sums) == len(list((tmp_path / "release").iterdir())) - 1 == 12 + 2 + 2 + 2 + 2


def test_recipes_name_the_files_of_the_release(dist, tmp_path):
    """Those for Homebrew and Scoop: each URL is a file of the release, and its checksum follows."""
    assert release("files", dist, tmp_path / "release", "https://host.example/owner/name").returncode == 0
    named = []
    for recipe in "evtx.rb", "evtx.json":
        text = (tmp_path / "release" / recipe).read_text(encoding="utf-8")
        assert "{{" not in text
        for url, checksum in re.findall(r'"?url"?:? "(.*?)(?:#.*?)?",?\n.*"([0-9a-f]{64})"', text):
            name = url.removeprefix(f"https://host.example/owner/name/releases/download/v{VERSION}/")
            assert digest((tmp_path / "release" / name).read_bytes()) == checksum
            named.append(name)
    json.loads(text)
    if ruby := shutil.which("ruby"):
        subprocess.run([ruby, "-wc", tmp_path / "release/evtx.rb"], check=True)
    assert sorted(named) == sorted(path.name for path in (tmp_path / "release").glob("evtx.[!v]*.gz"))


def test_a_recipe_for_a_file_that_is_missing_is_refused(dist, tmp_path):
    (dist / "v1.5.6/osx_arm64/evtx.duckdb_extension.gz").unlink()
    done = release("files", dist, tmp_path / "release", "https://host.example/owner/name")
    assert done.returncode != 0 and "evtx.rb needs evtx.osx_arm64.duckdb_extension.gz" in done.stderr


def test_published_files_have_the_licences_of_the_crates_in_them():
    """Of every crate that cargo says is linked, and in the wheels, too."""
    tree = ["cargo", "tree", "--locked", "--manifest-path", ROOT / "rust/Cargo.toml", "-p", "evtx-duckdb", "-p", "evtx-duckdb-stable", "-p", "evtx-python",
            "-e", "normal,no-proc-macro", "--prefix", "none", "--no-dedupe", "-f", "{p}"]  # fmt: skip
    for target in "x86_64-unknown-linux-gnu", "aarch64-apple-darwin", "x86_64-pc-windows-gnu":
        tree += ["--target", target]
    lines = subprocess.run(tree, capture_output=True, text=True, check=True).stdout.splitlines()
    crates = {line.split()[0] for line in lines if line and "(/" not in line}
    headings = re.findall(r"^-{80}\n(.*)\n-{80}$", read("THIRD-PARTY-NOTICES.txt"), re.MULTILINE)
    named = {name for heading in headings for name in heading.split(", ")}
    assert len(crates) > 50 and crates - named == set()
    for project in ["evtx-sql/pyproject.toml", "python/pyproject.toml"]:
        assert re.search(r'^license-files = .*"THIRD-PARTY-NOTICES.txt"', read(project), re.MULTILINE), project


def test_what_each_system_of_a_release_is_asked_is_what_the_samples_say(con, monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(ROOT / "tools")
    monkeypatch.chdir(ROOT)
    check = importlib.import_module("check_release")
    assert [list(con.execute(query).fetchone()) for query in json.loads(check.queries(tmp_path))] == [row for _, row in check.CHECKS]


@pytest.mark.parametrize("workflow", sorted(ROOT.glob(".github/workflows/*.yml")), ids=lambda path: path.name)
def test_actions_are_commits_with_their_version(workflow):
    actions = re.findall(r"uses: +(?!\./)(.*)", workflow.read_text(encoding="utf-8"))
    assert actions
    for action in actions:
        assert re.fullmatch(r"[\w.-]+/[\w.-]+@[0-9a-f]{40} # \S+", action), action


def test_versions_of_duckdb_come_from_the_list():
    """A new version is one line in duckdb/pin.txt, so no page and no test names one. Measurements do."""
    pinned = re.findall(r"^duckdb==(\S+)", read("duckdb/pin.txt"), re.MULTILINE)
    files = [ROOT / "README.md", *ROOT.glob("docs/**/*.md"), *ROOT.glob("test/**/*.py"), *ROOT.glob("src/*.cpp"), *ROOT.glob("rust/*/*/src/**/*.rs")]
    for file in set(files) - {ROOT / "docs/speed.md"}:
        text = file.read_text(encoding="utf-8")
        assert not re.search(r"DuckDB v?[2-9]\.\d+\.\d+", text), file
        assert set(re.findall(r"DUCKDB=(\d\S*?)[`\s]", text)) <= set(pinned), file
