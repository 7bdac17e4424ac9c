"""The macros tell what happened: random stories, whose events and whose right answers are derived independently."""

import collections
import json
import os
import re

import pyarrow
import stories
from conftest import SAMPLES
from test_cookbook import COOKBOOK, RECIPE

SEED, COUNT, BATCH = int(os.environ.get("EVTX_STORIES_SEED", 20261126)), int(os.environ.get("EVTX_STORIES", 200)), 200
MACROS = ["evtx_case_summary", "evtx_logons", "evtx_process_tree", "evtx_accounts", "evtx_timeline"]
COLUMNS = ["record_id", "event_record_id", "time_created", "event_id", "level", "version", "provider", "channel", "computer", "user_sid", "filename"]


def counted(entries, *names):
    return collections.Counter((computer, *(entry[name] for name in names)) for computer, entry in entries)


def computers(rows):
    return ((row["computer"], row) for row in rows)


# Recipes of the cookbook: what of their rows a story says, and the answer.
RECIPES = {
    "Who guessed passwords, or tried one on many accounts?": (
        lambda rows: counted(computers(rows), "source", "most_in_a_minute", "failures", "accounts"),
        lambda told: counted(((computer, entry) for computer, entry in stories.of_summaries(told, "failed_logons") if entry["most_in_a_minute"] >= 5 or entry["accounts"] >= 5), "source", "most_in_a_minute", "failures", "accounts")),
    "Did it work?": (
        lambda rows: collections.Counter((row["computer"], row["source"], row["failures"], row["logon_time"]) for row in rows),
        lambda told: collections.Counter((computer, entry["source"], entry["failures"], (entry["success"] or {}).get("time")) for computer, entry in stories.of_summaries(told, "failed_logons"))),
    "Which services were installed?": (
        lambda rows: counted(computers(rows), "time", "service", "path", "user_name"), lambda told: counted(stories.of_summaries(told, "new_services"), "time", "service", "path", "user_name")),
    "Which account moves from machine to machine?": (lambda rows: collections.Counter(len(row["machines"]) for row in rows), lambda told: collections.Counter(stories.moves(told).values())),
    "Who came in by Remote Desktop?": (
        lambda rows: collections.Counter((row["computer"], row["user_name"].split("\\")[-1].lower(), row["remote_host"]) for row in rows), stories.remote_desktop),
}


def recipe(question):
    """The query of the cookbook, over the table."""
    sql = next(found["sql"] for found in RECIPE.finditer(COOKBOOK.read_text(encoding="utf-8")) if found["question"] == question)
    return re.sub(r"read_evtx\('samples[^()]*\)", "events", re.sub(r"(evtx_\w+)\('samples[^()]*\)", r"\1_of('events')", sql)).strip().rstrip(";")


def tell(con, told):
    """Fills the table of events with stories. Returns what they tell, with their rows."""
    tellings = [(telling := stories.Telling(story), telling.rows()) for story in told]
    rows = [row for _, rows in tellings for row in rows]
    columns = {name: [row[name] for row in rows] for name in COLUMNS}
    times = pyarrow.array(columns["time_created"], pyarrow.timestamp("us")).cast(pyarrow.int64()).to_pylist()
    # Windows counts tenths of microseconds. Python cuts them off, but before 1970, it would round up.
    columns["time_created"] = pyarrow.array([time * 1000 + 700 * (time > 0) for time in times], pyarrow.timestamp("ns"))
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


def differences(con, told, _=None):
    """Runs each macro once over some stories. Returns (story, label, expected, found) for each answer that is not that of its story."""
    tellings = tell(con, told)
    answers = {macro: rows_of(con, f"FROM {macro}_of('events')") for macro in MACROS}
    story_of = {row["computer"]: telling.story for telling, rows in tellings for row in rows}
    by_story = collections.defaultdict(list)
    for macro, rows in answers.items():
        for row in rows:
            by_story[macro, story_of[row["computer"]]].append(row)
    return [(telling.story, *difference) for telling, rows in tellings for difference in of_story(telling, rows, {macro: by_story[macro, telling.story] for macro in MACROS})]


