"""Sessions by what they are about: chunk by chunk, the most recently touched first.

Conditions on turns are asked in SQL. Text is looked for in SQL too, roughly (anywhere in the JSON),
and what that finds is read properly. A search looks at so many sessions and then says where to
go on, so that a reader's thread is never held for long.
"""

import sqlite3
from collections.abc import Sequence

import msgspec

from thoughtline.stores import facts, seeking
from thoughtline.stores.base import Cursor, Listing, Query, Summary
from thoughtline.stores.sqlite.migrations import sql

CHUNK = 100
"""Sessions that are looked at in one statement."""

_LISTED = """
SELECT json_group_array(json_array(number, session, tenant, created, touched, events)) FROM (
    SELECT
        s.number, s.session, t.tenant, printf('%!.17g', s.created) AS created,
        printf('%!.17g', s.touched) AS touched, s.last + 1 AS events
    FROM sessions AS s JOIN tenants AS t ON t.number = s.tenant
    WHERE {whose} s.touched <= :touched AND (s.touched < :touched OR s.session > :session)
    ORDER BY s.touched DESC, s.session LIMIT :limit
)
"""
_WHOSE = "s.tenant = (SELECT number FROM tenants WHERE tenant = :tenant) AND"
_WHICH = "s.session = :id AND"
_TURNS = sql("turns.sql")
_WORDS = """
SELECT group_concat(e.session || ' ' || e.version || ' ' || e.type || ' ' || e.data, char(30))
FROM events AS e
WHERE e.session IN (SELECT value FROM json_each(?))
  AND e.type IN (SELECT value FROM json_each(?))
  AND ({likes})
"""
_rows = msgspec.json.Decoder(list[tuple[int, str, str, str, str, int]])
_numbers = msgspec.json.Decoder(set[int])


def search(db: sqlite3.Connection, which: Query, limit: int, after: Cursor | None) -> Listing:
    """One page of what matches."""
    found: list[Summary] = []
    plain = which == Query(session=which.session, tenant=which.tenant)
    looked = 0
    while len(found) < limit and looked < seeking.SCAN:
        size = limit - len(found) if plain else CHUNK
        chunk = _chunk(db, which, after, size)
        looked += len(chunk)
        meant = chunk.keys() if plain else _meant(db, which, list(chunk))
        for number, summary in chunk.items():
            if len(found) == limit:
                break
            after = (summary.touched, summary.session)
            if number in meant:
                found.append(summary)
        else:
            if len(chunk) < size:
                return Listing(sessions=found)
    return Listing(sessions=found, after=after)


def _chunk(
    db: sqlite3.Connection, which: Query, after: Cursor | None, size: int
) -> dict[int, Summary]:
    touched, session = after or (float("inf"), "")
    values = {"touched": touched, "session": session, "limit": size}
    values |= {"tenant": which.tenant, "id": which.session}
    whose = "" if which.tenant is None else _WHOSE
    only = "" if which.session is None else _WHICH
    (packed,) = db.execute(_LISTED.format(whose=f"{whose} {only}"), values).fetchone()
    return {
        number: Summary(
            session=session,
            tenant=owner,
            created=float(created),
            touched=float(touched),
            events=events,
        )
        for number, session, owner, created, touched, events in _rows.decode(packed)
    }


def _meant(db: sqlite3.Connection, which: Query, numbers: Sequence[int]) -> set[int]:
    asked = msgspec.structs.asdict(which) | {"numbers": msgspec.json.encode(numbers).decode()}
    (packed,) = db.execute(_TURNS, asked).fetchone()
    meant = _numbers.decode(packed)
    return meant if which.text is None else _speaking(db, which.text, sorted(meant))


def _speaking(db: sqlite3.Connection, text: str, numbers: Sequence[int]) -> set[int]:
    patterns = [f"%{_escaped(case)}%" for case in seeking.spellings(text)]
    statement = _WORDS.format(likes=" OR ".join([r"e.data LIKE ? ESCAPE '\'"] * len(patterns)))
    lists = [msgspec.json.encode(values).decode() for values in (numbers, seeking.SAID)]
    (packed,) = db.execute(statement, (*lists, *patterns)).fetchone()
    speaking: set[int] = set()
    for row in packed.split(facts.SEPARATOR) if packed else ():
        number, version, type, data = row.split(" ", 3)
        if int(number) not in speaking and seeking.says(type, int(version), data, text):
            speaking.add(int(number))
    return speaking


def _escaped(text: str) -> str:
    """For LIKE, which has signs of its own."""
    return text.replace("\\", r"\\").replace("%", r"\%").replace("_", r"\_")
