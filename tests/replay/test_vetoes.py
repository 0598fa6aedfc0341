"""Conversations that look alike in everything visible: what tells them apart is never overruled."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from support.stored_conversations import (
    CLAUDE,
    OPENAI,
    StoredConversations,
    ask,
    call,
    result,
    say,
    target,
)
from thoughtline.dialects.thoughts import make_thought
from thoughtline.log.decisions import RULED_OUT
from thoughtline.log.index import MAX_CANDIDATES
from thoughtline.log.parts import Call, Carrier, Text, Thought
from thoughtline.log.turns import Turn
from thoughtline.replay.match import match_turns

WORDS = [ask("mend it"), result("a.py"), result("code"), ask("go on"), result("b.md")]
OUTPUTS = ["ls", "cat", "Done.", "ls", "Well."]


def talk(mark, *, ids="", words=None):
    """Turns that say the same in every conversation; `ids`: calls or items have ids of its own."""
    made = []
    for number, (heard, said) in enumerate(zip(words or WORDS, OUTPUTS, strict=True)):
        if said.islower():
            id = f"call_{mark}{number:02}c6e8f9a7b1" if "c" in ids else ""
            item = f"fc_{mark}{number:02}c6e8f9a7b1" if "i" in ids else ""
            part = replace(call(said, id=id), item=item)
        else:
            item = f"msg_{mark}{number:02}c6e8f9a7b1" if "i" in ids else ""
            part = Text(text=said, id=item)
        made.append(([heard], [part]))
    return made


MOVED = [ask("<reminder/> mend it"), *WORDS[1:]]
"""Other words than those that the client says later on."""


def found(stored, turns, **facts):
    path = stored.path(turns, **facts)
    return [m for m in match_turns(path, stored.look_up(path)).turns if m is not None]


def sessions(stored, turns, **facts):
    return {m.entry.session if m.entry else None for m in found(stored, turns, **facts)}


def asked(turns, keep):
    """What the client of a conversation sends; `keep`: (position, part) → what it echoes of it."""
    echoed = []
    for number, turn in enumerate(turns):
        parts = [keep(number, part) for part in turn.output]
        output = tuple(part for part in parts if part is not None)
        echoed.append(Turn(input=(WORDS[number],), output=output))
    return [*echoed, Turn(input=(ask("thanks"),))]


def bare(_number, part):
    """An output without anything that could tell it from others."""
    if isinstance(part, Thought):
        return None
    return replace(part, id="") if isinstance(part, Text) else replace(part, id="", item="")


def whole(_number, part):
    return part


@pytest.mark.parametrize("at", range(len(OUTPUTS)))
@pytest.mark.parametrize("evidence", ["call ids", "item ids", "seal", "hint", "handle"])
def test_what_points_to_another_turn_is_not_overruled(evidence, at):
    """B's visible history has become A's: one thing at one output says that it is B's."""
    stored = StoredConversations()
    to = OPENAI
    ids = {"call ids": "c", "item ids": "i"}.get(evidence, "")
    stored.converse(talk("a", ids=ids), to=to, hints=("A",))
    hints = ("B",) if evidence == "hint" else ()
    lived = stored.converse(talk("b", ids=ids, words=MOVED), to=to, hints=hints)

    def keep(number, part):
        if number != at or (isinstance(part, Thought) and evidence != "seal"):
            return bare(number, part)
        return part

    facts = {"hints": hints}
    request = asked(lived, keep)
    if evidence == "handle":
        path = replace(stored.path(request), handles={at: lived[at].id})
        answers = [m for m in match_turns(path, stored.look_up(path)).turns if m is not None]
        assert "s1" not in {m.entry.session for m in answers if m.entry}
        return
    has = evidence in ("seal", "hint") or isinstance(lived[at].output[-1], Call)
    if has or evidence == "item ids":
        assert "s1" not in sessions(stored, request, **facts)
    assert sessions(stored, asked(lived, bare)) == {"s1"}  # nobody can tell


def test_what_is_ruled_out_is_told():
    stored = StoredConversations()
    stored.converse(talk("a", ids="c"))
    lived = stored.converse(talk("b", ids="c", words=MOVED))
    stored.forget(lived[0].id)
    (first, *_rest) = found(stored, asked(lived, whole))
    assert (first.entry, first.reason) == (None, RULED_OUT)


