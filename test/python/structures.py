"""Finds the structures of a chunk, and the bytes that each record's values come from.

This is a second, simple reader of the format, which shares no code with the extension. It skips records that it does not fully
understand.
"""

import bisect
import dataclasses
import struct
import zlib

FILE_HEADER, CHUNK, CHUNK_HEADER, SECTOR = 4096, 65536, 512, 512
FILE_MAGIC, CHUNK_MAGIC, RECORD_MAGIC = b"ElfFile\0", b"ElfChnk\0", b"**\0\0"
RECORD_HEADER, DEFINITION_HEADER, NAME_HEADER = 24, 24, 8
MAX_DEPTH = 20

# The fields of the file header and of a chunk header: name, offset, size.
FILE_FIELDS = [
    ("file magic", 0, 8), ("file first chunk", 8, 8), ("file last chunk", 16, 8), ("file next record", 24, 8),
    ("file header size", 32, 4), ("file version", 36, 4), ("file block size", 40, 2), ("file chunk count", 42, 2),
    ("file flags", 120, 4), ("file checksum", 124, 4),
]  # fmt: skip
CHUNK_FIELDS = [
    ("chunk magic", 0, 8), ("chunk first number", 8, 8), ("chunk last number", 16, 8), ("chunk first ID", 24, 8),
    ("chunk last ID", 32, 8), ("chunk header size", 40, 4), ("chunk last record", 44, 4), ("chunk free space", 48, 4),
    ("chunk records checksum", 52, 4), ("chunk flags", 120, 4), ("chunk header checksum", 124, 4),
    *[("chunk names", 128 + 4 * number, 4) for number in range(64)],
    *[("chunk templates", 384 + 4 * number, 4) for number in range(32)],
]  # fmt: skip

# The sizes of inline values, by type.
SIZES = {0: 0, 3: 1, 4: 1, 5: 2, 6: 2, 7: 4, 8: 4, 9: 8, 10: 8, 11: 4, 12: 8, 13: 4, 15: 16, 17: 8, 18: 16, 20: 4, 21: 8}
STRING, BINXML = 0x01, 0x21


class Odd(Exception):
    """Bytes that this reader does not understand."""


@dataclasses.dataclass
class Record:
    """A record's place in its chunk, and the spans of bytes that its values come from: its own, and the definitions and names that it
    refers to. The spans exclude the links of chains, which affect no value."""

    offset: int
    size: int
    spans: list
    # The values in the sound log, by column. Set by the caller.
    values: dict = None


