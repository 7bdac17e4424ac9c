"""Regression tests for damage that lost sound records, or affected other chunks and files. `make campaign` found it."""

import random
import struct
import zlib

import pytest
from conftest import SAMPLES, rows_with_and_without_pushdown, takes_at_most, write_zip
from structures import CHUNK, CHUNK_HEADER, Chunk, FILE_HEADER, file_header, slots

# A log of ten records, with IDs 14002 to 14011.
LOG = (SAMPLES / "DC01-System.evtx").read_bytes()
FIRST, COUNT = 14002, 10


def frames():
    """The file offset and size of each record of LOG."""
    chunk = Chunk(slots(LOG)[0])
    return [(FILE_HEADER + offset, chunk.records[offset].size) for offset in sorted(chunk.records)]


class Damage:
    """A copy of LOG, and where its records start and end."""

    def __init__(self):
        self.data = bytearray(LOG)
        self.starts = [start for start, _ in frames()]
        self.ends = [start + size for start, size in frames()]

    def put(self, form, at, *numbers):
        struct.pack_into(form, self.data, at, *numbers)

    def hide(self, hider, last):
        """Grows a record up to the end of the `last` one."""
        size = self.ends[last] - self.starts[hider]
        self.put("<I", self.starts[hider] + 4, size)
        self.put("<I", self.ends[last] - 4, size)


def hidden_behind_another_id(log, hider, last):
    log.hide(hider, last)
    log.put("<Q", log.starts[hider] + 8, 65535)


def hidden_behind_a_damaged_magic(log, hider, last):
    log.hide(hider, last)
    log.data[log.starts[hider]] = ord("x")


def hidden_behind_a_wrong_size(log, hider, last):
    log.hide(hider, last)
    log.put("<I", log.starts[hider] + 4, log.ends[last] - log.starts[hider] + 8)


@pytest.mark.parametrize("damage", [hidden_behind_another_id, hidden_behind_a_damaged_magic, hidden_behind_a_wrong_size])
@pytest.mark.parametrize("hider, last", [(0, 1), (0, 2), (1, 2), (1, 3), (8, 9)])
def test_a_record_behind_a_records_end_is_one(con, tmp_path, damage, hider, last):
    if damage is hidden_behind_a_damaged_magic and hider == 0:
        pytest.skip("without its magic, nothing identifies the first record")
    log = Damage()
    damage(log, hider, last)
    lost = missing(con, tmp_path, log)
    assert lost <= {FIRST + hider}


def test_a_torn_record_does_not_cover_those_behind_it(con, tmp_path):
    chunk = Chunk(slots(LOG)[0])
    log = Damage()
    start, end = log.starts[1] - FILE_HEADER, log.ends[1] - FILE_HEADER
    grown = log.ends[3] - log.ends[1]
    for at in [at for at, _ in chunk.kinds["value size"] if start < at < end]:
        log = Damage()
        size, = struct.unpack_from("<H", LOG, FILE_HEADER + at)
        log.put("<H", FILE_HEADER + at, size + grown)
        log.put("<I", log.starts[1] + 4, log.ends[3] - log.starts[1])
        assert missing(con, tmp_path, log) <= {FIRST + 1}, hex(at)


def test_the_free_space_hides_no_record_that_the_header_knows(con, tmp_path):
    log = Damage()
    log.put("<I", FILE_HEADER + 48, log.starts[2] - 8 - FILE_HEADER)
    # The copy of a size after it is damaged, or a record is gone.
    log.data[log.ends[2] - 4] ^= 1
    assert missing(con, tmp_path, log) == set()
    log.data[log.starts[4]:log.ends[4]] = bytes(log.ends[4] - log.starts[4])
    assert missing(con, tmp_path, log) == {FIRST + 4}


@pytest.mark.parametrize("field, value", [(8, 77), (0, 0)])
def test_a_header_that_ends_before_a_damaged_record_hides_nothing(con, tmp_path, field, value):
    log = Damage()
    # According to the header, the log ends before the fifth record, whose ID or magic is damaged.
    log.put("<Q", FILE_HEADER + 16, 4)
    log.put("<Q", FILE_HEADER + 32, FIRST + 3)
    log.put("<II", FILE_HEADER + 44, log.starts[3] - FILE_HEADER, log.starts[4] - FILE_HEADER)
    log.put("<I", log.starts[4] + field, value)
    assert missing(con, tmp_path, log) <= {FIRST + 4}


