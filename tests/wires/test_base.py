from thoughtline.wires.base import with_appended


def test_header_values_are_added_to():
    mine = [("Anthropic-Beta", "a, b"), ("x", "y")]
    assert with_appended(mine, {"anthropic-beta": "c"}) == [
        ("Anthropic-Beta", "a, b,c"),
        ("x", "y"),
    ]
    assert with_appended(mine, {"anthropic-beta": "b"}) == mine
    assert with_appended([("x", "y")], {"anthropic-beta": "c"}) == [
        ("x", "y"),
        ("anthropic-beta", "c"),
    ]
