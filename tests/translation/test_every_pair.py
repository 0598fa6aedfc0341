"""What holds for every pair of a client's dialect and a provider's.

Cases of the rule book that stand elsewhere: a tool loop (also of a client that echoes no thought)
and ids that repeat in `engine/test_translated_source.py`; the same client bytes for any chunking,
and whole and streamed answers that agree, in `dialects/test_answers.py`; handles that were tampered
with in `log/test_handles.py`.
"""

import asyncio
import json
import sys
from itertools import count

import pytest

from support.clients import client
from support.loop_clock import settled
from support.translating_gateway import BASES, DIALECTS, PROVIDERS, TranslatingGateway
from thoughtline import dialects
from thoughtline.clock import SystemClock
from thoughtline.log.events import TurnEnded
from thoughtline.log.handles import Handles
from thoughtline.log.parts import Call, Origin, Text
from thoughtline.stores.memory import MemoryStore
from thoughtline.testing import Say, Think, Use, simulator

ONE_EACH = ("deepseek", "openai", "claude", "gemini")
PAIRS = [(d, p) for d in DIALECTS for p in ONE_EACH if d != PROVIDERS[p][0]]
assert len(PAIRS) == 12

every_pair = pytest.mark.parametrize(("dialect", "provider"), PAIRS)


def clean(gateway):
    """Every thought that the provider has seen so far was its own, whole and in its place."""
    audits = [record.audit for record in gateway.records]
    assert all(audit.clean for audit in audits), [str(audit) for audit in audits]
    assert [reply.status for reply in gateway.wire.replies] == [200] * len(audits)
    return audits[-1].exact > 0


def scripted(provider, script, **sim):
    return TranslatingGateway(provider, sim={"script": script, **sim})


@every_pair
def test_a_restart_after_every_turn_loses_nothing(dialect, provider):
    gateway = TranslatingGateway(provider)
    talker = gateway.client(dialect, echo="strip")
    for _ in range(7):
        assert talker.turn().status == 200
        gateway.restart()
    assert clean(gateway)


@every_pair
def test_two_conversations_in_which_all_answers_say_done(dialect, provider):
    def script(turn, sim):
        return Think(f"Thought {sim.serial}."), Say("Done.")

    gateway = scripted(provider, script, serials=False)
    one, two = (gateway.client(dialect, opening=f"Talk {n}.", echo="strip") for n in (1, 2))
    for _ in range(5):
        assert one.turn().status == 200
        assert two.turn().status == 200
    clean(gateway)


def reversed_results(entries):
    """The history with every run of results the other way round."""
    made, run = [], []
    for entry in [*entries, None]:
        is_result = entry is not None and (
            entry.get("role") == "tool" or entry.get("type") == "function_call_output"
        )
        if is_result:
            run.insert(0, entry)
            continue
        made += run
        run = []
        if entry is not None:
            for member in ("content", "parts"):
                inner = entry.get(member)
                if entry.get("role") == "user" and isinstance(inner, list):
                    entry[member] = inner[::-1]
            made.append(entry)
    return made


@every_pair
def test_results_of_parallel_calls_in_reverse_order(dialect, provider):
    gateway = TranslatingGateway(provider)
    talker = gateway.client(dialect, echo=reversed_results)
    talker.talk(7)
    assert clean(gateway)


SCRIPTS = {
    "a thought before each": lambda turn, sim: (
        Think(f"a {sim.serial}"),
        Say(f"Now. {sim.mark}"),
        Think(f"b {sim.serial}"),
        Use("run", '{"command":"ls"}'),
        Think(f"c {sim.serial}"),
        Use("search", f'{{"query":"{sim.mark}"}}'),
    ),
    "a thought after text, then text again": lambda turn, sim: (
        Think(f"a {sim.serial}"),
        Say(f"First. {sim.mark}"),
        Think(f"b {sim.serial}"),
        Say("Second."),
    ),
    "a call before text": lambda turn, sim: (
        Think(f"a {sim.serial}"),
        Use("run", f'{{"command":"{sim.mark}"}}'),
        Think(f"b {sim.serial}"),
        Say(f"It runs. {sim.mark}"),
    ),
}


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("script", SCRIPTS.values(), ids=SCRIPTS)
@every_pair
def test_thoughts_stay_where_they_were(dialect, provider, script, stream):
    gateway = scripted(provider, script)
    gateway.client(dialect, echo="strip", stream=stream).talk(4)
    clean(gateway)


