"""Last changes of a body: only what must, and the very same object where there is nothing to do."""

import pytest

from thoughtline.dialects.chat import rewrites as chat
from thoughtline.dialects.messages import rewrites as messages
from thoughtline.dialects.responses import rewrites as responses

ALL = [
    chat.strip_null_reasoning,
    chat.short_call_ids,
    responses.strip_item_ids,
    responses.drop_repeated_items,
    responses.add_summaries,
    responses.drop_compactions,
    messages.drop_clear_thinking,
    messages.flatten_tool_loop,
]
PLAIN = [
    b'{ "messages" : [ {"role":"user", "content":"hi"} ], "x": 1.10 }',
    b'{"input":"hi"}',
    b'{"input":[{"role":"user","content":"hi"}, 1, null, "x"]}',
    b'{"messages":[1,null,{"tool_calls":[1,{"id":2}],"tool_call_id":null},{"content":3}]}',
    b'{"messages":{}, "input":null, "thinking":{"type":"disabled"},"context_management":[]}',
    b"{}",
]


@pytest.mark.parametrize("rewrite", ALL, ids=lambda rewrite: rewrite.__name__)
@pytest.mark.parametrize("body", PLAIN)
def test_nothing_to_do_is_the_same_object(rewrite, body):
    assert rewrite(body) is body
