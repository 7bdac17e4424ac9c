"""Generated statements return the same over read_evtx as over tables made from the logs."""

import collections
import dataclasses
import pathlib
import shutil

import pytest
from conftest import EXTENSION, SAMPLES
from statement_templates import MODES, QUERIES, SHAPES, WORDS
from statements import BOTH_WRONG, FAULT, OFF, SCANS, TABLES, WRONG
from statements import Call, Comparison, Constant, Form, Statement, make_statements, partition

SEED, STATEMENTS, CALLS = 20261126, 600, 40
TYPES = """UTINYINT USMALLINT UINTEGER UBIGINT TINYINT SMALLINT INTEGER BIGINT FLOAT DOUBLE BOOLEAN VARCHAR UUID TIMESTAMP_NS BLOB
    JSON VARCHAR[] UINTEGER[]""".split()
# Features that must occur among the statements.
KINDS = ["all optimizers", "disabled optimizers"]
KINDS += [f"query: {kind}" for kind in QUERIES] + [f"run: {mode}" for mode in MODES] + [f"predicate: {shape}" for shape in SHAPES]
KINDS += [f"word: {word}" for words in WORDS.values() for word in words if "{" not in word]
KINDS += [f"{place}: {name}" for name in [*TYPES, "MAP(VARCHAR, VARCHAR)"] for place in ("type", "predicate on")]


@pytest.fixture(name="logs")
def fixture_logs(tmp_path, monkeypatch):
    """The samples under relative paths, so that statements do not depend on where the project is."""
    shutil.copytree(SAMPLES, tmp_path / "samples")
    monkeypatch.chdir(tmp_path)
    return sorted(pathlib.Path("samples").glob("*.evtx"))


def test_statements_give_the_same_over_logs_and_over_tables(logs):
    comparison, kinds, counts, differences = Comparison(EXTENSION, SEED), collections.Counter(), collections.Counter(), []
    first = partition(pathlib.Path("partitioned"), logs)
    for number, statement in enumerate(make_statements(EXTENSION, logs, SEED, STATEMENTS, CALLS, first)):
        results, difference = comparison.run(statement)
        kinds.update(statement.kinds)
        counts["rows"] += any(result.rows for result in results)
        counts["errors"] += any(result.error for result in results)
        if difference and difference.kind == FAULT:
            counts["faults"] += 1
        elif difference:
            differences.append(difference)
        if number % 10 == 0:  # Check whether the predicates make a difference.
            all_rows = dataclasses.replace(statement, predicates=["true"] * len(statement.predicates))
            counts["selective"] += comparison.forms[TABLES].run(all_rows) != results
    print(f"{STATEMENTS} statements: {len(differences)} differ, {counts['faults']} because of DuckDB bugs, {counts['errors']} fail")
    print(f"{counts['rows']} return rows; {counts['selective']} of {STATEMENTS // 10} return something else without their predicates")
    for difference in differences[:5]:
        print(comparison.shrink(difference).text(), end="\n\n")
    assert len(differences) == 0
    assert counts["rows"] > STATEMENTS * 0.6
    assert counts["errors"] < STATEMENTS * 0.02
    assert counts["faults"] < STATEMENTS * 0.005
    assert counts["selective"] > STATEMENTS // 10 * 0.6
    # Most constants occur in the data. The others are neighbours or extremes.
    assert kinds["constant: of the data"] > kinds["constant: not of the data"] > STATEMENTS
    assert not [kind for kind in KINDS if kinds[kind] == 0]


def test_a_seed_gives_the_same_statements_again(logs):
    texts = [[statement.text() for statement in make_statements(EXTENSION, logs, 7, 50, 10)] for _ in range(2)]
    assert texts[0] == texts[1]
    assert len(set(texts[0])) == 50


def statement_of(query, predicates=(), constants=(), mode="plain"):
    calls = [Call(f"read_evtx('{SAMPLES}/DC01-Security.evtx')", [], [], 55)]
    return Statement("1", mode, query, "SELECT 1", predicates, constants, calls, 4, ("top_n",), collections.Counter())


@pytest.fixture(name="comparison")
def fixture_comparison():
    """A comparison in which a table with missing records replaces read_evtx."""
    comparison = Comparison(EXTENSION)
    lacking = comparison.forms[SCANS] = Form(EXTENSION, TABLES)
    lacking.source(statement_of("").calls[0])
    lacking.connection.execute("DELETE FROM t0 WHERE event_id = 4625 AND record_id > 88240")
    return comparison


def test_a_wrong_row_is_found_and_what_does_not_matter_is_left_out(comparison):
    predicate = ("AND", ["a.level = {c0}", ("OR", ["a.event_id = {c1}", "a.event_id IS NULL"])])
    constants = [Constant("0", 0, "", 1), Constant("4625", 4625, "", 4624)]
    statement = statement_of("SELECT count(*) FROM {t0} AS a WHERE {p0}", [predicate], constants, "prepared")
    results, difference = comparison.run(statement)
    assert (difference.kind, results[1].rows) == (WRONG, ["(42,)"])
    smallest = comparison.shrink(difference).statement
    assert (smallest.mode, smallest.threads, smallest.disabled, smallest.predicates) == ("plain", 1, (), ["true"])
    assert comparison.run(dataclasses.replace(statement, predicates=["a.event_id = 4624"]))[1] is None


def test_another_order_is_found_where_there_is_one(comparison):
    comparison.forms[SCANS].connection.execute("CREATE OR REPLACE TABLE t0 AS FROM t0 ORDER BY record_id DESC")
    query = "SELECT record_id FROM {t0} WHERE event_id <> 4625"
    assert comparison.run(statement_of(query))[1] is None
    assert comparison.run(statement_of(query + " LIMIT 30"))[1].kind == WRONG


def test_a_failure_in_one_form_is_found(comparison):
    comparison.forms[SCANS].connection.execute("ALTER TABLE t0 DROP task")
    _, difference = comparison.run(statement_of("SELECT task FROM {t0}"))
    assert difference.kind == WRONG
    assert [difference.results[form][0].error for form in (TABLES, SCANS, OFF)] == ["", "BinderException", ""]
    assert "SELECT task FROM read_evtx(" in difference.text()
    comparison.forms[OFF] = comparison.forms[SCANS]
    assert comparison.run(statement_of("SELECT task FROM {t0}"))[1].kind == BOTH_WRONG
    assert comparison.run(statement_of("SELECT nothing FROM {t0}"))[1] is None
