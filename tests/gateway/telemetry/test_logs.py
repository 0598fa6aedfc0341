"""Log lines: for machines and for people, without secrets."""

import asyncio
import io
import json

import pytest
from msgspec.structs import replace

from support.built_gateway import KEY, BuiltGateway, converse
from support.telemetry import chatty
from thoughtline.gateway.settings import UpstreamSettings
from thoughtline.gateway.telemetry import (
    open_log,
)
from thoughtline.gateway.telemetry.observer import scrub


def test_reasons_are_scrubbed_and_short():
    assert scrub("no: https://x/y?alt=sse&key=AIza-1&b=2") == "no: https://x/y?alt=sse&key=***&b=2"
    assert scrub("?access_token=abc d") == "?access_token=*** d"
    assert len(scrub("x" * 5000)) == 200


def test_below_the_level_nothing_is_put_together(monkeypatch):
    built = BuiltGateway(chatty(level="warning"))

    def tell(*_):
        raise AssertionError("nobody will see this")

    monkeypatch.setattr(built.telemetry, "_report", tell)
    with built.client() as client:
        converse(client, 2)
    assert built.lines.getvalue() == ""


def test_json_for_machines_and_columns_for_people():
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    for style, stream, pretty in (
        ("auto", io.StringIO(), False),
        ("auto", Terminal(), True),
        ("json", Terminal(), False),
        ("text", io.StringIO(), True),
    ):
        log = open_log(style=style, stream=stream)
        log.debug("unseen")
        log.info("seen", number=1, text="ä")
        line = stream.getvalue()
        assert "unseen" not in line
        if pretty:
            assert "seen" in line
            assert "number" in line
            assert ("\x1b[" in line) is isinstance(stream, Terminal)
        else:
            assert list(json.loads(line)) == ["time", "level", "event", "number", "text"]
            assert json.loads(line)["time"].endswith("Z")


def test_a_stream_that_is_gone_stops_nobody():
    stream = io.StringIO()
    log = open_log(stream=stream)
    stream.close()
    log.warning("into the void")


@pytest.mark.parametrize("style", ["json", "text"])
def test_tracebacks_show_no_variables(style):
    stream = io.StringIO()
    log = open_log(style=style, stream=stream)
    held = "variable-canary"
    try:
        raise KeyError(len(held))
    except KeyError:
        log.exception("it broke: badly")
    assert "it broke: badly" in stream.getvalue()
    assert "KeyError" in stream.getvalue()
    assert "variable-canary" not in stream.getvalue()


def test_the_secret_of_an_upstream_is_in_no_line():
    upstream = UpstreamSettings(name="up", base_url="http://sim", policy="deepseek")
    settings = replace(chatty(), upstreams={"up": upstream})
    built = BuiltGateway(settings)
    with built.client() as client:
        converse(client, 1)
    assert KEY not in built.lines.getvalue()


async def test_what_is_told_at_once_is_written_at_once():
    class Counted(io.StringIO):
        writes = 0

        def write(self, text):
            self.writes += 1
            return super().write(text)

    stream = Counted()
    log = open_log(style="json", stream=stream)
    for number in range(3):
        log.info("line", number=number)
    assert stream.writes == 0
    await asyncio.sleep(0)
    log.info("line", number=3)
    await asyncio.sleep(0)
    assert stream.writes == 2
    told = [json.loads(line)["number"] for line in stream.getvalue().splitlines()]
    assert told == [0, 1, 2, 3]
