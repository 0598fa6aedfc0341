"""The assistant turns of a Responses conversation, as an audit wants to see them.

A turn is a run of items that the model wrote, between what users and tools said.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from thoughtline.testing.sims.ledger import Carried, Echo
from thoughtline.testing.sims.responses_input import Item
from thoughtline.testing.sims.responses_output import slot_of, thought_of
from thoughtline.testing.sims.responses_rows import Row


def echoes(row: Row, items: Sequence[Item], serials: Callable[[str], Sequence[str]]) -> list[Echo]:
    """The assistant turns of a conversation: runs of items that the model wrote.

    The outputs of calls may stand among them. `serials` tells which exchange a text is from.
    """
    runs: list[list[Item]] = [[]]
    for item in items:
        if item.assistant:
            runs[-1].append(item)
        elif runs[-1]:
            runs.append([])
    whole: list[list[Item]] = []
    last: set[str] = set()
    for run in runs:
        named = {serial for item in run for serial in serials(text_of(item))}
        if named and named == last:
            whole[-1] += run
        else:
            whole.append(run)
        last = named
    return [_echo(row, run) for run in whole if run and not _lost(run)]


def _lost(run: Sequence[Item]) -> bool:
    """The server's own memory of a thought that steering interrupted."""
    return all(item.kind == "reasoning" and not item.where for item in run)


def _echo(row: Row, run: Sequence[Item]) -> Echo:
    shown, thoughts = [], []
    for at, item in enumerate(run):
        if item.kind == "reasoning":
            slot = slot_of(one.kind for one in run[:at])
            thoughts.append(Carried(thought_of(row, item), slot))
        else:
            shown.append(text_of(item))
    return Echo("\n".join(shown), tuple(thoughts))


def text_of(item: Item) -> str:
    """What a user can see of an item."""
    if item.kind != "message":
        return str(item.value.get("arguments") or item.value.get("input") or "")
    content = item.value.get("content")
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    return "".join(str(part.get("text") or "") for part in parts if isinstance(part, dict))


def phases(known: Mapping[str, str], items: Sequence[Item]) -> str:
    """How many messages came back with the `phase` they were given, and how many without."""
    kept = lost = 0
    for item in items:
        phase = known.get(text_of(item).strip()) if item.assistant else None
        if phase is not None and item.kind == "message":
            same = item.value.get("phase") == phase
            kept, lost = kept + same, lost + (not same)
    return f"kept={kept}; lost={lost}"