@pytest.mark.parametrize("ids", [(FIRST, FIRST + COUNT - 1), (FIRST, FIRST), (5, 4)])
@pytest.mark.parametrize("damage", ["", "magic", "ID", "both"])
def test_a_header_of_an_empty_chunk_hides_nothing(con, tmp_path, ids, damage):
    log = Damage()
    log.put("<QQ", FILE_HEADER + 24, *ids)
    log.put("<II", FILE_HEADER + 44, 512, 512)
    if damage in ("magic", "both"):
        log.data[log.starts[0]] = 0
    if damage in ("ID", "both"):
        log.put("<Q", log.starts[0] + 8, 3)
    assert missing(con, tmp_path, log) <= ({FIRST} if damage else set())


@pytest.mark.parametrize("damage", ["", "magic", "ID"])
def test_records_behind_the_header_of_a_new_chunk_are_slack(con, tmp_path, damage):
    log = Damage()
    # The header of a new chunk, as Windows writes it. The next record of the file header is not in the chunk.
    log.put("<QQ", FILE_HEADER + 24, 2**64 - 1, 2**64 - 1)
    log.put("<II", FILE_HEADER + 44, 0, 512)
    if damage == "magic":
        log.data[log.starts[0]] = 0
    if damage == "ID":
        log.put("<Q", log.starts[0] + 8, 3)
    path = tmp_path / "log.evtx"
    path.write_bytes(log.data)
    count = "SELECT count(*), count(error) FROM read_evtx($1, recover := {})"
    assert con.execute(count.format("false"), [str(path)]).fetchone() == (0, 0)
    found, _ = con.execute(count.format("true"), [str(path)]).fetchone()
    assert found >= COUNT - (damage == "magic")
    slack = "SELECT records, slack_records, damaged_chunks FROM evtx_file_metadata($1)"
    records, slack, _ = con.execute(slack, [str(path)]).fetchone()
    assert (records, slack) == (0, found)


@pytest.mark.parametrize("header", [b"ElfChnk", b"xlfChnk"])
def test_a_damaged_copy_takes_no_record_away(con, tmp_path, header):
    log = Damage()
    log.data[FILE_HEADER:FILE_HEADER + 7] = header
    # The second record has the ID and the time of the third, and is unreadable.
    third = log.starts[2] + 8
    log.data[log.starts[1] + 8:log.starts[1] + 24] = log.data[third:third + 16]
    log.data[log.starts[1] + 28] = 0x7F
    assert missing(con, tmp_path, log) == {FIRST + 1}


def test_a_record_before_a_damaged_one_is_found_past_an_overwritten_one(con, tmp_path):
    log = Damage()
    # The second record has a later ID and ends too early, before bytes that are not a record. The fourth ends in zeros.
    log.put("<IQ", log.starts[1] + 4, log.ends[1] - log.starts[1] - 24, FIRST + 30)
    log.put("<I", log.ends[1] - 28, log.ends[1] - log.starts[1] - 24)
    log.data[log.ends[3] - 16:log.ends[3]] = bytes(16)
    assert missing(con, tmp_path, log) == {FIRST + 1}


def test_a_header_that_another_record_follows_takes_nothing_with_it(con, tmp_path):
    log = Damage()
    # A record extends to the last bytes of the next one, which look like a record header.
    start = log.ends[3] - 24
    log.data[log.starts[3]:start] = bytes(start - log.starts[3])
    log.put("<I", log.starts[2] + 4, start - log.starts[2])
    log.put("<I", start - 4, start - log.starts[2])
    log.put("<IIQ", start, 0x2A2A, 24 + log.ends[4] - log.starts[4] + 40, FIRST + 3)
    assert missing(con, tmp_path, log) == {FIRST + 3}


