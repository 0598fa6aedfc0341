"""Counting what is stored."""

from stores.samples import turn


async def test_counts_of_one_tenant_and_of_all(store):
    await store.append(turn("s", "t1", '"one"', tenant="A"))
    await store.append(turn("z", "t2", '"two"', tenant="B"))
    assert (await store.stats()).entries == 2
    assert (await store.stats(tenant="A")).chars == 5
    assert (await store.stats(tenant="A", sessions=False)).sessions == 0
