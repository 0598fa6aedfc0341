"""Searching and reading on across sessions: a part of the contract (see `contract`)."""

import pytest

from stores.samples import appended, fork, notes, thought, turn
from thoughtline.log.events import (
    AssistantMessage,
    Outcome,
    Reasoning,
    ToolCall,
    ToolResult,
    TurnEnded,
    TurnStarted,
    UserMessage,
    draft,
)
from thoughtline.log.parts import Call, Origin, Result, Text
from thoughtline.stores import search as seeking
from thoughtline.stores.base import Batch, SessionQuery


def talk(session, *bodies, tenant="T", provider="deepseek", model="v4", ended="completed", **more):
    """One turn in which these things are said."""
    id = more.get("id", f"{session}.t")
    target = Origin(provider=provider, model=model, asked=more.get("asked", model))
    last = [TurnEnded(outcome=Outcome(ended), model=more.get("served", ""))] if ended else []
    said = [UserMessage(parts=(Text(text=b),)) if isinstance(b, str) else b for b in bodies]
    drafts = [draft(TurnStarted(target=target), id=id, parent="", at=more.get("at", 1.0))]
    drafts += [
        draft(body, id=f"{id}.{n}", parent=id, at=more.get("at", 1.0))
        for n, body in enumerate([*said, *last])
    ]
    return Batch(session=session, tenant=tenant, drafts=tuple(drafts))


async def found(store, **which):
    """Ids of the sessions that match, page by page."""
    ids, after = [], None
    for _ in range(1000):
        listing = await store.search(SessionQuery(**which), limit=2, after=after)
        assert len(listing.sessions) <= 2
        ids += [summary.session for summary in listing.sessions]
        after = listing.after
        if after is None:
            return ids
    raise AssertionError("a search that does not end")


