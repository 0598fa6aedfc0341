import sys

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from thoughtline.errors import ThoughtlineError, TurnNotFound, Unreadable
from thoughtline.log.events import (
    DAMAGED,
    DAMAGED_VERSION,
    AssistantMessage,
    Event,
    Outcome,
    PermissionDecision,
    Quarantined,
    Reasoning,
    SessionForked,
    ToolCall,
    ToolResult,
    TurnEnded,
    TurnStarted,
    UserMessage,
    draft,
)
from thoughtline.log.parts import (
    UNREADABLE_THOUGHT,
    Call,
    Carrier,
    Decision,
    Origin,
    Result,
    Text,
    Thought,
)
from thoughtline.log.sessions import Session
from thoughtline.log.usage import Usage

TARGET = Origin(provider="deepseek")


def event(body, seq, *, session="s", id="", parent="", at=0.0):
    made = draft(body, id=id or f"e{seq}", parent=parent, at=at)
    return Event(session=session, seq=seq, **msgspec.structs.asdict(made))


def log(*facts, session="s"):
    """Events from (body, parent) or (body, parent, id)."""
    return [
        event(body, seq, session=session, parent=parent, id=id[0] if id else "", at=float(seq))
        for seq, (body, parent, *id) in enumerate(facts)
    ]


def start(id, parent=""):
    return (TurnStarted(target=TARGET), parent, id)


def thought(text):
    return Thought(carrier=Carrier.REASONING_CONTENT, raw=f'"{text}"', text=text)


def say(text):
    return AssistantMessage(parts=(Text(text=text),))


# --- folding -----------------------------------------------------------------------------------


def test_a_turn_is_folded_from_its_events():
    facts = log(
        start("t1"),
        (UserMessage(parts=(Text(text="hello"),)), "t1"),
        (ToolResult(result=Result(content="r")), "t1"),
        (PermissionDecision(decision=Decision(call="c", verdict="allow")), "t1"),
        (Reasoning(thought=thought("a")), "t1"),
        (ToolCall(call=Call(name="f", arguments="{}")), "t1"),
        (Reasoning(thought=thought("b")), "t1"),
        (say("done"), "t1"),
        (TurnEnded(outcome=Outcome.CAPPED, usage=Usage(input=3), response="r1"), "t1"),
        (Quarantined(turn="t1", thoughts=(1,)), ""),
    )
    turn = Session("s").extend(facts).turn("t1")
    assert turn.input == (
        Text(text="hello"),
        Result(content="r"),
        Decision(call="c", verdict="allow"),
    )
    assert turn.output == (
        thought("a"),
        Call(name="f", arguments="{}"),
        thought("b"),
        Text(text="done"),
    )
    assert (turn.outcome, turn.usage, turn.response) == (Outcome.CAPPED, Usage(input=3), "r1")
    assert (turn.started, turn.ended, turn.target, turn.session) == (0.0, 8.0, TARGET, "s")
    assert turn.quarantined == {1}


def test_a_turn_without_an_end_is_still_running():
    turn = Session("s").extend(log(start("t1"), (say("half"), "t1"))).turn("t1")
    assert turn.outcome is None


def test_quarantine_of_all_thoughts_covers_those_that_come_later():
    session = Session("s").extend(log(start("t1"), (Reasoning(thought=thought("a")), "t1")))
    session.apply(event(Quarantined(turn="t1"), 2))
    assert session.turn("t1").quarantined == {0}
    session.apply(event(Reasoning(thought=thought("b")), 3, parent="t1"))
    assert session.turn("t1").quarantined == {0, 1}
    session.apply(event(Quarantined(turn="t1", thoughts=(5,)), 4))
    assert session.turn("t1").quarantined == {0, 1, 5}


def test_a_gap_is_an_error_that_says_what_to_do():
    session = Session("s")
    with pytest.raises(ThoughtlineError, match="expected event 0, got 1; read the session again"):
        session.apply(event(TurnStarted(), 1))
    session.apply(event(TurnStarted(), 0))
    with pytest.raises(ThoughtlineError, match="expected event 1, got 0"):
        session.apply(event(TurnStarted(), 0))


