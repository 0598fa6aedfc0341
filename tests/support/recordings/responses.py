"""Streams and bodies of Responses servers, as they look on the wire, and what makes them.

Items are JSON text, spelled as no serialiser of ours would spell them: what is captured has to be
equal to them to the byte. `python tests/responses_recordings.py` writes the files again.
"""

import json
from pathlib import Path

HERE = Path(__file__).parents[2] / "recordings"
MODEL = "gpt-5.6-2026-08-20"
RESPONSE = "resp_0a7b"
USAGE = (
    '{"input_tokens":812,"input_tokens_details":{"cached_tokens":640},"output_tokens":377,'
    '"output_tokens_details":{"reasoning_tokens":320},"total_tokens":1189}'
)

# A summary in two parts, an unknown member, unusual order, numbers and escapes.
THINK_1 = (
    '{"id":"rs_01","type":"reasoning","summary":[{"type":"summary_text","text":"**Looking**\\n\\nat'
    ' the \\u2028 file"},{"type":"summary_text","text":"Then the tests — twice."}],'
    '"encrypted_content":"gAAAAABo_first==","x_trace":{"z":5.0,"a":1E+2,"n":-0.0}}'
)
# Sealed and nothing else, spaces as some proxies leave them.
THINK_2 = (
    '{ "type":"reasoning","encrypted_content": "gAAAAABo_second==" ,"summary":[], "id":"rs_02"}'
)
# Nothing sealed: plain text, as open-weight servers have it.
THINK_OPEN = (
    '{"type":"reasoning","id":"rs_03","summary":[],'
    '"content":[{"type":"reasoning_text","text":"Six times seven."}],"status":"completed"}'
)
# The same item before and after its seal is there.
THINK_LATE = '{"id":"rs_04","type":"reasoning","encrypted_content":null,"summary":[]}'
THINK_FULL = '{"id":"rs_04","type":"reasoning","encrypted_content":"gAAAAABo_late==","summary":[]}'
CALL_1 = (
    '{"id":"fc_01","type":"function_call","status":"completed",'
    '"arguments":"{\\"path\\": \\"a b.py\\", \\"limit\\": 5.0}",'
    '"call_id":"call_first0000000001","name":"read_file"}'
)
CALL_2 = (
    '{"id":"fc_02","type":"function_call","status":"completed","arguments":"{}",'
    '"call_id":"call_second000000002","name":"run"}'
)
CUSTOM = (
    '{"id":"ctc_01","type":"custom_tool_call","status":"completed","call_id":"call_patch00000003",'
    '"name":"apply_patch","input":"*** Begin Patch\\n*** End Patch"}'
)
SHELL = (
    '{"id":"lsh_01","type":"local_shell_call","status":"completed","call_id":"call_shell00000004",'
    '"action":{"type":"exec","command":["ls","-l"],"env":{}}}'
)
SEARCH = (
    '{"id":"ws_01","type":"web_search_call","status":"completed",'
    '"action":{"type":"search","query":"thoughtline"}}'
)
COMPACTION = '{"id":"cmp_01","type":"compaction","encrypted_content":"gAAAAABo_window=="}'


def message(text, *, id="msg_01", phase="final_answer", escape=False):
    spelled = json.dumps(text, ensure_ascii=escape)
    return (
        f'{{"id":"{id}","type":"message","status":"completed","content":[{{"type":"output_text",'
        f'"annotations":[],"logprobs":[],"text":{spelled}}}],"phase":"{phase}","role":"assistant"}}'
    )


# U+2028 as it is, not escaped: inside JSON it ends no line.
ANSWER = message("It is\u2028done. 🎉 ")
REFUSAL = (
    '{"id":"msg_05","type":"message","status":"completed",'
    '"content":[{"type":"refusal","refusal":"I cannot."}],"role":"assistant"}'
)


def event(type, *, named=True, **members):
    """One event; items and responses are given as JSON text."""
    spelled = [f'"type":"{type}"']
    for key, value in members.items():
        exact = key in ("item", "output_item", "response") and value[:1] == "{"
        raw = value if exact else json.dumps(value)
        spelled.append(f'"{key}":{raw}')
    data = "{" + ",".join(spelled) + "}"
    return (f"event: {type}\n" if named else "") + f"data: {data}\n\n"


def response(status, *output, usage="null", **members):
    rest = "".join(f',"{key}":{value}' for key, value in members.items())
    return (
        f'{{"id":"{RESPONSE}","object":"response","status":"{status}","model":"{MODEL}",'
        f'"instructions":"Be brief.","output":[{",".join(output)}],"usage":{usage}{rest}}}'
    )


