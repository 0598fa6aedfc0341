import pytest

from thoughtline.dialects import values

JUNK = (None, True, 1, 1.5, "text", [1], {"a": 1})


@pytest.mark.parametrize(
    ("read", "kept", "otherwise"),
    [
        (values.string, ("text",), ""),
        (values.mapping, ({"a": 1},), {}),
        (values.sequence, ([1],), []),
        (values.flag, (True,), None),
        (values.whole_number, (1,), None),
        (values.number, (1, 1.5), None),
    ],
)
def test_what_is_of_another_type_counts_as_not_given(read, kept, otherwise):
    for junk in JUNK:
        fits = any(type(junk) is type(one) and junk == one for one in kept)
        assert read(junk) == (junk if fits else otherwise)


def test_one_string_is_a_list_of_one():
    assert values.strings("a") == ("a",)
    assert values.strings(["a", 1, "b"]) == ("a", "b")
    assert values.strings(None) == ()
