"""No code of the log or of a provider stands on the page without words for it."""

import ast
import re
from importlib.resources import files
from inspect import getsource

import pytest

from thoughtline import guards, matching, replay
from thoughtline.dialects import chat_recorder, messages_reader
from thoughtline.events import Outcome
from thoughtline.guards import sendable
from thoughtline.matching import Rung
from thoughtline.policies import Need
from thoughtline.replay import Action
from thoughtline.tools.permissions import Verdict

PAGE = files("thoughtline.inspector") / "page"


def table(module, name):
    """The keys of an object literal of the page."""
    source = (PAGE / module).read_text("utf-8")
    body = re.search(rf"const {name} = \{{(.*?)\n?\}};", source, re.DOTALL)[1]
    return {
        quoted or bare for quoted, bare in re.findall(r'(?:"([^"\n]*)"|\b(\w+)): [{"A-Z]', body)
    }


def given(module):
    """Words that rulings of this module give for a reason."""
    for node in ast.walk(ast.parse(getsource(module))):
        inner = ()
        if isinstance(node, ast.Call):
            name = getattr(node.func, "id", getattr(node.func, "attr", ""))
            if (
                name in ("Match", "match", "_without", "_say")
                or ast.unparse(node.func) == "reasons.append"
            ):
                inner = node.args
        elif isinstance(node, ast.Assign) and "reason" in ast.unparse(node.targets[0]):
            inner = [one for one in ast.walk(node.value) if isinstance(one, ast.Constant)]
        yield from (one.value for one in inner if isinstance(one, ast.Constant) and one.value)


def test_reasons_of_rulings():
    found = {one for module in (matching, replay, guards) for one in given(module)}
    found = {one for one in found if isinstance(one, str)}
    assert {"unknown", "lineage", "dangling", "before a gap", "had none"} <= found
    patterns = re.compile(r"foreign |turn ")  # a sentence is made of these
    needs = {Need.FORBIDDEN.value, Need.NONE.value}
    missing = {one for one in found | needs if not patterns.match(one)} - table(
        "replay.js", "REASONS"
    )
    assert missing == set()
    assert sendable.__module__ == guards.__name__


@pytest.mark.parametrize(
    ("module", "name", "codes"),
    [
        ("replay.js", "ACTIONS", Action),
        ("replay.js", "RUNGS", Rung),
        ("codes.js", "STATUSES", [*Outcome, "running"]),
        ("codes.js", "VERDICTS", Verdict),
        ("codes.js", "ENDINGS", [*chat_recorder._FAILURES, *messages_reader._CAPS, "length"]),
    ],
)
def test_codes(module, name, codes):
    assert {str(code) for code in codes} - table(module, name) == set()
