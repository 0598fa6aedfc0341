"""Fills a SQLite file with very many turns, with the store's own statements.

Turns are of conversations as they are found in a used store: most of about ten turns, some of one,
a few of thousands; several tenants, providers and models; spread over ninety days, in order of
time. Call ids repeat for one provider, as Kimi's do. A million turns take some minutes.
"""

import hashlib
import random
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import msgspec
from msgspec import Struct

from thoughtline.log.decisions import Action, MatchLevel, ReplayDecision, tally
from thoughtline.log.events import (
    AssistantMessage,
    Body,
    Outcome,
    Reasoning,
    ToolCall,
    TurnEnded,
    TurnStarted,
    Usage,
    UserMessage,
    draft,
)
from thoughtline.log.index import IndexEntry
from thoughtline.log.parts import Call, Carrier, Origin, Text, Thought
from thoughtline.stores.base import Batch
from thoughtline.stores.sqlite import rows
from thoughtline.stores.sqlite.file import DatabaseFile
from thoughtline.stores.sqlite.inserts import insert_batch

DAYS = 90
TENANTS = 40
LENGTHS = (1, 4, 10, 10, 10, 12, 20, 40)
"""Turns of a conversation; every thousandth has `LONG` of them."""
LONG = 2_000
FIRST_LONG = 7
GROUP = 500
"""Turns in one transaction."""
RARE = "zanzibar"
"""A word that was said in one conversation of ten thousand turns."""
WORDS = "the model looks at the file, sees that the loop never ends, and thinks about a way out; "
_ORIGINS = [
    Origin(
        dialect="chat",
        provider=provider,
        endpoint=f"https://api.{provider}.test",
        account="account",
        model=f"{provider}-{version}",
        asked=f"{provider}-{version}",
    )
    for provider in ("deepseek", "moonshot", "minimax", "zai", "mistral", "generic")
    for version in ("large", "small")
]
_THOUGHT = msgspec.json.encode(WORDS * 5).decode()


class Conversation(Struct):
    """A conversation of the file, and how far it is."""

    session: str
    tenant: str
    origin: Origin
    turns: int
    parent: str = ""
    done: int = 0


def _key(*of: object) -> bytes:
    return hashlib.blake2b(repr(of).encode(), digest_size=16).digest()


def _conversation(number: int, chance: random.Random) -> Conversation:
    long = number % 1_000 == FIRST_LONG
    return Conversation(
        session=f"session-{number}",
        tenant=f"tenant-{min(int(chance.expovariate(0.2)), TENANTS - 1)}",
        origin=chance.choice(_ORIGINS),
        turns=LONG if long else chance.choice(LENGTHS),
    )


def _turn(one: Conversation, serial: int, at: float) -> Batch:
    """The next turn of a conversation: a question, a thought, a call or an answer."""
    turn, origin = f"{serial:032x}", one.origin
    thought = Thought(
        carrier=Carrier.REASONING_CONTENT, raw=_THOUGHT, text=WORDS * 5, origin=origin
    )
    call_id = f"functions.run:{one.done}" if origin.provider == "moonshot" else f"call_{serial}"
    call = Call(name="run", arguments='{"path":"src/main.py"}', id=call_id)
    calls = one.done % 3 != 2
    said = f"{WORDS}{RARE if serial % 10_000 == 5_000 else serial}"
    restored = ReplayDecision(
        turn=one.done, action=Action.RESTORED, level=MatchLevel.FULL, entry=one.parent, thoughts=1
    )
    decided = (restored,) if one.done else ()
    started = TurnStarted(
        target=origin,
        replay=decided,
        repeated=max(one.done - 1, 0),
        tally={**tally(decided), "restored": one.done} if one.done > 1 else {},
    )
    usage = Usage(input=1000 + one.done * 200, cached=one.done * 200, output=100)
    failed = serial % 50 == 0
    bodies: list[Body] = [
        UserMessage(parts=(Text(text=said),)),
        Reasoning(thought=thought),
        ToolCall(call=call) if calls else AssistantMessage(parts=(Text(text=WORDS),)),
        TurnEnded(
            outcome=Outcome.FAILED if failed else Outcome.COMPLETED, usage=usage, model=origin.model
        ),
    ]
    drafts = [draft(started, id=turn, parent=one.parent, at=at)]
    drafts += [draft(b, id=f"{turn}.{n}", parent=turn, at=at) for n, b in enumerate(bodies)]
    entry = IndexEntry(
        session=one.session,
        turn=turn,
        parent=one.parent,
        origin=origin,
        outcome=Outcome.FAILED if failed else Outcome.COMPLETED,
        at=at,
        shape="tc" if calls else "tx",
        calls=(call_id,) if calls else (),
        chars=len(thought.text),
        keys=tuple(_key(serial, which) for which in range(3)),
    )
    one.parent, one.done = turn, one.done + 1
    return Batch(session=one.session, tenant=one.tenant, drafts=tuple(drafts), index=(entry,))


def _turns(count: int, now: float) -> Iterator[tuple[Batch, float]]:
    """Turns of a few dozen conversations at a time, in order of time."""
    chance = random.Random(5)
    begun = 0
    open_ones: list[Conversation] = []
    step = DAYS * 86_400 / count
    for serial in range(count):
        while len(open_ones) < 50:
            open_ones.append(_conversation(begun, chance))
            begun += 1
        at = now - (count - serial) * step
        one = chance.choice(open_ones)
        yield _turn(one, serial, at), at
        if one.done == one.turns:
            open_ones.remove(one)


def fill(path: Path, count: int, now: float) -> None:
    """Make a file with so many turns."""
    db = DatabaseFile(path, timeout=5.0, synchronous="normal").for_writing()
    for setting in ("journal_mode = OFF", "synchronous = OFF", "cache_size = -2000000"):
        db.execute(f"PRAGMA {setting}").fetchall()  # if it fails, it is built again
    group: list[Batch] = []
    for batch, at in _turns(count, now):
        group.append(batch)
        if len(group) == GROUP:
            _write(db, group, at)
            group = []
    if group:
        _write(db, group, now)
    db.execute("PRAGMA journal_mode = WAL").fetchall()
    db.close()


def _write(db: sqlite3.Connection, group: list[Batch], at: float) -> None:
    db.execute("BEGIN IMMEDIATE")
    rows.write(db, [insert_batch(batch) for batch in group], at)
    db.execute("COMMIT")
