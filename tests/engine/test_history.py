"""A path of the log as a history that every provider takes."""

from support.stored_conversations import ask, call, say, target
from thoughtline.engine.history import NO_RESULT, history_for, left_behind, pending_calls
from thoughtline.log.decisions import Action, ReplayDecision
from thoughtline.log.events import Outcome
from thoughtline.log.parts import Result
from thoughtline.log.turns import Turn


def test_what_a_turn_left_behind_is_read_once_however_often_it_is_asked_for():
    """Each turn decides on all before it: read anew for each request, a session costs the cube."""
    looked = []

    class Watched(tuple):
        __slots__ = ()

        def __iter__(self):
            looked.append(self)
            return super().__iter__()

    dropped = ReplayDecision(turn=0, action=Action.DROPPED, entry="t1", reason="foreign model")
    turn = Turn(replay=Watched((dropped,)))
    assert left_behind(turn, {"t1": "key"}) == {"key": "foreign model"}
    seen = len(looked)
    assert left_behind(turn, {"t1": "other"}) == {"other": "foreign model"}
    assert left_behind(turn, {}) == {}
    assert len(looked) == seen > 0


HERE = target("deepseek", "chat").origin
THERE = target("openai", "responses", "gpt-5.6").origin
COMPLETED, FAILED, CAPPED = Outcome.COMPLETED, Outcome.FAILED, Outcome.CAPPED


def turn(*parts, outcome=COMPLETED, made_by=HERE, id="t"):
    """A turn whose input comes before `None`, and its output after it."""
    at = parts.index(None)
    return Turn(
        input=parts[:at],
        output=parts[at + 1 :],
        outcome=outcome,
        target=made_by,
        id=id,
        session="s",
    )


def test_what_failed_was_not_said_and_what_was_asked_waits():
    answered, pending = history_for(
        [turn(ask("One"), None, say("No."), outcome=FAILED), turn(ask("Two"), None, say("Yes."))],
        HERE,
    )
    assert [part.text for part in answered.input] == ["One", "Two"]
    assert answered.output == (say("Yes."),)
    assert pending == Turn()


def test_of_an_answer_that_was_cut_the_words_count_and_the_calls_do_not():
    first, _ = history_for([turn(ask("One"), None, say("I lo"), call("ls"), outcome=CAPPED)], HERE)
    assert first.output == (say("I lo"),)


def test_every_call_has_a_result_and_every_result_a_call():
    told = history_for(
        [
            turn(ask("One"), None, call("ls", "a"), call("cat", "b")),
            turn(Result(content="text", call="b"), Result(content="lost", call="x"), None),
        ],
        HERE,
    )
    one, two = told[-1].input
    assert (one.call, one.content, one.error) == ("a", NO_RESULT, True)
    assert (two.call, two.content) == ("b", "text")
    assert [one.name for one in pending_calls([turn(ask("One"), None, call("ls"))])] == ["ls"]


def test_calls_of_another_api_get_ids_that_every_api_takes():
    turns = [
        turn(ask("One"), None, call("ls", "call_00_x")),
        turn(Result(content="a", call="call_00_x"), None),
    ]
    for _ in range(2):  # always the same ones
        first, pending = history_for(turns, THERE)
        [made] = first.calls
        assert made.id.isalnum() and len(made.id) == 9
        assert pending.input[0].call == made.id
    assert history_for(turns, HERE)[0].calls[0].id == "call_00_x"
