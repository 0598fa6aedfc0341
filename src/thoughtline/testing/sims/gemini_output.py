"""What Gemini produces: parts, and the chunks that stream them.

The signature of a thought rides on what comes next: on the first function call of a step, on a text
part, or, when text is streamed, on an empty one after it. Summaries of thoughts are parts of their
own, for those who want them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from thoughtline.testing.sims.gemini_oddities import EMITS, PARTS, UNSIGNED, Made, Part
from thoughtline.testing.sims.spelling import Fragment
from thoughtline.testing.sims.values import Piece, Say, Think, Use, deltas

if TYPE_CHECKING:
    from thoughtline.testing.sims.base import Exchange
    from thoughtline.testing.sims.gemini import GeminiSimulator
    from thoughtline.testing.sims.gemini_input import Call


def produce(
    sim: GeminiSimulator, exchange: Exchange, pieces: Sequence[Piece], call: Call
) -> list[Made]:
    """Turn what the script does into parts, and add what the server does by itself."""
    plain = _plain(sim, exchange, pieces, told=call.told)
    made = sim.add_oddities(exchange, plain, PARTS, EMITS, call.body)
    return [
        one._replace(signature=sim.sign(exchange, 1000 + at)) if one.signature == UNSIGNED else one
        for at, one in enumerate(made)
    ]


def _plain(
    sim: GeminiSimulator, exchange: Exchange, pieces: Sequence[Piece], *, told: bool
) -> list[Made]:
    """Turn what the script does into parts."""
    made: list[Made] = []
    part: Part
    pending, calls = "", 0
    for at, piece in enumerate(pieces):
        if isinstance(piece, Think):
            pending = sim.sign(exchange, at)
            if told:
                made.append(Made({"text": f"**Summary**\n\n{piece.text}", "thought": True}))
        elif isinstance(piece, Say):
            kept = pending if _waits(pieces[at:]) else ""
            made.append(_made({"text": piece.text}, "" if kept else pending, "text"))
            pending = kept
        else:
            # Every step signs its first call, however little was thought.
            signature = pending or ("" if calls else sim.sign(exchange, at))
            part = {"functionCall": _call(sim, exchange, piece.name, piece.arguments, at)}
            made.append(_made(part, signature, f"call:{calls}"))
            pending, calls = "", calls + 1
    if pending:  # a thought that nothing came of
        made.append(_made({"text": ""}, pending, "text"))
    return made


def whole(made: Sequence[Made]) -> list[Part]:
    """The parts of an answer in one piece."""
    return [_signed(one.part, one.signature) for one in made]


def pieces(made: Sequence[Made], surrogates: bool) -> Iterator[Part]:
    """The parts of a streamed answer; each is a chunk."""
    for one in made:
        if "text" not in one.part:
            yield _signed(one.part, one.signature)
            continue
        for delta in deltas(one.part["text"], surrogates=surrogates):
            yield {**one.part, "text": delta}
        if one.signature:
            yield {"text": "", "thoughtSignature": one.signature}


def _waits(rest: Sequence[Piece]) -> bool:
    """A call comes before the next thought: the signature rides on it, not on the text."""
    kinds = [type(piece) for piece in rest if not isinstance(piece, Say)]
    return kinds[:1] == [Use]


def _made(part: Part, signature: str, slot: str) -> Made:
    return Made(part, signature, slot if signature else "")


def _signed(part: Part, signature: str) -> Part:
    return {**part, "thoughtSignature": signature} if signature else part


def _call(sim: GeminiSimulator, exchange: Exchange, name: str, args: str, at: int) -> Part:
    call: Part = {"name": name, "args": Fragment(args)}
    if sim.ids:
        call["id"] = sim.mac("call", exchange.serial, str(at)).hex()[:8]
    return call
