"""Gemini's `generateContent`: contents are lists of parts, and any part may carry a signature.

A signature is a thought that rides on the part after it; a part with `thought: true`, or one that
is nothing but a signature, is a thought of its own. The model and whether to stream are said in
the URL and not in the body. Consecutive `model` contents are one output: Google's own SDK sends
back every chunk of a stream as one. Streams are read in `gemini_reader`.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from thoughtline import keys, splice
from thoughtline.clock import Clock
from thoughtline.dialects import gemini_patch
from thoughtline.dialects.base import Reader, Request, Revision, Tool
from thoughtline.dialects.content import blob, hints
from thoughtline.dialects.gemini_parts import (
    SEPARATE,
    SIGNATURES,
    Run,
    either,
    merged,
    put,
    runs,
    signature,
    text,
)
from thoughtline.dialects.gemini_reader import GeminiReader
from thoughtline.dialects.pairs import answered
from thoughtline.dialects.thoughts import thought
from thoughtline.errors import Unreadable
from thoughtline.parts import Blob, Call, Carrier, Origin, Part, Result, Text, Thought
from thoughtline.turns import Turn

_STATUSES = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    409: "ABORTED",
    413: "INVALID_ARGUMENT",
    429: "RESOURCE_EXHAUSTED",
    499: "CANCELLED",
    500: "INTERNAL",
    501: "UNIMPLEMENTED",
    502: "UNAVAILABLE",
    503: "UNAVAILABLE",
    504: "DEADLINE_EXCEEDED",
}
_WRAPPERS = ("result", "output", "content", "error")


class Gemini:
    """The `generateContent` dialect."""

    name = "gemini"

    def read(self, body: bytes) -> Request:
        document = splice.loads(body)
        if not isinstance(document, dict) or not isinstance(document.get("contents"), list):
            raise Unreadable("expected a JSON object with a list under `contents`")
        try:
            turns, anchors = _turns(document["contents"])
        except RecursionError:
            raise Unreadable("nested too deeply to be read") from None
        return Request(
            body=body,
            tools=_tools(document.get("tools")),
            thinking=_thinking(document),
            turns=tuple(turns),
            hints=hints(document),
            anchors=tuple(anchors),
        )

    def patch(
        self,
        request: Request,
        revisions: Sequence[Revision],
        fields: Mapping[str, bytes | None] | None = None,
    ) -> bytes:
        return gemini_patch.patch(request, revisions, fields or {})

    def write(
        self,
        turns: Sequence[Turn],
        *,
        model: str,
        system: str = "",
        tools: Sequence[Tool] = (),
        stream: bool = True,
        fields: Mapping[str, Any] | None = None,
    ) -> bytes:
        contents: list[Any] = []
        before: Sequence[Part] = ()
        for turn in turns:
            if said := _written_input(turn.input, before):
                contents.append({"role": "user", "parts": said})
            own = turn.target is None or turn.target.dialect == self.name
            if parts := _written_output(turn.output, own=own):
                contents.append({"role": "model", "parts": parts})
            before = turn.output
        document: dict[str, Any] = {"contents": contents}
        if system:
            document["systemInstruction"] = {"parts": [{"text": system}]}
        if tools:
            declared = [_written_tool(tool) for tool in tools]
            document["tools"] = [{"functionDeclarations": declared}]
        return splice.dumps(document | dict(fields or {}))

    def prefixes(self, request: Request) -> Sequence[str]:
        return ()

    def reader(self, *, stream: bool, clock: Clock, origin: Origin, sent: int) -> Reader:
        return GeminiReader(stream=stream, clock=clock, origin=origin, sent=sent)

    def error(self, status: int, message: str, *, code: str = "") -> bytes:
        name = _STATUSES.get(status, "INVALID_ARGUMENT" if status < 500 else "INTERNAL")
        error: dict[str, Any] = {"code": status, "message": message, "status": name}
        if code:
            info = {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": code}
            error["details"] = [info]
        return splice.dumps({"error": error})

    def ping(self) -> bytes:
        return b": keep-alive\n\n"


# -- reading -------------------------------------------------------------------------------------


def _turns(contents: list[Any]) -> tuple[list[Turn], list[tuple[int, ...]]]:
    """The history as turns, and in which contents each one's output stands."""
    turns: list[Turn] = []
    anchors: list[tuple[int, ...]] = []
    heard: list[Part] = []
    said: list[list[Any]] = []  # the output that is being read, content by content
    places: list[int] = []
    for index, content in enumerate([*contents, {}]):
        if isinstance(content, dict) and content.get("role") == "model":
            said.append(_parts(content))
            places.append(index)
            continue
        if places:
            turns.append(Turn(input=tuple(heard), output=tuple(_output(said))))
            anchors.append(tuple(places))
            heard, said, places = [], [], []
        heard += _input(content)
    if heard:
        turns.append(Turn(input=tuple(heard)))
        anchors.append(())
    return turns, anchors


def _parts(content: dict[str, Any]) -> list[Any]:
    parts = content.get("parts")
    return parts if isinstance(parts, list) else []


def _output(contents: list[list[Any]]) -> list[Part]:
    return [part for run in runs(contents) for part in _run(run)]


