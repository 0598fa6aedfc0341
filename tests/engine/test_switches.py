"""What a request says so that thoughts are read: never against the client, and byte-stable."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from thoughtline.dialects import splice
from thoughtline.engine.switches import member_of, switch_fields, without_switches
from thoughtline.providers.contracts import ROWS

KEEP = (("thinking", '{"type":"enabled"}'), ("thinking.keep", '"all"'))
PLAIN = (("preserve_thinking", "true"),)
INSIDE = (("chat_template_kwargs.clear_thinking", "false"),)
IF_SAID = (("thinking?.clear_thinking", "false"),)


def said(asks, body, fields=None):
    raw = json.dumps(body).encode()
    made = switch_fields(raw, asks, {} if fields is None else fields)
    return json.loads(splice.with_members(raw, made))


@pytest.mark.parametrize(
    ("asks", "body", "sent"),
    [
        (PLAIN, {}, {"preserve_thinking": True}),
        (PLAIN, {"preserve_thinking": False}, {"preserve_thinking": False}),
        (PLAIN, {"preserve_thinking": None}, {"preserve_thinking": None}),
        (KEEP, {}, {"thinking": {"type": "enabled", "keep": "all"}}),
        (
            KEEP,
            {"thinking": {"type": "enabled"}},
            {"thinking": {"type": "enabled", "keep": "all"}},
        ),
        (KEEP, {"thinking": {"keep": None}}, {"thinking": {"keep": None}}),
        (KEEP, {"thinking": {"type": "disabled"}}, {"thinking": {"type": "disabled"}}),
        (KEEP, {"thinking": "yes"}, {"thinking": "yes"}),
        (INSIDE, {}, {"chat_template_kwargs": {"clear_thinking": False}}),
        (
            INSIDE,
            {"chat_template_kwargs": {"enable_thinking": True}},
            {"chat_template_kwargs": {"enable_thinking": True, "clear_thinking": False}},
        ),
        (IF_SAID, {}, {}),
        (
            IF_SAID,
            {"thinking": {"type": "enabled"}},
            {"thinking": {"type": "enabled", "clear_thinking": False}},
        ),
    ],
)
def test_a_switch_is_said_where_the_client_has_not_said_it(asks, body, sent):
    assert said(asks, body) == sent


def test_what_else_is_set_is_kept_and_what_is_taken_out_stays_out():
    raw = b'{"thinking":{"type":"disabled"}}'
    made = switch_fields(raw, KEEP, {"thinking": b'{"type":"enabled","budget":1}'})
    assert json.loads(made["thinking"]) == {"type": "enabled", "budget": 1, "keep": "all"}
    assert switch_fields(b"{}", KEEP, {"thinking": None}) == {}


def test_what_an_endpoint_refuses_goes_with_all_that_stands_in_the_same_member():
    assert without_switches((*KEEP, *PLAIN), ["thinking.keep"]) == PLAIN
    assert without_switches(PLAIN, ["preserve_thinking"]) == ()


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.dictionaries(st.text(), inner) | st.lists(inner),
)
ASKED = [row.asks for row in ROWS if row.asks]
NAMES = sorted({member_of(path) for asks in ASKED for path, _ in asks})


@given(
    asks=st.sampled_from(ASKED),
    body=st.dictionaries(st.sampled_from([*NAMES, "model", "x"]), VALUES),
)
def test_nothing_that_the_client_says_is_changed(asks, body):
    sent = said(asks, body)
    for name, value in body.items():
        if isinstance(value, dict):
            assert value.items() <= sent[name].items()
        else:
            assert sent[name] == value
    assert said(asks, sent) == sent  # once said, it is not said again
