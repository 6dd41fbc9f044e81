"""Numbers in text."""

import pytest

from answerkey.text.numbers import find_numbers, parse_number, whole_number_end


@pytest.mark.parametrize(
    ("text", "worths"),
    [
        ("The basis is $442,300.", ["442300"]),
        ("442,300.00 and 442300", ["442300", "442300"]),
        ("442 300 or 442\u00a0300 or 442'300 or 442_300", ["442300"] * 4),
        ("12,34,567 rupees", ["1234567"]),
        ("442.300,00 €", ["442300"]),
        ("1.442.300 €", ["1442300"]),
        ("442.300", ["442.3"]),
        ("12.50%", ["12.5"]),
        ("1, 2, 3", ["1", "2", "3"]),
        ("1,2,3", ["1", "2", "3"]),
        ("from -5 to -$10 and $-7", ["-5", "-10", "-7"]),
        ("10-5 and A-7", ["10", "5", "7"]),
        (".5 and 0.50 and 007", ["0.5", "0.5", "7"]),
        ("Paid 2024, 16144", ["2024", "16144"]),
        ("no digits here", []),
        ("0.0 -0", ["0", "0"]),
    ],
)
def test_numbers_and_their_worth(text: str, worths: list[str]) -> None:
    assert [number.canonical for number in find_numbers(text)] == worths


def test_spans_index_the_text() -> None:
    text = "Total: -$1,234.50!"
    (number,) = find_numbers(text)
    assert text[number.start : number.end] == "-$1,234.50"
    assert number.value == -1234.5


@pytest.mark.parametrize(
    ("keyword", "worth"),
    [("442300", "442300"), ("$442,300.00", "442300"), ("12.5%", "12.5"), ("-5", "-5"), ("€ 10", "10"), ("10 €", "10"),
     ("9th", None), ("83-4567890", None), ("", None), ("$", None), ("one", None), ("1,2", None), ("1.2.3", None),
     ("1200,50", "1200.5"), ("1.200,50", "1200.5"), ("1 200,50 €", "1200.5"), ("4,90 €", "4.9"), ("12,5%", "12.5"),
     ("-3,14", "-3.14"), ("1,200", "1200"), ("1,2,3", None), ("12,50 kg", None)],
)  # fmt: skip
def test_a_keyword_that_is_a_number(keyword: str, worth: str | None) -> None:
    assert parse_number(keyword) == worth


def test_a_very_long_run_of_digits_is_one_number() -> None:
    (number,) = find_numbers("9" * 100_000)
    assert len(number.canonical) == 100_000


@pytest.mark.parametrize(
    ("text", "written", "end"),
    [
        ("It is $442,300.00 in all", "442,300", "442,300.00"),
        ("In 2024, it rose.", "2024", "2024"),
        ("(900)", "900", "900"),
        ("442,300", "442,300", "442,300"),
    ],
)
def test_a_number_that_stands_alone_is_seen_at_once(text: str, written: str, end: str) -> None:
    at = text.index(written)
    assert text[at : whole_number_end(text, at, at + len(written))] == end


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("1,442,300", "442,300"),
        ("442,300.50", "442,300"),
        ("442,300,000", "442,300"),
        ("-$442,300", "442,300"),
        ("-442,300", "442,300"),
        ("x442,300", "442,300"),
        ("1.900", "900"),
        ("1 900", "900"),
        ("9000", "900"),
        ("900 000", "900"),
    ],
)
def test_what_stands_around_a_number_may_change_it(text: str, written: str) -> None:
    at = text.index(written)
    assert whole_number_end(text, at, at + len(written)) == 0
