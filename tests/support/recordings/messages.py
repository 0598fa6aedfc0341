"""Streams and bodies of Messages servers, as they look on the wire, and what makes them.

Blocks are JSON text, spelled as no serialiser of ours would spell them: what is captured has to be
equal to them to the byte. `python tests/messages_recordings.py` writes the files again.
"""

import json
from pathlib import Path

HERE = Path(__file__).parents[2] / "recordings"
MODEL = "claude-opus-4-6-20260205"
MESSAGE = "msg_01XFDUDYJgAACzvnptvVoYEL"
SIGNATURE = "EqQBCgIYAhIM1gbcDa9GJwZA2b3hGgxBdjrkzLoky3dl1pkiMOYds+/="

# Members nobody knows, unusual order and numbers; the text and the signature are filled in.
ODD = '{"signature":"%s","x_trace":{"z":5.0,"a":1E+2},"type":"thinking","thinking":%s}'
PLAIN = '{"type":"thinking","thinking":%s,"signature":"%s"}'
SEALED = (
    '{"type": "redacted_thinking", "data": "EmwKAhgBEgy3va3pzix/LafPsn4aDFIT2Xlxh0L5L8rLVyIwx=="}'
)
THOUGHT = "Two files\u2028to read — first a.txt.\n"
OPENED = ODD % ("", '""')
FILLED = ODD % (SIGNATURE, json.dumps(THOUGHT, ensure_ascii=False))
OMITTED = PLAIN % ('""', "EuYBCkQYAiJAomitted")
SEARCH = '{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{"query":"a b"}}'
FOUND = (
    '{"type":"web_search_tool_result","tool_use_id":"srvtoolu_1",'
    '"content":[{"type":"web_search_result","url":"https://a.example","encrypted_content":"Eo8"}]}'
)


def dump(value):
    """JSON in UTF-8, U+2028 as it is: inside JSON it ends no line. Halves are escapes."""
    text = json.dumps(value, ensure_ascii=False)
    return text if text.isprintable() or "\u2028" in text else json.dumps(value)


def event(type, *, named=True, **members):
    """One event; blocks are given as JSON text."""
    spelled = [f'"type":"{type}"']
    for key, value in members.items():
        raw = value if key == "content_block" else dump(value)
        spelled.append(f'"{key}":{raw}')
    data = "{" + ",".join(spelled) + "}"
    return (f"event: {type}\n" if named else "") + f"data: {data}\n\n"


def begun(**members):
    usage = {"input_tokens": 472, "cache_read_input_tokens": 2048, "output_tokens": 2}
    message = {"id": MESSAGE, "type": "message", "role": "assistant", "model": MODEL}
    message |= {"content": [], "stop_reason": None, "stop_sequence": None, "usage": usage}
    return event("message_start", message=message | members) + ping()


def ping():
    return 'event: ping\ndata: {"type": "ping"}\n\n'


def opened(index, block):
    return event("content_block_start", index=index, content_block=block)


def grown(index, kind, key, *pieces):
    return "".join(
        event("content_block_delta", index=index, delta={"type": kind, key: piece})
        for piece in pieces
    )


def closed(index):
    return event("content_block_stop", index=index)


def thinking(index, *pieces, block=OPENED, signature=SIGNATURE):
    told = opened(index, block) + grown(index, "thinking_delta", "thinking", *pieces)
    if signature:
        told += grown(index, "signature_delta", "signature", signature)
    return told + closed(index)


def saying(index, *pieces):
    block = '{"type":"text","text":""}'
    return opened(index, block) + grown(index, "text_delta", "text", *pieces) + closed(index)


def calling(index, id, name, *pieces):
    block = f'{{"type":"tool_use","id":"{id}","name":"{name}","input":{{}}}}'
    grow = grown(index, "input_json_delta", "partial_json", "", *pieces)
    return opened(index, block) + grow + closed(index)


def stopped(reason, **members):
    delta = {"stop_reason": reason, "stop_sequence": None}
    return event("message_delta", delta=delta, usage={"output_tokens": 89}, **members)


def ended(reason):
    return stopped(reason) + event("message_stop")


def interleaved():
    """A thought, text, a thought that is not shown, two calls at once."""
    return (
        begun()
        + thinking(0, "Two files\u2028to", " read — first a.txt.\n")
        + ping()
        + saying(1, " Let me", " look. ")
        + thinking(2, block=PLAIN % ('""', ""), signature="EuYBCkQYAiJAomitted")
        + calling(3, "toolu_01A", "read_file", '{"path": "a', '.txt", "limit": 5.0}')
        + calling(4, "toolu_01B", "run")
        + ended("tool_use")
    )


def redacted():
    """Blocks that nobody can read, then text."""
    return (
        begun()
        + opened(0, SEALED)
        + closed(0)
        + thinking(1, block=PLAIN % ('""', ""), signature="EuYBCkQYAiJAomitted")
        + saying(2, "It is done. 🎉")
        + ended("end_turn")
    )


