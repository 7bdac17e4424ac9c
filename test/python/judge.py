"""Reads damaged logs in many ways, and reports broken invariants.

A case is a log of a few chunks with damage. Its seed determines everything. The invariants:

- A record whose bytes, definitions and names are unchanged keeps its values.
- Rows, values and errors depend neither on threads, nor on the selected columns or rows, nor on the run.
- `recover` returns at least the rows of a plain scan. `on_error` applies to the same rows.
- The metadata of files and chunks agrees with their rows.
- Time and memory are bounded, and interrupts take effect.
"""

import collections
import dataclasses
import functools
import os
import pathlib
import random
import re
import struct
import time

import duckdb
from client import connect, interrupting, list_of, quoted
from damage import KINDS, Log, repair
from structures import CHUNK, CHUNK_HEADER, CHUNK_MAGIC, FILE_HEADER, FILE_MAGIC, SECTOR, Chunk, file_header, place, slots

# The processor time in seconds, of all threads, that a query may take, and that an interrupt may take. Interrupts that take longer than
# INTERRUPT by the clock are notes, as the machine may be loaded.
MAX_TIME, MAX_INTERRUPT, INTERRUPT = 5, 1, 0.1
# The processor time in seconds after which a query is interrupted.
STOP = 30
# The memory in bytes that a query on one thread may take: 64 MiB, and room for a batch in DuckDB and in the columns.
MAX_MEMORY = 96 << 20
# The most chunks of a case, and the number of pieces of a log to choose from.
CHUNKS, PIECES = 4, 3
# The largest text of a log, in bytes.
MAX_TEXT = 16 << 20
# The chunks of a log that several threads read at once: more than two blocks.
LONG = 40

# Columns that describe where a record is, not its event.
PLACES = ("error", "filename", "chunk_index", "record_offset", "recovered")
WHOLE = "location := true, xml := true, json := true"
# All columns as text, because the client drops nanoseconds.
AS_TEXT = "COLUMNS(*)::VARCHAR"


# Environment variables that name folders of logs.
FOLDERS = ("EVTX_CORPUS", "EVTX_VARIED", "EVTX_COLLECTIONS")


def find_logs(folders=None, largest=1 << 40):
    """The logs of up to some bytes in folders and their subfolders. By default, the environment names the folders, or the samples are
    used."""
    named = folders or [os.environ[name] for name in FOLDERS if os.environ.get(name)]
    named = named or [pathlib.Path(__file__).resolve().parents[2] / "samples"]
    paths = (path.resolve() for folder in named for path in pathlib.Path(folder).rglob("*.evtx"))
    return sorted(path for path in paths if path.stat().st_size <= largest)


# ---- Cases


@dataclasses.dataclass
class Case:
    """A damaged log, and how it was made."""

    seed: int
    source: pathlib.Path
    kinds: list
    repaired: bool
    log: Log
    # The log before the damage.
    sound: Log

    def title(self):
        kinds = " + ".join(self.kinds) or "none"
        return f"seed {self.seed}: {self.source.name}, {kinds}{', checksums repaired' if self.repaired else ''}"


class Cases:
    """Makes cases from logs. Reads each sound log once."""

    def __init__(self, extension, logs, folder):
        self.logs, self.folder = logs, folder
        self.connection = connect(extension, threads=1)

    @functools.lru_cache(maxsize=256)
    def piece(self, path, number):
        """A log of a few chunks of another, whose records have their values."""
        data = path.read_bytes()
        every = [slot for slot in slots(data) if len(slot) == CHUNK and slot.startswith(CHUNK_MAGIC)]
        if not every:
            return None
        choice = random.Random(f"{path.name} {number}")
        count = min(choice.choice([1, 1, 1, 2, 2, 3, CHUNKS]), len(every))
        first = choice.randrange(len(every) - count + 1)
        chunks = [Chunk(slot) for slot in every[first : first + count]]
        whole = file_header(data, count) + b"".join(chunk.data for chunk in chunks)
        sound = pathlib.Path(self.folder, "sound.evtx")
        sound.write_bytes(whole)
        source = f"read_evtx({quoted(sound)}, {WHOLE})"
        # Some hostile logs expand to gigabytes of text.
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
        """The case of a seed. `only` limits the damage to some of its steps, by number."""
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


@dataclasses.dataclass
class Result:
    """The result of a query: rows or an error."""

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
    """Runs a query, and interrupts it after some seconds of processor time."""
    start = time.process_time()
    try:
        with interrupting(connection, seconds):
            cursor = connection.execute(sql)
            rows, columns, error = cursor.fetchall(), [column[0] for column in cursor.description], ""
    except duckdb.Error as fault:
        rows, columns, error = [], [], f"{type(fault).__name__}: {fault}"
    return Result(sql, columns, rows, error, time.process_time() - start)


def event_of(row):
    return {column: value for column, value in row.items() if column not in PLACES}


