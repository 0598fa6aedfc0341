"""Decisions that repeat those of the turn before are not written again, and none is lost."""

import json
import re
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from support.gateway import InProcessGateway, SimWire, TurnClient
from support.telemetry import RULINGS
from thoughtline.engine.capture import started_turn
from thoughtline.inspector.outline import SessionOutline
from thoughtline.log.decisions import (
    CLIENTS_OWN,
    HEADER_ORDER,
    TIED,
    Action,
    MatchLevel,
    ReplayDecision,
    ReplayWord,
    alike,
    count_kinds,
    count_words,
    mark,
    repeated,
    tally,
    word_counts,
)
from thoughtline.log.events import Draft, Event, draft
from thoughtline.log.parts import Origin
from thoughtline.log.sessions import Session
from thoughtline.replay.plan import ReplayPlan
from thoughtline.stores import open_store
from thoughtline.testing import simulator

TURNS = 24
decisions = st.builds(
    ReplayDecision,
    turn=st.integers(0, 3),
    action=st.sampled_from(Action),
    reason=st.sampled_from(["", "unknown"]),
    entry=st.sampled_from(["", "t0", "t1"]),
    thoughts=st.integers(0, 2),
)


@st.composite
def sessions(draw):
    """Turns with their decisions: each goes on from any earlier one, and often decides as it did."""
    made = []
    for number in range(draw(st.integers(1, 8))):
        parent = draw(st.integers(-1, number - 1))
        before = made[parent][1] if parent >= 0 else ()
        kept = before[: draw(st.integers(0, len(before)))] if draw(st.booleans()) else before
        made.append((parent, (*kept, *draw(st.lists(decisions, max_size=3)))))
    return made


def written(made, count):
    """The log of these turns, with the rule that `count` says how much repeats."""
    events, seen = [], []
    for number, (parent, decided) in enumerate(made):
        before = seen[parent] if parent >= 0 else ()
        start = started_turn(Origin(), ReplayPlan(decisions=decided), count(decided, before))
        made_draft: Draft = draft(start, id=f"t{number}", parent=f"t{parent}" * (parent >= 0), at=0)
        facts = msgspec.structs.asdict(made_draft)
        events.append(Event(session="s", seq=number, **facts))
        seen.append(decided)
    return events


@pytest.mark.parametrize(
    "count",
    [
        lambda decided, before: repeated(decided, mark(before)),
        alike,
    ],
    ids=["by mark", "one by one"],
)
@given(sessions())
def test_every_decision_is_read_back(count, made):
    events = written(made, count)
    session, outline = Session("s").extend(events), SessionOutline("s")
    for event in events:
        outline.apply(event)
    for number, (_, decided) in enumerate(made):
        assert session.turn(f"t{number}").replay == decided
        told = outline.decisions(f"t{number}")
        assert [(one.turn, one.action, one.entry) for one in told] == [
            (one.turn, one.action, one.entry) for one in decided
        ]
        counts = outline.turns[f"t{number}"].counts
        assert counts.restored == sum(one.action is Action.RESTORED for one in decided)
        assert counts.missed == sum(one.missed for one in decided)


@given(sessions(), st.data())
def test_a_turn_that_is_missing_takes_only_its_own_decisions_along(made, data):
    """A store was down for a while: what went on from a lost turn repeats what is not there."""
    gone = data.draw(st.sets(st.integers(0, len(made) - 1)))
    whole = written(made, alike)
    kept = [event for event in whole if int(event.id[1:]) not in gone]
    events = [msgspec.structs.replace(event, seq=seq) for seq, event in enumerate(kept)]
    session, outline = Session("s").extend(events), SessionOutline("s")
    for event in events:
        outline.apply(event)
    for event in events:
        wanted = list(made[int(event.id[1:])][1])
        told = list(session.turn(event.id).replay)
        assert told == wanted[len(wanted) - len(told) :]
        assert len(outline.decisions(event.id)) == len(told)


@pytest.mark.parametrize(("first", "second"), [("t0", "t0"), ("t1", "t0")], ids=["own", "each"])
def test_a_turn_that_goes_on_from_a_later_one_has_an_end(first, second):
    """No log of ours says so, but anybody can import one."""
    events, outline = [], SessionOutline("s")
    parents = (first, second, "t1")
    for number, parent in enumerate(parents):
        start = started_turn(
            Origin(), ReplayPlan(decisions=(ReplayDecision(turn=0, action=Action.EXACT),)), 0
        )
        start = msgspec.structs.replace(start, repeated=1)
        facts = msgspec.structs.asdict(draft(start, id=f"t{number}", parent=parent, at=0))
        events.append(Event(session="s", seq=number, **facts))
        outline.apply(events[-1])
    session = Session("s").extend(events)
    for number in range(len(parents)):
        assert len(outline.decisions(f"t{number}")) == len(session.turn(f"t{number}").replay)


