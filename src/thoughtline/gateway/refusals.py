"""Requests that we answer ourselves: what is wrong, what was expected, what to do."""

import traceback
from collections.abc import Sequence
from pathlib import Path

from thoughtline.exchanges import Exchange
from thoughtline.gateway.routes import Route
from thoughtline.replay import Action


class Refusal(Exception):
    """We answer ourselves: status and words."""

    def __init__(self, status: int, message: str, code: str = "") -> None:
        super().__init__(message)
        self.status, self.message, self.code = status, message, code


def foreign(page: str) -> Refusal:
    """The answer to a web page that nobody named."""
    return Refusal(
        403,
        f"a web page from {page} asks through a browser, and this gateway knows its clients only "
        "by their being on this machine; list the page under `access.origins` if you trust it, "
        "or set client keys",
        "foreign_page",
    )


def unserved(route: Route, model: str, known: Sequence[str]) -> Refusal:
    """The answer where no upstream is meant: the client named none of them, nor does its model."""
    names = ", ".join(known)
    if route.upstream:
        said = f"no upstream is called {route.upstream!r}; known: {names}"
        return Refusal(404, said, "unknown_upstream")
    if not model:
        said = (
            "neither the path nor a `model` in the body says which upstream is meant; name one in "
            f"the path (/u/NAME{route.path}); known: {names}"
        )
        return Refusal(404, said, "unknown_upstream")
    return Refusal(
        404,
        f"no upstream serves the model {model!r}; name one in the path (/u/NAME{route.path}), or "
        f"give one a pattern under `upstreams.NAME.models`; known: {names}",
        "model_not_found",
    )


def fault(error: Exception) -> str:
    """In words: what went wrong here and where, without what it went wrong over."""
    *_, last = traceback.extract_tb(error.__traceback__)
    return f"a fault of ours, {type(error).__name__} at {Path(last.filename).name}:{last.lineno}"


def insist(exchange: Exchange) -> None:
    """Strict mode: an error instead of a placeholder, or of thinking switched off."""
    missing = [
        str(ruling.turn)
        for ruling in exchange.restoration.rulings
        if ruling.action is Action.PLACEHOLDER
    ]
    if missing or exchange.restoration.fields:
        where = ", ".join(missing) or "the running tool loop"
        raise Refusal(
            409,
            f"strict replay: the thoughts of assistant turn(s) {where} are not known, and this "
            "provider demands them; start a new conversation, or do without strict mode",
            "thought_missing",
        )
