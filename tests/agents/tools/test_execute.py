"""Whatever a tool does, a result comes of it."""

import asyncio
import contextvars
import dataclasses
import threading

import msgspec
import pytest

from thoughtline.agents.tools import Toolbox, tool
from thoughtline.agents.tools.execute import ToolLimits, execute, render, truncate
from thoughtline.log.parts import Call

LIMITS = ToolLimits(timeout=5.0, characters=1000)


async def use(function, arguments="{}", limits=LIMITS, **options):
    made = tool(name="it", **options)(function)
    return await execute(Toolbox([made]), Call(name="it", arguments=arguments, id="c1"), limits)


class Model:
    def model_dump_json(self):
        return '{"a": 1}'


@pytest.mark.parametrize(
    ("value", "content"),
    [
        ("text", "text"),
        ("", ""),
        (None, "(no output)"),
        (5, "5"),
        ({"a": [1, None]}, '{"a":[1,null]}'),
        (msgspec.defstruct("S", [("x", int)])(1), '{"x":1}'),
        (Model(), '{"a": 1}'),
        (b"bytes", "bytes"),
        (b"\xff\xfe\x00", "[binary data, 3 bytes, not shown]"),
        (b"a\0b", "[binary data, 3 bytes, not shown]"),
        (bytearray(b"\xff" * 5_000_000), "[binary data, 5,000,000 bytes, not shown]"),
        ("half \ud83d", "half ?"),
        (object, "<class 'object'>"),
    ],
    ids=lambda value: str(value)[:20],
)
async def test_values(value, content):
    result = await use(lambda: value)
    assert (result.content, result.error) == (content, False)
    assert (result.call, result.name) == ("c1", "it")


class Mute(Exception):
    def __str__(self):
        raise RuntimeError


class Odd:
    def __repr__(self):
        raise RuntimeError("no words")


def fails(error):
    raise error


@pytest.mark.parametrize(
    ("function", "told"),
    [
        (Odd, "Error: RuntimeError: no words"),
        (lambda: Model, "Error: TypeError: "),
        (lambda: fails(FileNotFoundError("caf\udce9")), "Error: FileNotFoundError: caf?"),
        (lambda: fails(Mute()), "Error: Mute"),
    ],
    ids=["no repr", "a class", "half a character", "an error without words"],
)
async def test_what_cannot_be_told_is_an_error(function, told):
    result = await use(function)
    assert result.content.startswith(told)
    assert result.error


async def test_arguments_whose_class_refuses_them():
    @dataclasses.dataclass
    class Point:
        x: int

        def __post_init__(self):
            raise RuntimeError("too far")

    def go(to: Point):
        raise AssertionError(to)

    result = await use(go, '{"to": {"x": 9}}')
    assert (result.content, result.error) == ("Error: RuntimeError: too far", True)


async def test_a_flood_is_cut_with_a_note():
    result = await use(lambda: "x" * 5_000_000)
    assert len(result.content) < 1100
    assert result.content.endswith("[cut: 1,000 of 5,000,000 characters are shown]")
    assert not result.error
    assert truncate("abc", 3) == "abc"


async def test_plain_functions_do_not_hold_up_the_loop():
    meanwhile = threading.Event()

    def wait():
        assert meanwhile.wait(60)
        return threading.current_thread().daemon

    async def elsewhere():
        meanwhile.set()

    result, _ = await asyncio.gather(use(wait), elsewhere())
    assert result.content == "true"


async def test_context_goes_along():
    variable = contextvars.ContextVar("variable")
    variable.set("here")
    assert (await use(variable.get, parameters={})).content == "here"


async def test_async_functions_and_objects():
    async def later(x: int) -> int:
        await asyncio.sleep(0)
        return x + 1

    class Later:
        async def __call__(self) -> str:
            return "object"

    assert (await use(later, '{"x": 1}')).content == "2"
    assert (await use(Later())).content == "object"
    assert (
        await use(lambda: later(2), parameters={})
    ).content == "3"  # a plain one that returns it


@pytest.mark.parametrize(
    ("error", "content"),
    [
        (RuntimeError("no disk"), "Error: RuntimeError: no disk"),
        (KeyError(), "Error: KeyError"),
        (ValueError("bad"), "Error: ValueError: bad"),
        (StopIteration(1), "Error: RuntimeError: StopIteration(1)"),
        (SystemExit(3), "Error: RuntimeError: SystemExit(3)"),
        (asyncio.CancelledError(), "Error: RuntimeError: CancelledError()"),
    ],
    ids=repr,
)
async def test_tools_that_raise(error, content):
    def fail():
        raise error

    result = await use(fail)
    assert (result.content, result.error) == (content, True)


async def test_async_tools_that_raise():
    async def fail(how: str):
        raise {"exit": SystemExit(1), "cancel": asyncio.CancelledError(), "error": OSError("no")}[
            how
        ]

    said = [(await use(fail, f'{{"how": "{how}"}}')).content for how in ("exit", "cancel", "error")]
    assert said == [
        "Error: RuntimeError: the tool wanted to exit (1)",
        "Error: the tool was cancelled",
        "Error: OSError: no",
    ]


async def test_tools_that_hang():
    release = threading.Event()

    async def stubborn():
        while True:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                if release.is_set():
                    raise

    said = [
        await use(lambda: release.wait(60), timeout=0.01),
        await use(asyncio.Event().wait, timeout=0.01, parameters={}),
        await use(stubborn, limits=ToolLimits(timeout=0.01)),
    ]
    release.set()
    assert {one.content for one in said} == {
        "Error: no answer within 0.01 seconds; it may still be running"
    }
    for task in asyncio.all_tasks() - {asyncio.current_task()}:
        if "stubborn" in repr(task) or "_awaited" in repr(task):
            task.cancel()


async def test_the_callers_cancel_is_its_own():
    started = asyncio.Event()
    stopped = []

    async def wait():
        started.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            stopped.append(True)
            raise

    task = asyncio.ensure_future(use(wait))
    await started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await asyncio.sleep(0)
    assert stopped == [True]


async def test_unknown_tools_and_bad_arguments():
    box = Toolbox([tool(name="it")(lambda path: path)])
    unknown = await execute(box, Call(name="rm", arguments="{}", id="1"), LIMITS)
    assert unknown.content == "Error: there is no tool 'rm'; there are: it"
    nothing = await execute(Toolbox(), Call(name="rm", arguments="{}"), LIMITS)
    assert nothing.content == "Error: there is no tool 'rm'; there are: none"
    bad = await execute(box, Call(name="it", arguments="{"), LIMITS)
    assert bad.content.startswith("Error: the arguments are not JSON")
    assert unknown.error and nothing.error and bad.error


def test_render_of_what_cannot_be_encoded():
    loop = []
    loop.append(loop)
    assert render(loop).startswith("[[")
