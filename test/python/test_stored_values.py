"""Logs from outside whose values were lost or changed. EVTX_HOSTILE names their folder."""

import os

import pytest

HOSTILE = os.environ.get("EVTX_HOSTILE")
pytestmark = pytest.mark.skipif(not HOSTILE, reason="EVTX_HOSTILE names no folder")


def test_a_token_without_a_place_moves_no_value(con):
    """The README of the logs: evtx_dump and Velocidex's parser agree."""
    rows = con.sql(f"SELECT event_data, error FROM read_evtx('{HOSTILE}/stray_token.evtx') WHERE record_id = 2").fetchall()
    [(event_data, error)] = rows
    assert event_data == {"SubjectUserName": "alice", "TargetUserName": "mallory", "IpAddress": "203.0.113.9", "WorkstationName": "WS01"}
    assert "offset 0x1703: unexpected BinXML token, which is ignored" in error
    found = con.sql(f"SELECT record_id, field FROM evtx_search('{HOSTILE}/stray_token.evtx', 'mallory') ORDER BY 1").fetchall()
    assert found == [(number, "TargetUserName") for number in (1, 2, 3)]


def test_characters_are_those_of_the_json(con):
    log = f"{HOSTILE}/control_characters.evtx"
    names = [name for name, in con.sql(f"SELECT event_data['TargetUserName'] FROM read_evtx('{log}')").fetchall()]
    assert names == [name for name, in con.sql(f"SELECT json->>'$.Event.EventData.TargetUserName' FROM read_evtx('{log}', json := true)").fetchall()] == ["MS4\x1e$", "MS4_$"]
    assert con.execute(f"SELECT count(*) FROM evtx_search('{log}', ?)", ["ms4\x1e"]).fetchall() == [(1,)]
    assert con.execute(f"SELECT count(*) FROM read_evtx('{log}', event_id := 4625) WHERE TargetUserName = ?", ["MS4\x1e$"]).fetchall() == [(1,)]


def test_events_that_windows_could_not_render_have_fields(con):
    log = f"{HOSTILE}/processing_error_data.evtx"
    payload = "http://schemas.microsoft.com/wbem/wsman/1/windows/shell/cmd"
    assert con.sql(f"SELECT event_data FROM read_evtx('{log}')").fetchall() == [({"ErrorCode": "15005", "DataItemName": "shellId", "EventPayload": payload},)]
    assert con.sql(f"SELECT ErrorCode, EventPayload FROM read_evtx('{log}', event_id := 91)").fetchall() == [(15005, payload)]
    assert con.sql(f"SELECT field FROM evtx_search('{log}', 'windows/shell')").fetchall() == [("EventPayload",)]


def test_user_data_of_any_shape_has_columns(con):
    log = f"{HOSTILE}/userdata_scalar_root.evtx"
    assert con.sql(f"SELECT event_id, field FROM evtx_search('{log}', 'the payload')").fetchall() == [(1, "Text")]
    for event, columns, values in (1, "data_Text", ("the payload",)), (2, "x, x_1, y", ("1", "2", "3")), (3, "N", (5,)):
        assert con.sql(f"SELECT {columns} FROM read_evtx('{log}', event_id := {event})").fetchall() == [values]


def test_slack_has_the_system_values_whose_definition_is_sound(con):
    """libevtx reads these three, too."""
    rows = con.sql(f"""SELECT record_id, event_id, provider, event_record_id, event_data, error IS NULL
        FROM read_evtx('{HOSTILE}/slack_system.evtx', recover := true) WHERE record_id IN (32, 34, 35)""").fetchall()
    provider = "Microsoft-Windows-Diagnosis-Scripted"
    assert rows == [(32, 401, provider, 32, None, False), (34, 105, provider, 34, None, False), (35, 106, provider, 35, None, False)]


def test_records_without_a_chunk_are_found(con):
    rows = con.sql(f"""SELECT record_id, event_id, event_data['TargetUserName'], recovered, error
        FROM read_evtx('{HOSTILE}/orphan_records.raw', recover := true)""").fetchall()
    assert rows == [(number, 4624, f"user{number}", True, None) for number in (3, 4, 5, 6)]
