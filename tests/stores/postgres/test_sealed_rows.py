"""A sealed row opens only where it was written, and a plain one only where plain ones may be."""

import pytest
from msgspec.structs import replace

from stores.contract import A, B
from stores.sealed_samples import canaries, keychain
from thoughtline.log.events import DAMAGED


@pytest.mark.parametrize("where", ["tenant", "session", "batch"])
async def test_a_row_that_was_moved_does_not_open(nodes, db, where):
    store = nodes(keychain())
    await store.append(replace(canaries(), id="t1"))
    session, tenant = {"tenant": ("z", "U"), "session": ("z", "T"), "batch": ("s", "T")}[where]
    batch = canaries(session, "t2", key=B, tenant=tenant)
    await store.append(replace(batch, id="t2"))
    await db.execute(
        "UPDATE batches SET said = (SELECT said FROM batches WHERE id = 't1'),"
        " thoughts = (SELECT thoughts FROM batches WHERE id = 't1') WHERE id = 't2'"
    )
    other = nodes(keychain())
    for work in (other.read(session), other.find(tenant, [B])):
        if where == "tenant":  # sealed with a key that this tenant never had: as if it was deleted
            assert not await work
            continue
        await work
        assert session in other.damage


async def test_a_plain_row_beside_sealed_ones_is_refused_where_all_must_be_sealed(nodes, db):
    store = nodes(keychain(requires=True))
    await store.append(canaries())
    await store.append(canaries("s", "t2", key=B))
    assert len(await store.read("s")) == 8 and len(await store.index("s")) == 2
    await db.execute("UPDATE batches SET said = 'forged', thoughts = NULL WHERE first > 0")
    await db.execute("UPDATE entries SET memo = 'forged' WHERE turn = 't2'")
    events = await store.read("s")
    assert len(events) == 8 and {event.type for event in events[4:]} == {DAMAGED}
    assert [filed.entry.turn for filed in await store.index("s")] == ["t1"]
    assert "is plain" in store.damage.reason("s")


@pytest.mark.parametrize("to", ["said", "thoughts", "memo"])
async def test_a_value_in_another_column_does_not_open(nodes, db, to):
    store = nodes(keychain())
    await store.append(replace(canaries(), id="t1"))
    source = {
        "said": "UPDATE batches SET said = thoughts",
        "thoughts": "UPDATE batches SET thoughts = (SELECT memo FROM entries)",
        "memo": "UPDATE entries SET memo = (SELECT thoughts FROM batches)",
    }
    await db.execute(source[to])
    other = nodes(keychain())
    await (other.read("s") if to == "said" else other.find("T", [A]))
    assert "put there from elsewhere: it does not open" in other.damage.reason("s")
