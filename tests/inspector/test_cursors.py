"""A cursor leads back to where it was made."""

from hypothesis import given
from hypothesis import strategies as st

from thoughtline.inspector.cursors import PATTERN, decoded_cursor, encoded_cursor


@given(st.floats(allow_nan=False), st.text(st.characters(exclude_categories=["Cs"])))
def test_round_trip(at, id):
    import re

    cursor = encoded_cursor((at, id))
    assert re.fullmatch(PATTERN, cursor)
    assert decoded_cursor(cursor) == (at, id)


def test_nothing_and_what_is_no_number():
    assert decoded_cursor(None) is None
    assert decoded_cursor("7ff8000000000000.") == (0.0, "")
