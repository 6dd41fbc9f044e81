"""Numbers in words."""

import gc
import time

import pytest

from answerkey.text.numbers import spelled_numbers


@pytest.mark.parametrize(
    ("text", "worth"),
    [
        ("nine hundred people", 900),
        ("twenty-one", 21),
        ("one hundred and five", 105),
        ("nineteen eighty-four", 1984),
        ("two thousand and five", 2005),
        ("three million", 3000000),
        ("two dozen", 24),
        ("twelve hundred", 1200),
        ("one million two hundred thousand and three", 1200003),
        ("the forty-first", 41),
    ],
)
def test_numbers_in_words(text: str, worth: int) -> None:
    assert [found for found, _, _ in spelled_numbers(text)] == [worth]


def test_several_numbers_in_a_row_are_not_one() -> None:
    assert list(spelled_numbers("one two three")) == []


def test_a_long_run_of_number_words_takes_linear_time() -> None:
    def cost(words: int) -> float:
        # Garbage of other tests that is collected meanwhile would count too.
        gc.collect()
        start = time.process_time()
        list(spelled_numbers("hundred " * words))
        return time.process_time() - start

    cost(100)
    assert cost(40_000) < 30 * max(cost(4_000), 0.002)
