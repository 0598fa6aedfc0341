"""What Gemini wants to see of its thought signatures, and the order in which turns have to come.

The current turn begins with the last thing a user said. Each content of the model in it is a step;
the first function call of a step carries a signature, the parallel ones beside it do not. Wherever
a signature stands, it has to be one that this account got from this model.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Sequence
from typing import NamedTuple

from thoughtline.testing.sims.gemini_input import Call, Content, normal
from thoughtline.testing.sims.gemini_rows import AFTER_CALL, AFTER_USER, COUNT, Model, Row
from thoughtline.testing.sims.problems import Problem


class Court(NamedTuple):
    """One request, with what is needed to judge it."""

    call: Call
    row: Row
    model: Model
    account: str
    unseal: Callable[[str], list[str] | None]
    """The claims of a signature: the account and the model."""


def judge(court: Court) -> None:
    """Check a request.

    Raises:
        Problem: the provider refuses it.
    """
    contents = court.call.contents
    _order(contents)
    for content in contents:
        for signature in content.of("thoughtSignature"):
            _valid(court, signature)
    if court.model.required:
        start = max((at for at, one in enumerate(contents) if _asks(one)), default=-1)
        for at in range(start + 1, len(contents)):
            _signed(court, contents[at], at)


def bypasses(row: Row, signature: str) -> bool:
    """Whether this stands in place of a signature; some write it raw, some as base64."""
    encoded = [base64.b64encode(one.encode()).decode() for one in row.bypass]
    return signature in row.bypass or normal(signature) in encoded


def _asks(content: Content) -> bool:
    """A user says something, instead of a tool."""
    return content.role != "model" and not content.of("functionResponse")


def _order(contents: Sequence[Content]) -> None:
    before: Content | None = None
    calls = 0
    for content in contents:
        responses = len(content.of("functionResponse"))
        if responses and not calls:
            raise Problem(400, AFTER_CALL)
        if calls and responses != calls:  # also where they come in two contents: llumiverse#620
            raise Problem(400, COUNT)
        calls = len(content.of("functionCall")) if content.role == "model" else 0
        if calls and (before is None or before.role == "model"):
            raise Problem(400, AFTER_USER)
        before = content
    if calls:
        raise Problem(400, COUNT)


def _valid(court: Court, signature: str) -> None:
    if bypasses(court.row, signature):
        return
    claims = court.unseal(normal(signature))
    if claims is None:
        raise Problem(400, court.row.corrupted)
    if claims[:2] != [court.account, court.model.name]:
        raise Problem(400, court.row.invalid)


def _signed(court: Court, content: Content, at: int) -> None:
    if content.role != "model":
        return
    first = next((part for part in content.parts if "functionCall" in part), None)
    if first is not None and not first.get("thoughtSignature"):
        name = first["functionCall"]["name"]
        raise Problem(400, court.row.missing.format(name=name, position=at + 1))
