"""A client that skips a call which it cannot read loses the thought of that turn, and no other."""

from support.translating_gateway import TranslatingGateway
from thoughtline.testing import Say, Think, Use

HEADER = "x-thoughtline-replay"


def script(turn, sim):
    """Two calls at once in the first answer, one in each that follows."""
    calls = [Use("run", f'{{"command":"{sim.mark}{n}"}}') for n in range(1 if turn else 2)]
    return Think(f"Thought {sim.serial}."), Say(f"Now. {sim.mark}"), *calls


def skipping(entries):
    """The history as Haystack keeps it: no thoughts, and the second call was never there."""
    kept, gone = [], set()
    for entry in entries:
        entry.pop("reasoning_content", None)
        calls = entry.get("tool_calls") or []
        gone |= {call["id"] for call in calls[1:]}
        if calls:
            entry["tool_calls"] = calls[:1]
        if entry.get("tool_call_id") not in gone:
            kept.append(entry)
    return kept


def test_only_the_turn_with_a_skipped_call_is_missed():
    gateway = TranslatingGateway("deepseek", sim={"script": script, "realistic": False})
    talker = gateway.client("chat", echo=skipping)
    replies = [talker.turn() for _ in range(5)]
    assert [reply.status for reply in replies] == [200] * 5
    said = [dict(reply.headers)[HEADER] for reply in replies]
    assert [int("missed=1" in one) for one in said] == [0, 1, 1, 1, 1]
    assert [f"restored={n}" in one for n, one in enumerate(said[1:])] == [True] * 4