class Seeking:
    async def test_search_without_conditions_lists_all(self, store, clock):
        for n in range(5):
            clock.now += n % 2  # some are touched at the same time
            await store.append(notes(f"s{n}", n + 1))
        listed = await store.sessions()
        assert await found(store) == [summary.session for summary in listed]
        (whole,) = [await store.search(limit=10)]
        assert (whole.sessions, whole.after) == (listed, None)

    async def test_search_by_id_and_tenant(self, store):
        await store.append(notes("a", tenant="A"))
        await store.append(notes("b", tenant="B"))
        assert await found(store, session="a") == ["a"]
        assert await found(store, session="a", tenant="B") == []
        assert await found(store, tenant="B") == ["b"]
        assert await found(store, session="nobody") == []

    async def test_search_by_provider_and_model(self, store):
        await store.append(talk("a", provider="kimi", model="k3"))
        await store.append(talk("b", model="v4-pro", asked="v4"))
        await store.append(talk("c", model="v5", served="v5-0116"))
        await store.append(talk("c", provider="kimi", model="k2", id="c.2"))
        assert await found(store, provider="kimi") == ["a", "c"]
        assert await found(store, model="v4") == ["b"]
        assert await found(store, model="v4-pro") == ["b"]
        assert await found(store, model="v5-0116") == ["c"]
        assert await found(store, provider="kimi", model="k3") == ["a"]
        assert await found(store, model="no") == []

    async def test_search_by_how_the_last_turn_ended(self, store):
        for ended in ("completed", "failed", "capped", "aborted"):
            await store.append(talk(ended, ended=ended))
        await store.append(talk("open", ended=""))
        await store.append(talk("again"))
        await store.append(talk("again", ended="failed", id="again.2"))
        await store.append(notes("again"))
        await store.append(fork("none", "again"))
        assert await found(store, status="failed") == ["again", "failed"]
        assert await found(store, status="running") == ["open"]
        assert await found(store, status="aborted") == ["aborted"]
        assert await found(store, status="nothing") == []

    @pytest.mark.parametrize(
        "text",
        [
            "Grüße",
            "GRÜSSE AUS",
            'sagt "hallo"',
            "50%_off",
            "C:\\temp",
            "zwei\nZeilen",
            "<script>alert(1)</script>",
            "漢字",
            "🙂",
            "\u0000",
        ],
    )
    async def test_search_finds_text_as_it_reads(self, store, text):
        said = (
            'Grüße, Grüsse aus: sagt "hallo" 50%_OFF c:\\TEMP zwei\nzeilen '
            "<SCRIPT>alert(1)</script> 漢字 🙂 \u0000"
        )
        await store.append(talk("a", said))
        await store.append(talk("b", "Grusse 50 off C:temp zwei Zeilen"))
        assert await found(store, text=text) == ["a"]

    async def test_search_looks_where_people_and_tools_speak(self, store):
        await store.append(talk("user", "needle"))
        await store.append(talk("model", AssistantMessage(parts=(Text(text="the NEEDLE"),))))
        call = Call(name="needle", arguments="{}")
        await store.append(talk("call", ToolCall(call=call)))
        await store.append(talk("args", ToolCall(call=Call(name="x", arguments='{"a":"needle"}'))))
        await store.append(talk("result", ToolResult(result=Result(content="a needle"))))
        await store.append(talk("thought", Reasoning(thought=thought('"needle"', text="needle"))))
        await store.append(talk("other", "nee dle"))
        assert set(await found(store, text="Needle")) == {"user", "model", "call", "args", "result"}

    @pytest.mark.parametrize("key", ["parts", "text", '"parts":', "user_message", "{"])
    async def test_the_spelling_of_the_log_is_not_found(self, store, key):
        await store.append(talk("a", "hello"))
        assert await found(store, text=key) == []

    async def test_a_long_search_goes_on(self, store, monkeypatch):
        monkeypatch.setattr(seeking, "MAX_SCANNED", 3)
        await store.append(talk("needle", "needle"))
        for n in range(12):
            await store.append(talk(f"s{n:02}", "hay"))
        first = await store.search(SessionQuery(text="needle"), limit=1)
        assert first.sessions == [] or first.sessions[0].session == "needle"
        assert await found(store, text="needle") == ["needle"]

    # -- history ---------------------------------------------------------------------------------

    async def test_history_in_the_order_of_writing(self, store):
        written = []
        for n in range(6):
            written += await appended(store, turn(f"s{n % 2}", f"t{n}", '"x"', at=float(n)))
        chapter = await store.history(None)
        assert (chapter.events, chapter.more) == (written, False)
        ends = [event for event in written if event.type == "turn_ended"]
        seen, after, more = [], 0, True
        while more:
            page = await store.history(("turn_ended",), after=after, limit=4)
            seen, after, more = seen + page.events, page.position, page.more
        assert seen == ends
        assert (await store.history(None, after=after)).events == []
        more = await appended(store, notes("s1"))
        assert (await store.history(None, after=after)).events == more

    async def test_history_since_a_time(self, store):
        for n in range(40):
            await store.append(turn("s", f"t{n}", at=float(n)))
        young = (await store.history(("turn_started",), since=31.0)).events
        assert [event.at for event in young if event.at >= 31.0] == [
            float(n) for n in range(31, 40)
        ]
        assert len(young) < 40

    async def test_history_of_nothing_says_where_it_stands(self, store):
        assert (await store.history(())).position == 0
        await store.append(notes("s", 3))
        here = await store.history(())
        assert (here.events, here.more) == ([], False)
        assert (await store.history(None, after=here.position)).events == []
        assert len((await store.history(None, after=here.position - 1)).events) == 1

    async def test_history_without_what_was_deleted(self, store):
        await store.append(notes("a", 2))
        kept = await appended(store, notes("b", 2))
        await store.purge(session="a")
        assert (await store.history(None)).events == kept
        later = await appended(store, notes("a"))
        assert (await store.history(None)).events == kept + later
