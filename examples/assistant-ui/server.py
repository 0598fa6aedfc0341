"""The back end of the example: sessions of Thoughtline behind the components of assistant-ui.

    uvicorn --app-dir examples/assistant-ui server:app

Without settings the model is simulated (see `model.py`). Real ones come from the environment:
PROVIDER=anthropic MODEL=claude-sonnet-4-5 OPTIONS='{"thinking": {"type": "adaptive"}}'.
STORE says where sessions are kept; PACE is how long the simulated model takes for a few letters.
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
from thoughtline.fronts import HEADERS, Kept, history, ui_stream

PAGE = Path(__file__).parent / "dist"
env = os.environ


class Desk:
    """The chats of this process, and the answers that are under way."""

    def __init__(self, log: thoughtline.Log, provider: thoughtline.Provider) -> None:
        self.log, self.provider = log, provider
        self.chats: dict[str, thoughtline.Chat] = {}
        self.runs: dict[str, tuple[thoughtline.Run, Kept]] = {}  # the last one of each chat

    async def chat(self, id: str) -> thoughtline.Chat:
        """A chat from the log, or a new one."""
        if id not in self.chats:
            tools = [smallest_divisor]
            try:
                made = await self.log.resume(id, provider=self.provider, tools=tools)
            except thoughtline.ThoughtlineError:
                made = await self.log.create(id=id, provider=self.provider, tools=tools)
            self.chats.setdefault(id, made)
        return self.chats[id]


async def send(request: Request) -> Response:
    """A message of the person in, an answer out: after whatever answer it follows."""
    asked = await request.json()
    chat = await request.state.desk.chat(asked["id"])
    *before, message = asked["messages"]
    follows = next((m["id"] for m in reversed(before) if m["role"] == "assistant"), "")
    words = "".join(part["text"] for part in message["parts"] if part["type"] == "text")
    try:
        chat.switch(history(chat.tree).turn(follows))
    except thoughtline.ThoughtlineError as error:
        return JSONResponse({"error": str(error)}, status_code=409)
    run = chat.run(words)
    kept = Kept(ui_stream(run))
    request.state.desk.runs[chat.id] = run, kept
    return StreamingResponse(kept.read(), headers=HEADERS)


async def read(request: Request) -> Response:
    """All messages of a chat, on all branches, and what time it is here."""
    chat = await request.state.desk.chat(request.path_params["id"])
    _, kept = request.state.desk.runs.get(chat.id, (None, None))
    running = kept is not None and not kept.done
    made = history(chat.tree, head=chat.head, running=running)
    now = round(time.time() * 1000)
    return JSONResponse({"repository": made.repository, "running": running, "now": now})


async def resume(request: Request) -> Response:
    """The answer that is under way, from its start: for a page that was reloaded."""
    if request.path_params["id"] not in request.state.desk.runs:
        return Response(status_code=204)
    _, kept = request.state.desk.runs[request.path_params["id"]]
    return StreamingResponse(kept.read(), headers=HEADERS)


async def stop(request: Request) -> Response:
    """Stop the answer that is under way; leaving the page does not."""
    if request.path_params["id"] in request.state.desk.runs:
        run, kept = request.state.desk.runs[request.path_params["id"]]
        run.cancel()
        await kept.over()
    return Response(status_code=204)


@asynccontextmanager
async def lifespan(_: Starlette) -> AsyncIterator[dict[str, Desk]]:
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
            yield {"desk": Desk(log, provider)}


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