@pytest.mark.parametrize("number", [3, COUNT - 1])
def test_a_record_with_the_next_id_needs_no_copy_of_its_size(con, tmp_path, number):
    log = Damage()
    log.put("<I", log.starts[number - 1] + 4, 0xBB37C8DB)
    log.data[log.ends[number] - 4] ^= 4
    assert missing(con, tmp_path, log) == set()


def missing(con, tmp_path, log):
    """The IDs whose event was not read. With `recover`, no more may be missing."""
    path = tmp_path / "log.evtx"
    path.write_bytes(log.data)
    found = []
    for recover in ("false", "true"):
        rows = con.execute(f"SELECT record_id FROM read_evtx($1, recover := {recover}) WHERE event_id IS NOT NULL", [str(path)])
        found.append(set(range(FIRST, FIRST + COUNT)) - {record_id for record_id, in rows.fetchall()})
    assert found[1] <= found[0]
    return found[0]


def test_a_damaged_name_spoils_its_chunk_alone(con, tmp_path):
    sound = SAMPLES / "dirty.evtx"
    data = bytearray(sound.read_bytes())
    chunk = Chunk(slots(bytes(data))[0])
    data[FILE_HEADER + chunk.kinds["name hash"][0][0]] ^= 1
    damaged = tmp_path / "names.evtx"
    damaged.write_bytes(data)
    query = """
        SELECT parse_filename(filename), count(*), count(error), count(xml)
        FROM read_evtx($1, xml := true, location := true) GROUP BY ALL ORDER BY ALL
    """
    for files in ([damaged, sound], [sound, damaged]):
        rows = con.execute(query, [[str(file) for file in files]]).fetchall()
        assert rows == [("dirty.evtx", 80, 0, 80), ("names.evtx", 80, 40, 40)]


def stray(con, tmp_path, *spans):
    """Reads a log of a header, one byte and some spans with `recover`. Returns the IDs of sound records."""
    path = tmp_path / "stray.evtx"
    path.write_bytes(b"".join([LOG[:FILE_HEADER], b"x", *spans]))
    rows = con.execute("SELECT record_id, event_id, error FROM read_evtx($1, recover := true)", [str(path)]).fetchall()
    return sorted(record_id for record_id, event_id, error in rows if event_id and not error)


CHUNK_OF_LOG = LOG[FILE_HEADER:]
IDS = list(range(FIRST, FIRST + COUNT))


def test_a_stray_chunk_is_found(con, tmp_path):
    assert stray(con, tmp_path, CHUNK_OF_LOG) == IDS
    # Damage to the first record ID, the flags, or the name table of the header does not matter.
    for at in (24, 120, 130):
        chunk = bytearray(CHUNK_OF_LOG)
        chunk[at] ^= 4
        assert stray(con, tmp_path, bytes(chunk)) == IDS
    # A header without records before it does not matter either.
    assert stray(con, tmp_path, CHUNK_OF_LOG[:512], bytes(100), CHUNK_OF_LOG) == IDS
    assert stray(con, tmp_path, CHUNK_OF_LOG[:400], CHUNK_OF_LOG) == IDS
    # Two stray chunks, the first cut short after five records.
    cut = CHUNK_OF_LOG[: frames()[5][0] - FILE_HEADER]
    assert stray(con, tmp_path, cut, CHUNK_OF_LOG) == sorted([*IDS, *IDS[:5]])


def test_many_headers_are_no_reason_to_take_long(con, tmp_path):
    # Many stray headers, then records that consist of signatures.
    header = CHUNK_OF_LOG[:512]
    with takes_at_most(5):
        stray(con, tmp_path, header * 16384)
    record = b"**\0\0" + struct.pack("<IQQ", 600, 1, 0) + b"ElfChnk\0" * 71 + bytes(4) + struct.pack("<I", 600)
    with takes_at_most(5):
        stray(con, tmp_path, *[header + record * 108] * 128)


def test_zeros_are_no_name(con, tmp_path):
    """Records that refer to names in a wiped record have an error."""
    log = (SAMPLES / "dirty.evtx").read_bytes()
    first = Chunk(slots(log)[0]).records[512]
    data = bytearray(log)
    data[FILE_HEADER + 512 + 24 : FILE_HEADER + 512 + first.size - 4] = bytes(first.size - 28)
    path = tmp_path / "wiped.evtx"
    path.write_bytes(data)
    rows = con.execute("SELECT count(*) FILTER (event_id IS NULL AND error IS NULL) FROM read_evtx($1)", [str(path)]).fetchall()
    assert rows == [(0,)]


