"""Dates in any order."""

import pytest

from answerkey.text.dates import find_dates


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("August 15, 2024", (2024, 8, 15)),
        ("15th of August 2024", (2024, 8, 15)),
        ("on 15 Aug. 2024", (2024, 8, 15)),
        ("2024-08-15", (2024, 8, 15)),
        ("2024-08-15T10:00:00Z", (2024, 8, 15)),
        ("8/15/2024", (2024, 8, 15)),
        ("15.08.2024", (2024, 8, 15)),
        ("8/15/24", (2024, 8, 15)),
        ("August 2024", (2024, 8, None)),
        ("March 3rd", (None, 3, 3)),
        ("3. März 2021", (2021, 3, 3)),
    ],
)
def test_a_date_is_read(text: str, parts: tuple[int | None, int | None, int | None]) -> None:
    date = next(iter(find_dates(text)))
    assert (date.year, date.month, date.day) == parts


@pytest.mark.parametrize(
    "text", ["may 5.5 units", "1.2.3", "900 S 9th St", "the march of 2,000", "12/2", "99/99/2024"]
)
def test_what_is_no_date(text: str) -> None:
    assert [date for date in find_dates(text) if date.year] == []


def test_dates_agree_in_the_parts_that_are_wanted() -> None:
    (wanted,) = find_dates("August 15, 2024")
    for text, agrees in [
        ("2024-08-15", True),
        ("8/15/24", True),
        ("2024-08-16", False),
        ("August 2024", False),
    ]:
        assert any(wanted.agrees(date) for date in find_dates(text)) is agrees
    (ambiguous,) = find_dates("03/04/2024")
    assert all(next(iter(find_dates(text))).agrees(ambiguous) for text in ("March 4, 2024", "3 April 2024"))


def test_months_with_turkish_letters_are_read() -> None:
    assert [next(iter(find_dates(text))).month for text in ("15 Aprıl 2024", "3 JULİ 2024")] == [4, 7]
