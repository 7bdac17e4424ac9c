"""Reads Windows event logs (EVTX) into Arrow.

:func:`scan` finds logs and returns a :class:`Scan`. Every library with the Arrow C stream interface can read it:
``pyarrow.table(scan)``, ``polars.DataFrame(scan)``, ``pandas.DataFrame.from_arrow(scan)``,
``duckdb.sql("FROM scan")``. :func:`scan_polars` returns a lazy frame of polars, which passes projections and predicates
on to the scan. :func:`sigma` matches events from anywhere against Sigma rules. For Spark, see ``evtx_arrow.spark``.
``code_name`` and its relatives say what the codes in events mean.
"""

from ._codes import code_meaning, code_name, code_names, code_text
from ._native import EvtxError, __version__
from ._polars import scan_polars
from ._scan import Partition, Scan, scan
from ._sigma import Matches, sigma

__all__ = [
    "EvtxError",
    "Matches",
    "Partition",
    "Scan",
    "__version__",
    "code_meaning",
    "code_name",
    "code_names",
    "code_text",
    "scan",
    "scan_polars",
    "sigma",
]
