"""The Responses API over a WebSocket: memory, lanes, limits, steering, and a real socket."""

import asyncio
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from support.clients import TOOL_NAMES, ResponsesClient, load
from support.junk import JUNK, places, put
from thoughtline.testing.sims.app import SimApp
from thoughtline.testing.sims.base import Pace, Request, Say, Think
from thoughtline.testing.sims.responses import PROVIDERS
from thoughtline.testing.sims.responses_ws import ResponsesSocket
from thoughtline.testing.sims.serve import serving

CLEAN = "altered=0; missing=0; misplaced=0; foreign=0"
AUTH = {"authorization": "Bearer key-one"}
TOOLS = [{"type": "function", "name": name, "parameters": {}} for name in TOOL_NAMES]


class Clock:
    def __init__(self):
        self.now = 1000.0

    def __call__(self):
        return self.now


def simulator(name="openai-ws", **options):
    return PROVIDERS[name](**options)


def opened(sim=None, key="key-one", **options):
    sim = sim or simulator(**options)
    socket = sim.connect(Request("GET", sim.row.paths[0], {"authorization": f"Bearer {key}"}, b""))
    assert isinstance(socket, ResponsesSocket)
    return socket


def create(text="go", **changes):
    given = [{"role": "user", "content": text}] if isinstance(text, str) else text
    body = {"type": "response.create", "model": "gpt-5.6", "store": False, "tools": TOOLS}
    return json.dumps({**body, "input": given, **changes})


def ask(socket, text="go", **changes):
    """Send one request; gives its frames."""
    return [load(frame) for frame in socket.receive(create(text, **changes))]


def complete(socket, text="go", **changes):
    """Send one request; gives the completed response."""
    frames = ask(socket, text, **changes)
    done = [frame for frame in frames if frame["type"] == "response.completed"]
    assert len(done) == 1, frames[-1]
    return done[0]["response"]


def answers(response):
    calls = [item for item in response["output"] if item["type"] == "function_call"]
    if not calls:
        return [{"role": "user", "content": "and then?"}]
    return [
        {"type": "function_call_output", "call_id": call["call_id"], "output": "ok"}
        for call in calls
    ]


def failure(frames):
    assert len(frames) == 1
    assert frames[0]["type"] == "error"
    return frames[0]


def not_found(name, **extra):
    return {
        "type": "error",
        "status": 400,
        "error": {
            "type": "invalid_request_error",
            "code": "previous_response_not_found",
            "message": f"Previous response with id '{name}' not found.",
            "param": "previous_response_id",
        },
        **extra,
    }


# --- Continuation ------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["openai", "openai-ws", "codex", "xai"])
def test_only_new_items_are_sent_and_no_thought_is_lost(name):
    model = "grok-4.5" if name == "xai" else "gpt-5.6"
    socket = opened(simulator(name))
    response = complete(socket, model=model)
    for turn in range(12):
        parent = {"previous_response_id": response["id"]}
        response = complete(socket, answers(response), model=model, **parent)
        assert response["metadata"]["x-sim-thoughts"].endswith(CLEAN), turn
    assert response["metadata"]["x-sim-thoughts"].startswith("exact=16;")
    assert socket.simulator.requests[-1].audit.exact == 16


def test_full_history_is_accepted_as_well():
    sim = simulator()
    one = ResponsesClient(sim)
    one.talk(4)
    frames = ask(opened(sim), [load(item) for item in one.history])
    assert frames[-1]["response"]["metadata"]["x-sim-thoughts"] == (
        # Read and written again: the odd spelling is gone from one item.
        "exact=4; altered=1; missing=0; misplaced=0; foreign=0"
    )


def test_frames_are_the_events_of_the_stream():
    frames = ask(opened())
    kinds = [frame["type"] for frame in frames]
    assert kinds[:2] == ["response.created", "response.in_progress"]
    assert kinds[-1] == "response.completed"
    assert "[DONE]" not in kinds
    assert [frame["sequence_number"] for frame in frames] == list(range(len(frames)))
    assert not any("stream_id" in frame for frame in frames)
    one = ResponsesClient(simulator(), stream=True)
    over_http = [load(chunk.partition(b"data: ")[2])["type"] for chunk in one.send().chunks]
    assert kinds == over_http