class Chunk:
    """A chunk of a log: its bytes, its fields, and its records by offset."""

    def __init__(self, data):
        self.data = bytes(data)
        self.fields = list(CHUNK_FIELDS)
        self.records = {}
        # The spans of definitions by offset, and the offsets of links.
        self.definitions, self.names, self.links = {}, set(), set()
        self.free_space = self.number("<I", 48)
        spans = {}
        for offset, size in self.frames():
            self.frame_fields(offset, size)
            try:
                found = set()
                self.stream(offset + RECORD_HEADER, offset + size - 4, False, found, 0)
                spans[offset, size] = found
            except (Odd, struct.error):
                pass
        links = sorted(self.links)
        for (offset, size), found in spans.items():
            own = [(start, end) for start, end in found if not (offset <= start and end <= offset + size)]
            own.append((offset, offset + size))
            self.records[offset] = Record(offset, size, [part for span in sorted(own) for part in without(span, links)])
        # The offsets and sizes of fields, by name.
        self.kinds = {}
        for what, at, size in sorted(set(self.fields), key=lambda field: field[1]):
            self.kinds.setdefault(what, []).append((at, size))

    def number(self, form, at):
        return struct.unpack_from(form, self.data, at)[0]

    def frames(self):
        """The consecutive record frames from the start of the chunk."""
        at = CHUNK_HEADER
        while at + RECORD_HEADER + 4 <= min(self.free_space, len(self.data)) and self.data[at : at + 4] == RECORD_MAGIC:
            size = self.number("<I", at + 4)
            if size < RECORD_HEADER + 4 or at + size > len(self.data) or self.number("<I", at + size - 4) != size:
                return
            yield at, size
            at += size

    def frame_fields(self, offset, size):
        for what, at, width in [("magic", 0, 4), ("size", 4, 4), ("ID", 8, 8), ("written", 16, 8), ("size copy", size - 4, 4)]:
            self.fields.append((f"record {what}", offset + at, width))

    def note(self, what, at, size):
        self.fields.append((what, at, size))

    def name(self, at, until, spans):
        """Skips a reference to a name, and the name if it is inline."""
        reference = self.number("<I", at)
        self.note("name reference", at, 4)
        length = self.number("<H", reference + 6)
        end = reference + NAME_HEADER + 2 * length
        if end > len(self.data):
            raise Odd("a name runs past the chunk")
        spans.add((reference + 4, end))
        self.links.add(reference)
        if reference not in self.names:
            self.names.add(reference)
            self.fields += [("name link", reference, 4), ("name hash", reference + 4, 2), ("name length", reference + 6, 2)]
            self.note("name units", reference + NAME_HEADER, 2)
        at += 4
        return end + 2 if reference == at else at

    def definition(self, offset, depth):
        """The spans of the definition at an offset."""
        if offset not in self.definitions:
            self.definitions[offset] = None
            size = self.number("<I", offset + 20)
            end = offset + DEFINITION_HEADER + size
            if offset < CHUNK_HEADER or end > len(self.data):
                raise Odd("a definition runs past the chunk")
            self.links.add(offset)
            self.fields += [("definition link", offset, 4), ("definition GUID", offset + 4, 4), ("definition size", offset + 20, 4)]
            spans = {(offset + 4, end)}
            self.stream(offset + DEFINITION_HEADER, end, True, spans, depth + 1)
            self.definitions[offset] = spans
        if self.definitions[offset] is None:
            raise Odd("a definition that is odd, or holds itself")
        return self.definitions[offset]

    def instance(self, at, spans, depth):
        """Skips a template instance after its token."""
        template, reference = struct.unpack_from("<II", self.data, at + 1)
        self.note("instance template", at + 1, 4)
        self.note("instance definition", at + 5, 4)
        at += 9
        spans |= self.definition(reference, depth)
        if self.number("<I", reference + 4) != template:
            raise Odd("an instance of another template")
        if reference == at:
            at += DEFINITION_HEADER + self.number("<I", at + 20)
        count = self.number("<I", at)
        self.note("value count", at, 4)
        at += 4
        if at + 4 * count > len(self.data):
            raise Odd("a value table runs past the chunk")
        start = at + 4 * count
        for number in range(count):
            size, kind = struct.unpack_from("<HB", self.data, at + 4 * number)
            self.note("value size", at + 4 * number, 2)
            self.note("value type", at + 4 * number + 2, 1)
            if size:
                self.note("value", start, min(size, 8))
            if kind == BINXML and size:
                self.stream(start, start + size, False, spans, depth + 1)
            elif kind == BINXML | 0x80:
                raise Odd("an array of streams")
            start += size
        return start

    def stream(self, at, until, is_definition, spans, depth):
        """Skips a stream, and adds the spans that it refers to."""
        if depth > MAX_DEPTH or until > len(self.data):
            raise Odd("a stream runs past the chunk, or is deep")
        while at < until:
            token = self.data[at]
            self.note("token", at, 1)
            at += 1
            kind = token & ~0x40
            if token == 0x00:
                return
            if kind == 0x01:
                if is_definition:
                    self.note("dependency", at, 2)
                    at += 2
                self.note("element size", at, 4)
                at = self.name(at + 4, until, spans)
                if token & 0x40:
                    self.note("attribute list size", at, 4)
                    at += 4
            elif token in (0x02, 0x03, 0x04):
                pass
            elif kind == 0x05:
                value = self.data[at]
                self.note("inline type", at, 1)
                at += 1
                if value in (STRING, BINXML):
                    size = self.number("<H", at) * (2 if value == STRING else 1)
                    self.note("inline size", at, 2)
                    at += 2
                    if value == BINXML:
                        self.stream(at, at + size, False, spans, depth + 1)
                elif value in SIZES:
                    size = SIZES[value]
                else:
                    raise Odd("a value of a type that does not stand in a stream")
                at += size
            elif kind in (0x06, 0x09) or token == 0x0A:
                at = self.name(at, until, spans)
            elif kind == 0x07 or token == 0x0B:
                self.note("inline size", at, 2)
                at += 2 + 2 * self.number("<H", at)
            elif kind == 0x08:
                at += 2
            elif token == 0x0C and not is_definition:
                at = self.instance(at, spans, depth)
            elif token in (0x0D, 0x0E) and is_definition:
                self.note("substitution", at, 2)
                self.note("substitution type", at + 2, 1)
                at += 3
            elif token == 0x0F:
                at += 3
            else:
                raise Odd(f"token {token:#x}")
        if at > until:
            raise Odd("a stream runs past its end")

    def is_unchanged(self, record, slot):
        """Whether a slot has the same bytes as this chunk wherever the record's values come from."""
        return all(slot[start:end] == self.data[start:end] for start, end in record.spans)

    def is_unchanged_but_copy(self, record, slot):
        """The same, ignoring the copy of the record's size."""
        copy = record.offset + record.size - 4
        spans = [(start, copy if end == copy + 4 else end) for start, end in record.spans]
        return all(slot[start:end] == self.data[start:end] for start, end in spans)


def without(span, links):
    """The parts of a span between links, which are sorted."""
    start, end = span
    for link in links[bisect.bisect_left(links, start) : bisect.bisect_left(links, end)]:
        if start < link:
            yield start, min(link, end)
        start = link + 4
    if start < end:
        yield start, end


def file_header(data, chunks):
    """The header of a log, for another number of chunks."""
    header = bytearray(data[:FILE_HEADER])
    struct.pack_into("<QQ", header, 8, 0, chunks - 1)
    struct.pack_into("<H", header, 42, chunks & 0xFFFF)
    struct.pack_into("<I", header, 124, zlib.crc32(bytes(header[:120])))
    return bytes(header)


def slots(data):
    """The chunk slots of a log. The last one may be cut short."""
    return [data[at : at + CHUNK] for at in range(FILE_HEADER, len(data), CHUNK)]


def place(slot):
    """The offset of a slot in its file."""
    return FILE_HEADER + CHUNK * slot
