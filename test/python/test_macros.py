"""Functions of values, and what holds for every macro. test/sql/macros.test runs them over the samples."""

import base64
import csv
import random
import re

import polars
import pytest
from conftest import ROOT, SAMPLES, interrupted, takes_at_most
from made_up import SECURITY, base64_of

TEXTS = [
    "whoami", "IEX (iwr 'http://a/b')", "a😀b", "naïve\r\n\ttext", "x" * 3000, "все файлы", "日本語テキスト", "한국어", "ελ и кир", "Հայերեն", "ქართული",
    "हिन्दी", "नमस्ते", "বাংলা", "தமிழ்", "తెలుగు", "മലയാളം", "አማርኛ", "ខ្មែរ", "עברית", "ไทย", "中文注释 α 这里是一段很长的文字", "한국漢字 섞어 쓰기 하는 문장 입니다",
    "Get-Process # \ue0b0 ქ 日本", "Write-Host '日本' # ελ",
]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16-le"])
@pytest.mark.parametrize("text", TEXTS)
def test_base64_gives_the_text(con, text, encoding):
    plain = base64_of(text, encoding)
    wrapped = "\r\n".join(plain[i:i + 76] for i in range(0, len(plain), 76))
    forms = [plain, plain.rstrip("="), f"  {wrapped}\n", plain.replace("+", "-").replace("/", "_"), base64_of("\ufeff" + text, encoding), base64_of(text + "\0", encoding)]
    assert con.execute("SELECT DISTINCT evtx_decode_base64(unnest(?))", [forms]).fetchall() == [(text,)]


def test_a_byte_order_mark_says_that_letters_of_any_kind_are_text(con):
    text = "ⴰⵎⴰⵣⵉⵖ ꆈꌠ"  # Tifinagh and Yi
    forms = [base64_of(mark + text, "utf-16-le") for mark in ("\ufeff", "")]
    assert con.execute("SELECT evtx_decode_base64(unnest(?))", [forms]).fetchall() == [(text,), (None,)]


def test_what_is_no_base64_is_null(con):
    forms = ["", "a", "abcde", "====", "a===", "ab=c", "!!!!", "ä", "AAAA", "/w==", "//79", None]
    assert con.execute("SELECT DISTINCT evtx_decode_base64(unnest(?::VARCHAR[]))", [forms]).fetchall() == [(None,)]


def test_bytes_that_are_no_text_are_null(con):
    chance = random.Random(1)
    forms = [base64.b64encode(chance.randbytes(60)).decode() for _ in range(2000)]
    assert con.execute("SELECT count(evtx_decode_base64(unnest)) FROM unnest(?)", [forms]).fetchone() == (0,)


def test_decoding_base64_takes_little_and_can_be_interrupted(con):
    text = base64_of("whoami " * 450_000, "utf-16-le")
    con.execute("SET memory_limit = '200MB'")
    assert con.execute("SELECT length(evtx_decode_base64($1))", [text]).fetchone() == (3_150_000,)
    con.execute("RESET memory_limit; CREATE TABLE texts AS SELECT $1 || i AS t FROM range(120) r(i)", [text[:4_000_000]])
    with interrupted(con, after=0.3):
        con.execute("SELECT sum(length(evtx_decode_base64(t))) FROM texts").fetchall()


@pytest.mark.parametrize("between", ["", " ", "s", "S", "*", "\r\n", "\t", "\x01", "\x7f", "\x85", "\u2028", "\ufffe", "\ufffd", "İ", "😀", "\x01\x02" * 50])
def test_an_asterisk_stands_for_any_text(con, between):
    con.execute("CREATE TABLE texts AS FROM read_evtx($1, text := true, fields := true) LIMIT 1", [str(SAMPLES / "DC01-System.evtx")])
    con.execute("UPDATE texts SET text = 'N: ' || $1, fields = [{'name': 'N', 'value': $1}]", [f"Straße İl{between}-ENC Q"])
    for pattern, found in [("IL*-enc", True), ("İL*-enc", True), ("İ*Q", True), (["x", "straße*q"], True), (["İ*zz", "-enc*q"], True), ("Q*STRA", False), ("İ*q*İ", False), ("İ*q*stra", False)]:
        assert (con.execute("SELECT count(*) FROM evtx_search_of('texts', $1)", [pattern]).fetchone() == (1,)) == found, pattern


