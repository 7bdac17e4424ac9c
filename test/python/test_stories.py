"""The macros tell what happened: random stories, whose events and whose right answers are derived independently."""

import collections
import itertools
import json
import os
import pathlib
import re
import tempfile

import pyarrow
from conftest import SAMPLES
from stories import answers, author
from stories.exports import FORMS
from stories.facts import Broken, Renamed
from stories.logons import Planted
from stories.telling import Telling
from stories.world import BROKEN_ID, CHANNELS, Text
from test_cookbook import COOKBOOK, RECIPE

SEED, COUNT, BATCH = int(os.environ.get("EVTX_STORIES_SEED", 20261126)), int(os.environ.get("EVTX_STORIES", 200)), 200
MACROS = ["evtx_facts", "evtx_logons", "evtx_process_tree", "evtx_accounts", "evtx_timeline"]
COLUMNS = ["record_id", "event_record_id", "time_created", "event_id", "level", "version", "provider", "channel", "computer", "user_sid", "filename"]


# Recipes of the cookbook: what of their rows a story says, and the answer.
RECIPES = {
    "Which account moves from machine to machine?": (lambda rows: collections.Counter(len(row["machines"]) for row in rows), lambda told: collections.Counter(answers.moves(told).values())),
}


def recipe(question):
    """The query of the cookbook, over the table."""
    sql = next(found["sql"] for found in RECIPE.finditer(COOKBOOK.read_text(encoding="utf-8")) if found["question"] == question)
    return re.sub(r"read_evtx\('samples[^()]*\)", "events", re.sub(r"(evtx_\w+)\('samples[^()]*\)", r"\1_of('events')", sql)).strip().rstrip(";")


def tell(con, told):
    """Fills the table of events with stories. Returns what they tell, with their rows."""
    tellings = [(telling := Telling(story), telling.rows()) for story in told]
    every = [row for _, rows in tellings for row in rows]
    rows = [row for row in every if row["form"] not in FORMS]
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
    exports = collections.defaultdict(lambda: collections.defaultdict(list))
    for row in every:
        if row["form"] in FORMS:
            exports[FORMS[row["form"]]][row["filename"]].append(row)
    for form, files in exports.items():
        with tempfile.TemporaryDirectory() as folder:
            for number, of_file in enumerate(files.values()):
                in_order = sorted(of_file, key=lambda row: row["event_record_id"], reverse=form.is_newest_first)
                (pathlib.Path(folder) / f"{number}.{form.ending}").write_text("".join(map(form.write, in_order)), encoding=form.encoding)
            con.execute(f"""INSERT INTO events BY NAME SELECT {', '.join(COLUMNS[:-1])}, event_data, user_data, error, $1[1 + parse_filename(filename, true)::INTEGER] AS filename
                            FROM {form.function}('{folder}/*.{form.ending}')""", [list(files)])
    assert con.execute("SELECT count(*), count(error) FROM events").fetchall() == [(len(every), 0)]
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
            by_story[macro, story_of[Text(row["computer"])]].append(row)
    return [(telling.story, *difference) for telling, rows in tellings for difference in of_story(telling, rows, {macro: by_story[macro, telling.story] for macro in MACROS})]


def of_story(telling, rows, found):
    """Compares the answers about one story."""
    for machine in telling.story.machines if "evtx_facts" in found else ():
        expected = answers.facts(telling, rows, machine)
        if expected:
            told = [row for row in found["evtx_facts"] if row["computer"] and expected["computer"] == row["computer"]]
            yield from ((f"{expected['computer']}.{label}", *values) for label, *values in of_facts(expected, told))
    # Sessions that have no more than the end in a record with a broken time.
    logons = [row for row in found["evtx_logons"] if row["logon_id"] != BROKEN_ID]
    yield from unmatched("evtx_logons", answers.sessions(telling), logons)
    yield from unmatched("evtx_process_tree", answers.process_tree(telling), found["evtx_process_tree"])
    truth = {(account.sid, str(account)) for account in telling.story.accounts()}
    others = [row for row in found["evtx_accounts"] if (row["user_sid"], row["user_name"]) not in truth]
    yield from unmatched("evtx_accounts", answers.accounts(telling), found["evtx_accounts"], others)
    of_record = {(row["filename"], row["record_id"]): row for row in found["evtx_timeline"]}
    for expected in answers.time_line(telling, rows):
        value = of_record.get((expected["filename"], expected["record_id"]))
        for column in expected:
            if not value or not expected[column] == value[column]:
                yield f"evtx_timeline.{column}", expected, value


