"""What became of thoughts over time, counted from the log."""

import asyncio
import json
import threading
import time

from support.built_gateway import BuiltGateway, configured, converse
from support.gateway import TurnClient
from thoughtline.clock import SystemClock
from thoughtline.gateway.settings import UpstreamSettings
from thoughtline.inspector import continuity
from thoughtline.log.parts import Text
from thoughtline.log.turn_counts import TurnCounts
from thoughtline.providers.prices import PriceTable
from thoughtline.stores.memory import MemoryStore

CLAUDE = UpstreamSettings(
    name="up", base_url="http://sim", policy="anthropic", models=("claude-*",)
)
MARKED = {"cache_control": {"type": "ephemeral"}}


class NotingPrices(PriceTable):
    """Notes in which threads it is asked."""

    def __init__(self):
        super().__init__()
        self.threads = set()

    def cost(self, *args, **more):
        self.threads.add(threading.get_ident())
        return super().cost(*args, **more)


def test_continuity_is_counted_from_the_log():
    built = BuiltGateway()
    with built.client() as client:
        converse(client, 3)
        told = client.get("/api/continuity").json()
        assert (told["total"]["turns"], told["total"]["restored"]) == (3, 3)
        assert told["hitRate"] == 1.0
        assert 0 < told["cachedShare"] < 1
        assert sum(b["turns"] for b in told["buckets"]) == 3
        assert 40 <= len(told["buckets"]) <= 50
        assert list(told["byProvider"]) == ["deepseek"]
        assert list(told["byModel"]) == ["deepseek-v4-pro"]
        converse(client, 2, said="another")
        assert client.get("/api/continuity").json()["total"]["turns"] == 5
        assert client.get("/api/continuity?hours=72").json()["total"]["turns"] == 5
        nobody = client.get("/api/continuity?provider=kimi").json()
        assert (nobody["total"]["turns"], nobody["hitRate"], nobody["byModel"]) == (0, None, {})
        one = client.get("/api/continuity?hours=1&model=deepseek-v4-pro").json()
        assert one["seconds"] in (60, 300)
        assert sum(b["inputTokens"] for b in one["buckets"]) == one["total"]["inputTokens"] > 0


async def test_a_prompt_is_never_more_than_wholly_cached():
    """Anthropic counts a prompt without its cache: the page, metrics and log lines add it up."""
    built = BuiltGateway(configured(upstreams={"up": CLAUDE}), sim="claude")
    client = TurnClient(built.gateway(), "messages", "claude-sonnet-4-5")
    client.fields = {"system": [{"type": "text", "text": "a" * 4000, **MARKED}], "max_tokens": 2000}
    await client.say(Text(text="question"))
    for _ in range(3):
        await client.say(*client.next())
    await asyncio.sleep(0)  # lines are written when the loop comes round
    sent = [json.loads(reply.body)["usage"] for reply in built.wire.replies]
    assert all(counts["cache_creation_input_tokens"] for counts in sent)
    assert any(counts["cache_read_input_tokens"] > counts["input_tokens"] for counts in sent)
    prompts = sum(
        counts["input_tokens"]
        + counts["cache_creation_input_tokens"]
        + counts["cache_read_input_tokens"]
        for counts in sent
    )
    with built.client() as page:
        told = page.get("/api/continuity").json()
        (session,) = page.get("/api/sessions").json()["sessions"]
        turns = page.get(f"/api/sessions/{session['id']}").json()["turns"]
        metrics = page.get("/metrics").text
    assert told["total"]["inputTokens"] == prompts
    assert 0 < told["cachedShare"] < 1
    assert sum(turn["usage"]["input"] for turn in turns) == prompts
    assert all(turn["usage"]["cacheWrite"] for turn in turns)
    assert f'thoughtline_tokens_total{{kind="input",provider="anthropic"}} {prompts}' in metrics
    assert 'kind="cache_write"' in metrics
    assert sum(line["input_tokens"] for line in built.events("request")) == prompts


async def test_many_counts_are_added_up_beside_the_loop(monkeypatch):
    monkeypatch.setattr(continuity, "MANY", 2)
    store, prices = MemoryStore(), NotingPrices()
    counter = continuity.ContinuityCounter(store, SystemClock(), prices)
    now = time.time() // 300 * 300
    counts = [
        TurnCounts(at=now, provider="p", model=f"m{n}", counts={"turns": 1, "input_tokens": 1})
        for n in range(3)
    ]

    async def many(**_):
        return counts

    store.turn_counts = many
    told = await counter.over(1)
    assert told.total.turns == 3
    assert list(told.by_model) == ["m0", "m1", "m2"]
    assert threading.get_ident() not in prices.threads
