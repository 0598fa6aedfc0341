"""A request as it is folded from the log."""

import json

import thoughtline
from support.agents import provider, wired
from thoughtline.log.events import Outcome
from thoughtline.log.parts import Blob
from thoughtline.testing import simulator


async def test_what_was_attached_for_another_api_is_not_shown_there():
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
    blob = Blob(kind="image_url", digest="d", raw=json.dumps(picture))
    here, there = simulator("vllm"), simulator("claude")
    async with thoughtline.open(wire=wired(here, there), secret=b"s") as log:
        chat = await log.create(provider=provider(here))
        answer = await chat.run("What is this?", blob)
        assert answer.outcome is Outcome.COMPLETED, answer.reason
        assert picture in here.requests[-1].json["messages"][-1]["content"]
        answer = await chat.use(provider(there)).run("And now?")
        assert answer.outcome is Outcome.COMPLETED, answer.reason
        assert b"[image_url left out" in there.requests[-1].request.body
