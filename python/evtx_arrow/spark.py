"""Reads Windows event logs in Spark, in two ways.

For Spark 4, a data source::

    from evtx_arrow.spark import register
    register(spark)
    events = spark.read.format("evtx").option("event_id", "4624,4625").load("logs")

For Spark 3.5 and later, for streams, and for catalogs that hold the credentials, Spark's own ``binaryFile``::

    from evtx_arrow.spark import decode
    events = decode(spark.read.format("binaryFile").load("logs"))

Neither takes filters from Spark: PySpark 4.3 reuses a reader with its filters for other scans of the same frame, which
then return wrong rows. Use ``columns``, ``where`` and ``event_id`` to decode less.
"""

from __future__ import annotations

import functools
import gc
import itertools
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from . import _native
from ._conditions import Condition, conditions
from ._files import resolve
from ._scan import ARGUMENTS, Scan, _names, scan
from ._sigma import Matches, _arguments

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

try:
    from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
except ImportError:  # Spark 3.5 has no data sources in Python. decode() works without.
    DataSource = DataSourceReader = InputPartition = object  # type: ignore[assignment,misc]

_TARGET = 64 << 20
# Options that are not arguments of a scan.
_OF_SPARK = ("path", "paths", "target_bytes")


def register(spark: SparkSession) -> None:
    """Registers the data source ``evtx`` for a session of Spark 4."""
    if DataSource is object:
        raise ImportError("data sources in Python need Spark 4: upgrade, or use evtx_arrow.spark.decode")
    spark.dataSource.register(EvtxDataSource)


@functools.cache
def _freeze() -> None:
    """Excludes the modules of a worker from the garbage collection after every task, which otherwise takes 40 ms. Does
    nothing outside of workers."""
    from pyspark import TaskContext

    if TaskContext.get() is not None:
        gc.collect()
        gc.freeze()


def _options(options: dict[str, str]) -> dict[str, Any]:
    """Turns the options of a reader, whose values are texts, into arguments of ``scan``."""
    known: dict[str, Any] = {}
    for name, text in options.items():
        name = name.lower()
        kind = "list" if name == "columns" else ARGUMENTS.get(name, ("",))[0]
        if kind == "flag":
            if text.lower() not in ("true", "false"):
                raise ValueError(f"the option {name} must be true or false, not {text!r}")
            known[name] = text.lower() == "true"
        elif kind == "text":
            known[name] = text
        elif kind == "list":
            known[name] = _list(name, text)
        elif kind == "integer":
            known[name] = _int(name, text)
        elif name == "where":
            try:
                stated = json.loads(text)
            except ValueError as error:
                raise ValueError(f"the option where must be a list of [column, operator, value]: {error}") from None
            if not isinstance(stated, list):
                raise ValueError(f"the option where must be a list of [column, operator, value], not {text}")
            known[name] = [_stated(condition) for condition in stated]
        elif name not in _OF_SPARK:
            raise ValueError(f"unknown option {name}: options are the arguments of evtx_arrow.scan, and target_bytes")
    return known


