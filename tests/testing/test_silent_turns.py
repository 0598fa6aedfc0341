"""A provider takes back what it answered without a thought, exactly as it answered."""

import pytest

from support.clients import client
from thoughtline.testing import PROVIDERS, simulator
from thoughtline.testing.sims.script import say, use

ADAPTIVE = {"thinking": {"type": "adaptive"}}
MANUAL = {"thinking": {"type": "enabled", "budget_tokens": 2048}}
OTHERS = {"deepseek-r1", "gemini", "gemini-vertex", "gemini-compat"}
"""One takes back no thought, also an empty one; the others sign each step."""
MODELS = [
    (name, model) for name in sorted(set(PROVIDERS) - OTHERS) for model in simulator(name).models()
]


def silent(turn, sim):
    """A model that never thinks."""
    if turn % 3 == 2:
        return (say(sim, "Done."),)
    return say(sim, "I look."), use(sim, "read_file"), use(sim, "run", 1)


@pytest.mark.parametrize("serials", [True, False], ids=["told-apart", "alike"])
@pytest.mark.parametrize(("name", "model"), MODELS)
def test_its_own_answers_are_accepted(name, model, serials):
    sim = simulator(name, script=silent, serials=serials)
    thinking = ADAPTIVE if "4-6" in model or "4-7" in model or name == "claude-bound" else MANUAL
    fields = thinking if name.startswith("claude") else {}
    talk = client(sim.dialect, sim, model=model, stream=name == "codex", **fields)
    assert talk.talk(6).status == 200


def test_deepseek_takes_answers_from_before_thinking_was_switched_on():
    sim = simulator("deepseek")
    talk = client("chat", sim, model="deepseek-v4-pro", thinking={"type": "disabled"})
    talk.talk(4)
    talk.body = {}
    talk.talk(3)
    assert "reasoning_content" not in talk.history[1]
    thinking = [at for at, one in enumerate(talk.history) if one.get("reasoning_content")]
    del talk.history[thinking[0]]["reasoning_content"]
    assert talk.turn().status == 400  # that one was thought of
