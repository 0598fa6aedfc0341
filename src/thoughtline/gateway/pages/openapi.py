"""`/openapi.json`: the gateway's own pages in full, the proxied paths in outline.

The pages are described by their declarations (`@page`). The provider describes a request to it:
here that is a JSON object in, an object or an event stream out, and the headers that the gateway
reads and adds.
"""

from collections.abc import Sequence
from typing import Any

import msgspec
from starlette.requests import Request

import thoughtline
from thoughtline.gateway.pages.page import (
    SCHEMA_REF,
    Failure,
    Page,
    PageResponse,
    Parameter,
    Schema,
    header,
    segment,
)

_PROXIED = {
    "/v1/chat/completions": "Chat Completions",
    "/v1/responses": "Responses",
    "/v1/messages": "Messages",
    "/v1beta/models/{model}:generateContent": "Gemini, at once",
    "/v1beta/models/{model}:streamGenerateContent": "Gemini, as a stream",
}
_REQUEST_HEADERS = (
    header("x-thoughtline-session", "A hint: which session this belongs to."),
    header(
        "x-thoughtline-replay",
        "`off` passes the request through untouched, `strict` answers an error where a demanded "
        "thought is lost.",
    ),
)
_RESPONSE_HEADERS = {
    "x-thoughtline-session": "The session that the turn is kept in.",
    "x-thoughtline-turn": "The turn's id.",
    "x-thoughtline-replay": "What became of the thoughts of earlier turns.",
    "x-thoughtline-model": "Another model than the client named, where `[models]` says so.",
    "x-thoughtline-request": "The failed request, as `/api/requests/failed/{id}` names it.",
}
_OBJECT: Schema = {"application/json": {"schema": {"type": "object"}}}


def openapi_page(pages: Sequence[Page]) -> Page:
    """The page that describes these pages, and itself."""
    described: Schema = {}

    async def handler(_: Request, __: dict[str, Any]) -> Schema:
        return described

    page = Page(
        path="/openapi.json",
        handler=handler,
        summary="This document.",
        responses={200: PageResponse("It.", ())},
    )
    described.update(document([*pages, page]))
    return page


def document(pages: Sequence[Page]) -> Schema:
    """The OpenAPI document of these pages and of the proxied paths."""
    paths: Schema = {}
    structs: set[type] = {Failure}
    for page in pages:
        operations = paths.setdefault(page.path.replace(":path}", "}"), {})
        operations[page.method.lower()] = page.describe()
        structs |= page.structs
    ordered = sorted(structs, key=lambda struct: struct.__name__)
    _, components = msgspec.json.schema_components(ordered, ref_template=SCHEMA_REF)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Thoughtline",
            "version": thoughtline.__version__,
            "summary": "Keeps a model's reasoning alive from turn to turn.",
        },
        "paths": {**paths, **_proxied_paths()},
        "components": {
            "schemas": components,
            "securitySchemes": {
                "admin": {"type": "http", "scheme": "bearer", "description": "The admin token."},
            },
        },
    }


def _proxied_paths() -> Schema:
    replayed = {path: {"post": _replayed(path, about)} for path, about in _PROXIED.items()}
    passed = {
        "/v1/messages/count_tokens": {"post": _passed("Messages: count tokens.")},
        "/u/{upstream}/{path}": {
            "post": _passed(
                "Any path of an upstream that is named: those above are walked, others pass "
                "through.",
                segment("upstream", "Its name in the settings."),
                segment("path", "The upstream's own path."),
            )
        },
    }
    return {**replayed, **passed}


def _replayed(path: str, about: str) -> Schema:
    """An operation with a history, in which lost thoughts are put back."""
    model = [segment("model", "The model's name.")] if "{model}" in path else []
    summary = f"{about}: lost thoughts are put back on the way."
    operation = _passed(summary, *_REQUEST_HEADERS, *model)
    operation["responses"]["200"]["headers"] = {
        name: {"description": text, "schema": {"type": "string"}}
        for name, text in _RESPONSE_HEADERS.items()
    }
    return operation


def _passed(summary: str, *parameters: Parameter) -> Schema:
    """An operation that goes to a provider."""
    content = {**_OBJECT, "text/event-stream": {"schema": {"type": "string"}}}
    return {
        "summary": summary,
        "parameters": [one.describe() for one in parameters],
        "requestBody": {
            "required": True,
            "description": "As the provider documents it.",
            "content": _OBJECT,
        },
        "responses": {
            "200": {"description": "The provider's answer.", "content": content},
            "default": {
                "description": "The provider's refusal as it came, or ours in its shape.",
                "content": _OBJECT,
            },
        },
    }
