import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.json_spellings import RANDOMS, VALUES, spell
from thoughtline.dialects import splice
from thoughtline.dialects.thoughts import (
    SIGNATURE_BYPASSES,
    convert,
    joined_part,
    make_thought,
    same_json,
    same_spelling,
    seal_digests,
)
from thoughtline.log import keys
from thoughtline.log.canonical import canonical_json
from thoughtline.log.parts import Carrier, Origin, Thought, Timing

CARRIERS = st.sampled_from(Carrier)


@pytest.mark.parametrize(
    ("carrier", "value", "text", "id", "sealed"),
    [
        (Carrier.REASONING_CONTENT, "hm", "hm", "", []),
        (Carrier.REASONING_CONTENT, "", "", "", []),
        (Carrier.REASONING_OPAQUE, "b3Bh", "", "", ["b3Bh"]),
        (Carrier.REASONING_OPAQUE, "", "", "", []),
        (Carrier.SIGNATURE, "c2ln", "", "", ["c2ln"]),
        (
            Carrier.REASONING_DETAILS,
            [
                {"type": "reasoning.summary", "summary": "s"},
                {"type": "reasoning.text", "text": "t", "signature": "sig"},
                {"type": "reasoning.encrypted", "data": "gAAA"},
            ],
            "s\n\nt",
            "",
            ["sig", "gAAA"],
        ),
        (
            Carrier.ITEM,
            {
                "type": "reasoning",
                "id": "rs_1",
                "summary": [{"type": "summary_text", "text": "a"}],
                "encrypted_content": "gAAA",
            },
            "a",
            "rs_1",
            ["gAAA"],
        ),
        (
            Carrier.BLOCK,
            {"type": "thinking", "thinking": "a", "signature": "Eq"},
            "a",
            "",
            ["Eq"],
        ),
        (Carrier.BLOCK, {"type": "thinking", "thinking": "", "signature": "Eq"}, "", "", ["Eq"]),
        (Carrier.BLOCK, {"type": "redacted_thinking", "data": "Em"}, "", "", ["Em"]),
        (
            Carrier.CHUNK,
            {"type": "thinking", "thinking": [{"type": "text", "text": "a"}]},
            "a",
            "",
            [],
        ),
        (
            Carrier.EXTRA_CONTENT,
            {"google": {"thought_signature": "c2ln"}},
            "",
            "",
            ["c2ln"],
        ),
        (
            Carrier.PART,
            {"text": "a", "thought": True, "thoughtSignature": "c2k="},
            "a",
            "",
            ["c2k="],
        ),
    ],
)
def test_what_is_in_a_carrier(carrier, value, text, id, sealed):
    made = make_thought(carrier, value)
    assert (made.text, made.id) == (text, id)
    assert made.seals == tuple(keys.string_digest(opaque) for opaque in sealed)
    assert made.sealed is bool(sealed)
    assert json.loads(made.raw) == value


@pytest.mark.parametrize("bypass", sorted(SIGNATURE_BYPASSES))
def test_a_bypass_is_no_seal(bypass):
    assert not make_thought(Carrier.SIGNATURE, bypass).sealed
    assert not make_thought(Carrier.EXTRA_CONTENT, {"google": {"thought_signature": bypass}}).sealed


@given(CARRIERS, VALUES, RANDOMS)
def test_any_value_makes_a_thought_with_the_text_it_was_given(carrier, value, random):
    raw = spell(value, random)
    origin, timing = Origin(model="m"), Timing(sent=1)
    made = make_thought(carrier, value, raw, origin=origin, timing=timing)
    assert made.raw == raw
    assert (made.origin, made.timing) == (origin, timing)
    assert made.seals == make_thought(carrier, splice.loads(raw.encode())).seals
    assert canonical_json(
        splice.loads(make_thought(carrier, value).raw.encode())
    ) == canonical_json(splice.loads(raw.encode()))


@given(VALUES, RANDOMS, RANDOMS)
def test_same_is_blind_to_spelling(value, one, other):
    assert same_json(spell(value, one), spell(value, other))


@pytest.mark.parametrize(
    ("one", "other"),
    [("1", "true"), ("1", "1.0"), ("0", "false"), ('"a"', '"b"'), ("[]", "{}"), ('""', "null")],
)
def test_same_is_not_fooled(one, other):
    assert not same_json(one, other)


@pytest.mark.parametrize(
    ("one", "other", "equal"),
    [
        ('{"a":[1.10,"é"]}', '{ "a" : [ 1.10 , "\\u00e9" ] }', True),
        ('{"a":1,"b":2}', '{"b":2,"a":1}', False),
        ("100.0", "1E+2", False),
        ("5", '"5"', False),
        ("[]", "{}", False),
        ("[" * 100_000, "{" * 100_000, False),
    ],
)
def test_verbatim_is_blind_to_spaces_and_escapes_only(one, other, equal):
    assert same_spelling(one, other) is equal


PLAIN = Thought(carrier=Carrier.REASONING_CONTENT, raw='"caf\\u00e9"', text="café")


@pytest.mark.parametrize("carrier", Carrier)
def test_plain_text_is_the_same_text_under_any_key(carrier):
    cast = convert(PLAIN, carrier)
    if carrier in {Carrier.REASONING, Carrier.REASONING_TEXT, Carrier.REASONING_CONTENT}:
        assert cast == PLAIN.raw
    elif cast is not None:
        value = json.loads(cast)
        assert "café" in (value if isinstance(value, str) else make_thought(carrier, value).text)


@pytest.mark.parametrize("carrier", Carrier)
def test_a_sealed_thought_has_one_shape(carrier):
    sealed = make_thought(Carrier.BLOCK, {"type": "thinking", "thinking": "a", "signature": "s"})
    assert convert(sealed, carrier) == (sealed.raw if carrier is Carrier.BLOCK else None)


def test_a_bypass_and_a_seal_together():
    values = [{"signature": next(iter(SIGNATURE_BYPASSES))}, {"signature": "real"}]
    assert seal_digests(Carrier.REASONING_DETAILS, values) == (keys.string_digest("real"),)


def test_pieces_of_a_told_thought_are_joined():
    first, second = '{"text":"a ","thought":true}', '{"thought":true,"text":"b"}'
    assert json.loads(joined_part(first, second)) == {"text": "a b", "thought": True}
    signed = '{"text":"b","thought":true,"thoughtSignature":"s"}'
    joined = json.loads(joined_part(first, signed))
    assert joined == {"text": "a b", "thought": True, "thoughtSignature": "s"}
    assert joined_part(signed, second) is None  # a signed piece is the last one
    assert joined_part('{"text":"a"}', second) is None
    assert joined_part(first, '{"text":5,"thought":true}') is None
    assert joined_part('"x"', second) is None
