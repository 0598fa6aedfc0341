"""A request on one line of a terminal."""

import io
import json

import pytest

from support.built_gateway import BuiltGateway, converse
from support.telemetry import chatty
from thoughtline.gateway.settings import LogSettings
from thoughtline.gateway.telemetry import open_log


class Terminal(io.StringIO):
    def isatty(self):
        return True


def line(out, event="request", **facts):
    open_log(stream=out).info(event, **facts)
    return out.getvalue()


FACTS = {
    "status": 200,
    "outcome": "completed",
    "session": "01a1e64c1629715286c92a318a7ea568",
    "turn": "01a1e64c16297152aaaaaaaaaaaaaaaa",
    "tenant": "86c9",
    "upstream": "deepseek",
    "provider": "deepseek",
    "dialect": "chat",
    "model": "deepseek-v4-pro",
    "stream": True,
    "restored": 2,
    "exact": 4,
    "missed": 1,
    "thoughts": 1,
    "thought_seconds": 1.23,
    "input_tokens": 1204,
    "output_tokens": 87,
    "seconds": 3.41,
    "added_seconds": 0.0009,
}


def test_a_request_is_one_short_line_on_a_terminal():
    said = line(Terminal(), **FACTS)
    assert said.count("\n") == 1 and said.endswith("\n")
    assert "  deepseek-v4-pro at deepseek  2 restored  1 missed  thought 1.2 s  " in said
    assert "1,204 → 87 tokens  3.4 s" in said and "2a318a7ea568" in said
    assert "\x1b[32m200\x1b[0m" in said
    assert "exact" not in said and "01a1e64c" not in said and "86c9" not in said
    assert len(said) < 160


def test_a_pipe_gets_everything_as_json():
    assert json.loads(line(io.StringIO(), **FACTS)).items() >= FACTS.items()


@pytest.mark.parametrize(("status", "colour"), [(404, 33), (502, 31)])
def test_what_went_wrong_is_on_the_line(status, colour):
    said = line(Terminal(), status=status, outcome="refused", upstream="", reason="unknown_model")
    assert f"\x1b[{colour}m{status}\x1b[0m  -  refused: unknown_model" in said


def test_a_name_cannot_move_the_cursor():
    said = line(Terminal(), **FACTS | {"model": "x\x1b[2J\n"})
    assert "\x1b[2J" not in said and r"x\x1b[2J\n at deepseek" in said
    assert said.count("\n") == 1


def test_other_events_are_as_they_were():
    assert "sessions=3" in line(Terminal(), "sweep", sessions=3).replace("\x1b[0m", "").replace(
        "\x1b[36m", ""
    ).replace("\x1b[35m", "")


def test_the_lines_of_a_conversation():
    built = BuiltGateway(chatty(log=LogSettings(format="text")))
    with built.client() as client:
        converse(client, 3)
    lines = built.lines.getvalue().splitlines()
    assert len(lines) == 3
    assert all(len(line) < 160 and "  200  " in line for line in lines)
    assert " 2 restored " in lines[-1]
