"""Redaction of secrets in every form, judged by a search of the written bytes that shares no code with it."""

import os
import pathlib
import random
import subprocess
import sys

import duckdb
import planted
import pytest
from conftest import takes_at_most

COUNT = int(os.environ.get("EVTX_REDACTIONS", "4"))
SEED = int(os.environ.get("EVTX_REDACTIONS_SEED", "1"))
HOSTILE = pathlib.Path(os.environ.get("EVTX_HOSTILE", "/nowhere"))
hostile = pytest.mark.skipif(not HOSTILE.is_dir(), reason="EVTX_HOSTILE is not set")


def copy(con, path, select, parameters, options=""):
    con.execute(f"COPY ({select}) TO '{path}' (FORMAT evtx{options})", parameters)


def redact(con, source, path, names, options=""):
    """Writes a redacted log of a log."""
    select = "SELECT evtx_redact_values(record, ?::MAP(VARCHAR, VARCHAR)) AS record FROM read_evtx(?, record := true)"
    copy(con, path, select, [names, str(source)], options)
    return path.read_bytes()


@pytest.mark.parametrize("seed", range(SEED, SEED + COUNT))
def test_no_form_of_a_key_is_left(con, tmp_path, seed):
    names = planted.keys(seed)
    draw = random.Random(seed)
    values = [(key, name, *form) for key in names for name, form in planted.forms(key).items()]
    draw.shuffle(values)
    parts = [values[at : at + 12] for at in range(0, len(values), 12)]
    records = [planted.record(number, [(kind, data) for _, _, kind, data, _ in part]) for number, part in enumerate(parts, 1)]
    path = tmp_path / "redacted.evtx"
    select = "SELECT evtx_redact_values(record, ?::MAP(VARCHAR, VARCHAR)) AS record FROM (SELECT unnest(?::BLOB[]) AS record)"
    copy(con, path, select, [names, records])
    written = path.read_bytes()
    left = [(key, name) for key, name, _, _, secret in values if secret is not None and secret in written]
    assert not left
    rows = con.execute("SELECT event_data, error FROM read_evtx(?, verify := true)", [str(path)]).fetchall()
    assert len(rows) == len(parts) and not any(error for _, error in rows)
    # Four bytes occur by chance, so a reader looks for them.
    for (data, _), part in zip(rows, parts):
        for index, (key, name, kind, original, secret) in enumerate(part):
            if secret is None and kind in (planted.UINT32, planted.UINT64):
                assert data[f"f{index}"] != str(int.from_bytes(original, "little")), (key, name)
            elif secret is None and kind == planted.BINARY:
                assert data[f"f{index}"] != original.hex().upper(), (key, name)


@pytest.mark.parametrize("seed", range(SEED, SEED + COUNT))
def test_a_form_that_is_left_fails_the_copy(con, tmp_path, seed):
    names = planted.keys(seed + 1_000_000)
    harmless = planted.record(1, [(planted.STRING, planted.wide("nothing"))])
    path = tmp_path / "leak.evtx"
    missed = []
    for key in names:
        for name, (kind, data, _) in planted.forms(key).items():
            record = planted.record(2, [(planted.STRING, planted.wide("x")), (kind, data)])
            select = "SELECT evtx_redact_values(?::BLOB, ?::MAP(VARCHAR, VARCHAR)) AS record UNION ALL SELECT ?::BLOB"
            try:
                copy(con, path, select, [harmless, names, record])
                missed.append((key, name))
            except duckdb.Error as error:
                assert "the log still contains '" in str(error) and "chunk 0, record 2" in str(error), (key, name, error)
            assert not path.exists() or path.unlink() is None
    assert not missed


def texts_after(con, tmp_path, texts, names):
    record = planted.record(1, [(planted.STRING, planted.wide(text)) for text in texts])
    select = "SELECT evtx_redact_values(?::BLOB, ?::MAP(VARCHAR, VARCHAR)) AS record"
    copy(con, tmp_path / "redacted.evtx", select, [record, names])
    data = con.execute("SELECT event_data FROM read_evtx(?)", [str(tmp_path / "redacted.evtx")]).fetchone()[0]
    return list(data.values())