def test_memory_is_the_latest_response_only():
    socket = opened()
    first = complete(socket)
    second = complete(socket, answers(first), previous_response_id=first["id"])
    again = ask(socket, answers(first), previous_response_id=first["id"])
    assert failure(again) == not_found(first["id"])
    third = complete(socket, answers(second), previous_response_id=second["id"])
    assert third["previous_response_id"] == second["id"]


def test_memory_dies_with_the_socket():
    sim = simulator()
    first = complete(opened(sim))
    frames = ask(opened(sim), answers(first), previous_response_id=first["id"])
    assert failure(frames) == not_found(first["id"])


def test_stored_responses_survive_the_socket():
    sim = simulator()
    first = complete(opened(sim), store=True)
    again = {"previous_response_id": first["id"]}
    assert complete(opened(sim), answers(first), store=True, **again)
    assert failure(ask(opened(sim), answers(first), store=False, **again)) == not_found(first["id"])
    other = opened(sim, key="key-two")
    assert failure(ask(other, answers(first), store=True, **again)) == not_found(first["id"])


def test_failed_continuation_evicts_its_parent():
    socket = opened()
    first = complete(socket)
    bad = [{"type": "function_call_output", "call_id": "call_unknown", "output": ""}]
    error = failure(ask(socket, bad, previous_response_id=first["id"]))
    assert error["status"] == 400
    assert error["error"]["message"] == (
        "No tool call found for function call output with call_id call_unknown."
    )
    frames = ask(socket, answers(first), previous_response_id=first["id"])
    assert failure(frames) == not_found(first["id"])


def test_server_error_evicts_too():
    socket = opened()
    first = complete(socket)
    socket.simulator.fail_next("500")
    error = failure(ask(socket, answers(first), previous_response_id=first["id"]))
    assert (error["status"], error["error"]["type"]) == (500, "server_error")
    frames = ask(socket, answers(first), previous_response_id=first["id"])
    assert failure(frames) == not_found(first["id"])


def test_failed_fresh_request_evicts_nothing():
    socket = opened()
    first = complete(socket)
    assert failure(ask(socket, "x", model="nonsense"))["error"]["code"] == "model_not_found"
    assert complete(socket, answers(first), previous_response_id=first["id"])


def test_item_sent_twice():
    socket = opened()
    first = complete(socket)
    frames = ask(socket, first["output"] + answers(first), previous_response_id=first["id"])
    message = failure(frames)["error"]["message"]
    assert message.startswith("Duplicate item found with id rs_")


def test_blob_of_another_account():
    sim = simulator()
    first = complete(opened(sim))
    history = [{"role": "user", "content": "go"}, *first["output"], *answers(first)]
    error = failure(ask(opened(sim, key="key-two"), history))
    assert error["error"]["code"] == "invalid_encrypted_content"
    assert error["error"]["param"] is None


def test_warm_up():
    socket = opened()
    warm = complete(socket, generate=False)
    assert warm["output"] == []
    assert not socket.simulator.emitted
    first = complete(socket, [], previous_response_id=warm["id"])
    assert next(item["type"] for item in first["output"]) == "reasoning"
    assert complete(socket, answers(first), previous_response_id=first["id"])


def test_stream_is_tolerated_and_background_is_not():
    assert complete(opened(), stream=True)
    assert complete(opened(), background=False)
    error = failure(ask(opened(), background=True))["error"]
    assert (error["code"], error["param"]) == ("unsupported_parameter", "background")


def test_codex_rules_and_extra_frames():
    socket = opened(simulator("codex"))
    kinds = [frame["type"] for frame in ask(socket)]
    assert kinds[0] == "codex.rate_limits"
    assert "codex.response.metadata" in kinds
    assert kinds[-1] == "responsesapi.websocket_timing"
    error = failure(ask(socket, store=True))
    assert error["error"]["message"] == "Store must be set to false"
    assert error["status"] == 400


# --- Frames that are not requests --------------------------------------------------------------


