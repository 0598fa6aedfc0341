"""Searching the file: what SQL takes for a pattern is text here."""

import pytest

from thoughtline.log.events import UserMessage, draft
from thoughtline.log.parts import Text
from thoughtline.stores.base import Batch, SessionQuery

WORDS = ["100% sure", "a_b", "back\\slash", "plain", "It's \u00dcber"]


async def said(store, text):
    body = UserMessage(parts=(Text(text=text),))
    drafts = (draft(body, id="e", parent="", at=1.0),)
    await store.append(Batch(session=text, tenant="T", drafts=drafts))


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("0%", WORDS[:1]),
        ("a_", WORDS[1:2]),
        ("k\\s", WORDS[2:3]),
        ("\u00fcber", WORDS[4:]),
        ("_", WORDS[1:2]),
    ],
)
async def test_patterns_are_text(store, text, found):
    for words in WORDS:
        await said(store, words)
    listing = await store.search(SessionQuery(text=text))
    assert [one.session for one in listing.sessions] == found
