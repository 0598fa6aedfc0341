"""A tool call becomes a result, whatever happens: values, errors, silence, floods.

Plain functions run in a thread of their own, async ones on the loop. Both have a time limit; what
does not stop in time is left behind, and the result says so. A tool that fails, does not exist, or
was called with arguments that do not fit is answered with an error result: the model can do
something about it. Results are text; long ones are cut with a note, binary ones only described.
"""

import asyncio
import contextlib
import contextvars
import inspect
import threading
from collections.abc import Callable
from typing import Any

import msgspec
from msgspec import Struct

from thoughtline.parts import Call, Result
from thoughtline.tools import Tool, Toolbox

_left_behind: set[asyncio.Task[Any]] = set()


class Limits(Struct, frozen=True, kw_only=True):
    """What a tool may take, and give."""

    timeout: float | None = 120.0  # seconds
    characters: int = 100_000  # of a result


async def run(tools: Toolbox, call: Call, limits: Limits) -> Result:
    """Call a tool; its result, or what went wrong. Raises nothing but the caller's own cancel."""
    try:
        if call.name not in tools:
            known = ", ".join(tools) or "none"
            raise LookupError(f"there is no tool {call.name!r}; there are: {known}")
        tool = tools[call.name]
        positional, named = tool.read(call.arguments)
        value = await _called(tool, lambda: tool.function(*positional, **named), limits)
        content, error = render(value), False
    except _Failed as failed:
        content, error = str(failed), True
    except Exception as problem:  # noqa: BLE001 (arguments and results may be of any class)
        content, error = f"Error: {_told(problem)}", True
    content = cut(sendable(content), limits.characters)
    return Result(content=content, call=call.id, name=call.name, error=error)


class _Failed(Exception):
    """The tool itself failed; says how."""


async def _called(tool: Tool, function: Callable[[], Any], limits: Limits) -> Any:
    timeout = limits.timeout if tool.timeout is None else tool.timeout
    is_async = inspect.iscoroutinefunction(tool.function) or inspect.iscoroutinefunction(
        getattr(tool.function, "__call__", None)  # noqa: B004 (is it an async one?)
    )
    task = asyncio.ensure_future(_awaited(function) if is_async else _threaded(function))
    _left_behind.add(task)
    task.add_done_callback(_forget)
    try:
        await asyncio.wait({task}, timeout=timeout)
    except asyncio.CancelledError:
        task.cancel()
        raise
    if not task.done():
        task.cancel()
        raise _Failed(f"Error: no answer within {timeout:g} seconds; it may still be running")
    if task.cancelled():
        raise _Failed("Error: the tool was cancelled")
    if (error := task.exception()) is not None:
        raise _Failed(f"Error: {_named(error)}") from error
    return task.result()


def _told(error: Exception) -> str:
    """What went wrong before or after the call; our own words need no name."""
    return str(error) if type(error) in (ValueError, LookupError) else _named(error)


def _named(error: BaseException) -> str:
    """An error with its class, whatever it says about itself."""
    try:
        words = str(error)
    except Exception:  # noqa: BLE001 (as said)
        words = ""
    return f"{type(error).__name__}: {words}".removesuffix(": ")


def _forget(task: asyncio.Task[Any]) -> None:
    _left_behind.discard(task)
    if not task.cancelled():
        task.exception()  # seen: nobody has to be warned of it


async def _awaited(function: Callable[[], Any]) -> Any:
    try:
        return await function()
    except SystemExit as error:
        raise RuntimeError(f"the tool wanted to exit ({error})") from error


async def _threaded(function: Callable[[], Any]) -> Any:
    """Call in a thread that does not hold up the end of the process, should it hang."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[Any] = loop.create_future()
    context = contextvars.copy_context()

    def tell(value: Any, error: BaseException | None) -> None:
        if future.done():
            return
        if error is None:
            future.set_result(value)
        else:
            future.set_exception(error)

    def work() -> None:
        value, error = None, None
        try:
            value = context.run(function)
        except BaseException as problem:  # noqa: BLE001 (a thread has nobody else to tell)
            error = problem if isinstance(problem, Exception) else RuntimeError(repr(problem))
        if isinstance(error, StopIteration):  # a future cannot hold it
            error = RuntimeError(repr(error))
        with contextlib.suppress(RuntimeError):  # nobody waits any more: the loop is closed
            loop.call_soon_threadsafe(tell, value, error)

    threading.Thread(target=work, name="thoughtline-tool", daemon=True).start()
    value = await future
    return await value if inspect.isawaitable(value) else value


# -- results as text -----------------------------------------------------------------------------


def render(value: Any) -> str:
    """What a tool returned, as text for a model."""
    if value is None:
        return "(no output)"
    if isinstance(value, str):
        return value
    if isinstance(value, bytes | bytearray | memoryview):
        return _decoded(bytes(value))
    if dump := getattr(value, "model_dump_json", None):
        return str(dump())
    try:
        return msgspec.json.encode(value).decode()
    except (TypeError, ValueError, RecursionError, msgspec.MsgspecError):
        return str(value)


def sendable(text: str) -> str:
    """A text without halves of characters: part of an emoji, or of a file's odd name."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def _decoded(data: bytes) -> str:
    if b"\0" not in data:
        try:
            return data.decode()
        except UnicodeDecodeError:
            pass
    return f"[binary data, {len(data):,} bytes, not shown]"


def cut(text: str, most: int) -> str:
    """A text of at most so many characters, with a note about what is missing."""
    if len(text) <= most:
        return text
    return f"{text[:most]}\n[cut: {most:,} of {len(text):,} characters are shown]"