def server_tools():
    """Tools that the server runs itself, an empty text, a citation, blocks that nobody knows."""
    search = SEARCH.replace('{"query":"a b"}', "{}")
    citation = {"type": "char_location", "cited_text": "a"}
    return (
        begun()
        + thinking(0, "Search.", signature=SIGNATURE)
        + opened(1, search)
        + grown(1, "input_json_delta", "partial_json", '{"query":', '"a b"}')
        + closed(1)
        + opened(2, FOUND)
        + closed(2)
        + saying(3)
        + opened(4, '{"type":"text","text":"","citations":[]}')
        + grown(4, "text_delta", "text", "Found ", "it.")
        + event(
            "content_block_delta", index=4, delta={"type": "citations_delta", "citation": citation}
        )
        + closed(4)
        + event("content_block_delta", index=4, delta={"type": "sparkle_delta", "sparkle": 1})
        + event("sparkle", index=4)
        + ended("pause_turn")
    )


def halves():
    """CRLF, comments, no event names, and emoji cut in two."""
    told = (
        ": connected\n\n"
        + begun()
        + opened(0, OPENED)
        + grown(0, "thinking_delta", "thinking", "a\ud83d")
        + event(
            "content_block_delta",
            named=False,
            index=0,
            delta={"type": "thinking_delta", "thinking": "\ude00b\ud83d"},
        )
        + grown(0, "signature_delta", "signature", SIGNATURE)
        + closed(0)
        + ": still there\n\n"
        + saying(1, "c\ud83c", "\udf89")
        + ended("end_turn")
    )
    return told.replace("\n", "\r\n")


def capped():
    return (
        begun()
        + thinking(0, THOUGHT)
        + opened(1, '{"type":"text","text":""}')
        + grown(1, "text_delta", "text", "It is")
        + closed(1)
        + ended("max_tokens")
    )


def refused():
    return begun() + thinking(0, THOUGHT) + saying(1, "I") + ended("refusal")


def unsigned():
    """A server that signs nothing."""
    return begun() + thinking(0, "Hm.", signature="") + saying(1, "Yes.") + ended("end_turn")


def failed():
    """A complete thought, a complete text, a call that is not: then an error."""
    error = {"type": "overloaded_error", "message": "Overloaded"}
    call = '{"type":"tool_use","id":"toolu_01A","name":"run","input":{}}'
    return (
        begun()
        + thinking(0, THOUGHT)
        + saying(1, "Let me.")
        + opened(2, call)
        + grown(2, "input_json_delta", "partial_json", '{"pa')
        + event("error", error=error, request_id="req_1")
    )


def cut():
    """Somebody hung up in the middle of the second thought."""
    return (
        begun()
        + thinking(0, THOUGHT)
        + opened(1, PLAIN % ('""', ""))
        + grown(1, "thinking_delta", "thinking", "Half a")
        + 'event: content_block_delta\ndata: {"type":"content_block_de'
    )


def odd():
    """Wrong types, no announcements, events out of order: what sloppy servers send."""
    return (
        'data: ["message_start"]\n\ndata: not JSON at all\n\ndata: {"type":5}\n\n'
        + event("message_start", message=[])
        + event("content_block_start", index="0", content_block='"text"')
        + event("content_block_start", index=[0], content_block="null")
        + event("content_block_delta", index={}, delta={"text": "lost"})
        + event("content_block_delta", index=0, delta="lost")
        + event("content_block_delta", index=7, delta={"type": "thinking_delta", "thinking": "Hm."})
        + event("content_block_delta", index=8, delta={"type": "text_delta", "text": "Yes."})
        + event("content_block_delta", index=8, delta={"type": "text_delta", "text": 5})
        + event("content_block_stop", index=9)
        + event("message_delta", delta={"stop_reason": "end_turn"}, usage=[5])
    )


def whole():
    """Not streamed, indented by somebody on the way."""
    input = '{"path": "a.txt" , "limit": 5.0}'
    call = f'{{"input": {input}, "type":"tool_use","id":"toolu_01A","name":"read_file"}}'
    text = '{"type":"text","text":" Let me look. "}'
    blocks = f"{FILLED},\n    {SEALED},\n    {text},\n    {OMITTED},\n    {call}"
    usage = '{"input_tokens":472,"cache_read_input_tokens":2048,"output_tokens":89}'
    return (
        f'{{\n  "id": "{MESSAGE}",\n  "type": "message",\n  "model": "{MODEL}",\n'
        f'  "content": [\n    {blocks}\n  ],\n  "stop_reason": "tool_use",\n'
        f'  "usage": {usage}\n}}\n'
    )


def error():
    """The body of an HTTP error."""
    message = "Invalid `signature` in `thinking` block"
    return json.dumps(
        {"type": "error", "error": {"type": "invalid_request_error", "message": message}}
    )


RECORDINGS = {
    "messages-interleaved.sse": interleaved,
    "messages-redacted.sse": redacted,
    "messages-server-tools.sse": server_tools,
    "messages-halves.sse": halves,
    "messages-capped.sse": capped,
    "messages-refused.sse": refused,
    "messages-unsigned.sse": unsigned,
    "messages-failed.sse": failed,
    "messages-cut.sse": cut,
    "messages-odd.sse": odd,
    "messages-whole.json": whole,
    "messages-error.json": error,
}


def read(name):
    return (HERE / name).read_bytes()


if __name__ == "__main__":
    for name, make in RECORDINGS.items():
        (HERE / name).write_bytes(make().encode())
