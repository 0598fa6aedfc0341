"""Keys: a text, or a function that gives one."""

import pytest

from thoughtline import ThoughtlineError
from thoughtline.agents.keys import current_key


async def fresh():
    return " fresh "


@pytest.mark.parametrize(
    ("key", "current"), [("fixed", "fixed"), ("", ""), (lambda: "made", "made"), (fresh, "fresh")]
)
async def test_the_key_to_use_now(key, current):
    assert await current_key(key, "mine") == current


async def test_without_a_key_there_is_an_error():
    with pytest.raises(ThoughtlineError, match="the key of provider 'mine' is empty"):
        await current_key(lambda: "", "mine")
