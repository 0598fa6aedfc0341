"""The frame of the simulators: ledger, seals, faults, pace, values."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.clients import ChatClient, audit, chat_events, counts, post
from thoughtline.testing import Fault, Pace, Request, Simulator, simulator
from thoughtline.testing.sims.base import credential
from thoughtline.testing.sims.ledger import Audit, Carried, Echo, Emission, Ledger
from thoughtline.testing.sims.seals import seal, unseal
from thoughtline.testing.sims.values import decode, deltas, encode, sse

STYLES = ["openai", "claude", "gemini", "xai"]


def test_unknown_names_get_a_hint():
    with pytest.raises(ValueError, match="did you mean 'deepseek'"):
        simulator("depseek")
    with pytest.raises(ValueError, match="known: deepseek"):
        simulator("qqqqqq")


# Ledger


def ledger(*emissions: Emission, marked: bool = False) -> Ledger:
    out = Ledger("sim-0-")
    for emission in emissions:
        out.add(emission, marked=marked)
    return out


def emission(n: int, turn: int, value: str, *, marker: str = "a", slot: str = "") -> Emission:
    return Emission(f"sim-0-{n:04d}", marker, turn, "reasoning", value, slot)


def test_a_serial_names_the_exchange_wherever_the_turn_stands():
    book = ledger(emission(1, 0, "x"), emission(2, 1, "y"), marked=True)
    moved = [Echo("Ok."), Echo("text sim-0-0002 ", (Carried("y"),))]
    assert book.audit("other", moved) == Audit(exact=1)


def test_merged_turns_owe_both_thoughts():
    book = ledger(emission(1, 0, "x"), emission(2, 1, "y"), marked=True)
    both = Echo("sim-0-0001 sim-0-0002", (Carried("x"), Carried("y")))
    assert book.audit("a", [both]) == Audit(exact=2)
    assert book.audit("a", [both._replace(thoughts=(Carried("y"),))]) == Audit(exact=1, missing=1)


def test_order_and_slots_count():
    book = ledger(emission(1, 0, "x", slot="call:0"), emission(1, 0, "y"))
    good = (Carried("x", "call:0"), Carried("y"))
    assert book.audit("a", [Echo("", good)]) == Audit(exact=2)
    assert book.audit("a", [Echo("", good[::-1])]) == Audit(exact=1, misplaced=1)
    assert book.audit("a", [Echo("", (Carried("x"), Carried("y")))]) == Audit(exact=1, misplaced=1)


def test_a_retried_turn_may_bring_back_either_answer():
    book = ledger(emission(1, 0, "x"), emission(2, 0, "y"))
    for value in "xy":
        assert book.audit("a", [Echo("", (Carried(value),))]) == Audit(exact=1)


def test_what_was_never_emitted_is_foreign():
    book = ledger(emission(1, 0, "x"))
    echoes = [Echo("", (Carried("x"), Carried("z"))), Echo("", (Carried("z"),))]
    assert book.audit("a", echoes) == Audit(exact=1, foreign=2)


def test_an_audit_is_readable():
    text = str(Audit(exact=2) + Audit(missing=1))
    assert text == "exact=2; altered=0; missing=1; misplaced=0; foreign=0"
    assert Audit(exact=2).clean
    assert not Audit(missing=1).clean


# Seals


@pytest.mark.parametrize("style", STYLES)
@given(claims=st.binary(max_size=300), at=st.integers(0, 10_000))
def test_a_seal_opens_only_unchanged_and_only_for_its_maker(style, claims, at):
    text = seal(b"secret", claims, style)
    assert unseal(b"secret", text, style) == claims
    assert unseal(b"other", text, style) is None
    at %= len(text)
    changed = text[:at] + ("A" if text[at] != "A" else "B") + text[at + 1 :]
    assert unseal(b"secret", changed, style) is None
    for other in STYLES:
        assert (unseal(b"secret", text, other) is None) == (other != style)


@given(text=st.text(max_size=400), style=st.sampled_from(STYLES))
def test_any_text_may_be_unsealed(text, style):
    assert unseal(b"secret", text, style) is None


def test_seals_look_like_the_real_ones():
    assert seal(b"s", b"c", "openai").startswith("gAAAA")
    assert not seal(b"s", b"c", "xai", size=241).endswith("=")


# Values


def test_bad_json_is_always_a_value_error():
    for body in (b"", b"{", b"\xff", b"[" * 100_000, b'"\\ud83d"', b"1e999"):
        with pytest.raises(ValueError, match=r"."):
            decode(body)


@given(text=st.text(), size=st.integers(1, 9))
def test_deltas_are_the_text(text, size):
    assert "".join(deltas(text, size)) == text
    halves = "".join(deltas(text, size, surrogates=True))
    assert halves.encode("utf-16", "surrogatepass").decode("utf-16") == text


def test_events():
    assert sse({"a": "é"}) == 'data: {"a":"é"}\n\n'.encode()
    assert sse({"a": "é"}, event="x", escaped=True) == b'event: x\ndata: {"a":"\\u00e9"}\n\n'
    assert sse("[DONE]") == b"data: [DONE]\n\n"
    assert encode("\ud83d", escaped=True) == b'"\\ud83d"'


@pytest.mark.parametrize(
    ("headers", "query", "account"),
    [
        ({"authorization": "Bearer a"}, "", "a"),
        ({"authorization": "bearer  a "}, "", "a"),
        ({"authorization": "Bearer"}, "", ""),
        ({"x-api-key": "b"}, "", "b"),
        ({"x-goog-api-key": "c"}, "", "c"),
        ({}, "alt=sse&key=d", "d"),
        ({}, "", ""),
    ],
)
def test_credentials(headers, query, account):
    assert credential(Request("POST", "/", headers, b"", query)) == account


# Faults


@pytest.mark.parametrize("how", ["header", "next"])
@pytest.mark.parametrize("status", [500, 429])
def test_a_status_fault_answers_like_the_provider_and_emits_nothing(how, status):
    talk = ChatClient(simulator("deepseek"))
    if how == "next":
        talk.sim.fail_next(str(status))
        reply = talk.ask()
    else:
        reply = talk.ask(x_sim_fault=str(status))
    assert reply.status == status
    assert set(json.loads(reply.body)["error"]) == {"message", "type", "param", "code"}
    assert ("retry-after" in reply.headers) == (status == 429)
    assert not talk.sim.emitted
    assert talk.run(3).status == 200


def test_faults_of_a_stream():
    talk = ChatClient(simulator("kimi"), stream=True)
    whole = talk.ask().chunks
    cut = talk.ask(x_sim_fault="cut:3")
    assert (len(cut.chunks), cut.ending) == (3, "cut")
    assert talk.ask(x_sim_fault="cut").chunks
    stall = talk.ask(x_sim_fault="stall:2")
    assert (len(stall.chunks), stall.ending) == (2, "stall")
    garbage = talk.ask(x_sim_fault="garbage:1")
    assert len(garbage.chunks) == len(whole) + 1
    with pytest.raises(UnicodeDecodeError):
        garbage.body.decode()
    talk.sim.fail_next("cut:1", times=2)
    assert [talk.ask().ending for _ in range(3)] == ["cut", "cut", "whole"]


def test_a_json_body_breaks_in_its_middle():
    reply = ChatClient(simulator("kimi")).ask(x_sim_fault="cut:1")
    assert reply.ending == "cut"
    with pytest.raises(json.JSONDecodeError):
        json.loads(reply.body)


def test_a_turn_that_was_cut_and_tried_again():
    talk = ChatClient(simulator("deepseek", serials=False))
    talk.ask(x_sim_fault="cut")
    assert audit(talk.run(3)) == counts(exact=2)


@pytest.mark.parametrize("text", ["", "200", "600", "cut:x", "cut:-1", "½", "explode", "5000"])
def test_what_is_no_fault(text):
    assert Fault.parse(text) is None
    with pytest.raises(ValueError, match="not a fault"):
        simulator("glm").fail_next(text)


# Pace


@given(chunks=st.lists(st.binary(max_size=9)).map(tuple), split=st.integers(0, 5) | st.none())
def test_pace_changes_no_byte(chunks, split):
    pieces = Pace(split=split).pieces(chunks)
    assert b"".join(pieces) == b"".join(chunks)
    if split:
        assert all(len(piece) <= split for piece in pieces)
    if split == 0:
        assert len(pieces) <= 1


# The frame


def test_everything_received_is_kept():
    talk = ChatClient(simulator("kimi"))
    talk.run(2)
    post(talk.sim, b"nonsense")
    records = talk.sim.requests
    assert [record.reply.status for record in records] == [200, 200, 400]
    assert records[1].json["messages"][1]["role"] == "assistant"
    assert records[1].audit.exact == 1
    assert records[0].marker == records[1].marker != records[2].marker
    assert records[0].reply.headers["x-request-id"] != records[1].reply.headers["x-request-id"]


def test_equal_seeds_give_equal_seals():
    def first(seed: int, name: str = "copilot") -> str:
        sim = simulator(name, seed=seed, clock=lambda: 0.0)
        ChatClient(sim).turn()
        return sim.emitted[-1].value

    assert first(1) == first(1)
    assert first(1) != first(2)


def test_usage_chunks():
    asked = ChatClient(simulator("glm"), stream=True, stream_options={"include_usage": True}).ask()
    assert chat_events(asked)[-1]["choices"] == []
    assert "usage" not in chat_events(ChatClient(simulator("glm"), stream=True).ask())[-1]
    last = chat_events(ChatClient(simulator("deepseek"), stream=True).ask())[-1]
    assert last["usage"]["prompt_cache_miss_tokens"] > 0


def test_a_simulator_without_sockets_refuses_an_upgrade():
    sim: Simulator = simulator("glm")
    reply = sim.connect(Request("GET", "/v1/responses", {"authorization": "Bearer k"}, b""))
    assert reply.status == 404