def created():
    begun = response("in_progress")
    return event("response.created", response=begun, sequence_number=0) + event(
        "response.in_progress", response=begun, sequence_number=1
    )


def thinking(raw, index, *, summary=(), opened=None, done=True, key="item", **named):
    """A reasoning item from its announcement to its end."""
    id = json.loads(raw)["id"]
    begun = opened or f'{{"id":"{id}","type":"reasoning","encrypted_content":"gAAA_","summary":[]}}'
    told = event("response.output_item.added", output_index=index, **{key: begun}, **named)
    at = {"item_id": id, "output_index": index, **named}
    for number, pieces in enumerate(summary):
        told += event("response.reasoning_summary_part.added", summary_index=number, **at)
        for piece in pieces:
            told += event(
                "response.reasoning_summary_text.delta", summary_index=number, delta=piece, **at
            )
        whole = "".join(pieces)
        told += event(
            "response.reasoning_summary_text.done", summary_index=number, text=whole, **at
        )
    if done:
        told += event("response.output_item.done", output_index=index, **{key: raw}, **named)
    return told


def calling(raw, index, *pieces, key="item", **named):
    value = json.loads(raw)
    field = "input" if value["type"] == "custom_tool_call" else "arguments"
    begun = json.dumps(value | {"status": "in_progress", field: ""})
    told = event("response.output_item.added", output_index=index, **{key: begun}, **named)
    kind = "function_call_arguments" if field == "arguments" else "custom_tool_call_input"
    for piece in pieces:
        at = {"item_id": value["id"], "output_index": index, **named}
        told += event(f"response.{kind}.delta", delta=piece, **at)
    return told + event("response.output_item.done", output_index=index, **{key: raw}, **named)


def saying(raw, index, *pieces, kind="output_text", done=True):
    id = json.loads(raw)["id"]
    begun = (
        f'{{"id":"{id}","type":"message","status":"in_progress","content":[],"role":"assistant"}}'
    )
    told = event("response.output_item.added", output_index=index, item=begun)
    at = {"item_id": id, "output_index": index, "content_index": 0}
    told += event("response.content_part.added", part={"type": kind}, **at)
    for piece in pieces:
        told += event(f"response.{kind}.delta", delta=piece, obfuscation="x9", **at)
    if done:
        told += event(f"response.{kind}.done", text="".join(pieces), **at)
        told += event("response.output_item.done", output_index=index, item=raw)
    return told


def ended(status, *output, **members):
    whole = response(status, *output, usage=USAGE, **members)
    return event(f"response.{status}", response=whole, sequence_number=99)


def interleaved():
    """A thought, a call, a thought, a call."""
    return (
        created()
        + thinking(
            THINK_1,
            0,
            summary=[["**Looking**\n\nat", " the \u2028 file"], ["Then the tests — twice."]],
        )
        + calling(CALL_1, 1, '{"path": "a b', '.py", "limit": 5.0}')
        + thinking(THINK_2, 2)
        + calling(CALL_2, 3, "{}")
        + ended("completed", THINK_1, CALL_1, THINK_2, CALL_2)
    )


def sealed():
    """Two thoughts with nothing to read in them, then text."""
    return (
        created()
        + thinking(THINK_1, 0)
        + thinking(THINK_2, 1)
        + saying(ANSWER, 2, "It is\u2028", "done. 🎉 ")
        + ended("completed")  # one server leaves the output of its last event empty
    )


def late():
    """The seal is only in the last event."""
    return (
        created()
        + thinking(THINK_LATE, 0, opened=THINK_LATE)
        + saying(ANSWER, 1, "It is\u2028done. 🎉 ")
        + ended("completed", THINK_FULL, ANSWER)
    )


def alias():
    """`output_item` for `item`, no event names, a tool without a schema."""
    return (
        event("response.created", response=response("queued"), named=False)
        + thinking(THINK_2, 0, key="output_item", named=False)
        + calling(CUSTOM, 1, "*** Begin", " Patch\n*** End Patch", key="output_item", named=False)
        + event(
            "response.completed",
            named=False,
            response=response("completed", THINK_2, CUSTOM, usage=USAGE),
        )
        + "data: [DONE]\n\n"
    )


def incomplete():
    half = message("It is").replace('"completed"', '"incomplete"')
    return (
        created()
        + thinking(THINK_1, 0, summary=[["**Looking**\n\nat the \u2028 file"]])
        + saying(half, 1, "It is")
        + ended("incomplete", THINK_1, half, incomplete_details='{"reason":"max_output_tokens"}')
    )


