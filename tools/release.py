#!/usr/bin/env python3
"""Prepares a release. usage:
  tools/release.py files DIST FOLDER URL  copies what `make dist` built to FOLDER, under names that say version and platform, with licences, the
                                          recipes for Homebrew and Scoop, and SHA256SUMS. URL is that of the repository.
  tools/release.py pack FOLDER ZIP        packs the page in the browser; the same files always give the same ZIP
  tools/release.py notes TAG URL          prints what CHANGELOG.md says about the version of the tag
"""

import hashlib
import pathlib
import re
import shutil
import sys
import zipfile

ROOT = pathlib.Path(__file__).resolve().parent.parent


def version():
    """The version of the project."""
    return re.search(r"^ *EXTENSION_VERSION (\S+)", (ROOT / "extension_config.cmake").read_text("utf-8"), re.MULTILINE)[1]


def pinned():
    """The versions of DuckDB that have a file of their own."""
    return re.findall(r"^duckdb==(\S+)", (ROOT / "duckdb/pin.txt").read_text("utf-8"), re.MULTILINE)


def digest(file):
    return hashlib.sha256(file.read_bytes()).hexdigest()


def copy(dist, folder, url):
    folder.mkdir(parents=True)
    for extension in sorted(dist.glob("v*/*/*.duckdb_extension.gz")):
        duckdb, platform = extension.parts[-3:-1]
        name, rest = extension.name.split(".", 1)
        # The portable file is for every other version, so its name has none.
        kind = f"{duckdb}." if duckdb.removeprefix("v") in pinned() else ""
        shutil.copy(extension, folder / f"{name}.{kind}{platform}.{rest}")
    for package in [*dist.glob(f"*-{version()}-*.whl"), *dist.glob(f"*-{version()}.tar.gz")]:
        shutil.copy(package, folder)
    for page in dist.glob("*-web.zip"):
        shutil.copy(page, folder / f"{page.stem}-{version()}.zip")
    for sbom in dist.glob("*.cdx.json"):
        shutil.copy(sbom, folder / f"evtx-{version()}.cdx.json")
    values = {"URL": url, "VERSION": version(), **{file.name: digest(file) for file in folder.iterdir()}}
    for recipe in "evtx.rb", "evtx.json":
        text = (ROOT / "packaging" / recipe).read_text("utf-8")
        (folder / recipe).write_text(re.sub(r"\{\{(.*?)\}\}", lambda mark: values.get(mark[1]) or sys.exit(f"{recipe} needs {mark[1]}"), text), "utf-8", newline="\n")
    # The licences of the code in the extension, which has no room for them.
    for text in "LICENSE", "THIRD-PARTY-NOTICES.txt":
        shutil.copy(ROOT / text, folder)
    files = sorted(folder.iterdir())
    sums = [f"{digest(file)}  {file.name}\n" for file in files]
    (folder / "SHA256SUMS").write_text("".join(sums), "utf-8", newline="\n")
    print(*sums, sep="", end="")


def pack(folder, path):
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in sorted(folder.iterdir()):
            archive.writestr(zipfile.ZipInfo(f"{path.stem}/{file.name}"), file.read_bytes(), zipfile.ZIP_DEFLATED)


def notes(tag, url):
    if tag != f"v{version()}":
        raise SystemExit(f"the tag is {tag}, but extension_config.cmake has version {version()}")
    sections = re.split(r"^## ", (ROOT / "CHANGELOG.md").read_text("utf-8"), flags=re.MULTILINE)
    heading = re.compile(rf"{re.escape(version())}\b.*\n")
    found = [heading.sub("", section, count=1).strip() for section in sections if heading.match(section)]
    if len(found) != 1 or not found[0]:
        raise SystemExit(f"CHANGELOG.md needs one section for {version()}")
    # A page of GitHub's releases shows every line break, and knows no relative links.
    text = re.sub(r"(?<!\n)\n *(?![\n-])", " ", found[0])
    print(re.sub(r"\]\((?!https?:)", f"]({url}/blob/{tag}/", text))


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["files", dist, folder, url]:
            copy(pathlib.Path(dist), pathlib.Path(folder), url)
        case ["pack", folder, path]:
            pack(pathlib.Path(folder), pathlib.Path(path))
        case ["notes", tag, url]:
            notes(tag, url)
        case _:
            raise SystemExit(__doc__)
