"""Rows as they were observed at one endpoint."""

import pytest

from thoughtline.log.quirks import Need
from thoughtline.providers.contracts import find_policy
from thoughtline.providers.overrides import Override, with_overrides

KIMI = {"policy": "kimi", "dialect": "chat"}


HERE = {"name": "kimi", "model": "kimi-k2.6", "endpoint": "https://api.moonshot.ai/"}


@pytest.mark.parametrize(
    ("said", "field", "then"),
    [
        ({"off": ("thinking", "0")}, "off", ("thinking", "0")),
        ({"off": ()}, "off", None),  # it cannot be switched off
        ({"lost": ""}, "lost", ""),
        ({"need": Need.SOFT}, "need", Need.SOFT),
        ({"asks": ()}, "asks", ()),
        ({"asks": (("keep", "1"),)}, "asks", (("keep", "1"),)),
        ({"endpoint": "https://api.moonshot.ai", "lost": '" "'}, "lost", '" "'),
    ],
)
def test_what_was_observed_changes_its_field_and_no_other(said, field, then):
    row = find_policy("kimi", "chat", "kimi-k2.6")
    made = with_overrides(row, [Override(**KIMI, **said)], **HERE)
    assert getattr(row, field) != then and getattr(made, field) == then
    others = set(row.__struct_fields__) - {field}
    assert all(getattr(made, name) == getattr(row, name) for name in others)


@pytest.mark.parametrize(
    "elsewhere",
    [
        {"policy": "glm"},
        {"dialect": "messages"},
        {"models": ("kimi-k3*",)},
        {"endpoint": "https://proxy"},
    ],
)
def test_what_was_observed_elsewhere_changes_nothing(elsewhere):
    row = find_policy("kimi", "chat", "kimi-k2.6")
    assert with_overrides(row, [Override(**KIMI | elsewhere, lost='"x"')], **HERE) is row
