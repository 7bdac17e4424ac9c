"""Logs with pseudonyms, judged by a search of the written bytes that knows the planted values and shares no code with the extension."""

import collections
import ipaddress
import itertools
import json
import os
import pathlib
import random
import re

import duckdb
import planted
import pytest
from client import quoted
from conftest import SAMPLES
from test_copies import JUDGES

SEED = int(os.environ.get("EVTX_PSEUDONYMS_SEED", "1"))
FOLDERS = [os.environ[name] for name in ("EVTX_CORPUS", "EVTX_VARIED", "EVTX_HOSTILE") if os.environ.get(name)]
COLLECTIONS = sorted(pathlib.Path(os.environ.get("EVTX_COLLECTIONS", "/nowhere")).glob("*"))
LOGS = sorted(SAMPLES.glob("*.evtx")) + [log for folder in FOLDERS for log in sorted(pathlib.Path(folder).rglob("*.[eE][vV][tT][xX]"))]
DATA = pathlib.Path(__file__).parents[2] / "rust/extras/evtx-writer/data"
SIGMA = os.environ.get("EVTX_SIGMA")
# Fields that name accounts, hosts and addresses.
NAMING = "TargetUserName SubjectUserName WorkstationName TargetDomainName SubjectDomainName User UserName AccountName IpAddress Workstation SourceHostname"
NAMING += " DestinationHostname SourceIp DestinationIp SamAccountName TargetUserSid SubjectUserSid TargetSid UserSid ClientName ClientAddress"
SOUND = "WHERE record IS NOT NULL AND error IS NULL"

KEY = ", key := 'the key of the tests'"


def written(con, path, select, parameters=(), options=""):
    con.execute(f"COPY ({select}) TO {quoted(path)} (FORMAT evtx{options})", parameters)
    return path.read_bytes()


def shared(con, path, logs, arguments=KEY):
    """Writes the records of logs with pseudonyms."""
    return written(con, path, f"SELECT evtx_pseudonymize(record{arguments}) AS record FROM read_evtx(?, record := true) {SOUND}", [logs])


def texts_after(con, path, texts, arguments=KEY):
    record = planted.record(1, [(planted.STRING, planted.wide(text)) for text in texts])
    written(con, path, f"SELECT evtx_pseudonymize(?::BLOB{arguments}) AS record", [record])
    return list(con.execute("SELECT event_data FROM read_evtx(?)", [str(path)]).fetchone()[0].values())


@pytest.mark.parametrize("seed", range(SEED, SEED + 6))
def test_no_form_of_a_value_is_left(con, tmp_path, seed):
    draw = random.Random(seed)
    values = [(key, name, *form) for key in planted.keys(seed) for name, form in planted.forms(key).items()]
    draw.shuffle(values)
    parts = [values[at : at + 12] for at in range(0, len(values), 12)]
    records = [planted.record(number, [(kind, data) for _, _, kind, data, _ in part]) for number, part in enumerate(parts, 1)]
    path = tmp_path / "shared.evtx"
    log = written(con, path, f"SELECT evtx_pseudonymize(record{KEY}) AS record FROM (SELECT unnest(?::BLOB[]) AS record)", [records]).lower()
    # Of a few bytes, some occur by chance.
    left = [(key, name) for key, name, _, _, secret in values if secret and len(secret) > 4 and secret.lower() in log]
    assert not left
    rows = con.execute("SELECT event_data, error FROM read_evtx(?, verify := true)", [str(path)]).fetchall()
    assert len(rows) == len(parts) and not any(error for _, error in rows)
    for (data, _), part in zip(rows, parts):
        for value, (key, name, kind, original, _) in zip(data.values(), part, strict=True):
            if kind in (planted.UINT32, planted.UINT64):
                assert value != str(int.from_bytes(original, "little")), (key, name)
            elif kind == planted.BINARY:
                assert value != original.hex().upper(), (key, name)


