#!/usr/bin/env python3
"""Prepares a release. usage:
  tools/release.py files DIST FOLDER  copies what `make dist` built to FOLDER, under names that say version and platform, with licences and SHA256SUMS
  tools/release.py pack FOLDER ZIP    packs the page in the browser; the same files always give the same ZIP
  tools/release.py notes TAG URL      prints what CHANGELOG.md says about the version of the tag. URL is that of the repository.
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


def copy(dist, folder):
    folder.mkdir(parents=True)
    for extension in sorted(dist.glob("v*/*/*.duckdb_extension.gz")):
        duckdb, platform = extension.parts[-3:-1]
        name, rest = extension.name.split(".", 1)
        # The portable file is for every other version, so its name has none.
        kind = f"{duckdb}." if duckdb.removeprefix("v") in pinned() else ""
        shutil.copy(extension, folder / f"{name}.{kind}{platform}.{rest}")
    for wheel in dist.glob(f"*-{version()}-*.whl"):
        shutil.copy(wheel, folder)
    for page in dist.glob("*-web.zip"):
        shutil.copy(page, folder / f"{page.stem}-{version()}.zip")
    # The licences of the code in the extension, which has no room for them.
    for text in "LICENSE", "THIRD-PARTY-NOTICES.txt":
        shutil.copy(ROOT / text, folder)
    files = sorted(folder.iterdir())
    sums = [f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.name}\n" for file in files]
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
        case ["files", dist, folder]:
            copy(pathlib.Path(dist), pathlib.Path(folder))
        case ["pack", folder, path]:
            pack(pathlib.Path(folder), pathlib.Path(path))
        case ["notes", tag, url]:
            notes(tag, url)
        case _:
            raise SystemExit(__doc__)
