"""Checks that the modules of the Rust crates form a strict order.

usage: module_order.py ROOT ...

A ROOT is the lib.rs or main.rs of a crate. The `mod` lines define the order: a module may import from modules before it in the same list,
from modules inside those, and from modules inside itself. A module may not import from the file of a module around it. So there are no
cycles of imports. Prints each import against the order, and exits with 1 if there is one.
"""

import pathlib
import re
import sys

TOKEN = re.compile(r"::|[{},*]|\w+")

# Comments, raw strings, strings and characters.
NO_CODE = re.compile(r"""//[^\n]*|r(#*)".*?"\1|"(?:\\.|[^"\\])*"|'(?:\\[^']+|[^'\\\n])'""", re.DOTALL)


def main(roots):
    found = [finding for root in roots for finding in check(pathlib.Path(root))]
    print("\n".join(found), end="\n" if found else "")
    return bool(found)


def check(root):
    """The imports of a crate against its order."""
    files = dict(modules(root, ()))
    names = re.findall(r"extern crate self as (\w+);", root.read_text())
    order = {path: number for number, path in enumerate(files)}
    for path, file in files.items():
        for line, target in imports(code_of(file, names), path):
            # The longest prefix of the path that is a module. The rest is an item in it.
            module = next(target[:length] for length in range(len(target), -1, -1) if target[:length] in files)
            if module[: len(path)] == path:
                continue
            common = next(i for i, (a, b) in enumerate(zip((*path, None), (*module, None))) if a != b)
            is_inside = path[: len(module)] == module
            if is_inside or order[module[: common + 1]] > order[path[: common + 1]]:
                why = "is around it" if is_inside else "comes later"
                yield f"{file}:{line}: {'::'.join(path)} imports {'::'.join(target)}, but {'::'.join(module) or root.name} {why}"


def modules(file, path):
    """The paths and files of a module and of those inside it, in the order of the `mod` lines."""
    yield path, file
    folder = file.parent if file.stem in ("lib", "main", "mod") else file.with_suffix("")
    for name in re.findall(r"^(?:pub(?:\(\w+\))? )?mod (\w+);", file.read_text(), re.MULTILINE):
        inner = next((inner for inner in (folder / f"{name}.rs", folder / name / "mod.rs") if inner.exists()), None)
        if inner:
            yield from modules(inner, (*path, name))


def code_of(file, names):
    """A file without comments and literals, with the same lines. Replaces `names`, other names of the crate, by `crate`."""
    code = NO_CODE.sub(lambda found: "\n" * found.group().count("\n"), file.read_text())
    for name in names:
        code = re.sub(rf"\b{name}(?=::)", "crate", code)
    return re.sub(r"\bself::(?=super\b)", "", code)


def imports(code, path):
    """The paths in the code that start with `crate` or `super`, with their lines."""
    inner = list(inline_modules(code))
    for start in re.finditer(r"(?<![\w:])(?:crate|super)(?=::)", code):
        depth = sum(begin < start.start() < end for begin, end in inner)
        tokens = [match.group() for match in TOKEN.finditer(code, start.start(), end_of_path(code, start.start()))]
        for words in expand(tokens):
            base, words = resolve(words, path, depth)
            if base is not None:
                yield code.count("\n", 0, start.start()) + 1, base + words


def resolve(words, path, depth):
    """The module where a path starts, and the rest of the path. None if it starts in the file itself. `depth` is the number of inline
    modules around the path."""
    if words[0] == "crate":
        return (), tuple(words[1:])
    ups = next((i for i, word in enumerate(words) if word != "super"), len(words)) - depth
    if ups < 0 or ups == 0 and depth > 0:
        return None, ()
    return path[: len(path) - ups], tuple(words[ups + depth :])


def inline_modules(code):
    """The start and end of each inline module."""
    for start in re.finditer(r"^(?:pub(?:\(\w+\))? )?mod \w+ \{", code, re.MULTILINE):
        end = re.compile(r"^\}", re.MULTILINE).search(code, start.end())
        yield start.start(), end.end() if end else len(code)


def end_of_path(code, start):
    """The end of a path, including braces."""
    at, open_braces = start, 0
    while at < len(code):
        match = re.compile(r"\s*(::|\w+|\*)").match(code, at) if not open_braces else None
        if code.startswith("::{", at):
            open_braces, at = 1, at + 3
        elif open_braces:
            open_braces += {"{": 1, "}": -1}.get(code[at], 0)
            at += 1
            if not open_braces:
                return at
        elif match and (match.group(1) == "::" or code[max(at - 2, 0) : at] == "::" or at == start):
            at = match.end()
        else:
            return at
    return at


def expand(tokens):
    """The paths of a tree of imports."""
    paths, prefix, stack, after = [], [], [], False
    for token in tokens:
        if token == "{":
            stack.append(list(prefix))
        elif token in ("}", ","):
            if prefix and after:
                paths.append(prefix)
            prefix, after = list(stack[-1] if stack else []), False
            if token == "}":
                stack.pop()
        elif token == "as":
            after = True
            paths.append(prefix)
            prefix = []
        elif token not in ("::", "*", "self"):
            prefix, after = prefix + [token], True
        else:
            after = after or token in ("*", "self")
    return [path for path in ([*paths, prefix] if after and prefix else paths) if path] or [tokens[:1]]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