@pytest.mark.parametrize("seed", range(SEED, SEED + 6))
def test_no_odd_form_of_a_name_is_left(con, tmp_path, seed):
    draw = random.Random(seed)
    name = "".join(draw.choice("bcdfghjklmnpqrstvwxz") for _ in range(7))
    texts = [form.replace("{umlaut}", name[:3] + "ü" + name[3:]).replace("{upper}", name.upper()).replace("{}", name) for form in planted.ODD]
    address = [str(draw.randrange(130, 255)) for _ in range(4)]
    runs = [sign.join(numbers) for sign in (",", "-", " ", ", ", "[.]", "_", "\\.") for numbers in (address, address[:3], [hex(int(number)) for number in address])]
    texts += runs
    path = tmp_path / "shared.evtx"
    after = texts_after(con, path, texts)
    log = path.read_bytes().lower()
    for spelling in (name, name[:4], name[3:]):
        assert planted.wide(spelling) not in log and spelling.encode() not in log
    for before, text in zip(texts, after, strict=True):
        # What is between the parts stays.
        assert len(text) and text != before
        if before in runs:
            assert re.fullmatch("t-[0-9a-f]{10}", text), before
            continue
        signs = lambda text: re.sub(r"t-[0-9a-f]{10}|\w|[^\x00-\x7f]", "", text)
        assert signs(text) == signs(before), (before, text)
    assert not {tuple(address)} & {tuple(re.findall(r"\d+", text)) for text in after}
    # Of an array, no number is that of a text, and the others decide it, too.
    arrays = [[int(number) for number in address], [int(number) for number in address[:3]] + [1]]
    for kind, size in ((0x84, 1), (0x83, 1), (0x86, 2), (0x88, 4), (0x95, 8)):
        record = planted.record(1, [(kind, b"".join(number.to_bytes(size, "little") for number in array)) for array in arrays])
        data = written(con, path, f"SELECT evtx_pseudonymize(?::BLOB{KEY}) AS record", [record])
        assert bytes(arrays[0]) not in data
        after = list(con.execute("SELECT event_data FROM read_evtx(?)", [str(path)]).fetchone()[0].values())
        start, other = (json.loads(array)[:3] for array in after) if size < 8 else after
        assert start != other


@pytest.mark.parametrize("seed", range(SEED, SEED + 6))
def test_no_address_is_left_as_a_number_in_a_field_that_is_allowed(con, tmp_path, seed):
    rows = [line.split("\t") for line in (DATA / "allowed.tsv").read_text().splitlines() if not line.startswith("#")]
    labels = sorted({field for provider, _, field, *_ in rows if provider == "*"})
    draw, path = random.Random(seed), tmp_path / "shared.evtx"
    data = bytes(draw.randrange(11, 250) for _ in range(4))
    for kind, address in itertools.product((planted.INT32, planted.UINT32, planted.HEX32, planted.UINT64, planted.HEX64), (data, data[::-1])):
        value = address + bytes(4 * (kind in (planted.UINT64, planted.HEX64)))
        record = planted.record(1, [(kind, value)] * len(labels), labels)
        log = written(con, path, f"SELECT evtx_pseudonymize(?::BLOB{KEY}) AS record", [record])
        assert address not in log, kind


