"""Which files are read: folders that also contain other files, file systems registered in Python, unusual names, access rights."""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import zipfile

import duckdb
import fsspec
import pytest
from conftest import EXTENSION, SAMPLES, takes_at_most


def test_a_folder_with_rubbish_in_it(con, tmp_path):
    shutil.copy(SAMPLES / "dirty.evtx", tmp_path / "good.evtx")
    (tmp_path / "empty.evtx").touch()
    (tmp_path / "text.evtx").write_text("no log\n")
    (tmp_path / "header-only.evtx").write_bytes((SAMPLES / "dirty.evtx").read_bytes()[:4096])
    (tmp_path / "notes.txt").write_text("not asked for\n")
    (tmp_path / "zeros.evtx").write_bytes(bytes(200_000))
    (tmp_path / "folder.evtx").mkdir()
    rows = con.execute(
        "SELECT parse_filename(filename), count(*), count(error) FROM read_evtx($1) GROUP BY ALL ORDER BY 1",
        [str(tmp_path / "*.evtx")],
    ).fetchall()
    assert rows == [
        ("empty.evtx", 1, 1),
        ("good.evtx", 80, 0),
        # Its header lists two chunks.
        ("header-only.evtx", 1, 1),
        ("text.evtx", 1, 1),
        ("zeros.evtx", 1, 1),
    ]


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="root can read everything")
def test_a_file_that_may_not_be_read(con, tmp_path):
    path = tmp_path / "secret.evtx"
    shutil.copy(SAMPLES / "dirty.evtx", path)
    path.chmod(0)
    with pytest.raises(duckdb.IOException, match="secret.evtx"):
        con.execute("FROM read_evtx($1)", [str(path)]).fetchall()
    assert "cannot be read" in con.execute("SELECT error FROM read_evtx($1)", [str(tmp_path / "*.evtx")]).fetchone()[0]


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such files")
def test_what_has_no_offsets_is_refused_at_once(con, tmp_path):
    os.mkfifo(tmp_path / "pipe.evtx")
    shutil.copy(SAMPLES / "dirty.evtx", tmp_path / "log.evtx")
    for path in [f"{tmp_path}/pipe.evtx", f"file://{tmp_path}/pipe.evtx", "/dev/zero"]:
        for query in ["FROM read_evtx($1)", "FROM read_evtx($1, event_id := 1)", "FROM evtx_file_metadata($1)"]:
            with pytest.raises(duckdb.IOException, match="is a pipe or a device"):
                con.execute(query, [path]).fetchall()
    assert con.execute("SELECT count(*) FROM read_evtx($1)", [str(tmp_path)]).fetchone() == (80,)


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such files")
def test_what_is_out_of_reach_is_a_row(con):
    with tempfile.TemporaryDirectory() as name:
        for folder in ["open", "closed"]:
            os.mkdir(f"{name}/{folder}")
            shutil.copy(SAMPLES / "dirty.evtx", f"{name}/{folder}/a.evtx")
        os.symlink("/nowhere/b.evtx", f"{name}/open/b.evtx")
        os.symlink("/nowhere/c.zip", f"{name}/open/c.zip")
        os.symlink("/nowhere/d.txt", f"{name}/open/d.txt")
        os.chmod(name, 0o755)
        os.chmod(f"{name}/closed", 0)
        is_root = os.geteuid() == 0
        if is_root:
            os.seteuid(65534)
        try:
            query = "SELECT filename[length($1) + 2 :], count(*), count(error) FROM %s($1 || $2) GROUP BY ALL ORDER BY 1"
            read = [con.execute(query % "read_evtx", [name, glob]).fetchall() for glob in ["", "/*/*.evtx"]]
            metadata = con.execute(query % "evtx_file_metadata", [name, ""]).fetchall()
            with pytest.raises(duckdb.Error, match="closed"):
                con.execute("FROM read_evtx($1)", [f"{name}/closed"])
        finally:
            if is_root:
                os.seteuid(0)
            os.chmod(f"{name}/closed", 0o755)
    links = [("open/b.evtx", 1, 1), ("open/c.zip", 1, 1)]
    assert read[0] == [("closed", 1, 1), ("open/a.evtx", 80, 0), *links]
    assert read[1] == [("closed", 1, 1), ("open/a.evtx", 80, 0), links[0]]
    assert metadata == [("closed", 1, 1), ("open/a.evtx", 1, 0), *links]


