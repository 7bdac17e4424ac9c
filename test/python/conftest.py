"""Shared by the Python tests: connections with the extension loaded, and large logs."""

import contextlib
import os
import pathlib
import re
import time
import zipfile

import client
import duckdb
import pytest
from made_up import CHANNELS
from structures import CHUNK, FILE_HEADER, file_header

ROOT = pathlib.Path(__file__).resolve().parents[2]
SAMPLES = ROOT / "samples"
EXTENSION = os.environ.get("EVTX_EXTENSION", str(ROOT / "build/release/extension/evtx/evtx.duckdb_extension"))

# What `make test` leaves out, because it takes more than a second or two: files, and tests with their files.
SLOW = {
    "test_archives": [
        "test_an_interrupt_ends_decompression_soon", "test_every_log_of_a_tar_is_read_or_told", "test_what_no_entry_claims_is_a_row", "test_zip64",
    ],
    "test_campaign": [],
    "test_collections": [],
    "test_contents": ["test_rows_are_streamed", "test_rows_come_in_the_order_of_the_log"],
    "test_cookbook": ["test_no_query_takes_damage_for_an_event"],
    "test_copies": [],
    "test_evaluator": [],
    "test_events": ["test_of_more_than_4_gib_a_part_is_read_for_the_fields", "test_predicates_on_fields_give_the_rows_that_duckdb_gives"],
    "test_evtx_arrow": ["test_generated_conditions_leave_the_rows_that_sql_leaves", "test_operators_on_texts_are_those_of_duckdb"],
    "test_evtx_arrow_input": ["test_ctrl_c_ends_a_read", "test_nothing_leaks_over_100_rounds"],
    "test_evtx_arrow_sigma": ["test_ctrl_c_ends_a_read"],
    "test_evtx_arrow_storage": ["test_s3_through_pyarrow"],
    "test_exports": ["test_names_that_occur_again"],
    "test_filesystems": ["test_any_number_of_threads_reads_the_same"],
    "test_filter_pushdown": ["test_every_column_is_compared_as_itself", "test_generated_predicates_give_the_same_rows"],
    "test_install": [],
    "test_macros": ["test_100000_events_take_seconds"],
    "test_python_page": [],
    "test_read_evtx_xml": ["test_documents_are_those_of_element_tree", "test_text_does_not_become_events_after_damage"],
    "test_report": ["test_a_large_page_says_what_is_left_out", "test_few_texts_of_records_are_kept", "test_the_size_is_bounded"],
    "test_scan": ["test_progress_rises", "test_vectors_live_as_long_as_duckdb_holds_them"],
    "test_sigma": [
        "test_an_event_has_a_row_per_rule",
        "test_predicates_choose_rules_and_change_nothing",
        "test_rules_that_are_refused_take_bounded_memory_while_they_load",
    ],
    "test_small_files": ["test_a_result_that_is_read_slowly_has_all_rows", "test_rows_are_those_of_each_file_in_order"],
    "test_statements": [],
    "test_stories": [],
}
# What also reads the folders that EVTX_CORPUS and the like name.
FOLDERS = ["test_attribution", "test_columns_of_events", "test_contents", "test_decoded", "test_events", "test_evtx_arrow_sigma", "test_exports", "test_messages", "test_orphans"]
FOLDERS += ["test_archives", "test_read_evtx_xml", "test_redaction", "test_pseudonyms", "test_sigma_of", "test_stored_values"]


# The columns of read_evtx as the documentation lists them: the name of each, its type, and the path of its value below Event, or none.
DOCUMENTED = re.findall(
    r"^- `(\w+)` ([A-Z_0-9]+)(?: \(`(.+?)`\))?:", (ROOT / "docs/columns.md").read_text(encoding="utf-8").split("<!-- /read_evtx -->")[0], re.MULTILINE)


def pytest_configure(config):
    config.addinivalue_line("markers", "slow: takes long, so `make test` leaves it out")
    config.addinivalue_line("markers", "folders: reads the logs in folders that variables such as EVTX_CORPUS name")


def pytest_collection_modifyitems(items):
    for item in items:
        name = item.originalname
        if name in SLOW.get(item.path.stem, ()) or SLOW.get(item.path.stem) == []:
            item.add_marker("slow")
        if item.path.stem in FOLDERS:
            item.add_marker("folders")


def connect(database=":memory:", **config):
    """A connection without the extension."""
    return duckdb.connect(str(database), config={"allow_unsigned_extensions": "true", **config})


def loaded(**config):
    """A connection with the extension loaded."""
    return client.connect(EXTENSION, **config)


@pytest.fixture
def con():
    """A connection with the extension loaded."""
    with loaded() as connection:
        yield connection


