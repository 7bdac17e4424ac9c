"""The package evtx_arrow returns the rows of read_evtx, in all types and to every supported library."""

import datetime
import inspect
import os
import pathlib
import random
import re

import evtx_arrow as evtx
import pandas
import polars
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from client import list_of, quoted, quoted_name
from conftest import ROOT, SAMPLES, assert_same_rows, write_zip
from test_columns_of_events import LOGS

OPTIONS = {"xml": True, "json": True, "text": True, "fields": True, "insertions": True, "message_source": True, "location": True, "record": True}
CATALOG = str(ROOT / "test" / "data" / "messages" / "texts.messages")
SQL_OPTIONS = ", ".join(f"{name} := true" for name in OPTIONS)


def assert_same(con, rows, statement):
    """Asserts that an Arrow table has the columns and rows of a statement."""
    expected = con.sql(statement)
    assert rows.schema.names == expected.columns
    con.register("own_rows", rows)
    # The casts compare structs and maps of dictionaries by value.
    ours = ", ".join(f"{quoted_name(name)}::{kind} AS {quoted_name(name)}" for name, kind in zip(expected.columns, expected.types))
    assert_same_rows(con, f"SELECT {ours} FROM own_rows", statement)
    con.unregister("own_rows")


def test_every_column_of_every_log_is_that_of_read_evtx(con):
    for types in ("plain", "native"):
        rows = pa.table(evtx.scan(LOGS, types=types, **OPTIONS))
        assert rows.num_rows > 400
        assert_same(con, rows, f"FROM read_evtx({list_of(LOGS)}, {SQL_OPTIONS})")
        print(f"{rows.num_rows} rows of {len(LOGS)} logs compared, {types}")


@pytest.mark.parametrize("options, sql", [
    ({"verify": True}, "verify := true"),
    ({"recover": True, "location": True}, "recover := true, location := true"),
    ({"messages": CATALOG, "message_source": True, "insertions": True},
     f"messages := '{CATALOG}', message_source := true, insertions := true"),
    ({"on_error": "skip"}, "on_error := 'skip'"),
    ({"provider": "microsoft-windows-security-auditing"}, "provider := 'microsoft-windows-security-auditing'"),
    ({"event_id": [4624, 4625, 4688, 7045, 1, 4104]}, "event_id := [4624, 4625, 4688, 7045, 1, 4104]"),
    ({"event_id": 1, "provider": ["Microsoft-Windows-Sysmon"]}, "event_id := 1, provider := 'Microsoft-Windows-Sysmon'"),
])
def test_options_are_those_of_read_evtx(con, options, sql):
    rows = pa.table(evtx.scan(LOGS, **options))
    assert rows.num_rows > 0
    assert_same(con, rows, f"FROM read_evtx({list_of(LOGS)}, {sql})")


def test_rows_come_in_the_order_of_the_log_whatever_the_threads(big_log):
    columns = ["record_id", "time_created", "record_offset"]
    one = pa.table(evtx.scan([big_log, *LOGS], columns=columns, threads=1))
    for threads in (2, 5):
        assert pa.table(evtx.scan([big_log, *LOGS], columns=columns, threads=threads)).equals(one)
    offsets = one["record_offset"].slice(0, 1000).to_pylist()
    assert offsets == sorted(offsets)


def test_folders_globs_lists_and_archives(con, tmp_path):
    for files in (SAMPLES, str(SAMPLES), f"{SAMPLES}/*.EVTX", sorted(SAMPLES.glob("*.evtx"))):
        rows = evtx.scan(files, columns=["filename", "record_id"])
        assert len(rows.files) == len(list(SAMPLES.glob("*.evtx")))
        assert_same(con, pa.table(rows), f"SELECT filename, record_id FROM read_evtx('{SAMPLES}')")
    write_zip(tmp_path / "case 1%4.zip", {f"C/Ünï/{log.name}": log for log in SAMPLES.glob("DC01-*.evtx")})
    statement = f"FROM read_evtx('{tmp_path}/case 1%4.zip')"
    for threads in (1, 4):
        assert_same(con, pa.table(evtx.scan(tmp_path / "case 1%4.zip", threads=threads)), statement)


