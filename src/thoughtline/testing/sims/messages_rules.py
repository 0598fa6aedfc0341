"""What the Messages servers want to see of their own thoughts, and what they do when it is not so.

`judge` is the whole of it: older Claude models refuse what is missing or altered while a tool is
being used, newer ones refuse or drop what stands behind another prefix, DeepSeek only asks that
there is a thought where there was one. It gives the names of the thoughts that count, and what it
dropped.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from thoughtline.testing.sims.messages_binding import Claims, Prefix, digest
from thoughtline.testing.sims.messages_config import Config
from thoughtline.testing.sims.messages_input import THOUGHTS, Block, Call, Message
from thoughtline.testing.sims.messages_rows import (
    BOUND,
    BOUND_HINT,
    BOUND_WHY,
    DEEPSEEK_MISSING,
    EXPECTED,
    FINAL,
    INVALID,
    INVALID_DATA,
    MODIFIED,
    Row,
)
from thoughtline.testing.sims.problems import Problem


class Court(NamedTuple):
    """One request, with what is needed to judge it."""

    call: Call
    config: Config
    row: Row
    account: str
    unseal: Callable[[Block], Claims | None]
    silent: Callable[[Message], bool]
    """Whether this message was emitted without a thought."""
    enforced: bool
    """The account is new enough for the prefix to be checked without asking."""


class Verdict(NamedTuple):
    """What is left of the thoughts in a request."""

    last: str
    """The latest thought that counts."""
    dropped: tuple[dict[str, str], ...] = ()
    """For `input_transformations`."""


def judge(court: Court) -> Verdict:
    """Check the thoughts of a request.

    Raises:
        Problem: the provider refuses it.
    """
    if court.row.binding == "none":
        if court.row.demands:
            _present(court)
        return Verdict("")
    if not court.config.on:
        _final(court)
        return Verdict("")
    if court.row.binding == "prefix":
        return _walk(court)
    _expected(court)
    _signed(court)
    return Verdict("")


def loop_of(messages: Sequence[Message]) -> list[int]:
    """The assistant messages of the open tool loop, and one that is to be continued."""
    found = []
    at = len(messages) - 1
    if messages[at].role == "assistant":
        found.append(at)
        at -= 1
    while at >= 1 and messages[at].of("tool_result") and messages[at - 1].role == "assistant":
        found.append(at - 1)
        at -= 2
    return found[::-1]


def _present(court: Court) -> None:
    """DeepSeek: a thought wherever a tool was used."""
    if not court.config.on:
        return
    # hermes-agent#17341: Pro does not take an empty one.
    strict = "pro" in court.call.model.name
    for message in court.call.messages:
        thoughts = [one["thinking"] for one in message.of("thinking")]
        lacks = message.of("tool_use") and not any(one or not strict for one in thoughts)
        if lacks and not court.silent(message):
            raise Problem(400, DEEPSEEK_MISSING)


def _final(court: Court) -> None:
    """Without thinking the message to be continued cannot have any."""
    messages = court.call.messages
    for at in loop_of(messages)[-1:]:
        for index, block in enumerate(messages[at].blocks):
            if block["type"] in THOUGHTS and court.row.binding == "text":
                path = f"messages.{at}.content.{index}"
                raise Problem(400, FINAL.format(path=path, kind=block["type"]))


_MARKS = ("compaction", "fallback")
"""Blocks that may stand in front of the first thought."""


def _expected(court: Court) -> None:
    """While a tool is being used every message starts with a thought."""
    messages = court.call.messages
    for at in loop_of(messages):
        message = messages[at]
        kinds = [block["type"] for block in message.blocks]
        found = next((kind for kind in kinds if kind not in _MARKS), "text")
        if found not in THOUGHTS and not court.silent(message):
            raise Problem(400, EXPECTED.format(at=at, found=found))


def _signed(court: Court) -> None:
    """Every thought is what this family of models said, and the latest message has all of them."""
    messages = court.call.messages
    latest = max((at for at, one in enumerate(messages) if one.role == "assistant"), default=-1)
    for at, message in enumerate(messages):
        claims = []
        for index, block in enumerate(message.blocks):
            if block["type"] in THOUGHTS:
                path = f"messages.{at}.content.{index}"
                claims.append((path, block, _claims(court, block, path, at == latest)))
                if claims[-1][2].family not in court.call.model.reads:
                    raise _invalid(block, path)
        if at == latest:
            _whole(message, claims)


def _claims(court: Court, block: Block, path: str, latest: bool) -> Claims:
    claims = court.unseal(block)
    if claims is None:
        raise _invalid(block, path)
    if claims.text != digest(block.get("thinking", "")):
        raise Problem(400, MODIFIED.format(path=path)) if latest else _invalid(block, path)
    return claims


def _invalid(block: Block, path: str) -> Problem:
    words = INVALID if block["type"] == "thinking" else INVALID_DATA
    return Problem(400, words.format(path=path))


def _whole(message: Message, found: Sequence[tuple[str, Block, Claims]]) -> None:
    """All thoughts of one response, in their order and at their places."""
    if not found:
        return
    path, _, first = found[0]
    exchange = first.name.rpartition("/")[0]
    if [claims.name for _, _, claims in found] != [f"{exchange}/{n}" for n in range(first.count)]:
        raise Problem(400, MODIFIED.format(path=path))
    calls = 0
    places = {}
    for block in message.blocks:
        if block["type"] in THOUGHTS:
            places[id(block)] = calls
        calls += block["type"] == "tool_use"
    for path, block, claims in found:
        if places[id(block)] != claims.calls:
            raise Problem(400, MODIFIED.format(path=path))


def _walk(court: Court) -> Verdict:
    """Newer models: go through the conversation and see which thoughts still fit."""
    prefix = Prefix(court.call.body)
    last, dropped = "", []
    messages = court.call.messages
    latest = max((at for at, one in enumerate(messages) if one.role == "assistant"), default=-1)
    for at, message in enumerate(messages):
        prefix.open(message.role)
        for index, block in enumerate(message.blocks):
            if block["type"] not in THOUGHTS:
                prefix.add(block)
                continue
            path = f"messages.{at}.content.{index}"
            claims = _claims(court, block, path, at == latest)
            reason = _unreadable(court, claims)
            why = "" if reason else _misfit(court, claims, prefix, last)
            if why and not (court.enforced or court.config.behaviour):
                dropped.append(_entry("thinking_mismatch_allowed", path, "prefix_binding_mismatch"))
            elif why and court.config.behaviour != "drop_block":
                hint = "" if court.config.reported else BOUND_HINT
                raise Problem(400, BOUND.format(path=path) + hint + BOUND_WHY[why])
            elif why or reason:
                reason = reason or "prefix_binding_mismatch"
                dropped.append(_entry("thinking_dropped", path, reason))
            if not why or not (court.enforced or court.config.behaviour):
                # One that this model cannot read stays a link of the chain: it becomes readable
                # again when the conversation goes back to the model that wrote it.
                last = claims.name
    return Verdict(last, tuple(dropped))


def _unreadable(court: Court, claims: Claims) -> str:
    if claims.account != court.account:
        return "organization_binding_mismatch"
    if claims.family not in court.call.model.reads:
        return "model_binding_mismatch"
    return ""


def _misfit(court: Court, claims: Claims, prefix: Prefix, last: str) -> str:
    """What is not as it was when this thought was made; nothing when all is."""
    if not court.call.model.binds or not claims.messages:
        return ""
    if claims.system != prefix.system:
        return "system"
    if claims.tools != prefix.tools:
        return "tools"
    if claims.messages != prefix.messages:
        return "messages"
    # Thoughts may be left out at the beginning, never in the middle, and never put back.
    return "gap" if last and claims.before != last else ""


def _entry(kind: str, path: str, reason: str) -> dict[str, str]:
    return {"type": kind, "path": path, "reason": reason}
