"""Errors: their default words, and faults that are told without what they were about."""

import ast
from pathlib import Path

import pytest

from thoughtline import errors
from thoughtline.errors import Conflict, StoreError, ThoughtlineError, fault


@pytest.mark.parametrize(
    "kind",
    [one for one in vars(errors).values() if isinstance(one, type) and issubclass(one, Exception)],
)
def test_every_error_has_words_and_is_one_of_the_tree(kind):
    assert issubclass(kind, ThoughtlineError)
    assert str(kind()) == kind.__doc__.strip()
    assert str(kind("in other words")) == "in other words"


def test_a_caller_may_catch_a_whole_branch():
    with pytest.raises(StoreError):
        raise Conflict


def test_a_fault_says_where_and_not_over_what():
    try:
        {}["a secret"]
    except KeyError as error:
        told = fault(error)
    assert told.startswith("an error in Thoughtline, KeyError at test_errors.py:")
    assert "secret" not in told


def test_the_root_of_the_tree_is_never_raised_itself():
    """A caller can always tell what went wrong by its class."""
    package = Path(errors.__file__).parent
    bare = [
        f"{file.relative_to(package)}:{node.lineno}"
        for file in package.rglob("*.py")
        for node in ast.walk(ast.parse(file.read_text("utf-8")))
        if isinstance(node, ast.Raise) and "ThoughtlineError" in ast.dump(node)
    ]
    assert bare == []


@pytest.mark.parametrize(
    ("kind", "builtin"),
    [
        (errors.InvalidArgument, ValueError),
        (errors.ToolError, ValueError),
        (errors.SessionNotFound, LookupError),
        (errors.TurnNotFound, LookupError),
    ],
)
def test_some_are_what_python_would_raise_too(kind, builtin):
    assert issubclass(kind, builtin)


@pytest.mark.parametrize(
    ("name", "known", "near"),
    [
        ("deepsek", ["openai", "deepseek"], "deepseek"),
        ("DeepSeek ", ["openai", "deepseek"], "deepseek"),
        ("antropic", ["anthropic"], "anthropic"),
        ("prot", ["port", "host"], "port"),
        ("minimx", ["MiniMax"], "MiniMax"),
        ("warn", ["info", "warning"], "warning"),
        ("deep", ["deepseek", "deepinfra"], ""),
        ("nope", ["openai", "deepseek"], ""),
        ("x", ["xai"], ""),
        ("", ["openai"], ""),
    ],
)
def test_a_suggestion_is_near(name, known, near):
    assert errors.nearest_name(name, known) == near
    assert errors.did_you_mean(name, known, "else") == (
        f"did you mean {near!r}?" if near else "else"
    )