@pytest.mark.parametrize("frame", ["", "{", "[]", "5", '"response.create"', "{}", b"\xff\xfe"])
def test_not_an_event(frame):
    frames = [load(one) for one in opened().receive(frame)]
    error = failure(frames)
    assert error["status"] == 400
    assert error["error"]["type"] == "invalid_request_error"


def test_unknown_event():
    error = failure([load(f) for f in opened().receive('{"type":"response.cancel"}')])["error"]
    assert error["message"] == (
        "Invalid value: 'response.cancel'. Supported values are: 'response.create' and"
        " 'response.steer'."
    )
    assert error["param"] == "type"


def test_nested_body_of_older_drafts():
    frame = json.dumps({"type": "response.create", "response": {"model": "gpt-5.6", "input": "x"}})
    error = failure([load(one) for one in opened().receive(frame)])["error"]
    assert error["message"] == "Unknown parameter: 'response'."


# --- The end of a connection -------------------------------------------------------------------


def test_sixty_minutes():
    clock = Clock()
    socket = opened(clock=clock)
    first = complete(socket)
    clock.now += 3599
    second = complete(socket, answers(first), previous_response_id=first["id"])
    assert socket.close_code is None
    clock.now += 1
    frames = ask(socket, answers(second), previous_response_id=second["id"])
    assert frames == [
        {
            "type": "error",
            "status": 400,
            "error": {
                "type": "invalid_request_error",
                "code": "websocket_connection_limit_reached",
                "message": "Responses websocket connection limit reached (60 minutes). Create a new"
                " websocket connection to continue.",
            },
        }
    ]
    assert socket.close_code == 1001
    assert socket.receive(create()) == []


def test_sixty_minutes_in_the_middle_of_a_response():
    clock = Clock()
    socket = opened(clock=clock)
    socket.take(create())
    socket.step()
    clock.now += 3600
    assert load(socket.step()[0])["error"]["code"] == "websocket_connection_limit_reached"
    assert socket.step() == []
    assert not socket.simulator.emitted  # nothing was delivered, so that nothing is owed


# --- Lanes -------------------------------------------------------------------------------------


def test_lanes_are_named_on_every_event():
    frames = ask(opened(), stream_id="a.B-c_1")
    assert {frame.get("stream_id") for frame in frames} == {"a.B-c_1"}


def test_lanes_interleave_and_one_lane_does_not():
    socket = opened()
    for name, text in (("a", "one"), ("b", "two"), ("a", "three")):
        assert socket.take(create(text, stream_id=name)) == []
    frames = []
    while not socket.idle:
        frames += [load(frame) for frame in socket.step()]
    lanes = [frame["stream_id"] for frame in frames]
    assert lanes[:4] == ["a", "b", "a", "b"]
    of_a = [frame["type"] for frame in frames if frame["stream_id"] == "a"]
    ends = [at for at, kind in enumerate(of_a) if kind == "response.completed"]
    starts = [at for at, kind in enumerate(of_a) if kind == "response.created"]
    assert starts == [0, ends[0] + 1]


def test_older_contract_runs_one_after_the_other():
    socket = opened(simulator("openai"))
    socket.take(create("one"))
    socket.take(create("two"))
    kinds = []
    while not socket.idle:
        step = [load(frame)["type"] for frame in socket.step()]
        assert len(step) <= 1
        kinds += step
    assert kinds.index("response.completed") < kinds.index("response.created", 1)
    error = failure(ask(socket, stream_id="a"))["error"]
    assert error["message"] == "Unknown parameter: 'stream_id'."


@pytest.mark.parametrize("name", ["", "a b", "ä", "x" * 257, 5, ["a"], True])
def test_bad_lane(name):
    assert failure(ask(opened(), stream_id=name)) == {
        "type": "error",
        "status": 400,
        "error": {
            "type": "invalid_request_error",
            "code": "invalid_stream_id",
            "message": "The 'stream_id' field must be a non-empty string with at most 256"
            " characters and may only contain letters, numbers, underscores, hyphens, and periods.",
            "param": "stream_id",
        },
    }


