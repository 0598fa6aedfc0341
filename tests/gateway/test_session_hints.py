"""Session hints group what nothing else connects: histories that are flattened, or edited each time."""

import asyncio
from contextlib import asynccontextmanager

import pytest

from support.gateway import Answer, InProcessGateway, ScriptedWire, TurnClient, gateway_with
from thoughtline.inspector.outline import SessionOutline
from thoughtline.log.parts import Text
from thoughtline.log.sessions import Session

PATH = "/v1/chat/completions"
HINT = "x-thoughtline-session"


def gateway():
    message = {"role": "assistant", "content": "Well.", "reasoning_content": "Hm."}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    return InProcessGateway(ScriptedWire(Answer(body={"id": "c", "choices": [choice]})), "deepseek")


def flattened(number):
    """One user message with everything that was said, as smolagents and aider write it."""
    said = "\n".join(f"User: {n}\nAssistant: Well." for n in range(number))
    return [{"role": "user", "content": f"{said}\nUser: {number}"}]


def edited(number):
    """Answers that the client words anew each time."""
    messages = []
    for n in range(number):
        messages += [
            {"role": "user", "content": f"{n}, asked for the {number}. time"},
            {"role": "assistant", "content": f"Well, {number}."},
        ]
    return [*messages, {"role": "user", "content": "next"}]


async def sessions_of(proxy, history, headers=None, **fields):
    told = []
    for number in range(4):
        body = {"model": "deepseek-v4-pro", "messages": history(number), **fields}
        told.append((await proxy.post(PATH, body, headers)).header(HINT))
    return set(told)


@pytest.mark.parametrize("history", [flattened, edited])
async def test_a_hint_makes_it_one_session(history):
    proxy = gateway()
    mine = await sessions_of(proxy, history, {HINT: "mine"})
    other = await sessions_of(proxy, history, {HINT: "other"})
    assert (len(mine), len(other), len(mine | other)) == (1, 1, 2)
    assert len(await proxy.store.sessions()) == 2


@pytest.mark.parametrize("history", [flattened, edited])
async def test_without_a_hint_nothing_is_assumed(history):
    assert len(await sessions_of(gateway(), history)) == 4


async def test_a_key_that_conversations_share_groups_nothing():
    proxy = gateway()
    assert len(await sessions_of(proxy, flattened, prompt_cache_key="all of us")) == 4
    assert len(await sessions_of(proxy, flattened, session_id="only me")) == 1


async def test_a_hint_does_not_cross_tenants():
    proxy = gateway()
    one = await sessions_of(proxy, flattened, {HINT: "mine"})
    two = await sessions_of(proxy, flattened, {HINT: "mine", "authorization": "Bearer other"})
    assert not one & two


async def test_the_session_of_an_answer_may_be_sent_back():
    proxy = gateway()
    (first,) = await sessions_of(proxy, flattened, {HINT: "mine"})
    body = {"model": "deepseek-v4-pro", "messages": flattened(7)}
    assert (await proxy.post(PATH, body, {HINT: first})).header(HINT) == first
    plain = (await proxy.post(PATH, body)).header(HINT)
    assert (await proxy.post(PATH, body, {HINT: plain})).header(HINT) == plain


@pytest.mark.parametrize("named", [False, True])
async def test_a_hint_vetoes_where_it_is_known(named):
    """A history that fits is taken for another conversation's only if the hint is not of one."""
    proxy = gateway()
    body = {"model": "deepseek-v4-pro", "messages": [{"role": "user", "content": "a"}]}
    first = (await proxy.post(PATH, body)).header(HINT)
    (other,) = await sessions_of(proxy, flattened, {HINT: "mine" if named else "another"})
    answer = {"role": "assistant", "content": "Well."}
    body["messages"] += [answer, {"role": "user", "content": "b"}]
    session = (await proxy.post(PATH, body, {HINT: "mine"})).header(HINT)
    assert session == (other if named else first)


async def test_a_hint_alone_puts_nothing_back():
    proxy = gateway()
    await sessions_of(proxy, edited, {HINT: "mine"})
    assert b"Hm." not in proxy.wire.sent[-1].body


async def test_a_store_that_is_down_groups_nothing_and_stops_nothing():
    proxy = gateway()
    await sessions_of(proxy, flattened, {HINT: "mine"})
    await proxy.store.close()
    body = {"model": "deepseek-v4-pro", "messages": flattened(9)}
    assert (await proxy.post(PATH, body, {HINT: "mine"})).status == 200


