"""What a model is told about a tool, read from plain Python."""

import dataclasses
import enum
import functools
import re
from pathlib import Path
from typing import Annotated, Any, Literal, TypedDict

import msgspec
import pytest

from thoughtline.agents.tools import tool
from thoughtline.errors import ThoughtlineError


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


@dataclasses.dataclass
class Point:
    x: int
    y: int = 0


class Node(msgspec.Struct):
    name: str
    children: list["Node"] = []


class Where(TypedDict):
    path: str


class Model:
    """Describes and reads itself, as the models of a well-known library do."""

    def __init__(self, city):
        self.city = city

    @classmethod
    def model_json_schema(cls):
        reference = {"$ref": "#/$defs/City"}
        return {
            "type": "object",
            "properties": {"city": reference},
            "required": ["city"],
            "$defs": {"City": {"type": "string", "title": "City"}},
        }

    @classmethod
    def model_validate(cls, value):
        if not isinstance(value.get("city"), str):
            raise RuntimeError("city: a string is wanted")
        return cls(value["city"])


def test_the_signature_is_the_schema():
    def find(query: str, limit: int = 10, exact: bool = False) -> list[str]:
        """Find things.

        Everywhere, and quickly.

        Args:
            query: what to look for,
                in plain words
            limit (int): how many at most

        Returns:
            names: of what was found
        """

    made = tool(find)
    assert made.name == "find"
    assert made.description == "Find things.\n\nEverywhere, and quickly."
    assert made.parameters == {
        "type": "object",
        "properties": {
            "query": {"description": "what to look for, in plain words", "type": "string"},
            "limit": {"description": "how many at most", "type": "integer", "default": 10},
            "exact": {"type": "boolean", "default": False},
        },
        "required": ["query"],
    }


@pytest.mark.parametrize(
    ("hint", "schema"),
    [
        (Any, {}),
        (list[int], {"type": "array", "items": {"type": "integer"}}),
        (Literal["a", "b"], {"type": "string", "enum": ["a", "b"]}),
        (Literal[1, "b"], {"enum": [1, "b"]}),
        (Colour, {"type": "string", "title": "Colour", "enum": ["blue", "red"]}),
        (int | None, {"anyOf": [{"type": "integer"}, {"type": "null"}]}),
        (Annotated[str, "where"], {"type": "string", "description": "where"}),
        (
            Annotated[int, msgspec.Meta(ge=1, description="how many")],
            {"type": "integer", "minimum": 1, "description": "how many"},
        ),
    ],
    ids=str,
)
def test_types(hint, schema):
    def use(value):
        pass

    use.__annotations__ = {"value": hint}
    assert tool(use).parameters["properties"]["value"] == schema


def test_structures_are_written_out():
    def draw(at: Point, where: Where, model: Model):
        pass

    properties = tool(draw).parameters["properties"]
    assert properties["at"]["properties"] == {
        "x": {"type": "integer"},
        "y": {"type": "integer", "default": 0},
    }
    assert properties["where"]["required"] == ["path"]
    assert properties["model"]["properties"]["city"] == {"type": "string", "title": "City"}
    assert "$ref" not in str(properties)


def test_what_is_endless_stays_a_reference():
    def grow(root: Node):
        pass

    schema = tool(grow).parameters
    assert schema["properties"]["root"]["properties"]["children"]["items"] == {
        "$ref": "#/$defs/Node"
    }
    assert schema["$defs"]["Node"]["properties"]["name"] == {"type": "string"}