def differing(one, other):
    """Describes the first difference between two results."""
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
    """A broken invariant: its name, the details, and the queries that show it."""

    invariant: str
    detail: str
    queries: list
    # The check that found it. Empty for the checks that every case runs.
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
        # Oddities that a slow machine may cause.
        self.notes = []

    def judge(self, case, count=3):
        """The findings about a case, from some of the checks."""
        return self.judge_by(case, random.Random(f"{case.seed} checks").sample(sorted(CHECKS), count))

    def judge_all(self, case):
        """The findings about a case, from every check."""
        return self.judge_by(case, sorted(CHECKS))

    def findings_of(self, cases, seeds):
        """The findings about the cases of some seeds, as text. Each case gets one of the checks."""
        for case in filter(None, map(cases.make, seeds)):
            for finding in self.judge(case, 1):
                yield f"{case.title()}: {finding.invariant}: {finding.detail}: {finding.queries}"

    def judge_by(self, case, checks):
        """The findings about a case from the named checks. What a check does depends only on the seed."""
        pathlib.Path(self.path).write_bytes(case.log.data)
        self.case, self.findings, self.check = case, [], ""
        self.plain = self.run(self.one, self.call(WHOLE))
        self.recovered = self.run(self.one, self.call(f"{WHOLE}, recover := true"))
        self.counts["cases"] += 1
        self.counts.update(f"damage: {kind}" for kind in case.kinds)
        self.counts["rows"] += len(self.plain.rows)
        data = case.log.data
        self.is_log = data[:8] == FILE_MAGIC and len(data) >= FILE_HEADER
        if self.is_log == bool(self.plain.error) or self.plain.error and "not an EVTX log" not in self.plain.error:
            self.find("a scan fails", self.plain.error or "a file that is not a log is read", self.plain)
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
        """A query for all columns of a scan."""
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
            self.find("time is bounded", f"{result.seconds:.1f} s of processor time", result)
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
        """Records whose bytes are unchanged keep their values."""
        plain, recovered = self.by_offset(self.plain), self.by_offset(self.recovered)
        all_slots = slots(bytes(self.case.log.data))
        for number, (slot, sources) in enumerate(zip(all_slots, self.case.log.sources)):
            # Without a file header, the scan finds chunks by their signature at any sector.
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
                    # In a spliced slot, the header of one chunk marks records of the other as slack. If the header
                    # lists no records, all of them may be slack.
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
        """Whether this record is live only because it follows another one, which may be damaged."""
        is_beyond = record.offset >= struct.unpack_from("<I", slot, 48)[0]
        return is_beyond and "left open" in self.case.kinds and len(self.case.kinds) > 1

    def judge_strays(self, recovered):
        """`recover` finds chunks outside the slots, from their header to the next chunk."""
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
                return  # The scan returned a copy.
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
        """`recover` returns at least the rows of a plain scan."""
        if self.plain.error or self.recovered.error:
            return
        column = self.recovered.columns.index("recovered")
        more = collections.Counter(row[:column] + row[column + 1 :] for row in self.recovered.rows)
        missing = collections.Counter(self.plain.rows) - more
        # A record that is unreadable in its slot may belong to a stray chunk.
        error, place = (self.plain.columns.index(name) for name in ("error", "record_offset"))
        given = {row[place] for row in self.recovered.rows}
        missing = {row: count for row, count in missing.items() if row[error] is None or row[place] not in given}
        if missing:
            row = dict(zip(self.plain.columns, next(iter(missing))))
            detail = f"{sum(missing.values())} rows are missing, first record {row['record_id']} at {row['record_offset']}"
            self.find("recover gives all of a plain scan", f"{detail}, error: {row['error']}", self.plain, self.recovered)

    # ---- Ways to ask

    def options(self):
        """Arguments, and their rows on one thread."""
        more = self.random.choice(["", "", ", recover := true", ", verify := true", ", on_error := 'skip'"])
        arguments = WHOLE + more
        if more in ("", ", recover := true"):
            return arguments, self.recovered if more else self.plain
        return arguments, self.run(self.one, self.call(arguments))

    def check_threads(self):
        arguments, rows = self.options()
        self.compare("rows do not depend on threads", rows, self.run(self.four, self.call(arguments)))

    def check_long(self):
        """Repeats the chunks, so that several threads have work."""
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
        """Optional columns do not change the others."""
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
        """`verify` adds only rows about checksums."""
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
        """Scanning another file before or after it does not change a file's rows, although files share templates."""
        arguments, rows = self.options()
        other = self.path_of("other.evtx")
        pathlib.Path(other).write_bytes(self.random.choice([self.case.sound.data, self.case.log.data]))
        others = self.run(self.one, self.call(arguments, quoted(other)))
        if rows.error or others.error:
            return
        for files, expected in [([self.path, other], rows.rows + others.rows), ([other, self.path], others.rows + rows.rows)]:
            # Rows follow the order of the list.
            both = self.run(self.random.choice([self.one, self.four]), self.call(arguments, list_of(files)))
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
        operand = choice.choice(columns)
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

    # ---- Events and metadata

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
        # A damaged chunk or frame may have contained one of the events, so its row stays.
        has_error, has_id = (self.plain.columns.index(name) for name in ("error", "record_id"))
        has_event = rows.columns.index("event_id")
        damage = {row for row in projected(self.plain, columns).rows if row[columns.index("error")]}
        other = [row for row in projected(rows, columns).rows if row[columns.index("event_id")] not in ids]
        if any(row not in damage for row in other):
            self.find("event_id gives the rows of its events", f"{len(other)} others", self.plain, rows)
        of_chunks = [row for row in self.plain.rows if row[has_id] is None and row[has_error]]
        if len(of_chunks) > len(other):
            self.find("event_id keeps the rows for damage", f"{len(other)} rows for {len(of_chunks)}", self.plain, rows)
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
                    self.find("a file that is not a log is refused", f"{len(result.rows)} rows", result)
            return
        for result in (chunks, files, schema):
            if result.error:
                self.find("a report fails", result.error, result)
                return
        rows = self.plain.dicts()
        records = collections.defaultdict(list)
        for row in rows:
            if row["record_id"] is not None:
                # A record that runs past its chunk has a row. The metadata counts it only if its end is known.
                is_whole = "which cannot be right" not in (row["error"] or "")
                records[int(row["chunk_index"])].append((int(row["record_id"]), is_whole))
        file = files.dicts()[0]
        self.check_told("file", file, [record for chunk in records.values() for record in chunk], files)
        errors = [row["error"] for row in rows if row["error"]]
        if self.whole_errors(errors) and file["error"] is None:
            self.find("the metadata reports damage", f"none, but a row has {errors[0]}", files, self.plain)
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
        """The errors about frames and chunks, which the metadata covers."""
        frames = ("claims a size", "no record starts", "the chunk starts with", "is cut short", "puts its free space")
        return [error for error in errors if any(text in error for text in frames)]

    # ---- Time and memory

    def check_interrupt(self):
        """A long query ends soon after an interrupt."""
        paths = list_of([self.path] * 400)
        call = self.random.choice([
            f"SELECT count(xml), count(json), count(event_data), count(error) FROM {self.source(WHOLE, paths)}",
            f"SELECT count(*) FROM {self.source(f'{WHOLE}, recover := true', paths)} WHERE xml = 'x'",
            f"SELECT count(*) FROM {self.source('event_id := [1, 4624, 5156]', paths)}",
            f"SELECT count(*) FROM evtx_schema({paths})",
            f"SELECT count(records) FROM evtx_file_metadata({paths})",
        ])  # fmt: skip
        connection = self.random.choice([self.one, self.four])
        with interrupting(connection, self.random.choice([0.005, 0.02, 0.05, 0.1])) as told:
            result = read(connection, call)
            end, ended = time.process_time(), time.perf_counter()
        if result.error.startswith("InterruptException") and told:
            spent, took = end - told[0], ended - told[1]
            self.counts["interrupts"] += 1
            if took > INTERRUPT:
                self.counts["interrupts over 100 ms"] += 1
                self.notes.append(f"{self.case.title()}: an interrupt took {1000 * took:.0f} ms: {call.replace(paths, '[...]')}")
            self.worst["interrupt, ms"] = max(self.worst["interrupt, ms"], int(1000 * took))
            if spent > MAX_INTERRUPT:
                self.find("an interrupt is answered", f"after {spent:.2f} s of processor time", result)
        # A late interrupt hits the next query.
        read(connection, "SELECT 1")

    def check_memory(self):
        """A scan on one thread that keeps nothing needs little memory."""
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
# Checks that every case runs, and parts of other checks.
del CHECKS["unchanged"], CHECKS["recover"], CHECKS["record"], CHECKS["told"]