def test_a_name_with_brackets_is_that_of_a_file(con, tmp_path):
    for name, log in [("l[1].evtx", "dirty"), ("l1.evtx", "wrapped"), ("[x]/y.evtx", "dirty"), ("x/y.evtx", "wrapped")]:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(SAMPLES / f"{log}.evtx", tmp_path / name)
    count = "SELECT count(*) FROM read_evtx($1)"
    for name in ["l[1].evtx", "[x]/y.evtx", "[x]"]:
        assert con.execute(count, [f"{tmp_path}/{name}"]).fetchone() == (80,), name
    assert con.execute(count, [f"{tmp_path}/l[0-9].evtx"]).fetchone() == (160,)
    names = con.execute("SELECT filename, count(*) FROM read_evtx($1) GROUP BY ALL", [str(tmp_path)]).fetchall()
    assert len(names) == 4
    for name, rows in names:
        assert con.execute(count, [name]).fetchone() == (rows,)


def test_a_folder_is_as_a_glob(con, tmp_path):
    shutil.copy(SAMPLES / "dirty.evtx", tmp_path / "UP.EVTX")
    (tmp_path / "none.evtx").write_bytes(b"no log at all")
    query = "SELECT parse_filename(filename), count(*), count(error) FROM read_evtx($1) GROUP BY ALL ORDER BY ALL"
    assert con.execute(query, [str(tmp_path)]).fetchall() == [("UP.EVTX", 80, 0), ("none.evtx", 1, 1)]
    assert con.execute("SELECT count(*), count(error) FROM evtx_file_metadata($1)", [str(tmp_path)]).fetchone() == (2, 1)


def test_an_empty_path_is_refused(con):
    for function in ["read_evtx", "evtx_schema", "evtx_file_metadata"]:
        with pytest.raises(duckdb.InvalidInputException, match="cannot take an empty path"):
            con.execute(f"FROM {function}('')")


def test_an_event_id_is_a_whole_number(con):
    query = f"SELECT count(*) FROM read_evtx('{SAMPLES}/dirty.evtx', event_id := %s)"
    assert con.execute(query % "4624.0").fetchone() == con.execute(query % "4624").fetchone()
    with pytest.raises(duckdb.InvalidInputException, match="event_id must be a whole number from 0 to 4294967295, or a list of them, not 4625.7"):
        con.execute(query % "4625.7")


def test_messages_take_memory_within_its_limit(con):
    con.execute("SET memory_limit = '20MB'")
    query = f"SELECT count(*), count(message) FROM '{SAMPLES}/DC01-System.evtx'"
    assert con.execute(query).fetchone() == (10, 9)
    # A quarter of this is less than the file of messages could take.
    con.execute("SET memory_limit = '2MB'")
    assert con.execute(query).fetchone() == (10, 0)


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such files")
def test_messages_are_no_pipe(con, tmp_path):
    shutil.copy(SAMPLES / "DC01-System.evtx", tmp_path / "log.evtx")
    (tmp_path / "LocaleMetaData").mkdir()
    os.mkfifo(tmp_path / "LocaleMetaData" / "log_1033.MTA")
    query = "SELECT count(*), count(message) FROM read_evtx($1)"
    assert con.execute(query, [f"{tmp_path}/log.evtx"]).fetchone() == (10, 0)


def test_a_prepared_statement_reads_the_files_that_there_were(con, tmp_path):
    shutil.copy(SAMPLES / "dirty.evtx", tmp_path / "a.evtx")
    glob = f"{tmp_path}/*.evtx"
    con.execute(f"PREPARE fixed AS SELECT count(*) FROM read_evtx('{glob}')")
    con.execute("PREPARE given AS SELECT count(*) FROM read_evtx($1)")
    shutil.copy(SAMPLES / "dirty.evtx", tmp_path / "b.evtx")
    assert con.execute("EXECUTE fixed").fetchall() == [(80,)]
    assert con.execute(f"EXECUTE given('{glob}')").fetchall() == [(160,)]