FAILED, BROKEN = re.compile(r"(\d+) failed logons?(, then (a logon of the same account|a logon of another account|one of the accounts got in)| of \d+ accounts)?$"), "Record with a time that cannot be"


def of_facts(expected, told):
    """Compares the facts about one machine, topic by topic. Nothing is above info that the story did not tell."""
    def lower(text):
        return (text or "").split("\\")[-1].lower()

    listed, failed, others = collections.Counter(), collections.Counter(), []
    for row in told:
        failure, who = FAILED.match(row["fact"]), lower(row["account"])
        if any((row["topic"], row["fact"]) == known[:2] for known in answers.LISTED.values()):
            listed[row["topic"], row["fact"], row["account"] and row["account"].lower(), row["target"]] += row["events"]
        elif failure and (failure[3] == "a logon of the same account" or not failure[2]):
            failed[row["account"] and who or None, (row["source"] or "").lower()] += row["events"]
            if failure[3] and who not in expected["successes"]:
                others.append(row)
        elif failure and failure[3]:
            others += [row] * (who not in expected["successes"])
        elif failure:
            accounts = {account for account, source in expected["failures"] if source == row["source"].lower()}
            others += [row] * (len(accounts - {None}) < 5)
        elif row["topic"] not in ("starts", "gaps", "clock", "logons from elsewhere", "accounts", "identities") and row["level"] != "info":
            others.append(row)
        assert row["evidence"] and None not in row["evidence"], row
    yield from ((name, *pair) for name, *pair in [
        ("listed", expected["listed"], listed), ("failures", expected["failures"], failed), ("others", [], others),
        ("starts", expected["starts"], sorted(row["first"] for row in told if row["fact"] == "Windows started")),
        ("zones", expected["zones"], [row["detail"].split(" (")[0] for row in sorted(told, key=lambda row: row["first"]) if row["fact"] == "Time zone reported"]),
        ("gaps", expected["gaps"], sorted((row["first"], int(row["fact"].split()[3]) + 0.5) for row in told if row["fact"].startswith("No events for "))),
        ("clock", expected["clock"], sorted(((row["first"], row["target"], row["account"]) for row in told if row["fact"].startswith("Clock set ")), key=lambda change: change[0])),
        ("visits", set(), {(lower(row["account"]), (row["source"] or "").lower()) for row in told if row["topic"] == "logons from elsewhere"} - expected["visits"]),
        ("broken", expected["broken"], sum(row["fact"] == BROKEN for row in told)),
    ] if not pair[0] == pair[1])  # fmt: skip


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
    telling = Telling(story)
    rows = telling.rows()
    return all(answers.is_connected([row for row in rows if row["machine"] is machine and not row["is_broken"]]) for machine in {row["machine"] for row in rows if not row["is_broken"]})


def recipe_differences(con, told, only=None):
    """Asks the recipes about some stories. Returns (None, question, expected, found) for each answer that is not that of the stories."""
    # The recipes compare names as they are, and the rows below are without planted records.
    tellings = tell(con, [story for story in told if connects(story) and not any(machine.spelled or machine.providers is not str for machine in story.machines)
                          and not any(isinstance(fact, Planted) for fact in story.facts)])
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
        told = [author.draw(SEED, number) for number in range(first, min(first + BATCH, COUNT))]
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


def test_the_form_of_an_export_changes_nothing(con):
    """Also the newest record first, around records with a time that cannot be."""
    told, answers = [author.draw(SEED, number) for number in range(400)], {}
    # An export with the newest record first does not connect the names of a machine, and planted records are logs.
    told = [story for story in told if any(isinstance(fact, Broken) for fact in story.facts) and not any(isinstance(fact, (Planted, Renamed)) for fact in story.facts)]
    for form in FORMS:
        for machine in itertools.chain.from_iterable(story.machines for story in told):
            machine.exported, machine.copied, machine.forwarded = dict.fromkeys([*CHANNELS.values(), "System"], form), (), ()
        tell(con, told)
        answers[form] = [set(map(repr, rows_of(con, f"SELECT {columns} FROM {macro}_of('events')"))) for macro, columns in {
            "evtx_logons": "*", "evtx_process_tree": "*", "evtx_accounts": "*", "evtx_facts": "* EXCLUDE evidence", "evtx_case_summary": "*"}.items()]  # fmt: skip
    assert len(told) > 20 and all(answers["xml"])
    for form, found in answers.items():
        assert [one ^ other for one, other in zip(found, answers["xml"], strict=True)] == [set()] * 5, form


def test_recipes_tell_the_stories(con):
    run(con, recipe_differences)
