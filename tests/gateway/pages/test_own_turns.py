"""A client reads its own turn with its own credential, and nobody else's."""

import json

import pytest

from support.built_gateway import BuiltGateway, configured
from support.gateway import TurnClient
from thoughtline.gateway.pages import own_turns
from thoughtline.gateway.settings import AccessSettings, ClientSettings, Secret, UpstreamSettings
from thoughtline.log.durations import reasoning_durations, thought_spans, total_seconds
from thoughtline.log.parts import Text
from thoughtline.log.sessions import Session
from thoughtline.testing.sims.tokens import make_token


def openai(**more):
    upstream = UpstreamSettings(
        name="up", base_url="https://api.openai.com", policy="openai", models=("gpt-*",), **more
    )
    return configured(upstreams={"up": upstream})


async def conversed(built, *, dialect="chat", model="deepseek-v4-pro", turns=2, **headers):
    """A conversation through the gateway; the last answer."""
    head = {name.replace("_", "-"): value for name, value in headers.items()}
    client = TurnClient(built.gateway(), dialect, model, headers=head)
    answer = await client.say(Text(text="question-canary"))
    for _ in range(turns - 1):
        answer = await client.say(*client.next())
    assert answer.status == 200, answer.body
    return answer


def path_of(answer):
    session, turn = (answer.header(f"x-thoughtline-{name}") for name in ("session", "turn"))
    return f"/own/sessions/{session}/turns/{turn}"


KEY = {"authorization": "Bearer a-key"}


async def test_a_client_reads_the_durations_of_its_turn():
    built = BuiltGateway()
    answer = await conversed(built)
    with built.client(peer="203.0.113.9") as page:  # not on this machine, and no administrator
        told = page.get(path_of(answer), headers=KEY)
    assert told.status_code == 200, told.text
    turn = told.json()
    assert turn["id"] == answer.header("x-thoughtline-turn")
    assert (turn["outcome"], turn["model"]) == ("completed", "deepseek-v4-pro")
    (thought,) = turn["thoughts"]
    assert (thought["key"], thought["itemId"]) == ("part-0", None)
    assert turn["usage"]["input"] >= turn["usage"]["cached"]
    assert turn["parent"]
    assert "canary" not in told.text
    assert "Thought about" not in told.text


async def test_sealed_items_are_known_by_their_id():
    built = BuiltGateway(openai(), sim="openai")
    answer = await conversed(built, dialect="responses", model="gpt-5.6", turns=1)
    (item,) = [i for i in answer.json["output"] if i["type"] == "reasoning"]
    with built.client() as page:
        turn = page.get(path_of(answer), headers=KEY).json()
    (thought,) = turn["thoughts"]
    assert thought["key"] == thought["itemId"] == item["id"]
    assert thought["sealed"]
    assert turn["reasoningDurations"] == (
        {item["id"]: thought["duration"]} if thought["duration"] else {}
    )


@pytest.mark.parametrize(
    "headers",
    [{}, {"authorization": "Bearer another-key"}, {**KEY, "x-api-key": "one-more"}],
    ids=["no key", "another key", "another key beside it"],
)
async def test_nobody_else_does(headers):
    built = BuiltGateway()
    answer = await conversed(built)
    with built.client(peer="203.0.113.9") as page:
        refused = page.get(path_of(answer), headers=headers)
        unknown = page.get("/own/sessions/nobody/turns/nothing", headers=headers)
    assert refused.status_code == unknown.status_code == 404
    assert refused.json()["error"]["code"] == unknown.json()["error"]["code"] == "not_found"


