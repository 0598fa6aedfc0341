"""Errors that the gateway answers with: what is wrong, what was expected, what to do."""

import re
from collections.abc import Sequence

from thoughtline.engine.decision import RequestDecision
from thoughtline.engine.endpoints import Directory, Upstream
from thoughtline.engine.routes import Route
from thoughtline.errors import did_you_mean, nearest_name
from thoughtline.gateway import bodies
from thoughtline.gateway.headers import PASSED_THROUGH, PassedThrough
from thoughtline.log.decisions import Action
from thoughtline.providers.catalogue import known_provider
from thoughtline.providers.known_providers import SIMULATED
from thoughtline.replay.guard import LostThought


class GatewayError(Exception):
    """A request is answered by the gateway, with this status, message and error code."""

    def __init__(self, status: int, message: str, code: str = "") -> None:
        super().__init__(message)
        self.status, self.message, self.code = status, message, code


def invalid_key() -> GatewayError:
    """The error for a client that shows none of the configured client keys."""
    return GatewayError(
        401,
        "this gateway does not know that key; expected one of its client keys",
        "invalid_api_key",
    )


def foreign_page(origin: str) -> GatewayError:
    """The error for a web page that `access.origins` does not name."""
    return GatewayError(
        403,
        f"a web page from {origin} sent this through a browser, and without client keys this "
        "gateway serves programs and pages of this machine only; list the page under "
        "`access.origins` if you trust it, or set client keys",
        "foreign_page",
    )


def unknown_upstream(
    route: Route, model: str, directory: Directory, body: bytes | None = None
) -> GatewayError:
    """The error for a request whose path and model name no upstream."""
    known = [*directory.names, *([SIMULATED] if directory.simulated_models else [])]
    names = ", ".join(known)
    simulated = (route.upstream or model.partition("/")[0]) == SIMULATED
    if simulated and directory.simulated_models:
        there = {name.removeprefix(f"{SIMULATED}/"): name for name in directory.simulated_models}
        near = nearest_name(model.removeprefix(f"{SIMULATED}/"), there)
        hint = f"did you mean {there[near]!r}?" if near else f"known: {', '.join(there.values())}"
        called = f"is called {model!r}" if model else "is named here"
        message = f"no simulated model {called}; {hint}"
        return GatewayError(404, message, "model_not_found")
    if route.upstream:
        hint = did_you_mean(route.upstream, known, f"known: {names}")
        message = f"no upstream is called {route.upstream!r}; {hint}"
        return GatewayError(404, message, "unknown_upstream")
    if not model:
        return _nothing_named(route, names, body)
    family = re.split(r"[-/:]", model)[0]
    near = nearest_name(family, known)
    hint = f"did you mean a model of {near!r}? " if near and near != family else ""
    return GatewayError(
        404,
        f"no upstream serves the model {model!r}; {hint}name one in the path "
        f"(/u/NAME{route.path}), or give one a pattern under `upstreams.NAME.models`; "
        f"known: {names}",
        "model_not_found",
    )


def _nothing_named(route: Route, names: str, body: bytes | None) -> GatewayError:
    """The error for a request that says neither by its path nor by a model where it is to go."""
    if not route.dialect:
        text = (
            f"there is nothing at {route.path}, and no upstream is named; for a provider's own "
            f"path write /u/NAME{route.path}, and for the pages /inspect; known: {names}"
        )
        return GatewayError(404, text, "unknown_upstream")
    problem = bodies.json_problem(body) if body is not None else ""
    if problem:
        wanted = "expected a JSON object with the `model` to ask"
        return GatewayError(400, f"the body {problem}; {wanted}", "invalid_json")
    return GatewayError(
        404,
        "neither the path nor a `model` in the body says which upstream is meant; add a `model`, "
        f"or name an upstream in the path (/u/NAME{route.path}); known: {names}",
        "unknown_upstream",
    )