def test_values_join_as_before(con, tmp_path):
    sid, other = "S-1-5-21-1004336348-1177238915-682003330", "S-1-5-21-4-5-6"
    texts = ["CORP\\anna", "anna@corp.example", "Anna", "ANNA$", "203.0.113.9", "::ffff:203.0.113.9", f"{sid}-1105", sid, f"{other}-500", "S-1-5-18"]
    texts += ["4711", "0x1267", "fe80::abcd", r"C:\Users\anna\AppData\Local\Temp\x9.exe -enc QQBCAEMA", "{54849625-5478-4994-a5ba-3e3b0328c30d}"]
    new = texts_after(con, tmp_path / "shared.evtx", texts)
    anna, domain = new[2], new[7]
    assert re.fullmatch("t-[0-9a-f]{10}", anna)
    assert new[0].endswith("\\" + anna) and new[1].startswith(anna + "@") and new[1].split("@")[1].startswith(new[0].split("\\")[0]) and new[3] == anna + "$"
    assert ipaddress.ip_address(new[4]) in ipaddress.ip_network("240.0.0.0/4") and new[5] == "::ffff:" + new[4]
    assert new[6].startswith(domain + "-") and re.fullmatch(r"S-1-5-21(-\d+){3}", domain) and domain != sid
    assert new[8].endswith("-500") and not new[8].startswith(other) and new[9] == "S-1-5-18"
    assert int(new[10]) == int(new[11], 16) != 4711
    assert ipaddress.ip_address(new[12]) in ipaddress.ip_network("2001:db8::/32")
    assert re.fullmatch(rf"C:\\Users\\{anna}\\AppData\\Local\\Temp\\t-[0-9a-f]{{10}}\.exe -enc t-[0-9a-f]{{10}}", new[13])
    # Numbers and SIDs as values are those in texts.
    values = [(planted.UINT32, (4711).to_bytes(4, "little")), (planted.HEX64, (4711).to_bytes(8, "little")), (planted.SID, planted.sid_bytes(sid))]
    written(con, tmp_path / "typed.evtx", f"SELECT evtx_pseudonymize(?::BLOB{KEY}) AS record", [planted.record(1, values)])
    typed = con.execute("SELECT event_data FROM read_evtx(?)", [str(tmp_path / "typed.evtx")]).fetchone()[0]
    assert list(typed.values()) == [new[10], new[11], domain]


def test_numbers_of_texts_are_not_those_of_relative_ids(con, tmp_path):
    sid, number = texts_after(con, tmp_path / "shared.evtx", ["S-1-5-21-1-2-3-4711", "4711"])
    assert sid.rsplit("-")[-1] != number


def test_an_entry_for_a_field_allows_no_word(con, tmp_path):
    new, = texts_after(con, tmp_path / "shared.evtx", ["CONTOSO\\anna, anna@contoso.example"], ", allow := ['Contoso/1/Anna']")
    assert not re.search("contoso|anna", new, re.I)


def test_words_of_windows_name_nobody(con, tmp_path):
    texts = ["backup@exchange.com", "APP-SERVER.cloud.com", r"C:\Users\backup\AppData", r"C:\Users\Public\AppData", "backup"]
    name = "t-[0-9a-f]{10}"
    texts += [r"User = EXCHANGE\backup", r"net use \\backup-server\c$ /user:exchange\backup", "backup@exchange.bank", "CN=Backup,CN=Users", "BACKUP-SERVER$"]
    texts += [r"C:\Users\Administrator Backup\AppData", "enter-pssession -ComputerName exchange", r"NT AUTHORITY\SYSTEM", r"C:\Program Files\Internet Explorer"]
    new = texts_after(con, tmp_path / "shared.evtx", texts)
    patterns = [rf"{name}@{name}\.com", rf"{name}-{name}\.{name}\.com", rf"C:\\Users\\{name}\\AppData", r"C:\\Users\\Public\\AppData", name]
    patterns += [rf"User = {name}\\{name}", rf"net use \\\\{name}-{name}\\c\$ /user:{name}\\{name}", rf"{name}@{name}\.{name}", rf"{name}={name},{name}=Users", rf"{name}-{name}\$"]
    patterns += [rf"C:\\Users\\{name} {name}\\AppData", rf"{name}-{name} -ComputerName {name}", r"NT AUTHORITY\\SYSTEM", r"C:\\Program Files\\Internet Explorer"]
    assert all(map(re.fullmatch, patterns, new)), new


@pytest.mark.parametrize("word", ["backup", "server", "admin", "sql", "print", "exchange"])
def test_no_name_that_is_a_word_of_windows_is_left(con, tmp_path, word):
    path = tmp_path / "shared.evtx"
    after = texts_after(con, path, [form.replace("{}", word) for form in planted.NAMES])
    log = path.read_bytes().lower().replace(planted.wide("mssqlsvc"), b"")
    assert not [text for text in after if re.search(rf"(?<![a-z]){word}(?![a-z])", text, re.I)]
    assert planted.wide(word) not in log and word.encode() not in log


