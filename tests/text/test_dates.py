"""Dates in any order."""

import pytest

from answerkey.text.dates import find_dates, parse_date


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


@pytest.mark.parametrize(
    ("expected", "text"),
    [
        ("11:00", "11.00–16.00"),
        ("16:00", "11.00 - 16.00"),
        ("16:00", "Open 11.00–16.00."),
        ("09:30", "9.30 – 17.00"),
        ("17:00", "9.30 – 17.00"),
        ("17:00", "9.30 to 17.00"),
        ("09:00", "9-18"),
        ("18:00", "9-18"),
        ("18:00", "Mon-Fri 9-18, Sat closed"),
        ("18:00", "9–18 Uhr"),
        ("2026-05-03", "3–7 May"),
        ("2026-05-07", "3–7 May"),
        ("2026-05-03", "From 3 to 7 May 2026"),
        ("2026-05-03", "3 and 4 May"),
        ("2026-05-03", "3.–7. Mai"),
        ("2026-05-03", "vom 3. bis 7. Mai"),
        ("2026-05-07", "May 3–7, 2026"),
        ("2026-05-04", "May 3rd and 4th"),
    ],
)
def test_both_ends_of_a_range_are_stated(expected: str, text: str) -> None:
    wanted = parse_date(expected)
    assert wanted is not None
    assert wanted.find_all(text)


@pytest.mark.parametrize(
    ("expected", "text"),
    [
        ("16:00", "It costs £11.00–16.00"),
        ("16:00", "from 11.00 to 16.00 €"),
        ("16:00", "11.00–16.00 m"),
        ("18:00", "For ages 9-18"),
        ("2026-05-04", "From May 3 and 4 seats"),
        ("2026-05-05", "May 3 to 5 pm"),
        ("2026-05-03", "3–7 June"),
        ("2026-05-03", "3–7 May 2025"),
        ("2026-05-03", "Room 12.3 and 4 May"),
    ],
)
def test_what_is_written_like_a_range_is_not_stated(expected: str, text: str) -> None:
    wanted = parse_date(expected)
    assert wanted is not None
    assert not wanted.find_all(text)