def test_the_libraries_read_a_scan(con):
    log = SAMPLES / "DC01-Security.evtx"
    rows = evtx.scan(log)
    expected = pa.table(rows)
    assert expected.num_rows > 10 and rows.schema == expected.schema == pa.schema(rows)
    duck = con.execute("SELECT count(*), count(DISTINCT event_id), min(time_created) FROM rows WHERE event_id > 4000").fetchone()
    assert duck == con.execute(f"SELECT count(*), count(DISTINCT event_id), min(time_created) FROM read_evtx('{log}') WHERE event_id > 4000").fetchone()
    frame = polars.DataFrame(rows)
    # For a stream from another library than pyarrow, this returns a column of structs.
    assert polars.from_arrow(rows).struct.unnest().equals(frame)
    assert frame.height == expected.num_rows
    assert frame["event_id"].to_list() == expected["event_id"].to_pylist()
    assert frame["computer"].to_list() == expected["computer"].to_pylist()
    table = pandas.DataFrame.from_arrow(rows)
    assert table["record_id"].tolist() == expected["record_id"].to_pylist()
    assert list(table["provider"]) == expected["provider"].to_pylist()
    # A scan can be read again.
    assert pa.table(rows).equals(expected)


def test_datafusion_reads_a_scan():
    datafusion = pytest.importorskip("datafusion")
    rows = evtx.scan(SAMPLES / "DC01-Security.evtx")
    context = datafusion.SessionContext()
    frame = context.from_arrow(rows, name="events")
    assert frame.count() == pa.table(rows).num_rows
    found = context.sql("SELECT event_id, count(*) AS n FROM events GROUP BY event_id").to_pydict()
    assert sum(found["n"]) == pa.table(rows).num_rows


def test_daft_reads_a_scan():
    daft = pytest.importorskip("daft")
    rows = evtx.scan(SAMPLES / "DC01-Security.evtx", columns=["record_id", "event_id", "computer", "time_created"])
    frame = daft.from_arrow(pa.table(rows))
    assert frame.where(frame["event_id"] > 4000).count_rows() == pc.sum(pc.greater(pa.table(rows)["event_id"], 4000)).as_py()


def test_polars_pushes_projections_and_predicates(con):
    col = polars.col
    when = datetime.datetime(2024, 3, 5, 8, 30)
    whole = polars.DataFrame(evtx.scan(SAMPLES))
    lazy = evtx.scan_polars(SAMPLES)
    assert lazy.collect_schema() == whole.schema
    assert lazy.collect().equals(whole)
    queries = [
        lambda frame: frame.filter(col("event_id") == 4625).select("computer", "event_id"),
        lambda frame: frame.filter((col("event_id") >= 4624) & (col("computer") != "x"), col("level").is_not_null()).select("record_id"),
        lambda frame: frame.filter(col("time_created") >= when).select("time_created", "record_id"),
        lambda frame: frame.filter((col("event_id") == 1) | (col("error").is_not_null())),
        lambda frame: frame.filter(col("provider").str.contains("Security")).select("provider"),
        lambda frame: frame.filter(4700 > col("event_id")).select(polars.len()),
        lambda frame: frame.filter(col("error").is_null() & col("event_id").is_in([4624, 1])).head(7),
        lambda frame: frame.select(polars.len()),
        lambda frame: frame.group_by("event_id").len().sort("event_id"),
    ]
    for query in queries:
        assert query(lazy).collect().equals(query(whole.lazy()).collect())


