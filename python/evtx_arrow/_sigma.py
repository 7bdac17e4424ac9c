"""Sigma rules over events from anywhere."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, NoReturn

from . import _native

if TYPE_CHECKING:
    import pyarrow

Paths = str | os.PathLike[str] | Iterable[str | os.PathLike[str]]


def sigma(
    events: Any,
    rules: Paths,
    *,
    min_level: str | None = None,
    status: str | Iterable[str] | None = None,
    exclude: Paths | None = None,
    level_tuning: str | os.PathLike[str] | None = None,
    logsources: str | os.PathLike[str] | None = None,
    placeholders: Mapping[str, Any] | None = None,
    password: str | None = None,
) -> Matches:
    """The Sigma rules that events match. It loads the rules now, and reads the events when you read it.

    Args:
        events: anything with the Arrow C stream interface: a :class:`Scan`, a table or reader of pyarrow, a frame of
            polars or pandas, a relation of DuckDB. It has the columns of a scan, in their types or those of other
            libraries. ``channel`` and ``provider`` are required, other columns are fields that its events lack. Values
            that do not fit their column are NULL.
        rules: the path of a file, a glob, a folder, an archive, or a list of them.
        min_level: the lowest level of the rules.
        status: the status of the rules, or a list of them.
        exclude: the rules to leave out: an ID, the path of a text file with an ID in each line, or a list of these.
        level_tuning: the path of a text file with other levels for some rules: in each line an ID, a comma and a level.
        logsources: the path of a table of log sources of your own.
        placeholders: the values of placeholders in rules: for each name a value or a list of them.
        password: the password of encrypted archives of rules.

    Raises:
        FileNotFoundError: a path or glob of rules matches no file.
        OSError: a file of rules cannot be read.
        ValueError: a column of events that is missing, named twice or of the wrong type; an unknown value of an argument;
            or no rule could be loaded.
        TypeError: an argument of the wrong type.
    """
    values = _arguments(
        rules, min_level=min_level, status=status, exclude=exclude, level_tuning=level_tuning, logsources=logsources,
        placeholders=placeholders, password=password,
    )  # fmt: skip
    return Matches(_native.load_rules(values).matches(events, "plain"))


def _arguments(rules: Any, **others: Any) -> dict[str, Any]:
    """The arguments, as the native part takes them."""
    if rules is None:
        raise TypeError("rules cannot be None")
    values = {"rules": rules, **others}
    for name in ("rules", "exclude", "level_tuning", "logsources"):
        values[name] = _path(values.get(name))
    placeholders = values.get("placeholders")
    if isinstance(placeholders, Mapping):
        values["placeholders"] = dict(placeholders)
    return values


def _path(value: Any) -> Any:
    """Paths as texts; other values as they are."""
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, Iterable) and not isinstance(value, (str, bytes)):
        return [_path(item) for item in value]
    return value


class Matches:
    """A row for each event and each rule that it matches: first columns about the rule, then those of the event.

    Correlations come last, each with the last of its events. There is always a column ``error``: it also says why a
    correlation could not be evaluated. Each read reads the events again, if they can be.
    """

    def __init__(self, native: _native.NativeMatches) -> None:
        self._native = native

    @property
    def schema(self) -> pyarrow.Schema:
        """The schema. Needs pyarrow."""
        import pyarrow

        return pyarrow.schema(self)

    def __arrow_c_schema__(self) -> object:
        """The schema, by the Arrow C data interface."""
        return self._native.schema_capsule()

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """A stream of the rows, by the Arrow C stream interface, always with :attr:`schema`."""
        return self._native.stream_capsule()

    def __reduce__(self) -> NoReturn:
        raise TypeError("matches cannot be pickled or copied: read them into a table first")
