"""A conversation that goes from one bound Claude to another and back, through the gateway.

Claude Code sends the thoughts of the model that it asks, and leaves those of the others out. Other
clients send all of them, and the provider drops what it cannot read
(platform.claude.com/docs/en/build-with-claude/preserved-thinking). In both cases what reaches the
provider through the gateway is what would have reached it without.
"""

import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from support.gateway import TurnClient, audit, gateway_with, recovered, statuses
from thoughtline.cli.conversation import stripped
from thoughtline.log.parts import Text, Thought
from thoughtline.log.turns import Turn

OPUS, SONNET = "claude-opus-5-5", "claude-sonnet-5-5"
TRAVELS = [(OPUS, 7), (SONNET, 4), (OPUS, 7)]


class SwitchingClient(TurnClient):
    """Remembers which model gave each answer, and sends thoughts as its `style` says."""

    def __init__(self, gateway, style, **more):
        super().__init__(
            gateway, "messages", OPUS, fields={"thinking": {"type": "adaptive"}}, **more
        )
        self.style = style
        self.made_by = []

    def body(self):
        sent = [
            turn if self._kept(at) else stripped(turn) for at, turn in enumerate(self.turns[:-1])
        ]
        return self.dialect.write(
            [*sent, self.turns[-1]],
            model=self.model,
            tools=self.tools,
            stream=False,
            fields=self.fields,
        )

    def _kept(self, at):
        if self.style == "same model":
            return self.made_by[at] == self.model
        return self.style == "all"

    async def travel(self, legs=TRAVELS, *, direct=False):
        for model, exchanges in legs:
            self.model = model
            for _ in range(exchanges):
                answer = await self.say(*self.next(), direct=direct)
                assert answer.status == 200, answer.body
                self.made_by.append(model)
        return answer

    def blocks(self, model):
        turns = [t for t, by in zip(self.turns[:-1], self.made_by, strict=False) if by == model]
        return sum(isinstance(part, Thought) for turn in turns for part in turn.output)


@pytest.mark.parametrize("style", ["same model", "all"])
async def test_what_the_client_sends_arrives_as_it_does_without_the_gateway(style):
    direct = SwitchingClient(gateway_with("claude-bound", "anthropic"), style)
    answer = await direct.travel(direct=True)
    through = SwitchingClient(gateway_with("claude-bound", "anthropic"), style)
    await through.travel()
    assert audit(through.gateway) == answer.header("x-sim-thoughts")
    assert set(statuses(through.gateway)) == {200}
    assert not recovered(through.gateway)


async def test_a_client_that_strips_everything_gets_the_thoughts_of_each_model_back():
    through = SwitchingClient(gateway_with("claude-bound", "anthropic"), "none")
    await through.travel([*TRAVELS, (SONNET, 3), (OPUS, 3)])
    opus = through.blocks(OPUS)
    assert audit(through.gateway).startswith(f"exact={opus}; altered=0")
    assert set(statuses(through.gateway)) == {200}


async def test_an_answer_that_nobody_knows_costs_no_block_that_the_client_sent():
    through = SwitchingClient(gateway_with("claude-bound", "anthropic"), "all")
    await through.travel([(OPUS, 6)])
    through.turns.append(Turn(input=(Text(text="Who are you?"),), output=(Text(text="Me."),)))
    through.made_by.append("nobody")
    await through.travel([(OPUS, 5)])
    sent = through.blocks(OPUS)
    assert audit(through.gateway).startswith(f"exact={sent}; altered=0; missing=0")
    assert set(statuses(through.gateway)) == {200}


@settings(deadline=None, max_examples=15)
@given(st.lists(st.tuples(st.sampled_from([OPUS, SONNET]), st.integers(1, 3)), max_size=6))
def test_whatever_the_order_of_models_no_request_is_refused(legs):
    async def travel():
        through = SwitchingClient(gateway_with("claude-bound", "anthropic"), "none")
        await through.travel([*legs, (OPUS, 2)])
        assert audit(through.gateway).startswith(f"exact={through.blocks(OPUS)}; altered=0")
        assert set(statuses(through.gateway)) == {200}

    asyncio.run(travel())


async def test_an_effort_directive_does_not_disturb():
    """As Claude Code sends it after /compact, and whenever its user changes the effort."""
    through = SwitchingClient(gateway_with("claude-bound", "anthropic"), "none")
    through.headers = {"anthropic-beta": "mid-conversation-output-config-2026-07-01"}
    write = through.body
    directive = b'{"role":"system","content":[],"output_config":{"effort":"high"}}'
    through.body = lambda: write().replace(b'"messages":[', b'"messages":[' + directive + b",", 1)
    await through.travel([(OPUS, 6)])
    assert audit(through.gateway).startswith(f"exact={through.blocks(OPUS)}; altered=0; missing=0")


async def test_an_edited_question_is_the_providers_business():
    """A block behind an edit is the client's own: the provider says whether it takes it."""
    through = SwitchingClient(gateway_with("claude-bound", "anthropic"), "all")
    await through.travel([(OPUS, 4)])
    through.turns[0] = replace(through.turns[0], input=(Text(text="Edited"),))
    answer = await through.say(*through.next())
    assert answer.status == 200
    assert recovered(through.gateway) == ["drop_block"]


async def test_an_account_whose_prefixes_are_not_checked_keeps_its_blocks():
    through = SwitchingClient(gateway_with("claude-bound", "anthropic", enforced=False), "all")
    await through.travel([(OPUS, 4)])
    through.turns[0] = replace(through.turns[0], input=(Text(text="Edited"),))
    sent = through.blocks(OPUS)
    answer = await through.say(*through.next())
    assert answer.status == 200
    assert sent
    assert audit(through.gateway).startswith("exact=")
    assert not audit(through.gateway).startswith("exact=0")
