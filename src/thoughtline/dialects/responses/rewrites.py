"""Last edits of a finished Responses body, for endpoints with demands of their own.

Each one edits only what it must and gives back the very same object where there is nothing to do,
so that everything else keeps its bytes.
"""

from collections.abc import Callable
from typing import Any

from thoughtline.dialects import splice
from thoughtline.dialects.base import Rewrites
from thoughtline.dialects.responses.items import ARGUMENTS, Side, item_type, side
from thoughtline.dialects.splice import Edit


def drop_items(body: bytes, gone: Callable[[int, Any], bool]) -> bytes:
    """Remove the items for which `gone` (given position and item) is true."""
    found = splice.top_level_list(body, "input")
    cut = [span for index, (span, item) in enumerate(found) if gone(index, item)]
    return splice.apply(body, splice.cut(cut, [span for span, _ in found]))


def strip_item_ids(body: bytes) -> bytes:
    """Remove the ids of sealed thoughts and of what they led to."""
    edits: list[Edit] = []
    for span, item in splice.top_level_list(body, "input"):
        sealed = item_type(item) == "reasoning" and item.get("encrypted_content")
        led = item_type(item) in ARGUMENTS or (
            item_type(item) == "message" and side(item) is Side.OUTPUT
        )
        if (sealed or led) and "id" in item:
            has = splice.members(body, span)
            edits += splice.cut([has["id"]], has.values())
    return splice.apply(body, edits)


def drop_repeated_items(body: bytes) -> bytes:
    """Remove items that repeat the id of an earlier one."""
    seen: set[str] = set()

    def again(_index: int, item: Any) -> bool:
        id = item.get("id") if isinstance(item, dict) else None
        if not isinstance(id, str) or not id:
            return False
        known = id in seen
        seen.add(id)
        return known

    return drop_items(body, again)


def add_summaries(body: bytes) -> bytes:
    """Give every reasoning item a summary, if only an empty one."""
    edits: list[Edit] = []
    for span, item in splice.top_level_list(body, "input"):
        if item_type(item) == "reasoning" and "summary" not in item:
            has = splice.members(body, span)
            edits += splice.revise(span, has, {"summary": b"[]"})
    return splice.apply(body, edits)


def drop_compactions(body: bytes) -> bytes:
    """Remove compaction items."""
    return drop_items(body, lambda _, item: item_type(item) == "compaction")


def drop_configuration(body: bytes) -> bytes:
    """Remove items that change settings on the way."""
    return drop_items(body, lambda _, item: item_type(item) == "configuration_update")


REWRITES = Rewrites(
    drop_configuration=drop_configuration,
    strip_item_ids=strip_item_ids,
    drop_repeated_items=drop_repeated_items,
    add_summaries=add_summaries,
    drop_compactions=drop_compactions,
)