def damaged(made):
    return msgspec.structs.replace(made, data="{")


def test_a_damaged_event_does_not_hide_the_others():
    session = Session("s").extend(log(start("t1"), (say("a"), "t1"), start("t2", "t1")))
    session.apply(damaged(event(say("x"), 3, parent="t2")))
    session.apply(event(say("y"), 4, parent="t2"))
    assert session.turn("t2").output == (Text(text="y"),)
    assert (session.skipped, session.damaged) == (1, 1)
    assert [turn.id for turn in session.whole_turns] == ["t1"]
    assert [turn.id for turn in session.path("t1")] == ["t1"]
    with pytest.raises(Unreadable, match="a part of turn 't2' cannot be read"):
        session.path("t2")


def test_a_damaged_event_of_an_unknown_turn_belongs_to_the_last_one():
    session = Session("s").extend(log(start("t1"), (say("a"), "t1"), start("t2", "t1")))
    session.apply(Event("s", 3, "", "", 0.0, DAMAGED, DAMAGED_VERSION, ""))
    assert [turn.id for turn in session.whole_turns] == ["t1"]


def test_a_turn_whose_start_is_damaged_is_not_there():
    facts = log(start("t1"), (say("a"), "t1"), start("t2", "t1"), start("t3", "t2"))
    facts[2] = damaged(facts[2])
    session = Session("s").extend(facts)
    assert [turn.id for turn in session.whole_turns] == ["t1", "t3"]
    with pytest.raises(TurnNotFound):
        session.path("t3")


@pytest.mark.parametrize("change", [{"data": "{"}, {"version": 99, "data": "{}"}])
def test_a_thought_that_cannot_be_read_keeps_its_place(change):
    facts = log(start("t1"), *[(Reasoning(thought=thought(n)), "t1") for n in "abc"])
    facts[2] = msgspec.structs.replace(facts[2], **change)
    session = Session("s").extend(facts)
    assert session.turn("t1").thoughts == (thought("a"), UNREADABLE_THOUGHT, thought("c"))
    assert session.path("t1") == session.turns


def test_a_turn_starts_once():
    session = Session("s").extend(log(start("t1"), (say("a"), "t1"), start("t1"), (say("b"), "t1")))
    assert session.turn("t1").output == (Text(text="a"), Text(text="b"))
    assert session.children("") == ["t1"]
    assert session.skipped == 1


# --- laws --------------------------------------------------------------------------------------

TURNS = st.sampled_from(["t0", "t1", "t2", "t3", "t4", "t5"])
POSITIONS = st.lists(st.integers(0, 3), max_size=2).map(tuple)
FACTS = st.one_of(
    st.tuples(st.just("start"), TURNS, TURNS | st.just("")),
    st.tuples(
        st.one_of(
            st.builds(UserMessage, parts=st.tuples(st.builds(Text, text=st.text(max_size=3)))),
            st.builds(ToolResult, result=st.builds(Result, content=st.text(max_size=3))),
            st.builds(Reasoning, thought=st.text("abc", max_size=3).map(thought)),
            st.builds(say, st.text(max_size=3)),
            st.builds(
                ToolCall, call=st.builds(Call, name=st.text(max_size=2), arguments=st.just(""))
            ),
            st.builds(TurnEnded, outcome=st.sampled_from(Outcome)),
        ),
        TURNS,
    ),
    st.tuples(st.builds(Quarantined, turn=TURNS, thoughts=POSITIONS), TURNS),
    st.tuples(st.builds(SessionForked, session=st.just("other"), turn=TURNS), st.just("")),
    st.tuples(st.sampled_from(["unknown", "newer"]), TURNS),
)


def numbered(facts):
    made = []
    for seq, fact in enumerate(facts):
        if fact[0] == "start":
            made.append(event(TurnStarted(target=TARGET), seq, id=fact[1], parent=fact[2]))
        elif fact[0] == "unknown":
            base = event(say(""), seq, parent=fact[1])
            made.append(msgspec.structs.replace(base, type="dreamt", data='{"of": "sheep"}'))
        elif fact[0] == "newer":
            base = event(say(""), seq, parent=fact[1])
            made.append(msgspec.structs.replace(base, version=9, data='{"parts": 1}'))
        else:
            made.append(event(fact[0], seq, parent=fact[1]))
    return made


