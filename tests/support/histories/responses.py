"""Conversations in Responses items, as hypothesis draws them, and what clients do to them."""

import json

from hypothesis import strategies as st

from support.alterations import whole

WORDS = st.text(alphabet='ab é🎉\u2028"\\', min_size=1, max_size=12).filter(str.strip)
VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(10**6), 10**6),
    st.sampled_from([5.0, 0.5, -0.0, 1e3]),
    WORDS,
)
ARGUMENTS = st.dictionaries(
    st.sampled_from("abcd"), VALUES | st.lists(VALUES, max_size=2), max_size=3
)


def spelled(value):
    """JSON text, in one of the spellings that writers use."""
    compact = (",", ":")
    spellings = [
        {"separators": compact, "ensure_ascii": False},
        {"separators": compact},
        {},
        {"indent": 2, "ensure_ascii": False},
    ]
    return st.sampled_from(spellings).map(lambda spelling: json.dumps(value, **spelling))


class Ids:
    """Ids that are never given twice."""

    def __init__(self):
        self.count = 0

    def __call__(self, prefix):
        self.count += 1
        return f"{prefix}_{self.count:012x}"


@st.composite
def thoughts(draw, ids):
    """A reasoning item as JSON text: sealed, plain, or both, spelled as only a provider would."""
    item = {"id": ids("rs"), "type": "reasoning", "summary": []}
    if draw(st.booleans()):
        item["summary"] = [{"type": "summary_text", "text": draw(WORDS)}]
    if draw(st.booleans()):
        item["encrypted_content"] = "gAAAA" + ids("blob")
    else:
        item["content"] = [{"type": "reasoning_text", "text": draw(WORDS)}]
    text = draw(spelled(item))
    if draw(st.booleans()):
        text = text[:-1] + ', "x_odd" :{"n":5.0,"m":1E+2}}'
    return text


@st.composite
def calls(draw, ids):
    call = ids("call")
    if draw(st.integers(0, 4)) == 0:
        return {
            "id": ids("ctc"),
            "type": "custom_tool_call",
            "call_id": call,
            "name": "patch",
            "input": draw(WORDS),
        }
    return {
        "id": ids("fc"),
        "type": "function_call",
        "status": "completed",
        "call_id": call,
        "name": draw(st.sampled_from(["read_file", "run"])),
        "arguments": draw(ARGUMENTS.flatmap(spelled)),
    }


@st.composite
def messages(draw, ids):
    text = draw(WORDS)
    part = {"type": "output_text", "annotations": [], "logprobs": [], "text": text}
    return {
        "id": ids("msg"),
        "type": "message",
        "status": "completed",
        "role": "assistant",
        "content": [part],
        "phase": "commentary",
    }


def searches(ids):
    return st.builds(
        lambda query: {
            "id": ids("ws"),
            "type": "web_search_call",
            "status": "completed",
            "action": {"type": "search", "query": query},
        },
        WORDS,
    )


@st.composite
def outputs(draw, ids, *, hosted=True):
    """The items of one response as JSON texts: thoughts anywhere, but never last."""
    kinds = [calls(ids), messages(ids)] + ([searches(ids)] if hosted else [])
    raws = []
    for _ in range(draw(st.integers(1, 4))):
        raws += draw(st.lists(thoughts(ids), max_size=2))
        raws.append(draw(st.one_of(kinds).flatmap(spelled)))
    return raws


def answers(output, draw):
    """What tools and people say to an output."""
    items = []
    for raw in output:
        value = json.loads(raw)
        if value["type"] in ("function_call", "custom_tool_call"):
            kind = value["type"] + "_output"
            items.append({"type": kind, "call_id": value["call_id"], "output": draw(WORDS)})
    return items or [{"role": "user", "content": draw(WORDS)}]


@st.composite
def conversations(draw, *, hosted=True, turns=4):
    """What was said: a question, then outputs and answers in turn."""
    ids = Ids()
    said = []
    question = [{"role": "user", "content": draw(WORDS)}]
    for _ in range(draw(st.integers(1, turns))):
        output = draw(outputs(ids, hosted=hosted))
        said.append((question, output))
        question = answers(output, draw)
    return said, question


def body(said, question=(), *, spelling=None, **members):
    """A request that echoes all of it to the byte, with the client's own spelling around."""
    items = []
    for asked, output in said:
        items += [json.dumps(item, ensure_ascii=False) for item in asked]
        items += output
    items += [json.dumps(item, ensure_ascii=False) for item in question]
    between = ",\n\t " if spelling else ","
    rest = "".join(f',"{key}": {json.dumps(value)}' for key, value in members.items())
    return f'{{"model":"gpt-5.6" , "input": [{between.join(items)}]{rest} }}\n'.encode()


# -- what clients do (clients.md) ----------------------------------------------------------------


def _each(items, change):
    return [changed for item in items if (changed := change(dict(item))) is not None]


def no_thoughts(items):
    return [item for item in items if item["type"] != "reasoning"]


def no_ids(items):
    return _each(items, lambda item: {k: v for k, v in item.items() if k not in ("id", "status")})


def no_thought_ids(items):
    return _each(
        items,
        lambda item: {k: v for k, v in item.items() if k != "id" or item["type"] != "reasoning"},
    )


def more_members(items):
    extra = {"namespace": None, "caller": None, "parsed_arguments": None}
    return _each(items, lambda item: item | extra | {"content": item.get("content")})


def _text(item):
    content = item["content"]
    return content if isinstance(content, str) else content[0]["text"]


def strings(items):
    return _each(items, lambda i: i | {"content": _text(i)} if i["type"] == "message" else i)


def trimmed(items):
    """Outer whitespace goes; between two messages of one output it is not outer."""
    if sum(item["type"] == "message" for item in items) > 1:
        return items

    def change(item):
        if item["type"] == "message":
            item["content"] = [{"type": "output_text", "text": _text(item).strip()}]
        return item

    return _each(items, change)


def no_text_beside_calls(items):
    called = any(item["type"].endswith("tool_call") or "arguments" in item for item in items)
    return [item for item in items if not (called and item["type"] == "message")]


def reserialised(items):
    """The AI SDK: keys in the schema's order, whole floats as integers, real UTF-8."""

    def change(item):
        if "arguments" in item:
            value = json.loads(item["arguments"])
            value = {key: whole(value[key]) for key in sorted(value, reverse=True)}
            item["arguments"] = json.dumps(value, separators=(",", ":"), ensure_ascii=False)
        return item

    return _each(items, change)


def spaced(items):
    def change(item):
        if "arguments" in item:
            item["arguments"] = json.dumps(json.loads(item["arguments"]))
        return item

    return _each(items, change)


ALTERATIONS = [
    no_thoughts,
    no_ids,
    no_thought_ids,
    more_members,
    strings,
    trimmed,
    no_text_beside_calls,
    reserialised,
    spaced,
]