def as_texts(columns):
    return ", ".join(f'"{column}"::VARCHAR' for column in columns)


def projected(result, columns):
    places = [result.columns.index(column) for column in columns]
    return dataclasses.replace(result, columns=columns, rows=[tuple(row[place] for place in places) for row in result.rows])


def lists_nothing(slot):
    """Whether a chunk's header lists no records yet."""
    return struct.unpack_from("<QQ", slot, 24) == (2**64 - 1, 2**64 - 1) if len(slot) >= CHUNK_HEADER else False


def is_unchanged_but_copy(chunk, record, slot):
    """Whether only the copy of a record's size changed, and the record is certain all the same: the chunk's header, the next record
    and, apart from its size, the frame of the previous record are unchanged."""
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
    """Resets the process's peak of memory, and returns it. None if the system does not support that."""
    try:
        pathlib.Path("/proc/self/clear_refs").write_text("5")
        return peak()
    except OSError:
        return None


def peak():
    return 1024 * int(re.search(r"VmHWM:\s+(\d+)", pathlib.Path("/proc/self/status").read_text()).group(1))


# ---- Smaller cases


# The seconds to spend on smaller cases, and the number of sound bytes up to which two spans count as one.
SHRINK, GAP = 20, 8


def shrink(cases, judge, case, finding):
    """The case with as little damage as still breaks the invariant, and the remaining spans of damage."""
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
    """The spans in which two logs of the same size differ."""
    spans = []
    for at, (a, b) in enumerate(zip(old, new)):
        if a != b:
            if spans and spans[-1][1] >= at - GAP:
                spans[-1][1] = at + 1
            else:
                spans.append([at, at + 1])
    return spans