def of_story(telling, rows, found):
    """Compares the answers about one story."""
    summaries = {row["computer"]: row for row in found["evtx_case_summary"]}
    for machine in telling.story.machines:
        expected = stories.summary(telling, rows, machine)
        row = expected and summaries.get(expected["computer"], {})
        for column, value in (expected or {}).items():
            if not value == row.get(column):
                yield f"{expected['computer']}.{column}", value, row.get(column)
    # Sessions that have no more than the end in a record with a broken time.
    logons = [row for row in found["evtx_logons"] if row["logon_id"] != stories.BROKEN_ID]
    yield from unmatched("evtx_logons", stories.sessions(telling), logons)
    yield from unmatched("evtx_process_tree", stories.process_tree(telling), found["evtx_process_tree"])
    truth = {(account.sid, str(account)) for account in telling.story.accounts()}
    others = [row for row in found["evtx_accounts"] if (row["user_sid"], row["user_name"]) not in truth]
    yield from unmatched("evtx_accounts", stories.accounts(telling), found["evtx_accounts"], others)
    of_record = {(row["filename"], row["record_id"]): row for row in found["evtx_timeline"]}
    for expected in stories.time_line(telling, rows):
        value = of_record.get((expected["filename"], expected["record_id"]))
        for column in expected:
            if not value or not expected[column] == value[column]:
                yield f"evtx_timeline.{column}", expected, value


def unmatched(macro, expected, found, others=None):
    """Pairs rows with what is expected, in any order."""
    left = list(found)
    for row in expected:
        match = next((other for other in left if row == other), None)
        if match is None:
            yield f"{macro}, a row is missing", row, [other for other in left if other["computer"] == row["computer"]]
        else:
            left.remove(match)
    for row in left if others is None else others:
        yield f"{macro}, a row is wrong", None, row


def connects(story):
    """Whether logs connect the names of each machine, so that it is one machine in the answers."""
    telling = stories.Telling(story)
    rows = telling.rows()
    return all(stories.summary(telling, rows, machine) for machine in {row["machine"] for row in rows if not row["is_broken"]})


def recipe_differences(con, told, only=None):
    """Asks the recipes about some stories. Returns (None, question, expected, found) for each answer that is not that of the stories."""
    tellings = tell(con, [story for story in told if connects(story)])
    # As docs/macros.md says: without copies.
    con.execute("CREATE OR REPLACE TABLE events AS SELECT DISTINCT ON (computer, channel, event_record_id, time_created) * FROM events ORDER BY filename ILIKE '%ForwardedEvents%', filename")
    for question, (of_rows, of_stories) in RECIPES.items():
        if only not in (None, question):
            continue
        expected, found = of_stories(tellings), of_rows(rows_of(con, recipe(question)))
        if expected != found:
            yield None, question, *({key: side[key] for key in side if side[key] != other.get(key)} for side, other in [(expected, found), (found, expected)])


def shrunk(con, check, story, label, has_answer):
    """The story with only the facts that an answer needs to be wrong, with the right and the wrong answer."""
    answers = None, None
    for fact in [None, *story.facts]:
        smaller = story.without(fact)
        wrong = next((values for _, other, *values in check(con, [smaller], label) if other == label and (values[1] is not None) == has_answer), None)
        if wrong:
            story, answers = smaller, wrong
    return story, *answers


def run(con, check):
    """Tells all stories in batches. Fails with the shortest story that shows the first difference."""
    for first in range(0, COUNT, BATCH):
        told = [stories.draw(SEED, number) for number in range(first, min(first + BATCH, COUNT))]
        found = list(check(con, told))
        if found:
            story, label, _, value = found[0]
            # A recipe can count over all stories.
            while not story and len(told) > 1:
                half = told[:len(told) // 2]
                told = half if any(other == label for _, other, *_ in check(con, half, label)) else told[len(half):]
            story = story or told[0]
            story, expected, value = shrunk(con, check, story, label, value is not None)
            counts = dict(collections.Counter(label.split(".")[-1] for _, label, *_ in found))
            raise AssertionError(f"{counts}\n{story}\n{label}\nexpected: {expected}\nfound:    {value}")


def test_macros_tell_the_stories(con):
    run(con, differences)


def test_recipes_tell_the_stories(con):
    run(con, recipe_differences)