LOGS = st.lists(FACTS, max_size=40).map(numbered)


def seen(session):
    """Everything that can be seen of a session."""
    return (
        session.seq,
        session.origin,
        session.skipped,
        session.turns,
        session.heads,
        session.branches,
        {turn.id: session.children(turn.id) for turn in session.turns},
        session.children(""),
        session.quarantined,
    )


@given(LOGS, st.data())
def test_folding_a_prefix_and_then_the_rest_is_folding_all(events, data):
    cuts = sorted(data.draw(st.lists(st.integers(0, len(events)), max_size=3)))
    session = Session("s")
    for begin, end in zip([0, *cuts], [*cuts, len(events)], strict=True):
        session.extend(events[begin:end])
        seen(session)  # looking at it changes nothing
    assert seen(session) == seen(Session("s").extend(events))


@given(LOGS)
def test_folding_is_what_a_simple_reader_would_make_of_it(events):
    session = Session("s").extend(events)
    started, skipped = {}, 0
    for e in events:
        body = e.body()
        if isinstance(body, TurnStarted) and e.id not in started:
            started[e.id] = e
        elif not isinstance(body, Quarantined | SessionForked) and (
            body is None or isinstance(body, TurnStarted) or e.parent not in started
        ):
            skipped += 1
    assert [turn.id for turn in session.turns] == list(started)
    assert session.skipped == skipped
    for turn in session.turns:
        own = [
            e.body()
            for e in events[started[turn.id].seq :]
            if e.parent == turn.id and e.body() is not None and e.type != "turn_started"
        ]
        thoughts = [body.thought for body in own if isinstance(body, Reasoning)]
        barred = [
            b
            for e in events[started[turn.id].seq :]
            if isinstance(b := e.body(), Quarantined) and b.turn == turn.id
        ]
        assert [*turn.thoughts] == thoughts
        assert [p for p in turn.output if isinstance(p, Call)] == [
            b.call for b in own if isinstance(b, ToolCall)
        ]
        assert len(turn.input) == sum(isinstance(b, UserMessage | ToolResult) for b in own)
        ends = [b.outcome for b in own if isinstance(b, TurnEnded)]
        assert turn.outcome is (ends[-1] if ends else None)
        named = {n for q in barred for n in q.thoughts}
        everything = set(range(len(thoughts))) if any(not q.thoughts for q in barred) else set()
        assert turn.quarantined == named | everything
        assert turn.id in session.children(turn.parent)
        assert (turn.id in session.heads) == (not session.children(turn.id))


@given(LOGS)
def test_a_path_ends_or_says_why_not(events):
    """Parents may be missing, forked away or even go round in circles: never a hang."""
    session = Session("s").extend(events)
    for turn in session.turns:
        try:
            path = session.path(turn.id, lambda id: session)
        except ThoughtlineError as error:
            assert "turn" in str(error)
        else:
            assert path[-1].id == turn.id
            assert path[0].parent == ""
            assert [t.id for t in path[:-1]] == [t.parent for t in path[1:]]


# --- the tree ----------------------------------------------------------------------------------


def test_branches_heads_and_children():
    session = Session("s").extend(
        log(start("a"), start("b", "a"), start("c", "b"), start("d", "b"), start("e", "d"))
    )
    assert session.heads == ["c", "e"]
    assert session.branches == ["b"]
    assert session.children("b") == ["c", "d"]
    assert session.children("e") == []
    assert [turn.id for turn in session.path("e")] == ["a", "b", "d", "e"]
    assert session.path("") == []


def test_an_unknown_turn_is_an_error():
    session = Session("s").extend(log(start("a"), start("b", "lost")))
    for read in (session.turn, session.path):
        with pytest.raises(ThoughtlineError, match="'s' has no turn 'z'"):
            read("z")
    with pytest.raises(ThoughtlineError, match="has no turn 'lost'"):
        session.path("b")


