"""A lazy frame of polars, which passes projections and predicates on to the scan."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ._scan import Scan, scan

if TYPE_CHECKING:
    import polars

_COMPARISONS = {
    "Eq": "=", "NotEq": "!=", "Lt": "<", "LtEq": "<=", "Gt": ">", "GtEq": ">=",
}
_NUMBERS = {"Int8", "Int16", "Int32", "Int64", "UInt8", "UInt16", "UInt32", "UInt64"}
_UNITS = {"Nanoseconds": 1, "Microseconds": 1000, "Milliseconds": 1_000_000}
_EXCHANGED = {"=": "=", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


def scan_polars(files: Any, **options: Any) -> polars.LazyFrame:
    """A lazy frame of the rows of a scan. Takes a :class:`Scan`, or the arguments of :func:`scan`.

    A query decodes only the columns that it needs, and skips records for which a comparison with a constant is not true.
    """
    import polars
    from polars.io.plugins import register_io_source

    rows = files if isinstance(files, Scan) else scan(files, **options)
    if rows is files and options:
        raise TypeError("a Scan already has its options: pass them to scan()")
    schema = polars.DataFrame(rows.schema.empty_table()).schema

    def source(
        with_columns: list[str] | None, predicate: polars.Expr | None, n_rows: int | None, batch_size: int | None
    ) -> Iterator[polars.DataFrame]:
        import pyarrow

        part = rows
        if predicate is not None:
            # Polars filters the rows below again, so conditions that the scan does not know can be left out.
            for condition in _conditions(predicate):
                try:
                    part = part.narrow(part.columns, [condition])
                except (TypeError, ValueError):
                    continue
        if with_columns is not None:
            needed = set(with_columns)
            if predicate is not None:
                needed |= set(predicate.meta.root_names())
            part = part.narrow([name for name in rows.columns if name in needed])
        with pyarrow.RecordBatchReader.from_stream(part) as reader:
            for batch in reader:
                frame = polars.from_arrow(pyarrow.Table.from_batches([batch]))
                if predicate is not None:
                    frame = frame.filter(predicate)
                if with_columns is not None:
                    frame = frame.select(with_columns)
                if n_rows is not None:
                    frame = frame.head(n_rows)
                    n_rows -= frame.height
                yield frame
                if n_rows == 0:
                    return

    return register_io_source(source, schema=schema, is_pure=True)


def _conditions(predicate: polars.Expr) -> list[tuple[Any, ...]]:
    """The comparisons of columns with constants that a predicate implies."""
    try:
        tree = json.loads(predicate.meta.serialize(format="json"))
    except Exception:  # Predicates without JSON are left to polars.
        return []
    return list(_of(tree))


def _of(tree: Any) -> Iterator[tuple[Any, ...]]:
    match tree:
        case {"BinaryExpr": {"left": left, "op": "And" | "LogicalAnd", "right": right}}:
            yield from _of(left)
            yield from _of(right)
        case {"BinaryExpr": {"left": left, "op": op, "right": right}} if op in _COMPARISONS:
            operator = _COMPARISONS[op]
            for column, constant, stated in ((left, right, operator), (right, left, _EXCHANGED[operator])):
                match column, _literal(constant):
                    case {"Column": str(name)}, (value,):
                        yield name, stated, value
        case {"Function": {"input": [{"Column": str(name)}], "function": {"Boolean": "IsNull"}}}:
            yield name, "is null"
        case {"Function": {"input": [{"Column": str(name)}], "function": {"Boolean": "IsNotNull"}}}:
            yield name, "is not null"


def _literal(tree: Any) -> tuple[Any] | None:
    """The constant that an expression is, in a tuple; None if a scan cannot compare it."""
    match tree:
        case {"Literal": {"Dyn": {"Int": int(value)}}}:
            return (value,)
        case {"Literal": {"Dyn": {"Str": str(value)}}}:
            return (value,)
        case {"Literal": {"Scalar": scalar}}:
            return _scalar(scalar)
    return None


def _scalar(tree: Any) -> tuple[Any] | None:
    if isinstance(tree, dict) and "value" in tree:
        tree = tree["value"]
    if not isinstance(tree, dict) or len(tree) != 1:
        return None
    [(kind, value)] = tree.items()
    if kind in _NUMBERS and isinstance(value, int):
        return (value,)
    if kind in ("String", "StringOwned") and isinstance(value, str):
        return (value,)
    if kind == "Boolean" and isinstance(value, bool):
        return (value,)
    if kind in ("Datetime", "DatetimeOwned") and isinstance(value, list) and value[1] in _UNITS:
        return (("instant", value[0] * _UNITS[value[1]]),)
    return None