def test_predicates_choose_rows_of_slots_and_stray_chunks_alike(con, tmp_path):
    """A log followed by another, whose chunk is at no slot."""
    data = (SAMPLES / "damaged-checksums.evtx").read_bytes()
    log = tmp_path / "two.evtx"
    log.write_bytes(data + data[:4096] + data[4096:4096 + 65536])
    source = f"read_evtx('{log}', recover := true, location := true)"
    for predicate in ["channel IS DISTINCT FROM 'System'", "event_id IS NULL", "record_id = 1", "error IS NOT NULL", "recovered"]:
        rows_with_and_without_pushdown(con, f"SELECT record_id, record_offset, recovered, error FROM {source} WHERE {predicate} ORDER BY ALL")


def test_slack_whose_definition_was_overwritten_is_told(con, tmp_path):
    """A record that refers to the definition still counts, whether its bytes became another definition or garbage."""
    data = bytearray((SAMPLES / "never-written.evtx").read_bytes())
    log = tmp_path / "log.evtx"
    log.write_bytes(data)
    (slack,) = con.execute("SELECT slack_records FROM evtx_file_metadata($1)", [str(log)]).fetchone()
    definition = 4096 + int.from_bytes(data[4096 + 512 + 24 + 10:4096 + 512 + 24 + 14], "little")
    for start, fill in [(24, 0), (24, 0xFF), (20, 0xFF)]:
        data[definition + start:definition + 40] = bytes([fill]) * (40 - start)
        log.write_bytes(data)
        rows = con.execute("SELECT record_id, error FROM read_evtx($1, recover := true)", [str(log)]).fetchall()
        assert len(rows) == slack > 3 and all(record_id for record_id, _ in rows)
        assert [error for _, error in rows if error]


def test_a_chunk_of_zeros_is_damage_unless_no_used_chunk_follows(con, tmp_path):
    """Logs of up to 40 chunks, which are several blocks. Some chunks were overwritten with zeros, as `dd conv=noerror,sync` does, or with
    another byte. The file header lists some chunks, or nothing that can be trusted."""
    rng = random.Random(70)
    data = (SAMPLES / "DC01-System.evtx").read_bytes()
    used = data[FILE_HEADER : FILE_HEADER + CHUNK]
    fills = {"used": used, "zeros": bytes(CHUNK), "ones": CHUNK * b"\xff", "one byte": used[:700] + bytes(CHUNK - 700), "last byte": bytes(CHUNK - 1) + b"\1"}
    for number in range(30):
        runs = [[rng.choice(["zeros", "zeros", "used", "used", *fills])] * rng.choice([1, 1, 2, 7, 17]) for _ in range(rng.randint(1, 6))]
        kinds = sum(runs, [])[:40]
        tail = rng.choice([0, 0, 1, 20])
        kinds += ["zeros"] * tail
        listed = rng.randint(1, len(kinds))
        header = bytearray(file_header(data, listed))
        is_trusted = rng.random() < 0.5
        header[124] ^= not is_trusted
        log = tmp_path / f"{number}.evtx"
        log.write_bytes(header + b"".join(fills[kind] for kind in kinds))
        first_unused = max([slot + 1 for slot, kind in enumerate(kinds) if kind != "zeros"] + [listed if is_trusted else 0])
        damaged = [slot for slot, kind in enumerate(kinds[:first_unused]) if kind != "used"]
        whole = [slot for slot in damaged if kinds[slot] != "one byte"]
        paths = [str(log), str(write_zip(tmp_path / f"{number}.zip", {"a.evtx": log}))] if number % 4 == 0 else [str(log)]
        for path in paths:
            found = con.execute("SELECT chunks, unused_chunks, damaged_chunks, error IS NULL FROM evtx_file_metadata($1)", [path]).fetchone()
            is_sound = is_trusted and not damaged
            assert found == (len(kinds), len(kinds) - first_unused, len(damaged), is_sound), (kinds, listed)
            chunks = con.execute("SELECT chunk_index, is_used, error IS NOT NULL FROM evtx_chunk_metadata($1) ORDER BY 1", [path]).fetchall()
            assert chunks == [(slot, slot < first_unused, slot in damaged) for slot in range(len(kinds))]
            for options in ["", ", verify := true", ", recover := true"]:
                sql = f"SELECT chunk_index, count(*) FROM read_evtx($1, location := true{options}) WHERE error LIKE '%in place of \"ElfChnk%' GROUP BY 1 ORDER BY 1"
                assert con.execute(sql, [path]).fetchall() == [(slot, 1) for slot in whole], (kinds, listed, options)
            assert con.execute("SELECT count(*) FILTER (error IS NULL) FROM read_evtx($1)", [path]).fetchone() == (COUNT * kinds.count("used"),)


