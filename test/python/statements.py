"""Generates SQL statements, and compares their results over read_evtx with those over tables made from the logs.

A statement is built from the templates in statement_templates.py. The expanded template has three kinds of marks:

- `{t0}` is a source: a call of read_evtx, or the table made from that call.
- `{p0}` is a predicate, kept as a tree so that a failing statement can be shrunk.
- `{c0}` is a constant: a literal or a parameter.
"""

import collections
import concurrent.futures
import dataclasses
import datetime
import itertools
import math
import os
import random
import re
import shutil
import threading
import uuid

import client
import duckdb
from client import list_of, quoted, quoted_name
from fsspec.implementations.dirfs import DirFileSystem
from fsspec.implementations.local import LocalFileSystem
from statement_templates import AGGREGATES, COMPARISONS, EQUALITIES, JOINED, LIMIT, MACROS, MODES, NO_LIMIT, PLAIN
from statement_templates import QUERIES, SHAPES, SOURCES, WORDS

# ---- The user's database

# Settings for both the statements over logs and those over tables.
SETTINGS = {
    "old_implicit_casting": "true", "default_null_order": "'NULLS_FIRST'", "default_order": "'DESC'", "integer_division": "true", "TimeZone": "'Asia/Kathmandu'",
    "ieee_floating_point_ops": "false", "preserve_identifier_case": "false", "prefer_range_joins": "true", "order_by_non_integer_literal": "true",
    "late_materialization_max_rows": "1000", "dynamic_or_filter_threshold": "2", "nested_loop_join_threshold": "0", "merge_join_threshold": "0",
}
# The user's own types, named like the types of columns.
OWN_TYPES = ["evtx_level", "evtx_fact_level", "varchar", "ubigint", "uinteger", "utinyint", "usmallint", "timestamp_ns", "uuid", "date", "bigint", "json"]
# The prefix of paths in a file system that is registered in Python.
OWN_FILES = "dir://"


def connect(extension):
    connection = client.connect(extension)
    connection.register_filesystem(DirFileSystem("/", LocalFileSystem()))
    return connection


def settle(connection, seed, has_types):
    """Changes some settings, and may put the user's own types on the search path."""
    rng = random.Random(f"settings {seed}")
    for name in rng.sample(sorted(SETTINGS), rng.choice([0, 1, 2, 3])):
        connection.execute(f"SET {name} = {SETTINGS[name]}")
    if has_types:
        connection.execute("CREATE SCHEMA own; CREATE TYPE evtx_level AS ENUM ('x')")
        for name in OWN_TYPES:
            connection.execute(f"CREATE TYPE own.{name} AS ENUM ('x')")
        connection.execute("SET search_path = 'main,own'")


# ---- Sources, their columns and their values

# One more than the largest number of each type, and the families of types.
LARGEST = {"TINYINT": 2**7, "SMALLINT": 2**15, "INTEGER": 2**31, "BIGINT": 2**63}
LARGEST |= {f"U{name}": 2 * largest for name, largest in LARGEST.items()}
FAMILIES = dict.fromkeys(LARGEST, "number") | dict.fromkeys(["FLOAT", "DOUBLE"], "float")
FAMILIES |= {"VARCHAR": "text", "JSON": "json", "TIMESTAMP_NS": "time", "UUID": "uuid", "BOOLEAN": "bool", "BLOB": "blob"}
# Constants that need not occur in a log.
EXTREMES = {
    "number": ["0", "-1", "255", "256", "4294967295", "9223372036854775807", "18446744073709551615"],
    "text": ["", "A", "zz", "ü", "0"],
    "time": ["1970-01-01 00:00:00", "2024-03-05 08:00:00", "2262-01-01 00:00:00"],
    "uuid": [str(uuid.UUID(int=0)), str(uuid.UUID(int=2**128 - 1))],
    "float": ["0", "-1", "1e30", "nan", "inf"],
    "bool": ["true", "false"],
    "blob": ["", "\\x00"],
    "list": ["[]"],
}
# The weights of columns. Others have 1. If only some calls have them, 2 for text, else 6.
WEIGHTS = {"record_id": 4, "time_created": 4, "event_id": 4, "level": 3, "filename": 3, "recovered": 6}
# The most rows of a single source, and of each of several.
ROWS, JOINED_ROWS = 2000, 420
# Longer texts, such as the XML of an event, are not used as constants.
LONG = 300
EPOCH = datetime.datetime(1970, 1, 1)
# The processor time in seconds above which a call is slow. A hostile log is slow in every statement.
SLOW = 10