@pytest.mark.parametrize("parents", [100, 100000])
def test_100000_events_take_seconds(over, parents):
    """Even if each process starts the next."""
    over.con.execute(f"""
        INSERT INTO events BY NAME SELECT
            i::UBIGINT AS record_id, i::UBIGINT AS event_record_id, '2024-03-05'::TIMESTAMP_NS + i * INTERVAL 1 SECOND AS time_created,
            '{SECURITY}' AS provider, 'Security' AS channel, CASE i % 2 WHEN 0 THEN 4688 ELSE 4624 END::UINTEGER AS event_id, 'pc' || i % 3 AS computer,
            MAP {{'NewProcessId': '0x' || to_hex(i % {parents}), 'ProcessId': '0x' || to_hex((i - 6) % {parents}), 'NewProcessName': 'a.exe',
                 'TargetLogonId': '0x' || to_hex(4096 + i % 1000), 'TargetUserName': 'u', 'LogonType': '3', 'SubjectUserName': 'u', 'SubjectDomainName': 'D'}} AS event_data
        FROM range(100000) numbers(i)""")
    for macro, rows in [("evtx_process_tree", 50000), ("evtx_logons", 50000)]:
        with takes_at_most(60):
            assert over.query(macro, "count(*), count(COLUMNS(*))")[0][0] == rows


FORMULA_STARTS = tuple("=+-@＝＋－＠")
NOT_SHOWN = "".join(char for char in map(chr, range(0x10000)) if char.isspace() or not char.isprintable())


def is_formula(cell):
    """Whether a spreadsheet would run a cell. White space and characters that are not shown do not count, nor does the quote of a field."""
    shown = cell.lstrip(NOT_SHOWN + '"')
    # Numbers stay as they are. Before a comma, as where the file is split elsewhere, they are no formula either.
    return shown.startswith(FORMULA_STARTS) and not re.match(r"[+-]?[\d.]*(,|$)", shown)


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
@pytest.mark.parametrize("quoting", [csv.QUOTE_MINIMAL, csv.QUOTE_NONE])
def test_no_cell_of_a_csv_file_is_a_formula(con, tmp_path, delimiter, quoting):
    """Spreadsheets of other countries split the file in other places, as Python's csv module does with another delimiter."""
    if delimiter == "," and quoting == csv.QUOTE_NONE:
        pytest.skip("DuckDB quotes commas, and whoever splits at commas reads quotes")
    draw = random.Random(51)
    alphabet = ["=", "+", "-", "@", "＝", ";", ",", "\t", "\n", "\r", "\0", "\u00a0", "\ufeff", "\x0b", "\x1f", " ", '"', "'", "x", "1", "1+1", "cmd|'/c calc'!A0"]
    texts = ["\t=1+1", '"\t=1+1"', "x\n\n=cmd|'/c calc'!A0", "\0=1+1", "a;;\t\r\n=1", "-1.5", "+"]
    texts += ["".join(draw.choices(alphabet, k=draw.randint(1, 8))) for _ in range(2996)]
    con.execute("CREATE TABLE texts AS SELECT unnest($1) AS a, unnest($2) AS b, unnest($3) AS c", [texts[at::3] for at in range(3)])

    def cells(columns):
        path = tmp_path / "texts.csv"
        con.execute(f"COPY (SELECT {columns} FROM texts) TO '{path}' (FORMAT csv, HEADER false)")
        with path.open(newline="", encoding="utf-8") as file:
            return [cell for row in csv.reader(file, delimiter=delimiter, quoting=quoting) for cell in row]

    assert any(map(is_formula, cells("a, b, c"))), "the judge sees formulas"
    assert [cell for cell in cells("evtx_csv_safe(a), evtx_csv_safe(b), evtx_csv_safe(c)") if is_formula(cell)] == []
    # Without the marks, a text is what it was.
    assert con.execute("SELECT count(*) FROM texts WHERE replace(evtx_csv_safe(a), '''', '') <> replace(a, '''', '')").fetchone() == (0,)


