"""Reads Windows event logs (EVTX) into Arrow.

:func:`scan` finds logs and returns a :class:`Scan`. Every library with the Arrow C stream interface can read it:
``pyarrow.table(scan)``, ``polars.DataFrame(scan)``, ``pandas.DataFrame.from_arrow(scan)``,
``duckdb.sql("FROM scan")``. :func:`scan_polars` returns a lazy frame of polars, which passes projections and predicates
on to the scan. For Spark, see ``evtx_arrow.spark``.
"""

from ._native import EvtxError
from ._polars import scan_polars
from ._scan import Partition, Scan, scan

__all__ = ["EvtxError", "Partition", "Scan", "scan", "scan_polars"]