def each_text_trimmed(entries):
    """The history with every block of text trimmed by itself."""
    for entry in entries:
        blocks = entry.get("content") or entry.get("parts")
        if entry.get("role") in ("assistant", "model") and isinstance(blocks, list):
            for block in blocks:
                if "text" in block:
                    block["text"] = block["text"].strip()
    return entries


@pytest.mark.parametrize(
    ("dialect", "provider"), [pair for pair in PAIRS if pair[0] in ("messages", "gemini")]
)
def test_a_client_may_trim_each_of_several_texts(dialect, provider):
    def script(turn, sim):
        return Think(f"a {sim.serial}"), Say("First.\n"), Think(f"b {sim.serial}"), Say(" Second.")

    gateway = scripted(provider, script)
    gateway.client(dialect, echo=each_text_trimmed).talk(4)
    clean(gateway)


def empty_thoughts(turn, sim):
    """An empty thought in every second answer, and none in the others."""
    return (Say(f"B. {sim.mark}"),) if turn % 2 else (Think(""), Say(f"A. {sim.mark}"))


@pytest.mark.parametrize(
    ("dialect", "provider", "stream"),
    # A stream of Chat Completions is nothing but deltas, and has no word for an empty thought.
    [
        (*pair, stream)
        for pair in PAIRS
        for stream in (False, True)
        if not stream or pair[1] != "deepseek"
    ],
)
@pytest.mark.parametrize("echo", ["keep", "strip"])
def test_an_empty_thought_goes_back_and_one_that_was_not_there_does_not(
    dialect, provider, echo, stream
):
    # DeepSeek itself never leaves it out; vLLM serves models that do.
    gateway = scripted("vllm" if provider == "deepseek" else provider, empty_thoughts)
    gateway.client(dialect, echo=echo, stream=stream).talk(5)
    assert clean(gateway)
    assert [record.audit.exact for record in gateway.records] == [0, 1, 1, 2, 2]
    if provider == "deepseek":
        messages = gateway.wire.bodies[-1]["messages"]
        said = [message for message in messages if message["role"] == "assistant"]
        assert [message.get("reasoning", None) for message in said] == ["", None, "", None]


@every_pair
def test_a_thought_that_was_cut_does_not_come_back(dialect, provider):
    gateway = TranslatingGateway(provider)
    talker = gateway.client(dialect, echo="strip", stream=True)
    talker.talk(2)
    gateway.sim.fail_next("cut:2")
    cut = talker.send()
    assert cut.status in (200, 502)
    talker.talk(3)
    assert all(record.audit.clean for record in gateway.records)


@every_pair
async def test_a_client_that_hangs_up_in_mid_thought(dialect, provider):
    gateway = TranslatingGateway(provider)
    asked = []
    client(dialect, asked.append, model=gateway.model, base=BASES[dialect], stream=True).send()
    (request,) = asked
    scope = {
        "type": "http",
        "method": "POST",
        "path": request.path,
        "query_string": request.query.encode(),
        "headers": [(n.encode(), v.encode()) for n, v in request.headers.items()],
    }
    gone, told = asyncio.Event(), []
    body = [{"type": "http.request", "body": request.body, "more_body": False}]

    async def receive():
        if body:
            return body.pop()
        await gone.wait()
        return {"type": "http.disconnect"}

    async def send(message):
        told.append(message)
        if len(told) == 3:
            gone.set()
            await settled()

    await gateway.proxy(scope, receive, send)
    await gateway.proxy.engine.writer.settled()
    ended = await gateway.facts("turn_ended")
    assert len(ended) == 1
    again = await gateway.post(request.path, request.body, dict(request.headers))
    assert again.status == 200
    assert all(record.audit.clean for record in gateway.records)


# -- content ---------------------------------------------------------------------------------------

ODD = (
    "\U0001f600 and \u2028 and \x00 and \\ and \\u0041 and \u00e9\u0301 \U0001f469\u200d\U0001f4bb"
)


def odd_script(turn, sim):
    arguments = json.dumps({"command": f"{ODD} {sim.mark}"})
    if turn % 2:
        return Think(f"{ODD} {sim.serial}"), Say(f"{ODD} {sim.mark}")
    return Think(f"{ODD} {sim.serial}"), Use("run", arguments)


