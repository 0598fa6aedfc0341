"""What can be asked here, as an OpenAPI document: our own pages in full, proxied ones in outline.

Schemas of our own answers come from the structs in `shapes`. What goes to a provider is the
provider's to describe: here it is a JSON object in, an object or an event stream out, and the
headers that we add.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

import thoughtline
from thoughtline.gateway import shapes

_ANSWERS = (
    shapes.Failure,
    shapes.Health,
    shapes.Readiness,
    shapes.Version,
    shapes.Model,
    shapes.Models,
    shapes.ModelInfo,
    shapes.ModelInfos,
    shapes.CachePage,
    shapes.Cleared,
    shapes.Purged,
)
_REF = "#/components/schemas/{name}"
_DIALECTS = {
    "/v1/chat/completions": "Chat Completions",
    "/v1/responses": "Responses",
    "/v1/messages": "Messages",
    "/v1beta/models/{model}:generateContent": "Gemini, at once",
    "/v1beta/models/{model}:streamGenerateContent": "Gemini, as a stream",
}
_OUT = {
    "x-thoughtline-session": "The session that the turn is kept in.",
    "x-thoughtline-turn": "The turn's id.",
    "x-thoughtline-replay": "What became of the thoughts of earlier turns.",
}
_IN = {
    "x-thoughtline-session": "A hint: which session this belongs to.",
    "x-thoughtline-replay": "`off` passes the request through untouched, `strict` answers an error "
    "where a demanded thought is lost.",
}
_FILTERS = {
    "provider": "Only entries of this provider.",
    "model": "Only entries of this model, as it was asked for.",
    "toolCallId": "Only the entry of this tool call.",
    "tenant": "Only entries of this tenant.",
}

Schema = dict[str, Any]

WHOLE: Schema = {"type": "integer", "minimum": 1 - 10**15, "maximum": 10**15 - 1}
"""A number that is clamped: any that is not absurd will do."""


def document(paths: Mapping[str, Any] | None = None, answers: Sequence[type] = ()) -> Schema:
    """The document; `paths` and the structs they answer with are of pages beside these."""
    _, components = msgspec.json.schema_components((*_ANSWERS, *answers), ref_template=_REF)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Thoughtline",
            "version": thoughtline.__version__,
            "summary": "Keeps a model's reasoning alive from turn to turn.",
        },
        "paths": {**_pages(), **_models(), **_admin(), **(paths or {}), **_proxied()},
        "components": {
            "schemas": components,
            "securitySchemes": {
                "admin": {"type": "http", "scheme": "bearer", "description": "The admin token."},
            },
        },
    }


# -- pieces --------------------------------------------------------------------------------------


def answer(about: str, *structs: type) -> Schema:
    """An answer of one of these shapes."""
    refs = [{"$ref": _REF.format(name=struct.__name__)} for struct in structs]
    schema = refs[0] if len(refs) == 1 else {"anyOf": refs}
    return {"description": about, "content": {"application/json": {"schema": schema}}}


def text(about: str, kind: str = "text/plain") -> Schema:
    """An answer in words."""
    return {"description": about, "content": {kind: {"schema": {"type": "string"}}}}


def get(about: str, answers: Mapping[str, Schema], **more: Any) -> Schema:
    """A page that can be read."""
    return {"get": {"summary": about, "responses": dict(answers), **more}}


def query(name: str, about: str, schema: Schema) -> Schema:
    """A parameter of the query."""
    return {"name": name, "in": "query", "description": about, "schema": schema}


def segment(name: str, about: str) -> Schema:
    """A part of the path."""
    return {
        "name": name,
        "in": "path",
        "required": True,
        "description": about,
        "schema": {"type": "string", "minLength": 1},
    }


def header(name: str, about: str) -> Schema:
    """A header of the request."""
    return {"name": name, "in": "header", "description": about, "schema": {"type": "string"}}


# -- our own pages -------------------------------------------------------------------------------


def _pages() -> Schema:
    health = get("Whether the process runs.", {"200": answer("It does.", shapes.Health)})
    ready = get(
        "Whether requests should come here.",
        {
            "200": answer("They should.", shapes.Readiness),
            "503": answer("Not now; the reasons.", shapes.Readiness),
        },
    )
    return {
        "/": get("One line.", {"200": text("It runs.")}),
        "/health": health,
        "/health/liveness": health,
        "/health/readiness": ready,
        "/ready": ready,
        "/metrics": get("Metrics for Prometheus.", {"200": text("The metrics.")}),
        "/version": get("Who answers.", {"200": answer("The version.", shapes.Version)}),
        "/openapi.json": get(
            "This document.",
            {
                "200": {
                    "description": "It.",
                    "content": {"application/json": {"schema": {"type": "object"}}},
                }
            },
        ),
    }


def _models() -> Schema:
    shape = [header("anthropic-version", "Any value: the answer has Anthropic's shape.")]
    stranger = answer("A client key is needed.", shapes.Failure)
    return {
        "/v1/models": get(
            "Models and patterns that are known.",
            {
                "200": answer("The list.", shapes.Models, shapes.ModelInfos),
                "401": stranger,
            },
            parameters=shape,
        ),
        "/v1/models/{id}": get(
            "One model.",
            {
                "200": answer("Some upstream takes it.", shapes.Model, shapes.ModelInfo),
                "401": stranger,
                "404": answer("No upstream does.", shapes.Failure),
            },
            parameters=[segment("id", "The model's name."), *shape],
        ),
    }


def refused() -> Schema:
    """How the administrator's pages say no."""
    return {
        "400": answer("A parameter is wrong.", shapes.Failure),
        "401": answer("The admin token is needed.", shapes.Failure),
        "403": answer("Without a token: only on the machine itself.", shapes.Failure),
        "503": answer("The store does not answer.", shapes.Failure),
    }