@pytest.mark.parametrize("word", ["kernel", "core", "client", "defender", "chrome", "config"])
def test_no_text_or_field_that_is_a_name_keeps_a_word_of_windows(con, tmp_path, word):
    path, forms = tmp_path / "shared.evtx", [form for form in planted.NAMES if " " not in form]
    labels = [f"f{index}" for index in range(len(forms))] + ["ServiceName", "TaskName", "DeviceName", "PrinterName", "FileName"]
    texts = [form.replace("{}", word) for form in forms] + [f"{word} of {word}"] * 5
    record = planted.record(1, [(planted.STRING, planted.wide(text)) for text in texts], labels)
    log = written(con, path, f"SELECT evtx_pseudonymize(?::BLOB{KEY}) AS record", [record])
    data = con.execute("SELECT event_data FROM read_evtx(?)", [str(path)]).fetchone()[0]
    assert not [(label, text) for label, text in data.items() if re.search(rf"(?<![a-z]){word}(?![a-z])", text, re.I)]
    assert planted.wide(word) not in log.lower()


@pytest.mark.parametrize("address", ["2001:add:cab:c:bb6:ec::7", "fe80::c:add", "2001:db8::cafe"])
def test_groups_of_an_address_that_are_words_go(con, tmp_path, address):
    literal = address.replace(":", "-") + ".ipv6-literal.net"
    texts = [form.format(word) for word in (address, literal) for form in ("{}", "to {} and", "[{}]:443 a", "{}.443 a", "{}%12 a", "\\\\{}\\c$ a", "https://[{}]/ a")]
    left = [text for text in texts_after(con, tmp_path / "shared.evtx", texts) if re.search(r"(?<![0-9a-f])(add|cab|bb6|ec|fe80|db8:|cafe)(?![0-9a-f])", text.replace("2001:db8:", ""))]
    assert not left


def test_a_key_decides_the_pseudonyms(con, tmp_path):
    with_key = lambda key: texts_after(con, tmp_path / "shared.evtx", ["anna", "10.0.0.1"], f", key := {quoted(key)}")
    assert with_key("the first of two keys") == with_key("the first of two keys") != with_key("the other of two keys")


def test_entries_of_the_user_stay(con, tmp_path):
    path, log = tmp_path / "shared.evtx", [str(SAMPLES / "DC01-Security.evtx")]
    value = lambda: con.execute("SELECT DISTINCT event_data['TargetUserName'] LIKE 't-%', computer LIKE '%.example' FROM read_evtx(?) "
                                "WHERE event_data['TargetUserName'] = 'anna.berg' OR event_id = 4624", [str(path)]).fetchall()
    shared(con, path, log, ", allow := ['Microsoft-Windows-Security-Auditing/4624/TargetUserName', 'example']")
    assert (False, True) in value()
    con.execute("CREATE TABLE words AS SELECT 'example' AS word UNION ALL SELECT '*/*/Computer'")
    shared(con, path, log, ", allow := (SELECT list(word) FROM words)")
    assert con.execute("SELECT DISTINCT computer FROM read_evtx(?)", [str(path)]).fetchall() == [("DC01.northwind.example",)]


def test_an_entry_of_any_field_allows_each(con, tmp_path):
    path, log = tmp_path / "shared.evtx", str(SAMPLES / "DC01-Security.evtx")
    values = lambda where: con.execute(f"SELECT event_id, event_data FROM read_evtx(?) {where}", [log]).fetchall()
    for entry, where in [("*/*/*", ""), ("Microsoft-Windows-Security-Auditing/4624/*", "WHERE event_id = 4624")]:
        log = str(SAMPLES / "DC01-Security.evtx")
        before = values(where)
        shared(con, path, [log], f"{KEY}, allow := [{quoted(entry)}]")
        log = str(path)
        assert values(where) == before != []


def test_values_that_no_clock_and_no_version_has_are_replaced(con, tmp_path):
    texts = ["2024-03-05T10:00:00.491511234Z", "1990-05-17T00:00:00Z", "1990-05-17", "2024-03-05T10:00:00.4915112Z", "::ffff:127.0.0.1"]
    new = texts_after(con, tmp_path / "shared.evtx", texts)
    assert new[3:] == texts[3:] and not set(new[:3]) & set(texts)


