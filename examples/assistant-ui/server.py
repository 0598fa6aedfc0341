"""The back end of the example: sessions of Thoughtline behind the components of assistant-ui.

    uvicorn --app-dir examples/assistant-ui server:app

Without settings the model is simulated (see `model.py`). Real ones come from the environment:
PROVIDER=anthropic MODEL=claude-sonnet-5-5 OPTIONS='{"thinking": {"type": "adaptive"}}'.
STORE is the URL of the log; PACE is how long the simulated model takes for a few letters.
There is no login: everybody who reaches the port reads and writes all chats.
"""

import json
import os
import time
from collections.abc import AsyncIterator
from contextlib import AbstractContextManager, asynccontextmanager, nullcontext
from pathlib import Path

from model import offline, smallest_divisor
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

import thoughtline
from thoughtline.agents.ui import HEADERS, ResumableStream, history, ui_stream

PAGE = Path(__file__).parent / "dist"
env = os.environ


class Chats:
    """The chats of this process, and the last run of each."""

    def __init__(self, log: thoughtline.Log, provider: thoughtline.Provider) -> None:
        self.log, self.provider = log, provider
        self.open: dict[str, thoughtline.Chat] = {}
        self.runs: dict[str, tuple[thoughtline.Run, ResumableStream]] = {}

    async def chat(self, id: str) -> thoughtline.Chat:
        """A chat from the log, or a new one."""
        if id not in self.open:
            tools = [smallest_divisor]
            try:
                chat = await self.log.resume(id, provider=self.provider, tools=tools)
            except thoughtline.ThoughtlineError:
                chat = await self.log.create(id=id, provider=self.provider, tools=tools)
            self.open.setdefault(id, chat)
        return self.open[id]


async def send(request: Request) -> Response:
    """Answer a user's message, after the answer that it follows."""
    body = await request.json()
    chat = await request.state.chats.chat(body["id"])
    *before, message = body["messages"]
    follows = next((m["id"] for m in reversed(before) if m["role"] == "assistant"), "")
    words = "".join(part["text"] for part in message["parts"] if part["type"] == "text")
    try:
        chat.switch(history(chat.tree).turn(follows))
    except thoughtline.ThoughtlineError as error:
        return JSONResponse({"error": str(error)}, status_code=409)
    run = chat.run(words)
    stream = ResumableStream(ui_stream(run))
    request.state.chats.runs[chat.id] = run, stream
    return StreamingResponse(stream.read(), headers=HEADERS)


async def read(request: Request) -> Response:
    """All messages of a chat, on all branches, and the server's time."""
    chat = await request.state.chats.chat(request.path_params["id"])
    _, stream = request.state.chats.runs.get(chat.id, (None, None))
    running = stream is not None and not stream.done
    messages = history(chat.tree, head=chat.head, running=running)
    now = round(time.time() * 1000)
    return JSONResponse({"repository": messages.repository, "running": running, "now": now})


async def resume(request: Request) -> Response:
    """Stream the answer that is under way from its start, for a page that was reloaded."""
    if request.path_params["id"] not in request.state.chats.runs:
        return Response(status_code=204)
    _, stream = request.state.chats.runs[request.path_params["id"]]
    return StreamingResponse(stream.read(), headers=HEADERS)


async def stop(request: Request) -> Response:
    """Stop the answer that is under way. Leaving the page does not stop it."""
    if request.path_params["id"] in request.state.chats.runs:
        run, stream = request.state.chats.runs[request.path_params["id"]]
        run.cancel()
        await stream.over()
    return Response(status_code=204)


@asynccontextmanager
async def lifespan(_: Starlette) -> AsyncIterator[dict[str, Chats]]:
    """Open the log, and start the simulated model unless another one is wanted."""
    model: AbstractContextManager[thoughtline.Provider]
    if "PROVIDER" in env:
        options = json.loads(env.get("OPTIONS", "{}"))
        real = thoughtline.Provider(env["PROVIDER"], model=env["MODEL"], options=options)
        model = nullcontext(real)
    else:
        model = offline(float(env.get("PACE", "0.25")))
    with model as provider:
        async with thoughtline.open(env.get("STORE", "sqlite:///assistant-ui.db")) as log:
            yield {"chats": Chats(log, provider)}


app = Starlette(
    lifespan=lifespan,
    routes=[
        Route("/api/chat", send, methods=["POST"]),
        Route("/api/chat/{id}/stream", resume),
        Route("/api/chat/{id}/stop", stop, methods=["POST"]),
        Route("/api/chats/{id}", read),
        *([Mount("/", StaticFiles(directory=PAGE, html=True))] if PAGE.exists() else []),
    ],
)
