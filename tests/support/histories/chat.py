"""Chat Completions conversations of all kinds, as a client has them before it alters anything."""

import json

from hypothesis import strategies as st

STYLES = ("none", "reasoning_content", "reasoning", "details", "copilot", "think", "chunk", "extra")
"""How a provider sends its thoughts."""


def plain(text):
    """Not a text that begins with a thought, or with something that looks like one."""
    return not text.strip("\ufeff \n\t\r\x0b\x0c\x1c\x1d\x1e\x1f\x85\xa0\u2028\u2029").startswith(
        "<think"
    )


TEXTS = (
    st.sampled_from(
        [
            "",
            " ",
            "\n\nLet me look.\n",
            "  Done: 3 files. ",
            "naïve 😀\u2028line",
            "a </think> b",
            "\ufeffBOM\ufeff",
            'say "hi"\\n',
        ]
    )
    | st.text(max_size=20)
).filter(plain)
THOUGHTS = st.text(max_size=15).filter(lambda text: "</think" not in text)
NUMBERS = (
    st.integers(-1000, 1000)
    | st.floats(allow_nan=False, allow_infinity=False, width=32)
    | st.sampled_from([5.0, -0.0, 1e21, 1e-7, 2**53 + 1, 12345678901234567890, 0.1, 1e22, 3.5e300])
)
VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=4), inner, max_size=3)
    ),
    max_leaves=6,
)
ARGUMENTS = st.dictionaries(st.text(max_size=5), VALUES, max_size=3)
SPELLINGS = st.sampled_from(
    [
        json.dumps,
        lambda value: json.dumps(value, separators=(",", ":"), ensure_ascii=False),
        lambda value: json.dumps(value, indent=2),
        lambda value: "" if not value else json.dumps(value, sort_keys=True),
    ]
)


@st.composite
def calls(draw, prefix):
    """Up to three calls in parallel, with ids that are unique, repeat, or are made of names."""
    made = []
    for index in range(draw(st.integers(0, 3))):
        name = draw(st.sampled_from(["read_file", "run", "search"]))
        form = draw(st.sampled_from([f"call_00_{prefix}x{index}", f"functions.{name}:{index}"]))
        text = draw(SPELLINGS)(draw(ARGUMENTS))
        function = {"name": name, "arguments": text}
        made.append({"id": form, "type": "function", "function": function})
    return made


@st.composite
def assistant(draw, style, prefix="a"):
    """One assistant message in a provider's style."""
    text, thought = draw(TEXTS), draw(THOUGHTS)
    message = {"role": "assistant", "content": text or draw(st.sampled_from([None, ""]))}
    made = draw(calls(prefix))
    if style in {"reasoning_content", "reasoning"}:
        message[style] = thought
    elif style == "details":
        message["reasoning"] = thought
        message["reasoning_details"] = [
            {"type": "reasoning.text", "text": thought, "signature": "sig", "index": 0},
            {"type": "reasoning.encrypted", "data": "gAAA", "id": "rs_1", "index": 1},
        ]
    elif style == "copilot":
        message |= {"reasoning_text": thought, "reasoning_opaque": "b3BhcXVl"}
    elif style == "think":
        message["content"] = f"<think>{thought}</think>\n\n{text}"
    elif style == "chunk":
        chunk = {"type": "thinking", "thinking": [{"type": "text", "text": thought}]}
        message["content"] = [chunk, *([{"type": "text", "text": text}] if text else [])]
    elif style == "extra" and made:
        made[0]["extra_content"] = {"google": {"thought_signature": "c2ln"}}
    if made:
        message["tool_calls"] = made
    return message


@st.composite
def answers(draw, message):
    """What the tools say, and perhaps the user on top of it."""
    results = [
        {"role": "tool", "tool_call_id": call["id"], "content": draw(TEXTS)}
        for call in message.get("tool_calls", ())
    ]
    if not results or draw(st.integers(0, 4)) == 0:
        results.append({"role": "user", "content": draw(TEXTS)})
    return results


@st.composite
def histories(draw, most=4):
    """A conversation that waits for the next answer."""
    style = draw(st.sampled_from(STYLES))
    messages = [{"role": "system", "content": "Be brief."}] if draw(st.booleans()) else []
    messages.append({"role": "user", "content": draw(TEXTS)})
    for turn in range(draw(st.integers(0, most))):
        message = draw(assistant(style, f"t{turn}"))
        messages += [message, *draw(answers(message))]
    return messages


def body(messages, **more):
    """A request with this history."""
    return json.dumps({"model": "m", "messages": messages, "stream": True, **more}).encode()
