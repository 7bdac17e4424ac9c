"""Archives that expand to more than the page reads."""

import struct
import zipfile
import zlib

import case
import pytest
from client import promised
from conftest import SAMPLES

pytestmark = pytest.mark.skipif(case.browser.BROWSER is None, reason="Chromium is not installed")

LOG = SAMPLES / "DC01-Security.evtx"
GIGABYTES = 3


def bomb():
    """A ZIP archive of a log, after which come gigabytes of zeros."""
    # A flushed block of zeros can be repeated.
    packer = zlib.compressobj(9, wbits=-15)
    start = packer.compress(LOG.read_bytes()) + packer.flush(zlib.Z_FULL_FLUSH)
    block = packer.compress(bytes(1 << 24)) + packer.flush(zlib.Z_FULL_FLUSH)
    data = start + block * (GIGABYTES * 64) + packer.flush()
    size = LOG.stat().st_size + (GIGABYTES << 30)
    name = b"bomb.evtx"
    fields = struct.pack("<HHHHIIIHH", 0, 8, 0, 33, 0, len(data), size, len(name), 0)
    local = b"PK\x03\x04" + struct.pack("<H", 20) + fields + name
    central = b"PK\x01\x02" + struct.pack("<HH", 20, 20) + fields + struct.pack("<HHHII", 0, 0, 0, 0, 0) + name
    return local + data + central + b"PK\x05\x06" + struct.pack("<HHHHIIH", 0, 0, 1, 1, len(central), len(local) + len(data), 0)


def many(count=1_000_000):
    """A ZIP archive with a long list of empty entries."""
    entries = b"".join(b"PK\x01\x02" + struct.pack("<HHHHHHIIIHHHHHII", 20, 20, 0, 0, 0, 33, 0, 0, 0, 12, 0, 0, 0, 0, 0, 0) + b"%07d.evtx" % number for number in range(count))
    end = b"PK\x06\x06" + struct.pack("<QHHIIQQQQ", 44, 45, 45, 0, 0, count, count, len(entries), 0)
    return entries + end + b"PK\x06\x07" + struct.pack("<IQI", 0, len(entries), 1) + b"PK\x05\x06" + struct.pack("<HHHHIIH", 0, 0, 0xFFFF, 0xFFFF, 0xFFFFFFFF, 0xFFFFFFFF, 0)


@pytest.mark.parametrize("archive, why", [(bomb, "as a bomb does"), (many, "memory")])
def test_the_page_answers(tmp_path, archive, why):
    """The archive is a row with an error, the log beside it is read, and the page answers all the time: its own thread does little."""
    path = tmp_path / f"{archive.__name__}.zip"
    path.write_bytes(archive())
    assert zipfile.is_zipfile(path)

    async def steps(page):
        before = await page.spent("ThreadTime")
        await page.load(path, LOG)
        return await page.spent("ThreadTime") - before, await page.ask("SELECT filename, count(*), any_value(error) FROM events GROUP BY filename ORDER BY filename")

    spent, rows = case.visit(steps)
    assert rows[0] == [LOG.name, "55", ""]
    assert rows[1][0].startswith(path.name) and why in rows[1][2]
    assert len(rows) == 2
    promised(spent, 5)
    assert spent < 5
