"""No code of the log or of a provider stands on the page without words for it."""

import ast
import re
from importlib.resources import files
from inspect import getsource

import pytest

from thoughtline.agents.tools.permissions import Verdict
from thoughtline.dialects.chat import response as chat_response
from thoughtline.dialects.messages import reader as messages_reader
from thoughtline.log.decisions import UNMATCHED, Action, MatchLevel
from thoughtline.log.events import Outcome
from thoughtline.log.quirks import Need
from thoughtline.replay import decide as replay
from thoughtline.replay import guard as guards
from thoughtline.replay import match as matching
from thoughtline.replay.guard import sendable

PAGE = files("thoughtline.inspector") / "page"


def table(module, name):
    """The keys of an object literal of the page."""
    source = (PAGE / module).read_text("utf-8")
    body = re.search(rf"const {name} = \{{(.*?)\n?\}};", source, re.DOTALL)[1]
    return {
        quoted or bare for quoted, bare in re.findall(r'(?:"([^"\n]*)"|\b(\w+)): [{"A-Z]', body)
    }


def given(module):
    """Words that decisions of this module give for a reason."""
    for node in ast.walk(ast.parse(getsource(module))):
        inner = ()
        if isinstance(node, ast.Call):
            name = getattr(node.func, "id", getattr(node.func, "attr", ""))
            if (
                name in ("TurnMatch", "match", "_without", "_record")
                or ast.unparse(node.func) == "reasons.append"
            ):
                inner = node.args
        elif isinstance(node, ast.Assign) and "reason" in ast.unparse(node.targets[0]):
            inner = [one for one in ast.walk(node.value) if isinstance(one, ast.Constant)]
        yield from (one.value for one in inner if isinstance(one, ast.Constant) and one.value)


def test_reasons_of_decisions():
    found = {one for module in (matching, replay, guards) for one in given(module)}
    found = {one for one in found if isinstance(one, str)} | UNMATCHED
    found |= {matching.LINEAGE, matching.OPEN, matching.EQUAL}
    assert {"unknown", "lineage", "dangling", "before a gap", "had none", "renamed"} <= found
    patterns = re.compile(r"foreign |turn ")  # a sentence is made of these
    needs = {Need.FORBIDDEN.value, Need.NONE.value}
    missing = {one for one in found | needs if not patterns.match(one)} - table(
        "request.js", "REASONS"
    )
    assert missing == set()
    assert sendable.__module__ == guards.__name__


@pytest.mark.parametrize(
    ("module", "name", "codes"),
    [
        ("request.js", "ACTIONS", set(Action) - {Action.UNKNOWN}),
        ("request.js", "MATCH_LEVELS", MatchLevel),
        ("words.js", "STATUSES", [*Outcome, "running"]),
        ("words.js", "VERDICTS", Verdict),
        ("words.js", "ENDINGS", [*chat_response._FAILURES, *messages_reader._CAPS, "length"]),
    ],
)
def test_codes(module, name, codes):
    assert {str(code) for code in codes} - table(module, name) == set()