def forked(id, parent, turn, *turns):
    facts = [(SessionForked(session=parent, turn=turn), "")]
    before = turn
    for name in turns:
        facts.append(start(name, before))
        before = name
    return Session(id).extend(log(*facts, session=id))


@pytest.fixture
def family():
    """s0: a b c; s1 goes on from b: d e; s2 from e: f; s3 from a, as s2 sees it: g."""
    return {
        "s0": Session("s0").extend(log(start("a"), start("b", "a"), start("c", "b"), session="s0")),
        "s1": forked("s1", "s0", "b", "d", "e"),
        "s2": forked("s2", "s1", "e", "f"),
        "s3": forked("s3", "s2", "a", "g"),
    }


@pytest.mark.parametrize(
    ("session", "turn", "path"),
    [
        ("s0", "c", "abc"),
        ("s1", "e", "abde"),
        ("s2", "f", "abdef"),
        ("s2", "d", "abd"),
        ("s2", "b", "ab"),
        ("s3", "g", "ag"),
        ("s1", "c", "abc"),
    ],
)
def test_a_fork_refers_and_copies_nothing(family, session, turn, path):
    asked = []
    found = family[session].path(turn, lambda id: asked.append(id) or family[id])
    assert "".join(t.id for t in found) == path
    assert [t.session for t in found] == sorted(t.session for t in found)
    assert len(asked) <= 3


def test_without_a_look_up_a_path_ends_at_the_fork(family):
    with pytest.raises(ThoughtlineError, match="'s1' has no turn 'b'"):
        family["s1"].path("e")


def test_sessions_that_refer_to_each_other_are_an_error_and_not_a_hang():
    sessions = {"x": forked("x", "y", "lost", "a"), "y": forked("y", "x", "lost", "b")}
    with pytest.raises(ThoughtlineError, match="its own ancestor"):
        sessions["x"].path("a", sessions.get)
    with pytest.raises(ThoughtlineError, match="its own ancestor"):
        Session("s").extend(log(start("a", "b"), start("b", "a"))).path("a")


def test_a_thought_that_a_fork_saw_refused_stays_out_of_the_forks_path():
    old = Session("old").extend(
        log(start("a"), *[(Reasoning(thought=thought(t)), "a") for t in "xyz"], session="old")
    )
    new = forked("new", "old", "a", "b")
    new.apply(event(Quarantined(turn="a", thoughts=(1,)), 2, session="new"))
    last = forked("last", "new", "b", "c")
    last.apply(event(Quarantined(turn="a", thoughts=(2,)), 2, session="last"))
    sessions = {"old": old, "new": new}
    assert new.path("b", sessions.get)[0].quarantined == {1}
    assert last.path("c", sessions.get)[0].quarantined == {1, 2}
    assert old.path("a")[0].quarantined == set()


def test_one_more_turn_costs_the_same_whatever_came_before():
    def session(events):
        facts = []
        for n in range(events // 5):
            facts += [
                start(f"t{n}", f"t{n - 1}" if n else ""),
                (UserMessage(parts=(Text(text="q"),)), f"t{n}"),
                (Reasoning(thought=thought("r")), f"t{n}"),
                (say("a"), f"t{n}"),
                (TurnEnded(outcome=Outcome.COMPLETED), f"t{n}"),
            ]
        return Session("s").extend(log(*facts))

    def calls(session):
        seq = session.seq
        more = [
            event(TurnStarted(), seq + 1, id="new", parent="t0"),
            event(say("a"), seq + 2, parent="new"),
            event(Reasoning(thought=thought("r")), seq + 3, parent="new"),
            event(TurnEnded(outcome=Outcome.COMPLETED), seq + 4, parent="new"),
        ]
        count = 0

        def step(frame, kind, argument):
            nonlocal count
            count += 1

        sys.setprofile(step)
        try:
            session.extend(more)
            session.turn("new")
        finally:
            sys.setprofile(None)
        return count

    assert calls(session(100)) == calls(session(10_000))
