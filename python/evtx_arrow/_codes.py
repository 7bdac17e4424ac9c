"""What the codes in events mean."""

from __future__ import annotations

import numbers
from typing import Any

from ._native import look_up


def code_name(table: str, code: Any) -> str | None:
    """The name of a code in a table of codes, such as ``code_name("logon_type", "3")``; ``None`` if it is unknown.

    The tables are those of ``evtx_codes()`` in SQL. A code is text or a whole number of any type: pandas makes floats of
    a column of whole numbers with NULLs. All four functions return ``None`` for ``None``, NaN and the missing values of
    pandas. An unknown table is a ``ValueError`` that lists them.
    """
    return _one("name", table, code)


def code_names(table: str, code: Any) -> list[str] | None:
    """The names of the bits of a number, or of the codes in a list. Bits without a name come last, as one number."""
    return _all("names", table, code)


def code_meaning(table: str, code: Any) -> str | None:
    """What a code means, as a sentence; ``None`` if the table has none."""
    return _one("meaning", table, code)


def code_text(table: str, text: Any) -> str | None:
    """The text with each ``%%nnnn`` replaced by its name; unknown codes stay."""
    return _one("text", table, text)


def _one(lookup: str, table: str, code: Any) -> str | None:
    texts = _all(lookup, table, code)
    return texts[0] if texts else None


def _all(lookup: str, table: str, code: Any) -> list[str] | None:
    if code is None or not isinstance(code, str) and str(code) in ("nan", "<NA>", "NaT"):
        return None
    if isinstance(code, numbers.Real) and not isinstance(code, bool) and code == code // 1:
        code = str(int(code))
    if not isinstance(code, str):
        raise TypeError(f"a code is text or a whole number, not {code!r} ({type(code).__name__})")
    return look_up(lookup, table, code)