def test_names_with_spaces_and_signs(con, tmp_path):
    for name in ["Windows PowerShell.evtx", "Microsoft-Windows-Sysmon%4Operational.evtx", "ünï [1].evtx", "it's.evtx"]:
        path = tmp_path / name
        shutil.copy(SAMPLES / "dirty.evtx", path)
        row = con.execute("SELECT count(*), any_value(filename) FROM read_evtx($1)", [str(path)]).fetchone()
        assert row == (80, str(path))


def test_a_file_system_of_python(con):
    memory = fsspec.filesystem("memory")
    for name in ["DC01-Security.evtx", "wrapped.evtx", "damaged-chunk.evtx"]:
        memory.pipe(f"/case/{name}", (SAMPLES / name).read_bytes())
    memory.pipe("/case/rubbish.evtx", b"no log")
    con.register_filesystem(memory)
    for name in ["DC01-Security.evtx", "wrapped.evtx", "damaged-chunk.evtx"]:
        columns = "* EXCLUDE (filename, error)"
        local = con.execute(f"SELECT {columns} FROM '{SAMPLES}/{name}'").fetchall()
        assert con.execute(f"SELECT {columns} FROM 'memory://case/{name}'").fetchall() == local
    rows = con.execute("SELECT filename, count(*) FROM read_evtx('memory://case/*.evtx') GROUP BY ALL ORDER BY 1").fetchall()
    assert [(name.rsplit("/", 1)[1], count) for name, count in rows] == [
        ("DC01-Security.evtx", 55),
        ("damaged-chunk.evtx", 16),
        ("rubbish.evtx", 1),
        ("wrapped.evtx", 160),
    ]
    with pytest.raises(duckdb.Error, match="rubbish.evtx: not an EVTX log"):
        con.execute("FROM read_evtx('memory://case/rubbish.evtx')").fetchall()
    memory.pipe("/folder/a.evtx", (SAMPLES / "dirty.evtx").read_bytes())
    memory.pipe("/folder/below/b.evtx", (SAMPLES / "dirty.evtx").read_bytes())
    for files, rows in [("memory://folder", 160), ("memory://folder/*", 80), ("memory://folder/**/*.evtx", 160)]:
        assert con.execute("SELECT count(*), count(error) FROM read_evtx($1)", [files]).fetchone() == (rows, 0), files


def test_fetching_as_arrow_free_python_objects(con):
    row = con.execute(f"SELECT time_created, event_data, provider_guid FROM '{SAMPLES}/DC01-System.evtx' WHERE event_id = 7045").fetchone()
    assert row[0].isoformat() == "2024-03-05T08:46:03.125130"
    assert row[1]["ServiceName"] == "WinUpdSvc"
    assert str(row[2]) == "555908d1-a6d7-4695-8e1e-26931d2012f4"


def test_a_name_that_is_no_text_is_a_row(con, tmp_path):
    folder = tmp_path / "case"
    folder.mkdir()
    try:
        for name in [b"a.evtx", b"b\xff.evtx", b"c.evtx"]:
            shutil.copy(os.fsencode(SAMPLES / "dirty.evtx"), os.fsencode(folder) + b"/" + name)
    except OSError:
        pytest.skip("this file system only accepts UTF-8 names")
    shown, why = "b\ufffd.evtx", "cannot be read: its name is not UTF-8"
    for files in [f"{folder}/*.evtx", str(folder), f"{tmp_path}/**/?*.evtx"]:
        rows = con.execute(
            "SELECT parse_filename(filename), count(*), any_value(error) FROM read_evtx($1) GROUP BY ALL ORDER BY ALL", [files]
        ).fetchall()
        assert rows == [("a.evtx", 80, None), (shown, 1, f"{folder}/{shown}: {why}"), ("c.evtx", 80, None)]
    files = f"{folder}/*.evtx"
    for report in ["evtx_file_metadata", "evtx_chunk_metadata"]:
        rows = con.execute(f"SELECT DISTINCT parse_filename(filename), error FROM {report}($1) ORDER BY 1", [files]).fetchall()
        assert rows == [("a.evtx", None), (shown, why), ("c.evtx", None)]
    assert con.execute("SELECT sum(records) > 0 FROM evtx_schema($1)", [files]).fetchone() == (True,)
    for arguments in ["hive_partitioning := true", "event_id := [4624, 7045]", "on_error := 'skip'"]:
        con.execute(f"SELECT filename FROM read_evtx($1, {arguments})", [files]).fetchall()
    kept = con.execute("SELECT count(*) FROM read_evtx($1) WHERE filename LIKE '%\ufffd%'", [files]).fetchone()
    assert kept == (1,)
    with pytest.raises(duckdb.Error, match="its name is not UTF-8"):
        con.execute("FROM read_evtx($1, on_error := 'fail')", [files]).fetchall()


