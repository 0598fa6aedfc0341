"""A client of another dialect is told the same, however oddly the provider says it."""

import pytest

from support.odd_answers import SHOWN, oddities
from support.translating_gateway import DIALECTS, PROVIDERS, TranslatingGateway
from support.translation import blocks_of
from thoughtline.testing.sims.oddities import Oddities

ONE_EACH = ("deepseek", "vllm", "openai", "claude", "claude-bound", "gemini")
CASES = [
    (dialect, name, oddity)
    for name in ONE_EACH
    for dialect in DIALECTS
    if dialect != PROVIDERS[name][0]
    for oddity in oddities(name)
]
TURNS = [
    (dialect, name, oddity)
    for name in ("deepseek", "openai", "claude", "gemini")
    for dialect in DIALECTS
    for oddity in SHOWN[PROVIDERS[name][0]]
]
STREAMS = pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])


def told(dialect, name, *oddities, stream, turns=5, **sim):
    """What a client is told, answer by answer, and what the provider sees of its thoughts."""
    gateway = TranslatingGateway(name, sim={"realistic": False, "oddities": oddities, **sim})
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


@STREAMS
@pytest.mark.parametrize(("dialect", "name", "oddity"), TURNS)
def test_a_conversation_goes_on_behind_an_odd_turn(dialect, name, oddity, stream):
    gateway = TranslatingGateway(name, sim={"realistic": False})
    talker = gateway.client(dialect, stream=stream, echo="strip")
    talker.talk(1)
    gateway.sim.oddities = Oddities(False, (oddity,))
    assert talker.send().status == 200
    gateway.sim.oddities = Oddities(False)
    talker.talk(3)
    assert all(record.audit.clean for record in gateway.records)
    assert gateway.records[-1].audit.exact > 0


@STREAMS
@pytest.mark.parametrize("dialect", ["chat", "responses", "messages"])
def test_a_call_that_nobody_expected_is_a_call(dialect, stream):
    """It is whole, and signed: the client says that there is no such tool, and goes on."""
    assert told(dialect, "gemini", "unexpected_call", stream=stream) == told(
        dialect, "gemini", stream=stream
    )


@STREAMS
@pytest.mark.parametrize("oddity", ["null_arguments", "twice_arguments", "no_arguments"])
@pytest.mark.parametrize("dialect", ["responses", "messages", "gemini"])
def test_arguments_that_are_none_are_an_empty_object(dialect, oddity, stream):
    answers = told(dialect, "deepseek", oddity, stream=stream, serials=False)
    given = [content[1] for blocks in answers for kind, content in blocks if kind == "call"]
    assert len(given) > 2
    assert set(given) == {"{}"}


@STREAMS
@pytest.mark.parametrize("dialect", ["responses", "messages", "gemini"])
def test_of_several_choices_the_first_is_told(dialect, stream):
    assert told(dialect, "deepseek", "second_choice", stream=stream) == told(
        dialect, "deepseek", stream=stream
    )
