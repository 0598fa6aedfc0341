"""What the items of a Responses conversation need from one another.

A sealed thought must be whole, this account's, and its own; a thought and what was generated after
it come together; an item is there once; a call has a result and a result has a call. DeepSeek
seals nothing and wants a thought in front of every call and message instead.

`inspect` looks at each item by itself, `judge` at all of them together.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from thoughtline.testing.sims.problems import Problem
from thoughtline.testing.sims.responses_input import Create, Item
from thoughtline.testing.sims.responses_items import check
from thoughtline.testing.sims.responses_rows import (
    DEEPSEEK_MISSING,
    DUPLICATE,
    NO_CALL,
    NO_OUTPUT,
    NOT_FOUND,
    NOT_PERSISTED,
    UNFOLLOWED,
    UNPAIRED,
    UNVERIFIED,
    XAI_COMPACTION,
    XAI_UNREADABLE,
    Row,
)
from thoughtline.testing.sims.values import decode

_CALLS = {"function_call": "function call", "custom_tool_call": "custom tool call"}


class Known(NamedTuple):
    """An item that was generated here."""

    account: str
    kind: str
    raw: bytes
    call: str
    """Its `call_id`, if it is a call."""
    pair: str
    """The reasoning item it was generated after, if there was one."""
    follower: str
    """What was generated next; nothing when the response ended."""
    stored: bool


class Case(NamedTuple):
    """One request, with what the server knows."""

    create: Create
    row: Row
    account: str
    known: dict[str, Known]
    memory: tuple[Item, ...]
    """What the server remembers of the conversation, before the request's own items."""
    unseal: Callable[[str], list[str] | None]
    """The claims in a blob: its kind, the account and the item."""


def inspect(case: Case) -> tuple[Item, ...]:
    """Check the request's items one by one and give the conversation, references unresolved.

    Raises:
        Problem: the provider refuses it.
    """
    for item in case.create.items:
        check(item, case.row)
    return (*case.memory, *case.create.items)


def judge(case: Case) -> tuple[Item, ...]:
    """Check the items against one another and give the whole conversation.

    Raises:
        Problem: the provider refuses it.
    """
    for item in case.create.items:
        _seal(case, item)
    given = tuple(_settle(case, item) for item in case.create.items)
    whole = (*case.memory, *given)
    if case.row.pairing:
        _duplicates(case, whole)
        _pairs(case, whole)
    _calls(whole)
    if case.row.style is None:
        _thoughts(case, whole)
    return whole


def _seal(case: Case, item: Item) -> None:
    """A blob must be what this account was given, for this item."""
    blob = item.value.get("encrypted_content")
    if case.row.style is None or not isinstance(blob, str) or item.kind not in _SEALED:
        return
    if not blob and item.id:
        return  # as good as none: the id is looked up instead
    claims = case.unseal(blob)
    ours = claims is not None and claims[:2] == [item.kind, case.account]
    # xAI binds to the account only; OpenAI to the item as well.
    if ours and claims and (not (case.row.pairing and item.id) or claims[2] == item.id):
        return
    if case.row.shape == "xai":
        raise Problem(400, XAI_COMPACTION if item.kind == "compaction" else XAI_UNREADABLE)
    name = f"{blob[:4]}...{blob[-4:]}"
    if case.row.named and item.id:
        name = f"for item {item.id}"
    raise Problem(400, UNVERIFIED.format(name=name), code="invalid_encrypted_content")


_SEALED = ("reasoning", "compaction")


def _settle(case: Case, item: Item) -> Item:
    """Look up an item that is given by its id only."""
    sealed = bool(item.value.get("encrypted_content"))
    by_id = item.kind == "item_reference" or (item.kind == "reasoning" and not sealed)
    if not by_id or case.row.style is None:
        return item
    found = case.known.get(item.id)
    if found is not None and found.stored and found.account == case.account:
        return Item(found.raw, decode(found.raw), item.where)
    if item.kind == "reasoning" and not case.row.pairing:
        return item  # grok2api#689: a summary without its blob is taken for what it is
    if found is not None or not case.create.store:
        raise Problem(400, NOT_PERSISTED.format(id=item.id), param="input")
    raise Problem(404, NOT_FOUND.format(id=item.id), param="input")


def identity(case: Case, item: Item) -> str:
    """The id of an item, from its seal if the client took it away."""
    blob = item.value.get("encrypted_content")
    if item.id or item.kind != "reasoning" or not isinstance(blob, str):
        return item.id
    claims = case.unseal(blob)
    return claims[2] if claims is not None else ""


def _duplicates(case: Case, items: Sequence[Item]) -> None:
    seen = set()
    for item in items:
        name = identity(case, item)
        if name and name in seen:
            raise Problem(400, DUPLICATE.format(id=name), param="input")
        seen.add(name)


def _pairs(case: Case, items: Sequence[Item]) -> None:
    """An id shows what belongs together; without ids nothing can be said."""
    seen: set[str] = set()
    for at, item in enumerate(items):
        known = case.known.get(item.id)
        if known is not None and item.where:
            if known.kind == "reasoning":
                following = items[at + 1] if at + 1 < len(items) else None
                if not _follows(case, following, known.follower):
                    raise Problem(400, UNFOLLOWED.format(id=item.id), param="input")
            elif known.pair and known.pair not in seen:
                message = UNPAIRED.format(id=item.id, kind=item.kind, pair=known.pair)
                raise Problem(400, message, param="input")
        seen.add(identity(case, item))


def _follows(case: Case, item: Item | None, follower: str) -> bool:
    expected = case.known.get(follower)
    if item is None or expected is None:
        return False
    name = identity(case, item)
    if name:
        return name == follower
    if item.kind != expected.kind:
        return False
    return not expected.call or item.value.get("call_id") == expected.call


def _calls(items: Sequence[Item]) -> None:
    """Every call has a result, every result a call before it."""
    open_calls: dict[Any, str] = {}
    called: set[Any] = set()
    for item in items:
        call = item.value.get("call_id")
        if item.kind in _CALLS:
            called.add(call)
            open_calls[call] = _CALLS[item.kind]
        elif item.kind.removesuffix("_output") in _CALLS:
            if call not in called:
                words = NO_CALL.replace("function call", _CALLS[item.kind.removesuffix("_output")])
                raise Problem(400, words.format(id=call), param="input")
            open_calls.pop(call, None)
    for call, words in open_calls.items():
        message = NO_OUTPUT.replace("function call", words).format(id=call)
        raise Problem(400, message, param="input")


def _thoughts(case: Case, items: Sequence[Item]) -> None:
    """DeepSeek: with tools and thinking on, a thought stands before every call and message."""
    if not case.create.body.get("tools") or case.create.effort == "none":
        return
    before: Item | None = None
    for item in items:
        if item.assistant and item.kind != "reasoning" and not _thinks(case, before):
            raise Problem(400, DEEPSEEK_MISSING)
        before = item


def _thinks(case: Case, item: Item | None) -> bool:
    if item is None or item.kind != "reasoning":
        return False
    parts = [part for part in item.value.get("content") or () if "text" in part]
    # hermes-agent#17341: Pro does not take an empty one.
    return any(part["text"] or "pro" not in case.create.model for part in parts)
