"""Items of a Responses conversation: whose they are, and which part each one is."""

import pytest

from support.responses_items import fc, msg, read, result, rs, shapes, user
from thoughtline.log import keys
from thoughtline.log.parts import Blob, Call, Carrier, Text, ToolKind


def test_messages_come_as_strings_or_parts():
    parts = [{"type": "output_text", "text": "a"}, {"type": "refusal", "refusal": "b"}]
    request = read(
        {"role": "user", "content": [{"type": "input_text", "text": "q"}]},
        msg(parts, id="msg_1"),
        msg("c"),
        msg(None),
        msg([{"type": "output_audio", "data": "AAAA"}]),
    )
    texts = [(part.text, part.id) for part in request.turns[0].output]
    assert texts == [("ab", "msg_1"), ("c", ""), ("", ""), ("", "")]
    assert request.turns[0].input == (Text(text="q"),)


def test_calls_and_their_results():
    request = read(
        user(),
        fc("c1", id="fc_1", status="completed"),
        {"type": "custom_tool_call", "call_id": "c2", "name": "patch", "input": "*** x"},
        {"type": "local_shell_call", "call_id": "c3", "id": "lsh_1", "action": {"command": ["ls"]}},
        {"type": "function_call", "arguments": {"a": 1}},
        result("c1"),
        result("c2", [{"type": "input_text", "text": "ok"}], "custom_tool_call_output"),
        result("c3", {"exit": 0}, "local_shell_call_output"),
    )
    assert request.turns[0].calls == (
        Call(name="f", arguments="{}", id="c1", item="fc_1"),
        Call(name="patch", arguments="*** x", id="c2", kind=ToolKind.CUSTOM),
        Call(
            name="local_shell_call",
            arguments='{"action":{"command":["ls"]}}',
            id="c3",
            item="lsh_1",
        ),
        Call(name="", arguments='{"a":1}'),
    )
    results = request.turns[1].input
    assert [(r.content, r.call) for r in results] == [
        ("done", "c1"),
        ("ok", "c2"),
        ('{"exit":0}', "c3"),
    ]
    assert [bool(r.raw) for r in results] == [False, True, True]


def test_thoughts_references_and_blobs():
    request = read(
        user(),
        rs("rs_1", encrypted_content="gAAAA"),
        {"type": "item_reference", "id": "rs_2"},
        {"id": "msg_1"},
        {"type": "web_search_call", "id": "ws_1", "action": {"query": "q"}},
        {"type": "compaction", "encrypted_content": "gAAAB"},
        {"type": "something_new", "x": 1},
    )
    one, two, three, *blobs = request.turns[0].output
    assert (one.carrier, one.id, one.seals) == (
        Carrier.ITEM,
        "rs_1",
        (keys.string_digest("gAAAA"),),
    )
    assert (two.carrier, two.id) == (Carrier.REFERENCE, "rs_2")
    assert (three.carrier, three.id) == (Carrier.REFERENCE, "msg_1")
    kinds = [blob.kind for blob in blobs]
    assert kinds == ["web_search_call", "compaction", "something_new"]


def test_what_a_client_or_its_tools_said_is_input():
    request = read(
        user(),
        fc(),
        {"type": "mcp_approval_response", "approve": True},
        {"type": "tool_search_output", "execution": "client", "tools": []},
        "a bare string",
        None,
        {"role": "tool", "content": "?"},
        {"type": "compaction_trigger"},
    )
    assert shapes(request) == ["c", ""]
    assert [type(part) for part in request.turns[1].input] == [Blob] * 5


def test_a_call_knows_its_namespace_and_a_search_what_it_looks_for():
    search = {"type": "tool_search_call", "call_id": "c2", "execution": "client"}
    request = read(
        user(), fc("c1", namespace="mcp__files"), {**search, "arguments": {"query": "files"}}
    )
    inner, found = request.turns[0].calls
    assert (inner.name, inner.namespace) == ("f", "mcp__files")
    assert (found.name, found.arguments) == ("tool_search", '{"query":"files"}')
    assert found.kind is ToolKind.SEARCH


@pytest.mark.parametrize("control", ["configuration_update", "additional_tools"])
def test_settings_on_the_way_belong_to_no_turn(control):
    setting = {"type": control, "id": "cfg_1", "reasoning": {"effort": "low"}}
    plain = read(user(), fc(), user())
    for history in ([user(), fc(), setting, user()], [user(), setting, fc(), user()]):
        assert shapes(read(*history)) == shapes(plain)
        assert [turn.input for turn in read(*history).turns] == [t.input for t in plain.turns]
