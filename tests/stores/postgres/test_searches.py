"""Searching sessions, page by page."""

from stores.samples import notes
from thoughtline.stores.base import SessionQuery
from thoughtline.stores.postgres import searches


async def test_a_search_goes_over_many_pages(store, clock, monkeypatch):
    monkeypatch.setattr(searches, "PAGE", 3)
    for n in range(10):
        clock.now += n % 3 == 0
        await store.append(notes(f"s{n}"))
    whole = await store.search(limit=50)
    assert len(whole.sessions) == 10 and whole.after is None
    assert (await store.search(SessionQuery(status="running"), limit=5)).sessions == []
