"""A client of another dialect is told the same, however oddly the provider says it."""

import pytest

from support.odd_answers import oddities
from support.translating_gateway import DIALECTS, PROVIDERS, TranslatingGateway
from support.translation import blocks_of

ONE_EACH = ("deepseek", "vllm", "openai", "claude", "claude-bound", "gemini")
CASES = [
    (dialect, name, oddity)
    for name in ONE_EACH
    for dialect in DIALECTS
    if dialect != PROVIDERS[name][0]
    for oddity in oddities(name)
]
STREAMS = pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])


def told(dialect, name, *oddities, stream, turns=5):
    """What a client is told, answer by answer, and what the provider sees of its thoughts."""
    gateway = TranslatingGateway(name, sim={"realistic": False, "oddities": oddities})
    talker = gateway.client(dialect, stream=stream, echo="strip")
    talker.talk(turns)
    assert [reply.status for reply in gateway.wire.replies] == [200] * turns
    audits = [record.audit for record in gateway.records]
    assert all(audit.clean for audit in audits), [str(audit) for audit in audits]
    return [blocks_of(dialect, one["body"], stream=stream) for one in gateway.answers]


@STREAMS
@pytest.mark.parametrize(("dialect", "name", "oddity"), CASES)
def test_every_odd_shape(dialect, name, oddity, stream):
    plain = told(dialect, name, stream=stream)
    assert told(dialect, name, oddity, stream=stream) == plain
