"""Items that go, and ids that go."""

import json

from thoughtline.dialects.responses import rewrites as responses


def test_items_keep_their_bytes_but_for_what_goes():
    body = (
        b'{"input":[ {"type":"reasoning", "id":"rs_1","encrypted_content":"x"},'
        b' {"type":"function_call","id":"fc_1", "call_id":"c"},{"id":"msg_1","role":"user"},'
        b'{"type":"reasoning","id":"rs_1"} ]}'
    )
    assert responses.strip_item_ids(body) == (
        b'{"input":[ {"type":"reasoning","encrypted_content":"x"},'
        b' {"type":"function_call", "call_id":"c"},{"id":"msg_1","role":"user"},'
        b'{"type":"reasoning","id":"rs_1"} ]}'
    )
    last = b',{"type":"reasoning","id":"rs_1"}'
    assert responses.drop_repeated_items(body) == body.replace(last, b"")
    summarised = json.loads(responses.add_summaries(body))["input"]
    assert ["summary" in item for item in summarised] == [True, False, False, True]
