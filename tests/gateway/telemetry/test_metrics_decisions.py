"""Decisions by their words."""

from collections import Counter

from support.telemetry import RULINGS
from thoughtline.gateway.telemetry.metrics import group_decisions


def test_each_decision_is_counted_under_one_word():
    labels = Counter()
    for decision, count in group_decisions(RULINGS):
        labels[decision.word.value, decision.level] += count
    assert labels["restored", "near"] == 1
    assert labels["corrected", "none"] == 1
    assert labels["tied", "none"] == 1
    assert labels.total() == len(RULINGS)
