"""Decisions by their words."""

from collections import Counter

from support.telemetry import RULINGS
from thoughtline.log.decisions import count_kinds, example


def test_each_decision_is_counted_under_one_word():
    labels = Counter()
    for kind, count in count_kinds(RULINGS).items():
        labels[example(kind).word.value, example(kind).level] += count
    assert labels["restored", "near"] == 1
    assert labels["corrected", "none"] == 1
    assert labels["tied", "none"] == 1
    assert labels.total() == len(RULINGS)
