"""Known is not lost: laws that hold for every row, whatever a client does with its history.

A turn that the log has without a thought needs none. What a client itself brings is never replaced
by something made up. Only what the provider has refused is treated otherwise.
"""

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from support.stored_conversations import (
    StoredConversations,
    ask,
    call,
    result,
    say,
    strip,
    target,
)
from thoughtline.dialects.thoughts import make_thought
from thoughtline.log.decisions import Action
from thoughtline.log.events import Outcome
from thoughtline.log.parts import Carrier
from thoughtline.log.quirks import Need
from thoughtline.log.turns import Turn
from thoughtline.providers.contracts import ROWS

TARGETS = [target(row.name, row.dialect, row.models[0].replace("*", "x")) for row in ROWS]
GEMINI = target("gemini", "gemini", "gemini-3-pro")
KINDS = (
    lambda nth: [call("ls", id=f"call_{nth}", path=str(nth))],
    lambda nth: [say(f"Word {nth}."), call("cat", id=f"call_{nth}", path=str(nth))],
    lambda nth: [say(f"Answer {nth}.")],
)
"""Outputs: a call, words and a call, words."""

to_any = st.sampled_from(TARGETS)
outputs = st.lists(st.sampled_from(KINDS), min_size=1, max_size=5)
modes = st.sampled_from([True, None, False])


def talk(kinds):
    """A conversation whose calls are answered and whose answers lead to another question."""
    said, asked = [], [ask("Please go ahead.")]
    for nth, kind in enumerate(kinds):
        spoken = kind(nth)
        said.append((asked, spoken))
        called = any(part.__class__.__name__ == "Call" for part in spoken)
        asked = [result(f"ok {nth}")] if called else [ask(f"And {nth}?")]
    return said, asked


def own_thought(to, nth):
    """A thought that this target reads, as a client may bring it."""
    carrier = to.policy.reads[0]
    value = {
        Carrier.ITEM: {"type": "reasoning", "id": f"rs_own{nth}", "encrypted_content": f"own{nth}"},
        Carrier.BLOCK: {"type": "thinking", "thinking": f"own{nth}", "signature": f"own{nth}"},
        Carrier.REASONING_DETAILS: [{"type": "reasoning.text", "text": f"own{nth}"}],
        Carrier.CHUNK: {"type": "thinking", "thinking": [{"type": "text", "text": f"own{nth}"}]},
        Carrier.EXTRA_CONTENT: {"google": {"thought_signature": f"own{nth}"}},
        Carrier.THINK: f"<think>own{nth}</think>",
    }.get(carrier, f"own{nth}")
    return make_thought(carrier, value)


def lives(stored, to, said, silent, outcome=Outcome.COMPLETED):
    """A conversation at this target, whose thoughts are such as it reads."""
    if to.policy.reads:
        said = [
            (i, o if nth in silent else [replace(own_thought(to, nth), origin=to.origin), *o])
            for nth, (i, o) in enumerate(said)
        ]
    outcomes = dict.fromkeys(range(len(said)), outcome)
    return stored.converse(said, to=to, silent=silent, outcomes=outcomes)


def brought(to, turns, nths):
    """The same turns with a thought of the client's own at some of them."""
    return [
        replace(turn, output=(own_thought(to, nth), *turn.output)) if nth in nths else turn
        for nth, turn in enumerate(turns)
    ]


def made_up(to, plan):
    """The revisions that put something in the place of a thought."""
    return [r for r in plan.revisions if any(p.raw == to.policy.lost for p in r.thoughts)]


# -- laws ----------------------------------------------------------------------------------------


@given(outputs, to_any, modes, st.booleans(), st.sets(st.integers(0, 4)))
def test_a_known_turn_without_a_thought_goes_out_without_one(kinds, to, thinking, tools, silent):
    stored = StoredConversations()
    said, asked = talk(kinds)
    lived = lives(stored, to, said, silent)
    for turns in (strip(lived, asked), [*lived, Turn(input=tuple(asked))]):
        plan = stored.plan_replay(turns, to, thinking=thinking, tools=tools)
        for made in plan.decisions:
            if made.turn in silent:
                assert (made.action, made.thoughts, made.left) == (Action.ABSENT, 0, 0)
        assert {revision.turn for revision in plan.revisions}.isdisjoint(silent)
        assert not made_up(to, plan)
        assert not plan.fields
        assert not plan.skipped


@given(outputs, to_any, st.booleans(), st.sets(st.integers(0, 4)), st.booleans())
def test_what_a_client_brings_is_never_replaced_by_something_made_up(
    kinds, to, tools, nths, stranger
):
    """Neither where the turn is not known, nor where it had no thought, or did not complete."""
    if to.policy.need in (Need.FORBIDDEN, Need.NONE):
        return
    said, asked = talk(kinds)
    nths &= set(range(len(said)))
    for outcome in Outcome:
        stored = StoredConversations()
        turns = strip(lives(stored, to, said, {0, 2, 4}, outcome), asked)
        _keeps_own(
            StoredConversations() if stranger else stored, to, brought(to, turns, nths), tools
        )


def _keeps_own(stored, to, turns, tools):
    plan = stored.plan_replay(turns, to, thinking=True, tools=tools)
    own = {at: turn.thoughts[0].raw for at, turn in enumerate(turns) if turn.thoughts}
    for revision in made_up(to, plan):
        raw = [placed.raw for placed in revision.thoughts]
        assert revision.turn not in own or own[revision.turn] in raw
    if len(own) == len(turns) - 1:
        assert not plan.fields
