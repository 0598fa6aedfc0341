import json

import pytest

from support.histories.chat import body
from thoughtline.dialects import splice
from thoughtline.dialects.base import PlacedThought, Revision
from thoughtline.dialects.chat import ChatCompletions
from thoughtline.dialects.chat.message import MEMBERS
from thoughtline.errors import Unreadable
from thoughtline.log.parts import Carrier
from thoughtline.log.turns import Place

CHAT = ChatCompletions()
CHUNK = '{"type":"thinking",  "thinking":[{"type":"text","text":"t\\u00e9"}]}'
CALL = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}


def one(message, *thoughts, fields=None):
    """A single assistant message after a revision; thoughts as (carrier, raw[, place])."""
    placed = [
        PlacedThought(Place(*(t[2] if len(t) > 2 else ("text", 0))), t[0], t[1]) for t in thoughts
    ]
    request = CHAT.read(b'{"messages":[' + message.encode() + b"]}")
    made = CHAT.patch(request, [Revision(turn=0, thoughts=tuple(placed))], fields)
    assert made.startswith(b'{"messages":[')
    assert made.endswith(b"]}")
    return made[len(b'{"messages":[') : -2].decode()


# --- by example --------------------------------------------------------------------------------


@pytest.mark.parametrize("carrier", MEMBERS)
def test_a_member_is_added_with_its_bytes(carrier):
    raw = (
        '"caf\\u00e9 \\/ \\ud83d"'
        if carrier is not Carrier.REASONING_DETAILS
        else '[ {"a": 1.10} ]'
    )
    assert one('{"role":"assistant", "content":"a" }', (carrier, raw)) == (
        '{"role":"assistant", "content":"a" ,"' + carrier + '":' + raw + "}"
    )


def test_a_member_is_replaced_where_it_stands():
    message = '{"role": "assistant", "reasoning_content": "cut", "content": "a"}'
    assert one(message, (Carrier.REASONING_CONTENT, '"whole"')) == (
        '{"role": "assistant", "reasoning_content": "whole", "content": "a"}'
    )


def test_other_thoughts_are_removed():
    message = (
        '{"reasoning":"x","role":"assistant","reasoning_details":[], "reasoning_content":null}'
    )
    assert one(message, (Carrier.REASONING_CONTENT, '"r"')) == (
        '{"role":"assistant", "reasoning_content":"r"}'
    )
    assert one(message) == '{"role":"assistant"}'


def test_an_equal_thought_keeps_its_bytes():
    message = (
        '{"role":"assistant","reasoning_content":"caf\\u00e9","reasoning_details":[{"b":1, "a":2}]}'
    )
    wanted = [(Carrier.REASONING_CONTENT, '"café"'), (Carrier.REASONING_DETAILS, '[{"a":2,"b":1}]')]
    assert one(message, *wanted) == message


def test_a_number_is_not_a_boolean():
    message = '{"role":"assistant","reasoning_details":[{"index":false}]}'
    assert '[{"index":0}]' in one(message, (Carrier.REASONING_DETAILS, '[{"index":0}]'))


@pytest.mark.parametrize(
    ("content", "made"),
    [
        (
            '"a\\u00e9"',
            '"<think>t</think>\\n\\na\\u00e9"',
        ),  # what the client wrote stays as it wrote it
        ('"\\n\\n a"', '"<think>t</think>\\n\\na"'),
        ('"<think>x</think>a"', '"<think>t</think>\\n\\na"'),
        ('"<think>t</think>\\n\\na"', '"<think>t</think>\\n\\na"'),
        ('"<think>t<\\/think>\\n\\na"', '"<think>t<\\/think>\\n\\na"'),
        ('""', '"<think>t</think>\\n\\n"'),
        ("null", '"<think>t</think>\\n\\n"'),
        ("5", "5"),
        ('{"odd":1}', '{"odd":1}'),
        ("[]", '[{"type":"text","text":"<think>t</think>\\n\\n"}]'),
        (
            '[{"text": "a", "type":"text", "x":1.10}]',
            '[{"text": "<think>t</think>\\n\\na", "type":"text", "x":1.10}]',
        ),
        ('["a", "b"]', '["<think>t</think>\\n\\na","b"]'),
        (
            '[{"type":"image_url"},{"text":"a"}]',
            '[{"type":"image_url"},{"text":"<think>t</think>\\n\\na"}]',
        ),
    ],
)
def test_a_thought_inside_the_text(content, made):
    message = '{"role":"assistant","content":%s}'
    raw = '"<think>t</think>\\n\\n"'
    assert one(message % content, (Carrier.THINK, raw)) == message % made


