"""Scans and their partitions."""

from __future__ import annotations

import dataclasses
import inspect
import os
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Literal, NoReturn

from . import _native
from ._conditions import Condition, conditions
from ._files import resolve

if TYPE_CHECKING:
    import pyarrow

Types = Literal["plain", "native", "spark"]

_MAX_THREADS = 16

# The arguments of `read_evtx` that a scan takes: for each its kind, its default, and what it does.
ARGUMENTS: dict[str, tuple[str, Any, str]] = {
    name: (kind, default == "true" if kind == "flag" else default, about)
    for name, kind, default, about in _native.scan_arguments()
}


def scan(
    files: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    *,
    columns: Sequence[str] | None = None,
    where: Iterable[Condition] | Condition | None = None,
    threads: int | None = None,
    filesystem: Any = None,
    types: Types = "plain",
    _fields: list[Any] | None = None,
    **options: Any,
) -> Scan:
    """A scan of Windows event logs. It finds the files now, and reads them when you read it.

    Args:
        files: a path, a glob, a folder, a ZIP, gzip or Zstandard archive, a URI, or a list of them.
        columns: the names of the columns, in order and in any case; all columns by default. A column that an option
            adds, such as ``xml``, needs no option if you name it here.
        where: conditions that must all be true, each a tuple ``(column, operator, value)``: ``=``, ``!=``,
            ``<``, ``<=``, ``>``, ``>=``, ``in``, ``not in``, ``between``, ``is null``, ``is not null``,
            ``starts_with``, ``ends_with``, ``contains``, ``like``, ``not like``, ``ilike``, ``not ilike``. As in SQL,
            only ``is null`` is true of a missing value. Times are ``datetime`` (UTC if they have no zone) or text.
            For an entry of ``event_data`` the column is a pair: ``("event_data", "IpAddress")``.
        threads: how many threads read local files, at most 16; by default one for each CPU. Other file systems are read
            by the thread that reads the stream.
        filesystem: a ``pyarrow.fs.FileSystem`` or a file system of fsspec that has the files.
        types: ``plain`` types, which all libraries read; ``native`` types with dictionaries and string views, as for
            DuckDB; or the types of ``spark``.
        {options}

    Raises:
        FileNotFoundError: a path or glob matches no file.
        OSError: a file or folder cannot be read.
        ValueError: an unknown column, operator or value of an option.
        TypeError: a value of the wrong type, or a condition on a column that cannot be compared.
        EvtxError: an archive that you named is damaged.
    """
    for name, value in options.items():
        kind, default, _ = ARGUMENTS.get(name, ("", None, ""))
        if value is None and default is not None:
            raise TypeError(f"{name} cannot be None")
        if isinstance(value, os.PathLike):
            options[name] = os.fspath(value)
        elif kind == "list":
            options[name] = _list(value)
    columns = _names(columns)
    if not isinstance(types, str):
        raise TypeError(f"types must be text, not {types!r}")
    paths, found = resolve(files, filesystem)
    stated = conditions(where)
    native = _native.open(paths, [], options, columns, stated, types, _threads(threads), found, _fields)
    return Scan(native, options, stated, found, _threads(threads))


def _describe() -> None:
    """Adds the arguments of ``read_evtx`` to the signature of ``scan`` and to its text."""
    known = {"flag": bool, "text": str, "integer": int, "list": str | int | Sequence[str | int]}
    signature = inspect.signature(scan)
    parameters = [value for name, value in signature.parameters.items() if name not in ("_fields", "options")]
    for name, (kind, default, _) in ARGUMENTS.items():
        annotation = known[kind] if default is not None else known[kind] | None
        parameters.append(inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation))
    scan.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    lines = [f"{name}: {about}" for name, (_, _, about) in ARGUMENTS.items()]
    scan.__doc__ = (scan.__doc__ or "").replace("{options}", "\n        ".join(lines).replace("`", "``"))


_describe()


def _names(columns: Any) -> list[str] | None:
    """The names of columns; None for all."""
    if columns is None:
        return None
    if isinstance(columns, (str, bytes)) or not isinstance(columns, Iterable):
        raise TypeError(f"columns must be a list of names, not {columns!r}")
    names = list(columns)
    for name in names:
        if not isinstance(name, str):
            raise TypeError(f"the name of a column must be text, not {name!r}")
    return names