@pytest.mark.parametrize("values, column_type", [
    (["2024-01-01 13:37:00", "2024-01-01 15:00:00"], "TIMESTAMP"),
    (["2024-01-01", "2024-01-02"], "DATE"),
    (["1", "-2"], "BIGINT"),
    (["1.5", "1.6"], "VARCHAR"),
    (["00042", "1"], "VARCHAR"),
])  # fmt: skip
def test_values_of_folders_stay_what_they_are(con, tmp_path, values, column_type):
    for value in values:
        folder = tmp_path / f"k={value}"
        folder.mkdir()
        (folder / "log.evtx").write_bytes((SAMPLES / "DC01-System.evtx").read_bytes())
    rows = con.execute(
        "SELECT DISTINCT k::VARCHAR, typeof(k) FROM read_evtx($1, hive_partitioning := true)", [f"{tmp_path}/*/*.evtx"]
    ).fetchall()
    assert sorted(rows) == sorted((value, column_type) for value in values)


@pytest.mark.skipif(sys.platform == "win32", reason="links need a privilege on Windows")
def test_names_beyond_what_may_be_read_are_not_shown(con, tmp_path):
    """DuckDB refuses the glob itself, but its traversal follows links to folders."""
    for folder in ["open", "secret"]:
        (tmp_path / folder).mkdir()
        shutil.copy(SAMPLES / "DC01-System.evtx", tmp_path / folder / "log.evtx")
        shutil.copy(SAMPLES / "DC01-System.evtx", tmp_path / folder / "a\\b.evtx")
        (tmp_path / folder / "nowhere.evtx").symlink_to("/nowhere")
    (tmp_path / "open" / "link").symlink_to(tmp_path / "secret")
    con.execute(f"SET allowed_directories = ['{tmp_path}/open']")
    con.execute("SET enable_external_access = false")
    found = con.execute(f"SELECT DISTINCT filename FROM read_evtx(['{tmp_path}/open/*.evtx', '{tmp_path}/open/*/*.evtx'], on_error := 'report')").fetchall()
    assert {pathlib.Path(name).name for name, in found if "/link/" in name} <= {"log.evtx"}
    # Whether a link to nowhere is listed depends on DuckDB's version.
    assert {pathlib.Path(name).name for name, in found if "/link/" not in name} - {"nowhere.evtx"} == {"log.evtx", "a\\b.evtx"}


def test_a_path_of_too_many_folders_is_refused_soon(con):
    for end in ["x.evtx", "*.evtx", "a.zip/x.evtx"]:
        with takes_at_most(1), pytest.raises(duckdb.Error, match="cannot take a path of more than 2048 folders"):
            con.execute(f"FROM read_evtx(repeat('a/', 30000) || '{end}')")


def test_a_text_with_a_nul_is_one_value(con):
    for value in ["['x' || chr(0) || 'EventLog']", "'x' || chr(0) || 'EventLog'"]:
        sql = f"SELECT count(*) FROM read_evtx('{SAMPLES}/DC01-System.evtx', provider := {value})"
        assert con.execute(sql).fetchone() == (0,)
    assert con.execute(f"SELECT count(*) > 0 FROM read_evtx('{SAMPLES}/DC01-System.evtx', provider := 'EventLog')").fetchone() == (True,)


def test_an_allowed_folder_can_be_read_by_its_name(con, tmp_path):
    """DuckDB allows the contents of the folder, but refuses the folder itself."""
    (tmp_path / "open" / "sub").mkdir(parents=True)
    shutil.copy(SAMPLES / "dirty.evtx", tmp_path / "open" / "sub" / "log.evtx")
    con.execute(f"SET allowed_directories = ['{tmp_path}/open']")
    con.execute("SET enable_external_access = false")
    for folder in ["open", "open/", "open/sub"]:
        assert con.execute(f"SELECT count(*) FROM read_evtx('{tmp_path}/{folder}')").fetchone() == (80,)
    with pytest.raises(duckdb.PermissionException):
        con.execute(f"FROM read_evtx('{tmp_path}')")


