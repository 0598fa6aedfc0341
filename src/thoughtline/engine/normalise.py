"""A request as its endpoint wants it, before thoughts are looked up.

Towards a Responses server that keeps nothing for this client, what the client only names is written
out from the log (`server_state`), `store` is false, and encrypted reasoning is asked for. A client
that wants the server to remember is left alone, and so is one that says what the log does not hold
(pictures, system messages): nobody could write that out again. What an endpoint's refusals have
taught (`quirks`) is done at once.
"""

from collections.abc import Sequence
from functools import partial

from msgspec import Struct
from msgspec.structs import replace

from thoughtline.dialects import splice
from thoughtline.dialects.base import Dialect, Request, Rewrite, StateParams, unchanged
from thoughtline.dialects.citations import MARK
from thoughtline.dialects.splice import TopLevel
from thoughtline.engine.decision import (
    NO_OVERRIDES,
    Overrides,
    Predecessor,
    RequestDecision,
)
from thoughtline.engine.offload import run_for
from thoughtline.engine.server_state import ASIDE, Recalled, recall, references, repeatable
from thoughtline.errors import Unreadable
from thoughtline.log.quirks import Quirk
from thoughtline.log.turns import Turn
from thoughtline.providers.policy import Policy
from thoughtline.stores.base import Store

INCLUDE = "reasoning.encrypted_content"
NO_QUIRK = Quirk()


class Normalised(Struct, frozen=True, kw_only=True):
    """A request, ready to be looked up."""

    request: Request
    overrides: Overrides = NO_OVERRIDES
    predecessor: Predecessor | None = None
    known_turns: frozenset[str] = frozenset()  # turns that the client named


async def normalise(
    request: Request,
    *,
    dialect: Dialect,
    policy: Policy,
    tenant: str,
    store: Store,
    quirk: Quirk | None = None,
    records_all: bool = True,
    endpoint: str = "",
    aside: bool = False,
) -> Normalised:
    """Give a client's request what its endpoint needs; one that needs nothing stays as it is.

    `records_all`: the log holds what is said, and not only what is thought. `aside`: but not all
    that was said before the turns of this request.
    """
    known = quirk or NO_QUIRK
    fields: dict[str, bytes | None] = {}
    recalled = Recalled(request=request)
    noted = recalled.noted
    try:
        reading = partial(dialect.state_params, request.body)
        if (params := await run_for(request.body, reading)) is not None:
            remembered = policy.remembers and params.store is True and not known.no_store
            recalled = await recall(
                request, dialect, tenant, store, remembered=remembered, endpoint=endpoint
            )
            noted = recalled.noted
            if aside or not records_all or not said_in_full(request.turns, params):
                noted = {ASIDE: "something was said that is not kept"}
            repeated = ASIDE not in noted
            fields |= state_fields(recalled.request, policy, known, params, repeatable=repeated)
        for name in known.drops:  # nor what only we would set
            fields.pop(name, None)
        if known.all_turns or known.drops:
            setting = partial(quirk_fields, recalled.request, dialect, known)
            fields |= await run_for(recalled.request.body, setting)
        last = quirk_rewrites(recalled.request, dialect, policy, known)
    except Unreadable:
        return Normalised(request=request)
    overrides = NO_OVERRIDES
    if fields or last or noted:
        overrides = Overrides(fields=fields, rewrites=last, noted=noted)
    return Normalised(
        request=recalled.request,
        overrides=overrides,
        predecessor=recalled.predecessor,
        known_turns=recalled.known_turns,
    )


def said_in_full(turns: Sequence[Turn], params: StateParams) -> bool:
    """Whether the log will hold all that is said: not pictures, nor system messages."""
    inputs = (part for turn in turns for part in turn.input)
    return not params.system_items and repeatable(inputs)


# -- what the policy and the endpoint want -------------------------------------------------------


