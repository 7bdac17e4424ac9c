"""Files of other file systems: those of ``pyarrow.fs`` and of fsspec."""

from __future__ import annotations

import contextlib
import os
import pathlib
import re
import threading
from collections.abc import Iterable
from typing import Any, Protocol

_URI = re.compile(r"([a-z][a-z0-9+.-]+)://", re.IGNORECASE)


class Files(Protocol):
    """A file system as the native part calls it, always from the thread that reads the stream."""

    def list(self, folder: str, is_deep: bool) -> list[tuple[str, int]]:
        """The paths and sizes in bytes of the files in a folder, and in its subfolders if ``is_deep``."""

    def size(self, path: str) -> int | None:
        """The size of a file in bytes; None if there is no such file."""

    def open(self, path: str, size: int | None) -> tuple[Any, int]:
        """A file with a method ``read(offset, length)``, and its size in bytes. ``size`` is the size, if it is known."""


class _ArrowFile:
    def __init__(self, file: Any) -> None:
        self._file = file

    def read(self, offset: int, length: int) -> bytes:
        return self._file.read_at(length, offset)


class ArrowFiles:
    """The files of a ``pyarrow.fs.FileSystem``. Paths begin with ``prefix`` where the file system has ``base``."""

    def __init__(self, filesystem: Any, prefix: str = "", base: str = "") -> None:
        self._filesystem = filesystem
        self._prefix = prefix
        self._base = base

    def _inner(self, path: str) -> str:
        return self._base + path.removeprefix(self._prefix)

    def list(self, folder: str, is_deep: bool) -> list[tuple[str, int]]:
        from pyarrow import fs

        inner = self._inner(folder).rstrip("/")
        selector = fs.FileSelector(inner, allow_not_found=True, recursive=is_deep)
        found = self._filesystem.get_file_info(selector)
        return [(self._shown(info.path, folder, inner), info.size) for info in found if info.is_file]

    def _shown(self, path: str, folder: str, inner: str) -> str:
        """The path of a listed file, spelled as its folder was."""
        if inner and path.startswith(inner):
            return folder.rstrip("/") + path[len(inner):]
        return self._prefix + path.removeprefix(self._base)

    def size(self, path: str) -> int | None:
        info = self._filesystem.get_file_info(self._inner(path))
        return info.size if info.is_file else None

    def open(self, path: str, size: int | None) -> tuple[Any, int]:
        file = self._filesystem.open_input_file(self._inner(path))
        return _ArrowFile(file), file.size() if size is None else size


# Scans in several threads take turns with file systems that seek and then read, because files can share a position: all
# files of a tar file do, and all handles of a file in fsspec's memory.
_TURN = threading.Lock()


class _FsspecFile:
    def __init__(self, filesystem: Any, path: str) -> None:
        self._filesystem = filesystem
        self._path = path

    def read(self, offset: int, length: int) -> bytes:
        # Asynchronous file systems, such as that of S3, request ranges and have no position.
        turn = contextlib.nullcontext() if getattr(self._filesystem, "async_impl", False) else _TURN
        with turn:
            # One range request, without one for the file's metadata.
            return bytes(self._filesystem.cat_file(self._path, start=offset, end=offset + length))


class FsspecFiles:
    """The files of a ``fsspec.AbstractFileSystem``."""

    def __init__(self, filesystem: Any) -> None:
        self._filesystem = filesystem

    def list(self, folder: str, is_deep: bool) -> list[tuple[str, int]]:
        stripped = self._filesystem._strip_protocol(folder)
        try:
            if is_deep:
                found = list(self._filesystem.find(stripped, detail=True).values())
            else:
                found = self._filesystem.ls(stripped, detail=True)
        except FileNotFoundError:
            return []
        return [
            (self._shown(info["name"], folder, stripped), info["size"]) for info in found if info["type"] == "file"
        ]

    @staticmethod
    def _shown(path: str, folder: str, stripped: str) -> str:
        """The path of a listed file, spelled as its folder was."""
        inner = stripped.strip("/")
        rest = path.strip("/")
        if not rest.startswith(inner):
            return path
        return folder.rstrip("/") + "/" + rest[len(inner):].strip("/") if folder else rest

    def size(self, path: str) -> int | None:
        try:
            info = self._filesystem.info(path)
        except FileNotFoundError:
            return None
        return info["size"] if info["type"] == "file" else None

    def open(self, path: str, size: int | None) -> tuple[Any, int]:
        if size is None:
            size = self._filesystem.info(path)["size"]
        return _FsspecFile(self._filesystem, path), size


