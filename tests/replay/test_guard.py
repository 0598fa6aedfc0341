"""Which thought may go to which provider, endpoint, account and model."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from support.stored_conversations import (
    CLAUDE,
    OPENAI,
    TALK,
    StoredConversations,
    _talk,
    _targets,
    _turn,
    actions,
    ask,
    call,
    raws,
    reasons,
    say,
    strip,
    target,
    thought,
)
from thoughtline.log.parts import Carrier
from thoughtline.log.turns import Turn
from thoughtline.replay.guard import guard

each_other_place = pytest.mark.parametrize(
    ("field", "other"),
    [
        ("provider", target("xai", "responses", "gpt-5.6")),
        ("endpoint", target("openai", "responses", "gpt-5.6", endpoint="https://proxy")),
        ("account", target("openai", "responses", "gpt-5.6", account="somebody else")),
        ("model", target("openai", "responses", "gpt-6")),
    ],
)


@each_other_place
def test_a_sealed_thought_passes_no_guard(field, other):
    stored = StoredConversations()
    lived = stored.converse(TALK, to=OPENAI)
    for turns in (strip(lived), [*lived, Turn(input=(ask("next"),))]):
        done = stored.plan_replay(turns, other)
        assert set(actions(done)) == {"dropped"}
        assert set(reasons(done)) == {f"foreign {field}"}
        assert all(r.anonymous and not r.thoughts for r in done.revisions)


def test_a_dated_model_is_the_one_that_was_asked_for():
    stored = StoredConversations()
    served = replace(
        OPENAI, origin=replace(OPENAI.origin, model="gpt-5.6-2026-08-01", asked="gpt-5.6")
    )
    lived = stored.converse(TALK, to=served)
    assert actions(stored.plan_replay(strip(lived), OPENAI)) == ["restored"] * 3


def test_plain_text_serves_all_models_of_its_provider_and_no_other_provider():
    stored = StoredConversations()
    lived = stored.converse(TALK, to=target(model="deepseek-v4-pro"))
    assert set(actions(stored.plan_replay(strip(lived), target(model="deepseek-v4-flash")))) == {
        "restored"
    }
    assert set(actions(stored.plan_replay(strip(lived), target("glm", model="glm-5.2")))) == {
        "dropped"
    }


def test_a_foreign_seal_is_dropped_even_when_the_client_brings_it_in_another_shape():
    """One client turns redacted data into a signature; the digest still gives it away."""
    stored = StoredConversations()
    lived = stored.converse(TALK[:1], to=OPENAI)
    seal = "seal-s1.0"
    smuggled = thought("", CLAUDE.origin, seal=seal, carrier=Carrier.BLOCK)
    turn = Turn(input=(ask("rewritten"),), output=(replace(smuggled, origin=None), say("edited")))
    done = stored.plan_replay([turn, Turn(input=(ask("next"),))], CLAUDE, thinking=True)
    assert lived
    assert (actions(done), raws(done)) == (["dropped"], {0: []})


@each_other_place
def test_a_foreign_seal_is_dropped_also_where_its_turn_is_uncertain(field, other):
    stored = StoredConversations()
    sealed = thought("hm", OPENAI.origin, seal="one-seal")
    for number in (1, 2):  # two turns have it, among others: a tie
        other_one = thought(f"hm {number}", OPENAI.origin, seal=f"seal {number}")
        stored.converse([([ask(f"go {number}")], [sealed, other_one, call("ls")])], to=OPENAI)
    brought = replace(sealed, origin=None)
    turns = [Turn(input=(ask("rewritten"),), output=(brought, say("edited"))), strip([])[-1]]
    done = stored.plan_replay(turns, other)
    assert (actions(done), raws(done)) == (["dropped"], {0: []})
    assert reasons(done) == [f"foreign {field}"]
    assert actions(stored.plan_replay(turns, OPENAI)) == ["exact"]


def _but_for_model(to):
    return to.origin.provider, to.origin.endpoint, to.origin.account


@given(st.lists(_turn, min_size=1, max_size=6), _targets, _targets, st.booleans())
def test_nothing_sealed_or_plain_reaches_another_origin(pairs, home, away, kept):
    stored = StoredConversations()
    lived = stored.converse(_talk(pairs), to=home)
    turns = [*lived, Turn(input=(ask("next"),))] if kept else strip(lived)
    done = stored.plan_replay(turns, away, thinking=True)
    if home == away:
        return
    sent = {raw for placed in raws(done).values() for raw in placed}
    plain_family = home.origin.provider == away.origin.provider and home.origin.dialect == "chat"
    if not plain_family:
        assert not any("s1." in raw for raw in sent)
        # The provider itself drops what another of its models cannot read, and the client keeps it.
        own = away.policy.prefix and _but_for_model(home) == _but_for_model(away)
        if kept and not own and away.policy.need.value not in ("forbidden", "none"):
            untouched = {r.turn for r in done.decisions} - {r.turn for r in done.revisions}
            assert not {i for i in untouched if lived[i].thoughts[0].sealed}


@pytest.mark.parametrize("sealed", [True, False])
def test_without_a_model_not_even_the_same_place_is_the_same_model(sealed):
    """An origin that equals the target's proves nothing about a model that neither names."""
    there = replace(OPENAI, origin=replace(OPENAI.origin, model="", asked=""))
    binds = there.policy.binds if sealed else there.policy.plain
    assert guard(there.origin, there, sealed=sealed) == ("model" if "model" in binds else "")
    assert guard(OPENAI.origin, OPENAI, sealed=sealed) == ""