def _int(name: str, text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise ValueError(f"the option {name} must be a whole number, not {text!r}") from None


def _stated(condition: Any) -> Any:
    """A condition from JSON as a tuple, and a column with a key as a pair."""
    if not isinstance(condition, list) or not condition:
        return condition
    column, *others = condition
    return (tuple(column) if isinstance(column, list) else column, *others)


def _list(name: str, text: str) -> list[str]:
    """A list of values: a single one, several with commas between them, or a JSON list."""
    if text.lstrip().startswith("["):
        return [str(value) for value in json.loads(text)]
    return [part.strip() for part in text.split(",") if part.strip()]


class EvtxDataSource(DataSource):
    """The data source ``evtx``. Its options are the arguments of :func:`evtx_arrow.scan` as texts, with commas between
    the values of a list, and ``where`` as JSON. There is also ``target_bytes``."""

    _known: tuple[list[Any], list[str]] | None = None

    @classmethod
    def name(cls) -> str:
        return "evtx"

    def _paths(self) -> list[str]:
        paths = self.options.get("paths")
        if paths is not None:
            return json.loads(paths)
        path = self.options.get("path")
        if path is None:
            raise ValueError("no path: pass the path of the logs to load()")
        return [path]

    def _scan(self, columns: Sequence[str] | None, fields: list[Any] | None, threads: int | None = 1) -> Scan:
        options = _options(dict(self.options))
        if columns is not None:
            options["columns"] = columns
        options["types"] = "spark"
        # Java writes file:/path.
        paths = [re.sub("^file:/(?!/)", "file:///", path) for path in self._paths()]
        return scan(paths, threads=threads, _fields=fields, **options)

    def schema(self) -> StructType:
        # The driver does nothing else while the columns are found.
        rows = self._scan(None, None, threads=None)
        # Spark makes the reader in another process, which must have the same fields.
        self._known = rows._native.fields, rows.columns
        return _struct(rows)

    def reader(self, schema: StructType) -> EvtxReader:
        fields, columns = self._known or (None, schema.fieldNames())
        rows = self._scan(columns, fields)
        if schema.fieldNames() != columns:
            rows = rows.narrow(schema.fieldNames())
        _check(schema, _struct(rows))
        target = _int("target_bytes", self.options.get("target_bytes", str(_TARGET)))
        return EvtxReader(rows.partitions(target), schema.fieldNames())


def _struct(rows: Any) -> StructType:
    """Spark's schema of a scan."""
    import pyarrow
    from pyspark.sql.pandas.types import from_arrow_schema

    schema = pyarrow.schema(rows)
    for name in schema.names:
        if len(schema.get_all_field_indices(name)) > 1:
            raise ValueError(f"the column {name} is named twice: name it once")
    return from_arrow_schema(schema)


def _check(asked: StructType, given: StructType) -> None:
    """Fails if a schema of the user has other types than the columns."""
    for one, other in zip(asked, given):
        if one.dataType.simpleString() != other.dataType.simpleString():
            names = one.name, one.dataType.simpleString(), other.dataType.simpleString()
            raise TypeError("the column {} has the type {} in the schema, but is {}".format(*names))
        if not one.nullable:
            raise TypeError(f"the column {one.name} is not null in the schema, but can be NULL")


class _Part(InputPartition):
    def __init__(self, part: Any) -> None:
        self.part = part


class EvtxReader(DataSourceReader):
    """Reads the partitions that the driver has planned."""

    def __init__(self, parts: list[Any], names: list[str]) -> None:
        self._parts = parts
        # The schema of a user can spell names in another case.
        self._names = names

    def partitions(self) -> Sequence[InputPartition]:
        return [_Part(part) for part in self._parts]

    def __getstate__(self) -> dict[str, Any]:
        # Spark sends the reader to each task, together with the one partition that the task reads.
        return {**self.__dict__, "_parts": []}

    def read(self, partition: InputPartition) -> Iterator[Any]:
        import pyarrow

        _freeze()
        # Spark reads a partition even if there is none.
        if partition is not None:
            for batch in pyarrow.RecordBatchReader.from_stream(partition.part):
                yield batch.rename_columns(self._names)


class _Contents:
    """The files in rows of ``binaryFile``, by path."""

    def __init__(self, contents: dict[str, bytes]) -> None:
        self._contents = contents

    def list(self, folder: str, is_deep: bool) -> list[tuple[str, int]]:
        return []

    def size(self, path: str) -> int | None:
        content = self._contents.get(path)
        return None if content is None else len(content)

    def open(self, path: str, size: int | None) -> tuple[Any, int]:
        return _Content(self._contents[path]), len(self._contents[path])


class _Content:
    def __init__(self, content: bytes) -> None:
        self._content = content

    def read(self, offset: int, length: int) -> bytes:
        return self._content[offset:offset + length]


def decode(
    df: DataFrame,
    *,
    columns: Sequence[str] | None = None,
    where: Iterable[Condition] | Condition | None = None,
    event_id: int | Sequence[int] | None = None,
    sample: Any = None,
    **options: Any,
) -> DataFrame:
    """The events of logs in a frame with the columns ``path`` and ``content``, as from ``binaryFile``.

    The frame can also be a stream. With ``event_id``, there is a column for each field that Windows' providers declare
    for the events, and for each that the logs in ``sample`` have: paths as for :func:`evtx_arrow.scan`. Other fields
    stay in ``event_data``. A file that is not an EVTX log is a row with ``error`` set. ``options`` are those of
    :func:`evtx_arrow.scan`.

    Spark holds each file in memory as a whole. Use the data source for files of more than 2 GiB.
    """
    paths, files = ([], None) if sample is None else resolve(sample, options.pop("filesystem", None))
    unknown = set(options) - set(ARGUMENTS)
    if unknown:
        raise TypeError(f"decode() has no argument {sorted(unknown)[0]}")
    known = {"event_id": event_id, **options}
    stated = conditions(where)
    native = _native.open(paths, [], known, _names(columns), stated, "spark", 1, files, None)
    fields = native.fields if event_id is not None else None
    wanted = native.columns

    def read(batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow

        _freeze()
        for batch in batches:
            for path, content in zip(batch.column("path").to_pylist(), batch.column("content")):
                data = content.as_py()
                if data is None:
                    raise ValueError(f"the content of {path} is NULL: load it with binaryFile")
                pieces = [(path, False, len(data), None)]
                part = _native.open([], pieces, known, wanted, stated, "spark", 1, _Contents({path: data}), fields)
                reader = pyarrow.RecordBatchReader._import_from_c_capsule(part.stream_capsule())
                yield from reader

    return df.select("path", "content").mapInArrow(read, _struct(_Schema(native)))


class _Schema:
    def __init__(self, native: _native.NativeScan) -> None:
        self._native = native

    def __arrow_c_schema__(self) -> object:
        return self._native.schema_capsule()


def sigma(events: DataFrame, rules: Any, **arguments: Any) -> DataFrame:
    """The Sigma rules that the events of a frame match. The arguments are those of :func:`evtx_arrow.sigma`.

    The frame has the columns that the reader gives. Each task loads the rules, so every worker needs their files.
    Correlations see the events of one partition, so rules with correlations need a frame of one partition: call
    ``coalesce(1)``. Without it, a second partition with events fails the query.
    """
    import pyarrow
    from pyspark.sql.types import StructField, StructType

    values = _arguments(rules, **arguments)
    # The driver finds wrong arguments and the columns.
    none = pyarrow.Table.from_arrays([pyarrow.nulls(0) for _ in events.columns], names=events.columns)
    known = _struct(Matches(_native.load_rules(values).matches(none, "spark")))
    types = {field.name: field.dataType for field in events.schema if field.name.lower() != "error"}
    columns = StructType([StructField(field.name, types.get(field.name, field.dataType)) for field in known])

    def match(batches: Iterator[Any]) -> Iterator[Any]:
        from pyspark import TaskContext

        _freeze()
        first = next(batches, None)
        if first is None:
            return
        known = _native.load_rules(values)
        if known.correlates and TaskContext.get().partitionId() > 0:
            raise ValueError("rules with correlations need all events in one partition: call events.coalesce(1)")
        reader = pyarrow.RecordBatchReader.from_batches(first.schema, itertools.chain([first], batches))
        yield from pyarrow.RecordBatchReader.from_stream(Matches(known.matches(reader, "spark")))

    return events.mapInArrow(match, columns)
