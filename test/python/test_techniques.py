"""Public logs whose names say what they show: which of these claims evtx_facts and Sigma rules find."""

import os
import pathlib

import pytest
from conftest import ROOT

CLAIMS = ROOT / "test/data/techniques.tsv"
LOGS = os.environ.get("EVTX_TECHNIQUES")
SIGMA = os.environ.get("EVTX_SIGMA")


@pytest.fixture
def claims(con):
    con.execute("""CREATE TABLE claims AS
        SELECT file, string_split(events, ',')::UINTEGER[] AS events, string_split(topic, '|') AS topics
        FROM read_csv($1, delim = '\t', quote = '', comment = '#', header = true, all_varchar = true)""", [str(CLAIMS)])
    return con


def test_each_claim_names_its_events(claims):
    assert claims.execute("SELECT count(*), count(events), count(DISTINCT file) FROM claims").fetchone() == (140, 140, 140)


@pytest.mark.slow
@pytest.mark.folders
@pytest.mark.skipif(not LOGS, reason="EVTX_TECHNIQUES is not set")
def test_facts_and_rules_find_the_claims(claims):
    """A claim is visible if the log has one of its events. A fact or a match finds it if it cites one of them."""
    claims.execute("""CREATE TABLE visible AS
        SELECT DISTINCT file, filename, events, topics
        FROM claims JOIN (SELECT DISTINCT filename, event_id FROM read_evtx($1) WHERE error IS NULL) AS logs
          ON ends_with(replace(filename, '\\', '/'), '/' || file) AND list_contains(events, event_id)""", [LOGS])
    # One log at a time: of many equal events, a fact cites the first.
    claims.execute("CREATE TABLE cited (filename VARCHAR, topic VARCHAR, event_id UINTEGER)")
    for (log,) in claims.execute("SELECT filename FROM visible").fetchall():
        claims.execute("INSERT INTO cited SELECT $1, topic, unnest([record.event_id FOR record IN evidence]) FROM evtx_facts($1)", [log])
    claims.execute("CREATE TABLE matches (filename VARCHAR, event_id UINTEGER)")
    if SIGMA:
        rules = [str(folder) for folder in sorted(pathlib.Path(SIGMA).glob("rules*"))]
        claims.execute("INSERT INTO matches SELECT DISTINCT filename, event_id FROM evtx_sigma($1, rules := $2)", [LOGS, rules])
    rows = claims.execute("""
        SELECT *, coalesce(list_has_any(topics, found), false) AS fits
        FROM (SELECT file, topics, (SELECT list(DISTINCT topic ORDER BY topic) FROM cited
                                    WHERE cited.filename = visible.filename AND list_contains(events, event_id)) AS found,
                     EXISTS (FROM matches WHERE matches.filename = visible.filename AND list_contains(events, event_id)) AS matches
              FROM visible)
        ORDER BY file""").fetchall()
    fitting, found = sum(fits for *_, fits in rows), sum(bool(topics) or matches for _, _, topics, matches, _ in rows)
    print(f"{len(rows)} claims are visible. {fitting} are facts of a topic that fits, {found} are facts or match rules.")
    for file, topics, others, matches, fits in rows:
        if not fits:
            print(file, f"expected: {topics}, found: {others}, rules match: {matches}", sep="\n    ")
    assert len(rows) == 139 and fitting >= 0.75 * len(rows)
    assert not SIGMA or found >= 0.95 * len(rows)
