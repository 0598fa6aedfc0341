"""Cutting bytes in pieces, to feed them to something that must not care."""

from itertools import pairwise

from hypothesis import strategies as st


def pieces(data, cuts):
    """The data cut at these places."""
    edges = [0, *sorted(cut % (len(data) + 1) for cut in cuts), len(data)]
    return [data[begin:end] for begin, end in pairwise(edges)]


CUTS = st.lists(st.integers(0, 100_000), max_size=12)
"""Where to cut; any number fits any data."""


def bytewise(data):
    """One byte at a time."""
    return [data[index : index + 1] for index in range(len(data))]


@st.composite
def splits(draw, data):
    """The data in a few pieces, some of them empty."""
    return pieces(data, draw(CUTS))
