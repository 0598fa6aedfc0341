"""One canonical form for what clients send back in many spellings.

Clients strip thoughts, trim whitespace, re-serialise arguments, rewrite ids, turn strings into
parts and `null` into `""`, drop the text beside tool calls, split and merge messages. `visible` is
what all of them keep: text, calls (name and canonical arguments) and results, without thoughts,
ids, cache markers and system prompt; where an output has calls, only they count, and parallel ones
in any order; where it has text, a server's own tools do not. It is the same for capture and for
look-up, and for every dialect.
"""

import json
import re
from collections.abc import Iterable, Sequence
from math import isfinite
from typing import Any

import msgspec

from thoughtline.log.parts import Blob, Call, Part, Result, Text


def _number(text: str) -> int | float | str:
    """Read a number as JavaScript does: a float, written as an integer where it is integral."""
    value = float(text)
    if value.is_integer() and abs(value) < 2**63:
        return int(value)
    return value if isfinite(value) else text


_arguments = msgspec.json.Decoder(float_hook=_number)
_sorted = msgspec.json.Encoder(order="sorted")
_first = json.JSONDecoder(strict=False)
_ZEROS, _LONG = bytes.maketrans(b"123456789", b"000000000"), b"0" * 16


def canonical_arguments(text: str) -> bytes:
    """Return a call's arguments as canonical JSON: key order and number spelling do not count."""
    try:
        data = text.encode()
        if _LONG not in data.translate(_ZEROS):  # numbers that a float can hold
            value = _arguments.decode(data or b"null")
            return b"{}" if value is None else _sorted.encode(value)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        pass  # parsed leniently below
    try:
        value = _lenient(plain_arguments(text)) if text.strip() else None
        return b"{}" if value is None else encoded(canonical_json(value))
    except (ValueError, RecursionError):
        return encoded(text.strip())


def plain_arguments(arguments: str) -> str:
    """Return a call's arguments as an object: some servers say `null` for none, or `{}{}`."""
    if "}{" not in arguments:
        return "" if arguments == "null" else arguments
    try:
        _, end = _first.raw_decode(arguments)
    except (ValueError, RecursionError):
        return arguments
    once = arguments[:end]
    return once if once * (len(arguments) // end) == arguments else arguments


def _lenient(text: str) -> Any:
    """Parse JSON that has a lone surrogate, a raw line break or a number too long for a float."""
    return json.loads(text, parse_float=_number, parse_int=_number, strict=False)


def canonical_json(value: Any) -> str:
    """Write any JSON value with sorted keys and no spaces. Raises `RecursionError` if too deep."""
    try:
        return _sorted.encode(value).decode()
    except UnicodeEncodeError:  # a lone surrogate
        return json.dumps(value, sort_keys=True, separators=(",", ":"))


_INLINE = re.compile(
    r"<(think|thinking|thinking-content-[0-9a-f]+)>.*?</\1>\s*", re.DOTALL | re.IGNORECASE
)
_SPACE = re.compile(r"\s*")

_WHITE = "".join(chr(code) for code in range(0x3001) if chr(code).isspace()) + "\ufeff"


def trimmed(text: str) -> str:
    """Remove outer whitespace, as Python and JavaScript define it."""
    return text.strip(_WHITE) if "\ufeff" in text else text.strip()


def without_inline_thoughts(text: str) -> str:
    """Remove the `<think>` blocks that some clients keep in an assistant's text."""
    text = trimmed(text)
    if "<" not in text:  # mostly there is none
        return text
    start = 0
    while match := _INLINE.match(text, start):
        start = match.end()
    text = trimmed(text[start:]) if start else text
    return _cut_think_blocks(text) if "</think>" in text else text


def _cut_think_blocks(text: str) -> str:
    """Remove `<think>` blocks within a text, each with the whitespace around it."""
    kept: list[str] = []
    start = 0
    while (at := text.find("<think>", start)) >= 0 and (end := text.find("</think>", at)) >= 0:
        kept.append(text[start:at].rstrip())
        start = _SPACE.match(text, end + len("</think>")).end()  # type: ignore[union-attr]
    return "".join([*kept, text[start:]])


def encoded(text: str) -> bytes:
    """Return a text as UTF-8, also where it has a lone surrogate."""
    try:
        return text.encode()
    except UnicodeEncodeError:  # a lone surrogate
        return text.encode("utf-8", "surrogatepass")


def joined(tag: bytes, pieces: Iterable[bytes]) -> bytes:
    """Join pieces behind a tag so that no other pieces give the same bytes."""
    out = [tag]
    for piece in pieces:
        out.append(b"%d:" % len(piece))
        out.append(piece)
    return b"".join(out)


def visible(parts: Sequence[Part], *, is_input: bool = False) -> bytes:
    """Return what every client sends back of one side of a turn, in one canonical form.

    The text of an input counts as it is; an output's may have inline thoughts, which do not count.
    Nor does the order of parallel calls.
    """
    if len(parts) == 1:
        return visible_part(parts[0], is_input)
    return visible_parts(parts, is_input)


def visible_part(part: Part, is_input: bool) -> bytes:
    """Return the canonical form of a side that has a single part: the usual case."""
    if type(part) is Text:
        text = part.text
        text = text.strip(_WHITE) if "\ufeff" in text else text.strip()
        if not is_input and "<" in text:
            text = without_inline_thoughts(text)
        try:
            data = text.encode()
        except UnicodeEncodeError:
            data = encoded(text)
        return b"v%d:%b1:|" % (len(data), data)
    if type(part) is Call:
        name, arguments = visible_call(part)
        return b"c%d:%b%d:%b" % (len(name), name, len(arguments), arguments)
    if type(part) is Result:
        data = encoded(trimmed(part.content))
        return b"v0:%d:%b1:|" % (len(data), data)
    return visible_parts((part,), is_input)


def visible_parts(parts: Sequence[Part], is_input: bool) -> bytes:
    """Return the canonical form of a side that has any number of parts."""
    calls: list[tuple[bytes, bytes]] = []
    results: list[bytes] = []
    blobs: list[bytes] = []
    texts: list[str] = []
    for part in parts:
        kind = type(part)
        if kind is Text:
            texts.append(part.text)  # type: ignore[union-attr]
        elif kind is Call:
            calls.append(visible_call(part))  # type: ignore[arg-type]
        elif kind is Result:
            results.append(encoded(trimmed(part.content)))  # type: ignore[union-attr]
        elif kind is Blob:
            blobs.append(encoded(part.digest))  # type: ignore[union-attr]
    if calls:
        return visible_calls(sorted(calls))
    text = "".join(texts)
    if blobs and not is_input and trimmed(text):
        blobs = []  # what a server's tools gave: clients of other dialects never had it
    if not results and not blobs:
        return visible_part(Text(text=text), is_input)
    if len(results) > 1:
        results = list(dict.fromkeys(results))  # some clients repeat them on resume
    data = encoded(trimmed(text) if is_input else without_inline_thoughts(text))
    return joined(b"v", [data, *results, b"|", *blobs])


def visible_call(call: Call) -> tuple[bytes, bytes]:
    """Return what counts of a call: its name and its arguments."""
    return encoded(call.name), canonical_arguments(call.arguments)


def visible_calls(calls: Sequence[tuple[bytes, bytes]]) -> bytes:
    """Return the canonical form of an output that has these calls, in this order."""
    return joined(b"c", [piece for call in calls for piece in call])
