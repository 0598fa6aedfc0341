"""Parts of a Gemini content: their kind, in both spellings, and which of them belong together.

Streams cut a text, or a thought's summary, at the borders of chunks, and Google's own SDK sends
every chunk back as a content of its own. So parts that go on across such a border are one run, by
the same rule for what is captured and for what is echoed: plain texts are one text; summaries are
one thought, up to the part that is signed. A signed text is never joined with another, and parts
that came side by side stay apart.
"""

import json
import re
from collections.abc import Iterable, Sequence
from typing import Any

from thoughtline.dialects import splice
from thoughtline.dialects.content import blob, raw_blob
from thoughtline.dialects.reader import Stopwatch
from thoughtline.dialects.splice import Span
from thoughtline.dialects.surrogates import json_string, replace_surrogates
from thoughtline.dialects.values import says_anything
from thoughtline.errors import Unreadable
from thoughtline.log.canonical import canonical_json
from thoughtline.log.events import AssistantMessage, ToolCall
from thoughtline.log.parts import Blob, Call, Carrier, Text

SIGNATURES = ("thoughtSignature", "thought_signature")
"""The keys of a signature: in the API's spelling, and in some clients'."""

_PLAIN = frozenset({"text", "thought", *SIGNATURES})

SEPARATE = ("thought", "seal")
"""Kinds of parts that are thoughts by themselves."""


class _SnakeCase(dict[str, str]):
    """The snake_case twin of a name, worked out once."""

    def __missing__(self, name: str) -> str:
        made = re.sub("[A-Z]", lambda found: "_" + found[0].lower(), name)
        return self.setdefault(name, made)


_SNAKE = _SnakeCase()


class _CamelCase(dict[str, str]):
    """The camelCase twin of a name."""

    def __missing__(self, name: str) -> str:
        return re.sub("_([a-z])", lambda found: found[1].upper(), name)


_CAMEL = _CamelCase()


def member(value: Any, key: str) -> Any:
    """Return a member under the API's camelCase name, or under its snake_case twin."""
    if not isinstance(value, dict):
        return None
    found = value.get(key)
    return value.get(_SNAKE[key]) if found is None else found


def signature(part: Any) -> str:
    """Return a part's signature; empty where it has none."""
    if isinstance(part, dict):
        for key in SIGNATURES:
            if isinstance(found := part.get(key), str) and found:
                return found
    return ""


def part_kind(part: Any) -> str:
    """Return a part's kind: thought, seal (only a signature), text, call, blob or nothing ("")."""
    if not isinstance(part, dict):
        return "blob"
    if part.get("thought") is True:
        return "thought"
    text = part.get("text")
    if isinstance(text, str) and text:
        return "text"
    call = member(part, "functionCall")
    if isinstance(call, dict) and says_anything(call):
        return "call"
    if all(key in _PLAIN or not says_anything(part[key]) for key in part) and not text:
        return "seal" if signature(part) else ""
    return "blob"


def part_blob(part: Any) -> Blob:
    """Return the blob that a part is: code, its result, a call of Google's own tools, media."""
    if not isinstance(part, dict):
        return blob("unknown", part)
    said = {_CAMEL[key]: _camel_case(value) for key, value in part.items() if key not in SIGNATURES}
    return blob(next((key for key in said if said[key]), "unknown"), said)


_WRAPPERS = ("result", "output", "content", "error")


def result_content(response: Any) -> tuple[str, bool]:
    """Return what a tool answered, and whether that is an error.

    It is an object in this API, often only a wrapper of a text.
    """
    if isinstance(response, dict) and len(response) == 1:
        ((key, value),) = response.items()
        if key in _WRAPPERS and isinstance(value, str):
            return value, key == "error"
    if response is None or isinstance(response, str):
        return response or "", False
    return canonical_json(response), False


def _camel_case(value: Any) -> Any:
    """Return an object with its own members in the API's spelling; what is in them is data."""
    return {_CAMEL[key]: inner for key, inner in value.items()} if type(value) is dict else value


def continues(last: str, last_signed: bool, part_kind: str, signed: bool) -> bool:
    """Whether the first part of a chunk goes on where the last one ended."""
    if last != part_kind or last_signed:
        return False
    return part_kind == "thought" or (part_kind == "text" and not signed)


class PartRun:
    """Parts that are one text or thought: their kind, and their positions among all parts."""

    __slots__ = ("kind", "parts", "places", "signed")

    def __init__(self, part_kind: str, signed: bool, place: int, part: Any) -> None:
        self.kind = part_kind
        self.signed = signed
        self.places = [place]
        self.parts = [part]


def runs(contents: Iterable[Sequence[Any]]) -> list[PartRun]:
    """Return the runs of an output's contents, in order; empty parts are in none."""
    found: list[PartRun] = []
    place = -1
    for parts in contents:
        border = True
        for part in parts:
            place += 1
            what, signed = part_kind(part), bool(signature(part))
            if not what:
                continue
            last = found[-1] if found and border else None
            border = False
            if last is not None and continues(last.kind, last.signed, what, signed):
                last.signed = signed
                last.places.append(place)
                last.parts.append(part)
            else:
                found.append(PartRun(what, signed, place, part))
    return found


