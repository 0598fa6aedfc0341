"""Answers how many tokens a request has that would be translated.

The provider is asked where it counts; else the number is an estimate, and the answer says so. What
is counted is what would go upstream, thoughts included.
"""

from functools import partial
from urllib.parse import quote

from msgspec import Struct

from thoughtline.dialects import splice
from thoughtline.dialects.token_counts import estimated_tokens, read_count
from thoughtline.engine.decision import RequestDecision
from thoughtline.engine.endpoints import Upstream
from thoughtline.engine.offload import run_for
from thoughtline.errors import Unreadable, WireError
from thoughtline.gateway.translated_http import HttpTranslation
from thoughtline.wires.base import Wire, read_up_to

ESTIMATED = ("x-thoughtline-estimate", "tokens")
"""The header of an answer whose number is not the provider's."""
_MAX_ANSWER = 1 << 16


class CountAnswer(Struct, frozen=True):
    """An answer that says how many tokens a request has."""

    headers: list[tuple[str, str]]
    body: bytes


async def counted(
    decision: RequestDecision,
    translation: HttpTranslation,
    upstream: Upstream,
    *,
    wire: Wire,
    credential: str,
) -> CountAnswer:
    """How many tokens go upstream for a request, as its client expects to be told."""
    tokens = await _ask(decision, translation, upstream, wire, credential)
    made = translation.answer_headers((), stream=False)
    if tokens is None:
        tokens = await run_for(decision.body, partial(estimated_tokens, decision.body))
        made.append(ESTIMATED)
    client = translation.client
    name = client.token_count.member if client.token_count is not None else "input_tokens"
    return CountAnswer(made, splice.dumps({**client.count_members, name: tokens}))


async def _ask(
    decision: RequestDecision,
    translation: HttpTranslation,
    upstream: Upstream,
    wire: Wire,
    credential: str,
) -> int | None:
    counting, model = decision.dialect.token_count, decision.target.origin.model
    if counting is None:
        return None
    try:

        def write() -> bytes:
            return splice.dumps(counting.request(model, splice.loads(decision.body)))

        body = await run_for(decision.body, write)
        path = counting.path.format(model=quote(model, safe=""))
        outbound = translation.outbound(body, upstream, model, credential, path=path)
        async with wire.send(outbound) as answer:
            told = await read_up_to(answer, _MAX_ANSWER)
            return read_count(told, counting.member) if answer.status == 200 else None
    except (WireError, Unreadable):
        return None
