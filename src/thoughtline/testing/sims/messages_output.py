"""What the model of a Messages server produces: blocks, and the events that stream them.

Older models redact a thought now and then, alone or beside another one. Newer ones show nothing of
it by default: an empty text whose signature holds everything.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from thoughtline.testing.sims.messages_binding import Claims, Prefix, digest
from thoughtline.testing.sims.messages_config import Config
from thoughtline.testing.sims.messages_input import THOUGHTS, Block, Call
from thoughtline.testing.sims.messages_oddities import BLOCKS, EMITS, Extra
from thoughtline.testing.sims.messages_rows import Row
from thoughtline.testing.sims.spelling import Fragment, plain, write
from thoughtline.testing.sims.values import Piece, Say, Think, Use, decode, deltas

if TYPE_CHECKING:
    from thoughtline.testing.sims.base import Exchange
    from thoughtline.testing.sims.messages import MessagesSimulator


_USES = ("tool_use", "server_tool_use", "mcp_tool_use")


class Made(NamedTuple):
    """One block of an answer."""

    block: Block
    """Its JSON; the input of a tool as it is spelled."""
    streamed: str = ""
    """Text or JSON that comes in deltas."""
    slot: str = ""
    """Where a thought stands among the others."""


class Blank(NamedTuple):
    """A thought that will be redacted."""

    text: str


def produce(
    sim: MessagesSimulator,
    exchange: Exchange,
    call: Call,
    config: Config,
    pieces: Sequence[Piece],
    *,
    last: str,
) -> list[Made]:
    """Turn what the script does into blocks; `last` is the latest thought that counted."""
    prefix = Prefix(call.body)
    for message in call.messages:
        prefix.follow(message)
    prefix.open("assistant")
    spread = list(_spread(pieces, sim.row, exchange.turn)) if config.on else []
    plan = spread or [piece for piece in pieces if not isinstance(piece, Think)]
    plan = sim.add_oddities(exchange, plan, BLOCKS, EMITS, call.body)
    count = sum(isinstance(piece, Think | Blank) for piece in plan)
    made: list[Made] = []
    for piece in plan:
        if isinstance(piece, Think | Blank):
            claims = Claims(
                kind="thinking" if isinstance(piece, Think) else "redacted_thinking",
                name="",
                index=sum(one.block["type"] in THOUGHTS for one in made),
                count=count,
                calls=sum(one.block["type"] == "tool_use" for one in made),
                text=digest(piece.text if isinstance(piece, Think) and config.shown else ""),
                family=call.model.family,
                account=sim.account_of(exchange),
            )
            claims = _bind(claims, exchange.serial, call, prefix, last)
            last = claims.name
            made.append(_thought(sim, piece, claims, config, made))
        else:
            made.append(_visible(sim, exchange, piece, len(made)))
            prefix.add(_parsed(made[-1].block))
    return made


def value_of(row: Row, block: Block) -> str:
    """The form in which a returned thought is compared with the emitted one."""
    if row.binding == "none":
        return str(block.get("thinking", ""))
    names = ("type", "thinking", "signature", "data")
    return plain({name: block[name] for name in names if name in block})


def slot_of(before: Sequence[Block]) -> str:
    """Where a thought stands: calls before it, and whether there is text before it."""
    kinds = [block["type"] for block in before]
    return f"{kinds.count('tool_use')}{'t' if 'text' in kinds else ''}"


def events(message: dict[str, Any], made: Sequence[Made], surrogates: bool) -> Iterator[Block]:
    """The stream of a whole answer."""
    usage = message["usage"]
    empty: Block = {"content": [], "stop_reason": None, "usage": {**usage, "output_tokens": 1}}
    yield {"type": "message_start", "message": {**message, **empty}}
    yield {"type": "ping"}
    for index, one in enumerate(made):
        yield from _block_events(one, index, surrogates)
    stop = {"stop_reason": message["stop_reason"], "stop_sequence": None}
    output = {"output_tokens": usage["output_tokens"]}
    yield {"type": "message_delta", "delta": stop, "usage": output}
    yield {"type": "message_stop"}


def _spread(pieces: Sequence[Piece], row: Row, turn: int) -> Iterator[Piece | Blank]:
    """Redact a thought now and then, as older models do."""
    for piece in pieces:
        if row.binding != "text" or not isinstance(piece, Think) or turn % 5 != 3:
            yield piece
        if row.binding == "text" and isinstance(piece, Think) and turn % 5 in (1, 3):
            yield Blank(piece.text)


def _bind(claims: Claims, serial: str, call: Call, prefix: Prefix, last: str) -> Claims:
    claims = msgspec.structs.replace(claims, name=f"{serial}/{claims.index}")
    if not call.model.binds:
        return claims
    return msgspec.structs.replace(
        claims,
        system=prefix.system,
        tools=prefix.tools,
        messages=prefix.messages,
        before=last,
    )


def _thought(
    sim: MessagesSimulator,
    piece: Think | Blank,
    claims: Claims,
    config: Config,
    made: Sequence[Made],
) -> Made:
    slot = slot_of([one.block for one in made])
    sealed = sim.sign(claims, len(piece.text))
    if isinstance(piece, Blank):
        return Made({"type": "redacted_thinking", "data": sealed}, slot=slot)
    shown = piece.text if config.shown else ""
    block = {"type": "thinking", "thinking": shown, "signature": sealed}
    return Made(block, shown, slot)


def _visible(sim: MessagesSimulator, exchange: Exchange, piece: Say | Use | Extra, at: int) -> Made:
    if isinstance(piece, Extra):
        return Made(piece.block, _streamed(piece.block))
    if isinstance(piece, Say):
        return Made({"type": "text", "text": piece.text}, piece.text)
    name = sim.mac("tool", exchange.serial, str(at)).hex()[:24]
    block = {
        "type": "tool_use",
        "id": f"toolu_{name}",
        "name": piece.name,
        "input": Fragment(piece.arguments),
    }
    return Made(block, piece.arguments)


def _streamed(block: Block) -> str:
    """What of a block comes in deltas."""
    if "input" in block:
        return write(block["input"]).decode()
    return str(block["text"]) if block["type"] == "text" else ""


def _parsed(block: Block) -> Block:
    """The block as a client will read it."""
    if block["type"] != "tool_use":
        return block
    return {**block, "input": decode(block["input"].encode())}


def _block_events(one: Made, index: int, surrogates: bool) -> Iterator[Block]:
    block, at = one.block, {"index": index}
    kind = "tool_use" if block["type"] in _USES else block["type"]
    cited = block.get("citations") or ()
    start = {
        "text": {**block, "text": "", **({"citations": []} if cited else {})},
        "thinking": {**block, "thinking": "", "signature": ""},
        "tool_use": {**block, "input": {}},
        "compaction": {**block, "content": None},
    }.get(kind, block)
    yield {"type": "content_block_start", **at, "content_block": start}
    name, field = {
        "text": ("text_delta", "text"),
        "thinking": ("thinking_delta", "thinking"),
        "tool_use": ("input_json_delta", "partial_json"),
    }.get(kind, ("", ""))
    for piece in deltas(one.streamed, surrogates=surrogates):
        yield {"type": "content_block_delta", **at, "delta": {"type": name, field: piece}}
    last = [{"type": "citations_delta", "citation": one} for one in cited]
    if kind == "thinking":
        last = [{"type": "signature_delta", "signature": block["signature"]}]
    elif kind == "compaction":
        last = [{"type": "compaction_delta", "content": block["content"]}]
    for delta in last:
        yield {"type": "content_block_delta", **at, "delta": delta}
    yield {"type": "content_block_stop", **at}
