"""What the codes in events mean."""

from __future__ import annotations

from ._native import look_up


def code_name(table: str, code: int | str | None) -> str | None:
    """The name of a code in a table of codes, such as ``code_name("logon_type", "3")``; ``None`` if it is unknown.

    The tables are those of ``evtx_codes()`` in SQL. An unknown table is a ``ValueError`` that lists them. All four
    functions return ``None`` for ``None``.
    """
    return _text("name", table, code)


def code_names(table: str, code: int | str | None) -> list[str] | None:
    """The names of the bits of a number, or of the codes in a list. Bits without a name come last, as one number."""
    return None if code is None else look_up("names", table, str(code))


def code_meaning(table: str, code: int | str | None) -> str | None:
    """What a code means, as a sentence; ``None`` if the table has none."""
    return _text("meaning", table, code)


def code_text(table: str, text: int | str | None) -> str | None:
    """The text with each ``%%nnnn`` replaced by its name; unknown codes stay."""
    return _text("text", table, text)


def _text(lookup: str, table: str, code: int | str | None) -> str | None:
    texts = None if code is None else look_up(lookup, table, str(code))
    return texts[0] if texts else None
