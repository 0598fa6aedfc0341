"""A page is declared once: its routes, the check of its query and its description follow."""

from typing import Any

import pytest
from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response

from thoughtline.gateway.pages.page import (
    NOT_FOUND,
    PageError,
    PageResponse,
    integer,
    page,
    pages_of,
    parse_query,
    segment,
    string,
)


class Shelf(Struct):
    books: int


class ShelfPages:
    @page(
        "/api/shelves/{id}",
        "/api/racks/{id}",
        parameters=[
            segment("id", "Which."),
            integer("limit", "How many.", 1, 10, default=5),
            integer("since", "A year.", 1500, expected="1500 or later"),
            string("order", "How.", enum=["up", "down"]),
            string("mark", "Where.", pattern=r"^[0-9]+\.[0-9]+$", expected="the last mark"),
            string("text", "What.", maxLength=3),
        ],
        errors=NOT_FOUND,
    )
    async def shelf(self, _: Request, query: dict[str, Any]) -> Shelf | Response:
        """One shelf."""
        return Shelf(books=query["limit"])

    @page("/plain", response=PageResponse("It runs.", (), "text/plain"))
    async def plain(self, _: Request, __: dict[str, Any]) -> Response:
        """One line."""
        return Response(b"hello")


SHELF, RACK, PLAIN = pages_of(ShelfPages())


def asked(query):
    return Request({"type": "http", "query_string": query.encode(), "headers": []})


def test_a_handler_is_declared_once_for_all_of_its_paths():
    assert [one.path for one in (SHELF, RACK, PLAIN)] == [
        "/api/shelves/{id}",
        "/api/racks/{id}",
        "/plain",
    ]
    assert SHELF.route().methods == {"GET", "HEAD"}


def test_it_is_described_by_its_docstring_annotation_and_parameters():
    described = SHELF.describe()
    assert described["summary"] == "One shelf."
    assert sorted(described["responses"]) == ["200", "400", "401", "403", "404", "503"]
    schema = described["responses"]["200"]["content"]["application/json"]["schema"]
    assert schema == {"$ref": "#/components/schemas/Shelf"}
    assert [(one["name"], one["in"]) for one in described["parameters"]][:2] == [
        ("id", "path"),
        ("limit", "query"),
    ]
    assert Shelf in SHELF.structs
    assert PLAIN.describe() == {
        "summary": "One line.",
        "responses": {
            "200": {
                "description": "It runs.",
                "content": {"text/plain": {"schema": {"type": "string"}}},
            }
        },
    }


async def test_its_query_is_checked_before_the_handler_is_asked():
    assert (await SHELF.respond(asked("limit=99&since=1984"))).body == b'{"books":10}'
    assert (await SHELF.respond(asked(""))).body == b'{"books":5}'
    assert (await PLAIN.respond(asked("limit=x"))).body == b"hello"  # anybody's page: not checked


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("limit=x", "`limit` is 'x'; expected a whole number"),
        ("limit=" + "9" * 16, f"`limit` is '{'9' * 16}'; expected a whole number"),
        ("since=1499", "`since` is 1499; expected 1500 or later"),
        ("order=sideways", "`order` is 'sideways'; expected up, down"),
        ("mark=1.x", "`mark` is '1.x'; expected the last mark"),
        ("mark=1.1%0A", "`mark` is '1.1\\n'; expected the last mark"),
        ("text=four", "`text` has 4 characters; expected at most 3"),
        ("text=", "`text` is empty; give it a value, or leave it out"),
        ("text=a&text=b", "`text` is given twice; expected one"),
        ("id=1", "there is no parameter 'id'; expected limit, since, order, mark, text"),
    ],
)
def test_what_its_schema_forbids_is_refused(query, message):
    with pytest.raises(PageError) as refused:
        parse_query(asked(query), SHELF.parameters)
    assert str(refused.value) == message
    assert refused.value.status == 400


def test_a_text_may_have_any_characters():
    assert parse_query(asked("text=a%0Ab"), SHELF.parameters)["text"] == "a\nb"
