import json
from random import Random

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from support.json_spellings import KEYS, OBJECTS, RANDOMS, VALUES, spell
from thoughtline.dialects import splice
from thoughtline.dialects.limits import TooComplex
from thoughtline.dialects.splice import Span
from thoughtline.errors import Unreadable

GAP = st.sampled_from(["", " ", "\n", "\t \r\n"])


def same(one, other):
    """Equal as JSON, so that 1 and 1.0 and true are three things."""
    return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)


def value_at(data, span):
    return splice.loads(data[span.value : span.end])


# --- reading -----------------------------------------------------------------------------------


@given(VALUES, RANDOMS)
def test_any_spelling_reads_as_its_value(value, random):
    assert same(splice.loads(spell(value, random).encode()), value)


@given(VALUES)
def test_what_is_written_reads_back(value):
    assert same(splice.loads(splice.dumps(value)), value)


@given(OBJECTS, RANDOMS, GAP, GAP)
def test_members_stand_where_they_are_said_to(document, random, before, behind):
    data = (before + spell(document, random) + behind).encode()
    spans = splice.members(data)
    assert list(spans) == list(document)
    position = 0
    for key, span in spans.items():
        assert position <= span.start < span.value < span.end
        position = span.end
        head = data[span.start : span.value].rstrip()
        assert head.endswith(b":")
        assert splice.loads(head[:-1]) == key
        assert same(value_at(data, span), document[key])


@given(st.lists(VALUES, max_size=6), RANDOMS, st.binary(max_size=5), st.binary(max_size=5))
def test_elements_stand_where_they_are_said_to(values, random, before, behind):
    text = spell(values, random).encode()
    data = before + text + behind
    spans = splice.elements(data, Span(0, len(before), len(before) + len(text)))
    assert same([value_at(data, span) for span in spans], values)
    assert all(span.start == span.value for span in spans)


@given(st.dictionaries(KEYS, OBJECTS, min_size=1, max_size=3), RANDOMS)
def test_members_of_members(document, random):
    data = spell(document, random).encode()
    for key, span in splice.members(data).items():
        inner = splice.members(data, span)
        assert same({k: value_at(data, s) for k, s in inner.items()}, document[key])


@given(OBJECTS, st.data(), RANDOMS)
def test_a_duplicate_key_is_unreadable(document, data, random):
    assume(document)
    members = [*document.items()]
    twice = data.draw(st.sampled_from(members))
    members.insert(data.draw(st.integers(0, len(members))), (twice[0], data.draw(VALUES)))
    text = "{" + ",".join(spell(k, random) + ":" + spell(v, random) for k, v in members) + "}"
    assert same(splice.loads(text.encode()), json.loads(text))
    with pytest.raises(Unreadable, match="duplicate"):
        splice.members(text.encode())


@pytest.mark.parametrize(
    "text",
    [
        # The last value of a key stands where the parser expects the first: lengths fit by chance.
        '{"a":1,"a":2}',
        '{"a":"xx","b":1,"a":"yy"}',
        '{"a":[1,2],"b":{"a":[3,4]},"a":[5,6]}',
        '{"a":1,"b":22,"a":{"b":2}}',
        '{"a":1,"b":22,"a":{       "b":2}}',
        '{"a":"{","\\u0061":"}"}',
    ],
)
def test_duplicates_that_fit(text):
    with pytest.raises(Unreadable, match="duplicate"):
        splice.members(text.encode())


@given(VALUES, RANDOMS, st.data())
def test_damage_is_unreadable_or_still_json(value, random, data):
    text = bytearray(spell(value, random).encode())
    assume(text)
    for _ in range(data.draw(st.integers(1, 3))):
        text[data.draw(st.integers(0, len(text) - 1))] = data.draw(st.integers(0, 255))
    damaged = bytes(text)
    whole = Span(0, 0, len(damaged))
    for read in (splice.loads, splice.members, lambda d: splice.elements(d, whole)):
        try:
            read(damaged)
        except Unreadable:
            continue
        json.loads(damaged.decode(errors="replace"))  # what is inside a string is not looked at