# The arguments of functions by their first parameter, and of those that need others.
USUAL = {"files": "'{samples}'", "table_name": "'events'", "rules": "'{samples}/rules'"}
CALLS = {
    "evtx_from": "'{data}/exports/evtx_dump.jsonl'", "evtx_message_catalog": "'{data}/messages'",
    "evtx_search": "'{samples}', 'alice'", "evtx_search_of": "'texts', 'alice'", "evtx_sigma": "'{samples}', rules := '{samples}/correlations'",
    "evtx_records": "''::BLOB", "evtx_sigma_rows": """'events', '{{"rules": "{samples}/rules"}}'""",
    **dict.fromkeys(["evtx_sigma_of", "evtx_sigma_summary", "evtx_sigma_timeline"], "'{first}', '{samples}/rules'"),
    **dict.fromkeys(["evtx_sigma_summary_of", "evtx_sigma_timeline_of"], "'matches'"), "evtx_case_report_rows": "'events', 'matches', NULL, NULL",
    "read_evtx": "'{samples}', event_id := [4624, 4688, 7045], record := true, fields := true, insertions := true", "read_evtx_xml": "'{samples}/exported.xml'",
}
# They get tables of other macros.
PARTS = {"evtx_case_machines", "evtx_event_rows", "evtx_log_order", "evtx_placed_records", "evtx_starts"}


def test_polars_reads_every_table(con, tmp_path):
    """polars reads no intervals, neither from Arrow nor from Parquet."""
    con.execute(f"""
        CREATE TABLE events AS FROM read_evtx('{SAMPLES}');
        CREATE TABLE texts AS FROM read_evtx('{SAMPLES}', text := true, fields := true);
        CREATE TABLE matches AS FROM evtx_sigma_of('events', '{SAMPLES}/rules')""")
    functions = con.execute("""
        SELECT DISTINCT function_name, parameters[1] FROM duckdb_functions()
        WHERE function_name LIKE '%evtx%' AND function_type IN ('table', 'table_macro') ORDER BY ALL""").fetchall()
    functions = [(name, first) for name, first in functions if name not in PARTS]
    assert len(functions) >= 36
    for name, first in functions:
        given = CALLS.get(name, USUAL.get(first, ""))
        given = given.format(samples=SAMPLES, data=ROOT / "test" / "data", first="events" if first == "table_name" else SAMPLES)
        types = {column: kind for column, kind, *_ in con.execute(f"DESCRIBE FROM {name}({given})").fetchall()}
        assert types and not any("INTERVAL" in kind for kind in types.values()), (name, types)
    for name in ("evtx_logons", "evtx_facts", "evtx_case_summary"):
        frame = con.sql(f"FROM {name}_of('events')").pl()
        con.execute(f"COPY (FROM {name}_of('events')) TO '{tmp_path}/{name}.parquet'")
        assert frame.shape == polars.read_parquet(tmp_path / f"{name}.parquet").shape and frame.height > 0


def test_rows_are_the_same_for_providers_in_any_case(con):
    """Tools that collect events can write providers in lower case."""
    con.execute(f"CREATE TABLE events AS FROM read_evtx('{SAMPLES}')")
    macros = {"evtx_timeline": "* EXCLUDE provider", "evtx_process_tree": "*", "evtx_accounts": "*", "evtx_machines": "*"}
    before = {macro: sorted(map(repr, con.execute(f"SELECT {columns} FROM {macro}_of('events')").fetchall())) for macro, columns in macros.items()}
    con.execute("UPDATE events SET provider = lower(provider)")
    for macro, columns in macros.items():
        assert sorted(map(repr, con.execute(f"SELECT {columns} FROM {macro}_of('events')").fetchall())) == before[macro], macro


def test_a_log_and_its_export_count_once(con, tmp_path):
    """XML has line feeds only, and the numbers of user_data are texts there. An export can have another order of records."""
    logs = str(SAMPLES / "*-S*.evtx")
    xml = con.execute("SELECT string_agg(xml, '\n' ORDER BY filename, record_id) FROM read_evtx($1, xml := true)", [logs]).fetchone()[0]
    (tmp_path / "export.xml").write_text(f"<Events>{xml}</Events>", encoding="utf-8")
    con.execute("CREATE TABLE log AS FROM read_evtx($1)", [logs])
    con.execute("""CREATE TABLE events AS FROM log UNION ALL BY NAME FROM read_evtx_xml($1)
        UNION ALL BY NAME SELECT * REPLACE (filename || '.copy' AS filename, (1000000 - record_id)::UBIGINT AS record_id) FROM log""", [str(tmp_path / "export.xml")])
    for macro in ("evtx_process_tree", "evtx_accounts", "evtx_logons", "evtx_script_blocks"):
        rows = [sorted(map(repr, con.execute(f"FROM {macro}_of('{table}')").fetchall())) for table in ("log", "events")]
        assert rows[0] == rows[1], macro