async def test_a_message_of_several_turns_has_keys_that_count_through_it():
    built = BuiltGateway()
    client = TurnClient(built.gateway(), "chat", "deepseek-v4-pro")
    answers = [await client.say(Text(text="question-canary"))]
    answers += [await client.say(*client.next()) for _ in range(3)]
    session = path_of(answers[0]).rsplit("/", 1)[0]
    log = Session("s").extend(await built.store.read(answers[0].header("x-thoughtline-session")))
    ids = [answer.header("x-thoughtline-turn") for answer in answers]
    turns = [log.turn(id) for id in ids]
    with built.client(peer="203.0.113.9") as page:
        told = page.get(f"{session}?ids={','.join(ids)}", headers=KEY)
        assert told.status_code == 200, told.text
        nobody = page.get(f"{session}?ids={','.join(ids)}", headers={})
        unknown = page.get(f"{session}?ids={ids[0]},x", headers=KEY)
        missing = page.get(session, headers=KEY)
        many = page.get(f"{session}?ids={','.join(ids * 50)}", headers=KEY)
    assert "canary" not in told.text
    message = told.json()
    assert message["turns"] == ids
    assert [one["key"] for one in message["thoughts"]] == [s.key for s in thought_spans(*turns)]
    assert message["reasoningDurations"] == reasoning_durations(*turns)
    assert message["reasoningTotal"] == total_seconds(*turns)
    assert len({one["key"] for one in message["thoughts"]}) == len(message["thoughts"]) > 1
    codes = [one.status_code for one in (nobody, unknown, missing, many)]
    assert codes == [404, 404, 400, 400]


async def test_a_turn_is_found_only_in_its_session():
    built = BuiltGateway()
    first = await conversed(built)
    other = await conversed(built, x_thoughtline_session="another", turns=1)
    session, turn = path_of(other).rsplit("/turns/", 1)[0], path_of(first).rsplit("/", 1)[1]
    with built.client() as page:
        assert page.get(f"{session}/turns/{turn}x", headers=KEY).status_code == 404
        assert page.get("/own/sessions/thoughtline:learned/turns/x").status_code == 404


async def test_a_client_key_is_needed_where_there_are_some():
    clients = {name: ClientSettings(key=Secret(f"key of {name}")) for name in ("alice", "bob")}
    upstream = UpstreamSettings(
        name="up", base_url="http://sim", policy="deepseek", models=("*",), key=Secret("ours")
    )
    settings = configured(access=AccessSettings(clients=clients), upstreams={"up": upstream})
    built = BuiltGateway(settings)
    answer = await conversed(built, authorization="Bearer key of alice")
    told = {}
    with built.client() as page:
        for who in ("key of alice", "key of bob", "nobody's key"):
            sent = page.get(path_of(answer), headers={"authorization": f"Bearer {who}"})
            told[who] = sent.status_code
    assert told == {"key of alice": 200, "key of bob": 404, "nobody's key": 401}


async def test_a_renewed_token_reads_what_the_old_one_made():
    built = BuiltGateway(openai(), sim="openai")
    old, new, other = (
        {"authorization": f"Bearer {make_token(b's', who, iat=n)}"}
        for who, n in (("alice", 1), ("alice", 2), ("bob", 1))
    )
    answer = await conversed(built, dialect="responses", model="gpt-5.6", turns=1, **old)
    with built.client() as page:
        assert page.get(path_of(answer), headers=new).status_code == 200
        assert page.get(path_of(answer), headers=other).status_code == 404


async def test_long_sessions_are_read_from_their_end(monkeypatch):
    monkeypatch.setattr(own_turns, "PAGE", 3)
    built = BuiltGateway()
    answers = [await conversed(built, turns=n) for n in (1, 4)]
    read = []
    inner = built.store.read

    async def counted(session, **more):
        read.append(more)
        return await inner(session, **more)

    monkeypatch.setattr(built.store, "read", counted)
    with built.client() as page:
        for answer in answers:
            assert page.get(path_of(answer), headers=KEY).status_code == 200
            assert len(read) <= 4
            assert all(one["limit"] <= 3 for one in read)
            read.clear()
        monkeypatch.setattr(own_turns, "MAX_PAGES", 1)
        missing = f"{path_of(answers[1])}x"
        assert page.get(missing, headers=KEY).status_code == 404
        assert len(read) == 1


def test_it_is_in_the_description_of_the_api():
    with BuiltGateway().client() as page:
        paths = json.loads(page.get("/openapi.json").text)["paths"]
    assert "200" in paths["/own/sessions/{id}/turns/{turn}"]["get"]["responses"]