@given(
    st.binary(max_size=60) | st.text(alphabet='{}[]":,\\u\n d8cA01', max_size=40).map(str.encode)
)
@example(b"")
@example(b'{"a":1')
@example(b"\xef\xbb\xbf{}")
@example(b'{"\\ud800":1,"\\ud801":2}')
def test_garbage_is_unreadable_and_nothing_else(data):
    whole = Span(0, 0, len(data))
    for read in (splice.loads, splice.members, lambda d: splice.elements(d, whole)):
        try:
            read(data)
        except Unreadable as error:
            assert str(error)


@pytest.mark.parametrize("text", ["null", "[]", '"x"', "1", " true "])
def test_only_objects_have_members(text):
    with pytest.raises(Unreadable):
        splice.members(text.encode())


@pytest.mark.parametrize("text", ["null", "{}", '"x"', "1"])
def test_only_arrays_have_elements(text):
    with pytest.raises(Unreadable):
        splice.elements(text.encode(), Span(0, 0, len(text)))


@pytest.mark.parametrize("depth", [500, 5_000, 200_000])
@pytest.mark.parametrize("pair", ["[]", '{"a":}'])
def test_deep_nesting_never_crashes(depth, pair):
    opening, closing = pair[:-1], pair[-1]
    inner = (opening * depth + "1" + closing * depth).encode()
    data = b'{"deep":' + inner + b',"flat":[1]}'
    for read in (splice.loads, splice.members):
        try:
            read(data)
        except TooComplex:
            assert depth == 200_000
        except Unreadable as error:
            assert "recursion" in str(error)


def test_too_deep_to_write():
    value = []
    for _ in range(100_000):
        value = [value]
    with pytest.raises(Unreadable):
        splice.dumps(value)


@pytest.mark.parametrize("value", ["\ud83d", {"\ude00": 1}, {1, object()}, object()])
def test_not_writable(value):
    with pytest.raises(Unreadable):
        splice.dumps(value)


def test_long_numbers_are_kept():
    assert splice.dumps(splice.loads(b"[123456789012345678901234567890]")) == (
        b"[123456789012345678901234567890]"
    )


# --- half an emoji -----------------------------------------------------------------------------

HALVES = st.text(st.sampled_from('\ud83d\ude00\udbff\udc00ab\\"\n'), max_size=8)


@given(HALVES, RANDOMS)
def test_lone_surrogates_read_as_replacement_characters(text, random):
    paired = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    assert splice.loads(spell(text, random).encode()) == paired


@given(st.dictionaries(st.text(max_size=3), HALVES, max_size=4), RANDOMS)
def test_lone_surrogates_keep_their_bytes(document, random):
    data = spell(document, random).encode()
    spans = splice.members(data)
    assert list(spans) == list(document)
    for key, span in spans.items():
        assert json.loads(data[span.value : span.end]) == document[key].encode(
            "utf-16-le", "surrogatepass"
        ).decode("utf-16-le", "surrogatepass")
    assert splice.mask(data) == data or len(splice.mask(data)) == len(data)


def test_an_escaped_backslash_is_no_escape():
    assert splice.mask(rb'"\\ud83d \ud83d \ud83d\ude00 \uD83D"') == (
        rb'"\\ud83d \ufffd \ud83d\ude00 \ufffd"'
    )


# --- editing -----------------------------------------------------------------------------------


CHANGES = st.dictionaries(KEYS, st.none() | VALUES.map(lambda value: (value,)), max_size=4)