def test_a_value_that_is_left_fails_the_copy(con, tmp_path):
    path = tmp_path / "shared.evtx"
    record = planted.record(1, [(planted.STRING, planted.wide("qwrtzp")), (planted.SID, planted.sid_bytes("S-1-5-21-1-2-3-1105"))])
    select = "SELECT evtx_pseudonymize(?::BLOB, allow := ['f0']) AS record UNION ALL SELECT ?::BLOB"
    for kind, data, left in [
        (planted.STRING, planted.wide("secret_host"), "secret_host"),
        (planted.UINT32, (123456).to_bytes(4, "little"), "123456"),
        (planted.SID, planted.sid_bytes("S-1-5-21-7-8-9"), "S-1-5-21-7-8-9"),
        (planted.BINARY, b"\x0f\x1e\x2d", "0F1E2D"),
    ]:
        with pytest.raises(duckdb.Error, match=f"chunk 0, record 2: the log still contains '{left}' in Event/EventData/f0,"):
            written(con, path, select, [record, planted.record(2, [(kind, data)])])
        assert os.listdir(tmp_path) == []
    # Of a record with pseudonyms, too: the marks are those of its own.
    marked = con.execute("SELECT evtx_pseudonymize(?::BLOB)", [record]).fetchone()[0]
    start = marked.index(planted.wide("t-"))
    tampered = marked[:start] + planted.wide("t-0123456789") + marked[start + 24 :]
    with pytest.raises(duckdb.Error, match="the log still contains 't-0123456789'"):
        written(con, path, "SELECT ?::BLOB AS record", [tampered])
    written(con, path, "SELECT ?::BLOB AS record", [marked])
    assert os.listdir(tmp_path) == ["shared.evtx"]


@pytest.mark.parametrize("options", [", PARTITION_BY (part), FILE_EXTENSION 'evtx'", ", PER_THREAD_OUTPUT, FILE_EXTENSION 'evtx'"])
def test_each_file_of_a_copy_is_checked(con, tmp_path, options):
    value = lambda number: planted.record(number, [(planted.STRING, planted.wide("qwrtzp"))])
    rows = [(value(number), number % 3, number) for number in range(1, 30)]
    con.execute("CREATE TABLE rows AS SELECT unnest($1::BLOB[]) AS record, unnest($2::INT[]) AS part, unnest($3::INT[]) AS number", [list(column) for column in zip(*rows)])
    copy = lambda name, record: con.execute(f"COPY (SELECT {record} AS record, part FROM rows) TO {quoted(tmp_path / name)} (FORMAT evtx{options})")
    copy("shared", "evtx_pseudonymize(record)")
    files = [path for path in (tmp_path / "shared").rglob("*") if path.is_file()]
    assert len(files) == 3 or "PARTITION" not in options
    assert sum(con.execute("SELECT count(*) FROM read_evtx(?, verify := true) WHERE error IS NULL", [[str(path)]]).fetchone()[0] for path in files) == len(rows)
    assert not any(planted.wide("qwrtzp") in path.read_bytes() for path in files)
    with pytest.raises(duckdb.Error, match="record [0-9]+: the log still contains 'f0' in Event/EventData/f0"):
        copy("row", "if(number = 7, record, evtx_pseudonymize(record))")
    if "PARTITION" in options:
        with pytest.raises(duckdb.Error, match="part=1.*the log has no pseudonyms, but other files of the same COPY have. Remove it"):
            copy("file", "if(part = 1, record, evtx_pseudonymize(record))")
    copy("plain", "record")


@pytest.mark.parametrize("has_target", [True, False])
def test_a_link_does_not_lead_around_the_check(con, tmp_path, has_target):
    (tmp_path / "real").mkdir()
    target, link = tmp_path / "real" / "log.evtx", tmp_path / "link.evtx"
    log = planted.record(1, [(planted.STRING, planted.wide("secret"))])
    if has_target:
        target.write_bytes(b"before")
    link.symlink_to(target)
    select = "SELECT evtx_pseudonymize(?::BLOB) AS record UNION ALL SELECT ?::BLOB"
    for options in ["", ", USE_TMP_FILE false"]:
        with pytest.raises(duckdb.Error, match="the log still contains"):
            written(con, link, select, [log, log], options)
        assert not has_target or target.read_bytes() == b"before"
        assert planted.wide("secret") not in b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())