def test_thirty_two_lanes_beside_the_default_one():
    socket = opened()
    complete(socket)
    for at in range(32):
        assert complete(socket, stream_id=f"lane{at}")
    assert failure(ask(socket, stream_id="agent_33")) == {
        "type": "error",
        "status": 400,
        "stream_id": "agent_33",
        "error": {
            "type": "invalid_request_error",
            "code": "websocket_stream_limit_reached",
            "message": "This WebSocket connection has reached its maximum number of distinct stream"
            " IDs (32). Reuse an existing stream_id or open a new WebSocket connection.",
            "param": "stream_id",
        },
    }
    assert complete(socket, stream_id="lane0")
    assert complete(socket)


def test_sixteen_in_flight_and_the_rest_waits():
    socket = opened()
    for at in range(20):
        socket.take(create(str(at), stream_id=f"lane{at}"))
    frames = [load(frame) for frame in socket.step()]
    assert len(frames) == 16
    assert {frame["type"] for frame in frames} == {"response.created"}
    rest = []
    while not socket.idle:
        rest += [load(frame) for frame in socket.step()]
    done = [frame for frame in rest if frame["type"] == "response.completed"]
    assert len(done) == 20


def test_error_names_its_lane():
    socket = opened()
    error = failure(ask(socket, stream_id="main", previous_response_id="resp_abc"))
    assert error == not_found("resp_abc", stream_id="main")


def test_lane_without_previous_starts_afresh():
    socket = opened()
    first = complete(socket, stream_id="a")
    fresh = complete(socket, "something else", stream_id="a")
    assert fresh["previous_response_id"] is None
    frames = ask(socket, answers(first), stream_id="a", previous_response_id=first["id"])
    assert failure(frames) == not_found(first["id"], stream_id="a")


def test_fork_into_another_lane():
    socket = opened()
    first = complete(socket, stream_id="main")
    fork = complete(socket, answers(first), stream_id="critic", previous_response_id=first["id"])
    same = complete(socket, answers(first), stream_id="main", previous_response_id=first["id"])
    for name, one in (("critic", fork), ("main", same)):
        more = complete(socket, answers(one), stream_id=name, previous_response_id=one["id"])
        assert more["metadata"]["x-sim-thoughts"] == f"exact=3; {CLEAN}"


def test_failed_fork_keeps_the_parent():
    socket = opened()
    first = complete(socket, stream_id="main")
    bad = ask(socket, "no results", stream_id="critic", previous_response_id=first["id"])
    assert "No tool output found" in failure(bad)["error"]["message"]
    assert complete(socket, answers(first), stream_id="main", previous_response_id=first["id"])


def test_fork_that_starts_too_late():
    socket = opened(script=lambda turn, sim: (Think(sim.serial), Say(f"yes {sim.mark}")))
    first = complete(socket, stream_id="main")
    parent = {"previous_response_id": first["id"]}
    socket.take(create("busy", stream_id="critic"))
    socket.take(create("still busy", stream_id="critic"))
    socket.take(create("fork", stream_id="critic", **parent))  # waits behind the others
    socket.take(create("go on", stream_id="main", **parent))
    frames = []
    while not socket.idle:
        frames += [load(frame) for frame in socket.step()]
    failed = [frame for frame in frames if frame["type"] == "error"]
    assert failed == [not_found(first["id"], stream_id="critic")]


def test_fork_that_is_in_progress_in_time():
    socket = opened(script=lambda turn, sim: (Think(sim.serial), Say(f"yes {sim.mark}")))
    first = complete(socket, stream_id="main")
    parent = {"previous_response_id": first["id"]}
    socket.take(create("fork", stream_id="critic", **parent))
    kinds = []
    while "response.in_progress" not in kinds:
        kinds += [load(frame)["type"] for frame in socket.step()]
    socket.take(create("go on", stream_id="main", **parent))
    while not socket.idle:
        kinds += [load(frame)["type"] for frame in socket.step()]
    assert kinds.count("response.completed") == 2


# --- Steering ----------------------------------------------------------------------------------