def test_polars_conditions_reach_the_scan():
    from evtx_arrow._polars import _conditions

    col = polars.col
    when = datetime.datetime(2024, 3, 5)
    assert _conditions((col("event_id") == 4625) & (7 < col("level"))) == [("event_id", "=", 4625), ("level", ">", 7)]
    assert _conditions(col("computer") == "DC01") == [("computer", "=", "DC01")]
    assert _conditions(col("error").is_null()) == [("error", "is null")]
    [(name, operator, value)] = _conditions(col("time_created") >= when)
    assert (name, operator) == ("time_created", ">=")
    assert value in [when, ("instant", 1709596800 * 10**9)]
    assert _conditions((col("event_id") == 1) | (col("level") == 2)) == []


PLAIN = {
    "record_id": pa.uint64(), "time_created": pa.timestamp("ns"), "event_id": pa.uint32(), "level": pa.uint8(),
    "provider": pa.string(), "event_data": pa.map_(pa.string(), pa.string()), "message": pa.string(),
    "task": pa.uint16(), "keywords": pa.uint64(), "user_data": pa.string(), "json": pa.string(), "provider_guid": pa.uuid(), "error": pa.string(), "filename": pa.string(),
    "recovered": pa.bool_(),
}
SPARK = {
    "record_id": pa.int64(), "time_created": pa.timestamp("us", "UTC"), "event_id": pa.int64(), "level": pa.int16(),
    "provider": pa.string(), "event_data": pa.map_(pa.string(), pa.string()), "message": pa.string(),
    "task": pa.int32(), "keywords": pa.int64(), "provider_guid": pa.string(), "error": pa.string(), "filename": pa.string(),
    "user_data": pa.string(), "recovered": pa.bool_(),
}