class AtOnce(ScriptedWire):
    """Answers with the same words and other thoughts, none before all requests are there."""

    def __init__(self, clients):
        super().__init__(self._answer)
        self.waiting, self.all_here = clients, asyncio.Event()
        self.numbers = iter(range(1000))

    def _answer(self, _request):
        thought = f"Thought {next(self.numbers)}"
        message = {"role": "assistant", "content": "Well.", "reasoning_content": thought}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        return Answer(body={"id": "c", "choices": [choice]})

    @asynccontextmanager
    async def send(self, request):
        self.waiting -= 1
        if self.waiting <= 0:
            self.all_here.set()
        await self.all_here.wait()
        async with super().send(request) as answer:
            yield answer


@pytest.mark.parametrize("named", [True, False])
async def test_twenty_at_once_are_told_apart_by_their_hints(named):
    """Under one hint for all of them nobody can tell."""
    wire = AtOnce(20)
    proxy = InProcessGateway(wire, "kimi")
    asked = [{"role": "user", "content": "a"}]
    answer = {"role": "assistant", "content": "Well."}
    names = [{HINT: f"run-{number}" if named else "all"} for number in range(20)]
    body = {"model": "kimi-k3", "messages": asked}
    first = await asyncio.gather(*(proxy.post(PATH, body, name) for name in names))
    body["messages"] = [*asked, answer, {"role": "user", "content": "b"}]
    for had, name in zip(first, names, strict=True):
        told = (await proxy.post(PATH, body, name)).header("x-thoughtline-replay")
        assert ("restored=1" if named else "tied=1") in told
        back = wire.bodies[-1]["messages"][1].get("reasoning_content")
        own = had.json["choices"][0]["message"]["reasoning_content"]
        assert back == own if named else not (back or "").strip()


@pytest.mark.parametrize("first", ["title", "conversation"])
async def test_a_request_for_a_title_is_beside_the_conversation(first):
    """Coding agents ask for a title under the id of the conversation, without its tools."""
    gateway = gateway_with("deepseek", "deepseek")
    named = {HINT: "one"}
    title = TurnClient(gateway, "chat", "deepseek-v4-pro", headers=named, tools=())
    talk = TurnClient(gateway, "chat", "deepseek-v4-pro", headers=named, keep=False)
    asked = Text(text="Give <session>Mend the tests</session> a title.")
    if first == "title":
        await title.say(asked)
    for parts in ([Text(text="Mend the tests")], None, None):
        answer = await talk.say(*(parts or talk.next()))
    if first == "conversation":
        await title.say(asked)
    session = answer.header("x-thoughtline-session")
    events = await gateway.store.read(session)
    folded, outline = Session(session).extend(events), SessionOutline(session)
    for event in events:
        outline.apply(event)
    for tree in (folded, outline):
        assert tree.heads == [answer.header("x-thoughtline-turn")]
        assert (tree.branch_points, len(tree.side_requests)) == ({}, 1)
    assert outline.title == "Mend the tests"


async def test_a_first_message_that_was_edited_is_a_branch():
    gateway = gateway_with("deepseek", "deepseek")
    for words in ("Mend it", "Mend them"):
        client = TurnClient(gateway, "chat", "deepseek-v4-pro", headers={HINT: "one"})
        answer = await client.say(Text(text=words))
    session = answer.header("x-thoughtline-session")
    folded = Session(session).extend(await gateway.store.read(session))
    assert (len(folded.heads), len(folded.side_requests)) == (2, 0)


@pytest.mark.parametrize("named", [False, True])
async def test_ids_that_differ_in_what_json_cannot_say_name_nothing(named):
    """Two lone surrogates are read as one: such an id is no evidence, and the two stay a tie."""
    answers = iter(range(10))

    def answer(_request):
        said = {"role": "assistant", "content": "Well.", "reasoning_content": f"t{next(answers)}"}
        return Answer(200, {"choices": [{"message": said, "finish_reason": "stop"}]})

    proxy = InProcessGateway(ScriptedWire(answer), "kimi")
    ids = ("a", "b") if named else ("\ud800", "\ud801")
    begun = [{"role": "user", "content": "go"}]
    more = [*begun, {"role": "assistant", "content": "Well."}, {"role": "user", "content": "on"}]
    for messages in (begun, more):
        for id in ids:
            asked = {"model": "kimi-k3", "messages": messages, "session_id": id}
            await proxy.post(PATH, asked)
    sent = [body["messages"][1].get("reasoning_content") for body in proxy.wire.bodies[2:]]
    assert sent[0] == ("t0" if named else None)
    assert sent[1] in ("t1", None)