def talker(turn, sim):
    return Think(f"a {sim.serial}"), Say(f"one {sim.mark}"), Think(f"b {sim.serial}"), Say("two")


def steer(parent, given="Shorter, please.", **extra):
    return json.dumps(
        {"type": "response.steer", "previous_response_id": parent, "input": given, **extra}
    )


def run(socket, until="", limit=1000):
    """Step until an event of this type; gives all frames."""
    frames = []
    for _ in range(limit):
        if socket.idle:
            return frames
        frames += [load(frame) for frame in socket.step()]
        if until and until in [frame["type"] for frame in frames]:
            return frames
    raise AssertionError("it never ends")


def started(script=talker, **changes):
    socket = opened(script=script)
    socket.take(create(model="gpt-6-astra", **changes))
    frames = run(socket, "response.output_item.added")
    return socket, frames[0]["response"]["id"]


def test_steered_response_ends_and_another_begins():
    socket, parent = started()
    accepted = load(socket.take(steer(parent))[0])
    assert accepted["type"] == "response.steer.accepted"
    assert accepted["steer"]["previous_response_id"] == parent
    assert accepted["steer"]["id"].startswith("steer_")
    assert isinstance(accepted["sequence_number"], int)
    frames = run(socket)
    kinds = [frame["type"] for frame in frames]
    at = kinds.index("response.incomplete")
    ended = frames[at]["response"]
    assert ended["incomplete_details"] == {"reason": "steered"}
    assert [item["type"] for item in ended["output"]] == ["reasoning"]
    assert kinds[at + 1] == "response.created"
    successor = frames[-1]["response"]
    assert successor["previous_response_id"] == parent
    assert successor["metadata"]["x-sim-thoughts"].endswith(CLEAN)
    # The thought that was cut off has nothing after it: whoever sends it back is refused.
    history = [
        {"role": "user", "content": "go"},
        *ended["output"],
        {"role": "user", "content": "x"},
    ]
    error = failure(ask(socket, history))["error"]
    assert "without its required following item" in error["message"]


def test_steered_at_the_last_item_completes_and_another_begins():
    socket, parent = started(lambda turn, sim: (Say(f"only {sim.mark}"),))
    socket.take(steer(parent, [{"role": "user", "content": "More."}]))
    kinds = [frame["type"] for frame in run(socket)]
    assert "response.incomplete" not in kinds
    assert kinds.count("response.completed") == 2


def test_steered_while_the_client_owes_a_result():
    socket, parent = started(None)
    run(socket, "response.function_call_arguments.done")
    assert load(socket.take(steer(parent))[0])["type"] == "response.steer.accepted"
    frames = run(socket)
    assert [frame["type"] for frame in frames][-2:] == [
        "response.completed",
        "response.steer.pending",
    ]
    response, waiting = frames[-2]["response"], frames[-1]
    calls = [item for item in response["output"] if item["type"] == "function_call"]
    assert [one["call_id"] for one in waiting["required_input"]] == [c["call_id"] for c in calls]
    next_one = {"previous_response_id": parent, "model": "gpt-6-astra"}
    complete(socket, answers(response), **next_one)
    items = socket.lanes[None].latest.items
    assert any(item.value.get("content") == "Shorter, please." for item in items)


def refused(socket, frame):
    frames = [load(one) for one in socket.take(frame)]
    assert [one["type"] for one in frames] == ["response.steer.failed"]
    assert frames[0]["error"]["type"] == "invalid_request_error"
    assert "id" not in frames[0]["steer"]
    return frames[0]["error"]["code"], frames[0]["steer"]["input"]


def test_refused_steers_give_the_input_back():
    socket, parent = started()
    for bad in ("", [], [{"role": "assistant", "content": "x"}], 5, None, [{"role": "user"}]):
        assert refused(socket, steer(parent, bad)) == ("invalid_input", bad)
    extra = [{"role": "user", "content": "x", "id": "msg_1"}]
    assert refused(socket, steer(parent, extra))[0] == "invalid_input"
    assert refused(socket, steer(parent, model="gpt-6"))[0] == "invalid_input"
    assert refused(socket, steer("resp_unknown"))[0] == "response_not_found"
    for _ in range(8):
        assert "accepted" in socket.take(steer(parent))[0]
    assert refused(socket, steer(parent))[0] == "too_many_pending_steers"
    older = opened(script=talker)
    older.take(create())
    name = run(older, "response.created")[0]["response"]["id"]
    assert refused(older, steer(name))[0] == "steering_not_supported"
    run(older)
    assert refused(older, steer(name))[0] == "response_already_completed"