def failed():
    return (
        created()
        + thinking(THINK_2, 0)
        + saying(ANSWER, 1, "It is", done=False)
        + ended("failed", error='{"code":"server_error","message":"The model had an error."}')
    )


def error():
    return (
        created()
        + thinking(THINK_2, 0)
        + event("error", code="rate_limit_exceeded", message="Slow down.", param=None)
    )


BEGUN = '{"id":"rs_09","type":"reasoning","encrypted_content":"gAAA_","summary":[]}'


def cut():
    """Somebody hung up in the middle of a thought."""
    begun = THINK_LATE.replace("rs_04", "rs_09")
    return (
        created()
        + thinking(THINK_2, 0)
        + thinking(begun, 1, summary=[["Half a"]], done=False)
        + 'event: response.reasoning_summary_text.delta\ndata: {"type":"response.reason'
    )


def halves():
    """CRLF, comments, and emoji cut in two: as escapes, in deltas and in an item."""
    item = '{"id":"rs_08","type":"reasoning","summary":[{"type":"summary_text","text":"\\ud83d"}]}'
    told = (
        ": connected\n\n"
        + created()
        + thinking(item, 0)
        + event("response.output_text.delta", item_id="msg_01", output_index=1, delta="a\ud83d")
        + event("response.output_text.delta", item_id="msg_01", output_index=1, delta="\udf89b")
        + ": still there\n\n"
        + saying(message("a🎉b", escape=True), 1)
        + ended("completed", item, message("a🎉b", escape=True))
    )
    return told.replace("\n", "\r\n")


def unknown():
    """Events, items and members that nobody documented, an item told twice, wrong types."""
    limits = event("codex.rate_limits", rate_limits={"primary": {"used": 5}})
    return (
        created()
        + limits
        + event("keepalive", sequence_number=7)
        + "data: not JSON at all\n\n"
        + 'data: ["response.completed"]\n\n'
        + 'data: {"type":5,"delta":"x"}\n\n'
        + event("response.output_text.delta", delta={"not": "text"}, output_index="one")
        + event("response.output_item.done", output_index=0, item="not an item")
        + event("response.output_item.done", output_index=0, item=COMPACTION)
        + thinking(THINK_OPEN, 1, opened='{"id":"rs_zz","type":"reasoning","summary":[]}')
        + event("response.reasoning_text.delta", item_id="rs_03", output_index=9, delta="seven.")
        + event("response.output_item.done", output_index=2, item=SEARCH)
        + event("response.output_item.done", output_index=2, item=SEARCH)
        + event("response.output_item.done", output_index=3, item=SHELL)
        + saying(REFUSAL, 4, "I can", "not.", kind="refusal")
        + ended("completed", COMPACTION, THINK_OPEN, SEARCH, SHELL, REFUSAL)
        + limits
    )


def last():
    """A proxy that buffers everything: there is only the last event."""
    return event(
        "response.completed", response=response("completed", THINK_1, CALL_1, ANSWER, usage=USAGE)
    )


def whole():
    """Not streamed, indented by somebody on the way."""
    items = f"{THINK_1},\n    {CALL_1},\n    {THINK_2},\n    {ANSWER}"
    return (
        f'{{\n  "id": "{RESPONSE}",\n  "status": "completed",\n  "error": null,\n'
        f'  "model": "{MODEL}",\n  "output": [\n    {items}\n  ],\n  "usage": {USAGE}\n}}\n'
    )


def refused():
    """The body of an HTTP error."""
    return (
        '{"error":{"message":"The encrypted content gAAA could not be verified.",'
        '"type":"invalid_request_error","param":null,"code":"invalid_encrypted_content"}}'
    )


RECORDINGS = {
    "responses-interleaved.sse": interleaved,
    "responses-sealed.sse": sealed,
    "responses-late.sse": late,
    "responses-alias.sse": alias,
    "responses-incomplete.sse": incomplete,
    "responses-failed.sse": failed,
    "responses-error.sse": error,
    "responses-cut.sse": cut,
    "responses-halves.sse": halves,
    "responses-unknown.sse": unknown,
    "responses-last.sse": last,
    "responses-whole.json": whole,
    "responses-refused.json": refused,
}


def read(name):
    return (HERE / name).read_bytes()


if __name__ == "__main__":
    for name, make in RECORDINGS.items():
        (HERE / name).write_bytes(make().encode())