@pytest.mark.parametrize("name", ["deepseek", "claude", "openai", "gemini"])
async def test_a_long_conversation_is_logged_in_proportion_to_its_length(name, tmp_path):
    sim = simulator(name)
    policy = {"claude": "anthropic"}.get(name, name)
    store = open_store(f"sqlite:///{tmp_path}/t.db")
    gateway = InProcessGateway(SimWire(sim), policy, store=store)
    client = TurnClient(gateway, sim.dialect, sim.models()[0], keep=False)
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


def test_outputs_are_counted_by_words():
    assert count_words(RULINGS) == {
        "restored": 2,
        "missed": 1,
        "placeholder": 2,
        "dropped": 2,
        "corrected": 2,
        "exact": 1,
        "tied": 2,  # one of them with a placeholder
        "absent": 2,
    }
    assert [one.word.value for one in RULINGS if one.tied] == ["tied", "placeholder"]
    assert tally(RULINGS)["tied"] == 2
    assert sum(count_words(()).values()) == 0


def test_a_thought_that_only_the_client_vouches_for_is_missed_and_nothing_else():
    own = ReplayDecision(turn=0, action=Action.EXACT, reason=CLIENTS_OWN, thoughts=1)
    assert own.word is ReplayWord.MISSED
    assert {word: n for word, n in count_words([own]).items() if n} == {ReplayWord.MISSED: 1}
    assert tally([own]) == {"missed": 1}
    known = replace(own, level=MatchLevel.FULL, entry="t1")  # the turn is known, and had none
    assert known.word is ReplayWord.EXACT


@pytest.mark.parametrize("action", [Action.DROPPED, Action.PLACEHOLDER])
@pytest.mark.parametrize(
    ("reason", "word"),
    [
        ("refused", "missed"),
        ("unreadable there", "missed"),
        (TIED, "tied"),
        ("foreign account", ""),  # its seal is in the log
        ("forbidden", ""),  # not wanted there, so nothing is missed
        ("none", ""),
        ("thinking off", ""),
    ],
)
def test_an_output_whose_turn_is_not_found_says_so_whatever_went_out(action, reason, word):
    one = ReplayDecision(turn=0, action=action, reason=reason)
    counted = {name.value: count for name, count in count_words([one]).items() if count}
    assert counted == {action.value: 1} | ({word: 1} if word else {})
    assert tally([one]) == counted
    assert one.word.value == action.value
    found = ReplayDecision(turn=0, action=action, reason=reason, level=MatchLevel.FULL, entry="t")
    assert tally([found]) == {action.value: 1}


def test_the_reference_says_what_each_word_means():
    page = Path(__file__).parents[2] / "docs/reference/replay-header.md"
    rows = re.findall(r"^\| `(\w+)` \| (.*) \|$", page.read_text("utf-8"), re.MULTILINE)
    assert {word for word, meaning in rows if meaning} >= set(ReplayWord)


of_any_kind = st.builds(
    ReplayDecision,
    turn=st.integers(0, 3),
    action=st.sampled_from(Action),
    reason=st.sampled_from(["", "unknown", TIED, "uncorroborated", "had none", "refused"]),
    level=st.sampled_from(MatchLevel),
    entry=st.sampled_from(["", "t0", "t1"]),
)


@given(st.lists(of_any_kind), st.integers(0, 8))
def test_decisions_are_counted_by_kind_as_one_by_one(made, settled):
    """Whatever is counted before, the counts are those of each decision, added up."""
    first = count_kinds(made[:settled])
    counts = dict(zip(HEADER_ORDER, word_counts(count_kinds(made[settled:], first)), strict=True))
    acted = [one.action for one in made]
    missed, tied = ([one for one in made if getattr(one, how)] for how in ("missed", "tied"))
    lacking = [one for one in (*missed, *tied) if one.action is Action.ABSENT]
    assert counts == count_words(made)
    assert counts == {
        ReplayWord.RESTORED: acted.count(Action.RESTORED),
        ReplayWord.MISSED: len(missed),
        ReplayWord.PLACEHOLDER: acted.count(Action.PLACEHOLDER),
        ReplayWord.DROPPED: acted.count(Action.DROPPED),
        ReplayWord.CORRECTED: acted.count(Action.REPLACED),
        ReplayWord.EXACT: acted.count(Action.EXACT),
        ReplayWord.TIED: len(tied),
        ReplayWord.ABSENT: acted.count(Action.ABSENT) - len(lacking),
    }
    named = [(action.value, acted.count(action)) for action in Action]
    named += [("missed", len(missed)), ("tied", len(tied))]
    wanted = {name: count for name, count in named if count}
    told = tally(made[settled:], first)
    assert (told, [*told]) == (wanted, [*wanted])
