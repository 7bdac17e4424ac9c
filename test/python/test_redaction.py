"""Redaction of fields of logs that were made to leak."""

import os
import pathlib

import pytest

HOSTILE = pathlib.Path(os.environ.get("EVTX_HOSTILE", "/nowhere"))
hostile = pytest.mark.skipif(not HOSTILE.is_dir(), reason="EVTX_HOSTILE is not set")


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
    con.execute(f"COPY ({select}) TO '{path}' (FORMAT evtx)", [names, str(HOSTILE / f"{log}.evtx")])
    for (data,) in con.execute("SELECT event_data FROM read_evtx(?)", [str(path)]).fetchall():
        assert {name: data[name] for name in names} == names
    assert "secret".encode("utf-16-le") not in path.read_bytes()
