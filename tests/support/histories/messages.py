"""Conversations in Messages blocks, as hypothesis draws them, and what clients do to them."""

import json

from hypothesis import strategies as st

from support.alterations import whole
from support.histories.responses import ARGUMENTS, WORDS, Ids, spelled

PLACEHOLDER = "[System: Empty message content sanitised to satisfy protocol]"


@st.composite
def thoughts(draw, ids):
    """A thinking block as JSON text: shown, omitted or redacted, spelled as a provider would."""
    kind = draw(st.sampled_from(["shown", "omitted", "redacted"]))
    if kind == "redacted":
        block = {"type": "redacted_thinking", "data": ids("data")}
    else:
        text = draw(WORDS) if kind == "shown" else ""
        block = {"type": "thinking", "thinking": text, "signature": ids("sig")}
    text = draw(spelled(block))
    if draw(st.booleans()):
        text = text[:-1] + ', "x_odd" :{"n":5.0,"m":1E+2}}'
    return text


def calls(ids):
    return st.builds(
        lambda name, input: {"type": "tool_use", "id": ids("toolu"), "name": name, "input": input},
        st.sampled_from(["read_file", "run"]),
        ARGUMENTS,
    )


TEXTS = st.builds(lambda text: {"type": "text", "text": text}, WORDS)


def searches(ids):
    return st.builds(
        lambda query: {
            "type": "server_tool_use",
            "id": ids("srvtoolu"),
            "name": "web_search",
            "input": {"query": query},
        },
        WORDS,
    )


@st.composite
def outputs(draw, ids, *, hosted=True):
    """The blocks of one response as JSON texts: thoughts anywhere, but never last."""
    kinds = [calls(ids), TEXTS] + ([searches(ids)] if hosted else [])
    raws = []
    for _ in range(draw(st.integers(1, 4))):
        raws += draw(st.lists(thoughts(ids), max_size=2))
        raws.append(draw(st.one_of(kinds).flatmap(spelled)))
    return raws


def answers(output, draw):
    """What tools and people say to an output."""
    blocks = []
    for raw in output:
        value = json.loads(raw)
        if value["type"] == "tool_use":
            block = {"type": "tool_result", "tool_use_id": value["id"], "content": draw(WORDS)}
            blocks.append(block)
    return blocks or draw(st.sampled_from([[{"type": "text", "text": "?"}], "And then?"]))


@st.composite
def conversations(draw, *, hosted=True, turns=4):
    """What was said: a question, then outputs and answers in turn."""
    ids = Ids()
    said = []
    question = draw(WORDS)
    for _ in range(draw(st.integers(1, turns))):
        output = draw(outputs(ids, hosted=hosted))
        said.append((question, output))
        question = answers(output, draw)
    return said, question


def body(said, question=None, *, spelling=False, **members):
    """A request that echoes all of it to the byte, with the client's own spelling around."""
    between = ",\n\t " if spelling else ","
    messages = []
    for asked, output in said:
        messages.append(json.dumps({"role": "user", "content": asked}, ensure_ascii=False))
        content = output if isinstance(output, str) else f"[ {between.join(output)}]"
        messages.append(f'{{"role":"assistant","content" : {content}}}')
    if question is not None:
        messages.append(json.dumps({"content": question, "role": "user"}))
    rest = "".join(f',"{key}": {json.dumps(value)}' for key, value in members.items())
    return f'{{"model":"claude" , "messages": [{between.join(messages)}]{rest} }}\n'.encode()


# -- what clients do (clients.md) ----------------------------------------------------------------


def no_thoughts(blocks):
    return [b for b in blocks if b["type"] not in ("thinking", "redacted_thinking")]


def trimmed_thoughts(blocks):
    """qwen-code: thoughts trimmed, redacted ones dropped."""
    return [
        b | {"thinking": b["thinking"].strip()} if b["type"] == "thinking" else b
        for b in blocks
        if b["type"] != "redacted_thinking"
    ]


def redacted_as_thinking(blocks):
    """kimi-code: what is redacted comes back as an empty thought with that signature."""
    return [
        {"type": "thinking", "thinking": "", "signature": b["data"]}
        if b["type"] == "redacted_thinking"
        else b
        for b in blocks
    ]


def placeholder(blocks):
    """litellm: a text before the first call where there was none."""
    if any(b["type"] == "text" for b in blocks):
        return blocks
    first = next((i for i, b in enumerate(blocks) if b["type"] == "tool_use"), None)
    if first is None:
        return blocks
    return [*blocks[:first], {"type": "text", "text": PLACEHOLDER}, *blocks[first:]]


def cached(blocks):
    """opencode: cache markers on what is echoed."""
    return [
        b if "think" in b["type"] else b | {"cache_control": {"type": "ephemeral"}} for b in blocks
    ]


def reordered(blocks):
    """The AI SDK: keys of the input in the schema's order, whole floats as integers."""
    return [
        b | {"input": {k: whole(b["input"][k]) for k in sorted(b["input"], reverse=True)}}
        if b["type"] == "tool_use"
        else b
        for b in blocks
    ]


def no_text_beside_calls(blocks):
    called = any(b["type"] == "tool_use" for b in blocks)
    return [b for b in blocks if not (called and b["type"] == "text")]


def trimmed(blocks):
    """Only where there is one text: joined ones keep the space between them."""
    if sum(b["type"] == "text" for b in blocks) != 1:
        return blocks
    return [b | {"text": b["text"].strip()} if b["type"] == "text" else b for b in blocks]


def renamed(blocks):
    """opencode and open-interpreter: ids of their own."""
    return [
        b | {"id": f"toolu_{i}"} if b["type"] == "tool_use" else b for i, b in enumerate(blocks)
    ]


ALTERATIONS = [
    no_thoughts,
    trimmed_thoughts,
    redacted_as_thinking,
    placeholder,
    cached,
    reordered,
    no_text_beside_calls,
    trimmed,
    renamed,
]


# -- the same output as a provider streams it ----------------------------------------------------


def streamed(output, draw):
    """Server-sent events that build up these blocks, in pieces of any size."""
    told = [_event("message_start", message={"id": "msg_1", "model": "claude", "usage": {}})]
    for index, raw in enumerate(output):
        block = json.loads(raw)
        grows = {"thinking": "thinking", "text": "text", "tool_use": "input"}.get(block["type"])
        if grows is None:
            told.append(_start(index, raw))
        else:
            whole = block[grows] if grows != "input" else json.dumps(block["input"])
            told.append(_start(index, json.dumps(block | {grows: {} if grows == "input" else ""})))
            kind, key = {
                "thinking": ("thinking_delta", "thinking"),
                "text": ("text_delta", "text"),
                "input": ("input_json_delta", "partial_json"),
            }[grows]
            cut = draw(st.integers(0, len(whole)))
            for piece in (whole[:cut], whole[cut:]):
                delta = {"type": kind, key: piece}
                told.append(_event("content_block_delta", index=index, delta=delta))
        told.append(_event("content_block_stop", index=index))
    told.append(_event("message_delta", delta={"stop_reason": "end_turn"}, usage={}))
    return "".join([*told, _event("message_stop")]).encode()


def _event(type, **members):
    return f"event: {type}\ndata: {json.dumps({'type': type, **members})}\n\n"


def _start(index, raw):
    return (
        f'data: {{"type":"content_block_start","index":{index},"content_block":{_line(raw)}}}\n\n'
    )


def _line(raw):
    """On one line: a provider's events have no line ends in their data."""
    return raw.replace("\n", " ")