def test_a_thought_inside_the_text_is_removed():
    message = '{"role":"assistant","content":%s}'
    assert one(message % '"<think>t</think>\\n\\na\\u00e9"') == message % '"aé"'
    assert (
        one(message % '[{"text":"<think>t</think>a", "x":1}]') == message % '[{"text":"a", "x":1}]'
    )
    assert one(message % '"a <think>b</think>"') == message % '"a <think>b</think>"'


FRONT, BETWEEN = "<think>t</think>\n\n", "\n<think>\n u</think>\n\n"


def inlined(text, kind, nth):
    return Carrier.THINK, json.dumps(text), (kind, nth)


@pytest.mark.parametrize(
    ("content", "made"),
    [
        ("one", None),
        (" one\n", None),
        (f"{FRONT}one{BETWEEN}", None),
        ("<think>\nt\n</think>\n\none\n\n<think>\nu\n</think>", None),  # as pydantic-ai does
        (f"one{BETWEEN}", None),
        (f"{FRONT}one", None),
        ("", FRONT + BETWEEN),
    ],
)
@pytest.mark.parametrize("form", ["%s", "[%s]", '[{"type":"text","text":%s}]'])
def test_thoughts_between_words_and_calls(content, made, form):
    message = '{"role":"assistant","content":%s}'
    wanted = json.dumps(made or f"{FRONT}one{BETWEEN}")
    thoughts = (inlined(FRONT, "text", 0), inlined(BETWEEN, "call", 0))
    assert one(message % (form % json.dumps(content)), *thoughts) == message % (form % wanted)


@pytest.mark.parametrize(
    ("content", "made"),
    [
        (f"<think>x</think>one{BETWEEN}two", f"{FRONT}one{BETWEEN}two"),
        ("one<think>x</think> two", f"{FRONT}one{BETWEEN}two"),
        ("one\n\ntwo", f"{FRONT}{BETWEEN}one\n\ntwo"),  # nobody knows where one of them ended
    ],
)
def test_thoughts_between_words(content, made):
    message = '{"role":"assistant","content":%s}'
    thoughts = (inlined(FRONT, "text", 0), inlined(BETWEEN, "text", 1))
    assert one(message % json.dumps(content), *thoughts) == message % json.dumps(made)


def test_thoughts_between_words_are_removed_with_the_one_in_front():
    message = '{"role":"assistant","content":%s}'
    made = one(message % json.dumps(f"{FRONT}one{BETWEEN}two"))
    assert made == message % json.dumps("one\n\ntwo")


def test_content_that_is_missing():
    assert one('{"role":"assistant"}', (Carrier.THINK, '"<think>t</think>"')) == (
        '{"role":"assistant","content":"<think>t</think>"}'
    )
    assert one('{"role":"assistant"}', (Carrier.CHUNK, CHUNK)) == (
        '{"role":"assistant","content":[' + CHUNK + "]}"
    )


OTHER = '{"type":"thinking","thinking":[{"type":"text","text":"u"}]}'
END, FIRST, SECOND = ("end", 0), ("text", 0), ("text", 1)


@pytest.mark.parametrize(
    ("content", "thoughts", "made"),
    [
        ('"a\\u00e9"', [(CHUNK, FIRST)], [CHUNK, '{"type":"text","text":"a\\u00e9"}']),
        ('"a"', [(CHUNK, END)], ['{"type":"text","text":"a"}', CHUNK]),
        (
            '"a"',
            [(CHUNK, FIRST), (OTHER, ("call", 0))],
            [CHUNK, '{"type":"text","text":"a"}', OTHER],
        ),
        ('""', [(CHUNK, ("call", 0))], [CHUNK]),
        (
            '[{"text":"a"},{"text":"b"}]',
            [(CHUNK, FIRST), (OTHER, SECOND)],
            [CHUNK, '{"text":"a"}', OTHER, '{"text":"b"}'],
        ),
        (
            '[{"text":"a"},{"text":"b"}]',
            [(CHUNK, SECOND), (OTHER, END)],
            ['{"text":"a"}', CHUNK, '{"text":"b"}', OTHER],
        ),
        # the second text was merged into the first: before it, not behind
        ('[{"text":"ab"}]', [(CHUNK, FIRST), (OTHER, SECOND)], [CHUNK, OTHER, '{"text":"ab"}']),
        # an empty text is no text
        ('[{"text":""},{"text":"b"}]', [(CHUNK, FIRST)], ['{"text":""}', CHUNK, '{"text":"b"}']),
        # replaced and removed
        (f'[{OTHER}, {{"text":"a"}}]', [(CHUNK, FIRST)], [CHUNK, '{"text":"a"}']),
        (f'[{{"text":"a"}}, {OTHER}]', [(OTHER, FIRST)], [OTHER, '{"text":"a"}']),
        (f'[{OTHER}, {{"text":"a"}}]', [], ['{"text":"a"}']),
    ],
)
def test_chunks_stand_before_the_text_they_led_to(content, thoughts, made):
    message = '{"role":"assistant","content":%s}'
    wanted = [(Carrier.CHUNK, raw, place) for raw, place in thoughts]
    assert one(message % content, *wanted) == message % f"[{','.join(made)}]"


