"""Scripts over made-up events."""

from made_up import base64_of, block


def test_parts_of_a_script_are_joined_in_the_order_of_their_numbers(over):
    events = [block(11 - number, number, 11, f"{number},") for number in range(1, 12)]
    want = [(11, 0, "1,2,3,4,5,6,7,8,9,10,11,", [])]
    for copies in (1, 2):
        assert over("evtx_script_blocks", events, "parts, missing_parts, text, decoded", copies=copies) == want


def test_missing_parts_are_counted(over):
    events = [block(1, 1, 4, "a"), block(2, 4, 4, "d"), block(3, "x", "y", "?", "other"), block(3, 1, 2000000000, "z", "vast")]
    assert sorted(over("evtx_script_blocks", events, "script_block_id, parts, missing_parts, text")) == [
        ("b", 4, 2, "ad"), ("other", None, None, "?"), ("vast", 2000000000, 1999999999, "z"),
    ]


def test_a_part_without_a_number_of_its_script_is_alone(over):
    """Its number is no number, 0, or above the total. The text of the script stays."""
    strays = ["x", "", "-1", "0", "3", "4000000000", "99999999999999999999"]
    events = [block(1, 1, 2, "a"), block(2, 2, 2, "b"), *(block(3, number, 2, f"<{number}>") for number in strays), block(4, 1, -9223372036854775808, "n", "least")]
    for copies in (1, 2):
        assert sorted(over("evtx_script_blocks", events, "text, parts, missing_parts, contested", copies=copies)) == sorted([
            ("ab", 2, 0, False), ("n", None, None, True), *((f"<{number}>", 2, 2, True) for number in strays),
        ])


def test_scripts_without_an_id_are_apart(over):
    events = [block(1, 1, 1, "a", None), block(1, 1, 1, "b", None), block(2, 1, 2, "c", "id"), block(3, 2, 2, "d", "id")]
    for copies in (1, 2):
        assert sorted(over("evtx_script_blocks", events, "text, parts, script_block_id", copies=copies)) == [("a", 1, None), ("b", 1, None), ("cd", 2, "id")]


def test_scripts_with_one_id_are_all_shown(over):
    """Part 2 says two things, and the block "x" three, of which one is suspicious."""
    events = [block(1, 1, 2, "a"), block(2, 2, 2, "b"), block(3, 2, 2, "c"), block(4, 1, 1, "harmless", "x"), block(5, 1, 1, "evil", "x"), block(6, 1, 1, "other", "x")]
    for copies in (1, 2):
        over("evtx_script_blocks", events, copies=copies)
        over.con.execute("UPDATE events SET level = 3 WHERE event_data['ScriptBlockText'] = 'evil'")
        assert sorted(over.query("evtx_script_blocks", "text, is_suspicious, parts, missing_parts, contested")) == [
            ("ab", False, 2, 0, True), ("c", False, 2, 1, True), ("evil", True, 1, 0, False), ("harmless", False, 1, 0, True), ("other", False, 1, 0, True),
        ]


def test_base64_in_a_script_is_decoded(over):
    hidden = base64_of("Write-Output 'hidden'", "utf-16-le")
    events = [block(1, 1, 1, f"powershell -enc {hidden} C:/Windows/System32/WindowsPowerShell")]
    assert over("evtx_script_blocks", events, "decoded") == [(["Write-Output 'hidden'"],)]
