"""An outline has the tree, the counts and the title of a session, and nothing of what was said."""

import asyncio
import random
from collections import Counter

import pytest
from msgspec.structs import replace

from inspector.sample_sessions import Session, fill
from support.built_gateway import BuiltGateway
from thoughtline.inspector import outline as outline_module
from thoughtline.inspector.outline import SessionOutline
from thoughtline.log import sessions
from thoughtline.log.decisions import Action, ReplayDecision
from thoughtline.log.events import Event, TurnStarted, draft
from thoughtline.log.parts import Result
from thoughtline.stores.memory import MemoryStore


def outlined(events):
    outline = SessionOutline("s")
    for event in events:
        outline.apply(event)
    return outline


async def test_it_has_the_tree_of_the_session():
    store = MemoryStore()
    await fill(store)
    found = await store.sessions()
    assert len(found) > 5
    for one in found:
        events = await store.read(one.session)
        outline, session = outlined(events), sessions.Session(one.session).extend(events)
        assert (outline.heads, outline.branch_points) == (session.heads, session.branch_points)
        assert (outline.seq, outline.origin) == (session.seq, session.origin)
        assert list(outline.turns) == [turn.id for turn in session.turns]
        assert [turn.outcome for turn in outline.turns.values()] == [
            turn.outcome for turn in session.turns
        ]
        assert outline.thoughts == sum(len(turn.thoughts) for turn in session.turns)


async def test_damaged_events_do_not_hide_the_others():
    store = MemoryStore()
    await Session(store, "s").turn("Hello", "Hi")
    first, *rest = await store.read("s")
    outline = outlined([replace(first, data='{"replay": 7}'), *rest])
    assert (list(outline.turns), outline.title, outline.status) == (
        [first.id],
        "Hello",
        "completed",
    )


def test_a_session_without_a_question_is_called_by_what_was_answered():
    async def told(store):
        session = Session(store, "s")
        await session.turn([Result(content="ok", call="c")], "It is mended.")
        await session.turn([Result(content="ok", call="d")], "All of it.")
        await Session(store, "t").turn([Result(content="ok", call="c")], "So?")
        await Session(store, "t").turn("Thanks!", "You are welcome.", id="t-2")

    store = MemoryStore()
    asyncio.run(told(store))
    with BuiltGateway(store=store).client() as client:
        listed = client.get("/api/sessions").json()["sessions"]
    assert {one["id"]: one["title"] for one in listed} == {"s": "It is mended.", "t": "Thanks!"}


# -- how often thoughts went back ----------------------------------------------------------------


def _tree(chance, count):
    """Events of a session with branches, whose turns repeat decisions of the turns before them."""
    decided, events = {"": []}, []
    for number in range(count):
        parent = chance.choice(list(decided)[-3:])
        before = decided[parent]
        repeated = chance.randint(max(0, len(before) - 2), len(before))
        own = tuple(
            ReplayDecision(
                turn=repeated + n,
                action=chance.choice([Action.RESTORED, Action.DROPPED]),
                entry=chance.choice(list(decided)),
                thoughts=1,
            )
            for n in range(chance.randint(0, 3))
        )
        id = f"t{number}"
        decided[id] = [*before[:repeated], *own]
        body = TurnStarted(replay=own, repeated=repeated, tally={"restored": 1})
        events.append((id, parent, body))
    return decided, events


@pytest.mark.parametrize("seed", range(30))
def test_replayed_counts_the_requests_that_carried_a_thought(seed):
    decided, events = _tree(random.Random(seed), 40)
    outline = SessionOutline("s")
    for seq, (id, parent, body) in enumerate(events):
        made = draft(body, id=id, parent=parent, at=1.0)
        names = ("id", "parent", "at", "type", "version", "data")
        given = {name: getattr(made, name) for name in names}
        outline.apply(Event(session="s", seq=seq, **given))
        if seq % 7 == 0:
            assert outline.replayed is outline.replayed  # counted once, until a turn is added
    expected = Counter()
    for id in decided:
        if id:
            expected.update({one.entry for one in decided[id] if one.entry and one.carried})
            assert list(outline.decisions(id)) == decided[id]
    assert outline.replayed == expected


def test_a_long_session_costs_as_much_as_its_turns(monkeypatch):
    """Each request repeats what the one before carried; that is not gone through again."""
    added = 0
    add = outline_module._CarriedEntries._add

    def counting(self, entry):
        nonlocal added
        added += 1
        add(self, entry)

    monkeypatch.setattr(outline_module._CarriedEntries, "_add", counting)
    outline = SessionOutline("s")
    for number in range(500):
        entry = f"t{number - 1}"
        own = ReplayDecision(turn=number, action=Action.RESTORED, entry=entry, thoughts=1)
        body = TurnStarted(
            replay=(own,) if number else (),
            repeated=max(number - 1, 0),
            tally={"restored": number},
        )
        made = draft(body, id=f"t{number}", parent=f"t{number - 1}" if number else "", at=1.0)
        names = ("id", "parent", "at", "type", "version", "data")
        outline.apply(Event(session="s", seq=number, **{n: getattr(made, n) for n in names}))
    assert outline.replayed["t0"] == 499
    assert added < 3 * 500
