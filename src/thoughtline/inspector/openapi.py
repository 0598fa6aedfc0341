"""The inspector's routes, as `/openapi.json` describes them."""

from typing import Any

from thoughtline.gateway import shapes as common
from thoughtline.gateway.openapi import WHOLE, Schema, answer, query, refused, segment
from thoughtline.inspector import shapes

_WORD: Schema = {"type": "string", "minLength": 1}
_SECURITY: list[Schema] = [{"admin": []}]


def paths() -> dict[str, Any]:
    """Paths and what they take and give."""
    session = segment("id", "The session's id.")
    turn = segment("turn", "The turn's id.")
    thoughts = query(
        "thoughts",
        "`1`: show the text of thoughts, which is logged.",
        {"type": "string", "enum": ["0", "1"]},
    )
    return {
        "/api/sessions": _got(
            "Sessions, the most recently used first.", shapes.Sessions, _listed()
        ),
        "/api/sessions/{id}": {
            **_got(
                "One session: its tree, and a page of its turns.",
                shapes.SessionPage,
                [session, thoughts, _limit(), query("after", "The page's `nextAfter`.", _WORD)],
                missing=True,
            ),
            "delete": {
                "summary": "Delete a session and everything in it.",
                "security": _SECURITY,
                "parameters": [session],
                "responses": {
                    "200": answer("It is deleted.", shapes.Deleted),
                    "404": answer("There is none.", common.Failure),
                    "409": answer("Another session is a fork of it.", common.Failure),
                    **refused(),
                },
            },
        },
        "/api/sessions/{id}/turns/{turn}": _got(
            "One turn, and what became of the thoughts in its request.",
            shapes.TurnPage,
            [session, turn, thoughts],
            missing=True,
        ),
        "/api/feed": _feed(),
        "/api/continuity": _got(
            "What became of thoughts, over time.",
            shapes.Continuity,
            [
                query("hours", "How far to look back.", _whole(1, 24 * 90)),
                query("provider", "Only of this provider.", _WORD),
                query("model", "Only of this model.", _WORD),
            ],
        ),
    }


def _whole(least: int, most: int) -> Schema:
    return {"type": "integer", "minimum": least, "maximum": most}


def _limit() -> Schema:
    return query("limit", "How many at once; clamped to 1..200.", WHOLE)


def _listed() -> list[Schema]:
    return [
        _limit(),
        query(
            "cursor",
            "The `nextCursor` of the page before; a search goes on until that is null.",
            {"type": "string", "pattern": r"^[0-9a-f]{16}\.([0-9a-f]{2})*$"},
        ),
        query(
            "q",
            "Only sessions in which this was said, called or answered, whatever its case.",
            {"type": "string", "minLength": 1, "maxLength": 200},
        ),
        query("provider", "Only with turns of this provider.", _WORD),
        query("model", "Only with turns of this model.", _WORD),
        query("tenant", "Only of this tenant.", _WORD),
        query(
            "status",
            "How the last turn ended, or that it runs.",
            {"type": "string", "enum": ["running", "completed", "failed", "capped", "aborted"]},
        ),
    ]


def _got(about: str, shape: type, parameters: list[Schema], *, missing: bool = False) -> Schema:
    responses = {"200": answer("It.", shape), **refused()}
    if missing:
        responses["404"] = answer("There is none.", common.Failure)
    return {
        "get": {
            "summary": about,
            "security": _SECURITY,
            "parameters": parameters,
            "responses": responses,
        }
    }


def _feed() -> Schema:
    return {
        "get": {
            "summary": "What is written and what runs, as it happens; goes on by `Last-Event-ID`.",
            "security": _SECURITY,
            "parameters": [
                query("session", "Only of this session.", _WORD),
                query(
                    "after",
                    "The last event that was seen.",
                    {"type": "integer", "minimum": -1, "maximum": 10**15 - 1},
                ),
            ],
            "responses": {
                "200": {
                    "description": "Server-sent events: `hello`, `event`, `live`, `reset`.",
                    "content": {"text/event-stream": {"schema": {"type": "string"}}},
                },
                **refused(),
            },
        }
    }
