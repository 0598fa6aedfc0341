"""What the model of a Responses server produces: reasoning, message and function call items.

The items are as awkward as legal ones can be: a thought in two items, summaries that are empty or
have several parts, keys nobody documents in an order nobody expects, numbers spelled `5.0` and
`1E+2`. Whatever the spelling, a client has to bring it back; `thought_of` is the form in which an
audit compares what went out with what came back.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from thoughtline.testing.sims.responses_input import Create, Item
from thoughtline.testing.sims.responses_oddities import EMITS, ITEMS, Out
from thoughtline.testing.sims.responses_rows import Row
from thoughtline.testing.sims.spelling import Fragment, fields, letter, plain
from thoughtline.testing.sims.values import Piece, Say, Think, Use, decode

if TYPE_CHECKING:
    from thoughtline.testing.sims.base import Exchange
    from thoughtline.testing.sims.responses import ResponsesSimulator

ODD = "x_trace"
"""A field of a reasoning item that no documentation knows."""
_ODD_VALUE = Fragment('{"steps":5.0,"Δ":1E+2,"a":{"z":1,"b":-0.0},"note":"n\u00e4ive \\u2028"}')


def produce(
    sim: ResponsesSimulator, exchange: Exchange, create: Create, pieces: Iterable[Piece]
) -> list[Out]:
    """Turn what the script does into items, and add what the server does by itself."""
    return sim.add_oddities(
        exchange, _plain(sim, exchange, create, pieces), ITEMS, EMITS, create.body
    )


def _plain(
    sim: ResponsesSimulator, exchange: Exchange, create: Create, pieces: Iterable[Piece]
) -> list[Out]:
    out: list[Out] = []
    pieces = list(_spread(list(pieces), sim.row, exchange, create.effort))
    for at, piece in enumerate(pieces):
        name = sim.mac("item", exchange.serial, str(at)).hex()[:50]
        if isinstance(piece, Think):
            out.append(_reasoning(sim, create, piece.text, name, out))
        elif isinstance(piece, Say):
            busy = any(isinstance(later, Use) for later in pieces[at:])
            out.append(
                _message(sim.row, piece.text, name, "commentary" if busy else "final_answer")
            )
        else:
            out.append(_call(piece, name))
    return out


def thought_of(row: Row, item: Item) -> str:
    """The form in which a returned reasoning item is compared with the emitted one."""
    if row.style is None:
        parts = item.value.get("content") or ()
        return "".join(part.get("text", "") for part in parts if isinstance(part, dict))
    kept = {
        key: raw
        for key, raw in fields(item.raw).items()
        if key not in ("id", "status") and raw != b"null"
    }
    if ODD in kept:  # to the letter, order of keys and spelling of numbers included
        text = ",".join(f"{key}:{letter(raw)}" for key, raw in kept.items())
    else:
        text = plain({key: decode(raw) for key, raw in kept.items()})
    # Without a blob nothing else tells two thoughts with an empty summary apart.
    return text if "encrypted_content" in kept else f"{item.id}:{text}"


def slot_of(before: Iterable[str]) -> str:
    """Where a thought stands, from the kinds of the items before it in its turn."""
    kinds = list(before)
    return f"{kinds.count('function_call')}{'t' if 'message' in kinds else ''}"


def _spread(
    pieces: list[Piece], row: Row, exchange: Exchange, effort: str | None
) -> Iterable[Piece]:
    """Leave out, cut in two or repeat thoughts, as this server does."""
    if effort == "none":
        yield from (piece for piece in pieces if not isinstance(piece, Think))
        return
    last, before = exchange.serial, None
    for at, piece in enumerate(pieces):
        if isinstance(piece, Think):
            last = piece.text
            if exchange.turn % 6 == 1 and len(last) > 1:  # two reasoning items in a row
                yield Think(last[: len(last) // 2])
                piece = Think(last[len(last) // 2 :])  # noqa: PLW2901
        elif row.style is None and not isinstance(before, Think):
            yield Think(f"{last}({at})")  # DeepSeek: one before each call and each message
        yield piece
        before = piece


def _reasoning(
    sim: ResponsesSimulator, create: Create, text: str, name: str, before: list[Out]
) -> Out:
    count = len(sim.emitted) + sum(one.kind == "reasoning" for one in before)
    slot = slot_of(one.kind for one in before)
    key = f"rs_{name}"
    value: dict[str, Any]
    if sim.row.style is None:
        value = {
            "id": key,
            "type": "reasoning",
            "summary": [],
            "content": [{"type": "reasoning_text", "text": text}],
            "status": "completed",
        }
        return Out(key, "reasoning", value, text, slot=slot)
    told = text.strip()
    summary = ((), (f"**Plan**\n\n{told}",), (f"**One**\n\n{told}", "**Two**\n\nThen the rest."))
    parts = [{"type": "summary_text", "text": one} for one in summary[count % 3]]
    blob = sim.blob("reasoning", key, len(text)) if create.included or not sim.row.asked else None
    if count % 3 == 2 and sim.odd:
        value = {
            "summary": parts,
            ODD: _ODD_VALUE,
            "encrypted_content": blob,
            "type": "reasoning",
            "id": key,
        }
    else:
        value = {"id": key, "type": "reasoning", "encrypted_content": blob, "summary": parts}
    if blob is None:
        del value["encrypted_content"]
    return Out(key, "reasoning", value, "", summary[count % 3], slot)


def _message(row: Row, text: str, name: str, phase: str) -> Out:
    part = {"type": "output_text", "annotations": [], "logprobs": [], "text": text}
    value: dict[str, Any] = {
        "id": f"msg_{name}",
        "type": "message",
        "status": "completed",
        "content": [part],
        "role": "assistant",
    }
    if row.pairing:
        # developers.openai.com, "phase": to be kept and sent back on every assistant message.
        value["phase"] = phase
    return Out(value["id"], "message", value, text)


def _call(use: Use, name: str) -> Out:
    value = {
        "id": f"fc_{name}",
        "type": "function_call",
        "status": "completed",
        "arguments": use.arguments,
        "call_id": f"call_{name[-24:]}",
        "name": use.name,
    }
    return Out(value["id"], "function_call", value, use.arguments)
