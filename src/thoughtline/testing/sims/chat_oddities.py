"""Odd shapes of Chat Completions: pure functions over a whole answer, or over a stream's chunks.

`SHAPES` leave text, calls and thoughts of an answer as they are. `TURNS` change them: an answer has
those only if a test names them. What is sent is a list: chunks or one body as objects, comments
and `[DONE]` as text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from random import Random
from typing import Any

from thoughtline.testing.sims.oddities import Oddity

Frame = dict[str, Any] | str
Frames = list[Frame]
Members = dict[str, Any]

_SAFE = {name: {"filtered": False, "severity": "safe"} for name in ("hate", "self_harm")}
_NAMES = ("reasoning", "reasoning_content")


def _framed(frames: Frames, change: Callable[[Members], Members]) -> Frames:
    return [frame if isinstance(frame, str) else change(frame) for frame in frames]


def _chosen(frames: Frames, change: Callable[[Members], Members]) -> Frames:
    """Change each choice."""
    return _framed(
        frames, lambda frame: {**frame, "choices": [change(one) for one in frame["choices"]]}
    )


def _told(frames: Frames, change: Callable[[Members], Members]) -> Frames:
    """Change each message, or each delta of one."""

    def within(choice: Members) -> Members:
        name = next((one for one in ("message", "delta") if one in choice), "")
        return {**choice, name: change(choice[name])} if name else choice

    return _chosen(frames, within)


def _streamed(frames: Frames) -> bool:
    return len(frames) > 1


def _objects(frames: Frames) -> Iterator[tuple[int, Members]]:
    return ((at, one) for at, one in enumerate(frames) if isinstance(one, dict))


def _finish(frames: Frames) -> int:
    """Where the chunk is that says why the answer ended."""
    return next(
        at
        for at, one in _objects(frames)
        if any(choice["finish_reason"] for choice in one["choices"])
    )


def _bare(frame: Members) -> Members:
    """A chunk that says nothing of its own, as filters send it."""
    return {"id": "", "object": "", "created": 0, "model": "", **frame}


# -- shapes ----------------------------------------------------------------------------------------


def null_members(frames: Frames, _dice: Random) -> Frames:
    """Every member that a serialiser knows is there, most of them null."""
    nothing = {"refusal": None, "annotations": None, "audio": None, "function_call": None}
    lists: Members = {} if _streamed(frames) else {"tool_calls": []}
    return _told(frames, lambda message: {**nothing, **lists, **message})


def zero_members(frames: Frames, _dice: Random) -> Frames:
    """Every member is there with the zero of its type."""
    zeros = {"refusal": "", "name": "", "function_call": {"name": "", "arguments": ""}}
    return _told(frames, lambda message: {**zeros, "tool_calls": [], **message})


def choice_members(frames: Frames, _dice: Random) -> Frames:
    """What servers say beside a message."""
    more = {
        "stop_reason": None,
        "matched_stop": None,
        "token_ids": None,
        "native_finish_reason": None,
    }
    return _chosen(frames, lambda choice: {**choice, **more})


def frame_members(frames: Frames, _dice: Random) -> Frames:
    """What servers say beside the choices."""
    more = {"system_fingerprint": None, "prompt_logprobs": None, "kv_transfer_params": None}
    usage = {"usage": None} if _streamed(frames) else {}
    return _framed(frames, lambda frame: {**more, **usage, **frame})


def filter_results(frames: Frames, _dice: Random) -> Frames:
    """A content filter's findings: before the answer, on each choice, and after its end."""
    said = {"prompt_filter_results": [{"prompt_index": 0, "content_filter_results": _SAFE}]}
    marked = _chosen(frames, lambda choice: {**choice, "content_filter_results": {}})
    if not _streamed(frames):
        return _framed(marked, lambda frame: {**frame, **said})
    offsets = {"check_offset": 0, "start_offset": 0, "end_offset": 8}
    late = {"index": 0, "finish_reason": None, "content_filter_offsets": offsets}
    after = _bare({"choices": [{**late, "content_filter_results": _SAFE}]})
    at = _finish(marked) + 1
    return [_bare({"choices": [], **said}), *marked[:at], after, *marked[at:]]


