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


def _json(about: str, *structs: type) -> Schema:
    refs = [{"$ref": _REF.format(name=struct.__name__)} for struct in structs]
    schema = refs[0] if len(refs) == 1 else {"anyOf": refs}
    return {"description": about, "content": {"application/json": {"schema": schema}}}


def _text(about: str, kind: str = "text/plain") -> Schema:
    return {"description": about, "content": {kind: {"schema": {"type": "string"}}}}


def _get(about: str, answers: Mapping[str, Schema], **more: Any) -> Schema:
    return {"get": {"summary": about, "responses": dict(answers), **more}}


def _query(name: str, about: str, schema: Schema) -> Schema:
    return {"name": name, "in": "query", "description": about, "schema": schema}


def _path(name: str, about: str) -> Schema:
    return {
        "name": name,
        "in": "path",
        "required": True,
        "description": about,
        "schema": {"type": "string", "minLength": 1},
    }


def _header(name: str, about: str) -> Schema:
    return {"name": name, "in": "header", "description": about, "schema": {"type": "string"}}


# -- our own pages -------------------------------------------------------------------------------


def _pages() -> Schema:
    health = _get("Whether the process runs.", {"200": _json("It does.", shapes.Health)})
    ready = _get(
        "Whether requests should come here.",
        {
            "200": _json("They should.", shapes.Readiness),
            "503": _json("Not now; the reasons.", shapes.Readiness),
        },
    )
    return {
        "/": _get("One line.", {"200": _text("It runs.")}),
        "/health": health,
        "/health/liveness": health,
        "/health/readiness": ready,
        "/ready": ready,
        "/metrics": _get("Metrics for Prometheus.", {"200": _text("The metrics.")}),
        "/version": _get("Who answers.", {"200": _json("The version.", shapes.Version)}),
        "/openapi.json": _get(
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
    shape = [_header("anthropic-version", "Any value: the answer has Anthropic's shape.")]
    stranger = _json("A client key is needed.", shapes.Failure)
    return {
        "/v1/models": _get(
            "Models and patterns that are known.",
            {
                "200": _json("The list.", shapes.Models, shapes.ModelInfos),
                "401": stranger,
            },
            parameters=shape,
        ),
        "/v1/models/{id}": _get(
            "One model.",
            {
                "200": _json("Some upstream takes it.", shapes.Model, shapes.ModelInfo),
                "401": stranger,
                "404": _json("No upstream does.", shapes.Failure),
            },
            parameters=[_path("id", "The model's name."), *shape],
        ),
    }


def _admin() -> Schema:
    refusals = {
        "400": _json("A parameter is wrong.", shapes.Failure),
        "401": _json("The admin token is needed.", shapes.Failure),
        "403": _json("Without a token: only on the machine itself.", shapes.Failure),
        "503": _json("The store does not answer.", shapes.Failure),
    }
    value: Schema = {"type": "string", "minLength": 1}
    filters = [_query(name, about, value) for name, about in _FILTERS.items()]
    paging = [
        _query("limit", "Entries on a page; clamped to 1..200.", {"type": "integer"}),
        _query(
            "cursor",
            "The `nextCursor` of the page before.",
            {"type": "string", "pattern": r"^[0-9]{1,18}\.[0-9]{1,9}$"},
        ),
        _query(
            "offset",
            "Entries to leave out first.",
            {"type": "integer", "minimum": 0, "maximum": 10**15 - 1},
        ),
        _query(
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
                "responses": {"200": _json("A page.", shapes.CachePage), **refusals},
            },
            "delete": {
                "summary": "Forget what the filters mean; without filters, everything.",
                "security": security,
                "parameters": filters,
                "responses": {"200": _json("It is forgotten.", shapes.Cleared), **refusals},
            },
        },
        "/api/tenants/{tenant}": {
            "delete": {
                "summary": "Delete everything of a tenant.",
                "security": security,
                "parameters": [_path("tenant", "As entries name it.")],
                "responses": {"200": _json("It is deleted.", shapes.Purged), **refusals},
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
            _path("upstream", "Its name in the settings."),
            _path("path", "The upstream's own path."),
        ),
    }
    return {**named, **passing}


def _walked(path: str, about: str) -> Schema:
    parameters = [_header(name, text) for name, text in _IN.items()]
    if "{model}" in path:
        parameters.append(_path("model", "The model's name."))
    made = _passed(f"{about}: lost thoughts are put back on the way.", *parameters)
    made["post"]["responses"]["200"]["headers"] = {
        name: {"description": text, "schema": {"type": "string"}} for name, text in _OUT.items()
    }
    return made


def _passed(about: str, *parameters: Schema) -> Schema:
    answer = {
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
                "200": {"description": "The provider's answer.", "content": answer},
                "default": {
                    "description": "The provider's refusal as it came, or ours in its shape.",
                    "content": {"application/json": {"schema": {"type": "object"}}},
                },
            },
        }
    }
