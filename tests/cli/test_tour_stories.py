"""The tour: conversations worth opening, held through a real gateway with strict models."""

import asyncio
import time

import pytest

from thoughtline.cli.tour import TENANT, tour
from thoughtline.cli.tour_stories import BRANCH, DROPPED, HEALED, PUT_BACK, STORIES
from thoughtline.gateway.settings import load
from thoughtline.log.decisions import Action
from thoughtline.log.durations import total_seconds
from thoughtline.log.sessions import Session
from thoughtline.stores import open_store


@pytest.fixture(scope="module")
def settings(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tour")
    return load({"store_url": f"sqlite:///{folder}/tour.db"}, {"HOME": str(folder)}, folder)


@pytest.fixture(scope="module")
def left(settings):
    """What each story left in the store: its session, and the events of it."""
    return asyncio.run(left_in(settings))


async def left_in(settings):
    visited = await tour(settings)
    store = open_store(settings.store.url)
    events = [await store.read(one.session) for one in visited]
    await store.close()
    folded = [
        (Session(one.session).extend(told), told) for one, told in zip(visited, events, strict=True)
    ]
    return dict(zip([one.shows for one in visited], folded, strict=True))


def test_thoughts_are_put_back_and_took_some_seconds(left):
    session, _ = left[PUT_BACK.shows]
    replayed = [[one.action for one in turn.replay] for turn in session.turns]
    assert replayed == [[Action.RESTORED] * number for number in range(5)]
    assert all(2 <= total_seconds(turn) <= 7 for turn in session.turns)


def test_the_thoughts_of_another_provider_stay_behind_with_a_reason(left):
    session, _ = left[DROPPED.shows]
    first, second, third = session.turns
    assert first.replay == ()
    assert [(one.action, one.reason) for one in second.replay] == [
        (Action.DROPPED, "foreign provider")
    ]
    assert [one.action for one in third.replay] == [Action.RESTORED, Action.PLACEHOLDER]


def test_an_edited_question_is_a_branch(left):
    session, _ = left[BRANCH.shows]
    assert session.branches == [session.turns[0].id]
    assert [len(session.path(head)) for head in session.heads] == [2, 2]


def test_a_refusal_is_healed(left):
    session, events = left[HEALED.shows]
    assert [event.type for event in events].count("quarantined") == 2
    assert [turn.outcome for turn in session.turns] == ["completed"] * 3
    assert session.turns[2].thoughts


async def test_another_tour_takes_the_place_of_the_last_one(settings, left):
    await tour(settings)
    store = open_store(settings.store.url)
    listed = await store.sessions(tenant=TENANT)
    others = await store.sessions()
    await store.close()
    assert len(listed) == len(others) == len(STORIES)
    assert not {one.session for one in listed} & {session.id for session, _ in left.values()}
    assert all(one.touched <= time.time() for one in listed)
