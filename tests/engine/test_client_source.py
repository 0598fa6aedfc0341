"""A client's own request: which turns are looked up, and what a store that is down means."""

import asyncio
from types import SimpleNamespace

from msgspec.structs import replace

from thoughtline.clock import SystemClock
from thoughtline.dialects import DIALECTS
from thoughtline.engine.client_source import ClientSource
from thoughtline.errors import Unavailable
from thoughtline.log.index import IndexEntry, index_entry
from thoughtline.log.keys import reference_key
from thoughtline.log.parts import Origin, Text
from thoughtline.log.turns import Turn
from thoughtline.replay.match import request_path

KEYS = [reference_key("item", name) for name in ("a", "b")]
PATH = SimpleNamespace(lookup_keys=lambda: KEYS, keys=())


class Found:
    trouble = ""

    def epoch(self):
        return None

    def __init__(self, found):
        self.found = found

    async def find(self, tenant, keys):
        assert (tenant, keys) == ("tenant", KEYS)
        if isinstance(self.found, Exception):
            raise self.found
        return self.found


async def look_up(store, known_turns=()):
    source = ClientSource(store, "tenant", SystemClock(), DIALECTS["chat"])
    return await source.look_up(PATH, known_turns)


def entry(turn):
    return IndexEntry(session="s", turn=turn)


async def test_everything_is_asked_for_in_one_batch():
    found = {KEYS[0]: [entry("t1"), entry("t2")]}
    assert await look_up(Found(found)) == (found, "")


async def test_where_a_turn_is_known_to_be_meant_no_other_is():
    found = {KEYS[0]: [entry("t1"), entry("t2")], KEYS[1]: [entry("t3")]}
    narrow, error = await look_up(Found(found), {"t2"})
    assert error == ""
    assert narrow == {KEYS[0]: [entry("t2")], KEYS[1]: [entry("t3")]}


async def test_a_store_that_is_down_finds_nothing_and_says_why():
    assert await look_up(Found(Unavailable("locked"))) == ({}, "locked")


async def test_what_is_not_found_while_the_store_is_in_trouble_may_be_there_all_the_same():
    path = SimpleNamespace(
        lookup_keys=lambda: KEYS, keys=(SimpleNamespace(full=KEYS[1]),), turns=(Turn(),)
    )
    store = Found({KEYS[0]: [entry("t1")]})
    source = ClientSource(store, "tenant", SystemClock(), DIALECTS["chat"])
    assert (await source.look_up(path, ()))[1] == ""
    store.trouble = "it is catching up"
    assert (await source.look_up(path, ()))[1] == "it is catching up"


class Continued(Found):
    asked = ()

    async def continued(self, tenant, turns):
        self.asked = (*self.asked, (tenant, turns))
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


def two_runs():
    """A path, and what is found for it: two conversations that look alike so far."""
    turns = [Turn(input=(Text(text="a"),), output=(Text(text="b"),)), Turn(input=(Text(text="c"),))]
    path = request_path(turns)
    entries = [
        replace(index_entry(replace(turns[0], id=id), path.keys[0]), origin=Origin(model=id))
        for id in ("t1", "t2")
    ]
    store = Continued(dict.fromkeys(path.lookup_keys(), entries))
    return path, store, path.keys[0].full


async def ask(path, store):
    store.find = lambda tenant, keys: asyncio.sleep(0, store.found)
    source = ClientSource(store, "tenant", SystemClock(), DIALECTS["chat"])
    return await source.look_up(path, ())


async def test_a_tie_is_one_more_question_for_all_of_it():
    path, store, key = two_runs()
    store.answer = {"t1": 2}
    found, error = await ask(path, store)
    assert store.asked == (("tenant", ["t1", "t2"]),)
    assert [entry.continued for entry in found[key]] == [2, 0]
    assert error == ""


async def test_a_store_that_cannot_say_leaves_the_tie():
    path, store, key = two_runs()
    store.answer = Unavailable("locked")
    found, error = await ask(path, store)
    assert [entry.continued for entry in found[key]] == [None, None]
    assert error == ""


async def test_without_a_tie_nothing_more_is_asked():
    path, store, key = two_runs()
    store.found = {name: entries[:1] for name, entries in store.found.items()}
    found, _ = await ask(path, store)
    assert (store.asked, len(found[key])) == ((), 1)
