"""Every record that a fact cites exists, and one of them says what the fact says: its account, source and target."""

import os

import pytest
from conftest import SAMPLES

NAMES = ("EVTX_CORPUS", "EVTX_VARIED", "EVTX_COLLECTIONS", "EVTX_TECHNIQUES")
FOLDERS = [str(SAMPLES), *(os.environ[name] for name in NAMES if os.environ.get(name))]

# Neither letter case, nor escapes in JSON, nor how IPv6 writes an address of IPv4 matters.
FOLDED = r"""lower(replace(replace(replace({}, '\"', '"'), '\\', '\'), '::ffff:', ''))"""
TEXT = FOLDED.format("concat_ws(' ', computer, channel, user_sid, array_to_string(map_values(event_data), ' '), user_data)")


@pytest.mark.slow
@pytest.mark.folders
@pytest.mark.parametrize("folder", FOLDERS)
def test_cited_records_say_what_the_fact_says(con, folder):
    con.execute("CREATE TABLE facts AS SELECT row_number() OVER () AS id, * FROM evtx_facts($1)", [folder])
    assert con.execute("FROM facts WHERE coalesce(len(evidence), 0) NOT BETWEEN 1 AND 10 OR len(list_distinct(evidence)) < len(evidence)").fetchall() == []
    con.execute("CREATE TABLE cited AS SELECT id, unnest(evidence) AS record FROM facts")
    # Damaged records have no event ID, which a struct compares as equal.
    con.execute(f"""CREATE TABLE texts AS
        SELECT DISTINCT {{filename: filename, record_id: record_id, event_id: event_id, time: time_created}} AS record, {TEXT} AS text
        FROM read_evtx($1) SEMI JOIN (SELECT record.filename, record.record_id FROM cited) USING (filename, record_id)""", [folder])
    assert con.execute("FROM cited ANTI JOIN texts USING (record)").fetchall() == []
    # An account without its domain, or by its SID, which another record names.
    missing = con.execute(rf"""
        SELECT topic, fact, what, expected, any_value(account_sid), any_value(evidence), count(*)
        FROM (SELECT facts.*, unnest([{{what: 'account', expected: regexp_extract(account, '([^\\@]*)(@[^\\]*)?$', 1), sid: account_sid}},
                                      {{what: 'source', expected: source, sid: NULL}}, {{what: 'target', expected: target, sid: NULL}}], recursive := true)
              FROM facts) AS told
        WHERE expected IS NOT NULL
          AND NOT EXISTS (FROM cited JOIN texts USING (record)
                          WHERE cited.id = told.id AND (contains(text, {FOLDED.format("expected")}) OR contains(text, lower(sid))))
        GROUP BY topic, fact, what, expected ORDER BY ALL""").fetchall()
    print(folder, *missing, sep="\n")
    assert missing == []
