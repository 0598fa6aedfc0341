"""The `generateContent` dialect: contents are lists of parts, and any part may have a signature.

A signature is a thought that belongs to the part it stands on; a part with `thought: true`, or one
that is nothing but a signature, is a thought of its own. The model and whether to stream are said
in the URL and not in the body. Consecutive `model` contents are one output: Google's own SDK sends
back every chunk of a stream as a content.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar
from urllib.parse import unquote

from thoughtline.clock import Clock
from thoughtline.dialects import splice
from thoughtline.dialects.answers import AnswerHead, AnswerWriter
from thoughtline.dialects.base import (
    Dialect,
    PathMatch,
    Reader,
    Request,
    listed_names,
)
from thoughtline.dialects.content import blob, session_hints
from thoughtline.dialects.error_bodies import google_error
from thoughtline.dialects.gemini import params as gemini_params
from thoughtline.dialects.gemini import patch as gemini_patch
from thoughtline.dialects.gemini.answer import GeminiAnswerWriter
from thoughtline.dialects.gemini.parts import (
    SEPARATE,
    PartRun,
    member,
    merged_part,
    part_blob,
    result_content,
    runs,
    signature,
    text,
)
from thoughtline.dialects.gemini.reader import GeminiReader
from thoughtline.dialects.gemini.write import written_input, written_output, written_tool
from thoughtline.dialects.limits import check_parts
from thoughtline.dialects.model_lists import GOOGLE
from thoughtline.dialects.params import ParamFields, RequestParams, ToolSpec
from thoughtline.dialects.thoughts import make_thought
from thoughtline.dialects.token_counts import TokenCount
from thoughtline.dialects.upstream_errors import UpstreamError
from thoughtline.dialects.values import sequence, string
from thoughtline.errors import Unreadable
from thoughtline.log.capabilities import Capabilities
from thoughtline.log.parts import Call, Carrier, Origin, Part, Result, Text
from thoughtline.log.turns import Turn

_METHOD = re.compile(r"(?::|%3[Aa])([a-zA-Z]+)$")  # behind the model, which may have colons
_STREAMS = {"generateContent": False, "streamGenerateContent": True}
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


class Gemini(Dialect):
    """The `generateContent` dialect."""

    name = "gemini"
    path_prefix = "/v1beta/"
    always_versioned = True
    model_places = (("modelVersion",),)
    credential_header = "x-goog-api-key"
    models_path = "/v1beta/models"
    models_query = "pageSize=1000"  # else 50
    model_shape = GOOGLE
    base_url_variable = "GOOGLE_GEMINI_BASE_URL"
    history_member = "contents"
    content_member = "parts"
    calls_member = "parts"
    signature_carrier = Carrier.SIGNATURE
    effort_members: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "generationConfig": ("thinkingConfig",)
    }
    _edits = staticmethod(gemini_patch.edits)
    token_count = TokenCount(
        path="/v1beta/models/{model}:countTokens",
        member="totalTokens",
        wrapper="generateContentRequest",
    )
    stream_end = re.compile(rb"finish(?:Reason|_reason)")
    ends_once = False  # a model that has run code goes on
    operation = "generate_content"

    def model_names(self, body: bytes) -> list[str]:
        return [name.removeprefix("models/") for name in listed_names(body, "models", "name")]

    def request_path(self, model: str, *, stream: bool = True) -> str:
        method = "streamGenerateContent?alt=sse" if stream else "generateContent"
        return f"/v1beta/models/{model}:{method}"

    def match_path(self, path: str) -> PathMatch | None:
        rest = path.partition("/models/")[2]
        method = _METHOD.search(rest)
        if method is None or not method.start():
            return None
        stream = _STREAMS.get(method[1])
        return PathMatch(
            generates=stream is not None,
            counts=method[1] == "countTokens",
            model=unquote(rest[: method.start()]),
            stream=stream,
        )

    def read(self, body: bytes) -> Request:
        document = splice.loads(body)
        if not isinstance(document, dict) or not isinstance(document.get("contents"), list):
            raise Unreadable("expected a JSON object with a list under `contents`")
        try:
            history = document["contents"]
            parts = check_parts(history, len(body))
            turns, anchors = _turns(history)
        except RecursionError:
            raise Unreadable("nested too deeply to be read") from None
        return Request(
            body=body,
            tools=_tools(document.get("tools")),
            thinking=self.thinking_switch(document),
            turns=tuple(turns),
            hints=session_hints(document),
            anchors=tuple(anchors),
            parts=parts,
        )

    def thinking_switch(self, members: Mapping[str, Any]) -> bool | None:
        config = member(member(members, "generationConfig"), "thinkingConfig")
        budget = member(config, "thinkingBudget")
        if isinstance(budget, int) and not isinstance(budget, bool):
            return budget != 0
        asked = member(config, "thinkingLevel") or member(config, "includeThoughts")
        return True if asked else None

    def write(
        self,
        turns: Sequence[Turn],
        *,
        model: str,
        system: str = "",
        tools: Sequence[ToolSpec] = (),
        stream: bool = True,
        fields: Mapping[str, Any] | None = None,
        cache_breakpoints: bool = False,
    ) -> bytes:
        contents: list[Any] = []
        before: Sequence[Part] = ()
        for turn in turns:
            if parts := written_input(turn.input, before):
                contents.append({"role": "user", "parts": parts})
            own = turn.target is None or turn.target.dialect == self.name
            if parts := written_output(turn.output, own=own):
                contents.append({"role": "model", "parts": parts})
            before = turn.output
        document: dict[str, Any] = {"contents": contents}
        if system:
            document["systemInstruction"] = {"parts": [{"text": system}]}
        if tools:
            declared = [written_tool(tool) for tool in tools]
            document["tools"] = [{"functionDeclarations": declared}]
        return splice.dumps(document | dict(fields or {}))

    def params(self, request: Request) -> RequestParams:
        return gemini_params.read_params(request)

    def param_fields(self, params: RequestParams, takes: Capabilities) -> ParamFields:
        return gemini_params.write_fields(params, takes)

    def answer_writer(self, head: AnswerHead) -> AnswerWriter:
        return GeminiAnswerWriter(head)

    def reader(self, *, stream: bool, clock: Clock, origin: Origin, sent: int) -> Reader:
        return GeminiReader(stream=stream, clock=clock, origin=origin, sent=sent)

    def streams_array(self, query: str) -> bool:
        return "alt=sse" not in query.split("&")

    def upstream_error(self, error: UpstreamError) -> bytes:
        return google_error(error)

    def error(self, status: int, message: str, *, code: str = "") -> bytes:
        name = _STATUSES.get(status, "INVALID_ARGUMENT" if status < 500 else "INTERNAL")
        error: dict[str, Any] = {"code": status, "message": message, "status": name}
        if code:
            info = {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": code}
            error["details"] = [info]
        return splice.dumps({"error": error})


def _turns(contents: list[Any]) -> tuple[list[Turn], list[tuple[int, ...]]]:
    """Return the turns, and for each the contents that its output stands in."""
    turns: list[Turn] = []
    anchors: list[tuple[int, ...]] = []
    input_parts: list[Part] = []
    output: list[list[Any]] = []  # that is being read, content by content
    places: list[int] = []
    for index, content in enumerate([*contents, {}]):
        if isinstance(content, dict) and content.get("role") == "model":
            output.append(sequence(content.get("parts")))
            places.append(index)
            continue
        if places:
            turns.append(Turn(input=tuple(input_parts), output=tuple(_output(output))))
            anchors.append(tuple(places))
            input_parts, output, places = [], [], []
        input_parts += _input(content)
    if input_parts:
        turns.append(Turn(input=tuple(input_parts)))
        anchors.append(())
    return turns, anchors


def _output(contents: list[list[Any]]) -> list[Part]:
    return [part for run in runs(contents) for part in _run(run)]


def _run(run: PartRun) -> list[Part]:
    first = run.parts[0]
    if run.kind in SEPARATE:
        raw = merged_part(splice.dumps(first), [text(part) for part in run.parts], run.parts[-1])
        return [make_thought(Carrier.PART, splice.loads(raw), raw.decode())]
    part: Part
    if run.kind == "text":
        part = Text(text="".join(part["text"] for part in run.parts))
    elif run.kind == "call":
        part = _call(member(first, "functionCall"))
    else:
        part = part_blob(first)
    signed = signature(first)
    return [make_thought(Carrier.SIGNATURE, signed), part] if signed else [part]


def _call(call: dict[str, Any]) -> Call:
    args = call.get("args")
    return Call(
        name=string(call.get("name")),
        arguments=splice.dumps(args).decode() if args is not None else "{}",
        id=string(call.get("id")),
    )


def _input(content: Any) -> list[Part]:
    if not isinstance(content, dict):
        return [blob("unknown", content)]
    parts: list[Part] = []
    for part in sequence(content.get("parts")):
        answer = member(part, "functionResponse")
        if isinstance(answer, dict):
            parts += _result(answer)
        elif isinstance(part, dict) and isinstance(part.get("text"), str):
            parts.append(Text(text=part["text"]))
        else:
            parts.append(part_blob(part))
    return parts


def _result(answer: dict[str, Any]) -> list[Part]:
    content, error = result_content(answer.get("response"))
    id, name = string(answer.get("id")), string(answer.get("name"))
    result = Result(content=content, call=id, name=name, error=error)
    return [result, *map(part_blob, sequence(answer.get("parts")))]


def _tools(tools: Any) -> bool:
    declared = tools if isinstance(tools, list) else [tools]
    return any(bool(member(tool, "functionDeclarations")) for tool in declared)
