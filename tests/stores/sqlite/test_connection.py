"""A file with a cipher: nothing of its content is in the clear, and everything works as without."""

import pytest

from stores.samples import fork, plain, refusal, turn
from thoughtline.log.events import UserMessage, draft
from thoughtline.log.parts import Text
from thoughtline.stores.base import ALL_ENTRIES, EntryFilter, SessionQuery
from thoughtline.stores.sealing.keychain import Keychain
from thoughtline.stores.sealing.ring import KeyRing, new_key
from thoughtline.stores.sqlite import SqliteStore

A, B = b"looked up by me!", b"looked up by u !"


@pytest.fixture
async def sealed(tmp_path):
    store = SqliteStore(tmp_path / "sealed.db", keychain=Keychain(KeyRing([new_key()])))
    words = draft(UserMessage(parts=(Text(text="spoken"),)), id="w", parent="t1", at=1.0)
    drafts = (words, plain(parent="t1", data='"noted"'))
    await store.append(turn("s", "t1", '"secret"', keys=[A], calls=("called",), drafts=drafts))
    await store.append(turn("z", "t1", '"theirs"', keys=[A], calls=("called",), tenant="U"))
    await store.append(refusal("s", "t1", 0))
    await store.append(fork("fork", "s"))
    yield store
    await store.close()


async def test_nothing_is_in_the_clear(sealed, tmp_path):
    await sealed.close()
    content = (tmp_path / "sealed.db").read_bytes()
    for word in (b"secret", b"theirs", b"spoken", b"noted", b"called", A):
        assert word not in content


async def test_it_is_found_read_and_listed(sealed):
    [entry] = (await sealed.find("T", [A, B]))[A]
    assert [thought.raw for thought in entry.thoughts] == ['"secret"']
    assert entry.quarantined == {0}
    assert [event.data for event in await sealed.read("s")][4] == '"noted"'
    assert [filed.unfiled for filed in await sealed.index("s")] == [frozenset()]
    listing = await sealed.search(SessionQuery(text="SPOKEN"))
    assert [summary.session for summary in listing.sessions] == ["s"]
    called = await sealed.entries(EntryFilter(call="called"), thoughts=True)
    assert [(e.tenant, e.thoughts[0].raw) for e in called] == [
        ("U", '"theirs"'),
        ("T", '"secret"'),
    ]
    assert await sealed.count_calls("called") == {"T": 1, "U": 1}
    assert await sealed.turn_counts(seconds=60, since=0.0) == []


async def test_it_is_filed_again_forgotten_erased_and_deleted(sealed):
    [filed] = await sealed.index("s")
    await sealed.reindex("s", [filed.entry])
    assert await sealed.forget(EntryFilter(tenant="T")) == 1
    assert await sealed.erase(ALL_ENTRIES) == 2
    [entry] = (await sealed.find("T", [A]))[A]
    assert [thought.forgotten for thought in entry.thoughts] == [True]
    assert await sealed.purge(tenant="T") == 2
    assert await sealed.find("T", [A]) == {}
    assert await sealed.prune_index() == 0
