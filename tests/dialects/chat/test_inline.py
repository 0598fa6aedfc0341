import re

from hypothesis import example, given
from hypothesis import strategies as st

from thoughtline.dialects.chat.inline import InlineSplitter, inner, join, pieces, plain, split

PIECES = st.lists(
    st.sampled_from(
        [
            "<think>",
            "</think>",
            "<th",
            "ink>",
            "</",
            "think",
            ">",
            "<",
            " ",
            "\n",
            "a",
            "b c",
            "\u3000",
        ]
    ),
    max_size=12,
)


def stream(pieces):
    reader = InlineSplitter()
    told = [reader.feed(piece) for piece in pieces]
    told.append(reader.finish())
    return "".join(t for t, _ in told), "".join(a for _, a in told), told


@given(PIECES)
@example(["<think>", "a"])
@example(["<think>a</think> ", "<think>", "b</think>\n", "<", "c"])
@example(["  ", "<thi", "s is not one"])
@example(["<"])
@example(["<think>a</thin"])
@example([" ", "\n"])
def test_in_pieces_as_in_one(pieces):
    text = "".join(pieces)
    thought, rest = split(text)
    thinking, answer, _ = stream(pieces)
    assert answer == rest or (not rest and not answer.strip())
    assert thinking == "".join(re.findall(r"\s*<think>(.*?)(?:</think>|\Z)", thought, re.DOTALL))
    assert stream(list(text))[:2] == (thinking, answer)
    assert thought + rest == text


def test_once_the_answer_began_everything_is_answer():
    reader = InlineSplitter()
    assert not reader.decided
    assert reader.feed("a <think>b</think>") == ("", "a <think>b</think>")
    assert reader.decided
    assert reader.feed("<think>") == ("", "<think>")


def test_a_tag_in_pieces():
    reader = InlineSplitter()
    assert reader.feed("\n<th") == ("", "")
    assert reader.feed("ink>so") == ("so", "")
    assert reader.feed(" a <b> </th") == (" a <b> ", "")
    assert reader.feed("ink") == ("", "")
    assert reader.feed(">\n") == ("", "")
    assert reader.feed("\n yes") == ("", "yes")
    assert reader.feed(" no") == ("", " no")
    assert reader.finish() == ("", "")


def test_split():
    assert split("<think>a</think>\n\nb") == ("<think>a</think>\n\n", "b")
    assert split(" \n<think></think>b ") == (" \n<think></think>", "b ")
    assert split("<think>a") == ("<think>a", "")
    assert split("a<think>b</think>") == ("", "a<think>b</think>")
    assert split("") == ("", "")
    assert split("<think>a</think> <think>b</think>\nc") == (
        "<think>a</think> <think>b</think>\n",
        "c",
    )
    assert split("<think>a</think> <think>b") == ("<think>a</think> <think>b", "")
    assert inner("<think>a</think> <think>b</think>") == "a\n\nb"
    assert inner(" <think>\n a \n</think>\n\n") == "a"
    assert inner("<think>cut") == "cut"


@given(
    st.text(max_size=10).filter(lambda t: "</think>" not in t),
    st.text(" \n", max_size=3),
    st.text(max_size=10),
)
def test_join_is_what_split_takes_apart(thought, gap, rest):
    inline = f"<think>{thought}</think>{gap}"
    assert split(join(inline, rest)) == (inline, rest.lstrip()) or not rest.strip()
    assert join("", rest) == rest


@given(PIECES)
@example(["<think>", "a</think> ", "b", "\n", "<think>", "c</think>\n", "d"])
def test_pieces_are_the_text(some):
    text = "".join(some)
    for anywhere in (False, True):
        found = pieces(text, anywhere=anywhere)
        assert "".join(thought + said for thought, said in found) == text
        assert all(thought and "<think>" in thought for thought, _ in found[1:])
        for thought, said in found:
            assert not thought or (said == said.lstrip() and "<think>" in thought)
    assert pieces(text)[0][0] == split(text)[0]


def test_thoughts_between_the_words():
    front, between = "<think>a</think>\n\n", "\n  <think>b</think>\n\n"
    assert pieces(f"{front}one{between}two") == [(front, "one"), (between, "two")]
    assert pieces(f"{front}one{between}") == [(front, "one"), (between, "")]
    for words in ("one\n<think>b", "one <think>b</think> two", "one\n`<think>`b</think> two"):
        assert pieces(front + words) == [(front, words)], "a word, not a thought"
    assert pieces(f"one{between}two") == [("", f"one{between}two")], "none in front"
    assert pieces("one<think>b</think>two", anywhere=True) == [
        ("", "one"),
        ("<think>b</think>", "two"),
    ]


def test_a_hundred_thousand_thoughts_between_words():
    text = "<think>a</think>" + "b\n<think>a</think>" * 100_000
    assert len(pieces(text)) == len(pieces(text, anywhere=True)) == 100_001
    assert pieces("<think>a</think>" + "b\n<think>" * 100_000)[0][0] == "<think>a</think>"


def test_a_megabyte_of_whitespace_is_held_in_pieces():
    reader = InlineSplitter()
    for _ in range(20_000):
        assert reader.feed(" " * 50) == ("", "")
    assert len(reader._white) == 20_000
    assert len(reader.feed("x")[1]) == 1_000_001


def test_a_hundred_thousand_thoughts_in_one_piece():
    text = "<think>a</think>" * 100_000 + "b"
    assert InlineSplitter().feed(text) == ("a" * 100_000, "b")
    assert split(text)[1] == "b"


def test_a_plain_text_is_one_that_can_have_no_thought_in_front():
    for code in range(0x110000):
        first = chr(code)
        assert plain(first + "<think>a</think>") == (first != "<" and not first.isspace())
    assert plain("")
