"""The macros tell what happened: random stories, whose events and whose right answers are derived independently."""

import collections
import json
import os

import pyarrow
import stories
from conftest import SAMPLES

SEED, COUNT, BATCH = int(os.environ.get("EVTX_STORIES_SEED", 20261126)), int(os.environ.get("EVTX_STORIES", 200)), 200
COLUMNS = ["record_id", "event_record_id", "time_created", "event_id", "level", "version", "provider", "channel", "computer", "user_sid", "filename"]


def tell(con, told):
    """Fills the table of events with stories. Returns what they tell, with their rows."""
    tellings = [(telling := stories.Telling(story), telling.rows()) for story in told]
    rows = [row for _, rows in tellings for row in rows]
    columns = {name: [row[name] for row in rows] for name in COLUMNS}
    columns["time_created"] = pyarrow.array(columns["time_created"], pyarrow.timestamp("us"))
    columns["data"] = pyarrow.array([row["event_data"] and list(row["event_data"].items()) for row in rows], pyarrow.map_(pyarrow.string(), pyarrow.string()))
    columns["user_data"] = [row["user_data"] and json.dumps(row["user_data"]) for row in rows]
    con.register("told", pyarrow.table(columns))
    con.execute(f"CREATE OR REPLACE TABLE events AS FROM read_evtx('{SAMPLES / 'DC01-Security.evtx'}') LIMIT 0")
    con.execute("INSERT INTO events BY NAME SELECT * RENAME (data AS event_data) FROM told")
    con.unregister("told")
    return tellings


def rows_of(con, sql):
    relation = con.sql(sql)
    return [dict(zip(relation.columns, row)) for row in relation.fetchall()]


def differences(con, told):
    """Runs each macro once over some stories. Returns (story, text) for each answer that is not that of its story."""
    found = []
    tellings = tell(con, told)
    summaries = {row["computer"]: row for row in rows_of(con, "FROM evtx_case_summary_of('events')")}
    for telling, rows in tellings:
        for machine in telling.story.machines:
            expected = stories.summary(telling, rows, machine)
            row = expected and summaries.get(expected["computer"])
            for column, value in (expected or {}).items():
                if not row or not value == row.get(column):
                    found.append((telling.story, f"{expected['computer']}.{column}", value, row and row.get(column)))
    return found


def shrunk(con, story, label):
    """The story with only the facts that an answer needs to be wrong."""
    for fact in list(story.facts):
        smaller = story.without(fact)
        if any(other == label for _, other, *_ in differences(con, [smaller])):
            story = smaller
    return story


def test_stories(con):
    for first in range(0, COUNT, BATCH):
        found = differences(con, [stories.draw(SEED, number) for number in range(first, min(first + BATCH, COUNT))])
        if found:
            story, label, *_ = found[0]
            story = shrunk(con, story, label)
            expected, value = next(values for _, other, *values in differences(con, [story]) if other == label)
            counts = collections.Counter(label.split(".")[-1] for _, label, *_ in found)
            raise AssertionError(f"{dict(counts)}\n{story}\n{label}\nexpected: {expected}\nfound:    {value}")