def _admin() -> Schema:
    refusals = refused()
    value: Schema = {"type": "string", "minLength": 1}
    filters = [query(name, about, value) for name, about in _FILTERS.items()]
    paging = [
        query("limit", "Entries on a page; clamped to 1..200.", WHOLE),
        query(
            "cursor",
            "The `nextCursor` of the page before.",
            {"type": "string", "pattern": r"^[0-9]{1,18}\.[0-9]{1,9}$"},
        ),
        query(
            "offset",
            "Entries to leave out first.",
            {"type": "integer", "minimum": 0, "maximum": 10**15 - 1},
        ),
        query(
            "include",
            "`reasoning`: show thoughts, which is logged.",
            {"type": "string", "enum": ["reasoning"]},
        ),
    ]
    security: list[Schema] = [{"admin": []}]
    return {
        "/api/cache/reasoning": {
            "get": {
                "summary": "What is remembered: statistics, and entries, the newest first.",
                "security": security,
                "parameters": [*filters, *paging],
                "responses": {"200": answer("A page.", shapes.CachePage), **refusals},
            },
            "delete": {
                "summary": "Forget what the filters mean; without filters, everything.",
                "security": security,
                "parameters": filters,
                "responses": {"200": answer("It is forgotten.", shapes.Cleared), **refusals},
            },
        },
        "/api/tenants/{tenant}": {
            "delete": {
                "summary": "Delete everything of a tenant.",
                "security": security,
                "parameters": [segment("tenant", "As entries name it.")],
                "responses": {"200": answer("It is deleted.", shapes.Purged), **refusals},
            }
        },
    }


# -- what goes to providers ----------------------------------------------------------------------


def _proxied() -> Schema:
    named = {path: _walked(path, about) for path, about in _DIALECTS.items()}
    passing = {
        "/v1/messages/count_tokens": _passed("Messages: count tokens; passes through."),
        "/u/{upstream}/{path}": _passed(
            "Any path of an upstream that is named: those above are walked, others pass through.",
            segment("upstream", "Its name in the settings."),
            segment("path", "The upstream's own path."),
        ),
    }
    return {**named, **passing}


def _walked(path: str, about: str) -> Schema:
    parameters = [header(name, text) for name, text in _IN.items()]
    if "{model}" in path:
        parameters.append(segment("model", "The model's name."))
    made = _passed(f"{about}: lost thoughts are put back on the way.", *parameters)
    made["post"]["responses"]["200"]["headers"] = {
        name: {"description": text, "schema": {"type": "string"}} for name, text in _OUT.items()
    }
    return made


def _passed(about: str, *parameters: Schema) -> Schema:
    content = {
        "application/json": {"schema": {"type": "object"}},
        "text/event-stream": {"schema": {"type": "string"}},
    }
    return {
        "post": {
            "summary": about,
            "parameters": list(parameters),
            "requestBody": {
                "required": True,
                "description": "As the provider documents it.",
                "content": {"application/json": {"schema": {"type": "object"}}},
            },
            "responses": {
                "200": {"description": "The provider's answer.", "content": content},
                "default": {
                    "description": "The provider's refusal as it came, or ours in its shape.",
                    "content": {"application/json": {"schema": {"type": "object"}}},
                },
            },
        }
    }
