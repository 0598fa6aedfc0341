"""Streams and bodies of `generateContent` servers, as they look on the wire, and what makes them.

Parts are JSON text, spelled as no serialiser of ours would spell them: what is captured has to be
equal to them to the byte. `python tests/gemini_recordings.py` writes the files again.
"""

import json
from pathlib import Path

HERE = Path(__file__).parents[2] / "recordings"
MODEL = "gemini-3-pro-preview-11-2026"
RESPONSE = "mAITaLOUHPaU1MkP"
SIGNATURE = "EjQKMgERTTIPc3lTsignatureOfTheFirst+/=="
OTHER = "EjQKMgERTTIPotherSignature=="

THOUGHT = '{"text": "**Plan**\\n\\nRead — then run.", "thought": true, "x_odd": 5.0}'
SEAL = f'{{"text": "", "thoughtSignature": "{OTHER}"}}'
CALL = '{"functionCall":{"name":"read_file","args":{"path": "a b.txt" ,"limit":5.0}}%s}'
NAMED = '{"functionCall":{"id":"fc-7","name":"run","args":{}},"thoughtSignature":"%s"}'
PICTURE = (
    '{"inlineData": {"mimeType": "image/png", "data": "iVBORw0KGgo="}, "thoughtSignature": "%s"}'
)
COUNTS = {
    "promptTokenCount": 412,
    "candidatesTokenCount": 37,
    "totalTokenCount": 951,
    "cachedContentTokenCount": 256,
    "promptTokensDetails": [{"modality": "TEXT", "tokenCount": 412}],
    "thoughtsTokenCount": 502,
}


def said(text, **members):
    return json.dumps({"text": text, **members}, ensure_ascii=False)


def chunk(*parts, finish="", counts=COUNTS, **members):
    """One response of a stream; parts are given as JSON text."""
    content = f'"content": {{"parts": [{",".join(parts)}],"role": "model"}}'
    ended = f',"finishReason": "{finish}"' if finish else ""
    rest = {"usageMetadata": counts, "modelVersion": MODEL, "responseId": RESPONSE} | members
    return f'{{"candidates": [{{{content}{ended},"index": 0}}],{json.dumps(rest)[1:-1]}}}'


def sse(*chunks, end="\r\n"):
    return "".join(f"data: {one}{end}{end}" for one in chunks)


def parallel():
    """A summary, then two calls at once: only the first is signed."""
    signed = CALL % f',"thoughtSignature":"{SIGNATURE}"'
    return sse(
        chunk(said("**Plan**\n\n", thought=True, extra={"z": 1})),
        chunk(said("Read\u2028two", thought=True)),
        chunk(said(" files.", thought=True)),
        chunk(signed, CALL % ""),
        chunk(said(""), finish="STOP"),
    )


def text():
    """Text in pieces; the signature comes on an empty last part."""
    return sse(
        chunk(THOUGHT),
        chunk(said(" It is")),
        chunk(said("\u2028done.")),
        chunk(said(" 🎉 ")),
        chunk(SEAL, finish="STOP"),
    )


def signed():
    """Text whose last piece is signed, a thought that is, a picture, a call with an id."""
    return sse(
        chunk(said("Hm", thought=True), said("m.", thought=True, thoughtSignature=OTHER)),
        chunk(said("Let me"), said(" look")),
        chunk(said(" now.", thoughtSignature=SIGNATURE)),
        chunk(said("And")),
        chunk(PICTURE % OTHER, said("again.")),
        chunk(NAMED % SIGNATURE, finish="STOP"),
        end="\n",
    )


def array():
    """Without `alt=sse`: one JSON array, indented, streamed."""
    chunks = [
        chunk(THOUGHT),
        chunk(said('Braces } ] in " a { string \\')),
        chunk(said(" and more.")),
        chunk(CALL % f',"thoughtSignature":"{SIGNATURE}"', finish="STOP"),
    ]
    pretty = [json.dumps(json.loads(one), indent=2, ensure_ascii=False) for one in chunks[1:3]]
    return "[" + "\n,\n".join([chunks[0], *pretty, chunks[3]]) + "\n]\n"


def halves():
    """Emoji cut in two, in text and in a thought."""
    return sse(
        chunk('{"text":"a\\ud83d","thought":true}'),
        chunk('{"text":"\\ude00b\\ud83d","thought":true}'),
        chunk('{"text":"c\\ud83d"}'),
        chunk('{"text":"\\ude00"}', finish="STOP"),
    )


def capped():
    return sse(chunk(said("Hm.", thought=True)), chunk(said("It is"), finish="MAX_TOKENS"))


def malformed():
    return sse(
        chunk(said("Hm.", thought=True)),
        chunk(said("It is")),
        chunk(finish="MALFORMED_FUNCTION_CALL"),
    )


def cut():
    """Somebody hung up in the middle of the second thought."""
    return (
        sse(
            chunk(said("One.", thought=True, thoughtSignature=SIGNATURE)),
            chunk(said("Two", thought=True)),
        )
        + 'data: {"candidates": [{"content": {"parts": [{"te'
    )


def failed():
    error = (
        '{"error": {"code": 503, "message": "The model is overloaded.", "status": "UNAVAILABLE"}}'
    )
    return sse(chunk(said("Hm.", thought=True)), chunk(said("It")), error)


def blocked():
    return f'{{"promptFeedback": {{"blockReason": "SAFETY"}}, "modelVersion": "{MODEL}"}}'


def odd():
    """Wrong types, other candidates, and what nobody documented."""
    other = chunk(said("lost")).replace('"index": 0', '"index": 1')
    return sse(
        "not JSON at all",
        '["candidates"]',
        '{"candidates": 5, "usageMetadata": []}',
        '{"candidates": [5, {"content": 5, "index": 1}]}',
        '{"candidates": [{"content": {"parts": {"text": "lost"}}}]}',
        '{"candidates": [{"content": {"parts": [5, {"text": 5}, {"thought": 5, "text": "A"}]}}]}',
        other,
        chunk('{"executableCode": {"code": "1"}}', '{"functionCall": "lost"}'),
        chunk('{"text": "B", "text": "C"}', '{"functionCall": {"name": 5, "args": null}}'),
        chunk(said("D"), finish="STOP", counts={"promptTokenCount": "many"}),
    )


def whole():
    """Not streamed, indented by somebody on the way."""
    parts = ",\n  ".join(
        [THOUGHT, said(" Let me look. "), CALL % f', "thoughtSignature": "{SIGNATURE}"']
    )
    return (
        f'{{\n "candidates": [ {{ "content": {{ "parts": [\n  {parts}\n ], "role": "model" }},\n'
        f' "finishReason": "STOP" }} ],\n "usageMetadata": {json.dumps(COUNTS)},\n'
        f' "modelVersion": "{MODEL}", "responseId": "{RESPONSE}"\n}}\n'
    )


RECORDINGS = {
    "gemini-parallel.sse": parallel,
    "gemini-text.sse": text,
    "gemini-signed.sse": signed,
    "gemini-array.json": array,
    "gemini-halves.sse": halves,
    "gemini-capped.sse": capped,
    "gemini-malformed.sse": malformed,
    "gemini-cut.sse": cut,
    "gemini-failed.sse": failed,
    "gemini-blocked.json": blocked,
    "gemini-odd.sse": odd,
    "gemini-whole.json": whole,
}


def read(name):
    return (HERE / name).read_bytes()


if __name__ == "__main__":
    for name, make in RECORDINGS.items():
        (HERE / name).write_bytes(make().encode())
