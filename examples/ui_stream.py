"""A Python back end for `useChat` of the AI SDK, offline: the model is a simulator.

    uvicorn --app-dir examples ui_stream:app

and in the browser: `useChat({transport: new DefaultChatTransport({api: "/api/chat"})})`.
"""

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import StreamingResponse
from starlette.routing import Route

import thoughtline
from thoughtline.cli.simulated import SimWire
from thoughtline.fronts import HEADERS, ui_stream
from thoughtline.wires.http import HttpWire

log = thoughtline.open("memory://", wire=SimWire(HttpWire()), secret=b"an example")
provider = thoughtline.Provider("deepseek", model="deepseek-v4-pro", base_url="sim://deepseek")
chats: dict[str, thoughtline.Chat] = {}


def read_file(path: str) -> str:
    """Read a text file."""
    return f"the text of {path}"


async def answer(request: Request) -> StreamingResponse:
    """A message of the person in, a message of the model out; the log has what came before."""
    asked = await request.json()
    words = "".join(part.get("text", "") for part in asked["messages"][-1]["parts"])
    if asked["id"] not in chats:
        chats[asked["id"]] = await log.create(provider=provider, tools=[read_file])
    return StreamingResponse(ui_stream(chats[asked["id"]].run(words)), headers=HEADERS)


app = Starlette(routes=[Route("/api/chat", answer, methods=["POST"])])
