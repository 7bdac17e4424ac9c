"""Windows event logs (EVTX) in DuckDB: `evtx_sql.connect()` is a connection with the extension evtx."""

from __future__ import annotations

import os
import pathlib
import re
from importlib.metadata import version as _version

import duckdb

__version__ = _version("evtx-sql")

_EXTENSIONS = pathlib.Path(__file__).parent.parent / ".duckdb_extensions"


def _numbers(version: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", version)[:3]]


def extension(version: str) -> pathlib.Path:
    """The file of the extension for a version of DuckDB, such as `2.0.0`.

    If there is none for exactly this version, it is the one for the oldest, which is on DuckDB's stable interface and so loads in every
    newer one. Raises ImportError if the version is older.
    """
    files = {path.parts[-3]: path for path in _EXTENSIONS.glob("v*/*/evtx.duckdb_extension")}
    if not files:
        raise ImportError(f"evtx-sql is not installed completely: {_EXTENSIONS} has no files")
    oldest = min(files, key=_numbers)
    if _numbers(version) < _numbers(oldest):
        raise ImportError(f"evtx-sql needs DuckDB {oldest[1:]} or newer, not {version}: pip install --upgrade duckdb duckdb-cli")
    return files.get("v" + version.removeprefix("v"), files[oldest])


def connect(
    database: str | os.PathLike[str] = ":memory:", read_only: bool = False, config: dict[str, object] | None = None
) -> duckdb.DuckDBPyConnection:
    """As `duckdb.connect`, with the extension loaded.

    The connection allows unsigned extensions, and so does every other one of this process to the same database.
    """
    file = extension(duckdb.__version__)
    connection = duckdb.connect(database, read_only, {"allow_unsigned_extensions": "true", **(config or {})})
    connection.load_extension(str(file))
    # The portable file keeps its macros out of a database on disk, in another one.
    macros = connection.execute("SELECT database_name FROM duckdb_functions() WHERE function_name = 'evtx_hex' AND database_name NOT IN ('system', current_database())")
    if found := macros.fetchone():
        connection.execute(f"SET search_path = 'main,{found[0]}'")
    return connection
