"""Usage that was written before it had one meaning is added up when it is read."""

import pytest

from thoughtline.log.events import VERSIONS, Event, Outcome, TurnEnded, TurnStarted, draft
from thoughtline.log.parts import Origin
from thoughtline.log.sessions import Session
from thoughtline.log.usage import Usage, add_counts, usage_of


@pytest.mark.parametrize(
    ("dialect", "usage"),
    [
        ("messages", Usage(input=1400, output=280, reasoning=20, cached=1082)),
        ("gemini", Usage(input=318, output=300, reasoning=20, cached=1082)),
        ("chat", Usage(input=318, output=280, reasoning=20, cached=1082)),
        ("", Usage(input=318, output=280, reasoning=20, cached=1082)),
    ],
)
def test_old_counts_are_added_up(dialect, usage):
    old = Usage(input=318, output=280, reasoning=20, cached=1082)
    assert usage_of(old, version=1, dialect=dialect) == usage
    assert usage_of(old, version=2, dialect=dialect) == old
    assert usage_of(None, version=1, dialect=dialect) is None


def test_a_missing_count_stays_missing():
    assert add_counts(None, 3) is None
    assert add_counts(2, None, 3) == 5


@pytest.mark.parametrize(("version", "input"), [(1, 1400), (VERSIONS["turn_ended"], 318)])
def test_a_session_folds_both_versions(version, input):
    target = Origin(dialect="messages", provider="anthropic")
    bodies = [
        TurnStarted(target=target),
        TurnEnded(outcome=Outcome.COMPLETED, usage=Usage(input=318, cached=1082)),
    ]
    session = Session("s")
    for seq, body in enumerate(bodies):
        made = draft(body, id=f"t{seq}", parent="t0" if seq else "", at=1.0)
        event = Event("s", seq, made.id, made.parent, 1.0, made.type, version, made.data)
        session.apply(event)
    (turn,) = session.turns
    assert turn.usage == Usage(input=input, cached=1082)
