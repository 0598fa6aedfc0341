"""A Python back end for `useChat` of the AI SDK, offline: the model is a simulator.

    uvicorn --app-dir examples ui_stream:app

and in the browser: `useChat({transport: new DefaultChatTransport({api: "/api/chat"})})`.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import StreamingResponse
from starlette.routing import Route

import thoughtline
from thoughtline.agents.ui import HEADERS, ui_stream
from thoughtline.testing import serving


def read_file(path: str) -> str:
    """Read a text file."""
    return f"the text of {path}"


async def answer(request: Request) -> StreamingResponse:
    """Answer the last message; the log has those before it."""
    body, state = await request.json(), request.state
    words = "".join(part.get("text", "") for part in body["messages"][-1]["parts"])
    if body["id"] not in state.chats:
        state.chats[body["id"]] = await state.log.create(provider=state.model, tools=[read_file])
    return StreamingResponse(ui_stream(state.chats[body["id"]].run(words)), headers=HEADERS)


@asynccontextmanager
async def lifespan(_: Starlette) -> AsyncIterator[dict[str, Any]]:
    """Start the simulated model and open the log."""
    with serving("deepseek") as sims:
        where = {"base_url": sims.url("deepseek"), "key": "any"}
        model = thoughtline.Provider("deepseek", model="deepseek-v4-pro", **where)
        async with thoughtline.open("memory://") as log:
            yield {"log": log, "model": model, "chats": {}}


app = Starlette(lifespan=lifespan, routes=[Route("/api/chat", answer, methods=["POST"])])