@pytest.mark.parametrize(
    "key, new, before, after",
    [
        ("10.0.0.1", "192.0.2.1", "10.0.0.12 110.0.0.1 10.0.0.1:80", "10.0.0.12 110.0.0.1 192.0.2.1:80"),
        ("fe80::1", "2001:db8::2", "fe80::12 fe80::1%4", "fe80::12 2001:db8::2%4"),
        ("CORP\\anna", "DOM\\user", '{"u": "CORP\\\\anna"} joanna anna-2', '{"u": "DOM\\\\user"} joanna anna-2'),
        ("ws07.corp.example", "host.dom.example", "HOST/WS07 ws07:443 ws071", "HOST/host host:443 ws071"),
        ("ws-anna-notebook01.corp.example", "host.dom.example", "WS-ANNA-NOTEBOO$ ws-anna-notebook01", "host$ host"),
        ("münchen_1.corp.com", "host.dom.com", "münchen_1$", "host$"),
        ("contoso.com", "example.com", "CONTOSO\\anna setup.exe", "example\\anna setup.exe"),
        ("74.215.61.168", "192.0.2.1", "RefID:0x08A83DD74A", "RefID:0x08010200C0"),
    ],
)
def test_a_key_is_not_a_part_of_another_name_or_address(con, tmp_path, key, new, before, after):
    assert texts_after(con, tmp_path, [before], {key: new}) == [after]


@pytest.mark.parametrize(
    "key, new, text",
    [
        ("CORP\\john", "DOM\\u", "Basic am9objpXaW50ZXIyMDI0"),
        ("CORP\\anna", "DOM\\u", "616e6e61"),
        ("CORP\\anna", "DOM\\u", "61 6e 6e 61"),
    ],
)
def test_short_names_are_found_in_encoded_text(con, tmp_path, key, new, text):
    assert texts_after(con, tmp_path, [text], {key: new}) != [text]
    plain = planted.record(2, [(planted.STRING, planted.wide(text))])
    select = "SELECT evtx_redact_values(?::BLOB, ?::MAP(VARCHAR, VARCHAR)) AS record UNION ALL SELECT ?::BLOB"
    with pytest.raises(duckdb.Error, match="the log still contains"):
        copy(con, tmp_path / "leak.evtx", select, [planted.record(1, []), {key: new}, plain])


def test_common_names_and_numbers_stay(con, tmp_path):
    texts = ["Windows 10 Pro", "Service Control Manager", "WS-1\\User", "10"]
    names = {"10.0.0.0": "192.0.2.0", "CORP\\service": "DOM\\u1", "PC\\user": "PC\\u2"}
    assert texts_after(con, tmp_path, texts, names) == texts


def test_names_that_begin_with_each_other_take_no_long_time(con, tmp_path):
    names = {"DD\\" + "a" * length: "x" for length in range(3, 1000)}
    with takes_at_most(20):
        assert texts_after(con, tmp_path, ["a" * 29_000], names) == ["a" * 29_000]


def test_a_refusal_has_nothing_of_the_record(con):
    sid = "S-1-5-21-1004336348-1177238915-682003330-1105"
    record = planted.record(1, [(planted.SID, planted.sid_bytes(sid))])
    refusal = con.execute("SELECT evtx_redact_values(?::BLOB, MAP {'1004336348': 'x'})", [record]).fetchone()[0]
    assert refusal.startswith(b"**\x02\0") and b"1177238915" not in refusal


