"""What goes back where, and why: one test per ruling, then the laws."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from thoughtline import keys
from thoughtline.events import Outcome
from thoughtline.matching import Rung
from thoughtline.parts import Carrier, Text
from thoughtline.replay import Action, Limits, restore
from thoughtline.turns import Place, Turn
from worlds import World, ask, call, result, say, strip, target, thought

TALK = [
    ([ask("list the files")], [call("ls", path=".")]),
    ([result("a.txt")], [say("One file."), call("cat", path="a.txt")]),
    ([result("hello")], [say("It says hello.")]),
]
OPENAI = target("openai", "responses", "gpt-5.6")
CLAUDE = target("anthropic", "messages", "claude-sonnet-4-5")
BOUND = target("anthropic", "messages", "claude-opus-5-5")


def actions(restoration):
    return [ruling.action.value for ruling in restoration.rulings]


def reasons(restoration):
    return [ruling.reason for ruling in restoration.rulings]


def raws(restoration):
    return {r.turn: [p.raw for p in r.thoughts] for r in restoration.revisions}


# -- the six rulings -----------------------------------------------------------------------------


def test_put_back():
    world = World()
    lived = world.converse(TALK)
    done = world.restore(strip(lived))
    assert actions(done) == ["restored"] * 3
    assert raws(done) == {0: ['"s1.0"'], 1: ['"s1.1"'], 2: ['"s1.2"']}
    assert {r.rung for r in done.rulings} == {Rung.CHAIN}
    assert done.parent.turn == "s1.2"


def test_already_exact_is_left_alone():
    world = World()
    lived = world.converse(TALK)
    done = world.restore([*lived, Turn(input=(ask("next"),))])
    assert actions(done) == ["exact"] * 3
    assert done.revisions == ()


@pytest.mark.parametrize("said", ["s1.", "s1.0 and more", "  s1.0 "])
def test_an_altered_echo_is_replaced(said):
    world = World()
    lived = world.converse(TALK[:1])
    altered = replace(lived[0], output=(thought(said, target().origin), *lived[0].output[1:]))
    done = world.restore([altered, Turn(input=(result("a.txt"),))])
    assert actions(done) == ["replaced"]
    assert raws(done) == {0: ['"s1.0"']}


def test_an_echo_under_another_key_is_renamed():
    world = World()
    lived = world.converse(TALK[:1], to=target("groq", model="gpt-oss"))
    renamed = thought("s1.0", target().origin, carrier=Carrier.REASONING_CONTENT)
    done = world.restore(
        [replace(lived[0], output=(renamed, *lived[0].output[1:])), Turn(input=(result("x"),))],
        target("groq", model="gpt-oss"),
    )
    assert [p.carrier for p in done.revisions[0].thoughts] == [Carrier.REASONING]


def test_legally_absent_where_nothing_is_demanded():
    world = World()
    stranger = [Turn(input=(ask("hi"),), output=(say("Hello."),)), Turn(input=(ask("next"),))]
    done = world.restore(stranger, target("glm", model="glm-5.2"))
    assert actions(done) == ["absent"]
    assert done.revisions == ()


def test_shortest_accepted_value_where_one_is_demanded():
    stranger = strip([Turn(input=(ask("hi"),), output=(call("ls"),))])
    pro = World().restore(stranger, target(model="deepseek-v4-pro"))
    flash = World().restore(stranger, target(model="deepseek-v4-flash"))
    assert actions(pro) == actions(flash) == ["placeholder"]
    assert raws(pro) == {0: ['" "']}
    assert raws(flash) == {0: ['""']}
    assert pro.missed == 1


def test_a_clients_own_placeholder_is_none():
    blank = thought("", target().origin)
    turn = Turn(input=(ask("hi"),), output=(replace(blank, origin=None), call("ls")))
    done = World().restore([turn, Turn(input=(result("x"),))], target(model="deepseek-v4-pro"))
    assert raws(done) == {0: ['" "']}  # `""` is refused there


def test_a_clients_own_thought_is_left_alone():
    own = replace(thought("its own", target().origin), origin=None)
    turn = Turn(input=(ask("hi"),), output=(own, call("ls")))
    done = World().restore([turn, Turn(input=(result("x"),))])
    assert (actions(done), done.revisions) == (["exact"], ())


def test_forbidden_is_dropped():
    world = World()
    lived = world.converse(TALK, to=target("deepseek-r1", model="r1"))
    done = world.restore([*lived, Turn(input=(ask("next"),))], target("deepseek-r1", model="r1"))
    assert actions(done) == ["dropped"] * 3
    assert raws(done) == {0: [], 1: [], 2: []}
    assert actions(world.restore(strip(lived), target("deepseek-r1", model="r1"))) == ["absent"] * 3


def test_thinking_off_where_no_value_is_accepted():
    stranger = [Turn(input=(ask("hi"),), output=(call("ls"),)), Turn(input=(result("x"),))]
    done = World().restore(stranger, CLAUDE, thinking=True)
    assert done.fields == {"thinking": b'{"type":"disabled"}'}


# -- what stays behind ---------------------------------------------------------------------------


@pytest.mark.parametrize("outcome", [Outcome.FAILED, Outcome.CAPPED, Outcome.ABORTED])
def test_thoughts_of_turns_that_did_not_complete_stay(outcome):
    world = World()
    lived = world.converse(TALK, to=OPENAI, outcomes={1: outcome})
    done = world.restore(strip(lived), OPENAI)
    assert actions(done) == ["restored", "dropped", "restored"]
    assert reasons(done)[1] == f"turn {outcome.value}"


def test_a_dangling_thought_stays():
    world = World()
    made = thought("x", OPENAI.origin, seal="sealed")
    lived = world.converse([([ask("go")], [say("Hm."), made])], to=OPENAI)
    done = world.restore(strip(lived), OPENAI)
    assert (actions(done), reasons(done)) == (["dropped"], ["dangling"])


def test_a_quarantined_thought_stays_and_its_ids_go():
    world = World()
    lived = world.converse(TALK, to=OPENAI)
    memory = world.memories["s1.0"]
    world.forget("s1.0")
    world.file(replace(memory, quarantined=frozenset({0})))
    done = world.restore(strip(lived), OPENAI)
    assert reasons(done)[0] == "quarantined"
    assert done.revisions[0].anonymous


def test_a_quarantined_thought_stays_where_it_would_be_ignored_too():
    world = World()
    lived = world.converse(TALK[:1], to=CLAUDE)
    world.file(replace(world.memories["s1.0"], quarantined=frozenset({0})))
    world.archive = {name: filed[-1:] for name, filed in world.archive.items()}
    done = world.restore([*lived, Turn(input=(result("x"),))], CLAUDE, thinking=False)
    assert (actions(done), reasons(done), raws(done)) == (["dropped"], ["quarantined"], {0: []})


def test_what_a_client_brings_and_was_refused_stays():
    own = replace(thought("its own", OPENAI.origin, seal="x"), origin=None)
    turns = [Turn(input=(ask("hi"),), output=(own, call("ls"))), Turn(input=(result("x"),))]
    world = World()
    path = world.path(turns)
    chain = path.keys[0].chain.hex()
    done = restore(path, {}, OPENAI, refused=[chain])
    assert (actions(done), raws(done)) == (["dropped"], {0: []})
    assert (done.revisions[0].anonymous, done.skipped) == (True, {chain: "refused"})


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
    world = World()
    lived = world.converse(TALK, to=OPENAI)
    for turns in (strip(lived), [*lived, Turn(input=(ask("next"),))]):
        done = world.restore(turns, other)
        assert set(actions(done)) == {"dropped"}
        assert set(reasons(done)) == {f"foreign {field}"}
        assert all(r.anonymous and not r.thoughts for r in done.revisions)


def test_a_dated_model_is_the_one_that_was_asked_for():
    world = World()
    served = replace(
        OPENAI, origin=replace(OPENAI.origin, model="gpt-5.6-2026-08-01", asked="gpt-5.6")
    )
    lived = world.converse(TALK, to=served)
    assert actions(world.restore(strip(lived), OPENAI)) == ["restored"] * 3


def test_plain_text_serves_all_models_of_its_provider_and_no_other_provider():
    world = World()
    lived = world.converse(TALK, to=target(model="deepseek-v4-pro"))
    assert set(actions(world.restore(strip(lived), target(model="deepseek-v4-flash")))) == {
        "restored"
    }
    assert set(actions(world.restore(strip(lived), target("glm", model="glm-5.2")))) == {"dropped"}


def test_a_foreign_seal_is_dropped_even_when_the_client_brings_it_in_another_shape():
    """One client turns redacted data into a signature; the digest still gives it away."""
    world = World()
    lived = world.converse(TALK[:1], to=OPENAI)
    seal = "seal-s1.0"
    smuggled = thought("", CLAUDE.origin, seal=seal, carrier=Carrier.BLOCK)
    turn = Turn(input=(ask("rewritten"),), output=(replace(smuggled, origin=None), say("edited")))
    done = world.restore([turn, Turn(input=(ask("next"),))], CLAUDE, thinking=True)
    assert lived
    assert (actions(done), raws(done)) == (["dropped"], {0: []})


@each_other_place
def test_a_foreign_seal_is_dropped_also_where_its_turn_is_uncertain(field, other):
    world = World()
    sealed = thought("hm", OPENAI.origin, seal="one-seal")
    for number in (1, 2):  # two turns have it, among others: a tie
        other_one = thought(f"hm {number}", OPENAI.origin, seal=f"seal {number}")
        world.converse([([ask(f"go {number}")], [sealed, other_one, call("ls")])], to=OPENAI)
    brought = replace(sealed, origin=None)
    turns = [Turn(input=(ask("rewritten"),), output=(brought, say("edited"))), strip([])[-1]]
    done = world.restore(turns, other)
    assert (actions(done), raws(done)) == (["dropped"], {0: []})
    assert reasons(done) == [f"foreign {field}"]
    assert actions(world.restore(turns, OPENAI)) == ["exact"]


# -- order, keys, scope --------------------------------------------------------------------------


def test_interleaved_thoughts_stand_before_what_they_led_to():
    world = World()
    one, two, three = (thought(str(n), OPENAI.origin, seal=f"seal{n}") for n in (1, 2, 3))
    world.converse(
        [([ask("go")], [one, call("ls"), two, say("then"), three, call("cat")])], to=OPENAI
    )
    turns = [
        Turn(input=(ask("go"),), output=(call("ls"), say("then"), call("cat"))),
        Turn(input=(result("x"),)),
    ]
    placed = world.restore(turns, OPENAI).revisions[0].thoughts
    assert [p.place for p in placed] == [Place("call", 0), Place("text", 0), Place("call", 1)]


def test_equal_copies_for_servers_that_read_either_key():
    world = World()
    to = target("vllm", model="any")
    made = thought("hm", to.origin, carrier=Carrier.REASONING)
    lived = world.converse([([ask("go")], [made, say("ok")])], to=to)
    placed = world.restore(strip(lived), to).revisions[0].thoughts
    assert {(p.carrier.value, p.raw) for p in placed} == {
        ("reasoning", '"hm"'),
        ("reasoning_content", '"hm"'),
    }


def test_a_thought_before_every_call_where_that_is_demanded():
    world = World()
    to = target("deepseek", "responses", "deepseek-v4-pro")
    made = thought("hm", to.origin, carrier=Carrier.ITEM)
    lived = world.converse([([ask("go")], [made, call("ls"), call("cat")])], to=to)
    placed = world.restore(strip(lived, [result("x")]), to).revisions[0].thoughts
    assert [p.place for p in placed] == [Place("call", 0), Place("call", 1)]
    assert len({p.raw for p in placed}) == 1


def test_without_tools_deepseek_reads_nothing():
    world = World()
    lived = world.converse(TALK)
    done = world.restore(strip(lived), tools=False)
    assert set(actions(done)) == {"absent"}


def test_thinking_switched_off_demands_nothing():
    stranger = strip([Turn(input=(ask("hi"),), output=(call("ls"),))])
    assert actions(World().restore(stranger, thinking=False)) == ["absent"]


def test_gemini_signs_only_the_running_loop():
    to = target("gemini", "gemini", "gemini-3-pro")
    old = Turn(input=(ask("hi"),), output=(call("ls"),))
    new = Turn(input=(ask("again"),), output=(call("cat"), call("wc")))
    done = World().restore([old, new, Turn(input=(result("x"),))], to)
    assert actions(done) == ["absent", "placeholder"]
    assert raws(done) == {1: ['"skip_thought_signature_validator"']}
    assert done.revisions[0].thoughts[0].place == Place("call", 0)


def test_limits():
    world = World()
    lived = world.converse([*TALK, ([ask("more")], [say("More.")])], to=OPENAI)
    assert actions(world.restore(strip(lived), OPENAI, Limits(last=1))).count("restored") == 1
    assert "restored" not in actions(world.restore(strip(lived), OPENAI, Limits(last=0)))
    assert "restored" not in actions(world.restore(strip(lived), OPENAI, Limits(loop_only=True)))
    running = strip(lived[:2], [result("hello")])
    assert actions(world.restore(running, OPENAI, Limits(loop_only=True))) == ["restored"] * 2


# -- sticky --------------------------------------------------------------------------------------


def test_what_once_went_out_without_goes_out_without_again():
    world = World()
    lived = world.converse(TALK, to=OPENAI)
    world.forget("s1.0")
    first = world.restore(strip(lived[:2]), OPENAI)
    chain = keys.trail(lived)[0][0].chain.hex()
    assert first.skipped == {chain: "unknown"}
    later = World()
    lived = later.converse(TALK, to=OPENAI, skipped={1: first.skipped})
    assert actions(later.restore(strip(lived), OPENAI)) == ["dropped", "restored", "restored"]
    elsewhere = later.restore(strip(lived), target("openai", "responses", "gpt-6"))
    assert set(reasons(elsewhere)) == {"foreign model"}


def test_a_skip_towards_another_target_does_not_count():
    """Switch the model and back: what stayed behind is used again."""
    chain = keys.trail(World().converse(TALK, to=OPENAI))[0][0].chain.hex()
    world = World()
    other = target("openai", "responses", "gpt-6")
    lived = world.converse(
        TALK, to=OPENAI, targets={1: other}, skipped={1: {chain: "foreign model"}}
    )
    back = world.restore(strip(lived), OPENAI)
    assert actions(back) == ["restored", "dropped", "restored"]
    assert actions(world.restore(strip(lived), other)) == ["dropped", "restored", "dropped"]


def _bound_world(**more):
    world = World()
    lived = world.converse([*TALK, ([ask("more")], [say("More.")])], to=BOUND, **more)
    return world, lived


def test_prefix_bound_blocks_go_back_as_one_unbroken_run():
    world, lived = _bound_world()
    assert actions(world.restore(strip(lived), BOUND)) == ["restored"] * 4
    world.forget("s1.1")
    done = world.restore(strip(lived), BOUND)
    assert actions(done) == ["dropped", "absent", "restored", "restored"]


def test_a_prefix_bound_block_is_never_put_back_late():
    world = World()
    chain = keys.trail(_bound_world()[1])[0][1].chain.hex()
    world, lived = _bound_world(skipped={2: {chain: "unknown"}})
    assert actions(world.restore(strip(lived), BOUND)) == [
        "dropped",
        "dropped",
        "restored",
        "restored",
    ]


def test_a_changed_prefix_drops_what_is_bound_to_it():
    world = World()
    blocks = [thought(str(n), BOUND.origin, seal=f"s{n}", prefix=f"p{n}") for n in (0, 1)]
    lived = world.converse(
        [([ask("a")], [blocks[0], say("A.")]), ([ask("b")], [blocks[1], say("B.")])], to=BOUND
    )
    same = world.restore(strip(lived), BOUND, prefixes=("p0", "p1", "p2"))
    assert actions(same) == ["restored", "restored"]
    edited = world.restore(strip(lived), BOUND, prefixes=("p0", "other", "p2"))
    assert actions(edited) == ["dropped", "dropped"]
    assert "prefix changed" in reasons(edited)


# -- laws ----------------------------------------------------------------------------------------

_turn = st.tuples(st.sampled_from(["a", "b", "c"]), st.sampled_from(["ls", "cat", "Done.", "Yes."]))


def _talk(pairs):
    return [([ask(i)], [call(o) if o.islower() else say(o)]) for i, o in pairs]


_targets = st.sampled_from(
    [OPENAI, CLAUDE, BOUND, target(), target("glm", model="glm-5.2"), target("openai", "responses", "gpt-6"),
     target("gemini", "gemini", "gemini-3-pro"), target("openai", "responses", "gpt-5.6", account="b"), target("kimi", model="kimi-k3")]
)  # fmt: skip


@given(st.lists(_turn, min_size=1, max_size=6), _targets, _targets, st.booleans())
def test_nothing_sealed_or_plain_reaches_another_origin(pairs, home, away, kept):
    world = World()
    lived = world.converse(_talk(pairs), to=home)
    turns = [*lived, Turn(input=(ask("next"),))] if kept else strip(lived)
    done = world.restore(turns, away, thinking=True)
    if home == away:
        return
    sent = {raw for placed in raws(done).values() for raw in placed}
    plain_family = home.origin.provider == away.origin.provider and home.origin.dialect == "chat"
    if not plain_family:
        assert not any("s1." in raw for raw in sent)
        if kept and away.policy.need.value not in ("forbidden", "none"):
            untouched = {r.turn for r in done.rulings} - {r.turn for r in done.revisions}
            assert not {i for i in untouched if lived[i].thoughts[0].sealed}


@given(st.lists(_turn, min_size=1, max_size=6), _targets)
def test_restoring_what_is_restored_changes_nothing(pairs, to):
    world = World()
    lived = world.converse(_talk(pairs), to=to)
    first = world.restore(strip(lived), to, thinking=True)
    if first.count(Action.RESTORED) != len(lived):
        return  # ambiguous words
    again = world.restore([*lived, Turn(input=(Text(text="next"),))], to, thinking=True)
    assert again.revisions == ()
    assert set(actions(again)) == {"exact"}
