"""Executes a tool call. Whatever happens, the call gets a result.

Plain functions run in a thread of their own, async ones on the loop. Both have a time limit; a
call that does not stop in time is abandoned, and the result says so. A tool that fails, does not
exist, or was called with arguments that do not fit gets an error result, so that the model can do
something about it. Results are text: long ones are truncated with a note, binary ones described.
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

from thoughtline.agents.tools.toolbox import Tool, Toolbox
from thoughtline.log.parts import Call, Result

_tasks: set[asyncio.Task[Any]] = set()
"""Calls under way, also the abandoned ones: the loop itself holds only weak references."""


class ToolLimits(Struct, frozen=True, kw_only=True):
    """How long a call may take, and how long its result may be."""

    timeout: float | None = 120.0  # seconds
    characters: int = 100_000  # of a result


async def execute(tools: Toolbox, call: Call, limits: ToolLimits) -> Result:
    """Call a tool; its result, or what went wrong. Raises only if the caller is cancelled."""
    try:
        if call.name not in tools:
            known = ", ".join(tools) or "none"
            raise LookupError(f"there is no tool {call.name!r}; there are: {known}")
        tool = tools[call.name]
        positional, named = tool.read(call.arguments)
        value = await _call(tool, lambda: tool.function(*positional, **named), limits)
        content, error = render(value), False
    except _ToolFailed as failed:
        content, error = str(failed), True
    except Exception as problem:  # noqa: BLE001 (arguments and results may be of any class)
        content, error = f"Error: {_message(problem)}", True
    content = truncate(encodable_text(content), limits.characters)
    return Result(content=content, call=call.id, name=call.name, error=error)


class _ToolFailed(Exception):
    """The tool's function raised, was cancelled or took too long; the message says which."""


async def _call(tool: Tool, function: Callable[[], Any], limits: ToolLimits) -> Any:
    timeout = limits.timeout if tool.timeout is None else tool.timeout
    is_async = inspect.iscoroutinefunction(tool.function) or inspect.iscoroutinefunction(
        getattr(tool.function, "__call__", None)  # noqa: B004 (is it an async one?)
    )
    task = asyncio.ensure_future(_run_async(function) if is_async else _run_in_thread(function))
    _tasks.add(task)
    task.add_done_callback(_forget)
    try:
        await asyncio.wait({task}, timeout=timeout)
    except asyncio.CancelledError:
        task.cancel()
        raise
    if not task.done():
        task.cancel()
        raise _ToolFailed(f"Error: no answer within {timeout:g} seconds; it may still be running")
    if task.cancelled():
        raise _ToolFailed("Error: the tool was cancelled")
    if (error := task.exception()) is not None:
        raise _ToolFailed(f"Error: {_with_class(error)}") from error
    return task.result()


def _message(error: Exception) -> str:
    """The message of an error before or after the call; this module's own need no class name."""
    return str(error) if type(error) in (ValueError, LookupError) else _with_class(error)


def _with_class(error: BaseException) -> str:
    """An error's class and message, even if its message cannot be made."""
    try:
        message = str(error)
    except Exception:  # noqa: BLE001 (a `__str__` may raise anything)
        message = ""
    return f"{type(error).__name__}: {message}".removesuffix(": ")


def _forget(task: asyncio.Task[Any]) -> None:
    _tasks.discard(task)
    if not task.cancelled():
        task.exception()  # retrieved, so that asyncio does not warn about it


async def _run_async(function: Callable[[], Any]) -> Any:
    try:
        return await function()
    except SystemExit as error:
        raise RuntimeError(f"the tool wanted to exit ({error})") from error


async def _run_in_thread(function: Callable[[], Any]) -> Any:
    """Call in a daemon thread: a function that hangs does not keep the process from ending."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[Any] = loop.create_future()
    context = contextvars.copy_context()

    def finish(value: Any, error: BaseException | None) -> None:
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
        except BaseException as problem:  # noqa: BLE001 (nothing above would catch it)
            error = problem if isinstance(problem, Exception) else RuntimeError(repr(problem))
        if isinstance(error, StopIteration):  # a future cannot hold it
            error = RuntimeError(repr(error))
        with contextlib.suppress(RuntimeError):  # the loop is closed: the caller is gone
            loop.call_soon_threadsafe(finish, value, error)

    threading.Thread(target=work, name="thoughtline-tool", daemon=True).start()
    value = await future
    return await value if inspect.isawaitable(value) else value


# -- results as text -----------------------------------------------------------------------------


def render(value: Any) -> str:
    """A tool's return value as text: strings as they are, bytes decoded, the rest as JSON."""
    if value is None:
        return "(no output)"
    if isinstance(value, str):
        return value
    if isinstance(value, bytes | bytearray | memoryview):
        return _decode(bytes(value))
    if dump := getattr(value, "model_dump_json", None):
        return str(dump())
    try:
        return msgspec.json.encode(value).decode()
    except (TypeError, ValueError, RecursionError, msgspec.MsgspecError):
        return str(value)


def encodable_text(text: str) -> str:
    """Replace lone surrogates, which UTF-8 cannot carry: half an emoji, a file's odd name."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def truncate(text: str, limit: int) -> str:
    """Cut a text to `limit` characters, with a note that says so."""
    if len(text) <= limit:
        return text
    return f"{text[:limit]}\n[cut: {limit:,} of {len(text):,} characters are shown]"


def _decode(data: bytes) -> str:
    if b"\0" not in data:
        try:
            return data.decode()
        except UnicodeDecodeError:
            pass
    return f"[binary data, {len(data):,} bytes, not shown]"
