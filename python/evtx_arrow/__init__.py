"""Reads Windows event logs (EVTX) into Arrow.

:func:`scan` finds logs and gives a :class:`Scan`, which every library reads that knows the Arrow C stream interface:
``pyarrow.table(scan)``, ``polars.DataFrame(scan)``, ``pandas.DataFrame.from_arrow(scan)``,
``duckdb.sql("FROM scan")``. :func:`scan_polars` gives a lazy frame of polars, whose projections and predicates reach
the logs. ``evtx_arrow.spark`` has the doors to Spark.
"""

from ._native import EvtxError
from ._polars import scan_polars
from ._scan import Partition, Scan, scan

__all__ = ["EvtxError", "Partition", "Scan", "scan", "scan_polars"]