def _list(value: Any) -> Any:
    """A value, or the values of an iterable as a list, because partitions need them again. Numbers of numpy become
    Python's."""
    if isinstance(value, Iterable) and not isinstance(value, (str, bytes)):
        return [_list(item) for item in value]
    return value.item() if type(value).__module__ == "numpy" else value


def _threads(threads: int | None) -> int:
    if threads is None:
        affinity = getattr(os, "sched_getaffinity", None)
        threads = len(affinity(0)) if affinity else os.cpu_count() or 1
    elif isinstance(threads, bool) or not isinstance(threads, int):
        raise TypeError(f"threads must be a whole number, not {threads!r}")
    elif threads < 1:
        raise ValueError(f"threads must be at least 1, not {threads}")
    return min(threads, _MAX_THREADS)


class Scan:
    """The rows of logs, in the order of the files and of their records. Each read reads the logs again."""

    def __init__(
        self, native: _native.NativeScan, options: dict[str, Any], where: list[Any], files: Any, threads: int
    ) -> None:
        self._native = native
        self._options = options
        self._where = where
        self._files = files
        self._threads = threads

    @property
    def schema(self) -> pyarrow.Schema:
        """The schema. Needs pyarrow."""
        import pyarrow

        return pyarrow.schema(self)

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
        return self._native.columns

    @property
    def files(self) -> list[str]:
        """The paths of the logs."""
        return self._native.paths

    def __arrow_c_schema__(self) -> object:
        """The schema, by the Arrow C data interface."""
        return self._native.schema_capsule()

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """A stream of the rows, by the Arrow C stream interface, always with :attr:`schema`."""
        return self._native.stream_capsule()

    def narrow(
        self, columns: Sequence[str] | None = None, where: Iterable[Condition] | Condition | None = None
    ) -> Scan:
        """The scan with only these columns, and with more conditions. It does not list the files again."""
        more = conditions(where)
        native = self._native.narrow(_names(columns), more)
        return Scan(native, self._options, self._where + more, self._files, self._threads)

    def partitions(self, target_bytes: int = 64 << 20) -> list[Partition]:
        """Parts of the scan for other processes: you can pickle each, and read it like a scan.

        A partition has files of about ``target_bytes`` bytes, where each file counts 1 MiB more than its size. Larger
        logs are split between chunks, except with ``recover``. No log is read: the sizes come from the listing.
        """
        if isinstance(target_bytes, bool) or not isinstance(target_bytes, int):
            raise TypeError(f"target_bytes must be a whole number, not {target_bytes!r}")
        if target_bytes < 1:
            raise ValueError(f"target_bytes must be at least 1, not {target_bytes}")
        native = self._native
        columns, types, fields = native.columns, native.types, native.fields
        return [
            Partition(pieces, self._options, columns, self._where, types, self._files, fields, self._threads)
            for pieces in native.partitions(min(target_bytes, 1 << 62))
        ]

    def __reduce__(self) -> NoReturn:
        raise TypeError("a scan cannot be pickled or copied: pickle its partitions instead, or use narrow()")

    def __repr__(self) -> str:
        return f"<evtx_arrow.Scan of {len(self.files)} files, {len(self.columns)} columns>"


@dataclasses.dataclass(frozen=True, repr=False, eq=False)
class Partition:
    """A part of a scan. You can pickle it, and read it like a scan in any process that reaches the files."""

    _pieces: list[Any]
    _options: dict[str, Any]
    _columns: list[str]
    _where: list[Any]
    _types: str
    _files: Any
    _fields: list[Any]
    _threads: int

    @property
    def files(self) -> list[str]:
        """The paths of its files; for an entry of an archive, the path of the archive."""
        return [piece[0] for piece in self._pieces]

    def __arrow_c_schema__(self) -> object:
        """The schema, by the Arrow C data interface."""
        return self._open().schema_capsule()

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """A stream of the rows, by the Arrow C stream interface."""
        return self._open().stream_capsule()

    def _open(self) -> _native.NativeScan:
        fields = self._fields if self._options.get("event_id") is not None else None
        return _native.open(
            [], self._pieces, self._options, self._columns, self._where, self._types, self._threads, self._files, fields
        )

    def __repr__(self) -> str:
        return f"<evtx_arrow.Partition of {len(self._pieces)} pieces>"