def test_record_ids_tell_that_records_of_a_chunk_of_zeros_are_missing(con, tmp_path):
    """IDs 81 to 240 in four chunks. Without the first or the last of them, no ID is missing between the others."""
    data = (SAMPLES / "wrapped.evtx").read_bytes()
    for slot, missing_ids in enumerate([40, 0, 0, 40]):
        log = tmp_path / f"{slot}.evtx"
        start = FILE_HEADER + slot * CHUNK
        log.write_bytes(data[:start] + bytes(CHUNK) + data[start + CHUNK :])
        found = con.execute("SELECT records, damaged_chunks, missing_records FROM evtx_file_metadata($1)", [str(log)]).fetchone()
        assert found == (120, 1, missing_ids)
        assert con.execute("SELECT count(*), count(error) FROM read_evtx($1)", [str(log)]).fetchone() == (121, 1)


def empty_chunk(chunk):
    """A sound chunk without records: its header and checksums are right."""
    header = bytearray(chunk[:CHUNK_HEADER])
    struct.pack_into("<4Q", header, 8, *[2**64 - 1] * 4)
    struct.pack_into("<3I", header, 44, 0, CHUNK_HEADER, 0)
    header[128:] = bytes(CHUNK_HEADER - 128)
    struct.pack_into("<I", header, 124, zlib.crc32(header[:120] + header[128:]))
    return bytes(header) + bytes(CHUNK - CHUNK_HEADER)


@pytest.mark.parametrize("new", ["empty", "copy"])
def test_record_ids_tell_that_a_chunk_was_replaced_by_a_sound_one(con, tmp_path, new):
    """The oldest records are in the third of four chunks, the newest in the second. IDs on both sides tell what is missing between them,
    and the file header's next ID tells it of the newest."""
    data = (SAMPLES / "wrapped.evtx").read_bytes()
    chunks = slots(data)
    for slot, (missing_ids, newest_missing) in enumerate([(40, 0), (0, 40), (0, 0), (40, 0)]):
        chunk = empty_chunk(chunks[slot]) if new == "empty" else bytes(chunks[(slot + 1) % 4])
        start = FILE_HEADER + slot * CHUNK
        log = tmp_path / f"{slot}.evtx"
        log.write_bytes(data[:start] + chunk + data[start + CHUNK :])
        for path in (log, write_zip(tmp_path / f"{slot}.zip", {"a.evtx": log})):
            found = con.execute("SELECT missing_records, next_record_id::HUGEINT - last_record_id - 1, damaged_chunks, error FROM evtx_file_metadata($1)", [str(path)]).fetchone()
            assert found == (missing_ids, newest_missing, 0, None), slot
            ids = con.execute("SELECT count(error), count(DISTINCT record_id), max(record_id) - min(record_id) + 1 FROM read_evtx($1, verify := true)", [str(path)]).fetchone()
            assert ids == (0, 120, 120 + missing_ids), slot
            places = con.execute("SELECT list(chunk_index ORDER BY chunk_index) FROM evtx_chunk_metadata($1) WHERE is_used GROUP BY first_record_id HAVING count(*) > 1 OR max(records) = 0",
                                 [str(path)]).fetchall()
            assert places == [([slot] if new == "empty" else sorted([slot, (slot + 1) % 4]),)], slot