def test_errors_are_safe_to_print(con, tmp_path):
    """A name can end a line, clear the screen, or turn the direction of what follows it."""
    names = ["a\x1b[2J\x1b]0;title\x07\r\n.evtx", "b\u202etxve.evtx", "c\x9b31m\u2028\x7f.evtx", "d é '\".evtx"]
    archive = tmp_path / "names.zip"
    with zipfile.ZipFile(archive, "w") as files:
        for name in names:
            files.writestr(name, b"junkjunkjunk")
    rows = con.execute(f"SELECT filename, error FROM read_evtx('{archive}')").fetchall()
    assert [name.removeprefix(f"{archive}/") for name, _ in rows] == names, "the names themselves stay as they are"
    errors = [error for _, error in rows]
    for sql, values in [("FROM read_evtx($1, on_error := 'fail')", [str(archive)]), ("FROM read_evtx([$1 || chr(27)])", [f"{archive}/"]),
                        *(("FROM evtx_message_catalog([$1])", [f"{archive}/{name}"]) for name in names)]:  # fmt: skip
        with pytest.raises(duckdb.Error) as error:
            con.execute(sql, values)
        errors.append(str(error.value).partition("\n\nLINE 1")[0])
    assert [error for error in errors if not error.isprintable()] == []
    assert errors[3].startswith(f"{archive}/d é '\".evtx: "), "what can be printed is not changed"


STATEMENTS = ["FROM read_evtx('{}')", "FROM read_evtx('{}*')", "FROM read_evtx('{}', event_id := 1)", "FROM evtx_file_metadata('{}')", "FROM evtx_message_catalog('{}')",
              "FROM evtx_sigma('{log}', rules := '{}')", "FROM read_evtx('{log}', messages := '{}')"]  # fmt: skip


@pytest.fixture(name="forbidden")
def fixture_forbidden(tmp_path):
    """A folder that may be read, and paths that may not: a folder, a log, one that does not exist, and a pipe."""
    for folder in ["open", "secret/folder"]:
        (tmp_path / folder).mkdir(parents=True)
        shutil.copy(SAMPLES / "DC01-System.evtx", tmp_path / folder / "log.evtx")
    shutil.copy(SAMPLES / "DC01-System.evtx", tmp_path / "secret" / "file")
    if sys.platform != "win32":
        os.mkfifo(tmp_path / "secret" / "pipe")
    return tmp_path / "open", [tmp_path / "secret" / name for name in ["folder", "file", "missing", "pipe"]]


def test_an_error_does_not_tell_what_a_forbidden_path_is(con, forbidden):
    allowed, paths = forbidden
    con.execute(f"SET allowed_directories = ['{allowed}']; SET enable_external_access = false")
    for statement in STATEMENTS:
        errors = set()
        for path in paths:
            with pytest.raises(duckdb.PermissionException) as error:
                con.execute(statement.format(path, log=allowed / "log.evtx"))
            errors.add(str(error.value).partition("\n\nLINE 1")[0].replace(str(path), "PATH"))
        assert errors == {'Permission Error: Cannot access file "PATH' + "*" * ("*" in statement) + '" - file system operations are disabled by configuration'}, statement


@pytest.mark.skipif(shutil.which("strace") is None, reason="strace shows what is asked of the system")
def test_no_forbidden_path_is_asked_for(con, forbidden, tmp_path):
    allowed, paths = forbidden
    statements = [statement.format(path, log=allowed / "log.evtx") for statement in STATEMENTS for path in paths]
    program = f"""
import sys; sys.path.insert(0, {str(pathlib.Path(__file__).parent)!r})
import client, duckdb
con = client.connect({EXTENSION!r})
con.execute("SET allowed_directories = ['{allowed}']; SET enable_external_access = false")
for statement in {statements!r}:
    try:
        con.execute(statement)
    except duckdb.PermissionException:
        pass
"""
    trace = tmp_path / "trace"
    subprocess.run(["strace", "-f", "-e", "trace=file", "-o", trace, sys.executable, "-c", program], check=True)
    calls = [line for line in trace.read_text(errors="replace").splitlines() if str(paths[0].parent) in line]
    # DuckDB resolves links, before it decides.
    assert calls and [line for line in calls if "readlink" not in line] == []
