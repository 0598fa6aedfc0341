"""One canonical form for every dialect: what is captured in one is found from any other."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from thoughtline import keys
from thoughtline.cli.conversation import Conversation
from thoughtline.dialects import DIALECTS
from thoughtline.parts import Call, Result, Text, Thought
from thoughtline.stores.memory import MemoryStore
from thoughtline.testing import simulator
from thoughtline.turns import Turn

_text = st.text(min_size=1, max_size=30).filter(
    lambda s: s.strip() and not s.lower().startswith("<think")
)
_args = st.dictionaries(
    st.text(max_size=5), st.integers(-9, 9) | st.booleans() | st.text(max_size=5), max_size=3
)
_calls = st.lists(
    st.builds(lambda n, a: (n, a), st.sampled_from(["ls", "cat", "run"]), _args), max_size=3
)


@st.composite
def conversations(draw):
    """Plain turns, tool turns and parallel calls, ending with something to be answered."""
    turns: list[Turn] = []
    heard: list = [Text(text=draw(_text))]
    for number in range(draw(st.integers(1, 4))):
        calls = draw(_calls)
        output: list = [Text(text=draw(_text))] if not calls or draw(st.booleans()) else []
        output += [
            Call(name=name, arguments=keys.canonical(arguments), id=f"call_{number}_{index}")
            for index, (name, arguments) in enumerate(calls)
        ]
        turns.append(Turn(input=tuple(heard), output=tuple(output)))
        heard = [
            Result(call=call.id, name=call.name, content=f"result {number} {index}")
            for index, call in enumerate(p for p in output if isinstance(p, Call))
        ] or [Text(text=draw(_text))]
    return [*turns, Turn(input=tuple(heard))]


@given(conversations())
def test_every_dialect_spells_the_same_keys(turns):
    expected, _ = keys.trail(turns)
    for name, dialect in DIALECTS.items():
        read = dialect.read(dialect.write(turns, model="m"))
        assert keys.trail(read.turns)[0] == expected, name


PROVIDERS = {
    "chat": "vllm",
    "responses": "xai",
    "messages": "deepseek-anthropic",
    "gemini": "gemini",
}


@pytest.mark.parametrize(("here", "there"), [*itertools.permutations(DIALECTS, 2)])
async def test_captured_in_one_found_from_another(here, there):
    """A response read by one dialect's reader is recognised in another dialect's request."""
    sim, store = simulator(PROVIDERS[here]), MemoryStore()
    talk = Conversation(sim, model=sim.models()[0], store=store)
    await talk.run(7)
    stripped = [
        Turn(input=t.input, output=tuple(p for p in t.output if not isinstance(p, Thought)))
        for t in talk.turns
    ]
    echoed = DIALECTS[there].read(DIALECTS[there].write(stripped, model="m"))
    names, _ = keys.trail(echoed.turns)
    found = await store.find("tenant", [n.chain for n in names if n])
    assert len(found) == len(talk.turns)
