"""Every pair of dialects translates as its golden files say: request, answer and stream."""

import pytest

from translation.golden_files import FOLDER, KINDS, PAIRS, place


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("client", "speaks"), PAIRS)
def test_it_is_translated_as_before(client, speaks, kind):
    assert KINDS[kind](client, speaks) == place(client, speaks, kind).read_text("utf-8")


def test_there_are_no_other_files():
    names = {place(*pair, kind).name for pair in PAIRS for kind in KINDS}
    assert {path.name for path in FOLDER.iterdir()} == names
    assert len(names) == 36
