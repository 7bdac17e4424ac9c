"""Open pages that tests share, as opening one takes seconds."""

import os
import pathlib

import case
import pytest
from client import quoted_name
from conftest import SAMPLES, assert_same_rows, loaded


@pytest.fixture(scope="session")
def samples():
    """A page with the samples and their rules."""
    with case.shared(SAMPLES) as page:
        yield page


@pytest.fixture(scope="session")
def collections():
    """A page with the collections."""
    folder = os.environ.get("EVTX_COLLECTIONS")
    if not folder:
        pytest.skip("EVTX_COLLECTIONS names no folder")
    with case.shared(pathlib.Path(folder)) as page:
        yield page


@pytest.fixture
def con():
    """A connection with the extension loaded."""
    with loaded() as connection:
        yield connection


def text(value, type_, depth=0):
    """A value as SQL that makes the same text of it in every DuckDB, whose own texts of nested values differ."""
    item = f"x{depth}"
    match type_.id:
        case "list":
            parts = f"'[' || array_to_string(list_transform({value}, lambda {item}: {text(item, type_.children[0][1], depth + 1)}), ', ') || ']'"
        case "map":
            (_, key), (_, child) = type_.children
            entry = f"{text(item + '.key', key, depth + 1)} || '=' || {text(item + '.value', child, depth + 1)}"
            parts = f"'{{' || array_to_string(list_transform(map_entries({value}), lambda {item}: {entry}), ', ') || '}}'"
        case "struct":
            fields = [text(f"{value}.{quoted_name(name)}", child, depth) for name, child in type_.children]
            parts = " || ', ' || ".join(fields)
        case "interval":
            # The difference of two times in nanoseconds is rounded before or after the subtraction.
            parts = f"round(epoch({value}), 3)::VARCHAR"
        case _:
            parts = f"{value}::VARCHAR"
    return f"CASE WHEN {value} IS NULL THEN '∅' ELSE {parts} END"


@pytest.fixture
def same(con, monkeypatch, tmp_path):
    """
    What asserts that a query of a page has the rows of one of the extension, which it runs in a folder: the one with what was dropped,
    so that both name files alike. Returns the number of rows.
    """

    def compare(page, query, folder, expected):
        monkeypatch.chdir(folder)
        rows = con.sql(expected)
        texts = ", ".join(f"{text(quoted_name(name), type_)} AS {quoted_name(name)}" for name, type_ in zip(rows.columns, rows.types))
        assert page(lambda case: case.ask(f"SELECT count(*) FROM (DESCRIBE {query})")) == [[str(len(rows.columns))]]
        path = page(lambda case: case.table(f"SELECT {texts} FROM ({query})", tmp_path / "rows.parquet"))
        con.execute(f"CREATE OR REPLACE TEMP TABLE expected AS SELECT {texts} FROM ({expected})")
        assert_same_rows(con, f"FROM '{path}'", "FROM expected")
        return con.execute("SELECT count(*) FROM expected").fetchone()[0]

    return compare