@given(
    OBJECTS, CHANGES, RANDOMS, st.tuples(st.binary(max_size=4), st.binary(max_size=4)), st.data()
)
@example({}, {"a": (1,), "b": (2,)}, Random(0), (b"", b""), None)
@example({"a": 1}, {"a": None, "b": (2,), "c": (3,)}, Random(0), (b"", b""), None)
@example({"a": 1, "b": 2}, {"a": None, "b": None}, Random(0), (b"", b""), None)
def test_revise_changes_what_it_is_told_and_no_byte_more(document, changes, random, around, data):
    before, behind = around
    if data is not None and document:  # changes should hit members that are there
        for key in data.draw(st.lists(st.sampled_from([*document]), max_size=4)):
            changes[key] = data.draw(st.none() | VALUES.map(lambda value: (value,)))
    text = spell(document, random).encode()
    body = before + text + behind
    span = Span(0, len(before), len(before) + len(text))
    raws = {k: None if v is None else spell(v[0], random).encode() for k, v in changes.items()}
    has = splice.members(body, span)

    made = splice.apply(body, splice.revise(span, has, raws))

    assert made.startswith(before)
    assert made.endswith(behind)
    expected = {k: v for k, v in document.items() if k not in changes or changes[k] is not None}
    expected |= {k: v[0] for k, v in changes.items() if v is not None}
    now = Span(0, len(before), len(made) - len(behind))
    spans = splice.members(made, now)
    assert list(spans) == list(expected)
    for key, place in spans.items():
        assert same(value_at(made, place), expected[key])
        if key not in changes:  # untouched: key and value, to the byte
            assert made[place.start : place.end] == body[has[key].start : has[key].end]
        elif key in has:
            assert made[place.value : place.end] == raws[key]


@given(OBJECTS, KEYS, VALUES, RANDOMS)
def test_put_sets_one_member(document, key, value, random):
    body = spell(document, random).encode()
    span = Span(0, 0, len(body))
    made = splice.apply(body, [splice.put(span, key, splice.dumps(value), splice.members(body))])
    assert same(splice.loads(made), document | {key: value})


@given(st.lists(VALUES, max_size=6), RANDOMS, st.data())
def test_cut_removes_elements_with_their_commas(values, random, data):
    body = spell(values, random).encode()
    spans = splice.elements(body, Span(0, 0, len(body)))
    gone = data.draw(st.sets(st.sampled_from(range(len(values))))) if values else set()
    made = splice.apply(body, splice.cut([spans[i] for i in gone], spans))
    kept = [i for i in range(len(values)) if i not in gone]
    after = splice.elements(made, Span(0, 0, len(made)))
    assert [made[s.value : s.end] for s in after] == [
        body[spans[i].value : spans[i].end] for i in kept
    ]


def test_no_edits_give_back_the_same_object():
    body = b'{"a": 1}'
    assert splice.apply(body, []) is body
    assert (
        splice.apply(body, splice.revise(Span(0, 0, 8), splice.members(body), {"b": None})) is body
    )


def test_edits_must_not_overlap():
    with pytest.raises(ValueError, match="overlap"):
        splice.apply(b"abcdef", [(0, 3, b""), (2, 4, b"")])


def test_insertions_at_one_place_keep_their_order():
    assert splice.apply(b"ad", [(1, 1, b"b"), (1, 1, b"c")]) == b"abcd"


# --- some members of an object -----------------------------------------------------------------

NAMES = ["model", "messages", "tools", "other", "é"]
NOTHING = [None, False, 0, -0.0, "", [], {}]
some = splice.some_members(("model", "messages"), slices=("tools", "é"))


@given(
    st.dictionaries(st.sampled_from(NAMES) | KEYS, VALUES | st.sampled_from(NOTHING), max_size=6),
    RANDOMS,
)
def test_some_members_are_read_and_some_given_as_slices(document, random):
    found = some(spell(document, random).encode())
    assert found.keys() == document.keys() & {"model", "messages", "tools", "é"}
    for name in found.keys() & {"model", "messages"}:
        assert same(found[name], document[name])
    for name in ("tools", "é"):
        assert splice.holds_anything(found.get(name)) == bool(document.get(name))
        if name in found:
            assert same(splice.loads_slice(found[name]), document[name])


