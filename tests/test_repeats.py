"""Rulings that repeat those of the turn before are not written again, and none is lost."""

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rooms import Client, Rooms, SimWire
from thoughtline import repeats
from thoughtline.events import Draft, Event, draft
from thoughtline.inspector.outlines import Outline
from thoughtline.parts import Origin
from thoughtline.replay import Action, Restoration, Ruling
from thoughtline.sessions import Session
from thoughtline.stores.urls import open_store
from thoughtline.testing import simulator

TURNS = 24
rulings = st.builds(
    Ruling,
    turn=st.integers(0, 3),
    action=st.sampled_from(Action),
    reason=st.sampled_from(["", "unknown"]),
    memory=st.sampled_from(["", "t0", "t1"]),
    thoughts=st.integers(0, 2),
)


@st.composite
def sessions(draw):
    """Turns with their rulings: each goes on from any earlier one, and often rules as it did."""
    made = []
    for number in range(draw(st.integers(1, 8))):
        parent = draw(st.integers(-1, number - 1))
        before = made[parent][1] if parent >= 0 else ()
        kept = before[: draw(st.integers(0, len(before)))] if draw(st.booleans()) else before
        made.append((parent, (*kept, *draw(st.lists(rulings, max_size=3)))))
    return made


def written(made, count):
    """The log of these turns, with the rule that `count` says how much repeats."""
    events, seen = [], []
    for number, (parent, decided) in enumerate(made):
        before = seen[parent] if parent >= 0 else ()
        start = repeats.started(Origin(), Restoration(rulings=decided), count(decided, before))
        made_draft: Draft = draft(start, id=f"t{number}", parent=f"t{parent}" * (parent >= 0), at=0)
        facts = msgspec.structs.asdict(made_draft)
        events.append(Event(session="s", seq=number, **facts))
        seen.append(decided)
    return events


@pytest.mark.parametrize(
    "count",
    [
        lambda decided, before: repeats.marked(decided, repeats.mark(before)),
        lambda decided, before: repeats.alike(decided, msgspec.to_builtins(before)),
    ],
    ids=["by mark", "one by one"],
)
@given(sessions())
def test_every_ruling_is_read_back(count, made):
    events = written(made, count)
    session, outline = Session("s").extend(events), Outline("s")
    for event in events:
        outline.apply(event)
    for number, (_, decided) in enumerate(made):
        wanted = msgspec.to_builtins(decided)
        assert list(session.turn(f"t{number}").replay) == list(wanted)
        told = outline.rulings(f"t{number}")
        assert [(one.turn, one.action, one.memory) for one in told] == [
            (one.turn, one.action, one.memory) for one in decided
        ]
        counts = outline.lines[f"t{number}"].counts
        assert counts.restored == sum(one.action is Action.RESTORED for one in decided)
        assert counts.missed == Restoration(rulings=decided).missed


@given(sessions(), st.data())
def test_a_turn_that_is_missing_takes_only_its_own_rulings_along(made, data):
    """A store was down for a while: what went on from a lost turn repeats what is not there."""
    gone = data.draw(st.sets(st.integers(0, len(made) - 1)))
    whole = written(
        made, lambda decided, before: repeats.alike(decided, msgspec.to_builtins(before))
    )
    kept = [event for event in whole if int(event.id[1:]) not in gone]
    events = [msgspec.structs.replace(event, seq=seq) for seq, event in enumerate(kept)]
    session, outline = Session("s").extend(events), Outline("s")
    for event in events:
        outline.apply(event)
    for event in events:
        wanted = list(msgspec.to_builtins(made[int(event.id[1:])][1]))
        told = list(session.turn(event.id).replay)
        assert told == wanted[len(wanted) - len(told) :]
        assert len(outline.rulings(event.id)) == len(told)


@pytest.mark.timeout(20)
@pytest.mark.parametrize(("first", "second"), [("t0", "t0"), ("t1", "t0")], ids=["own", "each"])
def test_a_turn_that_goes_on_from_a_later_one_has_an_end(first, second):
    """No log of ours says so, but anybody can import one."""
    events, outline = [], Outline("s")
    parents = (first, second, "t1")
    for number, parent in enumerate(parents):
        start = repeats.started(
            Origin(), Restoration(rulings=(Ruling(turn=0, action=Action.EXACT),)), 0
        )
        start = msgspec.structs.replace(start, repeated=1)
        facts = msgspec.structs.asdict(draft(start, id=f"t{number}", parent=parent, at=0))
        events.append(Event(session="s", seq=number, **facts))
        outline.apply(events[-1])
    session = Session("s").extend(events)
    for number in range(len(parents)):
        assert len(outline.rulings(f"t{number}")) == len(session.turn(f"t{number}").replay)


@pytest.mark.parametrize("name", ["deepseek", "claude", "openai", "gemini"])
async def test_a_long_conversation_is_logged_in_proportion_to_its_length(name, tmp_path):
    sim = simulator(name)
    policy = {"claude": "anthropic"}.get(name, name)
    store = open_store(f"sqlite:///{tmp_path}/t.db")
    rooms = Rooms(SimWire(sim), policy, store=store)
    client = Client(rooms, sim.dialect, sim.models()[0], keep=False)
    for _ in range(TURNS):
        answer = await client.say(*client.next())
        assert answer.status == 200, answer.body
    found = await store.sessions()
    events = await store.read(found[0].session)
    starts = [json.loads(event.data) for event in events if event.type == "turn_started"]
    turns = Session(found[0].session).extend(events).turns
    await store.close()
    assert len(starts) == TURNS
    assert max(len(start.get("replay", ())) for start in starts) <= 2
    assert len(turns[-1].replay) == len(sim.requests) - 1
    assert sum(len(turn.replay) for turn in turns) > 10 * TURNS
