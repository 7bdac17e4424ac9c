#!/usr/bin/env python3
"""Writes THIRD-PARTY-NOTICES.txt, the licences of the code in the published files. usage: tools/notices.py [--check]

`--check` only compares. The text does not name versions, so it changes only if a crate comes, goes, or changes its licence.
"""

import collections
import json
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
NOTICES = ROOT / "THIRD-PARTY-NOTICES.txt"
PUBLISHED = {"evtx-duckdb", "evtx-duckdb-stable", "evtx-python", "evtx-web"}
TARGETS = ["x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu", "x86_64-apple-darwin", "aarch64-apple-darwin", "x86_64-pc-windows-gnu",
           "aarch64-pc-windows-gnullvm", "wasm32-unknown-unknown"]
# Code that does not come from a crate. Its licences are in tools/notices, as are those that a crate lacks.
OTHERS = {"duckdb.txt": "DuckDB (the files that extensions are compiled with)", "mingw-w64.txt": "MinGW-w64 (in the files for Windows)"}

HEADER = """The published files contain compiled code of these projects. Their licences follow.
"""


def crates():
    """The crates with code in a published file, on any platform. Those of tests and of builds have none."""
    found = {}
    for target in TARGETS:
        command = ["cargo", "metadata", "--locked", "--format-version", "1", "--filter-platform", target]
        metadata = json.loads(subprocess.run(command, cwd=ROOT / "rust", check=True, stdout=subprocess.PIPE).stdout)
        packages = {package["id"]: package for package in metadata["packages"]}
        nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}
        stack = [id for id in metadata["workspace_members"] if packages[id]["name"] in PUBLISHED]
        while stack:
            for dependency in nodes[stack.pop()]["deps"]:
                package = packages[dependency["pkg"]]
                is_linked = any(kind["kind"] is None for kind in dependency["dep_kinds"]) and package["targets"][0]["kind"] != ["proc-macro"]
                if is_linked and package["id"] not in found.setdefault(target, {}):
                    found[target][package["id"]] = package
                    stack.append(package["id"])
    return [package for packages in found.values() for package in packages.values() if package["source"]]


def licences(package):
    """The texts of a crate's licences. Where it offers several, that of MIT or another short one, and not those of the others."""
    folder = pathlib.Path(package["manifest_path"]).parent
    files = sorted(path for path in folder.iterdir() if re.match(r"(un)?licen[cs]e|copy(ing|right)|notice", path.name, re.IGNORECASE))
    if re.search(r" OR |/", package["license"]):
        files = [path for path in files if not re.search(r"apache|unlicense|bsd|copying|copyright", path.name, re.IGNORECASE)] or files
    if not files:
        files = [path for path in [ROOT / "tools/notices" / f"{package['name']}.txt"] if path.exists()]
    if not files:
        raise SystemExit(f"{package['name']} ({package['license']}) has no text of its licence")
    return [path.read_text("utf-8") for path in files]


def notices():
    # Texts that differ only in their line breaks are one.
    users, texts = collections.defaultdict(set), {}
    for package in crates():
        for text in licences(package):
            # Its licence names "The Rust Project Developers".
            names = {package["name"]} | ({"Rust's standard library"} if package["name"] == "libc" else set())
            key = " ".join(text.split())
            users[key] |= names
            texts[key] = min(text, texts.get(key, text))
    for file, name in OTHERS.items():
        text = (ROOT / "tools/notices" / file).read_text("utf-8")
        users[text], texts[text] = {name}, text
    sections = sorted((", ".join(sorted(users[key], key=str.lower)), texts[key]) for key in users)
    rule = "\n" + "-" * 80 + "\n"
    return HEADER + "".join(f"{rule}{names}{rule}\n{tidy(text)}\n" for names, text in sections)


def tidy(text):
    return "\n".join(line.rstrip() for line in text.splitlines()).strip("\n")


def main():
    text = notices()
    if sys.argv[1:] != ["--check"]:
        NOTICES.write_text(text, "utf-8", newline="\n")
    elif not NOTICES.exists() or NOTICES.read_text("utf-8") != text:
        raise SystemExit(f"{NOTICES.name} is out of date: run `make notices`")


if __name__ == "__main__":
    main()
