"""Whose thoughts a provider kept from the model."""

import json
from types import SimpleNamespace

import pytest

from thoughtline.dialects import DIALECTS
from thoughtline.engine.unread import located
from thoughtline.log.events import Unread
from thoughtline.log.index import IndexEntry
from thoughtline.log.parts import Carrier, Thought


def thought(raw, id=""):
    return Thought(carrier=Carrier.BLOCK, raw=raw, id=id)


ENTRIES = {
    b"1": [IndexEntry("s", "one", thoughts=(thought('{"signature":"c2ln"}'),))],
    b"2": [IndexEntry("s", "two", thoughts=(thought('{"data":"ZGF0YQ"}'), thought("{}", "rs_2")))],
}
HISTORY = [
    {"role": "user", "content": "hi"},
    {"role": "assistant", "content": [{"type": "thinking", "signature": "c2ln"}, "odd"]},
    {"role": "assistant", "content": [{"type": "redacted_thinking", "data": "ZGF0YQ"}]},
]


def owner(at, body=None):
    raw = json.dumps({"messages": HISTORY}).encode() if body is None else body
    dialect = DIALECTS["messages"]
    decision = SimpleNamespace(found=ENTRIES, body=raw, dialect=dialect)
    (found,) = located([Unread(at=at, reason="model_mismatch")], decision)
    return found.turn


@pytest.mark.parametrize(
    ("at", "turn"),
    [
        ("messages.1.content.0", "one"),
        ("messages.2.content.0", "two"),
        ("rs_2", "two"),
        ("rs_3", ""),
        ("", ""),
        ("messages.0.content.0", ""),
        ("messages.1.content.1", ""),
        ("messages.1.content.9", ""),
        ("messages.99.content.0", ""),
    ],
)
def test_they_are_found_by_id_and_by_path(at, turn):
    assert owner(at) == turn


def test_a_body_that_cannot_be_read_costs_nothing_but_the_name():
    assert owner("messages.1.content.0", b'{"messages":1,"messages":2}') == ""


@pytest.mark.parametrize(
    ("reason", "kind"),
    [
        ("organization_mismatch", "organization"),
        ("organization_binding_mismatch", "organization"),
        ("end_user_binding_mismatch", "end_user"),
        ("prefix_mismatch", "prefix"),
        ("turn_boundary", "turn_boundary"),
        ("something new", "other"),
    ],
)
def test_reasons_have_one_vocabulary(reason, kind):
    assert Unread(at="x", reason=reason).kind == kind
