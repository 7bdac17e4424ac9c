"""Messages from the files of an image, some of them made by the person under investigation."""

import os
import pathlib
import shutil

import duckdb
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


@pytest.fixture(name="image")
def fixture_image(tmp_path):
    """A copy of the image, in which the hive is where Windows has it."""
    system = tmp_path / "image" / "Windows" / "System32"
    shutil.copytree(IMAGE / "System32", system)
    (system / "config").mkdir()
    shutil.copy(IMAGE / "SOFTWARE", system / "config" / "SOFTWARE")
    return tmp_path / "image"


def copy_evil_hive(folder):
    """Writes a hive that names another file for the provider, and that file."""
    folder.mkdir(parents=True)
    hive = (IMAGE / "SOFTWARE").read_bytes()
    own, evil = ("adtschema.dll".encode("utf-16-le"), "evil_text.dll".encode("utf-16-le"))
    assert own in hive
    (folder / "SOFTWARE").write_bytes(hive.replace(own, evil))
    shutil.copy(IMAGE / "System32" / "zz_evil.dll", folder / "evil_text.dll")


def test_the_hive_of_windows_wins(con, messages, image):
    own = [("An account failed to log on", f"catalog: {image}/Windows/System32/adtschema.dll")]
    copy_evil_hive(image / "A")
    copy_evil_hive(image / "A" / "Windows" / "System32" / "config")
    copy_evil_hive(image / "Windows" / "System32" / "config" / "A")
    assert messages(image) == (own, None)
    # A damaged hive of Windows does not make room for another one.
    hive = image / "Windows" / "System32" / "config" / "SOFTWARE"
    bytes_of_hive = hive.read_bytes()
    hive.write_bytes(b"damaged")
    providers = con.execute(f"SELECT DISTINCT provider FROM evtx_message_catalog('{image}')")
    assert providers.fetchall() == [(None,)]
    hive.write_bytes(bytes_of_hive)
    # The one that the caller names wins, and of several elsewhere none. Its file must be where the hive says.
    named = image / "A" / "SOFTWARE"
    assert messages(image, named) == ([(None, None)], None)
    shutil.copy(image / "A" / "evil_text.dll", image / "Windows" / "System32")
    assert messages(image, named)[0][0][0].startswith("A scheduled health check")
    shutil.rmtree(image / "Windows" / "System32" / "config")
    shutil.rmtree(image / "A" / "Windows")
    # Without a hive of Windows, none below its folders or elsewhere on the volume counts.
    assert messages(image) == ([(None, None)], ["adtschema.dll", "evil_text.dll", "evil_text.dll", "zz_evil.dll"])
    error = f"SELECT error FROM evtx_message_catalog('{image}') WHERE filename = '{named}'"
    assert con.execute(error).fetchall() == [("cannot be read: it is a registry hive in another place than that of Windows: to use it, pass its path",)]
    copy_evil_hive(image / "B")
    with pytest.raises(duckdb.InvalidInputException, match=f"two hives of the same name, {image}/A/SOFTWARE and {image}/B/SOFTWARE"):
        messages(image, named, image / "B" / "SOFTWARE")


@pytest.mark.parametrize("is_folder", [False, True])
def test_no_file_stands_in_for_a_damaged_one(con, image, is_folder):
    own = image / "Windows" / "System32" / "adtschema.dll"
    own.unlink()
    if is_folder:
        own.mkdir()
    else:
        own.write_bytes(b"damaged")
    for folder in ("A", "System32"):
        (image / folder).mkdir()
        shutil.copy(IMAGE / "System32" / "zz_evil.dll", image / folder / "adtschema.dll")
    sql = "SELECT parse_filename(filename), kind, error FROM evtx_message_catalog($1) WHERE filename LIKE '%adtschema.dll' ORDER BY ALL"
    rows = con.execute(sql, [str(image)]).fetchall()
    damage = ("adtschema.dll", None, "cannot be read: not a Windows binary (.dll, .exe, .sys, .mui or .mun)")
    assert rows == [("adtschema.dll", "text", None)] * 2 + [damage] * (not is_folder)


def test_a_catalog_that_was_found_does_not_count(con, image, tmp_path):
    con.execute(f"COPY (FROM evtx_message_catalog('{IMAGE}')) TO '{tmp_path / 'x.messages'}' (FORMAT evtx_messages)")
    for name in ("x.dll", "x.sys", "x.messages"):
        shutil.copy(tmp_path / "x.messages", image / name)
    sql = "SELECT parse_filename(filename), error FROM evtx_message_catalog($1) WHERE filename NOT LIKE '%System32%' ORDER BY ALL"
    error = "cannot be read: it is a catalog of messages: to use it, pass its path"
    assert con.execute(sql, [str(image)]).fetchall() == [("x.dll", error), ("x.sys", error)]
    assert con.execute(sql, [f"{image}/*"]).fetchall() == [(name, error) for name in ("x.dll", "x.messages", "x.sys")]
    for named in (f"{image}/x.dll", f"{image}/*.messages"):
        assert con.execute("SELECT count(*), count(error) FROM evtx_message_catalog($1)", [named]).fetchone() == (1, 0)


def test_texts_in_other_languages_contest_each_other(messages, tmp_path):
    """Files without a registry, one of them in German."""
    english, german = ((0x409).to_bytes(4, "little"), (0x407).to_bytes(4, "little"))
    own = (IMAGE / "System32" / "adtschema.dll").read_bytes()
    (tmp_path / "own.dll").write_bytes(own.replace(english, german))
    shutil.copy(IMAGE / "System32" / "zz_evil.dll", tmp_path)
    assert messages(tmp_path / "own.dll", tmp_path / "zz_evil.dll") == ([(None, None)], ["own.dll", "zz_evil.dll"])
    assert messages(tmp_path / "own.dll")[0][0][0] == "An account failed to log on"
