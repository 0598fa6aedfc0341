"""Texts on a terminal."""

import pytest

from thoughtline.cli.rendering import ago, brief, clean

pytestmark = pytest.mark.usefixtures("home")


def test_text_that_would_upset_a_terminal_is_harmless():
    assert clean("a\x1b[31mb\r\u202e\tc\nd") == "a\\x1b[31mb\\r\\u202e\tc\nd"
    assert brief("x" * 50, 10) == "xxxxxxxxx…"
    assert [ago(0, s) for s in (5, 61, 7200, 200_000)] == [
        "just now",
        "1 min ago",
        "2 h ago",
        "2 d ago",
    ]
