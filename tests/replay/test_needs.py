"""What a target wants of a history, and where the running tool loop begins."""

from thoughtline.log.parts import Blob, Call, Result, Text
from thoughtline.log.quirks import Need, Scope
from thoughtline.log.turns import Turn
from thoughtline.providers.policy import Policy
from thoughtline.replay.match import request_path
from thoughtline.replay.needs import last_question, loop_start, needs

ASKED = Turn(input=(Text(text="mend it"),), output=(Call(name="run", arguments="{}"),))
RESULT = Turn(input=(Result(content="done", call=""),), output=(Call(name="run", arguments="{}"),))
PICTURE = Turn(input=(Blob(kind="image", digest="00"),), output=(Text(text="a cat"),))
BOTH = Turn(input=(Result(content="done", call=""), Text(text="and?")), output=(Text(text="ok"),))


def policy(**fields):
    return Policy(name="test", dialect="chat", **fields)


def test_a_loop_begins_with_the_last_message_of_a_user():
    assert loop_start([ASKED, RESULT, RESULT]) == 0
    assert loop_start([ASKED, RESULT, ASKED, RESULT]) == 2
    assert loop_start([ASKED, RESULT, PICTURE]) == 2
    assert loop_start([ASKED, RESULT, BOTH]) == 0, "words beside a result go on with the loop"
    assert loop_start([]) == 0


def test_a_question_is_looked_for_from_a_position_on():
    assert last_question([ASKED, RESULT], 1) is None
    assert last_question([ASKED, RESULT], 0) == 0
    assert last_question([RESULT], 0) is None


def test_a_target_that_does_not_think_ignores_thoughts():
    wanting = policy(need=Need.REQUIRED, beyond=Need.RECOMMENDED, scope=Scope.LOOP, thinks=True)
    assert needs(request_path([ASKED]), wanting) == (Need.REQUIRED, Need.RECOMMENDED)
    assert needs(request_path([ASKED], thinking=False), wanting) == (Need.IGNORED, Need.IGNORED)


def test_what_a_target_forbids_does_not_depend_on_the_request():
    forbidding = policy(need=Need.FORBIDDEN)
    for thinking in (True, False, None):
        path = request_path([ASKED], thinking=thinking)
        assert needs(path, forbidding) == (Need.FORBIDDEN, Need.FORBIDDEN)


def test_without_tools_only_what_is_wanted_beyond_counts():
    wanting = policy(need=Need.REQUIRED, beyond=Need.IGNORED, with_tools=True, thinks=True)
    assert needs(request_path([ASKED]), wanting) == (Need.IGNORED, Need.IGNORED)
    assert needs(request_path([ASKED], tools=True), wanting)[0] is Need.REQUIRED