def test_a_long_text_becomes_shorter(con, tmp_path):
    text = " ".join(f"b{number}x" for number in range(3_800))
    new, = texts_after(con, tmp_path / "shared.evtx", [text])
    assert re.fullmatch("t-[0-9a-f]{10}", new)


def of_machine(con, logs):
    """What must not change: the events by ID, the sessions, and the depths of processes."""
    value = lambda sql: con.execute(sql, [logs]).fetchall()
    return [
        value("SELECT event_id, time_created, count(*) FROM read_evtx(?) WHERE error IS NULL GROUP BY ALL ORDER BY ALL"),
        value("SELECT logon_time, logoff_time, logon_type, user_sid IS NULL FROM evtx_logons(?) ORDER BY ALL"),
        value("SELECT time_created, depth FROM evtx_process_tree(?) ORDER BY ALL"),
    ]


def names_of(con, logs):
    """The names, SIDs and addresses of logs whose letters and digits are those of no word that Windows has."""
    found = con.execute(f"""SELECT DISTINCT unnest([computer, user_sid] || list_transform({NAMING.split()}, lambda name: event_data[name]))
        FROM read_evtx(?) WHERE error IS NULL""", [logs]).fetchall()
    words = (DATA / "words.txt").read_text().lower().split()
    known = (DATA / "names.txt").read_text() + (DATA / "accounts.txt").read_text() + str(con.execute("SELECT provider, list(DISTINCT field_name) FROM evtx_event_catalog() GROUP BY ALL").fetchall())
    known = known.lower()
    parts = {part.lower() for name, in found if name and not re.match(r"S-1-(?!5-21|12-1)", name) for part in re.split(r"[\x00-\x2f:-@\[-^`{-\x7f]", name)}
    return {part for part in parts.difference(words) if len(part) > 4 and not part.isdigit() and part not in known}


@pytest.mark.parametrize("log", LOGS, ids=lambda log: log.name)
def test_events_keep_their_meaning_without_their_names(con, tmp_path, log):
    try:
        logs, path = [str(log)], tmp_path / "shared.evtx"
        data = shared(con, path, logs).lower()
    except duckdb.Error as error:
        assert "not an EVTX log" in str(error)
        return
    if log.parent == SAMPLES:
        assert of_machine(con, [str(path)]) == of_machine(con, logs)
    left = {name for name in names_of(con, logs) if planted.wide(name) in data or len(name) > 6 and name.encode() in data}
    assert not left
    counts = con.execute("SELECT count(*), count(error) FROM read_evtx(?, verify := true)", [str(path)]).fetchone()
    assert counts == (*con.execute(f"SELECT count(*) FROM read_evtx(?, record := true) {SOUND}", [logs]).fetchone(), 0)
    plain = tmp_path / "plain.evtx"
    written(con, plain, f"SELECT record FROM read_evtx(?, record := true) {SOUND}", [logs])
    for name, judge in JUDGES.items():
        read = [[number for number, _ in itertools.islice(judge(copy), 60) if number] for copy in (path, plain)]
        assert not set(read[1]) - set(read[0]), name


@pytest.mark.parametrize("machine", COLLECTIONS, ids=lambda machine: machine.name)
def test_a_machine_keeps_its_sessions_processes_and_matches(con, tmp_path, machine):
    path = tmp_path / "shared.evtx"
    data = shared(con, path, [str(machine)]).lower()
    assert of_machine(con, [str(path)]) == of_machine(con, [str(machine)])
    assert not [name for name in names_of(con, [str(machine)]) if planted.wide(name) in data or len(name) > 6 and name.encode() in data]
    if SIGMA:
        rules = f"SELECT rule_title, count(*) FROM evtx_sigma(?, rules := {quoted(SIGMA + '/**/*.yml')}) WHERE error IS NULL GROUP BY ALL"
        before, after = (collections.Counter(dict(con.execute(rules, [[str(logs)]]).fetchall())) for logs in (machine, path))
        kept = sum((before & after).values())
        print(f"{machine.name}: {kept} of {sum(before.values())} matches of Sigma rules remain")
        assert 2 * kept >= sum(before.values())
