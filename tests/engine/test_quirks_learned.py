"""What an endpoint taught, in the log and after a restart."""

from stores.samples import plain
from support.gateway import InProcessGateway, SimWire, gateway_with, statuses
from support.recovery import ASKED, post
from thoughtline.engine.quirks import SESSION, TENANT
from thoughtline.errors import Unavailable
from thoughtline.stores.base import Batch
from thoughtline.stores.cached import CachedStore
from thoughtline.stores.memory import MemoryStore
from thoughtline.testing import simulator


async def test_a_quirk_survives_the_process_and_holds_for_its_endpoint_and_model_only():
    store = MemoryStore()
    sim = simulator("deepseek")
    first = InProcessGateway(SimWire(sim), store=store)
    await post(first)
    again = InProcessGateway(SimWire(sim), store=store)
    await post(again)
    assert statuses(again) == [200]
    await post(again, model="deepseek-v4-flash")
    assert statuses(again) == [200, 400, 200]
    elsewhere = InProcessGateway(SimWire(sim), store=store, url="http://other")
    await post(elsewhere)
    assert statuses(elsewhere) == [400, 200]
    assert [e.type for e in await store.read(SESSION)] == ["endpoint_learned"] * 3


async def test_another_process_reads_on_when_it_meets_a_refusal():
    store, sim = MemoryStore(), simulator("deepseek")
    one, other = (InProcessGateway(SimWire(sim), store=store) for _ in range(2))
    await post(other, [ASKED])  # has read what was learned so far: nothing
    await post(one)
    await post(one, model="deepseek-v4-flash")
    await post(other, model="deepseek-v4-flash")  # refused, and reads on
    await post(other)
    assert statuses(other) == [200, 400, 200, 200]


async def test_a_quirk_that_cannot_be_read_is_none():
    gateway = gateway_with("deepseek")
    await post(gateway)
    [event] = await gateway.store.read(SESSION)
    broken = event.data.replace('"required"', '"whatever"')
    store = MemoryStore()
    drafts = (plain(type=event.type, data=broken),)
    await store.append(Batch(session=SESSION, tenant=TENANT, drafts=drafts))
    fresh = InProcessGateway(gateway.wire, store=store)
    assert (await post(fresh)).status == 200


class Down(MemoryStore):
    """A store that cannot be written."""

    async def append(self, batch):
        raise Unavailable("full")


async def test_a_store_that_is_down_stops_no_recovery():
    gateway = InProcessGateway(SimWire(simulator("deepseek")), store=Down())
    assert [(await post(gateway)).status for _ in range(2)] == [200, 200]
    assert statuses(gateway) == [400, 200, 200]


async def test_behind_memory_too():
    gateway = gateway_with("deepseek", store=CachedStore(MemoryStore()))
    assert [(await post(gateway)).status for _ in range(2)] == [200, 200]
    assert statuses(gateway) == [400, 200, 200]
