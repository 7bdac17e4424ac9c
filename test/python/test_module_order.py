"""tools/module_order.py reports imports against the order of modules."""

import subprocess
import sys

import pytest
from conftest import ROOT

FILES = {
    "lib.rs": "extern crate self as me;\n\nmod low;\nmod high;\n\npub use high::top;\n",
    "low.rs": "//! As crate::high has it.\npub fn base() {}\n\n#[cfg(test)]\nmod tests {\n    use super::*;\n}\n",
    "high.rs": "mod first;\nmod second;\n\npub use second::top;\n",
    "high/first.rs": "use crate::low::base;\n\npub fn one() {\n    base()\n}\n",
    "high/second.rs": "use super::first::{self, one};\n\npub fn top() {\n    one();\n    first::one()\n}\n",
}


@pytest.mark.parametrize("file, line, told", [
    (None, "", []),
    ("low.rs", "use crate::high::top;", ["low imports high::top, but high comes later"]),
    ("low.rs", "use crate::{\n    high::{top, other as it},\n};", [
        "low imports high::top, but high comes later", "low imports high::other, but high comes later",
    ]),
    ("low.rs", "fn f() {\n    super::high::top()\n}", ["low imports high::top, but high comes later"]),
    ("low.rs", "use self::super::high::top;", ["low imports high::top, but high comes later"]),
    ("low.rs", "fn f() { g(\"https://x\", crate::high::top) }", ["low imports high::top, but high comes later"]),
    ("low.rs", "fn f() { g('\"', crate::high::top, '\"') }", ["low imports high::top, but high comes later"]),
    ("low.rs", "use me::high::top;", ["low imports high::top, but high comes later"]),
    ("high/first.rs", "use super::second::top;", ["high::first imports high::second::top, but high::second comes later"]),
    ("high/first.rs", "use super::top;", ["high::first imports high::top, but high is around it"]),
    ("high/first.rs", "use crate::top;", ["high::first imports top, but lib.rs is around it"]),
    ("low.rs", "#[cfg(test)]\nmod more {\n    use crate::high::top;\n}", ["low imports high::top, but high comes later"]),
])  # fmt: skip
def test_imports_against_the_order_are_told(tmp_path, file, line, told):
    for name, text in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text + (line + "\n" if name == file else ""))
    run = subprocess.run([sys.executable, ROOT / "tools/module_order.py", tmp_path / "lib.rs"], capture_output=True, text=True)
    assert [line.split(": ", 1)[1] for line in run.stdout.splitlines()] == told, run.stderr
    assert run.returncode == bool(told)
