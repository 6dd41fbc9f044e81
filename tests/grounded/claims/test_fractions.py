"""Fractions in words are percentages; ordinals, halves of hours and quarters of a year are not."""

import pytest

from answerkey.grounded.claims.fractions import find_fractions


def fractions(text):
    return [(text[start:end], round(value, 1), bound) for start, end, value, _, bound in find_fractions(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Two thirds of the rent is paid.", [("Two thirds", 66.7, "")]),
        ("Gas accounts for more than half.", [("half", 50.0, "above")]),
        ("That is a fifth of the fleet.", [("a fifth", 20.0, "")]),
        ("It costs one quarter more.", [("one quarter", 25.0, "")]),
        ("Nearly a third of them pay late.", [("a third", 33.3, "about")]),
        ("One in four units is empty.", [("One in four", 25.0, "about")]),
    ],
)
def test_shares_of_a_whole(text, expected):
    assert fractions(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "A third party paid.",
        "It takes half an hour.",
        "In the first half of 2024 sales rose.",
        "Over the last three quarters it fell.",
        "a quarter of a million dollars",
        "The rating is 4.1 out of 5.",
    ],
)
def test_what_is_no_share(text):
    assert fractions(text) == []
