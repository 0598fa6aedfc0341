import re

from hypothesis import given
from hypothesis import strategies as st

from thoughtline.dialects.params import ToolSpec
from thoughtline.dialects.tool_names import MAX_NAME, ToolNames
from thoughtline.log.parts import Call, ToolKind

PATCH = ToolSpec(
    name="apply_patch", description="Patches.", kind=ToolKind.CUSTOM, grammar="start: /.+/"
)


def test_a_function_stays_what_it_is():
    tool = ToolSpec(name="run", description="Runs.", parameters={"type": "object"}, strict=True)
    assert ToolNames([tool]).functions == [tool]


def test_free_text_becomes_a_function_that_tells_of_the_grammar():
    names = ToolNames([PATCH])
    (function,) = names.functions
    assert "start: /.+/" in function.description
    assert function.parameters["required"] == ["input"]
    call = Call(name="apply_patch", arguments='*** "Begin"\n', kind=ToolKind.CUSTOM)
    there = names.to_provider(call)
    assert (there.kind, there.arguments) == (ToolKind.FUNCTION, '{"input":"*** \\"Begin\\"\\n"}')
    assert names.to_client(there) == call


def test_namespaces_are_joined_and_split_again():
    names = ToolNames([ToolSpec(name="read", namespace="files"), ToolSpec(name="read")])
    assert [function.name for function in names.functions] == ["files__read", "read"]
    back = names.to_client(Call(name="files__read", arguments="{}"))
    assert (back.namespace, back.name) == ("files", "read")


def test_a_flat_name_that_another_tool_has_gets_its_own():
    names = ToolNames([ToolSpec(name="a__b"), ToolSpec(name="b", namespace="a")])
    first, second = (function.name for function in names.functions)
    assert first == "a__b"
    assert second != first
    assert names.to_client(Call(name=second, arguments="{}")).namespace == "a"


def test_names_that_differ_in_nothing_but_their_seams_get_their_own():
    tools = [ToolSpec(name="a__b"), *(ToolSpec(name="b", namespace=n) for n in ("a", "a__"))]
    names = ToolNames(tools)
    assert len({function.name for function in names.functions}) == 3
    assert [names.declared(function.name) for function in names.functions] == tools


def test_a_name_that_not_every_provider_takes_is_spelled_otherwise():
    names = ToolNames([ToolSpec(name="server.do:it"), ToolSpec(name="server_do_it")])
    first, second = (function.name for function in names.functions)
    assert re.fullmatch(r"server_do_it_[0-9a-f]{8}", first)
    assert second == "server_do_it"
    call = Call(name=first, arguments="{}")
    assert names.to_client(call).name == "server.do:it"
    assert names.to_provider(names.to_client(call)) == call


def test_a_tool_that_is_declared_twice_counts_once():
    assert len(ToolNames([ToolSpec(name="a"), ToolSpec(name="a", description="b")]).functions) == 1


def test_a_call_of_a_tool_that_nobody_declared_passes():
    call = Call(name="who", arguments="{}")
    assert ToolNames([]).to_client(call) == call
    assert ToolNames([]).declared("who").name == "who"


TOOLS = st.builds(
    ToolSpec,
    name=st.text("ab_", min_size=1, max_size=70),
    namespace=st.sampled_from(["", "a", "mcp__files", "n" * 60]),
    kind=st.sampled_from(list(ToolKind)),
)


@given(st.lists(TOOLS, max_size=12))
def test_flat_names_are_unique_short_and_lead_back(tools):
    names = ToolNames(tools)
    flat = [function.name for function in names.functions]
    assert len(set(flat)) == len(flat)
    assert all(len(name) <= MAX_NAME for name in flat)
    for tool in tools:
        found = names.declared(names.flat(tool.name, tool.namespace))
        assert (found.name, found.namespace) == (tool.name, tool.namespace)
