"""Pages: path, parameters and responses of each are declared once, by `@page` on its handler.

The routes of the application, the check of a request's query and `/openapi.json` are all made from
that declaration, so they cannot contradict one another.
"""

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, TypeVar, get_args

import msgspec
from msgspec import Struct
from msgspec.structs import replace
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Scope

ANONYMOUS = "anonymous"
"""The name of the tenant of clients that show no credential."""
ADMIN_PATHS = "/api"
"""The prefix of the paths that only the administrator may ask for."""
SCHEMA_REF = "#/components/schemas/{name}"

Schema = dict[str, Any]
Handler = Callable[[Request, dict[str, Any]], Awaitable[Any]]
"""Takes a request and its query's values; gives a response, or a struct that is sent as JSON."""
_H = TypeVar("_H", bound=Callable[..., Awaitable[Any]])

_INTEGER = re.compile(r"(-?[0-9]{1,15})(?:\.0{1,9})?")  # a whole number may be written `2.0`
_MAX_INTEGER = 10**15 - 1
ERROR_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    405: "invalid_request_error",
    503: "unavailable_error",
}
_encode = msgspec.json.Encoder().encode


# -- JSON and errors -----------------------------------------------------------------------------


class Json(Response):
    """A JSON response; its content is a struct, or anything else that JSON can hold."""

    media_type = "application/json"

    def render(self, content: Any) -> bytes:
        return _encode(content)

    def init_headers(self, headers: Mapping[str, str] | None = None) -> None:
        """Add headers that forbid caches to store it, and browsers to guess another type."""
        usual = {"cache-control": "no-store", "x-content-type-options": "nosniff"}
        super().init_headers(usual | dict(headers or {}))


class Problem(Struct, frozen=True, kw_only=True):
    """What went wrong."""

    message: str
    type: str
    code: str


class Failure(Struct, frozen=True, kw_only=True):
    """An answer that says no, in the shape that OpenAI's clients read."""

    error: Problem


class PageError(Exception):
    """A request to a page is answered with an error."""

    def __init__(self, message: str, code: str = "invalid_request", status: int = 400) -> None:
        super().__init__(message)
        self.code, self.status = code, status


def error_response(
    status: int, message: str, code: str, headers: dict[str, str] | None = None
) -> Json:
    """An error in the shape that OpenAI's clients read."""
    kind = ERROR_TYPES.get(status, "api_error")
    problem = Problem(message=message, type=kind, code=code)
    return Json(Failure(error=problem), status, headers=headers)


def client_address(scope: Scope) -> str:
    """The address that the request came from; empty over a local socket."""
    client = scope.get("client")
    return str(client[0]) if client else ""


# -- parameters ----------------------------------------------------------------------------------


class Parameter(Struct, frozen=True, kw_only=True):
    """A parameter of a page, as JSON Schema describes it."""

    name: str
    description: str
    schema: Schema
    location: str = "query"
    expected: str = ""  # what an error says that was expected
    default: Any = None
    clamp: tuple[int, int] | None = None  # an integer beyond these is the nearer of them
    missing: str = ""  # what an error says where a parameter that is needed is not given

    def describe(self) -> Schema:
        """The parameter in `/openapi.json`."""
        required = {"required": True} if self.location == "path" or self.missing else {}
        described = {"name": self.name, "in": self.location, "description": self.description}
        empty = {"allowEmptyValue": True} if self.clamp is not None else {}
        return described | required | empty | {"schema": self.schema}

    def parse(self, text: str) -> Any:
        """The value of a query's text. Raises `PageError` where the schema forbids it."""
        schema = self.schema
        if schema["type"] == "integer":
            return self._parse_integer(text)
        if len(text) > (longest := schema.get("maxLength", len(text))):
            raise PageError(f"`{self.name}` has {len(text)} characters; expected at most {longest}")
        known = text in schema["enum"] if "enum" in schema else True
        if not known or not re.fullmatch(schema.get("pattern", "(?s).*"), text):
            raise PageError(f"`{self.name}` is {text[:40]!r}; expected {self.expected}")
        return text

    def _parse_integer(self, text: str) -> int:
        found = _INTEGER.fullmatch(text)
        if found is None:
            raise PageError(f"`{self.name}` is {text[:40]!r}; expected a whole number")
        number = int(found[1])
        if not self.schema["minimum"] <= number <= self.schema["maximum"]:
            raise PageError(f"`{self.name}` is {number}; expected {self.expected}")
        return number if self.clamp is None else min(max(number, self.clamp[0]), self.clamp[1])


def string(name: str, description: str, *, expected: str = "", **schema: Any) -> Parameter:
    """A string of the query; JSON Schema's keywords limit it."""
    limits = schema if "enum" in schema or "pattern" in schema else {"minLength": 1, **schema}
    return Parameter(
        name=name,
        description=description,
        schema={"type": "string", **limits},
        expected=expected or ", ".join(schema.get("enum", ())),
    )


MAX_LIMIT = 200
"""Rows on a page of a listing, at most."""


def row_limit(
    description: str = "How many at once; clamped to 1..200.", *, default: int = 50
) -> Parameter:
    """The `limit` of a listing: how many rows are asked for."""
    return integer("limit", description, 1, MAX_LIMIT, default=default)


def integer(
    name: str,
    description: str,
    minimum: int,
    maximum: int = _MAX_INTEGER,
    *,
    expected: str = "",
    default: int | None = None,
) -> Parameter:
    """An integer of the query; outside of its limits it is an error.

    Where no `expected` says what an error would say, it is clamped, and an empty one is left out.
    """
    least, most = (minimum, maximum) if expected else (-_MAX_INTEGER, _MAX_INTEGER)
    return Parameter(
        name=name,
        description=description,
        schema={
            "type": "integer",
            "minimum": least,
            "maximum": most,
        },
        expected=expected or "a whole number",
        default=default,
        clamp=None if expected else (minimum, maximum),
    )


