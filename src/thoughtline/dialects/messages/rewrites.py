"""Last edits of a finished Messages body, for endpoints with demands of their own.

Each one edits only what it must and gives back the very same object where there is nothing to do,
so that everything else keeps its bytes.
"""

from collections.abc import Callable
from typing import Any

from thoughtline.dialects import splice
from thoughtline.dialects.base import Rewrites
from thoughtline.dialects.content import joined_text
from thoughtline.dialects.messages.citations import drop_foreign_citations
from thoughtline.dialects.messages.patch import THINKING
from thoughtline.dialects.splice import Span


def drop_clear_thinking(body: bytes) -> bytes:
    """Remove the wish to clear thinking from a body that does not think (claude-code#11971)."""
    if b'"disabled"' not in body:
        return body
    top = splice.members(body)
    switch, place = top.get("thinking"), top.get("context_management")
    if switch is None or place is None:
        return body
    thinking = splice.loads(body[switch.value : switch.end])
    if not isinstance(thinking, dict) or thinking.get("type") != "disabled":
        return body
    asked = splice.loads(body[place.value : place.end])
    edits = asked.get("edits") if isinstance(asked, dict) else None
    if not isinstance(edits, list):
        return body
    kept = [edit for edit in edits if not _clears(edit)]
    if len(kept) == len(edits):
        return body
    raw = splice.dumps({**asked, "edits": kept}) if kept or len(asked) > 1 else None
    return splice.apply(
        body, splice.revise(Span(0, 0, body.rindex(b"}") + 1), top, {"context_management": raw})
    )


def _clears(edit: Any) -> bool:
    return isinstance(edit, dict) and str(edit.get("type", "")).startswith("clear_thinking")


# -- a running tool loop as plain text -----------------------------------------------------------


def flatten_tool_loop(body: bytes) -> bytes:
    """Tell the running tool loop as plain text, in one message of the user.

    Some models go on with a tool loop only after the thoughts that led to its calls. This is the
    last resort when those are lost and thinking cannot be switched off: nothing is lost but form.
    """
    messages = splice.top_level_list(body, "messages")
    start = max(
        (at for at, (_, message) in enumerate(messages) if _is_question(message)), default=-1
    )
    rest = messages[start + 1 :]
    if not any(_blocks(message, "tool_use") for _, message in rest):
        return body
    flat = [block for _, message in rest for block in _flattened(message)]
    raw = splice.dumps({"role": "user", "content": flat})
    return splice.apply(body, [(rest[0][0].start, rest[-1][0].end, raw)])


def _is_question(message: Any) -> bool:
    """Whether a message is a person's, and not a tool's result."""
    user = isinstance(message, dict) and message.get("role") == "user"
    return user and not _blocks(message, "tool_result")


def _blocks(message: Any, type: str) -> list[dict[str, Any]]:
    return [block for block in _content(message) if block.get("type") == type]


def _content(message: Any) -> list[dict[str, Any]]:
    content = message.get("content") if isinstance(message, dict) else None
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    blocks = content if isinstance(content, list) else []
    return [block for block in blocks if isinstance(block, dict)]


def _flattened(message: Any) -> list[dict[str, Any]]:
    flat: list[dict[str, Any]] = []
    for block in _content(message):
        match block.get("type"):
            case kind if kind in THINKING:
                continue
            case "tool_use":
                asked = splice.dumps(block.get("input")).decode()
                flat.append(_text(f"<tool_call name={block.get('name')!r}>{asked}</tool_call>"))
            case "tool_result":
                flat += _result(block)
            case "text" if not block.get("text"):
                continue
            case _:
                flat.append({key: value for key, value in block.items() if key != "cache_control"})
    return flat


def _result(block: dict[str, Any]) -> list[dict[str, Any]]:
    """Return a tool's result as text blocks, and its pictures as they are."""
    content = block.get("content")
    elements = content if isinstance(content, list) else [content]
    texts = [e for e in elements if isinstance(e, str) or _of(e, "text")]
    media = [e for e in elements if isinstance(e, dict) and not _of(e, "text")]
    return [_text(f"<tool_result>{joined_text(texts)}</tool_result>"), *media]


def _of(element: Any, type: str) -> bool:
    return isinstance(element, dict) and element.get("type") == type


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


# -- blocks that stand where they cannot be read -------------------------------------------------


def drop_fallbacks(body: bytes) -> bytes:
    """Remove the marks of a change of model, and the thoughts before the last of them."""
    messages = [message for _, message in splice.top_level_list(body, "messages")]
    marked = [at for at, message in enumerate(messages) if _blocks(message, "fallback")]
    if not marked:
        return body

    def kept(at: int, blocks: list[dict[str, Any]]) -> list[dict[str, Any]]:
        if at > marked[-1]:
            return blocks
        marks = [n for n, block in enumerate(blocks) if block.get("type") == "fallback"]
        last = marks[-1] if at == marked[-1] else len(blocks)
        return [
            block
            for n, block in enumerate(blocks)
            if block.get("type") != "fallback" and (n > last or block.get("type") not in THINKING)
        ]

    return _with_contents(body, kept)


def drop_bare_thoughts(body: bytes) -> bytes:
    """Remove answers that are nothing but a thought."""

    def kept(_at: int, blocks: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return [] if all(block.get("type") in THINKING for block in blocks) else blocks

    return _with_contents(body, kept)


def _with_contents(
    body: bytes, kept: Callable[[int, list[dict[str, Any]]], list[dict[str, Any]]]
) -> bytes:
    """Keep some blocks of the model's messages; one that is left without any is taken out."""
    raws: list[bytes] = []
    messages = splice.top_level_list(body, "messages")
    for at, (span, message) in enumerate(messages):
        raw, blocks = body[span.start : span.end], _content(message)
        said = isinstance(message, dict) and message.get("role") == "assistant" and blocks
        left = kept(at, blocks) if said else blocks
        if said and left != blocks:
            raw = splice.dumps({**message, "content": left}) if left else b""
        raws.append(raw)
    if all(
        raw == body[span.start : span.end] for raw, (span, _) in zip(raws, messages, strict=True)
    ):
        return body
    return splice.with_members(body, {"messages": b"[%s]" % b",".join(filter(None, raws))})


REWRITES = Rewrites(
    drop_clear_thinking=drop_clear_thinking,
    drop_foreign_citations=drop_foreign_citations,
    drop_fallbacks=drop_fallbacks,
    drop_bare_thoughts=drop_bare_thoughts,
    flatten_tool_loop=flatten_tool_loop,
)