def test_types_are_plain_native_or_those_of_spark():
    scans = {types: evtx.scan(SAMPLES, types=types, recover=True, **OPTIONS) for types in ("plain", "native", "spark")}
    schemas = {types: rows.schema for types, rows in scans.items()}
    for types, wanted in (("plain", PLAIN), ("spark", SPARK)):
        assert {name: schemas[types].field(name).type for name in wanted} == wanted
        for field in schemas[types]:
            assert not any(part in str(field.type) for part in ("dictionary", "view")), field
        item = schemas[types].field("fields").type.value_type
        assert [item[0].type, item[1].type] == [pa.string(), pa.string()]
    assert schemas["native"].field("provider").type == pa.dictionary(pa.int32(), pa.string())
    assert schemas["native"].field("message").type == pa.string_view()
    tables = {types: pa.table(rows) for types, rows in scans.items()}
    plain, spark = tables["plain"], tables["spark"]
    assert plain.num_rows == spark.num_rows == tables["native"].num_rows
    bits = [None if number is None else number - (1 << 64) if number >> 63 else number for number in plain["keywords"].to_pylist()]
    assert spark["keywords"].to_pylist() == bits and min(number for number in bits if number is not None) < 0
    nanos = plain["time_created"].cast(pa.int64()).to_pylist()
    assert spark["time_created"].cast(pa.int64()).to_pylist() == [None if time is None else time // 1000 for time in nanos]
    assert spark["provider_guid"].to_pylist() == [None if guid is None else str(guid) for guid in plain["provider_guid"].to_pylist()]
    for name in ("event_data", "fields", "user_data", "xml", "text", "level", "event_id"):
        assert spark[name].to_pylist() == plain[name].to_pylist(), name


def test_fields_of_events_have_their_types(con):
    """Lists, GUIDs, binary, floats and numbers of 128 bits."""
    ids = [row[0] for row in con.execute(f"SELECT DISTINCT event_id FROM read_evtx({list_of(LOGS)}) WHERE event_id IS NOT NULL").fetchall()]
    wanted = random.Random(7).sample(sorted(ids), min(16, len(ids)))
    kinds = set()
    for event_id in wanted:
        for types in ("plain", "spark"):
            rows = pa.table(evtx.scan(LOGS, event_id=event_id, types=types))
            kinds |= {str(kind) for kind in rows.schema.types}
            if types == "plain":
                assert_same(con, rows, f"FROM read_evtx({list_of(LOGS)}, event_id := {event_id})")
            else:
                unsigned = [field for field in rows.schema if str(field.type).startswith("uint")]
                assert unsigned == []
    print(f"events of {len(wanted)} IDs compared, types {sorted(kinds)}")


def test_parquet_takes_plain_and_spark_types(tmp_path):
    from pyarrow import parquet

    for types in ("plain", "spark"):
        rows = pa.table(evtx.scan(SAMPLES, types=types))
        parquet.write_table(rows, tmp_path / "events.parquet")
        assert parquet.read_table(tmp_path / "events.parquet").num_rows == rows.num_rows


def test_the_columns_that_are_named():
    rows = evtx.scan(SAMPLES, columns=["XML", "event_id", "record_id"])
    assert rows.columns == ["xml", "event_id", "record_id"] == pa.table(rows).schema.names
    count = pa.table(evtx.scan(SAMPLES)).num_rows
    reader = pa.RecordBatchReader.from_stream(evtx.scan(SAMPLES, columns=[]))
    assert sum(batch.num_rows for batch in reader) == count
    assert pa.table(rows.narrow(["event_id"], ("event_id", "=", 4625))).schema.names == ["event_id"]


# Conditions.


def sql_of(value):
    match value:
        case bool() | int():
            return str(value)
        case datetime.datetime():
            return f"'{value}'::TIMESTAMP_NS"
        case ("instant", nanoseconds):
            return f"make_timestamp_ns({nanoseconds})"
        case _:
            return quoted(value)


TEXT_OPERATORS = {
    "starts_with": "starts_with({}, {})", "ends_with": "suffix({}, {})", "contains": "contains({}, {})",
    "like": "{} LIKE {}", "ilike": "{} ILIKE {}", "not like": "{} NOT LIKE {}", "not ilike": "{} NOT ILIKE {}",
}


def generated(choose, values, column, is_text):
    """A condition on a column, from its own values, and the same in SQL."""
    name = quoted_name(column)
    some = [value for value in values if value is not None]
    if not some or choose.random() < 0.1:
        operator = choose.choice(["is null", "is not null"])
        return (column, operator), f"{name} {operator}"
    value = choose.choice(some)
    if isinstance(value, int) and not isinstance(value, bool) and choose.random() < 0.3:
        value = choose.choice([value + 1, value - 1, -1, 1 << 70, 0, -(1 << 70)])
    operator = choose.choice(["=", "!=", "<", "<=", ">", ">=", "in", "not in", "between", *(TEXT_OPERATORS if is_text else ())])
    if operator in ("in", "not in"):
        chosen = choose.choices(some, k=choose.randint(0, 4))
        listed = ", ".join(sql_of(value) for value in chosen) or "NULL"
        truth = f"{name} {operator} ({listed})"
        return (column, operator, chosen), truth if chosen else f"{operator == 'not in'} AND {name} IS NOT NULL"
    if operator == "between":
        pair = choose.choices(some, k=2)
        return (column, operator, pair), f"{name} BETWEEN {sql_of(pair[0])} AND {sql_of(pair[1])}"
    if operator in TEXT_OPERATORS:
        start = choose.randrange(len(value) + 1)
        part = value[start:start + choose.randint(0, 8)]
        if "like" in operator:
            part = choose.choice(["%{}%", "{}%", "_{}", "%{}_%"]).format(part)
            part = part.swapcase() if "ilike" in operator and part.isascii() else part
        return (column, operator, part), TEXT_OPERATORS[operator].format(name, quoted(part))
    return (column, operator, value), f"{name} {operator} {sql_of(value)}"


@pytest.mark.parametrize("options", [
    {}, {"on_error": "skip"}, {"event_id": [4624, 4625, 4688, 7045, 1]}, {"text": True, "xml": True, "json": True, "location": True, "recover": True},
], ids=str)
def test_generated_conditions_leave_the_rows_that_sql_leaves(con, options):
    sql = "".join(f", {name} := {value!r}" for name, value in options.items())
    con.sql(f"CREATE TABLE whole AS FROM read_evtx('{SAMPLES}'{sql})")
    base = evtx.scan(SAMPLES, **options)
    table = pa.table(base)
    choose = random.Random(str(options))
    compared = [field.name for field in table.schema if not pa.types.is_nested(field.type) and not pa.types.is_binary(field.type) and not pa.types.is_floating(field.type) and not pa.types.is_decimal(field.type)]
    values = {}
    for name in compared:
        column = table[name]
        if pa.types.is_timestamp(column.type):
            values[name] = [None if time is None else ("instant", time) for time in column.cast(pa.int64()).to_pylist()]
        else:
            values[name] = [str(value) if type(value).__name__ == "UUID" else value for value in column.to_pylist()]
    sizes = set()
    for _ in range(150):
        pairs = [generated(choose, values[name], name, pa.types.is_string(table.schema.field(name).type)) for name in choose.choices(compared, k=choose.randint(1, 2))]
        where, statement = [pair[0] for pair in pairs], " AND ".join(f"({pair[1]})" for pair in pairs)
        rows = pa.table(base.narrow(["record_id", "filename", "event_id"], where))
        assert_same(con, rows, f"SELECT record_id, filename, event_id FROM whole WHERE {statement}")
        sizes.add(rows.num_rows)
    assert len(sizes) > 10 and 0 in sizes


# Characters that patterns, SQL and other programs give a meaning, and letters whose cases do not come in pairs.
TEXTS = ["", "a", "A", "%", "_", "\\", "\\%", "\\\\", "C:\\Windows\\a", "c:\\WINDOWS\\A", "'", '"', "a%b", "a_b", "a\nb", " a", "ä", "Ä", "ß", "ẞ", "SS", "ς", "σ", "Σ",
         "ſ", "s", "S", "\u212a", "k", "İ", "i", "ı", "I", "é", "e\u0301", "日本", "😀", "1", "01", "-1", "a.b", "a(b", "[a]", "^a$", "a*"]


def test_operators_on_texts_are_those_of_duckdb(con, tmp_path):
    log = tmp_path / "texts.evtx"
    con.execute("CREATE TABLE texts AS SELECT unnest(?) AS text", [TEXTS])
    con.sql(f"""COPY (SELECT evtx_redact(record, MAP {{'TargetUserName': text}}) AS record FROM texts,
        (SELECT record FROM read_evtx('{SAMPLES}/DC01-Security.evtx', record := true) WHERE event_id = 4625 LIMIT 1)
        UNION ALL SELECT record FROM read_evtx('{SAMPLES}/DC01-Security.evtx', record := true) WHERE event_id = 4688) TO '{log}' (FORMAT evtx)""")
    con.sql(f"CREATE TABLE logons AS FROM read_evtx('{log}', event_id := [4625, 4688])")
    base = evtx.scan(log, event_id=[4625, 4688])
    assert {row[0] for row in con.sql("SELECT TargetUserName FROM logons").fetchall()} >= set(TEXTS)
    matches = 0
    comparisons = {operator: f"{{}} {operator} {{}}" for operator in ("=", "==", "!=", "<>", "<", "<=", ">", ">=")}
    for operator, sql in (comparisons | TEXT_OPERATORS).items():
        patterns = TEXTS + ["%" + text + "%" for text in TEXTS] + ["_" + text for text in TEXTS] if "like" in operator else TEXTS
        for text in patterns:
            for column, name in (("TargetUserName", "TargetUserName"), (("event_data", "TargetUserName"), "event_data['TargetUserName']")):
                rows = pa.table(base.narrow(["record_id"], [(column, operator, text)]))
                expected = con.sql(f"SELECT record_id FROM logons WHERE {sql.format(name, quoted(text))} ORDER BY ALL").fetchall()
                assert [(record,) for record in sorted(rows["record_id"].to_pylist())] == expected, (operator, text)
                matches += len(expected)
    assert matches > 10_000
    for value in (0, 3, "3", -1, 1 << 40):
        for operator in comparisons:
            rows = pa.table(base.narrow(["record_id"], [("LogonType", operator, int(value))]))
            assert rows.num_rows == con.sql(f"SELECT count(*) FROM logons WHERE LogonType {operator} {value}").fetchall()[0][0]


def test_conditions_on_entries_and_on_values_of_python(con):
    log = SAMPLES / "DC01-Security.evtx"
    def count(*where, **options):
        return pa.table(evtx.scan(log, columns=["record_id"], where=list(where), **options)).num_rows

    def expected(condition):
        return con.execute(f"SELECT count(*) FROM read_evtx('{log}') WHERE {condition}").fetchone()[0]

    name = con.execute(f"SELECT event_data['TargetUserName'] FROM read_evtx('{log}') WHERE event_data['TargetUserName'] IS NOT NULL").fetchone()[0]
    wanted = expected(f"event_data['TargetUserName'] = {quoted(name)}")
    assert wanted > 0
    assert count((("event_data", "TargetUserName"), "=", name)) == wanted
    assert count((("event_data", "TargetUserName"), "is null")) == expected("event_data['TargetUserName'] IS NULL")
    time = con.execute(f"SELECT max(time_created) FROM read_evtx('{log}')").fetchone()[0]
    wanted = expected("time_created < (SELECT max(time_created) FROM read_evtx('%s'))" % log)
    nanos = con.execute(f"SELECT epoch_ns(max(time_created)) FROM read_evtx('{log}')").fetchone()[0]
    for value in (pandas.Timestamp(nanos), pandas.Timestamp(nanos, tz="UTC"), pandas.Timestamp(nanos).to_datetime64(), pandas.Timestamp(nanos, tz="Europe/Berlin")):
        assert count(("time_created", "<", value)) == wanted > 0
        assert count(("time_created", "=", value)) == expected(f"epoch_ns(time_created) = {nanos}") > 0
    day = time.date()
    for value in (day, str(day), datetime.datetime(day.year, day.month, day.day), datetime.datetime(day.year, day.month, day.day, tzinfo=datetime.UTC)):
        assert count(("time_created", ">=", value)) == expected(f"time_created >= '{day}'::TIMESTAMP")
    guid = evtx.scan(log, columns=["provider_guid"], where=("provider_guid", "is not null"))
    guid = pa.table(guid)["provider_guid"][0].as_py()
    for value in (guid, str(guid), str(guid).upper()):
        assert count(("provider_guid", "=", value)) == expected(f"provider_guid = '{guid}'") > 0


def test_conditions_hold_where_damage_ends_the_scan(con):
    """With on_error="fail", the core evaluates no conditions."""
    log = SAMPLES / "DC01-Security.evtx"
    for where, sql in [(("event_id", "in", [4624, 4625]), "event_id IN (4624, 4625)"), (("computer", "like", "%DC01%"), "computer LIKE '%DC01%'"),
                       (("level", "<", 300), "level < 300"), ((("event_data", "LogonType"), "=", "3"), "event_data['LogonType'] = '3'"),
                       (("time_created", ">", "2024-03-05T08:30:00Z"), "time_created > '2024-03-05 08:30:00'::TIMESTAMP")]:
        rows = pa.table(evtx.scan(log, where=where, on_error="fail"))
        assert_same(con, rows, f"FROM read_evtx('{log}', on_error := 'fail') WHERE {sql}")
        assert rows.num_rows > 0


def test_the_parameters_are_the_documented_arguments():
    parameters = inspect.signature(evtx.scan).parameters
    page = (ROOT / "docs" / "read_evtx.md").read_text(encoding="utf-8")
    table = re.search(r"<!-- arguments -->(.*)<!-- /arguments -->", page, re.S)[1]
    documented = dict(re.findall(r"^\| `(\w+)` \| (?:`'?(.*?)'?`)? \|", table, re.M))
    assert len(documented) > 10 and documented.pop("hive_partitioning") == "false"
    own = {"files", "columns", "where", "threads", "filesystem", "types"}
    assert parameters.keys() == own | documented.keys()
    for name, default in documented.items():
        assert str(parameters[name].default).lower() == (default or "none").lower()
    for name in parameters:
        assert f"        {name}: " in evtx.scan.__doc__


def test_a_decimal_is_a_number_of_128_bits(con):
    rows = con.execute(f"SELECT event_id FROM evtx_schema({list_of(LOGS)}) WHERE column_type = 'HUGEINT' GROUP BY ALL").fetchall()
    for (event_id,) in rows[:3]:
        table = pa.table(evtx.scan(LOGS, event_id=event_id))
        assert any(pa.types.is_decimal(kind) for kind in table.schema.types)
        assert_same(con, table, f"FROM read_evtx({list_of(LOGS)}, event_id := {event_id})")
    print(f"{len(rows)} kinds of events with numbers of 128 bits")


def test_a_path_is_what_its_bytes_say(tmp_path):
    names = ["a%4b.evtx", "with blank.evtx", "Ünï-日本.evtx", "br[1]ck.evtx", "qu'ote.evtx"]
    for name in names:
        (tmp_path / name).write_bytes((SAMPLES / "DC01-System.evtx").read_bytes())
    for files in ([tmp_path / name for name in names], tmp_path):
        rows = pa.table(evtx.scan(files, columns=["filename"]))
        assert sorted({pathlib.Path(path).name for path in rows["filename"].to_pylist()}) == sorted(names)
    assert os.sep in rows["filename"][0].as_py()


def test_codes_mean_what_they_mean_in_sql(con):
    tables = ("status", "logon_type", "privilege", "ticket_options", "access_file")
    for table, code in con.execute(f"SELECT table_name, code FROM evtx_codes() WHERE table_name IN {tables}").fetchall():
        sql = [f"evtx_code_{lookup}($1, $2)" for lookup in ("name", "names", "meaning", "text")]
        answers = con.execute(f"SELECT {', '.join(sql)}", [table, code]).fetchone()
        functions = evtx.code_name, evtx.code_names, evtx.code_meaning, evtx.code_text
        assert tuple(function(table, code) for function in functions) == answers, (table, code)
    assert evtx.code_name("logon_type", 3) == evtx.code_name("logon_type", "3") == "Network"
    assert evtx.code_names("ticket_options", 0x40810000) == evtx.code_names("ticket_options", "0x40810000")
    assert evtx.code_text("parameters", "%%1541 %%9") == "SYNCHRONIZE, %%9"
    rows = pandas.DataFrame.from_arrow(evtx.scan(SAMPLES, event_id=4625, columns=["SubStatus"]))
    assert rows.SubStatus.dtype == "float64"
    names = rows.SubStatus.map(lambda code: evtx.code_name("status", code)).value_counts()
    assert names["STATUS_WRONG_PASSWORD"] == 39
    for missing in (float("nan"), pandas.NA, pandas.NaT):
        assert evtx.code_text("parameters", missing) is evtx.code_names("ticket_options", missing) is None
    for wrong in (True, 3.5, float("inf"), b"3", [3]):
        with pytest.raises(TypeError, match="a code is text or a whole number, not "):
            evtx.code_name("logon_type", wrong)
    assert evtx.code_name("logon_type", "nonsense") is evtx.code_name("logon_type", None) is None
    with pytest.raises(ValueError, match="unknown table of codes 'colors'; use one of access_"):
        evtx.code_name("colors", 1)