def state_fields(
    request: Request, policy: Policy, quirk: Quirk, params: StateParams, *, repeatable: bool = True
) -> dict[str, bytes | None]:
    """`store` and `include` of a Responses request; `repeatable`: the log could say all of it."""
    made: dict[str, bytes | None] = {}
    if policy.stateless or quirk.no_store:
        must = quirk.no_store or not policy.remembers
        free = repeatable and not _wants_state(request, params)
        if params.store is not False and (must or free):
            made["store"] = b"false"
        included = params.include or []
        if (
            isinstance(included, list)
            and INCLUDE not in included
            and not quirk.no_encrypted_reasoning
        ):
            made["include"] = splice.dumps([*included, INCLUDE])
    return made


def _wants_state(request: Request, params: StateParams) -> bool:
    """Whether the client counts on the server's memory."""
    asked = params.store is True or params.conversation or params.background
    return bool(asked or request.previous_response or references(request))


def quirk_fields(request: Request, dialect: Dialect, quirk: Quirk) -> dict[str, bytes | None]:
    """Top-level members that an endpoint's quirk sets or removes in any request."""
    made: dict[str, bytes | None] = {}
    if quirk.all_turns and dialect.item_list:  # no other API has that param
        top = TopLevel(request.body)
        asked = top.value("reasoning")
        if not isinstance(asked, dict) or "context" not in asked:
            made["reasoning"] = top.nested("reasoning", {"context": b'"all_turns"'})
    if quirk.drops:
        has = splice.members(request.body)
        made |= {name: None for name in quirk.drops if name in has}
    return made


def quirk_rewrites(
    request: Request, dialect: Dialect, policy: Policy, quirk: Quirk
) -> tuple[Rewrite, ...]:
    """Last edits of the finished body."""
    rewrites = dialect.rewrites
    wanted: list[tuple[bool | None, Rewrite]] = [
        (quirk.short_call_ids, rewrites.short_call_ids),
        (quirk.strip_null_reasoning, rewrites.strip_null_reasoning),
        (quirk.strip_item_ids, rewrites.strip_item_ids),
        (quirk.add_summaries, rewrites.add_summaries),
        (_may_be_switched_off(request, policy), rewrites.drop_clear_thinking),
        (MARK in request.body, rewrites.drop_foreign_citations),
    ]
    return tuple([rewrite for asked, rewrite in wanted if asked and rewrite is not unchanged])


def _may_be_switched_off(request: Request, policy: Policy) -> bool:
    """Whether thinking may be switched off here, in a request that asks to clear it."""
    off = policy.off is not None and request.thinking is not False
    return off and b"clear_thinking" in request.body


# -- what the conversation wants -----------------------------------------------------------------

DROP_BLOCK = "drop_block"
"""Noted with a turn: from here on, blocks that do not fit are to be dropped by the provider."""
CONTROLS = "thinking-binding-controls-2026-08-01"


def dropping_blocks(decision: RequestDecision) -> Overrides | None:
    """Overrides with which a provider drops blocks bound to another prefix; None: it cannot."""
    top = TopLevel(decision.request.body)
    thinking = top.value("thinking")
    kind = thinking.get("type") if isinstance(thinking, dict) else "adaptive"
    if kind not in ("adaptive", "enabled"):
        return None
    wanted: dict[str, bytes | None] = {
        "block_binding": b'{"prefix_mismatch_behavior":"drop_block"}'
    }
    if not isinstance(thinking, dict):
        wanted = {"type": b'"adaptive"', **wanted}
    overrides = decision.overrides
    return replace(
        overrides,
        fields={**overrides.fields, "thinking": top.nested("thinking", wanted)},
        headers={**overrides.headers, "anthropic-beta": CONTROLS},
        noted={**overrides.noted, DROP_BLOCK: "bound to a different conversation"},
    )


async def keep_dropping(decision: RequestDecision) -> RequestDecision:
    """Once blocks were to be dropped in a conversation, they are for its whole life."""
    noted, before = decision.overrides.noted, decision.replay_plan.skipped_before
    if DROP_BLOCK in noted or DROP_BLOCK not in before:
        return decision
    return await run_for(decision.body, partial(_dropping, decision))


def _dropping(decision: RequestDecision) -> RequestDecision:
    decision = decision.with_body()
    try:
        overrides = dropping_blocks(decision)
    except Unreadable:  # a key twice: nothing can be set in that body
        return decision
    return decision.revise(overrides=overrides) if overrides is not None else decision
