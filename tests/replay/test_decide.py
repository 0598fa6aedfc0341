"""What goes back where, and why: one test per decision, then the laws."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from support.stored_conversations import (
    BOUND,
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
    result,
    say,
    strip,
    target,
    thought,
)
from thoughtline.log import keys
from thoughtline.log.decisions import Action, MatchLevel
from thoughtline.log.events import Outcome
from thoughtline.log.parts import Carrier, Text
from thoughtline.log.turns import Place, Turn
from thoughtline.replay.decide import plan_replay
from thoughtline.replay.plan import ReplayLimits

# -- the six decisions ---------------------------------------------------------------------------


def test_put_back():
    stored = StoredConversations()
    lived = stored.converse(TALK)
    done = stored.plan_replay(strip(lived))
    assert actions(done) == ["restored"] * 3
    assert raws(done) == {0: ['"s1.0"'], 1: ['"s1.1"'], 2: ['"s1.2"']}
    assert {r.level for r in done.decisions} == {MatchLevel.FULL}
    assert done.parent.turn == "s1.2"


def test_already_exact_is_left_alone():
    stored = StoredConversations()
    lived = stored.converse(TALK)
    done = stored.plan_replay([*lived, Turn(input=(ask("next"),))])
    assert actions(done) == ["exact"] * 3
    assert done.revisions == ()


@pytest.mark.parametrize("said", ["s1.", "s1.0 and more", "  s1.0 "])
def test_an_altered_echo_is_replaced(said):
    stored = StoredConversations()
    lived = stored.converse(TALK[:1])
    altered = replace(lived[0], output=(thought(said, target().origin), *lived[0].output[1:]))
    done = stored.plan_replay([altered, Turn(input=(result("a.txt"),))])
    assert actions(done) == ["replaced"]
    assert raws(done) == {0: ['"s1.0"']}


def test_an_echo_under_another_key_is_renamed():
    stored = StoredConversations()
    lived = stored.converse(TALK[:1], to=target("groq", model="gpt-oss"))
    renamed = thought("s1.0", target().origin, carrier=Carrier.REASONING_CONTENT)
    done = stored.plan_replay(
        [replace(lived[0], output=(renamed, *lived[0].output[1:])), Turn(input=(result("x"),))],
        target("groq", model="gpt-oss"),
    )
    assert [p.carrier for p in done.revisions[0].thoughts] == [Carrier.REASONING]


def test_legally_absent_where_nothing_is_demanded():
    stored = StoredConversations()
    unknown = [Turn(input=(ask("hi"),), output=(say("Hello."),)), Turn(input=(ask("next"),))]
    done = stored.plan_replay(unknown, target("glm", model="glm-5.2"))
    assert actions(done) == ["absent"]
    assert done.revisions == ()


def test_shortest_accepted_value_where_one_is_demanded():
    unknown = strip([Turn(input=(ask("hi"),), output=(call("ls"),))])
    pro = StoredConversations().plan_replay(unknown, target(model="deepseek-v4-pro"))
    flash = StoredConversations().plan_replay(unknown, target(model="deepseek-v4-flash"))
    assert actions(pro) == actions(flash) == ["placeholder"]
    assert raws(pro) == {0: ['" "']}
    assert raws(flash) == {0: ['""']}
    assert [one.missed for one in pro.decisions] == [True]


def test_a_clients_own_placeholder_is_none():
    blank = thought("", target().origin)
    turn = Turn(input=(ask("hi"),), output=(replace(blank, origin=None), call("ls")))
    done = StoredConversations().plan_replay(
        [turn, Turn(input=(result("x"),))], target(model="deepseek-v4-pro")
    )
    assert raws(done) == {0: ['" "']}  # `""` is refused there


def test_a_clients_own_thought_is_left_alone():
    own = replace(thought("its own", target().origin), origin=None)
    turn = Turn(input=(ask("hi"),), output=(own, call("ls")))
    done = StoredConversations().plan_replay([turn, Turn(input=(result("x"),))])
    assert (actions(done), done.revisions) == (["exact"], ())


def test_forbidden_is_dropped():
    stored = StoredConversations()
    lived = stored.converse(TALK, to=target("deepseek-r1", model="r1"))
    done = stored.plan_replay(
        [*lived, Turn(input=(ask("next"),))], target("deepseek-r1", model="r1")
    )
    assert actions(done) == ["dropped"] * 3
    assert raws(done) == {0: [], 1: [], 2: []}
    assert (
        actions(stored.plan_replay(strip(lived), target("deepseek-r1", model="r1")))
        == ["absent"] * 3
    )


def test_thinking_off_where_no_value_is_accepted():
    unknown = [Turn(input=(ask("hi"),), output=(call("ls"),)), Turn(input=(result("x"),))]
    done = StoredConversations().plan_replay(unknown, CLAUDE, thinking=True)
    assert done.fields == {"thinking": b'{"type":"disabled"}'}


# -- what stays behind ---------------------------------------------------------------------------


@pytest.mark.parametrize("outcome", [Outcome.FAILED, Outcome.CAPPED, Outcome.ABORTED])
def test_thoughts_of_turns_that_did_not_complete_stay(outcome):
    stored = StoredConversations()
    lived = stored.converse(TALK, to=OPENAI, outcomes={1: outcome})
    done = stored.plan_replay(strip(lived), OPENAI)
    assert actions(done) == ["restored", "dropped", "restored"]
    assert reasons(done)[1] == f"turn {outcome.value}"


def test_a_dangling_thought_stays():
    stored = StoredConversations()
    made = thought("x", OPENAI.origin, seal="sealed")
    lived = stored.converse([([ask("go")], [say("Hm."), made])], to=OPENAI)
    done = stored.plan_replay(strip(lived), OPENAI)
    assert (actions(done), reasons(done)) == (["dropped"], ["dangling"])


def test_a_quarantined_thought_stays_and_its_ids_go():
    stored = StoredConversations()
    lived = stored.converse(TALK, to=OPENAI)
    entry = stored.index["s1.0"]
    stored.forget("s1.0")
    stored.file(replace(entry, quarantined=frozenset({0})))
    done = stored.plan_replay(strip(lived), OPENAI)
    assert reasons(done)[0] == "quarantined"
    assert done.revisions[0].anonymous


def test_a_quarantined_thought_stays_where_it_would_be_ignored_too():
    stored = StoredConversations()
    lived = stored.converse(TALK[:1], to=CLAUDE)
    stored.file(replace(stored.index["s1.0"], quarantined=frozenset({0})))
    stored.archive = {name: filed[-1:] for name, filed in stored.archive.items()}
    done = stored.plan_replay([*lived, Turn(input=(result("x"),))], CLAUDE, thinking=False)
    assert (actions(done), reasons(done), raws(done)) == (["dropped"], ["quarantined"], {0: []})


def test_what_a_client_brings_and_was_refused_stays():
    own = replace(thought("its own", OPENAI.origin, seal="x"), origin=None)
    turns = [Turn(input=(ask("hi"),), output=(own, call("ls"))), Turn(input=(result("x"),))]
    stored = StoredConversations()
    path = stored.path(turns)
    chain = path.keys[0].full.hex()
    done = plan_replay(path, {}, OPENAI, refused=[chain])
    assert (actions(done), raws(done)) == (["dropped"], {0: []})
    assert (done.revisions[0].anonymous, done.skipped) == (True, {chain: "refused"})


# -- order, keys, scope --------------------------------------------------------------------------


def test_interleaved_thoughts_stand_before_what_they_led_to():
    stored = StoredConversations()
    one, two, three = (thought(str(n), OPENAI.origin, seal=f"seal{n}") for n in (1, 2, 3))
    stored.converse(
        [([ask("go")], [one, call("ls"), two, say("then"), three, call("cat")])], to=OPENAI
    )
    turns = [
        Turn(input=(ask("go"),), output=(call("ls"), say("then"), call("cat"))),
        Turn(input=(result("x"),)),
    ]
    placed = stored.plan_replay(turns, OPENAI).revisions[0].thoughts
    assert [p.place for p in placed] == [Place("call", 0), Place("text", 0), Place("call", 1)]


def test_equal_copies_for_servers_that_read_either_key():
    stored = StoredConversations()
    to = target("vllm", model="any")
    made = thought("hm", to.origin, carrier=Carrier.REASONING)
    lived = stored.converse([([ask("go")], [made, say("ok")])], to=to)
    placed = stored.plan_replay(strip(lived), to).revisions[0].thoughts
    assert {(p.carrier.value, p.raw) for p in placed} == {
        ("reasoning", '"hm"'),
        ("reasoning_content", '"hm"'),
    }


def test_a_thought_before_every_call_where_that_is_demanded():
    stored = StoredConversations()
    to = target("deepseek", "responses", "deepseek-v4-pro")
    made = thought("hm", to.origin, carrier=Carrier.ITEM)
    lived = stored.converse([([ask("go")], [made, call("ls"), call("cat")])], to=to)
    placed = stored.plan_replay(strip(lived, [result("x")]), to).revisions[0].thoughts
    assert [p.place for p in placed] == [Place("call", 0), Place("call", 1)]
    assert len({p.raw for p in placed}) == 1


def test_without_tools_deepseek_reads_nothing():
    stored = StoredConversations()
    lived = stored.converse(TALK)
    done = stored.plan_replay(strip(lived), tools=False)
    assert set(actions(done)) == {"absent"}


def test_thinking_switched_off_demands_nothing():
    unknown = strip([Turn(input=(ask("hi"),), output=(call("ls"),))])
    assert actions(StoredConversations().plan_replay(unknown, thinking=False)) == ["absent"]


def test_gemini_signs_only_the_running_loop():
    to = target("gemini", "gemini", "gemini-3-pro")
    old = Turn(input=(ask("hi"),), output=(call("ls"),))
    new = Turn(input=(ask("again"),), output=(call("cat"), call("wc")))
    done = StoredConversations().plan_replay([old, new, Turn(input=(result("x"),))], to)
    assert actions(done) == ["absent", "placeholder"]
    assert raws(done) == {1: ['"skip_thought_signature_validator"']}
    assert done.revisions[0].thoughts[0].place == Place("call", 0)


def test_limits():
    stored = StoredConversations()
    lived = stored.converse([*TALK, ([ask("more")], [say("More.")])], to=OPENAI)
    assert (
        actions(stored.plan_replay(strip(lived), OPENAI, ReplayLimits(last=1))).count("restored")
        == 1
    )
    assert "restored" not in actions(stored.plan_replay(strip(lived), OPENAI, ReplayLimits(last=0)))
    assert "restored" not in actions(
        stored.plan_replay(strip(lived), OPENAI, ReplayLimits(loop_only=True))
    )
    running = strip(lived[:2], [result("hello")])
    assert (
        actions(stored.plan_replay(running, OPENAI, ReplayLimits(loop_only=True)))
        == ["restored"] * 2
    )


# -- sticky --------------------------------------------------------------------------------------


def test_what_once_went_out_without_goes_out_without_again():
    stored = StoredConversations()
    lived = stored.converse(TALK, to=OPENAI)
    stored.forget("s1.0")
    first = stored.plan_replay(strip(lived[:2]), OPENAI)
    chain = keys.rolling_keys(lived)[0][0].full.hex()
    assert first.skipped == {chain: "unknown"}
    later = StoredConversations()
    lived = later.converse(TALK, to=OPENAI, skipped={1: first.skipped})
    assert actions(later.plan_replay(strip(lived), OPENAI)) == ["dropped", "restored", "restored"]
    elsewhere = later.plan_replay(strip(lived), target("openai", "responses", "gpt-6"))
    assert set(reasons(elsewhere)) == {"foreign model"}


def test_a_skip_towards_another_target_does_not_count():
    """Switch the model and back: what stayed behind is used again."""
    chain = keys.rolling_keys(StoredConversations().converse(TALK, to=OPENAI))[0][0].full.hex()
    stored = StoredConversations()
    other = target("openai", "responses", "gpt-6")
    lived = stored.converse(
        TALK, to=OPENAI, targets={1: other}, skipped={1: {chain: "foreign model"}}
    )
    back = stored.plan_replay(strip(lived), OPENAI)
    assert actions(back) == ["restored", "dropped", "restored"]
    assert actions(stored.plan_replay(strip(lived), other)) == ["dropped", "restored", "dropped"]


def _bound_world(**more):
    stored = StoredConversations()
    lived = stored.converse([*TALK, ([ask("more")], [say("More.")])], to=BOUND, **more)
    return stored, lived


def test_prefix_bound_blocks_go_back_as_one_unbroken_run():
    stored, lived = _bound_world()
    assert actions(stored.plan_replay(strip(lived), BOUND)) == ["restored"] * 4
    stored.forget("s1.1")
    done = stored.plan_replay(strip(lived), BOUND)
    assert actions(done) == ["dropped", "absent", "restored", "restored"]


def test_a_prefix_bound_block_is_never_put_back_late():
    stored = StoredConversations()
    chain = keys.rolling_keys(_bound_world()[1])[0][1].full.hex()
    stored, lived = _bound_world(skipped={2: {chain: "unknown"}})
    # the first one went out all the time
    assert actions(stored.plan_replay(strip(lived), BOUND)) == [
        "restored",
        "dropped",
        "restored",
        "restored",
    ]


def test_a_changed_prefix_drops_what_is_bound_to_it():
    stored = StoredConversations()
    blocks = [thought(str(n), BOUND.origin, seal=f"s{n}", prefix=f"p{n}") for n in (0, 1)]
    lived = stored.converse(
        [([ask("a")], [blocks[0], say("A.")]), ([ask("b")], [blocks[1], say("B.")])], to=BOUND
    )
    same = stored.plan_replay(strip(lived), BOUND, prefixes=("p0", "p1", "p2"))
    assert actions(same) == ["restored", "restored"]
    edited = stored.plan_replay(strip(lived), BOUND, prefixes=("p0", "other", "p2"))
    assert actions(edited) == ["restored", "dropped"]  # what stands before the edit is as it was
    assert "prefix changed" in reasons(edited)


@pytest.mark.parametrize("field", ["account", "endpoint", "provider"])
def test_a_prefix_bound_block_made_elsewhere_is_taken_out_also_where_the_client_sends_it(field):
    elsewhere = replace(BOUND, origin=replace(BOUND.origin, **{field: "elsewhere"}))
    stored = StoredConversations()
    lived = stored.converse(TALK, to=elsewhere)
    done = stored.plan_replay([*lived, Turn(input=(ask("next"),))], BOUND)
    assert actions(done) == ["dropped"] * 3
    assert set(reasons(done)) == {f"foreign {field}"}


def test_a_prefix_bound_block_of_another_model_stays_where_the_client_sends_it():
    stored = StoredConversations()
    lived = stored.converse(TALK, to=target("anthropic", "messages", "claude-sonnet-5-5"))
    done = stored.plan_replay([*lived, Turn(input=(ask("next"),))], BOUND)
    assert (actions(done), done.revisions) == (["exact"] * 3, ())
    assert actions(stored.plan_replay(strip(lived), BOUND)) == ["dropped"] * 3


# -- laws ----------------------------------------------------------------------------------------


@given(st.lists(_turn, min_size=1, max_size=6), _targets)
def test_restoring_what_is_restored_changes_nothing(pairs, to):
    stored = StoredConversations()
    lived = stored.converse(_talk(pairs), to=to)
    first = stored.plan_replay(strip(lived), to, thinking=True)
    if first.count(Action.RESTORED) != len(lived):
        return  # ambiguous words
    again = stored.plan_replay([*lived, Turn(input=(Text(text="next"),))], to, thinking=True)
    assert again.revisions == ()
    assert set(actions(again)) == {"exact"}