def padding(frames: Frames, dice: Random) -> Frames:
    """Noise that hides how long a chunk is."""
    letters = "abcdefghijklmnopqrstuvwxyz0123456789"
    if not _streamed(frames):
        return frames
    return _framed(frames, lambda frame: {**frame, "p": letters[: dice.randint(1, len(letters))]})


def obfuscation(frames: Frames, dice: Random) -> Frames:
    """The same under another name."""
    if not _streamed(frames):
        return frames
    return _framed(frames, lambda frame: {**frame, "obfuscation": f"{dice.getrandbits(32):x}"})


def comments(frames: Frames, dice: Random) -> Frames:
    """Comments keep the connection open, also in the middle of an answer."""
    if not _streamed(frames):
        return frames
    return [
        one
        for frame in frames
        for one in ([": keep-alive", frame] if dice.random() < 0.2 else [frame])
    ]


def empty_chunks(frames: Frames, _dice: Random) -> Frames:
    """Chunks without a choice, and deltas without anything."""
    if not _streamed(frames):
        return frames
    first = next(one for _, one in _objects(frames))
    idle = {"index": 0, "delta": {}, "logprobs": None, "finish_reason": None}
    return [{**first, "choices": []}, {**first, "choices": [idle]}, *frames]


def usage_after(frames: Frames, _dice: Random) -> Frames:
    """Tokens are counted behind the end, beside a choice that says nothing."""
    if not _streamed(frames):
        return frames
    usage = next((one["usage"] for _, one in _objects(frames) if one.get("usage")), None)
    at = _finish(frames)
    first = next(one for _, one in _objects(frames))
    counted = usage or {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    idle = {"index": 0, "delta": {"role": "assistant", "content": ""}, "finish_reason": None}
    kept = [
        {name: one for name, one in frame.items() if name != "usage"}
        if isinstance(frame, dict)
        else frame
        for frame in frames
        if not (isinstance(frame, dict) and not frame["choices"] and frame.get("usage"))
    ]
    return [*kept[: at + 1], {**first, "choices": [idle], "usage": counted}, *kept[at + 1 :]]


def x_groq(frames: Frames, dice: Random) -> Frames:
    """Groq's own member: a request id first, and in a stream the usage last."""
    name = f"req_01{dice.getrandbits(96):024x}"
    if not _streamed(frames):
        return _framed(frames, lambda frame: {**frame, "x_groq": {"id": name, "seed": 1}})
    start, end = next(at for at, _ in _objects(frames)), _finish(frames)
    usage = {
        "queue_time": 0.02,
        "prompt_tokens": 21,
        "prompt_time": 0.001,
        "completion_tokens": 31,
        "completion_time": 0.06,
        "total_tokens": 52,
        "total_time": 0.061,
    }
    out = list(frames)
    for at, more in ((start, {}), (end, {"usage": usage})):
        one = out[at]
        if isinstance(one, dict):
            out[at] = {**one, "x_groq": {"id": name, **more}}
    return out


def executed_tools(frames: Frames, _dice: Random) -> Frames:
    """Tools that the server itself has called (Groq's compound systems)."""
    tool = {
        "name": "search",
        "index": 0,
        "type": "search",
        "arguments": '{"query":"weather"}',
        "output": "Title: Weather\nURL: https://example.com/\nContent: mild\n",
        "search_results": {"results": [], "images": None},
    }
    if not _streamed(frames):
        return _told(frames, lambda message: {**message, "executed_tools": [tool]})
    first = next(one for _, one in _objects(frames))
    started = {name: one for name, one in tool.items() if name not in ("output", "search_results")}
    deltas = [{"role": "assistant", "executed_tools": [one]} for one in (started, tool)]
    choices = [{"index": 0, "delta": delta, "finish_reason": None} for delta in deltas]
    return [*({**first, "choices": [choice]} for choice in choices), *frames]


def twin_names(frames: Frames, _dice: Random) -> Frames:
    """The thought under both of its names."""

    def both(message: Members) -> Members:
        name = next((one for one in _NAMES if isinstance(message.get(one), str)), None)
        return {**dict.fromkeys(_NAMES, message[name]), **message} if name else message

    return _told(frames, both)


def repeated_role(frames: Frames, _dice: Random) -> Frames:
    """Every delta says whose it is."""
    return _told(frames, lambda message: {"role": "assistant", **message})


def empty_names(frames: Frames, _dice: Random) -> Frames:
    """Later parts of a call repeat its members, with nothing in them."""

    def filled(message: Members) -> Members:
        calls = message.get("tool_calls")
        return {**message, "tool_calls": [_filled(one) for one in calls]} if calls else message

    return _told(frames, filled) if _streamed(frames) else frames


def _filled(call: Members) -> Members:
    function = {"name": "", **call.get("function", {})}
    return {"id": "", "type": "function", **call, "function": function}


def null_names(frames: Frames, _dice: Random) -> Frames:
    """The same with null."""

    def filled(message: Members) -> Members:
        calls = message.get("tool_calls")
        nulls = {"id": None, "type": None}
        return (
            {
                **message,
                "tool_calls": [
                    {**nulls, **one, "function": {"name": None, **one.get("function", {})}}
                    for one in calls
                ],
            }
            if calls
            else message
        )

    return _told(frames, filled) if _streamed(frames) else frames


def empty_finish(frames: Frames, _dice: Random) -> Frames:
    """An answer that goes on says so with an empty reason."""
    return _chosen(
        frames, lambda choice: {**choice, "finish_reason": choice["finish_reason"] or ""}
    )


def finish_with_delta(frames: Frames, _dice: Random) -> Frames:
    """The last delta says why the answer ended."""
    if not _streamed(frames):
        return frames
    at = _finish(frames)
    end, last = frames[at], frames[at - 1]
    if not isinstance(end, dict) or not isinstance(last, dict) or not last["choices"]:
        return frames
    choice = {**last["choices"][0], "finish_reason": end["choices"][0]["finish_reason"]}
    return [*frames[: at - 1], {**end, "choices": [choice]}, *frames[at + 1 :]]


SHAPES: Mapping[str, Oddity] = {
    "empty_chunks": Oddity(empty_chunks),
    "executed_tools": Oddity(executed_tools),
    "finish_with_delta": Oddity(finish_with_delta),
    "twin_names": Oddity(twin_names),
    "empty_names": Oddity(empty_names),
    "null_names": Oddity(null_names),
    "repeated_role": Oddity(repeated_role),
    "null_members": Oddity(null_members),
    "zero_members": Oddity(zero_members),
    "empty_finish": Oddity(empty_finish),
    "usage_after": Oddity(usage_after),
    "x_groq": Oddity(x_groq),
    "choice_members": Oddity(choice_members),
    "frame_members": Oddity(frame_members),
    "filter_results": Oddity(filter_results),
    "padding": Oddity(padding),
    "obfuscation": Oddity(obfuscation),
    "comments": Oddity(comments),
}
"""By name, in the order in which they are applied."""


# -- turns -----------------------------------------------------------------------------------------


def null_arguments(frames: Frames, _dice: Random) -> Frames:
    """A call without arguments has the JSON `null` (Groq's Llama)."""
    return _argued(frames, "null")


def twice_arguments(frames: Frames, _dice: Random) -> Frames:
    """A call without arguments has them twice."""
    return _argued(frames, "{}{}")


def no_arguments(frames: Frames, _dice: Random) -> Frames:
    """A call without arguments has an empty text."""
    return _argued(frames, "")


def _argued(frames: Frames, arguments: str) -> Frames:
    def changed(message: Members) -> Members:
        calls = message.get("tool_calls")
        return {**message, "tool_calls": [rewritten(one) for one in calls]} if calls else message

    def rewritten(call: Members) -> Members:
        whole = not _streamed(frames) or "id" in call
        function = {**call.get("function", {}), "arguments": arguments if whole else ""}
        return {**call, "function": function}

    return _told(frames, changed)


def second_choice(frames: Frames, _dice: Random) -> Frames:
    """Another answer beside the first, mixed into it."""
    other = {"role": "assistant", "content": "Another answer.", "reasoning_content": "Elsewhere."}
    if not _streamed(frames):
        choice = {"index": 1, "message": other, "finish_reason": "stop"}
        return _framed(frames, lambda frame: {**frame, "choices": [*frame["choices"], choice]})
    first = next(one for _, one in _objects(frames))
    at = _finish(frames)
    says = {"index": 1, "delta": other, "finish_reason": None}
    ends = {"index": 1, "delta": {}, "finish_reason": "stop"}
    said, ended = ({**first, "choices": [one]} for one in (says, ends))
    middle = max(1, at // 2)
    return [*frames[:middle], said, *frames[middle:at], ended, *frames[at:]]


def filtered(frames: Frames, _dice: Random) -> Frames:
    """The answer is held back: a choice without a message (Azure)."""
    choice = {"index": 0, "finish_reason": "content_filter", "content_filter_results": _SAFE}
    first = next(one for _, one in _objects(frames))
    done: Frames = ["[DONE]"] if _streamed(frames) else []
    return [{**first, "choices": [choice]}, *done]


def error_midstream(frames: Frames, _dice: Random) -> Frames:
    """The provider behind a router fails after half of the answer (OpenRouter)."""
    if not _streamed(frames):
        return frames
    middle = max(1, _finish(frames) // 2)
    first = next(one for _, one in _objects(frames))
    error = {"code": 502, "message": "Provider disconnected", "metadata": {"raw": "reset"}}
    choice = {"index": 0, "delta": {"role": "assistant", "content": ""}, "finish_reason": "error"}
    return [*frames[:middle], {**first, "error": error, "choices": [choice]}, "[DONE]"]


TURNS: Mapping[str, Oddity] = {
    "null_arguments": Oddity(null_arguments),
    "twice_arguments": Oddity(twice_arguments),
    "no_arguments": Oddity(no_arguments),
    "second_choice": Oddity(second_choice),
    "filtered": Oddity(filtered),
    "error_midstream": Oddity(error_midstream),
}

ODDITIES: Mapping[str, Oddity] = {**TURNS, **SHAPES}

_OWN = ("null_members", "frame_members", "empty_chunks")
EMITS: Mapping[str, tuple[str, ...]] = {
    # api-docs.deepseek.com: keep-alive comments; `usage` is null before the last chunk.
    "deepseek": ("frame_members", "comments", "null_names"),
    "deepseek-v3.2": ("frame_members", "comments"),
    "deepseek-r1": ("frame_members", "comments"),
    "kimi": ("frame_members", "empty_chunks"),
    "kimi-k3": ("frame_members", "empty_chunks"),
    "mimo": ("null_members", "repeated_role"),
    "glm": ("repeated_role", "finish_with_delta"),
    "minimax": ("null_members", "repeated_role", "empty_chunks"),
    # DashScope: ids and names of calls are empty from the second part on.
    "qwen": ("empty_names", "frame_members"),
    "groq": ("x_groq", "executed_tools", "finish_with_delta"),
    "cerebras": ("frame_members", "empty_chunks"),
    "mistral": ("padding", "finish_with_delta"),
    # vllm#33402: both names for some versions; every member of the protocol is written.
    "vllm": ("twin_names", "choice_members", *_OWN),
    # Both serve on engines of their own with the members of vLLM.
    "fireworks": ("choice_members", "frame_members"),
    "baseten": ("choice_members", "frame_members"),
    "openrouter": ("choice_members", "comments", "usage_after", "repeated_role", "null_members"),
    # Azure's filter stands before GitHub's models, and in front of a new API everywhere.
    "copilot": ("filter_results", "null_members", "obfuscation", "empty_chunks"),
    "gemini-compat": ("repeated_role", "finish_with_delta"),
}
"""What each provider's answers have."""
