from thoughtline.dialects import DIALECTS
from thoughtline.dialects.params import RequestParams, ToolSpec
from thoughtline.dialects.tool_names import ToolNames
from thoughtline.engine.translation import Translation, shown_output
from thoughtline.log.handles import Handles
from thoughtline.log.parts import Call, Text, ToolKind

TURN = "01a1e65af2b471b9b5a71621523c77b3"
PATCH = ToolSpec(name="apply_patch", kind=ToolKind.CUSTOM)
TRANSLATION = Translation(
    client=DIALECTS["responses"],
    params=RequestParams(model="asked", stream=True),
    names=ToolNames([PATCH]),
    handles=Handles(b"s" * 32),
    tenant="alice",
)


def test_an_output_is_filed_as_its_client_has_it():
    calls = [Call(name="apply_patch", arguments='{"input":"*** Begin"}', id="x:0") for _ in "ab"]
    text, one, two = shown_output([Text(text="Now."), *calls], TURN, TRANSLATION.view)
    assert text == Text(text="Now.")
    assert (one.arguments, one.kind) == ("*** Begin", ToolKind.CUSTOM)
    assert one.id != two.id


def test_the_head_of_an_answer_has_the_name_that_the_client_asked_for():
    head = TRANSLATION.head(TURN, created=7.9)
    assert (head.model, head.created, head.stream) == ("asked", 7, True)
    assert TRANSLATION.handles.turn("alice", head.handle(0)) == TURN


def test_nothing_of_what_is_said_is_in_its_repr():
    assert "alice" not in repr(TRANSLATION)