@pytest.mark.parametrize("escaped", [False, True], ids=["plain", "escaped"])
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@every_pair
def test_odd_characters_survive_both_ways(dialect, provider, stream, escaped):
    gateway = scripted(provider, odd_script, escaped=escaped)
    talker = gateway.client(dialect, echo="strip", stream=stream)
    talker.talk(4)
    assert clean(gateway)
    for told in gateway.answers:
        parts = read(told)
        assert any(
            ODD in (json.loads(part.arguments)["command"] if isinstance(part, Call) else part.text)
            for part in parts
            if isinstance(part, Text | Call)
        )


def read(told):
    from support.translation import read as read_answer

    return read_answer(told["dialect"], told["body"], stream=told["stream"])


@every_pair
def test_arguments_go_back_as_they_were_emitted(dialect, provider):
    emitted = '{"path":  "a.txt" ,\\n "n":5.0, "z":1e2}'.replace("\\n", " ")

    def script(turn, sim):
        return Think(f"t {sim.serial}"), Use("read_file", emitted)

    gateway = scripted(provider, script)
    gateway.client(dialect, echo="respell").talk(3)
    clean(gateway)
    last = gateway.wire.sent[-1].body.decode()
    spelled = (
        json.dumps(emitted)[1:-1] if PROVIDERS[provider][0] in ("chat", "responses") else emitted
    )
    assert last.count(spelled) == 2


@every_pair
def test_ids_go_back_as_the_provider_made_them(dialect, provider):
    gateway = TranslatingGateway(provider)
    gateway.client(dialect, echo="keep").talk(2)
    emitted = [
        part.id
        for reply in gateway.wire.replies[:1]
        for part in read({"dialect": PROVIDERS[provider][0], "body": reply.body, "stream": False})
        if isinstance(part, Call)
    ]
    assert len(emitted) == 2
    last = gateway.wire.sent[-1].body.decode()
    told = gateway.client_call_ids
    for id in emitted:
        assert not id or last.count(f'"{id}"') == 2  # the call, and its result
    assert not set(told) & set(emitted)
    assert not any(id in last for id in told)


# -- moving, and what does not belong ----------------------------------------------------------------


@pytest.mark.parametrize("dialect", DIALECTS)
def test_no_seal_crosses_when_the_model_changes(dialect):
    store = MemoryStore()
    gateways = {name: TranslatingGateway(name, store=store) for name in ONE_EACH}
    history = None
    for provider in (*ONE_EACH, *ONE_EACH[::-1]):
        gateway = gateways[provider]
        talker = gateway.client(dialect, echo="keep", stream=True)
        talker.history = history or talker.history
        reply = talker.run(3)
        assert reply.status == 200, (provider, reply.body)
        history = list(talker.history)
    for gateway in gateways.values():
        assert all(record.audit.foreign == 0 for record in gateway.records)
        assert [reply.status for reply in gateway.wire.replies] == [200] * 6


@pytest.mark.parametrize("provider", ["deepseek", "openai", "gemini"])
def test_a_real_claude_signature_is_dropped_on_another_route(provider):
    at_home = client(
        "messages", simulator("claude"), thinking={"type": "enabled", "budget_tokens": 2048}
    )
    at_home.talk(3)
    gateway = TranslatingGateway(provider)
    talker = gateway.client("messages")
    talker.history = list(at_home.history)
    talker.talk(3)
    assert all(record.audit.foreign == 0 for record in gateway.records)
    assert not any(b"signature" in r.body and b"thinking" in r.body for r in gateway.wire.sent[:1])


@pytest.mark.parametrize("kind", ["foreign", "tampered"])
@pytest.mark.parametrize("provider", ["deepseek", "openai", "gemini"])
def test_handles_that_are_not_ours_are_ignored(provider, kind):
    gateway = TranslatingGateway(provider)
    talker = gateway.client("messages", echo="keep")
    talker.talk(2)
    foreign = Handles(b"another secret").make("", "ab" * 16, 0)

    def swapped(entries):
        for entry in entries:
            for block in entry["content"] if entry["role"] == "assistant" else ():
                if "signature" in block:
                    own = block["signature"]
                    block["signature"] = foreign if kind == "foreign" else own[:-2] + "AA"
        return entries

    talker.echo = swapped
    talker.talk(2)
    clean(gateway)  # what is visible still names the turns
    assert not any(b"e1RMA" in request.body for request in gateway.wire.sent)


