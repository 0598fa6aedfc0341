"""What of a turn is kept: everything, only what replay needs, or nothing on disk.

`sessions` writes all of it. `thoughts` leaves out what was said (messages, calls, results) and
keeps the thoughts, the bookkeeping around them and the hashes they are found by. `off` keeps that
much in memory, for as long as the process lives, and writes nothing at all.
"""

from collections.abc import Callable

from msgspec.structs import replace

from thoughtline.stores.base import Batch

SAID = frozenset(
    {"user_message", "assistant_message", "tool_call", "tool_result", "permission_decision"}
)
"""Events that hold what was said, and that replay does not look at."""

Sift = Callable[[Batch], Batch]


def thoughts_only(batch: Batch) -> Batch:
    """The batch without what was said."""
    if not any(draft.type in SAID for draft in batch.drafts):
        return batch
    return replace(batch, drafts=tuple(d for d in batch.drafts if d.type not in SAID))


def sift(record: str) -> Sift | None:
    """What the `store.record` setting leaves of a batch; None: all of it."""
    return None if record == "sessions" else thoughts_only