def text(part: Any) -> str:
    """Return a part's text; empty where it has none."""
    found = part.get("text")
    return found if isinstance(found, str) else ""


def merged_part(raw: bytes, texts: Sequence[str], last: Any) -> bytes:
    """Return a run as one part: the first one's JSON text, all the text, the last signature."""
    if len(texts) == 1:
        return raw
    raw = set_member(raw, "text", json_string("".join(texts)))
    for key in SIGNATURES:
        if last.get(key) == signature(last) != "":
            raw = set_member(raw, key, json_string(last[key]))
    return raw


def set_member(raw: bytes, key: str, value: bytes) -> bytes:
    """Return an object's JSON text with one member set, everything else as it was."""
    try:
        edit = splice.put(Span(0, 0, len(raw)), key, value, splice.members(raw))
    except Unreadable:  # a key twice: the last one counts, as it does for every reader
        return set_member(_encoded_again(raw), key, value)
    return splice.apply(raw, [edit])


def without_signature(raw: bytes) -> bytes:
    """Return a part's JSON text without its signature."""
    try:
        has = splice.members(raw)
    except Unreadable:
        return without_signature(_encoded_again(raw))
    return splice.apply(raw, splice.revise(Span(0, 0, len(raw)), has, dict.fromkeys(SIGNATURES)))


def _encoded_again(raw: bytes) -> bytes:
    """Return the same object, encoded again; an empty one where it is nested too deeply."""
    try:
        return splice.dumps(splice.loads(raw))
    except Unreadable:
        return b"{}"


class PendingRun:
    """A run of parts that is arriving.

    It begins with a part in the provider's own JSON text and may go on in later chunks. In the end
    it is that part with all of its text; fields that are not known keep their bytes.
    """

    __slots__ = ("first", "kind", "last", "raw", "signature_value", "texts", "watch")

    def __init__(self, part: dict[str, Any], raw: bytes) -> None:
        self.kind = part_kind(part)
        self.raw = raw  # of the first part
        self.first = self.last = part
        self.texts = [text(part)]
        self.signature_value = signature(part)
        self.watch: Stopwatch | None = None  # of the thought that it is, or of its signature

    def grow(self, part: dict[str, Any]) -> None:
        """Take in a part of a later chunk that continues the run."""
        self.last = part
        self.texts.append(text(part))
        self.signature_value = signature(part)

    def thought(self) -> tuple[Carrier, str] | None:
        """Return the thought that it is, or its signature, as JSON text."""
        if self.kind in SEPARATE:
            return Carrier.PART, merged_part(self.raw, self.texts, self.last).decode()
        return (
            (Carrier.SIGNATURE, json_string(self.signature_value).decode())
            if self.signature_value
            else None
        )

    def event(self) -> AssistantMessage | ToolCall:
        """Return the canonical event of a run that is no thought."""
        if self.kind == "call":
            return ToolCall(call=self.call())
        if self.kind == "text":
            return AssistantMessage(parts=(Text(text=replace_surrogates("".join(self.texts))),))
        return AssistantMessage(parts=(raw_blob(without_signature(self.raw).decode(), part_blob),))

    def call(self) -> Call:
        """Return the call that it is."""
        call = member(self.first, "functionCall")
        name, id = call.get("name"), call.get("id")
        return Call(
            name=replace_surrogates(name) if isinstance(name, str) else "",
            arguments="{}" if call.get("args") is None else self._arguments(call["args"]),
            id=replace_surrogates(id) if isinstance(id, str) else "",
        )

    def _arguments(self, args: Any) -> str:
        """Return a call's arguments in the provider's own spelling."""
        try:
            part = splice.members(self.raw)
            call = splice.members(self.raw, part.get("functionCall") or part["function_call"])
            span = call["args"]
        except (Unreadable, KeyError):  # a key twice: the last one counts
            return json.dumps(args)
        return self.raw[span.value : span.end].decode()


def raw_parts(data: bytes, place: int, parts: list[Any]) -> list[bytes]:
    """Return a candidate's parts in the provider's spelling; empty for what cannot be read."""
    try:
        candidates = splice.elements(data, splice.members(data)["candidates"])
        content = splice.members(data, candidates[place])["content"]
        spans = splice.elements(data, splice.members(data, content)["parts"])
        raws = [data[span.value : span.end] for span in spans]
    except (Unreadable, KeyError, IndexError):
        raws = [b""] * len(parts)
    return [_readable(raw) or _encoded(part) for raw, part in zip(raws, parts, strict=True)]


def _readable(raw: bytes) -> bytes:
    """Return the JSON text; empty where it is not readable."""
    try:
        splice.loads(raw)
    except Unreadable:
        return b""
    return raw


def _encoded(part: Any) -> bytes:
    try:
        return _readable(json.dumps(part).encode())
    except (ValueError, RecursionError):
        return b""
