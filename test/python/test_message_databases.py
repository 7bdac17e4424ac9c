"""What docs/messages.md shows makes catalogs of the databases that other tools have."""

import re
import sqlite3

from conftest import ROOT

PAGE = (ROOT / "docs" / "messages.md").read_text(encoding="utf-8")
GUID = "{54849625-5478-4994-a5ba-3e3b0328c30d}"

# The tables and columns that the databases have.
WELM = """
CREATE TABLE providers (id INTEGER PRIMARY KEY, name TEXT);
CREATE TABLE messages (id INTEGER PRIMARY KEY, provider_id INTEGER, event_id INTEGER, message TEXT);
INSERT INTO providers VALUES (7, 'One'), (9, 'Two');
INSERT INTO messages VALUES (1, 9, 4625, 'Nothing %1'), (2, 7, 1, 'Something');
"""
TS_EVTX = f"""
CREATE TABLE providers (id INTEGER PRIMARY KEY, name TEXT UNIQUE, guid TEXT);
CREATE TABLE messages (id INTEGER PRIMARY KEY, provider_id INTEGER NOT NULL, event_id INTEGER NOT NULL, message TEXT NOT NULL, language TEXT,
  qualifiers INTEGER, version INTEGER, opcode INTEGER, task INTEGER, channel TEXT, message_id INTEGER, args_count INTEGER, build_min INTEGER,
  build_max INTEGER);
INSERT INTO providers VALUES (1, 'One', '{GUID}');
INSERT INTO messages VALUES (1, 1, 1000, '%1', 'de-DE', 49152, 2, NULL, NULL, NULL, 3221226472, 1, NULL, NULL);
"""
PLASO = rf"""
CREATE TABLE winevtrc_eventlog_provider (_identifier INTEGER PRIMARY KEY, additional_identifier TEXT, category_message_files TEXT,
  event_message_files TEXT, identifier TEXT, log_sources TEXT, log_types TEXT, name TEXT, parameter_message_files TEXT, windows_version TEXT);
CREATE TABLE winevtrc_message_file (_identifier INTEGER PRIMARY KEY, file_version TEXT, product_version TEXT, windows_path TEXT, windows_version TEXT);
CREATE TABLE winevtrc_message_table (_identifier INTEGER PRIMARY KEY, _message_file_identifier TEXT, language_identifier INTEGER);
CREATE TABLE winevtrc_message_string (_identifier INTEGER PRIMARY KEY, _message_table_identifier TEXT, language_identifier TEXT,
  message_identifier INTEGER, text TEXT);
CREATE TABLE winevtrc_message_string_mapping (_identifier INTEGER PRIMARY KEY, _message_file_identifier TEXT, event_identifier INTEGER,
  event_version INTEGER, message_identifier INTEGER, provider_identifier TEXT);
INSERT INTO winevtrc_eventlog_provider VALUES
  (1, NULL, '[]', '["%SystemRoot%\\System32\\A.dll"]', NULL, '["Old", "Older"]', '[]', NULL, '["b.dll"]', NULL),
  (2, NULL, '[]', '["c.dll"]', '{GUID}', '["ignored"]', '[]', 'New', '[]', NULL);
INSERT INTO winevtrc_message_file VALUES (4, NULL, NULL, 'C:\Windows\a.dll', NULL), (5, NULL, NULL, 'b.dll', NULL), (6, NULL, NULL, 'c.dll', NULL);
INSERT INTO winevtrc_message_table VALUES (1, 'winevtrc_message_file.4', 1033), (2, 'winevtrc_message_file.5', 1031),
  (3, 'winevtrc_message_file.6', 1033);
INSERT INTO winevtrc_message_string VALUES (1, 'winevtrc_message_table.1', NULL, 2147484655, '{{0:s}} b {{11:s}} {{{{{{1:s}}}}}} 5%\n\tC:\Windows'),
  (2, 'winevtrc_message_table.2', NULL, 1833, 'Identification'), (3, 'winevtrc_message_table.3', NULL, 3221225473, 'declared'),
  (4, 'winevtrc_message_table.3', NULL, 5, NULL);
INSERT INTO winevtrc_message_string_mapping VALUES (1, 'winevtrc_message_file.6', 41, 3, 3221225473, '{GUID}');
"""


def test_databases_become_catalogs(con, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, script in [("welm", WELM), ("ts", TS_EVTX), ("plaso", PLASO)]:
        database = sqlite3.connect(tmp_path / f"{name}.db")
        database.executescript(script)
        database.close()
    names = {"con": con}
    first, second = re.findall(r"```python\n([^`]*)```", PAGE)
    # The fixture is a connection with the extension.
    exec(re.sub(r"con = .*\n|con.execute\(\"LOAD evtx\"\)", "", first) + second, names)
    shown = {}
    for name, query in [("welm", "WELM"), ("ts", "TS_EVTX"), ("plaso", "PLASO")]:
        names["load"](f"{name}.db")
        names["write"](names[query], f"{name}.messages")
        rows = con.execute(f"""SELECT kind, provider, provider_guid::VARCHAR, event_id, version, qualifiers, message_id, language, text
                               FROM evtx_message_catalog('{name}.messages') ORDER BY ALL""")
        shown[name] = rows.fetchall()
    guid, text = GUID.strip("{}"), r"%1 b %12 {%2} 5%%%n%tC:\Windows"
    assert shown == {
        "welm": [("event", "One", None, 1, None, None, None, None, "Something"), ("event", "Two", None, 4625, None, None, None, None, "Nothing %1")],
        "ts": [("event", "One", guid, 1000, 2, 49152, 3221226472, "de-DE", "%1")],
        "plaso": [
            ("event", "New", guid, 41, 3, None, 3221225473, "en-US", "declared"),
            ("event", "Old", None, 1007, None, 32768, 2147484655, "en-US", text),
            ("event", "Older", None, 1007, None, 32768, 2147484655, "en-US", text),
            ("parameter", "Old", None, None, None, None, 1833, "x-lcid-0407", "Identification"),
            ("parameter", "Older", None, None, None, None, 1833, "x-lcid-0407", "Identification"),
        ],
    }


def test_a_database_is_an_error_that_tells_what_to_do(con, tmp_path):
    sqlite3.connect(tmp_path / "x.db").executescript("CREATE TABLE providers (id INTEGER)").close()
    error, = con.execute(f"SELECT error FROM evtx_message_catalog('{tmp_path}/*')").fetchone()
    assert error == "cannot be read: an SQLite database: convert it to a catalog as docs/messages.md shows"
