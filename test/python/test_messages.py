"""Messages from the files of an image, some of them made by the person under investigation."""

import os
import pathlib
import shutil
import sqlite3

import pytest
from conftest import SAMPLES

pytestmark = pytest.mark.skipif("EVTX_HOSTILE" not in os.environ, reason="EVTX_HOSTILE names no folder of crafted files")

IMAGE = pathlib.Path(os.environ.get("EVTX_HOSTILE", "")) / "evil_texts"


@pytest.fixture(name="messages")
def fixture_messages(con, tmp_path):
    """The messages of event 4625 and their sources, with a catalog of these files."""

    def read(*files):
        catalog = tmp_path / "image.messages"
        con.execute(f"COPY (FROM evtx_message_catalog({[str(file) for file in files]})) TO '{catalog}' (FORMAT evtx_messages)")
        shown = con.execute(
            f"""SELECT DISTINCT split_part(message, '.', 1), message_source
                FROM read_evtx('{SAMPLES / 'DC01-Security.evtx'}', messages := '{catalog}', message_source := true) WHERE event_id = 4625""")
        contested = f"SELECT list_sort(list(parse_filename(filename))) FROM evtx_message_catalog('{catalog}') WHERE contested"
        return shown.fetchall(), con.execute(contested).fetchone()[0]

    return read


def test_a_file_that_nobody_registered_does_not_speak_for_a_provider(con, messages):
    own = f"catalog: {IMAGE}/System32/adtschema.dll"
    assert messages(IMAGE) == ([("An account failed to log on", own)], None)
    kinds = con.execute(f"SELECT parse_filename(filename), kind FROM evtx_message_catalog('{IMAGE}') ORDER BY ALL")
    assert kinds.fetchall() == [("adtschema.dll", "event"), ("zz_evil.dll", "text")]


def test_without_a_registry_a_contested_text_is_not_used(messages):
    assert messages(IMAGE / "System32") == ([(None, None)], ["adtschema.dll", "zz_evil.dll"])
    # Each alone has a message, and says whose it is.
    for name, text in [("adtschema.dll", "An account failed to log on"), ("zz_evil.dll", "A scheduled health check of the backup service completed without findings")]:
        assert messages(IMAGE / "System32" / name) == ([(text, f"catalog: {IMAGE}/System32/{name}")], None)


def test_a_database_that_was_found_does_not_speak_for_a_registered_provider(con, tmp_path):
    shutil.copytree(IMAGE, tmp_path / "image")
    with sqlite3.connect(tmp_path / "image" / "evil.db") as database:
        database.executescript(
            """CREATE TABLE providers (id INTEGER PRIMARY KEY, name TEXT, guid TEXT);
               CREATE TABLE messages (provider_id INTEGER, event_id INTEGER, message TEXT);
               INSERT INTO providers VALUES (1, 'Microsoft-Windows-Security-Auditing', NULL), (2, 'Other', NULL);
               INSERT INTO messages VALUES (1, 4625, 'Nothing happened'), (2, 1, 'Something happened')""")
    database.close()
    sql = "SELECT provider, kind FROM evtx_message_catalog($1) WHERE filename LIKE '%evil.db' ORDER BY ALL"
    expected = [("Microsoft-Windows-Security-Auditing", "text"), ("Other", "event")]
    image, named = str(tmp_path / "image"), str(tmp_path / "image" / "evil.db")
    assert con.execute(sql, [image]).fetchall() == expected
    assert con.execute(sql, [[named, image]]).fetchall() == [(provider, "event") for provider, _ in expected]
