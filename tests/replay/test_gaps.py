"""Where a run of prefix-bound blocks breaks: before that, none is put back."""

import pytest
from msgspec.structs import replace

from support.stored_conversations import (
    BOUND,
    TALK,
    StoredConversations,
    actions,
    ask,
    strip,
    target,
)
from thoughtline.log import keys
from thoughtline.log.turns import Turn

SONNET = target("anthropic", "messages", "claude-sonnet-5-5")


def key(lived, at):
    return keys.rolling_keys(lived)[0][at].full.hex()


def test_one_that_is_gone_breaks_what_was_made_behind_it():
    stored = StoredConversations()
    lived = stored.converse(TALK, to=BOUND)
    stored.forget("s1.1")
    assert actions(stored.plan_replay(strip(lived), BOUND)) == ["dropped", "absent", "restored"]


def test_the_newest_one_may_be_gone():
    stored = StoredConversations()
    lived = stored.converse(TALK, to=BOUND)
    stored.forget("s1.2")
    assert actions(stored.plan_replay(strip(lived), BOUND)) == ["restored", "restored", "absent"]


def test_one_that_was_never_there_breaks_nothing():
    plain = StoredConversations().converse(TALK, to=BOUND)
    stored = StoredConversations()
    lived = stored.converse(TALK, to=BOUND, skipped={2: {key(plain, 1): "unknown"}})
    stored.forget("s1.1")
    assert actions(stored.plan_replay(strip(lived), BOUND)) == ["restored", "absent", "restored"]


def test_nothing_is_put_back_before_a_block_that_nobody_knows():
    stored = StoredConversations()
    lived = stored.converse(TALK, to=BOUND)
    stored.forget("s1.2")
    sent = [*strip(lived)[:2], lived[2], Turn(input=(ask("next"),))]
    unknown = replace(sent[2].output[0], origin=None)
    sent[2] = replace(sent[2], output=(unknown, *sent[2].output[1:]))
    done = stored.plan_replay(sent, BOUND)
    assert actions(done) == ["dropped", "dropped", "exact"]


@pytest.mark.parametrize("kept", [0, 1, 2])
def test_what_the_client_sends_stays_on_both_sides_of_a_gap(kept):
    stored = StoredConversations()
    lived = stored.converse(TALK, to=BOUND)
    stored.forget("s1.1")
    sent = strip(lived)
    sent[kept] = lived[kept]
    done = stored.plan_replay(sent, BOUND)
    assert actions(done)[kept] == "exact"


def test_another_models_block_is_no_gap():
    stored = StoredConversations()
    lived = stored.converse(TALK, to=BOUND, targets={1: SONNET})
    done = stored.plan_replay(strip(lived[:2]), BOUND)
    assert actions(done) == ["restored", "dropped"]
