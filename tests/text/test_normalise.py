"""Words in the form in which equal words are equal."""

import pytest

from answerkey.text.normalise import (
    folded_text,
    folded_words,
    stem,
)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("900 S 9th St, Montrose, CO", ["900", "s", "9", "st", "montrose", "co"]),
        ("The Ninth of June", ["9", "of", "june"]),
        ("Málaga's Straße", ["malaga", "strasse"]),
        ("$442,300.00", ["442300"]),
        ("the U.S. and J.R.R. Tolkien", ["us", "jrr", "tolkien"]),
        ("Elizabeth II, twenty-one", ["elizabeth", "2", "20", "1"]),
        ("800m or £50bn", ["800", "m", "or", "50", "bn"]),
        ("O’Brien’s golfers1", ["obrien", "golfers"]),
        ("", []),
        ("?! — …", []),
    ],
)
def test_folded_words(text: str, words: list[str]) -> None:
    assert folded_words(text) == words
    assert folded_text(text).split() == words


def test_inflected_words_share_a_stem() -> None:
    assert len(set(map(stem, ["deduct", "deducted", "deducts", "deducting"]))) == 1


def test_any_text_is_folded() -> None:
    assert folded_words("\ud800 \x00 🙂 ٣") != []
    assert len(folded_words("x" * 100_000)) == 1