@pytest.fixture(name="over", params=["ASC", "DESC"])
def fixture_over(con, request):
    """Runs a macro over events, with both defaults of ORDER BY. An event is a tuple of seconds, provider, ID, fields, and optionally the SID of its user and the computer. It is in the
    log of its provider."""
    con.execute(f"SET default_order = '{request.param}'; SET default_null_order = '{'NULLS_LAST' if request.param == 'ASC' else 'NULLS_FIRST'}'")
    con.execute(f"CREATE TABLE events AS FROM read_evtx('{SAMPLES / 'DC01-Security.evtx'}') LIMIT 0")

    def run(macro, events, select="*", rest="", copies=1):
        con.execute("DELETE FROM events")
        rows = [
            (number, f"2024-03-05 08:00:00'::TIMESTAMP_NS + INTERVAL '{at * 1000000:.0f} microseconds", *rest)
            for number, (at, *rest) in enumerate(events)
        ]
        for _ in range(copies):
            for number, at, provider, event_id, fields, *origin in rows:
                user, computer = (*origin, *(None, "pc")[len(origin):])
                con.execute(
                    f"""INSERT INTO events (record_id, event_record_id, time_created, provider, event_id, event_data, computer, level, user_sid, channel)
                        SELECT ?, ?, '{at}', ?, ?, map_from_entries(?::STRUCT(k VARCHAR, v VARCHAR)[]), ?, 5, ?, ?""",
                    [number, number, provider, event_id, [{"k": k, "v": v} for k, v in fields.items()], computer, user, CHANNELS.get(provider, provider)],
                )
        return query(macro, select, rest)

    def query(macro, select="*", rest=""):
        return con.execute(f"SELECT {select} FROM {macro}_of('events') {rest}").fetchall()

    run.query, run.con = query, con
    return run


@pytest.fixture(scope="session")
def big_log(tmp_path_factory):
    """A log of 48 MiB: the chunk of DC01-Security.evtx, 768 times."""
    return write_log(tmp_path_factory.mktemp("big") / "big.evtx", "DC01-Security.evtx", 768)


def write_log(path, sample, chunks):
    """Writes a log that repeats a sample's first chunk."""
    data = (SAMPLES / sample).read_bytes()
    with open(path, "wb") as log:
        log.write(file_header(data, chunks))
        for _ in range(chunks):
            log.write(data[FILE_HEADER:FILE_HEADER + CHUNK])
    return path


def write_zip(path, files, method=zipfile.ZIP_DEFLATED):
    """Writes an archive of files by entry name."""
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, file in files.items():
            archive.write(file, name)
    return path


@contextlib.contextmanager
def interrupted(connection, after):
    """Interrupts the query of the block after some seconds of processor time, and asserts that it ends with little more work."""
    with pytest.raises(duckdb.InterruptException), client.interrupting(connection, after) as at:
        yield
    client.promised(time.perf_counter() - at[1], 0.1)
    assert time.process_time() - at[0] < 1


@contextlib.contextmanager
def takes_at_most(seconds):
    """Asserts that the block takes at most some seconds of processor time, of all threads of the process."""
    start, started = time.process_time(), time.perf_counter()
    yield
    client.promised(time.perf_counter() - started, seconds)
    assert time.process_time() - start < seconds


def rows_with_and_without_pushdown(connection, sql, parameters=()):
    """The rows of a query, which must be the same without pushdown."""
    rows = []
    for pushdown in ["true", "false"]:
        connection.execute(f"SET evtx_filter_pushdown = {pushdown}")
        rows.append(connection.execute(sql, parameters).fetchall())
    connection.execute("RESET evtx_filter_pushdown")
    assert rows[0] == rows[1], sql
    return rows[0]


def assert_same_rows(connection, one, other):
    """Asserts that two queries return the same rows in any order."""
    for first, second in [(one, other), (other, one)]:
        assert connection.execute(f"FROM ({first}) EXCEPT ALL FROM ({second})").fetchmany(3) == []


@pytest.fixture(scope="session")
def s3():
    """The address of a mock S3 server with the samples in a bucket."""
    server = pytest.importorskip("moto.server")
    boto3 = pytest.importorskip("boto3")
    running = server.ThreadedMotoServer(port=0)
    running.start()
    host, port = running.get_host_and_port()
    endpoint = f"http://{host}:{port}"
    bucket_client = boto3.client("s3", endpoint_url=endpoint, region_name="us-east-1", aws_access_key_id="key", aws_secret_access_key="secret")
    bucket_client.create_bucket(Bucket="logs")
    for log in SAMPLES.glob("*.evtx"):
        bucket_client.put_object(Bucket="logs", Key=f"case 1/{log.name}", Body=log.read_bytes())
    yield endpoint
    running.stop()