@pytest.mark.parametrize("has_target", [True, False])
def test_a_link_does_not_lead_around_the_search(con, tmp_path, has_target):
    (tmp_path / "real").mkdir()
    target, link = tmp_path / "real" / "log.evtx", tmp_path / "link.evtx"
    log = planted.record(1, [(planted.STRING, planted.wide("secret"))])
    if has_target:
        target.write_bytes(b"before")
    link.symlink_to(target)
    (tmp_path / "link.evtx.part").write_bytes(b"mine")
    select = "SELECT evtx_redact_values(?::BLOB, MAP {'secret': 'x'}) AS record UNION ALL SELECT ?::BLOB"
    with pytest.raises(duckdb.Error, match="the log still contains 'secret'"):
        copy(con, link, select, [log, log], ", USE_TMP_FILE false")
    assert not has_target or target.read_bytes() == b"before"
    assert planted.wide("secret") not in b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    copy(con, link, "SELECT ?::BLOB AS record", [log], ", USE_TMP_FILE false")
    assert con.execute("SELECT count(*) FROM read_evtx(?)", [str(link)]).fetchone()[0] == 1
    assert link.is_symlink() == has_target
    assert (tmp_path / "link.evtx.part").read_bytes() == b"mine"


def test_of_two_keys_the_longer_one_that_counts_is_replaced(con, tmp_path):
    names = {"10.0.0.1": "192.0.2.1", "10.0": "net", "CORP\\anna": "DOM\\user", "anna.berg": "user-1"}
    texts = ["10.0.0.1 10.0.0.12", "CORP\\anna.berg anna.berg@x"]
    assert texts_after(con, tmp_path, texts, names) == ["192.0.2.1 net.0.12", "DOM\\user.berg user-1@x"]


def test_records_of_another_process_are_redacted_again(con, tmp_path):
    sealed = "SELECT evtx_redact_values(?::BLOB, MAP {'secret': 'x'}) AS record"
    log = planted.record(1, [(planted.STRING, planted.wide("a secret of alice"))])
    script = "import duckdb, os, sys; con = duckdb.connect(config={'allow_unsigned_extensions': 'true'});"
    script += "con.execute(f\"LOAD '{os.environ['EVTX_EXTENSION']}'\");"
    script += f"sys.stdout.buffer.write(con.execute({sealed!r}, [bytes.fromhex(sys.argv[1])]).fetchone()[0])"
    stored = subprocess.run([sys.executable, "-c", script, log.hex()], stdout=subprocess.PIPE, check=True).stdout
    with pytest.raises(duckdb.Error, match="redacted by another process"):
        copy(con, tmp_path / "redacted.evtx", "SELECT ?::BLOB AS record", [stored])
    copy(con, tmp_path / "redacted.evtx", sealed.replace("secret", "alice"), [stored])
    assert con.execute("SELECT event_data.f0 FROM read_evtx(?)", [str(tmp_path / "redacted.evtx")]).fetchone()[0] == "a x of x"


def test_a_file_has_another_name_until_it_was_searched(con, tmp_path):
    path = tmp_path / "redacted.evtx"
    log = planted.record(1, [(planted.STRING, planted.wide("secret"))])
    copy(con, path, "SELECT ?::BLOB AS record", [log])
    before = path.read_bytes()
    select = "SELECT evtx_redact_values(?::BLOB, MAP {'secret': 'x'}) AS record UNION ALL SELECT ?::BLOB"
    for options in ["", ", USE_TMP_FILE false"]:
        with pytest.raises(duckdb.Error, match="the log still contains 'secret'"):
            copy(con, path, select, [log, log], options)
        assert path.read_bytes() == before and os.listdir(tmp_path) == ["redacted.evtx"]


