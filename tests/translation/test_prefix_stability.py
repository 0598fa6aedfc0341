"""What goes upstream only ever grows: its prefix is the same bytes for fifty turns."""

from itertools import pairwise

import pytest

from support.translating_gateway import PROVIDERS, TranslatingGateway
from thoughtline import dialects
from thoughtline.dialects import splice

ONE_EACH = ("deepseek", "openai", "claude", "gemini")
PAIRS = [(d, p) for d in dialects.DIALECTS for p in ONE_EACH if d != PROVIDERS[p][0]]
MARK = b',"cache_control":{"type":"ephemeral"}'
TURNS = 50


def entries(body, member):
    """The entries of the history, as bytes, and everything before and behind it."""
    span = splice.members(body)[member]
    history = [body[entry.value : entry.end] for entry in splice.elements(body, span)]
    return history, body[: span.start], body[span.end :]


@pytest.mark.slow
@pytest.mark.parametrize(("dialect", "provider"), PAIRS)
def test_fifty_turns_begin_with_the_bytes_of_the_turns_before(dialect, provider):
    gateway = TranslatingGateway(provider)
    gateway.client(dialect, echo="strip").talk(TURNS)
    member = dialects.DIALECTS[PROVIDERS[provider][0]].history_member
    # A breakpoint of Claude's cache stands at the end and moves with it; no prefix counts it.
    bodies = [request.body.replace(MARK, b"") for request in gateway.wire.sent]
    assert len(bodies) == TURNS
    for before, after in pairwise([entries(body, member) for body in bodies]):
        assert len(after[0]) > len(before[0])
        assert after[0][: len(before[0])] == before[0]
        assert after[1:] == before[1:]
    assert gateway.records[-1].audit.clean, str(gateway.records[-1].audit)