# -- numbers ---------------------------------------------------------------------------------------


def usage_of(dialect, body, *, stream):
    reader = dialects.DIALECTS[dialect].reader(
        stream=stream, clock=SystemClock(), origin=Origin(), sent=0
    )
    events = [*reader.feed(body), *reader.close()]
    return next(event.usage for event in events if isinstance(event, TurnEnded))


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@every_pair
def test_tokens_are_counted_as_the_provider_counts_them(dialect, provider, stream):
    gateway = TranslatingGateway(provider)
    options = {"stream_options": {"include_usage": True}} if dialect == "chat" and stream else {}
    gateway.client(dialect, stream=stream, **options).talk(3)
    speaks = PROVIDERS[provider][0]
    for reply, told in zip(gateway.wire.replies, gateway.answers, strict=True):
        emitted = usage_of(speaks, reply.body, stream=stream)
        passed = usage_of(dialect, told["body"], stream=stream)
        assert emitted.input
        assert passed.input == emitted.input
        assert passed.output == emitted.output
        assert (passed.cached or 0) == (emitted.cached or 0)
        if dialect != "messages":  # which does not say it
            assert (passed.reasoning or 0) == (emitted.reasoning or 0)


@every_pair
def test_a_long_history_is_read_once_and_written_a_fixed_number_of_times(
    dialect, provider, monkeypatch
):
    gateway = TranslatingGateway(provider)
    talker = gateway.client(dialect, echo="strip")
    talker.talk(3)
    speaks = dialects.DIALECTS[PROVIDERS[provider][0]]
    written = count()
    reads = count()
    write, store_read = type(speaks).write, gateway.store.read

    def counted_write(*args, **options):
        next(written)
        return write(*args, **options)

    async def counted_read(*args, **options):
        next(reads)
        return await store_read(*args, **options)

    monkeypatch.setattr(type(speaks), "write", counted_write)
    monkeypatch.setattr(gateway.store, "read", counted_read)
    talker.turn()
    few = next(written), next(reads)
    talker.talk(28)
    middle = work_of(talker.turn)
    talker.talk(29)
    before = next(written), next(reads)
    long = work_of(talker.turn)
    many = next(written) - before[0] - 1, next(reads) - before[1] - 1
    assert many == few
    assert long < 2.2 * middle  # twice as long a history is no more than twice the work
    assert long < 1_500 * len(talker.history)


def work_of(act):
    """How many functions are called: the time that it takes, on any machine."""
    calls = count()

    def profile(_frame, event, _argument):
        if event == "call":
            next(calls)

    sys.setprofile(profile)
    try:
        act()
    finally:
        sys.setprofile(None)
    return next(calls)


# -- calls without results ---------------------------------------------------------------------------


def without_results(entries, *, every=1):
    """A history in which (every nth of) the results are missing, as when a run was interrupted."""
    seen = count()
    kept = []
    for entry in entries:
        inner = next((m for m in ("content", "parts") if isinstance(entry.get(m), list)), "")
        if _is_result(entry):
            if next(seen) % every:
                kept.append(entry)
            continue
        if inner:
            entry[inner] = [
                part for part in entry[inner] if not _is_result(part) or next(seen) % every
            ]
            if not entry[inner]:
                continue
        kept.append(entry)
    return kept


def _is_result(part):
    kinds = ("function_call_output", "tool_result")
    return part.get("role") == "tool" or part.get("type") in kinds or "functionResponse" in part


@pytest.mark.parametrize("every", [1, 2], ids=["all", "one of two"])
@every_pair
def test_a_call_without_a_result_is_answered(dialect, provider, every):
    gateway = TranslatingGateway(provider)
    talker = gateway.client(dialect, echo=lambda entries: without_results(entries, every=every))
    for _ in range(2):
        assert talker.turn().status == 200  # two calls at once, then one
        talker.history.append(talker.user("Never mind, go on."))
    reply = talker.turn()
    assert reply.status == 200, reply.body
    clean(gateway)
    last = gateway.wire.sent[-1].body
    assert last.count(b"No result: the call was interrupted") == (3 if every == 1 else 2)
    assert "left=call_without_result" in reply.headers["x-thoughtline-translated"]
