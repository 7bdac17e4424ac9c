"""Turns the conditions of a scan into those of the native part."""

from __future__ import annotations

import datetime
import uuid
from collections.abc import Iterable, Sequence
from typing import Any

_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_UNARY = {"is null", "is not null"}
_LISTS = {"in", "not in", "between"}

Condition = tuple[Any, ...]


def conditions(where: Iterable[Condition] | Condition | None) -> list[tuple[str, str | None, str, list[Any]]]:
    """The conditions of ``where``, each a column, a key in it or None, an operator and its values."""
    if where is None:
        return []
    if isinstance(where, tuple) and len(where) in (2, 3) and isinstance(where[1], str):
        where = [where]
    if isinstance(where, str) or not isinstance(where, Iterable):
        raise TypeError(f"where must be a list of conditions, each a tuple (column, operator, value), not {where!r}")
    return [_condition(condition) for condition in where]


def _condition(condition: Condition) -> tuple[str, str | None, str, list[Any]]:
    if not isinstance(condition, Sequence) or isinstance(condition, str) or len(condition) not in (2, 3):
        raise TypeError(f"a condition must be a tuple (column, operator, value), not {condition!r}")
    column, operator, *values = condition
    key = None
    if isinstance(column, tuple) and len(column) == 2:
        column, key = column
    if not isinstance(column, str) or not (key is None or isinstance(key, str)):
        raise TypeError(f"the column of a condition must be a name or a pair of a name and a key, not {condition[0]!r}")
    if not isinstance(operator, str):
        raise TypeError(f"the operator of a condition on {column} must be text, not {operator!r}")
    operator = " ".join(operator.lower().split())
    if operator in _LISTS and values:
        if isinstance(values[0], (str, bytes)) or not isinstance(values[0], Iterable):
            raise TypeError(f"the condition {operator} on {column} takes a list of values, not {values[0]!r}")
        values = list(values[0])
    elif operator in _UNARY and values == [None]:
        values = []
    return column, key, operator, [_value(value) for value in values]


def _value(value: Any) -> Any:
    """A value for the native part. Times without a zone are UTC."""
    if type(value).__module__ == "numpy":
        # numpy.datetime64.item() would lose nanoseconds.
        if type(value).__name__ == "datetime64":
            nanoseconds = value.astype("datetime64[ns]")
            if nanoseconds.astype(value.dtype) != value:
                raise ValueError(f"no time that fits into 64 bits of nanoseconds: {value}")
            return ("instant", int(nanoseconds.astype("int64")))
        value = value.item()
    if isinstance(value, datetime.datetime):
        if value != value:
            raise ValueError(f"no time: {value}")
        if value.tzinfo is None:
            value = value.replace(tzinfo=datetime.UTC)
        # pandas.Timestamp also has nanoseconds.
        nanoseconds = getattr(value, "nanosecond", 0)
        whole = datetime.datetime(
            value.year, value.month, value.day, value.hour, value.minute, value.second, value.microsecond,
            tzinfo=value.tzinfo, fold=value.fold,
        )
        return ("instant", (whole - _EPOCH) // datetime.timedelta(microseconds=1) * 1000 + nanoseconds)
    if isinstance(value, datetime.date):
        midnight = datetime.datetime(value.year, value.month, value.day, tzinfo=datetime.UTC)
        return ("instant", (midnight - _EPOCH) // datetime.timedelta(microseconds=1) * 1000)
    if isinstance(value, uuid.UUID):
        return ("uuid", value.bytes)
    return value