def resolve(files: Any, filesystem: Any) -> tuple[list[str], Files | None]:
    """The paths in ``files``, and their file system; None for that of this machine."""
    paths = _paths(files)
    if filesystem is not None:
        return [path.rstrip("/") or path for path in paths], _given(filesystem)
    schemes = {_scheme(path) for path in paths}
    if len(schemes) > 1:
        raise ValueError(f"all files of a scan must be in one file system, not in {sorted(schemes)}")
    if schemes == {"file"} or not schemes - {""}:
        return [_local(path) for path in paths], None
    return paths, _of_uris(paths)


def _paths(files: Any) -> list[str]:
    if isinstance(files, (str, os.PathLike)):
        files = [files]
    if isinstance(files, bytes) or not isinstance(files, Iterable):
        raise TypeError(f"files must be a path or a list of paths, not {files!r}")
    files = list(files)
    for path in files:
        if not isinstance(path, (str, os.PathLike)):
            raise TypeError(f"a path must be text or a pathlib.Path, not {path!r}")
    return [_text(os.fspath(path)) for path in files]


def _text(path: str | bytes) -> str:
    text = os.fsdecode(path)
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ValueError(f"the path {text!r} is not UTF-8; scan its folder to see such files in the column error") from None
    return text


def _scheme(path: str) -> str:
    found = _URI.match(path)
    return found.group(1).lower() if found else ""


def _local(path: str) -> str:
    """A path on this machine. A ``file://`` URI is taken as it is if there is such a file, or else unescaped."""
    if _scheme(path) != "file":
        return path
    from urllib.parse import unquote, urlsplit

    # Names of logs contain %4, which not everyone escapes.
    plain = "/" + path.split("://", 1)[1].split("/", 1)[-1]
    if os.path.exists(plain):
        return plain
    return str(pathlib.Path(unquote(urlsplit(path.replace("?", "%3F").replace("#", "%23")).path)))


def _given(filesystem: Any) -> Files:
    for kind in type(filesystem).__mro__:
        if kind.__module__.startswith("pyarrow.") and kind.__name__ == "FileSystem":
            return ArrowFiles(filesystem)
        if kind.__module__.startswith("fsspec.") and kind.__name__ == "AbstractFileSystem":
            return FsspecFiles(filesystem)
    if all(hasattr(filesystem, name) for name in ("list", "size", "open")):
        return filesystem
    raise TypeError(
        f"filesystem must be a pyarrow.fs.FileSystem or a fsspec.AbstractFileSystem, not {filesystem!r}"
    )


def _of_uris(paths: list[str]) -> Files:
    """The file system of pyarrow for URIs. The path after the host or bucket is not unescaped."""
    try:
        from pyarrow import fs
    except ImportError as error:
        raise ImportError(f"cannot read {paths[0]} without pyarrow: install pyarrow, or pass filesystem=") from error
    # The scheme and the host or bucket.
    prefix = "/".join(paths[0].split("/", 3)[:3])
    for path in paths:
        if path != prefix and not path.startswith(f"{prefix}/"):
            raise ValueError(f"all files of a scan must be in one file system, and {path} is not in {prefix}")
    filesystem, base = fs.FileSystem.from_uri(f"{prefix}/")
    return ArrowFiles(filesystem, prefix, base.rstrip("/"))
