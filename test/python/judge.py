"""Reads damaged logs in many ways, and says what should not be.

A case is a log, cut down to a few chunks, with some damage done to it; its seed decides all of it. What must hold:

- A record whose bytes, definitions and names stand there as before comes out with the values that it had before.
- Rows, values and errors do not depend on threads, on the columns or rows that are asked for, or on the run.
- `recover` gives all that a plain scan gives, and `on_error` what it says of the same rows.
- What is told of files and chunks agrees with their rows.
- Time and memory are bounded, and an interrupt is answered.
"""

import collections
import dataclasses
import functools
import os
import pathlib
import random
import re
import struct
import threading
import time
import zlib

import duckdb
from damage import KINDS, Log, repair
from structures import CHUNK, CHUNK_HEADER, CHUNK_MAGIC, FILE_HEADER, FILE_MAGIC, SECTOR, Chunk, place, slots

# How long a query may take, in seconds, with room for a slow machine, and how long an interrupt. What should be met is
# told.
MAX_TIME, MAX_INTERRUPT, INTERRUPT = 5, 1, 0.1
# After how many seconds a query is given up.
STOP = 30
# What a query on one thread may take, in bytes: 64 MiB above a batch, for which DuckDB and the columns have room too.
MAX_MEMORY = 96 << 20
# How many chunks a case has at most, and of how many pieces of one log it takes them.
CHUNKS, PIECES = 4, 3
# How long the text of a log is at most, in bytes.
MAX_TEXT = 16 << 20
# How many chunks a log has on which threads work side by side: more than two blocks of them.
LONG = 40

# Columns that are about the place of a record, not about its event.
PLACES = ("error", "filename", "chunk_index", "record_offset", "recovered")
WHOLE = "location := true, xml := true, json := true"
# All columns as text, as times of the client have no nanoseconds.
AS_TEXT = "COLUMNS(*)::VARCHAR"


# The variables that name folders of logs.
FOLDERS = ("EVTX_CORPUS", "EVTX_VARIED", "EVTX_COLLECTIONS")


def log_folders():
    """The folders of logs that the environment names, or the samples."""
    named = [os.environ[name] for name in FOLDERS if os.environ.get(name)]
    return named or [pathlib.Path(__file__).resolve().parents[2] / "samples"]


# ---- Cases


@dataclasses.dataclass
class Case:
    """A damaged log, and how it came about."""

    seed: int
    source: pathlib.Path
    kinds: list
    repaired: bool
    log: Log
    # The log before, whose slots are those of the sources where no chunk was moved.
    sound: Log

    def title(self):
        kinds = " + ".join(self.kinds) or "none"
        return f"seed {self.seed}: {self.source.name}, {kinds}{', checksums repaired' if self.repaired else ''}"