def test_older_contract_knows_no_steering():
    frames = opened(simulator("openai")).receive(steer("resp_1"))
    assert failure([load(frame) for frame in frames])["error"]["param"] == "type"


# --- Faults ------------------------------------------------------------------------------------


def test_faults():
    socket = opened()
    socket.simulator.fail_next("cut:3")
    assert len(ask(socket)) == 3
    assert socket.close_code == 1011
    assert not socket.simulator.emitted
    socket = opened()
    socket.simulator.fail_next("stall:2")
    assert len(ask(socket)) == 2
    assert socket.close_code is None
    assert socket.receive(create()) == []
    socket.simulator.fail_next("garbage:1")
    frames = socket.receive(create(stream_id="other"))
    assert not frames[1].endswith("}")
    assert load(frames[-1])["type"] == "response.completed"


# --- Whatever is sent --------------------------------------------------------------------------


@settings(max_examples=80)
@given(data=st.data())
def test_wrong_types_anywhere_get_a_frame(data):
    socket = opened()
    first = complete(socket, stream_id="a")
    body = json.loads(create(answers(first), stream_id="a", previous_response_id=first["id"]))
    body["input"] = [{"role": "user", "content": "go"}, *first["output"], *body["input"]]
    path = data.draw(st.sampled_from(list(places(body))))
    frames = socket.receive(json.dumps(put(body, path, data.draw(JUNK))))
    last = load(frames[-1])
    assert last["type"] in ("error", "response.completed", "response.steer.failed")
    if last["type"] == "error":
        assert set(last) <= {"type", "status", "error", "stream_id"}
        assert set(last["error"]) == {"type", "code", "message", "param"}


@given(given=JUNK)
def test_any_steer_gets_a_frame(given):
    socket, parent = started()
    frame = steer(parent, given)
    if isinstance(given, dict):
        frame = json.dumps({**given, "type": "response.steer"})
    frames = [load(one) for one in socket.take(frame)]
    assert frames[0]["type"].startswith(("response.steer.", "error"))


# --- On an ASGI server -------------------------------------------------------------------------


class Line:
    """Both ends of an ASGI connection: a script of messages in, a list of messages out."""

    def __init__(self, *frames, key="key-one", extensions=True):
        headers = [(b"authorization", f"Bearer {key}".encode())] if key else []
        self.scope = {
            "type": "websocket",
            "path": "/openai-ws/v1/responses",
            "headers": headers,
            "query_string": b"",
            "extensions": {"websocket.http.response": {}} if extensions else {},
        }
        self.incoming = [{"type": "websocket.connect"}]
        self.incoming += [{"type": "websocket.receive", **frame} for frame in frames]
        self.sent = []
        self.wanted = len(frames)
        self.done = asyncio.Event()

    async def receive(self):
        if self.incoming:
            return self.incoming.pop(0)
        await self.done.wait()
        return {"type": "websocket.disconnect"}

    async def send(self, message):
        self.sent.append(message)
        ended = sum('"response.completed"' in one.get("text", "") for one in self.sent)
        if ended == self.wanted:
            self.done.set()


async def served(line, sim, *, send=None):
    """Let a server with this provider serve the connection."""
    await SimApp({"openai-ws": sim})(line.scope, line.receive, send or line.send)


async def test_lanes_are_served_at_the_same_time():
    line = Line({"text": create()}, {"bytes": create("two", stream_id="b").encode()})
    await served(line, simulator())
    assert line.sent[0] == {"type": "websocket.accept"}
    frames = [load(message["text"]) for message in line.sent[1:]]
    assert {frame.get("stream_id") for frame in frames} == {None, "b"}