@pytest.mark.parametrize(
    "given", ["0", "-0", "0.00", "0e5", "[ \n]", "{\t}", '""', "null", "false"]
)
def test_a_slice_may_hold_nothing(given):
    found = some(b'{"tools": %b }' % given.encode())
    assert not splice.holds_anything(found["tools"])
    assert not splice.loads(given.encode())


def read_some(data):
    found = some(data)
    if isinstance(found, dict) and "tools" in found:
        found["tools"] = splice.holds_anything(found["tools"])
    return found


def read_all(data):
    found = splice.loads(data)
    if isinstance(found, dict) and "tools" in found:
        found["tools"] = bool(found["tools"])
    return found


@pytest.mark.parametrize("where", ["model", "tools"])
@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"[1]",
        b"5",
        b"\xef\xbb\xbf{}",
        b'{"WHERE": 1',
        b'{"WHERE": "\xff"}',
        b'{"WHERE": ["\xff"]}',
        b'{"WHERE": "\\ud83d"}',
        b'{"WHERE": "\\ud83dx", "messages": ["\\udc00"]}',
        b'{"\\ud83d": 1}',
        b'{"WHERE": 1, "WHERE": 0}',
        b'{"WHERE": ' + b"[" * 5_000 + b"]" * 5_000 + b"}",
        b'{"WHERE": ' + b"[" * 200 + b"]" * 200 + b"}",
    ],
)
def test_what_is_odd_is_read_or_refused_as_ever(text, where):
    data = text.replace(b"WHERE", where.encode())
    try:
        wanted = read_all(data)
    except Unreadable:
        with pytest.raises(Unreadable):
            read_some(data)
    else:
        found = read_some(data)
        if isinstance(wanted, dict):
            wanted = {name: wanted[name] for name in NAMES[:3] if name in wanted}
        assert same(found, wanted)


# --- size --------------------------------------------------------------------------------------


def test_work_is_linear_in_the_size_of_a_body(monkeypatch):
    """50 MB, 2,000 messages, each changed: every byte is looked at a few times, not 2,000 times."""
    text = "x" * 25_000
    message = f'{{"role": "assistant", "content": "{text}"}}'
    body = ('{"messages": [' + ", ".join([message] * 2_000) + '], "model": "m"}').encode()
    read = []
    monkeypatch.setattr(
        splice,
        "_read",
        lambda decode, data, was=splice._read: (read.append(len(data)), was(decode, data))[1],
    )
    messages = splice.elements(body, splice.members(body)["messages"])
    edits = []
    for span in messages:
        edits += splice.revise(span, splice.members(body, span), {"reasoning_content": b'"t"'})
    made = splice.apply(body, edits)
    assert len(made) == len(body) + 2_000 * len(',"reasoning_content":"t"')
    assert sum(read) < 4 * len(body)


# -- top-level members ---------------------------------------------------------------------------


def with_members(body, fields):
    return splice.apply(body, splice.set_members(body, splice.members(body), fields))


def test_members_are_set_replaced_and_removed():
    body = b' {"a": 1, "b": [2] }\n'
    assert with_members(body, {"b": b'"x"', "a": None, "c": b"true"}) == b' {"b": "x" ,"c":true}\n'
    assert with_members(body, {}) is body
    assert with_members(body, {"z": None}) is body
    assert with_members(b"{}", {"a": b"1", "b": b"2"}) == b'{"a":1,"b":2}'
    assert with_members(b'{"a":1}', {"a": None, "b": b"2"}) == b'{"b":2}'


@given(OBJECTS, st.dictionaries(KEYS, st.none() | VALUES.map(lambda v: (v,)), max_size=3), RANDOMS)
def test_other_members_stay(document, changes, random):
    raws = {k: None if v is None else spell(v[0], random).encode() for k, v in changes.items()}
    made = with_members(spell(document, random).encode(), raws)
    kept = {k: v for k, v in document.items() if k not in changes}
    wanted = kept | {k: v[0] for k, v in changes.items() if v is not None}
    assert json.dumps(splice.loads(made), sort_keys=True) == json.dumps(wanted, sort_keys=True)
