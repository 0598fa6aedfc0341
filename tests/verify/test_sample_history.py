"""The history that checks send: which outputs are changed, and how."""

import json

import pytest
from msgspec.structs import replace

from support.stored_conversations import ask, call, result, say, target, thought
from thoughtline.dialects import DIALECTS
from thoughtline.log.parts import Carrier
from thoughtline.log.turns import Turn
from thoughtline.verify.sample_history import (
    SampleHistory,
    adding_thought,
    as_policy_demands,
    has_thought,
    replacing_thoughts,
    with_broken_seals,
    without_thoughts,
)

CLAUDE = target("anthropic", "messages", "claude-sonnet-4-5").origin
DEEPSEEK = target().origin
HISTORY = SampleHistory(
    dialect=DIALECTS["chat"],
    model="deepseek-v4-pro",
    turns=(
        Turn(input=(ask("one"),), output=(thought("a", DEEPSEEK), call("ls"))),
        Turn(input=(result("a.txt"),), output=(thought("b", DEEPSEEK), say("Done."))),
        Turn(input=(ask("two"),), output=(thought("c", DEEPSEEK), call("cat"))),
        Turn(input=(result("text"),)),
    ),
)


@pytest.mark.parametrize(
    ("kind", "places"),
    [("all", {0, 1, 2}), ("plain", {1}), ("earlier", {0}), ("running", {2})],
)
def test_outputs_are_told_apart_by_where_they_stand(kind, places):
    assert HISTORY.loop == 2
    assert HISTORY.where(kind) == places
    changed = HISTORY.changed(kind, without_thoughts)
    lost = {n for n, turn in enumerate(changed.turns) if turn.output and not has_thought(turn)}
    assert lost == places
    assert not changed.has_thoughts(kind) and HISTORY.has_thoughts(kind)


def test_a_thought_is_replaced_or_another_one_put_before_it():
    first = HISTORY.turns[0]
    [put] = replacing_thoughts('" "', Carrier.REASONING_CONTENT)(first).thoughts
    assert put.raw == '" "'
    two = adding_thought('"x"', Carrier.REASONING)(first).thoughts
    assert [one.raw for one in two] == ['"x"', '"a"']


def test_a_broken_seal_differs_in_one_character():
    block = thought("a", CLAUDE, seal="0123456789")
    [broken] = with_broken_seals(Turn(output=(block, say("Hi")))).thoughts
    was, now = json.loads(block.raw), json.loads(broken.raw)
    assert sum(a != b for a, b in zip(was["signature"], now["signature"], strict=True)) == 1
    assert {**was, "signature": ""} == {**now, "signature": ""}
    assert with_broken_seals(HISTORY.turns[0]) == HISTORY.turns[0]


def test_a_thought_stands_as_the_policy_wants_it():
    policy = target().policy
    bare = without_thoughts(HISTORY.turns[0])
    [put] = as_policy_demands(bare, policy).thoughts
    assert (put.raw, put.carrier) == (policy.lost, policy.reads[0])
    elsewhere = replace(HISTORY.turns[0].thoughts[0], carrier=Carrier.REASONING)
    [renamed] = as_policy_demands(Turn(output=(elsewhere, say("Hi"))), policy).thoughts
    assert renamed.carrier == policy.reads[0]