async def test_a_connection_ends_by_itself():
    clock = Clock()
    sim = simulator(clock=clock)
    line = Line({"text": create()})

    async def send(message):
        await line.send(message)
        clock.now += 3600

    await served(line, sim, send=send)
    assert load(line.sent[-2]["text"])["error"]["code"] == "websocket_connection_limit_reached"
    assert line.sent[-1] == {"type": "websocket.close", "code": 1001}


@pytest.mark.parametrize("extensions", [False, True])
async def test_a_connection_is_refused(extensions):
    line = Line(key="", extensions=extensions)
    await served(line, simulator())
    if extensions:
        assert line.sent[0]["status"] == 401
        assert "error" in load(line.sent[1]["body"])
    else:
        assert line.sent == [{"type": "websocket.close", "code": 1008}]


# --- A real socket -----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def sims():
    with serving("openai", "openai-ws", "codex", "deepseek-responses") as served:
        yield served


def url(sims, name):
    return f"{sims.url(name).replace('http', 'ws', 1)}/responses"


async def exchange(socket, frame):
    await socket.send(frame)
    while True:
        event = load(await socket.recv(decode=False))
        if event["type"] in ("response.completed", "error"):
            return event


@pytest.mark.parametrize("name", ["openai", "openai-ws", "codex"])
async def test_real_conversation(sims, name):
    async with connect(url(sims, name), additional_headers=AUTH) as socket:
        event = await exchange(socket, create())
        for _ in range(6):
            response = event["response"]
            frame = create(answers(response), previous_response_id=response["id"])
            event = await exchange(socket, frame)
        assert event["response"]["metadata"]["x-sim-thoughts"] == f"exact=8; {CLEAN}"
    assert sims[name].requests[-1].audit.clean


async def test_real_lanes(sims):
    async with connect(url(sims, "openai-ws"), additional_headers=AUTH) as socket:
        for lane in "abc":
            await socket.send(create(lane, stream_id=lane))
        done = []
        while len(done) < 3:
            event = load(await socket.recv(decode=False))
            if event["type"] == "response.completed":
                done.append(event["stream_id"])
        assert sorted(done) == ["a", "b", "c"]


async def test_real_steering():
    def long(turn, sim):
        return tuple(piece for at in range(20) for piece in (Think(f"{at}"), Say(f"{at}")))

    scripts = iter([long])

    def script(turn, sim):
        return next(scripts, talker)(turn, sim)

    sim = simulator(script=script)
    with serving(sim, pace=Pace(delay=0.01)) as served:
        async with connect(url(served, "openai-ws"), additional_headers=AUTH) as socket:
            await socket.send(create(model="gpt-6-astra"))
            event = load(await socket.recv(decode=False))
            await socket.send(steer(event["response"]["id"]))
            kinds = []
            while "response.completed" not in kinds:
                kinds.append(load(await socket.recv(decode=False))["type"])
            assert kinds.index("response.steer.accepted") < kinds.index("response.incomplete")
            assert kinds.index("response.incomplete") < kinds.index("response.created")


async def test_real_sixty_minutes(sims):
    sim = sims["openai"]
    clock = Clock()
    before, sim.clock = sim.clock, clock
    try:
        async with connect(url(sims, "openai"), additional_headers=AUTH) as socket:
            await exchange(socket, create())
            clock.now += 3600
            event = await exchange(socket, create())
            assert event["error"]["code"] == "websocket_connection_limit_reached"
            with pytest.raises(ConnectionClosed) as closed:
                await socket.recv()
            assert closed.value.rcvd.code == 1001
    finally:
        sim.clock = before


@pytest.mark.parametrize(
    ("name", "headers", "status"),
    [("openai", {}, 401), ("deepseek-responses", AUTH, 426), ("nobody", AUTH, 404)],
)
async def test_real_refusals(sims, name, headers, status):
    there = url(sims, "openai").replace("/openai/", f"/{name}/")
    with pytest.raises(InvalidStatus) as refused_with:
        async with connect(there, additional_headers=headers):
            pass
    assert refused_with.value.response.status_code == status
    assert "error" in load(refused_with.value.response.body)