def _run(run: Run) -> list[Part]:
    first = run.parts[0]
    if run.kind in SEPARATE:
        raw = merged(splice.dumps(first), [text(part) for part in run.parts], run.parts[-1])
        return [thought(Carrier.PART, splice.loads(raw), raw.decode())]
    made: Part
    if run.kind == "text":
        made = Text(text="".join(part["text"] for part in run.parts))
    elif run.kind == "call":
        made = _call(either(first, "functionCall"))
    else:
        made = _blob(first)
    rides = signature(first)
    return [thought(Carrier.SIGNATURE, rides), made] if rides else [made]


def _call(call: dict[str, Any]) -> Call:
    name, args, id = call.get("name"), call.get("args"), call.get("id")
    return Call(
        name=name if isinstance(name, str) else "",
        arguments=splice.dumps(args).decode() if args is not None else "{}",
        id=id if isinstance(id, str) else "",
    )


def _blob(part: Any) -> Blob:
    if not isinstance(part, dict):
        return blob("unknown", part)
    bare = {key: value for key, value in part.items() if key not in SIGNATURES}
    return blob(next(iter(bare), "unknown"), bare)


def _input(content: Any) -> list[Part]:
    if not isinstance(content, dict):
        return [blob("unknown", content)]
    parts: list[Part] = []
    for part in _parts(content):
        answer = either(part, "functionResponse")
        if isinstance(answer, dict):
            parts += _result(answer)
        elif isinstance(part, dict) and isinstance(part.get("text"), str):
            parts.append(Text(text=part["text"]))
        else:
            parts.append(_blob(part))
    return parts


def _result(answer: dict[str, Any]) -> list[Part]:
    """A tool's answer: an object by this API's rule, often only a wrapping of its text."""
    response, id, name = answer.get("response"), answer.get("id"), answer.get("name")
    content, error = "", False
    if isinstance(response, dict) and len(response) == 1:
        ((key, value),) = response.items()
        if key in _WRAPPERS and isinstance(value, str):
            content, error, response = value, key == "error", None
    if response is not None:
        content = response if isinstance(response, str) else keys.canonical(response)
    made = Result(
        content=content,
        call=id if isinstance(id, str) else "",
        name=name if isinstance(name, str) else "",
        error=error,
    )
    media = answer.get("parts")
    return [made, *(_blob(part) for part in (media if isinstance(media, list) else ()))]


def _tools(tools: Any) -> bool:
    declared = tools if isinstance(tools, list) else [tools]
    return any(bool(either(tool, "functionDeclarations")) for tool in declared)


def _thinking(document: dict[str, Any]) -> bool | None:
    config = either(either(document, "generationConfig"), "thinkingConfig")
    budget = either(config, "thinkingBudget")
    if isinstance(budget, int) and not isinstance(budget, bool):
        return budget != 0
    asked = either(config, "thinkingLevel") or either(config, "includeThoughts")
    return True if asked else None


# -- writing -------------------------------------------------------------------------------------


def _written_input(parts: Sequence[Part], before: Sequence[Part]) -> list[Any]:
    calls = [part for part in before if isinstance(part, Call)]
    places = iter(answered(before, parts))
    written: list[Any] = []
    for part in parts:
        if isinstance(part, Result):
            place = next(places)
            name = part.name or (calls[place].name if place is not None else "")
            response: dict[str, Any] = {
                "name": name,
                "response": {"error" if part.error else "result": part.content},
            }
            id = part.call if place is None else calls[place].id
            written.append({"functionResponse": {"id": id, **response} if id else response})
        elif isinstance(part, Text) and part.text:
            written.append({"text": part.text})
        elif isinstance(part, Blob) and part.raw:
            written.append(msgspec.Raw(part.raw))
    return written


def _written_output(parts: Sequence[Part], *, own: bool) -> list[Any]:
    written: list[Any] = []
    rides = ""
    for part in parts:
        if isinstance(part, Thought):
            if part.carrier is Carrier.PART:
                written.append(msgspec.Raw(part.raw))
            elif part.carrier is Carrier.SIGNATURE:
                rides = part.raw
            continue
        raw = _written_part(part, own=own)
        if raw:
            written.append(msgspec.Raw(put(raw, SIGNATURES[0], rides.encode()) if rides else raw))
        rides = ""
    return written


def _written_part(part: Part, *, own: bool) -> bytes:
    if isinstance(part, Text) and part.text:
        return splice.dumps({"text": part.text})
    if isinstance(part, Call):
        call: dict[str, Any] = {"name": part.name, "args": _arguments(part.arguments)}
        return splice.dumps({"functionCall": {"id": part.id, **call} if part.id else call})
    if isinstance(part, Blob) and own:  # what other dialects made is not ours
        return part.raw.encode()
    return b""


def _arguments(text: str) -> Any:
    """A call's arguments as they were emitted; the API takes nothing but an object."""
    try:
        usable = isinstance(splice.loads(text.encode()), dict)
    except (Unreadable, UnicodeEncodeError):
        usable = False
    return msgspec.Raw(text) if usable else {}


def _written_tool(tool: Tool) -> dict[str, Any]:
    declared: dict[str, Any] = {"name": tool.name, "description": tool.description}
    return declared | {"parameters": tool.parameters} if tool.parameters else declared
