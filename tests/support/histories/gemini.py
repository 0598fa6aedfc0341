"""Conversations in Gemini parts, as hypothesis draws them, and what clients do to them."""

import json

from hypothesis import strategies as st

from support.alterations import whole
from support.histories.responses import ARGUMENTS, WORDS, Ids, spelled

BYPASS = "skip_thought_signature_validator"


@st.composite
def thoughts(draw, ids):
    """A part that is a thought, as JSON text: a summary, signed or not, or only a signature."""
    kind = draw(st.sampled_from(["summary", "signed", "seal"]))
    part = {"text": draw(WORDS) + ids(""), "thought": True}
    if kind == "signed":
        part["thoughtSignature"] = ids("sig")
    elif kind == "seal":
        part = {"text": "", "thoughtSignature": ids("sig")}
    text = draw(spelled(part))
    if kind != "seal" and draw(st.booleans()):
        text = text[:-1] + ', "x_odd" :{"n":5.0,"m":1E+2}}'
    return text


def calls(ids):
    return st.builds(
        lambda name, args, named: {
            "functionCall": {"name": name, "args": args} | ({"id": ids("fc")} if named else {})
        },
        st.sampled_from(["read_file", "run"]),
        ARGUMENTS,
        st.booleans(),
    )


TEXTS = st.builds(lambda text: {"text": text}, WORDS)
PICTURES = st.builds(
    lambda data: {"inlineData": {"mimeType": "image/png", "data": data.hex()}},
    st.binary(max_size=4),
)


@st.composite
def outputs(draw, ids, *, pictures=True):
    """The parts of one response as JSON texts: thoughts anywhere, signatures on anything."""
    kinds = [calls(ids), TEXTS] + ([PICTURES] if pictures else [])
    raws = []
    for _ in range(draw(st.integers(1, 4))):
        raws += draw(st.lists(thoughts(ids), max_size=2))
        part = draw(st.one_of(kinds))
        if draw(st.booleans()):
            part["thoughtSignature"] = ids("sig")
        raws.append(draw(spelled(part)))
    return raws


def answers(output, draw):
    """What tools and people say to an output."""
    parts = []
    for raw in output:
        call = json.loads(raw).get("functionCall")
        if call is not None:
            response = {"name": call["name"], "response": {"result": draw(WORDS)}}
            parts.append({"functionResponse": response})
    return parts or [{"text": draw(WORDS)}]


@st.composite
def conversations(draw, *, pictures=True, turns=4):
    """What was said: a question, then outputs and answers in turn."""
    ids = Ids()
    said = []
    question = [{"text": draw(WORDS)}]
    for _ in range(draw(st.integers(1, turns))):
        output = draw(outputs(ids, pictures=pictures))
        said.append((question, output))
        question = answers(output, draw)
    return said, question


def body(said, question=(), *, spelling=False, **members):
    """A request that echoes all of it to the byte, with the client's own spelling around.

    An output is a list of parts, or of lists of parts: then it is sent as several contents.
    """
    between = ",\n\t " if spelling else ","
    contents = []
    for asked, output in said:
        contents.append(json.dumps({"role": "user", "parts": asked}, ensure_ascii=False))
        lists = output if output and isinstance(output[0], list) else [output]
        contents += [f'{{"role":"model","parts" : [ {between.join(parts)}]}}' for parts in lists]
    if question:
        contents.append(json.dumps({"parts": question}))
    rest = "".join(f',"{key}": {json.dumps(value)}' for key, value in members.items())
    return f'{{"contents": [{between.join(contents)}]{rest} }}\n'.encode()


# -- what clients do (clients.md) ----------------------------------------------------------------


def no_thoughts(parts):
    return [
        {k: v for k, v in part.items() if k != "thoughtSignature"}
        for part in parts
        if not part.get("thought") and part.get("text") != ""
    ]


def bypassed(parts):
    """gemini-cli after a resume: every signature replaced by the bypass."""
    return [p | {"thoughtSignature": BYPASS} if "thoughtSignature" in p else p for p in parts]


def snake(parts):
    names = {"thoughtSignature": "thought_signature", "functionCall": "function_call"}
    return [{names.get(k, k): v for k, v in part.items()} for part in parts]


def trimmed(parts):
    """Only where there is one text: joined ones keep the space between them."""
    spoken = [p for p in parts if p.get("text") and not p.get("thought")]
    if len(spoken) != 1:
        return parts
    return [p | {"text": p["text"].strip()} if p is spoken[0] else p for p in parts]


def joined(parts):
    """Clients that keep one text: it stands where the first piece stood."""
    spoken = [p for p in parts if p.get("text") and not p.get("thought")]
    if len(spoken) < 2:
        return parts
    whole = {"text": "".join(p["text"] for p in spoken)}
    rest = [p for p in parts if not any(p is other for other in spoken[1:])]
    return [whole if p is spoken[0] else p for p in rest]


def no_ids(parts):
    return [
        p | {"functionCall": {k: v for k, v in p["functionCall"].items() if k != "id"}}
        if "functionCall" in p
        else p
        for p in parts
    ]


def reordered(parts):
    def again(call):
        args = {k: whole(call["args"][k]) for k in sorted(call["args"], reverse=True)}
        return call | {"args": args}

    return [
        p | {"functionCall": again(p["functionCall"])} if "functionCall" in p else p for p in parts
    ]


ALTERATIONS = [no_thoughts, bypassed, trimmed, joined, no_ids, reordered]


# -- the same output as a provider streams it ----------------------------------------------------


def chunked(output, draw):
    """The parts in chunks: texts and summaries are cut anywhere, signatures come with the last."""
    chunks = []
    for raw in output:
        part = json.loads(raw)
        text = part.get("text")
        if text and "thoughtSignature" not in part and draw(st.booleans()):
            cut = draw(st.integers(1, len(text)))
            pieces = [piece for piece in (text[:cut], text[cut:]) if piece]
            chunks += [[json.dumps(part | {"text": piece})] for piece in pieces]
        elif chunks and draw(st.booleans()):
            chunks[-1].append(raw)
        else:
            chunks.append([raw])
    return chunks


def streamed(chunks, *, array=False):
    """Those chunks as the provider sends them."""
    responses = []
    for number, parts in enumerate(chunks):
        end = ',"finishReason":"STOP"' if number == len(chunks) - 1 else ""
        content = f'{{"parts":[{",".join(parts)}],"role":"model"}}'
        responses.append(f'{{"candidates":[{{"content":{content}{end}}}],"usageMetadata":{{}}}}')
    if array:
        return ("[" + "\n,\n".join(responses) + "]").encode()
    lines = [response.replace("\n", " ") for response in responses]
    return "".join(f"data: {line}\r\n\r\n" for line in lines).encode()
