"""Kinds of damage to a log, by name. They know where its structures are, and choose at random.

A damaged log keeps its bytes and, for each chunk slot, the chunks that the bytes came from. It does not record what changed: the judge
compares each slot with those chunks.
"""

import dataclasses
import struct
import zlib

from structures import CHUNK, CHUNK_HEADER, FILE_FIELDS, FILE_HEADER, SECTOR, place

# Boundary values.
EDGES = [0, 1, 2, 3, 4, 7, 8, 23, 24, 27, 28, 63, 64, 127, 128, 255, 256, 511, 512, 0x7FFF, 0x8000, 0xFFFF, 0x10000]
EDGES += [0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 2**63 - 1, 2**63, 2**64 - 1]
FILE_KINDS = {what: (at, size) for what, at, size in FILE_FIELDS}


@dataclasses.dataclass
class Log:
    """A log being damaged."""

    data: bytearray
    # The chunks that each slot's bytes came from. Spliced slots have several.
    sources: list
    # Chunks that may lie outside the slots.
    strays: list = dataclasses.field(default_factory=list)

    def copy(self):
        return Log(bytearray(self.data), [list(sources) for sources in self.sources], list(self.strays))

    def let_stray(self):
        """From now on, chunks may start anywhere."""
        self.strays += [chunk for sources in self.sources for chunk in sources]

    def slot(self, random):
        """A slot that still has bytes, and the first chunk that it came from."""
        count = min(len(self.sources), max(1, -(-(len(self.data) - FILE_HEADER) // CHUNK)))
        slot = random.randrange(count)
        return slot, self.sources[slot][0]

    def put(self, at, new):
        """Overwrites bytes up to the end of the file."""
        end = min(at + len(new), len(self.data))
        if at < end:
            self.data[at:end] = new[: end - at]

    def field(self, random, accept=lambda what: True):
        """A field's kind, offset in the file, and size. Chooses the kind first, then a field of that kind."""
        slot, chunk = self.slot(random)
        kinds = [*chunk.kinds, *FILE_KINDS]
        kind = random.choice([what for what in kinds if accept(what)] or kinds)
        if kind in FILE_KINDS:
            return kind, *FILE_KINDS[kind]
        at, size = random.choice(chunk.kinds[kind])
        return kind, place(slot) + at, size

    def edge(self, random):
        """The offset of a structure's edge, or one byte off."""
        _, at, size = self.field(random)
        return at + random.choice([0, 0, size, 1, -1])


def flip_bits(log, random, donors):
    """Flips a few bits."""
    for _ in range(random.choice([1, 1, 1, 2, 4, 8])):
        at = random.choice([random.randrange(len(log.data)), log.edge(random)])
        if 0 <= at < len(log.data):
            log.data[at] ^= 1 << random.randrange(8)


def number(random, old, size):
    """A new number for a field."""
    choices = [
        old + random.choice([-8, -4, -2, -1, 1, 2, 4, 8]),
        old ^ (1 << random.randrange(8 * size)),
        random.choice(EDGES),
        random.randrange(CHUNK),
        random.randrange(1 << 8 * size),
        2 * old,
        old // 2,
    ]
    return random.choice(choices) % (1 << 8 * size)


def set_field(accept):
    """Damage that changes the number in a field of an accepted kind."""

    def damage(log, random, donors):
        _, at, size = log.field(random, accept)
        old = int.from_bytes(log.data[at : at + size], "little")
        log.put(at, number(random, old, size).to_bytes(size, "little"))

    return damage


def copy_field(log, random, donors):
    """Copies the number of another field of the same kind: an offset that leads elsewhere, or another size."""
    what, at, size = log.field(random)
    _, other, _ = log.field(random, lambda kind: kind == what)
    log.put(at, bytes(log.data[other : other + size]))


def circle(log, random, donors):
    """Points a link in a chain of names or templates to itself, backwards, or elsewhere."""
    slot, chunk = log.slot(random)
    links = [at for what in ("name link", "definition link") for at, _ in chunk.kinds.get(what, [])]
    heads = [at for what in ("chunk names", "chunk templates") for at, _ in chunk.kinds[what]]
    if links:
        for _ in range(random.choice([1, 2, 8])):
            at = random.choice([random.choice(links), random.choice(heads)])
            log.put(place(slot) + at, struct.pack("<I", random.choice(links)))


def cut(log, random, donors):
    """Ends the file at the edge of a structure."""
    del log.data[max(log.edge(random), 0) :]


def blank(log, random, donors):
    """Writes one byte, mostly zero, repeatedly from the edge of a structure on."""
    at, size = log.edge(random), random.choice([1, 4, 24, 64, 256, 512, 4096, CHUNK])
    log.put(max(at, 0), bytes([random.choice([0, 0, 0xFF, 0x2A])]) * size)


def noise(log, random, donors):
    """Writes random bytes from the edge of a structure on."""
    log.put(max(log.edge(random), 0), random.randbytes(random.choice([1, 2, 4, 16, 64, 512, 2048])))


def sector(log, random, donors):
    """Tears a write: sectors become zero, random, or copies of others."""
    count = len(log.data) // SECTOR
    at, other, run = random.randrange(max(count, 1)), random.randrange(max(count, 1)), random.choice([1, 1, 2, 8])
    new = bytes(log.data[other * SECTOR : (other + run) * SECTOR])
    log.put(at * SECTOR, random.choice([new, bytes(run * SECTOR), random.randbytes(run * SECTOR)]))


def records(log, random):
    slot, chunk = log.slot(random)
    return place(slot), chunk, sorted(chunk.records)


def copy_record(log, random, donors):
    """Copies a record, or just its BinXML, over others."""
    base, chunk, offsets = records(log, random)
    if offsets:
        start, onto, skip = random.choice(offsets), random.choice(offsets), random.choice([0, 0, 24])
        size = chunk.records[start].size
        log.put(base + onto + skip, bytes(log.data[base + start + skip : base + start + size]))


def hide_records(log, random, donors):
    """Grows a record over the next ones, as tools do to hide records."""
    base, chunk, offsets = records(log, random)
    if len(offsets) > 1:
        first = random.randrange(len(offsets) - 1)
        last = min(first + random.choice([1, 1, 2, 5]), len(offsets) - 1)
        end = offsets[last] + chunk.records[offsets[last]].size
        size = struct.pack("<I", end - offsets[first])
        log.put(base + offsets[first] + 4, size)
        if random.random() < 0.7:
            log.put(base + end - 4, size)


def renumber(log, random, donors):
    """Gives consecutive records duplicate or impossible IDs."""
    base, _, offsets = records(log, random)
    if offsets:
        first, count = random.randrange(len(offsets)), random.choice([1, 1, 2, 10, len(offsets)])
        start = random.choice([*EDGES, random.randrange(1 << 64)])
        step = random.choice([0, 1, 1, 2, -1])
        for number, at in enumerate(offsets[first : first + count]):
            log.put(base + at + 8, struct.pack("<Q", (start + number * step) % (1 << 64)))


def shift(log, random, donors):
    """Inserts or removes bytes at an edge, which moves the rest of the chunk."""
    slot, chunk = log.slot(random)
    at, by = log.edge(random), random.choice([1, 2, 4, 8, 16, 100])
    start, end = place(slot), min(place(slot) + CHUNK, len(log.data))
    if start <= at < end:
        body = bytes(log.data[at:end])
        moved = body[by:] + bytes(by) if random.random() < 0.5 else bytes(by) + body[:-by]
        log.put(at, moved[: end - at])


def swap_chunks(log, random, donors):
    """Swaps two slots."""
    a, b = log.slot(random)[0], log.slot(random)[0]
    if len(log.data) >= place(max(a, b) + 1):
        old = bytes(log.data[place(a) : place(a + 1)]), bytes(log.data[place(b) : place(b + 1)])
        log.put(place(a), old[1])
        log.put(place(b), old[0])
        log.sources[a], log.sources[b] = log.sources[b], log.sources[a]


def drop_chunk(log, random, donors):
    """Removes a slot."""
    slot, _ = log.slot(random)
    if len(log.sources) > 1:
        del log.data[place(slot) : place(slot + 1)]
        del log.sources[slot]


def repeat_chunk(log, random, donors):
    """Duplicates a slot."""
    slot, _ = log.slot(random)
    if len(log.data) >= place(len(log.sources)):
        log.data[place(slot) : place(slot)] = log.data[place(slot) : place(slot + 1)]
        log.sources.insert(slot, list(log.sources[slot]))


def other_chunk(log, random, donors):
    """Replaces a slot with one of another log, or inserts it."""
    slot, chunk = log.slot(random)[0], random.choice(donors)
    if len(log.data) >= place(slot + 1):
        if random.random() < 0.5:
            log.data[place(slot) : place(slot + 1)] = chunk.data
            log.sources[slot] = [chunk]
        else:
            log.data[place(slot) : place(slot)] = chunk.data
            log.sources.insert(slot, [chunk])


def splice(log, random, donors):
    """Replaces the start or the end of a slot with that of another chunk."""
    slot, own = log.slot(random)
    other = random.choice([random.choice(donors), random.choice(random.choice(log.sources))])
    edges = [at for at, _ in random.choice([own, other]).kinds.get("record magic", [])]
    at = random.choice([random.choice(edges or [CHUNK_HEADER]), CHUNK_HEADER, SECTOR * random.randrange(CHUNK // SECTOR)])
    if random.random() < 0.5:
        log.put(place(slot) + at, other.data[at:])
    else:
        log.put(place(slot), other.data[:at])
    log.sources[slot] = [*log.sources[slot], other]


def lost_bytes(log, random, donors):
    """Removes bytes, which moves the rest of the file."""
    at = max(log.edge(random), 0)
    log.let_stray()
    del log.data[at : at + random.choice([1, 2, 8, 100, SECTOR, 4096, 10000, CHUNK - SECTOR])]


def more_bytes(log, random, donors):
    """Inserts bytes, which moves the rest of the file."""
    at, count = max(log.edge(random), 0), random.choice([1, 2, 8, 100, SECTOR, 4096, 10000, CHUNK - SECTOR])
    log.let_stray()
    log.data[at:at] = random.choice([bytes(count), random.randbytes(count)])


def appended_log(log, random, donors):
    """Appends the end of another log."""
    chunk = random.choice(donors)
    log.strays.append(chunk)
    log.data += random.choice([bytes(log.data[:FILE_HEADER]), bytes(random.randrange(2 * SECTOR))]) + chunk.data


def never_written(log, random, donors):
    """A log that Windows created over old disk contents: one chunk, whose header lists no records."""
    slot, _ = log.slot(random)
    if len(log.data) < place(slot + 1):
        return
    log.data[FILE_HEADER:] = log.data[place(slot) : place(slot + 1)]
    log.sources = [log.sources[slot]]
    log.put(8, struct.pack("<QQQ", 0, 0, 1))
    log.put(42, struct.pack("<H", 1))
    none = 2**64 - 1
    log.put(place(0) + 8, struct.pack("<QQQQIIII", none, none, none, none, 128, 0, CHUNK_HEADER, 0))
    repair(log.data)


def left_open(log, random, donors):
    """A log that was copied while open: the headers of a chunk and of the file are out of date."""
    base, chunk, offsets = records(log, random)
    ids = [struct.unpack_from("<Q", chunk.data, at + 8)[0] for at in offsets]
    ends = [at + chunk.records[at].size for at in offsets]
    if len(offsets) > 1 and ids == [*range(ids[0], ids[0] + len(ids))] and ends[:-1] == offsets[1:]:
        last = random.randrange(len(offsets) - 1)
        first, numbers = struct.unpack_from("<Q", chunk.data, offsets[0] + 8)[0], struct.unpack_from("<Q", chunk.data, 8)[0]
        end = offsets[last] + chunk.records[offsets[last]].size
        log.put(base + 16, struct.pack("<Q", numbers + last))
        log.put(base + 32, struct.pack("<Q", first + last))
        log.put(base + 44, struct.pack("<II", offsets[last], end))
        log.put(24, struct.pack("<Q", first + last + 1))
        log.put(120, struct.pack("<I", 1))


def wrapped(log, random, donors):
    """A full log, whose newest chunks replaced the oldest."""
    count = len(log.sources)
    if count > 1 and len(log.data) >= place(count):
        by = random.randrange(1, count)
        body = bytes(log.data[place(0) : place(count)])
        log.put(place(0), body[by * CHUNK :] + body[: by * CHUNK])
        log.sources = log.sources[by:] + log.sources[:by]
        log.put(8, struct.pack("<QQ", count - by, count - by - 1))


def starts(*starts):
    return lambda what: what.startswith(starts)


KINDS = {
    "bits": flip_bits,
    "file header": set_field(starts("file ")),
    "chunk header": set_field(starts("chunk ")),
    "frame": set_field(starts("record ")),
    "size": set_field(lambda what: what.endswith(("size", "size copy", "length", "free space"))),
    "offset": set_field(lambda what: what.endswith(("reference", "definition", "last record", "free space"))),
    "type": set_field(lambda what: what.endswith(("type", "token"))),
    "count": set_field(lambda what: what.endswith(("count", "substitution", "dependency"))),
    "definition": set_field(starts("definition", "instance")),
    "name": set_field(starts("name")),
    "value": set_field(starts("value", "inline")),
    "field of another": copy_field,
    "chain": circle,
    "cut": cut,
    "blank": blank,
    "noise": noise,
    "sector": sector,
    "copied record": copy_record,
    "hidden records": hide_records,
    "record IDs": renumber,
    "shift": shift,
    "swapped chunks": swap_chunks,
    "dropped chunk": drop_chunk,
    "repeated chunk": repeat_chunk,
    "other chunk": other_chunk,
    "splice": splice,
    "lost bytes": lost_bytes,
    "more bytes": more_bytes,
    "appended log": appended_log,
    "never written": never_written,
    "left open": left_open,
    "wrapped": wrapped,
}


def repair(data):
    """Makes all checksums match."""
    for at in range(FILE_HEADER, len(data) - CHUNK_HEADER + 1, CHUNK):
        free_space = struct.unpack_from("<I", data, at + 48)[0]
        if CHUNK_HEADER <= free_space <= min(CHUNK, len(data) - at):
            struct.pack_into("<I", data, at + 52, zlib.crc32(bytes(data[at + CHUNK_HEADER : at + free_space])))
        sums = zlib.crc32(bytes(data[at + 128 : at + CHUNK_HEADER]), zlib.crc32(bytes(data[at : at + 120])))
        struct.pack_into("<I", data, at + 124, sums)
    if len(data) >= 128:
        struct.pack_into("<I", data, 124, zlib.crc32(bytes(data[:120])))
