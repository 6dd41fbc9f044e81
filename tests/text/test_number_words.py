"""Numbers in words and with a scale."""

import pytest

from answerkey.text.number_words import spell_out_digits, worths_in_words, worths_with_scale


@pytest.mark.parametrize(
    ("text", "worth"),
    [
        ("nine hundred people", "900"),
        ("twenty-one", "21"),
        ("one hundred and five", "105"),
        ("nineteen eighty-four", "1984"),
        ("two thousand and five", "2005"),
        ("the Ninth street", "9"),
        ("three million", "3000000"),
    ],
)
def test_numbers_in_words(text: str, worth: str) -> None:
    assert worth in worths_in_words(text)


@pytest.mark.parametrize(
    ("text", "worth"),
    [("$442.3K", "442300"), ("1.25 million", "1250000"), ("£50m", "50000000"), ("3bn", "3000000000")],
)
def test_numbers_with_a_scale(text: str, worth: str) -> None:
    assert list(worths_with_scale(text)) == [worth]


def test_an_address_in_words() -> None:
    assert spell_out_digits("Nine hundred South Ninth Street") == "900 South 9th Street"