def test_an_unknown_turn_between_known_ones_is_not_taken_for_another_ones():
    """It is not in the log here: made before the gateway was there, or still on another node."""
    for missing in range(len(OUTPUTS)):
        stored = StoredConversations()
        stored.converse(talk("a", ids="c"))
        lived = stored.converse(talk("b", ids="c"))
        stored.forget(lived[missing].id)
        assert "s1" not in sessions(stored, asked(lived, whole)), missing


def test_ids_of_a_turn_that_so_many_follow_that_it_is_not_found_any_more():
    stored = StoredConversations()
    stored.converse(talk("a", ids="c"))
    lived = stored.converse(talk("b", ids="c", words=MOVED))
    for number in range(MAX_CANDIDATES):
        stored.converse([([ask(f"{number}")], [call("ls", id=f"call_z{number:03}c6e8f9a7b1")])])
    for turn in lived:
        stored.forget(turn.id)
    first = found(stored, asked(lived, whole))[0]
    look_up = stored.look_up(stored.path(asked(lived, whole)))
    crowd = [len(filed) for filed in look_up.values()]
    assert max(crowd) > MAX_CANDIDATES
    assert (first.entry, first.reason) == (None, RULED_OUT)


# -- item ids ------------------------------------------------------------------------------------


def item(id, seal, text=""):
    summary = [{"type": "summary_text", "text": text}] if text else []
    value = {"type": "reasoning", "id": id, "summary": summary}
    if seal:
        value["encrypted_content"] = seal
    return make_thought(Carrier.ITEM, value)


SAME_ID = "rs_0c6e8f9a7b1d2c6e8"


@pytest.mark.parametrize(
    ("logged", "echoed", "known"),
    [
        (item(SAME_ID, "seal-a"), item(SAME_ID, ""), True),  # the client left the seal out
        (item(SAME_ID, "seal-a"), item(SAME_ID, "seal-a"), True),
        (item(SAME_ID, "seal-a"), item(SAME_ID, "seal-b"), False),
        (item(SAME_ID, "seal-a", "one"), item(SAME_ID, "", "other"), False),
        (item(SAME_ID, "", "one"), item(SAME_ID, "", "one"), False),  # without a seal: no proof
        (item("rs_123456", "seal-a"), item("rs_123456", ""), False),  # counted, or short
    ],
)
def test_an_item_id_finds_a_turn_only_where_nothing_speaks_against_it(logged, echoed, known):
    """The history is not in the log; only the item is there, in another conversation."""
    stored = StoredConversations()
    logged = replace(logged, origin=OPENAI.origin)
    stored.converse([([ask("hi")], [logged, say("Hello.")])], to=OPENAI)
    request = [
        Turn(input=(ask("other"),), output=(echoed, say("Something else."))),
        Turn(input=(ask("next"),)),
    ]
    assert (sessions(stored, request) == {"s1"}) is known


def test_a_seal_that_nobody_knows_is_the_clients_own_thought():
    stored = StoredConversations()
    own, others = "y" * 100, "x" * 100
    said = ([ask("hi")], [replace(item("rs_1", others), origin=OPENAI.origin), say("Hello.")])
    stored.converse([said], to=OPENAI)

    def request(seal):
        output = (item("rs_2", seal), say("Hello."))
        return [Turn(input=(ask("hi"),), output=output), Turn(input=(ask("next"),))]

    assert sessions(stored, request(own)) == {None}
    assert sessions(stored, request(others[:70])) == {"s1"}  # a copy that was cut
    assert sessions(stored, request("")) == {"s1"}


OWN, OTHERS = "I own this thought. " * 5, "Another one had this. " * 5
BLOCK = {"type": "thinking"}


def block(text, seal=""):
    return make_thought(Carrier.BLOCK, {**BLOCK, "thinking": text, "signature": seal})


def plain(text):
    return make_thought(Carrier.REASONING_CONTENT, text)