def segment(name: str, description: str) -> Parameter:
    """A segment of the path."""
    return replace(string(name, description), location="path")


def required(parameter: Parameter, missing: str) -> Parameter:
    """A parameter that must be given; `missing` is what the error says otherwise."""
    return replace(parameter, missing=missing)


def header(name: str, description: str) -> Parameter:
    """A header of the request."""
    return replace(string(name, description), location="header", schema={"type": "string"})


def parse_query(request: Request, parameters: Sequence[Parameter]) -> dict[str, Any]:
    """The values of a query: every parameter exists, is given once, and is as its schema says.

    A misspelt filter is refused, because without it the page would mean everything.
    """
    known = {one.name: one for one in parameters if one.location == "query"}
    values: dict[str, Any] = {}
    for name, text in request.query_params.multi_items():
        if name not in known:
            expected = f"expected {', '.join(known)}" if known else "none is expected here"
            raise PageError(f"there is no parameter {name!r}; {expected}", "unknown_parameter")
        if name in values:
            raise PageError(f"`{name}` is given twice; expected one")
        if not text and known[name].clamp is not None:
            continue
        if not text:
            raise PageError(f"`{name}` is empty; give it a value, or leave it out")
        values[name] = known[name].parse(text)
    for one in known.values():
        if one.missing and one.name not in values:
            raise PageError(one.missing, "parameter_needed")
    return {one.name: one.default for one in known.values()} | values


def tenant_named(name: str) -> str:
    """The tenant that a name in a query or a path means."""
    return "" if name == ANONYMOUS else name


# -- responses -----------------------------------------------------------------------------------


class PageResponse(Struct, frozen=True):
    """A response that a page may give."""

    description: str
    structs: Sequence[type] = (Failure,)  # the JSON body is one of these; none: any object
    media_type: str = "application/json"

    def describe(self) -> Schema:
        """The response in `/openapi.json`."""
        refs = [{"$ref": SCHEMA_REF.format(name=struct.__name__)} for struct in self.structs]
        other = "object" if self.media_type == "application/json" else "string"
        schema = refs[0] if len(refs) == 1 else {"anyOf": refs} if refs else {"type": other}
        return {"description": self.description, "content": {self.media_type: {"schema": schema}}}


NOT_FOUND = {404: PageResponse("There is none.")}
_ADMIN_ERRORS = {
    400: PageResponse("A parameter is wrong."),
    401: PageResponse("The admin token is needed."),
    403: PageResponse("Without a token: only on the machine itself."),
    503: PageResponse("The store does not answer."),
}


# -- pages ---------------------------------------------------------------------------------------


class Page(Struct, frozen=True, kw_only=True):
    """One page: where it is, what it takes, what it gives, and who handles it."""

    path: str  # as Starlette writes it
    handler: Handler
    summary: str
    responses: Mapping[int, PageResponse]
    parameters: Sequence[Parameter] = ()
    method: str = "GET"

    @property
    def admin(self) -> bool:
        """Whether it is the administrator's; the query of such a page is checked."""
        return self.path.startswith(ADMIN_PATHS)

    def route(self) -> Route:
        """The route of the application."""
        return Route(self.path, self.respond, methods=[self.method])

    async def respond(self, request: Request) -> Response:
        """Check the query, and let the handler answer."""
        query = parse_query(request, self.parameters) if self.admin else {}
        answered = await self.handler(request, query)
        return answered if isinstance(answered, Response) else Json(answered)

    def describe(self) -> Schema:
        """The operation in `/openapi.json`."""
        responses = {**self.responses, **(_ADMIN_ERRORS if self.admin else {})}
        described: Schema = {"summary": self.summary}
        if self.admin:
            described["security"] = [{"admin": []}]
        if self.admin or self.parameters:
            described["parameters"] = [one.describe() for one in self.parameters]
        described["responses"] = {str(status): one.describe() for status, one in responses.items()}
        return described

    @property
    def structs(self) -> set[type]:
        """The structs of its responses."""
        return {struct for one in self.responses.values() for struct in one.structs}


def page(
    *paths: str,
    response: str | PageResponse = "It.",
    parameters: Sequence[Parameter] = (),
    errors: Mapping[int, PageResponse] | None = None,
    method: str = "GET",
) -> Callable[[_H], _H]:
    """Declare the handler of a page, which is served at each of these paths.

    The handler's docstring is the page's summary. A `response` in words is JSON: one of the structs
    that the handler is annotated to return.
    """

    def declare(handler: _H) -> _H:
        ok = response
        if isinstance(ok, str):
            ok = PageResponse(ok, _returned(handler))
        handler.declared_pages = [  # type: ignore[attr-defined]
            Page(
                path=path,
                handler=handler,
                summary=handler.__doc__ or "",
                responses={200: ok, **(errors or {})},
                parameters=parameters,
                method=method,
            )
            for path in paths
        ]
        return handler

    return declare


def _returned(handler: Callable[..., Awaitable[Any]]) -> list[type]:
    """The structs among the types that a handler is annotated to return."""
    annotation = handler.__annotations__["return"]
    return [one for one in get_args(annotation) or [annotation] if issubclass(one, Struct)]


def pages_of(handlers: object) -> list[Page]:
    """The pages whose handlers are methods of this object, as they were declared."""
    return [
        replace(declared, handler=getattr(handlers, name))
        for name, method in vars(type(handlers)).items()
        for declared in getattr(method, "declared_pages", ())
    ]
