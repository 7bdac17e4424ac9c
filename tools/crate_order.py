"""Checks that each crate uses only crates that it may know.

usage: crate_order.py RUST

RUST is the folder of the workspace. Its folders are layers: a crate uses crates of its own layer and of lower ones. Inside of the core, and
where a crate must not know a library, RULES says more. Tests and tools may use everything. Prints each dependency against the rules, and
exits with 1 if there is one.
"""

import pathlib
import sys
import tomllib

LAYERS = ["core", "extras", "frontends"]

# What only these crates, or layers, may use.
RULES = {
    "arrow-": ("evtx-arrow", "evtx-scan", "extras", "frontends"),
    "libduckdb-sys": ("evtx-duckdb-stable",),
    "pyo3": ("evtx-python",),
    "evtx": (),
}
# The crates of the core that a crate of the core uses.
CORE = {
    "evtx-format": [],
    "evtx-arrow": ["evtx-format"],
    "evtx-scan": ["evtx-format", "evtx-arrow"],
}
# Extras that use no crate of this project, and those that know no Arrow.
ALONE = ["evtx-codes"]
WITHOUT_ARROW = ["evtx-codes", "evtx-catalog", "evtx-sigma", "evtx-messages", "evtx-recovery", "evtx-writer"]


def main(root):
    crates = {path.parent.name: path.parent.parent.name for path in root.glob("*/*/Cargo.toml")}
    found = []
    for name, layer in crates.items():
        if layer not in LAYERS:
            continue
        used = tomllib.loads((root / layer / name / "Cargo.toml").read_text(encoding="utf-8")).get("dependencies", {})
        for dependency in used:
            if not may_use(name, layer, dependency, crates):
                found.append(f"{name} must not use {dependency}")
    print("\n".join(found), end="\n" if found else "")
    return bool(found)


def may_use(name, layer, dependency, crates):
    """Whether a crate of a layer may use another one."""
    other = crates.get(dependency)
    if other is not None:
        if other not in LAYERS or LAYERS.index(other) > LAYERS.index(layer):
            return False
        return name not in ALONE and (layer != "core" or dependency in CORE[name])
    for library, users in RULES.items():
        if dependency == library or library.endswith("-") and dependency.startswith(library):
            return (name in users or layer in users) and name not in WITHOUT_ARROW
    return True


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1])))
