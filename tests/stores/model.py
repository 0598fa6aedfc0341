"""What a store does, said as simply as possible: other stores are compared with it.

Sessions are lists, everything else is looked for in them. It knows what `test_store_machine` asks.
"""

from itertools import count

from msgspec.structs import replace

from thoughtline.log.index import MAX_CANDIDATES
from thoughtline.stores import rules
from thoughtline.stores.base import INTERNAL_PREFIX, FiledEntry, SessionSummary


class Filed:
    """An index entry, and when it was filed."""

    def __init__(self, entry, number):
        self.entry, self.number = replace(entry, thoughts=()), number


class StoredSession:
    """A session, its events and the index entries of its turns."""

    def __init__(self, tenant, created):
        self.tenant, self.created, self.touched = tenant, created, created
        self.events, self.filed, self.counts, self.kept = [], {}, rules.NO_EVENTS, False


class StoreModel:
    """A store of lists and dictionaries."""

    def __init__(self, clock):
        self.clock, self.stored, self.numbers = clock, {}, count(1)

    async def append(self, batch):
        rules.check_batch(batch)
        stored = self.stored.get(batch.session)
        last = len(stored.events) - 1 if stored else -1
        if problem := rules.find_conflict(batch, stored.tenant if stored else None, last):
            raise problem
        now = self.clock.wall()
        stored = self.stored.setdefault(batch.session, StoredSession(batch.tenant, now))
        stored.touched = max(stored.touched, now)
        stored.counts = stored.counts.plus(rules.count_events(batch.drafts))
        stored.events += rules.number_events(batch, last + 1)
        self.file(stored, batch.index)
        return last + 1

    def file(self, stored, entries):
        for entry in entries:
            stored.filed[entry.turn] = Filed(entry, next(self.numbers))

    async def read(self, session, *, after=-1, limit=None):
        events = self.stored[session].events if session in self.stored else []
        return events[max(after + 1, 0) :][: None if limit is None else max(limit, 0)]

    def all_filed(self):
        """Session and filing of everything, the last filed first."""
        found = [(s, filed) for s in self.stored.values() for filed in s.filed.values()]
        return sorted(found, key=lambda pair: -pair[1].number)

    def whole(self, stored, entry):
        """An entry as a look-up gives it: its thoughts are in the log, and refusals apply."""
        reasoning = [
            (event.version, event.data)
            for event in stored.events
            if event.type == "reasoning" and event.parent == entry.turn
        ]
        refused = [
            rules.read_quarantine(event.data)
            for other in self.stored.values()
            if other.tenant == stored.tenant
            for event in other.events
            if event.type == "quarantined"
            and rules.referred_id(event.type, event.data) == entry.turn
        ]
        return rules.with_thoughts(entry, reasoning, [one for one in refused if one])

    async def find(self, tenant, keys):
        found = {}
        for key in keys:
            filed = [
                self.whole(stored, filed.entry)
                for stored, filed in self.all_filed()
                if stored.tenant == tenant and key in filed.entry.keys
            ]
            if filed:
                found[key] = filed[:MAX_CANDIDATES]
        return found

    async def sessions(self, *, tenant=None, limit=50, before=None):
        listed = [
            SessionSummary(
                session=id,
                tenant=stored.tenant,
                created=stored.created,
                touched=stored.touched,
                events=len(stored.events),
            )
            for id, stored in self.stored.items()
            if tenant in {None, stored.tenant} and (before is None or stored.touched < before)
        ]
        return sorted(listed, key=lambda s: (-s.touched, s.session))[: max(limit, 0)]

    async def purge(self, *, session=None, tenant=None, untouched_since=None):
        if session is None and tenant is None and untouched_since is None:
            return 0
        by_age = session is None and tenant is None
        matched = {
            id
            for id, stored in self.stored.items()
            if session in {None, id}
            and tenant in {None, stored.tenant}
            and (untouched_since is None or stored.touched < untouched_since)
            and not (by_age and id.startswith(INTERNAL_PREFIX))
        }
        before = len(self.stored)
        while free := {id for id in matched if not self.is_forked(id)} & set(self.stored):
            for id in free:
                del self.stored[id]
        return before - len(self.stored)

    def is_forked(self, id):
        return any(
            event.type == "session_forked" and rules.referred_id(event.type, event.data) == id
            for other, stored in self.stored.items()
            if other != id
            for event in stored.events
        )

    async def entries(self, which, *, limit=50, after=None, offset=0, thoughts=False):
        found = []
        for stored, filed in self.all_filed():
            if not rules.entry_matches(which, stored.tenant, filed.entry):
                continue
            known = self.whole(stored, filed.entry).thoughts if thoughts else ()
            owner = {"tenant": stored.tenant, "touched": stored.touched, "kept": stored.kept}
            found += [
                rules.thought_entry(filed.entry, (filed.number, nth), call, thoughts=known, **owner)
                for nth, call in rules.shown_calls(filed.entry)
                if which.call in {None, call}
            ]
        places = (one for one in found if after is None or _order(one.position) > _order(after))
        return list(places)[max(offset, 0) :][: max(limit, 0)]

    async def forget(self, which):
        count = 0
        for stored, filed in self.all_filed():
            if rules.entry_matches(which, stored.tenant, filed.entry):
                filed.entry, cleared = rules.forget_entry(filed.entry, which)
                count += cleared
        return count

    async def index(self, session):
        stored = self.stored.get(session)
        filed = sorted(stored.filed.values(), key=lambda f: f.number) if stored else []
        return [FiledEntry(self.whole(stored, one.entry)) for one in filed]

    async def reindex(self, session, entries, *, remove=()):
        if stored := self.stored.get(session):
            for turn in remove:
                stored.filed.pop(turn, None)
            self.file(stored, entries)

    async def stats(self, *, tenant=None):
        found = [s for s in self.stored.values() if tenant in {None, s.tenant}]
        counts = [stored.counts for stored in found]
        entries = [filed.entry for stored in found for filed in stored.filed.values()]
        return rules.make_stats(
            sessions=len(found),
            events=sum(len(stored.events) for stored in found),
            turns=sum(one.turns for one in counts),
            span=(
                min((one.oldest for one in counts if one.oldest is not None), default=None),
                max((one.newest for one in counts if one.newest is not None), default=None),
            ),
            summaries=[_counted_once(rules.entry_summary(entry)) for entry in entries],
            listed=sum(len(rules.shown_calls(entry)) for entry in entries),
        )


def _counted_once(summary):
    """A summary for statistics: a thought under two calls is one."""
    if summary.entries <= 1:
        return summary
    return replace(summary, entries=1, chars=summary.chars // summary.entries)


def _order(position):
    return -position[0], position[1]