@dataclasses.dataclass(eq=False)
class Operand:
    """A column or a field of event_data. Its expression has `@` for the alias. Its values are sorted, as text."""

    expression: str
    type: str
    family: str
    weight: float
    values: list = None
    position: int = 0
    # Whether adding a small number to any of its values fits its type.
    small: bool = False
    # Whether every call has this operand.
    standard: bool = False

    def over(self, alias):
        return self.expression.replace("@.", f"{alias}." if alias else "")


@dataclasses.dataclass(eq=False)
class Call:
    """A call of read_evtx, its operands, and some rows with the value of each operand as text."""

    text: str
    operands: list
    rows: list
    size: int


def sort_key(family):
    return {"number": int, "float": float}.get(family, str)


def describe(connection, text, standard):
    """The call with its operands, or None if it has too many rows."""
    connection.execute(f"CREATE OR REPLACE TEMP TABLE described AS FROM {text}")
    (size,) = connection.execute("SELECT count(*) FROM described").fetchone()
    if size > ROWS:
        return None
    operands = []
    for name, type_name, *_ in connection.execute("DESCRIBE described").fetchall():
        column = f"@.{quoted_name(name)}"
        family = "list" if type_name.endswith("[]") else "map" if type_name.startswith("MAP") else FAMILIES[type_name]
        weight = WEIGHTS.get(name, 1 if name in standard else 2 if type_name == "VARCHAR" else 6)
        operands.append(Operand(column, type_name, family, weight, standard=name in standard))
        if family == "json":
            operands.append(Operand(column + "::VARCHAR", "VARCHAR", "text", 1, standard=name in standard))
    keys = connection.execute("SELECT DISTINCT unnest(map_keys(event_data)) FROM described ORDER BY 1").fetchall()
    for (key,) in [*keys[:: len(keys) // 8 + 1], ("no such key",)]:
        operands.append(Operand(f"@.event_data[{quoted(key)}]", "VARCHAR", "text", 0.7, standard=True))
    columns = ", ".join(f"({operand.over('')})::VARCHAR" for operand in operands)
    rows = connection.execute(f"SELECT {columns} FROM described").fetchall()
    for position, operand in enumerate(operands):
        key = sort_key(operand.family)
        operand.position = position
        if operand.family in EXTREMES:
            values = {row[position] for row in rows if row[position] is not None and len(row[position]) < LONG}
            operand.values = sorted(sorted(values), key=key)
        if operand.family == "number":
            # Adding to a UBIGINT near 2^63 is an internal error in DuckDB.
            operand.small = all(int(value) + 20 < min(LARGEST[operand.type], 2**63) for value in operand.values)
    return Call(text, operands, rows[:: len(rows) // 48 + 1], size)


def partition(folder, logs):
    """A call over copies of the four smallest logs, in folders named `key=value`."""
    for number, log in enumerate(sorted(logs, key=lambda log: (log.stat().st_size, log))[:4]):
        place = folder / f"case={17 + number // 2}" / f"host=host {number % 3}"
        place.mkdir(parents=True, exist_ok=True)
        shutil.copy(log, place / f"{number}.evtx")
    return f"read_evtx({quoted(f'{folder}/**/*.evtx')}, hive_partitioning := true)"


def make_calls(connection, logs, seed, count, first=None):
    """`count` calls over one or a few logs. Skips calls that take longer than SLOW. `first` sets the first call."""
    rng = random.Random(f"calls {seed}")
    calls, standard = {}, None
    logs = rng.sample(logs, len(logs))
    for attempt in range(20 * count):
        try:
            with client.interrupting(connection, SLOW):
                if not standard:
                    columns = connection.execute(f"DESCRIBE FROM read_evtx({quoted(rng.choice(logs))})").fetchall()
                    standard = {name for name, *_ in columns}
                files = [str(logs[attempt % len(logs)]), *(str(log) for log in rng.choices(logs, k=rng.choice([0, 0, 0, 0, 1, 2])))]
                if rng.random() < 0.1:
                    files = [f"{OWN_FILES}{os.path.abspath(file)}" for file in files]
                text = quoted(files[0]) if rng.random() < 0.1 else f"read_evtx({call_arguments(rng, connection, files)})"
                if first and not calls:
                    text, first = first, None
                if text not in calls and (call := describe(connection, text, standard)):
                    calls[text] = call
        except duckdb.Error:
            continue
        if len(calls) == count:
            break
    return list(calls.values())


def call_arguments(rng, connection, files):
    paths = quoted(files[0]) if len(files) == 1 else list_of(files)
    if rng.random() < 0.12:
        paths = quoted(re.sub(r"(.*/.{2,5})[^/]*$", r"\1*.evtx", files[0]))
    arguments = [paths]
    if rng.random() < 0.5:
        query = f"SELECT DISTINCT provider, event_id FROM read_evtx({paths}) WHERE event_id IS NOT NULL ORDER BY ALL"
        found = connection.execute(query).fetchall()
        if found:
            events = sorted({event for _, event in rng.sample(found, min(len(found), rng.choice([1, 2, 4, 20])))})
            arguments.append(f"event_id := {events if len(events) > 1 else events[0]}")
            if rng.random() < 0.2 and (provider := rng.choice(found)[0]):
                arguments.append(f"provider := {quoted(provider)}")
    options = [f"{name} := true" for name in ("location", "location", "recover", "xml", "json", "verify")]
    chosen = rng.sample([*options, "on_error := 'skip'"], rng.choice([0, 0, 1, 1, 2, 3]))
    return ", ".join([*arguments, *sorted(set(chosen))])


def beside(rng, family, text):
    """A neighbour of a value, both as text."""
    if family == "number":
        return str(int(text) + rng.choice([1, 1, -1, -1, 2, -7, 1000]))
    if family == "time":
        seconds, _, fraction = text.partition(".")
        time = int((datetime.datetime.fromisoformat(seconds) - EPOCH).total_seconds()) * 10**9 + int(fraction.ljust(9, "0"))
        seconds, fraction = divmod(time + rng.choice([1, -1, 100, -100, 1000, -1000, 10**9]), 10**9)
        return f"{EPOCH + datetime.timedelta(seconds=seconds)}.{fraction:09}"
    if family == "uuid":
        return str(uuid.UUID(int=(uuid.UUID(text).int + rng.choice([1, -1])) % 2**128))
    if family == "float":
        return repr(math.nextafter(float(text), rng.choice([-math.inf, math.inf])))
    if family == "bool":
        return "false" if text == "true" else "true"
    if family == "list":
        return "[]"
    if family == "blob":
        return text + "\\x00"
    at = rng.randrange(len(text) + 1)
    before, after = text[:at], text[at + 1 :]
    return rng.choice([text + rng.choice(" a_%0"), text[:-1], before + after, f"{before}x{after}", text.swapcase()])


# ---- Statements


@dataclasses.dataclass
class Constant:
    """A constant as SQL. As a parameter, it has a value, a cast, and another value for a second run."""

    sql: str
    value: object = None
    cast: str = ""
    other: object = None


@dataclasses.dataclass
class Statement:
    """A query and how to run it. Its kinds count the features that it uses."""

    name: str
    mode: str
    query: str
    other: str
    predicates: list
    constants: list
    calls: list
    threads: int
    disabled: tuple
    kinds: collections.Counter

    def write(self, query, sources, parameter=None):
        """The SQL of a query over some sources. With a name for parameters, also the constants that became parameters."""
        taken = []

        def mark(match):
            if match[1] == "t":
                return sources[int(match[2])]
            constant = self.constants[int(match[2])]
            if parameter is None or constant.value is None:
                return constant.sql
            taken.append(constant)
            return f"{parameter}{len(taken)}{constant.cast}"

        query = re.sub(r"\{p(\d+)\}", lambda match: f"({condition(self.predicates[int(match[1])])})", query)
        return re.sub(r"\{([ct])(\d+)\}", mark, query), taken

    def steps(self, source):
        """The SQL of each step and its parameters. `source` writes a call."""
        sources = [source(call) for call in self.calls]
        query, _ = self.write(self.query, sources)
        of_prepared, parameters = self.write(self.query, sources, "$")
        parts = {f"t{number}": text for number, text in enumerate(sources)} | {
            "q": query,
            "$q": of_prepared,
            "mq": self.write(self.query, sources, "p")[0],
            "vq": self.write(self.query, [f"v{number}" for number in range(len(sources))])[0],
            "o": self.write(self.other, sources)[0],
            "values": ", ".join(literal(constant.value) for constant in parameters),
            "others": ", ".join(literal(constant.other) for constant in parameters),
            "names": ", ".join(f"p{number + 1}" for number in range(len(parameters))),
            "ctes": ", ".join(f"v{number} AS (FROM {text})" for number, text in enumerate(sources)),
        }
        for step in MODES[self.mode][1]:
            for number in range(len(sources) if "{i}" in step else 1):
                sql = re.sub(r"\{(\$?\w+)\}", lambda match: parts[match[1]], step.replace("{i}", str(number)))
                yield sql, [constant.value for constant in parameters] if step == "{$q}" else []

    def text(self):
        """The statement over read_evtx, ready to run by hand."""
        steps = [f"{sql};" + f"  -- with {values}" * bool(values) for sql, values in self.steps(lambda call: call.text)]
        settings = [f"SET threads = {self.threads};", f"SET disabled_optimizers = '{','.join(self.disabled)}';"]
        macros = [f"CREATE MACRO {macro};" for macro in MACROS if macro.partition("(")[0] in str(steps)]
        return "\n".join([f"-- statement {self.name}, {self.mode}", *settings, *macros, *steps])


def condition(tree):
    """A predicate as SQL. The tree is text, or a junction with its parts."""
    if isinstance(tree, str):
        return tree
    junction, parts = tree
    if junction == "NOT":
        return f"NOT ({condition(parts[0])})"
    return f" {junction} ".join(f"({condition(part)})" for part in parts)


def simpler(tree):
    """Simpler predicates."""
    if tree != "true":
        yield "true"
    if not isinstance(tree, str):
        junction, parts = tree
        yield from parts
        for number, part in enumerate(parts):
            for other in simpler(part):
                yield junction, [*parts[:number], other, *parts[number + 1 :]]


def literal(value):
    return quoted(value) if isinstance(value, str) else str(value)


# DuckDB loses the values of parameters when it copies a plan for window_self_join, so that `PREPARE s AS SELECT
# count(*) OVER (PARTITION BY g) FROM (SELECT i, i % 3 AS g FROM range(9) r(i)) WHERE i::VARCHAR = $1` returns no rows.
# If filters are pushed down to a scan, DuckDB plans the statement again with the values.
NEEDED_BY_PARAMETERS = ["filter_pushdown"]


class Builder:
    """Builds one statement, which depends only on the calls, optimizers, seed and number."""

    def __init__(self, calls, optimizers, seed, number):
        self.rng = random.Random(f"{seed} {number}")
        self.name = f"{number} of seed {seed}"
        self.choice_of_calls, self.optimizers = calls, optimizers
        self.aliases, self.same = {}, {}
        self.calls, self.predicates, self.constants = [], [], []
        self.kinds = collections.Counter()
        self.counter = itertools.count(1)
        # Whether the result depends on the order of the log.
        self.in_order = False

    def statement(self):
        kind = self.pick({kind: weight for kind, (weight, _) in QUERIES.items()})
        mode = self.pick({mode: weight for mode, (weight, _) in MODES.items()})
        self.in_order = kind == "limit in the order of the log"
        template = self.rng.choice(QUERIES[kind][1])
        if len(set(re.findall(r"<(?:from|call|rows) (\w+)", template))) > 1:
            self.choice_of_calls = [call for call in self.choice_of_calls if call.size <= JOINED_ROWS]
        if not re.search(NO_LIMIT, template) and self.rng.random() < 0.35:
            template += LIMIT
        query = self.expand(template)
        if self.rng.random() < 0.5:  # Otherwise the other query differs only in its predicates.
            self.same.clear()
            template = self.rng.choice(QUERIES["filter"][1] + QUERIES["aggregate"][1])
        other = self.expand(template) if any("{o}" in step for step in MODES[mode][1]) else ""
        disabled = ()
        if self.rng.random() < 0.35:
            disabled = self.rng.sample(self.optimizers, self.rng.choice([1, 1, 2, 3, len(self.optimizers) // 2]))
            if "$" in str(MODES[mode]):
                disabled = [name for name in disabled if name not in NEEDED_BY_PARAMETERS]
        disabled = tuple(sorted(disabled))
        self.kinds.update([f"query: {kind}", f"run: {mode}", "disabled optimizers" if disabled else "all optimizers"])
        marks = (self.predicates, self.constants, self.calls)
        return Statement(self.name, mode, query, other, *marks, self.rng.choice([1, 4]), disabled, self.kinds)

    def pick(self, weights):
        return self.rng.choices(list(weights), list(weights.values()))[0]

    def expand(self, template):
        return re.sub(r"<(\w+)((?: \w+)*)>", lambda match: self.token(match[1], *match[2].split()), template)

    def token(self, name, *aliases):
        a = aliases[0] if aliases else ""
        if name in WORDS:
            word = self.rng.choice(WORDS[name])
            if name not in ("on", "wide"):
                self.kinds[f"word: {word}"] += 1
            return word.format(a=a, b=aliases[-1] if aliases else "")
        if name == "k":
            return str(self.rng.choice([1, 1, 2, 3, 5, 10]))
        if name == "p":
            return self.predicate(aliases)
        if name == "call":
            return self.source(self.call(a))
        if name == "rows":
            return self.expand(f"FROM <from {a}> WHERE <p {a}>")
        if name == "from":
            inner = {key: f"{key}{next(self.counter)}" for key in "ij"}
            self.aliases.update(dict.fromkeys(inner.values(), self.call(a)))
            return self.expand(self.pick(SOURCES).format(t=self.source(self.call(a)), a=a, **inner))
        if name == "cols":
            chosen = self.rng.choices(aliases, k=self.rng.randint(1, 4))
            return ", ".join(f"{self.output(alias)} AS c{next(self.counter)}" for alias in chosen)
        if name in ("agg", "aggs"):
            chosen = self.rng.choices(aliases, k=1 if name == "agg" else self.rng.randint(1, 4))
            return ", ".join(f"{self.aggregate(alias)} AS agg{next(self.counter)}" for alias in chosen)
        if name.startswith("list"):
            if name not in self.same:
                columns = [operand for operand in self.choice_of_calls[0].operands if operand.standard]
                self.same[name] = {(operand := self.weighted(columns)).position: operand for _ in range(self.rng.randint(1, 4))}
            return ", ".join(f"{operand.over('')} AS l{position}" for position, operand in self.same[name].items())
        if name.startswith("v"):
            return self.constant(operand := self.operand(name[1:], a), self.value(operand))
        return self.operand(name, a).over(a)

    def call(self, alias):
        """The call of an alias. Different letters often share a call."""
        key = alias if alias in self.aliases else alias[0]
        if key not in self.aliases:
            first = self.aliases.get("a")
            if not first or self.rng.random() >= 0.6:  # Prefer calls with columns of many types, which are few.
                types = [len({operand.type for operand in call.operands}) ** 2 for call in self.choice_of_calls]
                first = self.rng.choices(self.choice_of_calls, types)[0]
            self.aliases[key] = first
        return self.aliases[key]

    def source(self, call):
        if call not in self.calls:
            self.calls.append(call)
        return f"{{t{self.calls.index(call)}}}"

    def operand(self, name, alias):
        """An operand by name: x (any), n (a number), g (one to group by), id. With a digit, it is the same each time."""
        key = (name, alias[:1])
        if key not in self.same:
            operands = [operand for operand in self.call(alias).operands if operand.family in EXTREMES]
            if name == "id":
                operands = operands[:1]
            elif name[0] == "n":
                operands = [operand for operand in operands if operand.family == "number"]
            elif name[0] == "g":
                operands = [operand for operand in operands if operand.family != "list"]
                if self.rng.random() < 0.8:
                    operands = [operand for operand in operands if 1 < len(operand.values) < 20] or operands
            self.same[key] = self.weighted(operands)
        operand = self.same[key]
        if not name[-1].isdigit():
            del self.same[key]
        self.kinds[f"type: {operand.type}"] += 1
        return operand

    def weighted(self, operands):
        return self.rng.choices(operands, [operand.weight for operand in operands])[0]

    def output(self, alias):
        """A column to select. The client cuts times to microseconds, so times are selected as numbers."""
        operand = self.weighted(self.call(alias).operands)
        self.kinds[f"type: {operand.type}"] += 1
        return f"epoch_ns({operand.over(alias)})" if operand.family == "time" else operand.over(alias)

    def aggregate(self, alias):
        parts = {"x": self.token("x", alias), "n": self.token("n", alias), "p": f"<p {alias}>"}
        return self.expand(self.rng.choice(AGGREGATES).format(**parts))

    # Constants

    def value(self, operand, row=None):
        """A value for an operand, as text: from a row, from the data, extreme, or a neighbour of one."""
        roll = self.rng.random()
        text = row[operand.position] if row and roll < 0.55 else None
        if text is None or len(text) >= LONG:
            text = self.rng.choice(operand.values if operand.values and roll < 0.92 else EXTREMES[operand.family])
        if self.rng.random() < 0.25:
            try:
                text = beside(self.rng, operand.family, text)
            except OverflowError:  # There is no later or earlier date.
                pass
        return text

    def constant(self, operand, text, other=None, alone=True):
        """A mark for a constant. `other` is its second value as a parameter. If alone, it may be NULL, or a number as text."""
        self.kinds["constant: of the data" if text in (operand.values or ()) else "constant: not of the data"] += 1
        constant = self.write(operand, text)
        if constant.value is not None:
            constant.other = self.write(operand, other or self.value(operand)).value
        if alone and self.rng.random() < 0.02:
            return self.mark(Constant("NULL"))
        if alone and operand.family == "number" and text in operand.values and self.rng.random() < 0.2:
            constant.sql = quoted(text)
        return self.mark(constant)

    def mark(self, constant):
        self.constants.append(constant)
        return f"{{c{len(self.constants) - 1}}}"

    def write(self, operand, text):
        """A value as SQL and as a parameter."""
        family = operand.family
        if family == "number":
            number = int(text)
            forms = [text, text, text, f"({text} + 0)", f"{text}.0", f"{text}.5"]
            if abs(number) < 2**63:
                forms.append(f"{text}::BIGINT")
            return Constant(self.rng.choice(forms), number)
        if family == "text":
            return Constant(self.rng.choice([quoted(text)] * 5 + [f"({quoted(text[:2])} || {quoted(text[2:])})"]), text)
        if family == "time":
            form = self.rng.choice(["TIMESTAMP_NS {}", "{}", "TIMESTAMP {}", "{}::DATE"])
            return Constant(form.format(quoted(text)), text, "::TIMESTAMP_NS")
        if family == "uuid":
            return Constant(self.rng.choice(["UUID {}", "{}"]).format(quoted(text)), text, "::UUID")
        if family == "bool":
            return Constant(text, text == "true")
        return Constant(f"{quoted(text)}::{operand.type}")

    def pattern(self, name, operand, row):
        """A mark for a piece of a value: for LIKE, GLOB, a regular expression, or unchanged."""

        def piece():
            text = self.value(operand, row)
            start = self.rng.choice([0, 0, self.rng.randint(0, len(text))])
            text = text[start : start + self.rng.choice([1, 2, 4, 8, 300])]
            if name == "part":
                return text
            if name == "like":
                text = text.replace("!", "").replace("\\", "_")
                if text and self.rng.random() < 0.2:
                    at = self.rng.randrange(len(text))
                    text = text[:at] + self.rng.choice("_%") + text[at + 1 :]
                return self.rng.choice(["{}%", "{}%", "%{}", "%{}%", "{}"]).format(text)
            every, one = ("*", "?") if name == "glob" else (".*", ".")
            text = "".join(letter if letter.isalnum() else one for letter in text)
            return self.rng.choice(["{0}{1}", "{1}{0}", "{1}{0}{1}", "{0}"]).format(text, every)

        text = piece()
        return self.mark(Constant(quoted(text), text, "", piece()))

    # Predicates

    def predicate(self, aliases):
        """A mark for a predicate over sources. Many constants come from one row of each source, so that some rows match."""
        rows = {alias: self.rng.choice(self.call(alias).rows or [None]) for alias in aliases}
        self.predicates.append(self.tree(rows, 0))
        return f"{{p{len(self.predicates) - 1}}}"

    def tree(self, rows, depth):
        roll = self.rng.random()
        if depth < 3 and roll < 0.4:
            parts = [self.tree(rows, depth + 1) for _ in range(self.rng.choice([2, 2, 3]))]
            return self.rng.choice(["AND", "OR"]), parts
        if depth < 3 and roll < 0.45:
            return "NOT", [self.tree(rows, depth + 1)]
        return self.leaf(rows)

    def leaf(self, rows):
        alias = self.rng.choice(list(rows))
        operands, row = self.call(alias).operands, rows[alias]
        if row and self.rng.random() < 0.75:
            operands = [operand for operand in operands if row[operand.position] is not None]
        operand = self.weighted(operands)
        families = {operand.family, "small"} if operand.small else {operand.family}
        shapes = {name: (of, weight, texts) for name, (of, weight, texts) in SHAPES.items() if families & of}
        if self.in_order:
            shapes = {name: shape for name, shape in shapes.items() if not re.search(JOINED, str(shape[2]))}
        shape = self.pick({name: weight for name, (_, weight, _) in shapes.items()})
        self.kinds.update([f"predicate: {shape}", f"predicate on: {operand.type}"])
        same = {"x": operand.over(alias), "s": operand.over("s"), "same": self.source(self.call(alias))}

        def constants(count):
            return ", ".join(self.constant(operand, self.value(operand, row), alone=count == 1) for _ in range(count))

        def token(match):
            name = match[1]
            if name == "op":
                return self.rng.choice(EQUALITIES if operand.family == "list" else COMPARISONS)
            if name == "k":
                return self.expand("<k>")
            if name in same:
                return same[name]
            if name in ("lo", "hi"):
                bounds = sorted([self.value(operand, row), self.value(operand)], key=sort_key(operand.family))
                step = self.rng.choice([1, 1, 1, 1, -1])
                same["lo"], same["hi"] = (self.constant(operand, bound) for bound in bounds[::step])
            elif name == "v":
                same[name] = constants(1)
            elif name == "vs":
                # DuckDB turns a list of five into a join, which loses the order. One of them may be NULL.
                same[name] = constants(self.rng.randint(1, 3 if self.in_order else 5))
            elif name == "many":
                same[name] = constants(self.rng.choice([20, 20, 40, 40, 80, 300]))
            elif name == "near":
                near = [str(int(self.rng.choice(operand.values or ["0"])) + self.rng.randint(0, 3)) for _ in range(2)]
                return self.constant(operand, *near)
            elif name == "t":
                text = self.value(operand, row)
                same[name] = self.mark(Constant(quoted(text), text, "", text))
            elif name in ("like", "part", "glob", "regexp"):
                same[name] = self.pattern(name, operand, row)
            elif name == "y":
                other = self.rng.choice(list(rows))
                alike = [y for y in self.call(other).operands if y.family == operand.family]
                same[name] = self.weighted(alike).over(other) if alike else same["x"]
            elif name in ("z", "w"):
                second = self.weighted([z for z in self.call(alias).operands if z.family in PLAIN.split()])
                same["z"], same["w"] = second.over(alias), self.constant(second, self.value(second, row))
            return same[name]

        return re.sub(r"<(\w+)>", token, self.rng.choice(SHAPES[shape][2]))


def make_statements(extension, logs, seed, count, calls, first=None):
    """`count` statements over a number of calls. For `first`, see make_calls."""
    with connect(extension) as connection:
        calls = make_calls(connection, logs, seed, calls, first)
        names = optimizers(connection)
    for number in range(count):
        yield Builder(calls, names, seed, number).statement()


def optimizers(connection):
    return [name for (name,) in connection.execute("SELECT name FROM duckdb_optimizers() ORDER BY name").fetchall()]


# ---- The comparison

# Errors that invalidate a database.
INTERNAL = ("InternalException", "FatalException")
# The time in seconds after which a statement hangs.
TIMEOUT = 600
# The forms of a statement, and the kinds of difference between them.
TABLES, SCANS, OFF = "tables", "read_evtx", "read_evtx without pushdown"
WRONG = "read_evtx with pushdown differs from both others"
# For example, if values depend on the selected columns.
BOTH_WRONG = "read_evtx differs with and without pushdown"
UNSTABLE = "the results change with each run"
# DuckDB has bugs of its own, which may show in only one form because plans differ. Internal errors: a correlated EXISTS over an
# OR with many constants in an IN, and some statements without projection_pullup. Wrong rows: over tables, whose bounds of values it
# knows, it drops the LIMIT of `t LEFT JOIN u ON t.id = u.id AND u.x <> 1 LIMIT 20` if all u.x are 1. Without optimizers, the table
# then has the rows of read_evtx.
FAULT = "a bug in DuckDB"


class Form:
    """A database that runs statements over tables, or over read_evtx with or without pushdown."""

    def __init__(self, extension, kind, seed=0):
        self.extension, self.kind, self.seed = str(extension), kind, seed
        self.connect()

    def connect(self):
        self.connection = connect(self.extension)
        self.connection.execute(f"SET evtx_filter_pushdown = {self.kind == SCANS}")
        for macro in MACROS:
            self.connection.execute(f"CREATE MACRO {macro}")
        if self.seed:
            settle(self.connection, self.seed, self.kind != TABLES)
        self.tables = {}

    def source(self, call):
        """The source for a call. Creates a table when it is first needed."""
        if self.kind != TABLES:
            return call.text
        if call.text not in self.tables:
            self.tables[call.text] = f"t{len(self.tables)}"
            self.connection.execute(f"CREATE TABLE {self.tables[call.text]} AS FROM {call.text}")
        return self.tables[call.text]

    def run(self, statement):
        """The result of each step, up to the first that fails."""
        self.connection.execute("RESET disabled_optimizers")
        for call in statement.calls:
            self.source(call)
        self.connection.execute(f"SET threads = {statement.threads}")
        if statement.disabled:
            self.connection.execute(f"SET disabled_optimizers = '{','.join(statement.disabled)}'")
        results = []
        timer = threading.Timer(TIMEOUT, self.connection.interrupt)
        timer.start()
        try:
            for sql, parameters in statement.steps(self.source):
                rows = [repr(row) for row in self.connection.execute(sql, parameters).fetchall()]
                is_ordered = re.search(r"(ORDER BY ALL[A-Z ]*|LIMIT \d+( OFFSET \d+)?)$", sql)
                results.append(Result(rows if is_ordered else sorted(rows)))
        except duckdb.Error as error:
            results.append(Result([], type(error).__name__, str(error).partition("\n\n")[0]))
            if results[-1].error in INTERNAL:
                self.connect()
        finally:
            timer.cancel()
        return results


@dataclasses.dataclass
class Result:
    """The result of a step. Errors of the same class are equal."""

    rows: list
    error: str = ""
    message: str = dataclasses.field(default="", compare=False)


@dataclasses.dataclass
class Difference:
    """A statement whose results over read_evtx and over tables differ."""

    kind: str
    statement: Statement
    results: dict

    def is_like(self, other):
        return other and (self.kind, self.results[SCANS][-1].error) == (other.kind, other.results[SCANS][-1].error)

    def text(self):
        lines = [f"{self.kind}:", self.statement.text()]
        for form, results in self.results.items():
            for number, result in enumerate(results):
                rows = f"{len(result.rows)} rows {' '.join(result.rows)}"
                found = f"{result.error}: {result.message}" if result.error else rows
                lines.append(f"-- step {number} over {form}: {found[:300]}")
        return "\n".join(lines)


class Comparison:
    """Runs statements over tables and over read_evtx."""

    def __init__(self, extension, seed=0):
        """Creates the databases, with the settings and types of a seed if there is one."""
        self.forms = {kind: Form(extension, kind, seed) for kind in (TABLES, SCANS, OFF)}
        self.optimizers = optimizers(self.forms[TABLES].connection)
        self.pool = concurrent.futures.ThreadPoolExecutor(2)

    def run(self, statement):
        """The results over tables, and the difference if there is one. Statements that time out are not compared."""
        tables, scans = self.pool.map(lambda kind: self.forms[kind].run(statement), [TABLES, SCANS])
        if tables == scans or "InterruptException" in (tables[-1].error, scans[-1].error):
            return tables, None
        off = self.forms[OFF].run(statement)
        if tables[-1].error in INTERNAL or {scans[-1].error, off[-1].error} <= {*INTERNAL}:
            kind = FAULT
        elif self.forms[TABLES].run(statement) != tables:
            kind = UNSTABLE
        elif off == tables:
            kind = WRONG
        else:
            plain = self.forms[TABLES].run(dataclasses.replace(statement, disabled=self.optimizers))
            kind = FAULT if plain == scans == off else BOTH_WRONG
        return tables, Difference(kind, statement, {TABLES: tables, SCANS: scans, OFF: off})

    def shrink(self, difference):
        """A difference of the same kind in the smallest statement found."""
        found = difference
        while found:
            difference = found
            candidates = (self.run(smaller)[1] for smaller in smaller_statements(difference.statement))
            found = next(filter(difference.is_like, candidates), None)
        return difference


def smaller_statements(statement):
    """Simpler statements."""
    for mode in ("plain", "digest"):
        if statement.mode not in ("plain", mode):
            yield dataclasses.replace(statement, mode=mode)
    if statement.threads > 1:
        yield dataclasses.replace(statement, threads=1)
    half = len(statement.disabled) // 2
    for fewer in ((), statement.disabled[:half], statement.disabled[half:]):
        if len(fewer) < len(statement.disabled):
            yield dataclasses.replace(statement, disabled=fewer)
    for number, predicate in enumerate(statement.predicates):
        for other in simpler(predicate):
            predicates = [*statement.predicates[:number], other, *statement.predicates[number + 1 :]]
            yield dataclasses.replace(statement, predicates=predicates)
