import re

from thoughtline.engine.turn_ids import client_call_id


def test_ids_are_unique_the_same_every_time_and_valid_everywhere():
    ids = {client_call_id(turn, nth) for turn in ("a", "b") for nth in range(20)}
    assert len(ids) == 40
    assert client_call_id("a", 0) in ids
    assert all(re.fullmatch(r"call_[a-z2-7]{24}", id) for id in ids)