@hostile
@pytest.mark.parametrize(
    "names",
    [
        {"192.168.138.181": "192.0.2.1"},
        {"172.55.130.43": "192.0.2.1", "192.168.138.1": "192.0.2.2"},
        {"MINWINPC": "HOST1", "S-1-5-21-672274782-2342008316-3472871522": "S-1-5-21-0-0-0"},
        {"S-1-5-21-672274782-2342008316-3472871522-1001": "S-1-5-21-0-0-0-1"},
    ],
)
def test_real_records_keep_nothing(con, tmp_path, names):
    before = (HOSTILE / "redact_leaks.evtx").read_bytes()
    after = redact(con, HOSTILE / "redact_leaks.evtx", tmp_path / "redacted.evtx", names)
    for key in names:
        secrets = [planted.wide(text) for text in planted.texts(key).values()]
        secrets += [data.rstrip(b"\0") for data in planted.packed(key).values() if len(data) > 4]
        secrets += [planted.wide(data.hex().upper()) for data in planted.packed(key).values()]
        assert not [secret for secret in secrets if secret in after]
    changed = """SELECT count(*) FROM (SELECT event_data FROM read_evtx(?) EXCEPT ALL SELECT event_data FROM read_evtx(?))"""
    assert con.execute(changed, [str(HOSTILE / "redact_leaks.evtx"), str(tmp_path / "redacted.evtx")]).fetchone()[0] > 0
    assert before != after


@hostile
def test_a_message_does_not_print_the_address(con, tmp_path):
    redact(con, HOSTILE / "redact_leaks.evtx", tmp_path / "redacted.evtx", {"192.168.138.181": "192.0.2.1"})
    messages = "SELECT count(*) FROM read_evtx(?, messages := ?) WHERE contains(message, ?)"
    count = lambda path, text: con.execute(messages, [str(path), str(HOSTILE / "redact_dns.messages"), text]).fetchone()[0]
    known = count(HOSTILE / "redact_leaks.evtx", "192.168.138.181")
    assert known > 0 and count(tmp_path / "redacted.evtx", "192.168.138.181") == 0
    assert count(tmp_path / "redacted.evtx", "192.0.2.1") == known


@hostile
def test_an_address_cannot_become_a_name(con, tmp_path):
    path, names = tmp_path / "redacted.evtx", {"192.168.138.181": "host-1"}
    with pytest.raises(duckdb.Error, match="record 345: .*'host-1' is not an IPv4 address"):
        redact(con, HOSTILE / "redact_leaks.evtx", path, names)
    assert not path.exists()
    redact(con, HOSTILE / "redact_leaks.evtx", path, names, ", DROP_UNREDACTED")
    assert con.execute("SELECT count(*) FROM read_evtx(?)", [str(path)]).fetchone()[0] == 381


@hostile
@pytest.mark.parametrize(
    "log, names",
    [
        ("redact_field_complexdata", {"U": "x"}),
        ("redact_field_empty_name", {"param1": "x", "param2": "y"}),
        ("redact_oversized_values", {"N2": "1", "N3": "2", "N4": "0x3", "N1": "{00000000-0000-0000-0000-000000000001}"}),
    ],
)
def test_a_field_is_redacted_by_the_name_that_it_is_shown_under(con, tmp_path, log, names):
    path = tmp_path / "redacted.evtx"
    select = "SELECT evtx_redact(record, ?::MAP(VARCHAR, VARCHAR)) AS record FROM read_evtx(?, record := true)"
    copy(con, path, select, [names, str(HOSTILE / f"{log}.evtx")])
    for (data,) in con.execute("SELECT event_data FROM read_evtx(?)", [str(path)]).fetchall():
        assert {name: data[name] for name in names} == names
    assert planted.wide("secret") not in path.read_bytes()


@hostile
def test_values_that_are_too_long_are_found(con, tmp_path):
    path, names = tmp_path / "redacted.evtx", {"4711": "1", "0x3e7": "0x1", "{54849625-5478-4994-a5ba-3e3b0328c30d}": "{" + str(planted.uuid.UUID(int=1)) + "}"}
    redact(con, HOSTILE / "redact_oversized_values.evtx", path, names)
    data = con.execute("SELECT event_data FROM read_evtx(?)", [str(path)]).fetchone()[0]
    assert [data[f"N{index}"] for index in range(1, 5)] == [names["{54849625-5478-4994-a5ba-3e3b0328c30d}"], "1", "1", "0x1"]