def test_arguments_are_read_as_their_types():
    def draw(at: Point, colour: Colour, model: Model, n: int = 1, more: list[str] = ["a"]):  # noqa: B006
        pass

    text = '{"at": {"x": 1}, "colour": "red", "model": {"city": "Bern"}, "n": 5.0}'
    positional, named = tool(draw).read(text)
    assert positional == ()
    assert named["at"] == Point(1)
    assert named["colour"] is Colour.RED
    assert named["model"].city == "Bern"
    assert (named["n"], named["more"]) == (5, ["a"])


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "missing required field `path`"),
        ("{", "not JSON"),
        ("[1]", "not a JSON object"),
        ('"a"', "not a JSON object"),
        ('{"path": 1}', "Expected `str`, got `int` - at `$.path`"),
        ('{"path": "a", "n": "many"}', "$.n"),
        ('{"path": "a", "force": true}', "unknown field `force`; 'read' takes path, n"),
        ("[" * 100_000, "not JSON"),
    ],
    ids=lambda text: text[:20],
)
def test_arguments_that_do_not_fit(text, says):
    def read(path: str, n: int = 1):
        pass

    with pytest.raises(ValueError, match=re.escape(says)):
        tool(read).read(text)


def test_a_function_that_takes_anything():
    def send(to: str, **headers):
        pass

    assert tool(send).read('{"to": "you", "cc": "me"}') == ((), {"to": "you", "cc": "me"})


def test_a_schema_of_ones_own():
    schema = {"type": "object", "properties": {"q": {"type": "string"}}}
    made = tool(name="ask", description="Ask.", timeout=3, parameters=schema)(lambda **given: given)
    assert (made.name, made.description, made.timeout, made.parameters) == (
        "ask",
        "Ask.",
        3,
        schema,
    )
    assert made.read('{"q": 1, "x": [2]}') == ((), {"q": 1, "x": [2]})


def test_a_model_as_all_arguments():
    made = tool(name="go", parameters=Model)(lambda where: where.city)
    assert made.parameters["properties"]["city"]["type"] == "string"
    (where,), named = made.read('{"city": "Bern"}')
    assert (where.city, named) == ("Bern", {})
    with pytest.raises(ValueError, match="a string is wanted"):
        made.read('{"city": 4}')


def test_methods_partials_and_objects():
    class Files:
        def read(self, path: str) -> str:
            """Read."""

        def __call__(self, name: str) -> None:
            """Call."""

    made = [tool(Files().read), tool(name="half")(functools.partial(Files().read, path="a"))]
    made.append(tool(Files()))
    assert [one.name for one in made] == ["read", "half", "Files"]
    assert list(made[0].parameters["properties"]) == ["path"]
    assert list(made[2].parameters["properties"]) == ["name"]
    assert made[2].description == "Call."


def test_parameters_without_a_name_are_refused():
    def spread(*paths: str):
        pass

    with pytest.raises(ThoughtlineError, match=r"'spread': '\*paths: str' cannot be given by name"):
        tool(spread)


def test_types_that_cannot_be_read_are_refused():
    def odd(thing: "Unheard"):  # noqa: F821
        pass

    def odder(thing: threading_lock):
        pass

    with pytest.raises(ThoughtlineError, match="'odd': its annotations cannot be read"):
        tool(odd)
    with pytest.raises(ThoughtlineError, match="'odder': no schema can be made"):
        tool(odder)


class threading_lock:  # noqa: N801
    """A class that nobody can describe."""


async def test_paths_are_strings_to_a_model():
    def size(path: Path, beside: Path | None = None) -> str:
        return f"{path.name} {beside}"

    made = tool(size)
    assert made.parameters["properties"]["path"] == {"type": "string"}
    assert made.read('{"path": "a/b.txt"}') == ((), {"path": Path("a/b.txt"), "beside": None})
    for wrong in ('{"path": 5}', '{"path": "a\\u0000b"}'):
        with pytest.raises(ValueError, match="'size' takes path, beside"):
            made.read(wrong)


def test_a_type_without_a_schema_is_named():
    def odd(value: re.Pattern) -> None: ...

    with pytest.raises(ThoughtlineError, match=r"tool 'odd'.*re.Pattern.*parameters") as caught:
        tool(odd)
    assert "schema_hook" not in str(caught.value)
