import json

from hypothesis import given
from hypothesis import strategies as st

from spellings import KEYS, OBJECTS, RANDOMS, VALUES, spell
from thoughtline import splice
from thoughtline.dialects.fields import edits


def patched(body, fields):
    return splice.apply(body, edits(body, splice.members(body), fields))


def test_members_are_set_replaced_and_removed():
    body = b' {"a": 1, "b": [2] }\n'
    assert patched(body, {"b": b'"x"', "a": None, "c": b"true"}) == b' {"b": "x" ,"c":true}\n'
    assert patched(body, {}) is body
    assert patched(body, {"z": None}) is body
    assert patched(b"{}", {"a": b"1", "b": b"2"}) == b'{"a":1,"b":2}'
    assert patched(b'{"a":1}', {"a": None, "b": b"2"}) == b'{"b":2}'


@given(OBJECTS, st.dictionaries(KEYS, st.none() | VALUES.map(lambda v: (v,)), max_size=3), RANDOMS)
def test_the_rest_stays(document, changes, random):
    raws = {k: None if v is None else spell(v[0], random).encode() for k, v in changes.items()}
    made = patched(spell(document, random).encode(), raws)
    kept = {k: v for k, v in document.items() if k not in changes}
    wanted = kept | {k: v[0] for k, v in changes.items() if v is not None}
    assert json.dumps(splice.loads(made), sort_keys=True) == json.dumps(wanted, sort_keys=True)
