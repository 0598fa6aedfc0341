"""Tools by name, and functions that are none."""

import pytest

from thoughtline.agents.tools import Tool, Toolbox, tool
from thoughtline.errors import ThoughtlineError


@pytest.mark.parametrize(
    ("function", "says"),
    [
        (lambda x: x, "'<lambda>' cannot be the name of a tool"),
        (eval("lambda a, /: a"), "cannot be the name"),
    ],
    ids=["lambda", "positional"],
)
def test_what_is_no_tool(function, says):
    with pytest.raises(ThoughtlineError, match=says):
        tool(function)


def test_a_toolbox_has_every_name_once():
    def read():
        pass

    box = Toolbox([read, Tool(name="write", function=read)])
    assert list(box) == ["read", "write"]
    assert [one.name for one in box.declared] == ["read", "write"]
    with pytest.raises(ThoughtlineError, match="two tools are called 'read'"):
        Toolbox([read, read])


def test_a_tool_is_still_a_function():
    @tool(name="twice")
    def double(number: int) -> int:
        return 2 * number

    assert double(4) == 8