def test_equal_chunks_keep_their_bytes():
    message = '{"role":"assistant","content":[ ' + CHUNK + ' , {"text":"a"} ]}'
    again = json.dumps(json.loads(CHUNK))
    assert one(message, (Carrier.CHUNK, again)) == message


def test_what_rides_on_a_call():
    extra = '{"google": {"thought_signature":"c2ln\\u003d"}}'
    plain = '{"id":"1","function":{"name":"f","arguments":"{}"}}'
    signed = plain[:-1] + ',"extra_content":' + extra + "}"
    odd = '{"id":"2", "function":5}'
    message = '{"role":"assistant","tool_calls":[%s]}'
    riding = (Carrier.EXTRA_CONTENT, extra, ("call", 0))
    assert one(message % f"{plain}, {plain}", riding) == message % f"{signed}, {plain}"
    assert one(message % f"{odd},{plain}", riding) == message % f"{odd},{signed}"
    assert one(message % f"{plain},{signed}", riding) == message % f"{signed},{plain}"
    assert one(message % signed, riding) == message % signed
    assert one(message % signed) == message % plain
    assert one(message % plain, (Carrier.EXTRA_CONTENT, extra, ("end", 0))) == message % plain
    assert one(message % "null,5", riding) == message % "null,5"
    assert (
        one('{"role":"assistant","tool_calls":null}', riding)
        == '{"role":"assistant","tool_calls":null}'
    )


def test_fields_of_the_body():
    request = CHAT.read(b'{ "thinking": {"type":"disabled"}, "messages": [ ], "x": 1.10 }')
    made = CHAT.patch(request, [], {"thinking": None, "x": b"[2]", "new": b"null", "gone": None})
    assert made == b'{ "messages": [ ], "x": [2] ,"new":null}'


def test_a_turn_without_an_output_cannot_be_revised():
    request = CHAT.read(b'{"messages": [{"role":"assistant"}, {"role":"user","content":"q"}]}')
    revision = Revision(
        turn=1, thoughts=(PlacedThought(Place("end", 0), Carrier.REASONING, '"r"'),)
    )
    assert CHAT.patch(request, [revision]) is request.body


def test_a_message_with_a_doubtful_key_is_not_touched():
    request = CHAT.read(b'{"messages": [{"role":"assistant","content":"a","content":"b"}]}')
    with pytest.raises(Unreadable, match="duplicate"):
        CHAT.patch(request, [Revision(turn=0)])
    assert CHAT.patch(request, []) is request.body


# --- laws --------------------------------------------------------------------------------------


def test_work_is_linear_in_the_size_of_a_body(monkeypatch):
    """50 MB, 2,000 messages, a thought put back into each second one."""
    pairs = [
        {"role": "user", "content": "q" * 25_000},
        {"role": "assistant", "content": "a" * 25_000},
    ]
    request = CHAT.read(body(pairs * 1_000))
    read = []

    def counted(decode, data, was=splice._read):
        read.append(len(data))
        return was(decode, data)

    monkeypatch.setattr(splice, "_read", counted)
    thought = PlacedThought(Place("text", 0), Carrier.REASONING_CONTENT, '"t"')
    made = CHAT.patch(request, [Revision(turn=n, thoughts=(thought,)) for n in range(1_000)])
    assert len(made) == len(request.body) + 1_000 * len(',"reasoning_content":"t"')
    assert sum(read) < 4 * len(request.body)
