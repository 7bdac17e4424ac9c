"""The extension loads and installs, in memory and with a database on disk."""

from conftest import EXTENSION, SAMPLES, connect

QUERY = f"SELECT count(*) FROM '{SAMPLES}/DC01-Security.evtx'"


def test_load_by_path_twice_and_in_many_connections():
    with connect() as con:
        con.execute(f"LOAD '{EXTENSION}'")
        con.load_extension(EXTENSION)
        assert con.cursor().execute(QUERY).fetchone() == (55,)
    with connect() as con:
        con.load_extension(EXTENSION)
        assert con.execute(QUERY).fetchone() == (55,)


def test_install_once_then_load_by_name(tmp_path):
    with connect(extension_directory=str(tmp_path)) as con:
        con.execute(f"INSTALL '{EXTENSION}'")
    with connect(extension_directory=str(tmp_path)) as con:
        con.execute("LOAD evtx")
        assert con.execute(QUERY).fetchone() == (55,)
        row = con.execute("SELECT loaded, installed, extension_version FROM duckdb_extensions() WHERE extension_name = 'evtx'")
        assert row.fetchone() == (True, True, "0.1.0")


def test_a_database_on_disk_keeps_what_was_read(tmp_path):
    database = tmp_path / "case.duckdb"
    with connect(database) as con:
        con.load_extension(EXTENSION)
        con.execute(f"CREATE TABLE logs AS FROM read_evtx('{SAMPLES}/*.evtx')")
        con.execute(f"CREATE VIEW live AS FROM read_evtx('{SAMPLES}/DC01-System.evtx')")
    with connect(database) as con:
        # The table needs no extension.
        assert con.execute("SELECT count(*), count(event_data['ServiceName']) FROM logs").fetchone() == (414, 3)
    with connect(database) as con:
        con.load_extension(EXTENSION)
        assert con.execute("SELECT count(*) FROM live").fetchone() == (10,)