def no_key(upstream: Upstream) -> GatewayError:
    """The error for a name that is mapped to another provider, for which nobody has a key here."""
    provider = known_provider(upstream.name)
    variable = next(iter(provider.keys if provider else ()), "")
    where = f"set {variable}" if variable else f"name one in `upstreams.{upstream.name}.env_key`"
    return GatewayError(
        401,
        f"`[models]` maps {upstream.asked!r} to {upstream.name}/{upstream.served}, and this "
        "gateway has no key for that; the client's own is not sent to another provider than the "
        f"one whose model it asks for; {where} where the gateway runs, or point the client at "
        f"/u/{upstream.name} with a key of its own",
        "upstream_key_missing",
    )


def check_encoding(encoding: str) -> None:
    """Raise an error where a body cannot be read here: its thoughts would be lost silently."""
    if not bodies.is_supported(encoding):
        raise GatewayError(
            415,
            f"the body is compressed as {encoding!r}, which cannot be read here; send it plain or "
            f"as {bodies.supported_encodings()} (zstd: install `zstandard` beside Thoughtline), "
            "or do without replay (`x-thoughtline-replay: off`)",
            "unsupported_encoding",
        )


def check_patchable(decision: RequestDecision) -> None:
    """Raise an error where a thought may not go to this target, and cannot be taken out."""
    if decision.unpatchable and decision.replay_plan.count(Action.DROPPED):
        raise GatewayError(
            400,
            f"the body holds a thought that may not go to {decision.target.name!r}, and it cannot "
            f"be taken out ({decision.unpatchable}); write each key once",
            "ambiguous_body",
        )


def check_lost(decision: RequestDecision, *, strict: bool) -> None:
    """Raise an error where a thought is lost, and nothing may go out in its place.

    In strict mode that is neither a placeholder nor thinking switched off, and otherwise what the
    upstream's settings say.
    """
    if strict:
        _check_strict(decision)
    elif decision.target.lost_thought is LostThought.ERROR and decision.replay_plan.thinking_off:
        name = decision.target.name
        raise GatewayError(
            409,
            "the thoughts of the running tool loop are not known, and this provider demands them; "
            "start a new conversation, or let thinking be switched off for such requests "
            f"(`upstreams.{name}.lost_thought`)",
            "thought_missing",
        )


def _check_strict(decision: RequestDecision) -> None:
    missing = [
        str(replayed.turn)
        for replayed in decision.replay_plan.decisions
        if replayed.action is Action.PLACEHOLDER
    ]
    if missing or decision.replay_plan.fields:
        where = f"assistant turn(s) {', '.join(missing)}" if missing else "the running tool loop"
        raise GatewayError(
            409,
            f"strict replay: the thoughts of {where} are not known, and this provider demands "
            "them; start a new conversation, or do without strict mode",
            "thought_missing",
        )


def untranslatable(left: Sequence[str], dialect: str) -> GatewayError:
    """What a strict client asks and its provider cannot be told."""
    names = ", ".join(dict.fromkeys(left))
    return GatewayError(
        400,
        f"the request asks for what cannot be said in the {dialect!r} dialect of its upstream: "
        f"{names}; leave that out, or do without strict mode",
        "untranslatable",
    )


def unknown_response(id: str) -> GatewayError:
    """A response that a client goes on from, and that is not its own, or not in the log."""
    return GatewayError(
        404,
        f"Previous response with id '{id}' not found: it is not in the log of this gateway, with "
        "all that came before it; send the whole history instead",
        "previous_response_not_found",
    )


def not_translated(why: PassedThrough, client: str, provider: str) -> GatewayError:
    """A request that would pass through, to an upstream that does not speak its dialect."""
    return GatewayError(
        413 if why is PassedThrough.TOO_COMPLEX else 400,
        f"this request cannot pass through untouched ({PASSED_THROUGH[why]}): its upstream speaks "
        f"{provider!r} and not {client!r}",
        "untranslatable",
    )


def impossible(refused: Sequence[str], dialect: str) -> GatewayError:
    """What a client asks, its provider cannot be told, and must not be left out."""
    names = ", ".join(dict.fromkeys(refused))
    return GatewayError(
        400,
        f"the request cannot be answered by an upstream of the {dialect!r} dialect: {names}; "
        "send files as data or by URL, ask for one answer at a time, and choose a tool of your own",
        "untranslatable",
    )