class Cases:
    """Makes cases out of logs. What logs hold when they are sound is read once."""

    def __init__(self, extension, logs, folder):
        self.logs, self.folder = logs, folder
        self.connection = connect(extension, threads=1)

    @functools.lru_cache(maxsize=256)
    def piece(self, path, number):
        """A log of a few chunks of another, and those chunks with what they hold."""
        data = path.read_bytes()
        every = [slot for slot in slots(data) if len(slot) == CHUNK and slot.startswith(CHUNK_MAGIC)]
        if not every:
            return None
        choice = random.Random(f"{path.name} {number}")
        count = min(choice.choice([1, 1, 1, 2, 2, 3, CHUNKS]), len(every))
        first = choice.randrange(len(every) - count + 1)
        header = bytearray(data[:FILE_HEADER])
        struct.pack_into("<QQ", header, 8, 0, count - 1)
        struct.pack_into("<H", header, 42, count)
        struct.pack_into("<I", header, 124, zlib.crc32(bytes(header[:120])))
        chunks = [Chunk(slot) for slot in every[first : first + count]]
        whole = bytes(header) + b"".join(chunk.data for chunk in chunks)
        sound = pathlib.Path(self.folder, "sound.evtx")
        sound.write_bytes(whole)
        source = f"read_evtx({quoted(str(sound))}, {WHOLE})"
        # Some logs are made to give gigabytes of text.
        size = read(self.connection, f"SELECT coalesce(sum(strlen(xml) + strlen(json)), 0) FROM {source}", MAX_TIME)
        if size.error or size.rows > [(MAX_TEXT,)]:
            return None
        result = read(self.connection, f"SELECT {AS_TEXT} FROM {source}")
        for row in result.dicts():
            offset = int(row["record_offset"]) - FILE_HEADER
            record = chunks[offset // CHUNK].records.get(offset % CHUNK)
            if record and row["error"] is None:
                record.values = event_of(row)
        return Log(bytearray(whole), [[chunk] for chunk in chunks])

    def make(self, seed, only=None):
        """The case of a seed; with the damage of some numbers only, if `only` names them."""
        choice = random.Random(seed)
        path = choice.choice(self.logs)
        sound = self.piece(path, choice.randrange(PIECES))
        other = self.piece(choice.choice(self.logs), choice.randrange(PIECES))
        if not sound:
            return None
        donors = [sources[0] for log in (sound, other) if log for sources in log.sources]
        kinds = [choice.choice(list(KINDS)) for _ in range(choice.choice([1, 1, 1, 2, 3]))]
        repaired = choice.random() < 0.5
        log = sound.copy()
        for number, kind in enumerate(kinds):
            if log.data and (only is None or number in only):
                KINDS[kind](log, random.Random(f"{seed} {number}"), donors)
        if repaired:
            repair(log.data)
        kinds = [kind for number, kind in enumerate(kinds) if only is None or number in only]
        return Case(seed, path, kinds, repaired, log, sound)


# ---- Queries


def connect(extension, **config):
    connection = duckdb.connect(config={"allow_unsigned_extensions": "true", **config})
    connection.load_extension(str(extension))
    return connection


@dataclasses.dataclass
class Result:
    """What a query gave: rows, or an error."""

    sql: str
    columns: list
    rows: list
    error: str
    seconds: float = dataclasses.field(compare=False, default=0)

    def dicts(self):
        return [dict(zip(self.columns, row)) for row in self.rows]

    def same(self, other):
        return (self.rows, self.error) == (other.rows, other.error)


def read(connection, sql, seconds=STOP):
    """What a query gives. After some seconds it is interrupted."""
    start = time.monotonic()
    timer = threading.Timer(seconds, connection.interrupt)
    timer.start()
    try:
        cursor = connection.execute(sql)
        rows, columns, error = cursor.fetchall(), [column[0] for column in cursor.description], ""
    except duckdb.Error as fault:
        rows, columns, error = [], [], f"{type(fault).__name__}: {fault}"
    finally:
        timer.cancel()
    return Result(sql, columns, rows, error, time.monotonic() - start)


def event_of(row):
    return {column: value for column, value in row.items() if column not in PLACES}


def quoted(value):
    return "'" + value.replace("'", "''") + "'"


def differing(one, other):
    """A short text that says where two results differ."""
    if one.error or other.error:
        return f"{one.error or f'{len(one.rows)} rows'} <> {other.error or f'{len(other.rows)} rows'}"
    if len(one.rows) != len(other.rows):
        return f"{len(one.rows)} rows <> {len(other.rows)} rows"
    for number, (a, b) in enumerate(zip(one.rows, other.rows)):
        if a != b:
            columns = one.columns if len(one.columns) == len(a) == len(b) else range(len(a))
            parts = [f"{column}: {short(x)} <> {short(y)}" for column, x, y in zip(columns, a, b) if x != y]
            return f"row {number}: {'; '.join(parts[:4])}"
    return "nothing"


def short(value):
    text = repr(value)
    return text if len(text) < 200 else f"{text[:200]}... ({len(text)} characters)"


# ---- The judge


@dataclasses.dataclass
class Finding:
    """What should not be: which invariant is broken, how, and the queries that show it."""

    invariant: str
    detail: str
    queries: list
    # The check that found it; none where every case has it.
    check: str = ""


class Judge:
    """Reads one damaged log after another, in one process."""

    def __init__(self, extension, folder):
        self.path = str(pathlib.Path(folder, "damaged.evtx"))
        self.one = connect(extension, threads=1)
        self.four = connect(extension, threads=4)
        self.off = connect(extension, threads=1)
        self.off.execute("SET evtx_filter_pushdown = false")
        self.counts = collections.Counter()
        self.worst = collections.Counter()
        # What is worth a look, but can be the machine.
        self.notes = []

    def judge(self, case, count=3):
        """Findings about a case. Of the checks on how rows are asked for it makes some."""
        return self.judge_by(case, random.Random(f"{case.seed} checks").sample(sorted(CHECKS), count))

    def judge_all(self, case):
        """Findings about a case, by every check."""
        return self.judge_by(case, sorted(CHECKS))

    def judge_by(self, case, checks):
        """Findings about a case, by some checks. What a check does depends on the seed only."""
        pathlib.Path(self.path).write_bytes(case.log.data)
        self.case, self.findings, self.check = case, [], ""
        self.plain = self.run(self.one, self.call(WHOLE))
        self.recovered = self.run(self.one, self.call(f"{WHOLE}, recover := true"))
        self.counts["cases"] += 1
        self.counts["rows"] += len(self.plain.rows)
        data = case.log.data
        self.is_log = data[:8] == FILE_MAGIC and len(data) >= FILE_HEADER
        if self.is_log == bool(self.plain.error) or self.plain.error and "not an EVTX log" not in self.plain.error:
            self.find("a scan fails", self.plain.error or "what is no log is read", self.plain)
        if self.recovered.error:
            self.find("a scan fails", self.recovered.error, self.recovered)
        self.check_unchanged()
        self.check_recover()
        for name in checks:
            self.check, self.random = name, random.Random(f"{case.seed} {name}")
            self.counts[f"check: {name}"] += 1
            CHECKS[name](self)
        return self.findings

    def call(self, arguments="", path=None):
        """A query for all columns of a call."""
        return f"SELECT {AS_TEXT} FROM {self.source(arguments, path)}"

    def source(self, arguments="", path=None):
        files = path or quoted(self.path)
        return f"read_evtx({files}{', ' if arguments else ''}{arguments})"

    def path_of(self, name):
        return str(pathlib.Path(self.path).with_name(name))

    def run(self, connection, sql):
        result = read(connection, sql)
        limit = MAX_TIME + len(self.case.log.data) / (1 << 20)
        self.worst["query, ms"] = max(self.worst["query, ms"], int(1000 * result.seconds))
        if result.seconds > limit:
            self.find("time is bounded", f"{result.seconds:.1f} s", result)
        if re.match(r"(Internal|Fatal)Exception", result.error) or "panic" in result.error:
            self.find("errors are not internal", result.error, result)
        return result

    def find(self, invariant, detail, *results):
        self.findings.append(Finding(invariant, detail, [result.sql for result in results], self.check))

    def compare(self, invariant, one, other):
        if not one.same(other):
            self.find(invariant, differing(one, other), one, other)

    # ---- Records

    def check_unchanged(self):
        """Records whose bytes stand there as before come out as before."""
        plain, recovered = self.by_offset(self.plain), self.by_offset(self.recovered)
        all_slots = slots(bytes(self.case.log.data))
        for number, (slot, sources) in enumerate(zip(all_slots, self.case.log.sources)):
            # Without a file header, chunks are found by their signature at any sector.
            is_found = self.is_log or slot.startswith(CHUNK_MAGIC) and count_signatures(slot) == 1
            for chunk in sources:
                for record in chunk.records.values():
                    if record.values is None:
                        continue
                    self.counts["records"] += 1
                    whole = chunk.is_unchanged(record, slot)
                    partly = not whole and len(sources) == 1 and is_unchanged_but_copy(chunk, record, slot)
                    if not whole and not partly:
                        continue
                    self.counts["records judged"] += 1
                    at = place(number) + record.offset
                    ways = []
                    # Where two chunks meet, the header of one says that records of the other are left behind. One
                    # without a list may have nothing but such.
                    if self.is_log and len(sources) == 1 and not lists_nothing(slot) and not self.may_be_slack(record, slot):
                        ways.append((self.plain, plain))
                    if is_found:
                        ways.append((self.recovered, recovered))
                    for result, rows in ways:
                        self.check_record(record, at, rows, result, whole)
        if self.is_log:
            self.judge_strays(recovered)
        # The file header promises record 1 to a log that was never written.
        if self.case.kinds == ["never written"] and struct.unpack_from("<Q", all_slots[0], CHUNK_HEADER + 8) != (1,) and self.plain.rows:
            self.find("a log that was never written has no rows", f"{len(self.plain.rows)} rows", self.plain)

    def may_be_slack(self, record, slot):
        """Whether only the record before says that this one is live, and that may be damaged."""
        is_beyond = record.offset >= struct.unpack_from("<I", slot, 48)[0]
        return is_beyond and "left open" in self.case.kinds and len(self.case.kinds) > 1

    def judge_strays(self, recovered):
        """Chunks that stand in no slot are found with `recover`, from their header to the next chunk."""
        data = bytes(self.case.log.data)
        for chunk in {id(chunk): chunk for chunk in self.case.log.strays}.values():
            header = chunk.data[:CHUNK_HEADER]
            for at in [match.start() for match in re.finditer(re.escape(header), data) if (match.start() - FILE_HEADER) % CHUNK]:
                until = data.find(CHUNK_MAGIC, at + 1, at + CHUNK)
                slot = data[at : until if until > 0 else at + CHUNK]
                for record in chunk.records.values():
                    if record.values and chunk.is_unchanged(record, slot):
                        self.counts["records judged in strays"] += 1
                        self.check_record(record, at + record.offset, recovered, self.recovered, True)

    def check_record(self, record, at, rows, result, whole):
        how = "recover" if result is self.recovered else "a plain scan"
        found = rows.get(at, [])
        same = [row for row in found if event_of(row) == record.values]
        if not found:
            if any(event_of(row) == record.values for others in rows.values() for row in others):
                return  # A copy of it was given.
            self.find(f"an unchanged record is in {how}", f"record {record.values['record_id']} at {at:#x} is not there", result)
        elif not same:
            pairs = [(column, value, found[0].get(column)) for column, value in record.values.items()]
            parts = [f"{column}: {short(a)} <> {short(b)}" for column, a, b in pairs if a != b]
            detail = f"record {record.values['record_id']} at {at:#x}: {'; '.join(parts[:4])}; error: {found[0]['error']}"
            self.find(f"an unchanged record has its values in {how}", detail, result)
        elif whole and all(row["error"] for row in same):
            self.find(f"an unchanged record has no error in {how}", f"at {at:#x}: {same[0]['error']}", result)

    def by_offset(self, result):
        rows = collections.defaultdict(list)
        for row in result.dicts():
            if row["record_offset"] is not None:
                rows[int(row["record_offset"])].append(row)
        return rows

    def check_recover(self):
        """All that a plain scan gives."""
        if self.plain.error or self.recovered.error:
            return
        column = self.recovered.columns.index("recovered")
        more = collections.Counter(row[:column] + row[column + 1 :] for row in self.recovered.rows)
        missing = collections.Counter(self.plain.rows) - more
        # What does not read in its slot may be a stray chunk's.
        error, place = (self.plain.columns.index(name) for name in ("error", "record_offset"))
        given = {row[place] for row in self.recovered.rows}
        missing = {row: count for row, count in missing.items() if row[error] is None or row[place] not in given}
        if missing:
            row = dict(zip(self.plain.columns, next(iter(missing))))
            detail = f"{sum(missing.values())} rows are missing, first record {row['record_id']} at {row['record_offset']}"
            self.find("recover gives all of a plain scan", f"{detail}, error: {row['error']}", self.plain, self.recovered)

    # ---- Ways to ask

    def options(self):
        """Arguments, and the rows that they give on one thread."""
        more = self.random.choice(["", "", ", recover := true", ", verify := true", ", on_error := 'skip'"])
        arguments = WHOLE + more
        if more in ("", ", recover := true"):
            return arguments, self.recovered if more else self.plain
        return arguments, self.run(self.one, self.call(arguments))

    def check_threads(self):
        arguments, rows = self.options()
        self.compare("rows do not depend on threads", rows, self.run(self.four, self.call(arguments)))

    def check_long(self):
        """The same chunks again and again, so that there is work for several threads."""
        long, data = self.path_of("long.evtx"), bytes(self.case.log.data)
        body = data[FILE_HEADER : len(data) - (len(data) - FILE_HEADER) % CHUNK]
        if not self.is_log or not body:
            return
        pathlib.Path(long).write_bytes(data[:FILE_HEADER] + (LONG * CHUNK // len(body)) * body + data[FILE_HEADER + len(body) :])
        columns = "record_offset, record_id, time_created, event_id, error, hash(xml), hash(json), hash(event_data::VARCHAR)"
        sql = f"SELECT {columns} FROM {self.source(WHOLE, quoted(long))}"
        rows = self.run(self.one, sql)
        self.compare("rows do not depend on threads", rows, self.run(self.four, sql))
        self.compare("rows do not depend on the run", rows, self.run(self.one, sql))

    def check_repeat(self):
        arguments, rows = self.options()
        self.compare("rows do not depend on the run", rows, self.run(self.one, self.call(arguments)))

    def projections(self, rows):
        """Some subsets of the columns."""
        columns = rows.columns
        yield [self.random.choice(columns)]
        yield [column for column in columns if column != "error"]
        yield [column for column in columns if self.random.random() < self.random.choice([0.1, 0.5])] or columns[:1]

    def check_projection(self):
        arguments, rows = self.options()
        if rows.error:
            return
        for columns in self.projections(rows):
            some = self.run(self.one, f"SELECT {as_texts(columns)} FROM {self.source(arguments)}")
            self.compare("rows do not depend on projection", projected(rows, columns), some)
        count = self.run(self.one, f"SELECT count(*) FROM {self.source(arguments)}")
        if count.rows != [(len(rows.rows),)]:
            self.find("the count is that of the rows", f"{count.rows}{count.error} <> {len(rows.rows)}", rows, count)

    def check_arguments(self):
        """Columns that are not declared change nothing."""
        rows = self.run(self.one, self.call())
        if rows.columns:
            self.compare("rows do not depend on xml, json, location", projected(self.plain, rows.columns), rows)

    def check_skip(self):
        more = self.random.choice(["", ", recover := true", ", verify := true"])
        rows = self.run(self.one, self.call(WHOLE + more))
        if rows.error:
            return
        error = rows.columns.index("error")
        sound = dataclasses.replace(rows, rows=[row for row in rows.rows if row[error] is None])
        arguments = f"{WHOLE}{more}, on_error := 'skip'"
        for columns in [rows.columns, *self.projections(rows)]:
            some = self.run(self.one, f"SELECT {as_texts(columns)} FROM {self.source(arguments)}")
            self.compare("'skip' gives the rows without an error", projected(sound, columns), some)

    def check_fail(self):
        more = self.random.choice(["", ", verify := true"])
        rows = self.run(self.one, self.call(WHOLE + more))
        if rows.error:
            return
        error = rows.columns.index("error")
        errors = [row[error] for row in rows.rows if row[error] is not None]
        arguments = f"{WHOLE}{more}, on_error := 'fail'"
        for columns in [rows.columns, *self.projections(rows)]:
            some = self.run(self.one, f"SELECT {as_texts(columns)} FROM {self.source(arguments)}")
            if errors and errors[0] not in some.error:
                self.find("'fail' fails with the first error", f"{errors[0]} <> {some.error or 'none'}", rows, some)
            elif not errors:
                self.compare("'fail' gives all rows of a sound log", projected(rows, columns), some)

    def check_verify(self):
        """Only what is wrong with checksums is added."""
        rows = self.run(self.one, self.call(f"{WHOLE}, verify := true"))
        if rows.error or self.plain.error:
            return
        missing = collections.Counter(self.plain.rows) - collections.Counter(rows.rows)
        more = collections.Counter(rows.rows) - collections.Counter(self.plain.rows)
        error = rows.columns.index("error")
        other = [row for row in more if "checksum is" not in (row[error] or "")]
        if missing or other:
            self.find("verify adds what checksums say", f"{sum(missing.values())} rows less, {len(other)} more", self.plain, rows)

    def check_limit(self):
        arguments, rows = self.options()
        if rows.error:
            return
        limit, offset = self.random.choice([0, 1, 2, 10, 100]), self.random.choice([0, 0, 1, 5, 50])
        for connection in (self.one, self.four):
            some = self.run(connection, f"{self.call(arguments)} LIMIT {limit} OFFSET {offset}")
            self.compare("LIMIT takes the first rows", dataclasses.replace(rows, rows=rows.rows[offset : offset + limit]), some)

    def check_files(self):
        """With another file, before it or behind it, each gives what it gives alone. What is known of templates is shared."""
        arguments, rows = self.options()
        other = self.path_of("other.evtx")
        pathlib.Path(other).write_bytes(self.random.choice([self.case.sound.data, self.case.log.data]))
        others = self.run(self.one, self.call(arguments, quoted(other)))
        if rows.error or others.error:
            return
        for files, expected in [([self.path, other], rows.rows + others.rows), ([other, self.path], others.rows + rows.rows)]:
            # Files come in the order of the list.
            paths = f"[{', '.join(map(quoted, files))}]"
            both = self.run(self.random.choice([self.one, self.four]), self.call(arguments, paths))
            self.compare("rows do not depend on other files", dataclasses.replace(rows, rows=expected), both)

    # ---- Predicates

    def check_pushdown(self):
        more = self.random.choice(["", "", ", recover := true", ", verify := true", ", on_error := 'skip'"])
        source = self.source(WHOLE + more)
        made = self.run(self.one, f"CREATE OR REPLACE TEMP TABLE log AS FROM {source}")
        if made.error or self.recovered.error:
            return
        for _ in range(4):
            predicate = self.predicate()
            columns = self.random.choice(["count(*)", AS_TEXT, "record_id::VARCHAR", "event_id::VARCHAR, error"])
            expected = self.run(self.one, f"SELECT {columns} FROM log WHERE {predicate}")
            sql = f"SELECT {columns} FROM {source} WHERE {predicate}"
            self.counts["predicates"] += 1
            for connection, invariant in [(self.one, "pushdown changes no rows"), (self.off, "predicates are those of DuckDB")]:
                self.compare(invariant, expected, self.run(connection, sql))

    def predicate(self, depth=0):
        choice = self.random
        if depth < 2 and choice.random() < 0.35:
            parts = [self.predicate(depth + 1) for _ in range(2)]
            return choice.choice([f"({parts[0]} AND {parts[1]})", f"({parts[0]} OR {parts[1]})", f"NOT ({parts[0]})"])
        columns = [column for column in self.recovered.columns if column not in ("event_data", "filename", "recovered")]
        operand, constants = choice.choice(columns), ["0"]
        if choice.random() < 0.25:
            names = self.names()
            operand = f"event_data[{quoted(choice.choice(names))}]" if names else operand
        rows = self.one.execute(f"SELECT DISTINCT ({operand})::VARCHAR FROM log ORDER BY 1 LIMIT 200").fetchall()
        values = [value for (value,) in rows if value is not None and len(value) < 2000]
        constants = [quoted(choice.choice(values)) for _ in range(3)] if values else ["NULL"] * 3
        form = choice.choice(["{} = {}", "{} = {}", "{} <> {}", "{} < {}", "{} >= {}", "{} IS NULL", "{} IS NOT NULL",
                              "{} IN ({}, {})", "{} BETWEEN {} AND {}", "{} IS DISTINCT FROM {}", "{} IS NOT DISTINCT FROM {}",
                              "{} NOT IN ({}, {})", "{}::VARCHAR LIKE {}"])  # fmt: skip
        return form.format(operand, *constants)

    def names(self):
        sql = "SELECT DISTINCT unnest(map_keys(event_data)) FROM log WHERE event_data IS NOT NULL ORDER BY 1 LIMIT 200"
        return [name for (name,) in self.one.execute(sql).fetchall() if name is not None]

    # ---- What is told of events, files and chunks

    def check_events(self):
        if self.plain.error:
            return
        event = self.plain.columns.index("event_id")
        ids = sorted({row[event] for row in self.plain.rows} - {None})
        ids = self.random.sample(ids, min(len(ids), self.random.choice([1, 2, 3]))) or ["1"]
        rows = self.run(self.one, self.call(f"{WHOLE}, event_id := [{', '.join(ids)}]"))
        if rows.error:
            self.find("the fields of events are known", rows.error, rows)
            return
        columns = [column for column in self.plain.columns if column in rows.columns]
        # Damage to chunks, and to frames of records, may have cost one.
        has_error, has_id = (self.plain.columns.index(name) for name in ("error", "record_id"))
        has_event = rows.columns.index("event_id")
        damage = {row for row in projected(self.plain, columns).rows if row[columns.index("error")]}
        other = [row for row in projected(rows, columns).rows if row[columns.index("event_id")] not in ids]
        if any(row not in damage for row in other):
            self.find("event_id gives the rows of its events", f"{len(other)} others", self.plain, rows)
        of_chunks = [row for row in self.plain.rows if row[has_id] is None and row[has_error]]
        if len(of_chunks) > len(other):
            self.find("event_id tells of damage", f"{len(other)} rows for {len(of_chunks)}", self.plain, rows)
        of_events = [row for row in self.plain.rows if row[event] in ids]
        found = dataclasses.replace(rows, rows=[row for row in rows.rows if row[has_event] in ids])
        expected = projected(dataclasses.replace(self.plain, rows=of_events), columns)
        self.compare("event_id gives the rows of its events", expected, projected(found, columns))
        again = self.run(self.four, rows.sql)
        self.compare("rows do not depend on threads", rows, again)

    def check_metadata(self):
        path = quoted(self.path)
        chunks = self.run(self.one, f"FROM evtx_chunk_metadata({path})")
        files = self.run(self.one, f"FROM evtx_file_metadata({path})")
        schema = self.run(self.one, f"FROM evtx_schema({path})")
        if self.plain.error:
            for result in (chunks, files, schema):
                if not result.error:
                    self.find("what is no log is refused", f"{len(result.rows)} rows", result)
            return
        for result in (chunks, files, schema):
            if result.error:
                self.find("a report fails", result.error, result)
                return
        rows = self.plain.dicts()
        records = collections.defaultdict(list)
        for row in rows:
            if row["record_id"] is not None:
                # A record whose end the chunk does not hold has a row, and counts only where it is known where it ends.
                is_whole = "which cannot be right" not in (row["error"] or "")
                records[int(row["chunk_index"])].append((int(row["record_id"]), is_whole))
        file = files.dicts()[0]
        self.check_told("file", file, [record for chunk in records.values() for record in chunk], files)
        errors = [row["error"] for row in rows if row["error"]]
        if self.whole_errors(errors) and file["error"] is None:
            self.find("the metadata tells of damage", f"none, but a row has {errors[0]}", files, self.plain)
        for chunk in chunks.dicts():
            if chunk["records"] is not None:
                self.check_told("chunk", chunk, records.get(chunk["chunk_index"], []), chunks)

    def check_told(self, what, told, records, result):
        every, whole = [number for number, _ in records], [number for number, is_whole in records if is_whole]
        told = (told["records"], told["first_record_id"], told["last_record_id"])
        span = [(function(every, default=None), function(whole, default=None)) for function in (min, max)]
        if not (len(whole) <= told[0] <= len(every) and told[1] in span[0] and told[2] in span[1]):
            detail = f"records, first and last ID: {told} <> {len(every)} of which {len(whole)} are whole, {span}"
            self.find(f"the metadata of a {what} is that of its rows", detail, result, self.plain)

    def whole_errors(self, errors):
        """Errors that are about frames and chunks, of which there is metadata."""
        frames = ("claims a size", "no record starts", "the chunk starts with", "is cut short", "puts its free space")
        return [error for error in errors if any(text in error for text in frames)]

    # ---- What it takes

    def check_interrupt(self):
        """A scan of the log again and again ends soon after it was told to."""
        paths = "[" + ", ".join([quoted(self.path)] * 400) + "]"
        call = self.random.choice([
            f"SELECT count(xml), count(json), count(event_data), count(error) FROM {self.source(WHOLE, paths)}",
            f"SELECT count(*) FROM {self.source(f'{WHOLE}, recover := true', paths)} WHERE xml = 'x'",
            f"SELECT count(*) FROM {self.source('event_id := [1, 4624, 5156]', paths)}",
            f"SELECT count(*) FROM evtx_schema({paths})",
            f"SELECT count(records) FROM evtx_file_metadata({paths})",
        ])  # fmt: skip
        connection = self.random.choice([self.one, self.four])
        told = []

        def interrupt():
            told.append(time.monotonic())
            connection.interrupt()

        timer = threading.Timer(self.random.choice([0.005, 0.02, 0.05, 0.1]), interrupt)
        timer.start()
        result = read(connection, call)
        end = time.monotonic()
        timer.cancel()
        timer.join()
        if result.error.startswith("InterruptException") and told:
            took = end - told[0]
            self.counts["interrupts"] += 1
            if took > INTERRUPT:
                self.counts["interrupts over 100 ms"] += 1
                self.notes.append(f"{self.case.title()}: an interrupt took {1000 * took:.0f} ms: {call.replace(paths, '[...]')}")
            self.worst["interrupt, ms"] = max(self.worst["interrupt, ms"], int(1000 * took))
            if took > MAX_INTERRUPT:
                self.find("an interrupt is answered", f"after {took:.2f} s", result)
        # One that came too late is for the next query.
        read(connection, "SELECT 1")

    def check_memory(self):
        """A scan on one thread that keeps nothing takes no more than its batch."""
        columns = "max(hash(COLUMNS(* EXCLUDE (filename))))"
        sql = f"SELECT {columns} FROM {self.source(f'{WHOLE}, recover := true')}"
        before = reset_peak()
        if before is None:
            return
        result = self.run(self.one, sql)
        taken = peak() - before
        self.worst["memory, MiB"] = max(self.worst["memory, MiB"], taken >> 20)
        if taken > MAX_MEMORY:
            self.find("memory is bounded", f"{taken >> 20} MiB", result)


CHECKS = {name.removeprefix("check_"): getattr(Judge, name) for name in dir(Judge) if name.startswith("check_")}
# Those that every case has, and parts of others.
del CHECKS["unchanged"], CHECKS["recover"], CHECKS["record"], CHECKS["told"]


def as_texts(columns):
    return ", ".join(f'"{column}"::VARCHAR' for column in columns)


def projected(result, columns):
    places = [result.columns.index(column) for column in columns]
    return dataclasses.replace(result, columns=columns, rows=[tuple(row[place] for place in places) for row in result.rows])


def lists_nothing(slot):
    """Whether the header of a chunk says that it has no records yet."""
    return struct.unpack_from("<QQ", slot, 24) == (2**64 - 1, 2**64 - 1) if len(slot) >= CHUNK_HEADER else False


def is_unchanged_but_copy(chunk, record, slot):
    """Whether of a record only the copy of its size was touched, and it is beyond doubt all the same: the chunk's header, the
    record behind it and, but for its size, the frame of the one before are as they were."""
    if slot[:52] != chunk.data[:52] or len(slot) < CHUNK or not chunk.is_unchanged_but_copy(record, slot):
        return False
    before = [other for other in chunk.records.values() if other.offset + other.size == record.offset]
    behind = chunk.records.get(record.offset + record.size)
    heads = [span for other in before for span in [(other.offset, other.offset + 4), (other.offset + 8, other.offset + 24)]]
    is_reached = all(slot[start:end] == chunk.data[start:end] for start, end in heads)
    return is_reached and (behind is None or chunk.is_unchanged(behind, slot))


def count_signatures(slot):
    return sum(slot[at : at + 8] == CHUNK_MAGIC for at in range(0, len(slot), SECTOR))


def reset_peak():
    """Makes what memory this process has now its peak, and gives it; None where the system does not tell."""
    try:
        pathlib.Path("/proc/self/clear_refs").write_text("5")
        return peak()
    except OSError:
        return None


def peak():
    return 1024 * int(re.search(r"VmHWM:\s+(\d+)", pathlib.Path("/proc/self/status").read_text()).group(1))


# ---- Smaller cases


# For how many seconds smaller cases are tried, and from how few sound bytes between them on spans are one.
SHRINK, GAP = 20, 8


def shrink(cases, judge, case, finding):
    """The case with less damage in it, as long as it breaks the same invariant, and the spans of damage that are left."""
    end = time.monotonic() + SHRINK
    checks = [finding.check] if finding.check else []

    def breaks(candidate):
        if time.monotonic() > end:
            return False
        return any(other.invariant == finding.invariant for other in judge.judge_by(candidate, checks))

    numbers = list(range(len(case.kinds)))
    for number in list(numbers):
        fewer = [other for other in numbers if other != number]
        candidate = cases.make(case.seed, fewer)
        if fewer and breaks(candidate):
            numbers, case = fewer, candidate
    sound = case.sound.data
    if len(sound) != len(case.log.data):
        return case, []

    def mend(spans):
        nonlocal case
        candidate = dataclasses.replace(case, log=case.log.copy())
        for start, end in spans:
            candidate.log.data[start:end] = sound[start:end]
        if breaks(candidate):
            case = candidate
        elif len(spans) > 1:
            mend(spans[: len(spans) // 2])
            mend(spans[len(spans) // 2 :])

    mend(changes(sound, case.log.data))
    return case, changes(sound, case.log.data)


def changes(old, new):
    """The spans in which two logs of one size differ, with few sound bytes in them."""
    spans = []
    for at, (a, b) in enumerate(zip(old, new)):
        if a != b:
            if spans and spans[-1][1] >= at - GAP:
                spans[-1][1] = at + 1
            else:
                spans.append([at, at + 1])
    return spans