@pytest.mark.parametrize(
    ("logged", "echoed", "same"),
    [
        (block(OTHERS, "x" * 100), block(OWN), False),  # the client left the seal out
        (block(OTHERS, "x" * 100), block(OTHERS[:80]), True),
        (block(OTHERS, "x" * 100), block(OTHERS[:60] + "and so on, and so on"), True),
        (block("", "x" * 100), block(OWN), True),  # nobody knows what it said
        (block(OTHERS), block("", "y" * 100), False),
        (item("rs_1", "x" * 100, OTHERS), item("rs_2", "", OWN), False),
        (plain("Hm."), plain(f"{OWN} Hm."), False),
        (plain(""), plain(OWN), False),
        (plain(OTHERS), plain(f"Thinking: {OTHERS}"), True),
        (plain(OTHERS), plain("[left out]"), True),
    ],
)
def test_a_thought_that_nobody_logged_is_the_clients_own(logged, echoed, same):
    stored = StoredConversations()
    to = {Carrier.BLOCK: CLAUDE, Carrier.ITEM: OPENAI}.get(logged.carrier, target())
    stored.converse([([ask("hi")], [replace(logged, origin=to.origin), say("Hello.")])], to=to)
    request = [Turn(input=(ask("hi"),), output=(echoed, say("Hello."))), Turn(input=(ask("n"),))]
    assert (sessions(stored, request) == {"s1"}) is same


@pytest.mark.parametrize("continued", [True, False])
def test_a_short_thought_without_a_seal_names_its_turn(continued):
    """Both turns are known; only the few words that the client kept tell which one it is."""
    stored = StoredConversations()
    stored.converse([([ask("hi")], [plain("Hm, one."), say("Hello.")])])
    more = [([ask("next")], [plain("Hm, more."), say("Well.")])] if continued else []
    stored.converse([([ask("hi")], [plain("Hm, two."), say("Hello.")]), *more])
    output = (plain(" Hm, two.\n"), say("Hello."))
    request = [Turn(input=(ask("hi"),), output=output), Turn(input=(ask("other"),))]
    assert sessions(stored, request) == {"s2"}


# -- the law -------------------------------------------------------------------------------------

_marks = st.lists(st.booleans(), min_size=len(OUTPUTS), max_size=len(OUTPUTS))


@given(
    to=st.sampled_from([OPENAI, CLAUDE, target(), target("kimi", model="kimi-k3")]),
    ids=st.sampled_from(["", "c", "i", "ci"]),
    hints=st.tuples(st.sampled_from([(), ("A",)]), st.sampled_from([(), ("B",)])),
    moved=st.booleans(),
    length=st.integers(1, len(OUTPUTS)),
    shown=_marks,
    thoughts=_marks,
    known=st.tuples(_marks, _marks),
    more=st.integers(0, 2),
)
def test_two_that_differ_in_anything_never_exchange_a_thought(
    to, ids, hints, moved, length, shown, thoughts, known, more
):
    """Whatever is in the log of both, and whatever the client shows of what tells them apart.

    Where something that it shows points to a turn of its own that is known, nothing of another
    one is found.
    """
    stored = StoredConversations()
    first = stored.converse(talk("a", ids=ids), to=to, hints=hints[0])
    mine = stored.converse(
        talk("b", ids=ids, words=MOVED if moved else None), to=to, hints=hints[1]
    )
    for _ in range(more):
        stored.converse(talk("c", ids=ids), to=to, hints=("C",))
    for turns, marks in zip((first, mine), known, strict=True):
        for turn, is_known in zip(turns, marks, strict=True):
            if not is_known:
                stored.forget(turn.id)

    def keep(number, part):
        if isinstance(part, Thought):
            return part if thoughts[number] else None
        return part if shown[number] else bare(number, part)

    request = asked(mine[:length], keep)
    answers = found(stored, request, hints=hints[1])
    others = {m.entry.turn for m in answers if m.entry and m.entry.session != "s2"}
    shows = [
        is_known and (hints[1] or any(map(tells, turn.output)))
        for is_known, turn in zip(known[1], request[:length], strict=False)
    ]
    assert not (any(shows) and others), request


def tells(part):
    """Whether an echoed part points to its own turn alone."""
    if isinstance(part, Thought):
        return part.sealed
    if isinstance(part, Call):
        return len(part.id) > len("functions.cat:0") or bool(part.item)
    return bool(part.id)


@given(ids=st.sampled_from(["", "c", "i", "ci"]), hints=st.sampled_from([(), ("B",)]), shown=_marks)
def test_more_evidence_takes_nothing_away(ids, hints, shown):
    """A conversation that is found without anything that tells it apart is found with it, too."""
    stored = StoredConversations()
    lived = stored.converse(talk("b", ids=ids), to=OPENAI, hints=hints)
    stored.converse(talk("a", ids=ids, words=MOVED), to=OPENAI, hints=("A",))
    request = asked(lived, lambda n, p: p if shown[n] else bare(n, p))
    assert sessions(stored, request, hints=hints) == {"s1"}
