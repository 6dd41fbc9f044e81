"""Periods of time as people write them."""

from datetime import date

import pytest

from answerkey_demo.language import find_periods, normalise

TODAY = date(2025, 12, 31)


@pytest.mark.parametrize(
    ("text", "start", "end"),
    [
        ("in August 2024", "2024-08-01", "2024-08-31"),
        ("for Aug. 2024", "2024-08-01", "2024-08-31"),
        ("in Feb '24", "2024-02-01", "2024-02-29"),
        ("2024-08", "2024-08-01", "2024-08-31"),
        ("in 2024", "2024-01-01", "2024-12-31"),
        ("Q3 2024", "2024-07-01", "2024-09-30"),
        ("the third quarter of 2024", "2024-07-01", "2024-09-30"),
        ("the last quarter of 2023", "2023-10-01", "2023-12-31"),
        ("H1 2025", "2025-01-01", "2025-06-30"),
        ("the second half of 2024", "2024-07-01", "2024-12-31"),
        ("from March to June 2024", "2024-03-01", "2024-06-30"),
        ("between March 2024 and June 2024", "2024-03-01", "2024-06-30"),
        ("November 2023 through February 2024", "2023-11-01", "2024-02-29"),
        ("from 2023 to 2025", "2023-01-01", "2025-12-31"),
        ("since March 2024", "2024-03-01", "9999-12-31"),
        ("before 2024", "1900-01-01", "2023-12-31"),
        ("after June 2024", "2024-07-01", "9999-12-31"),
        ("last year", "2024-01-01", "2024-12-31"),
        ("this year", "2025-01-01", "2025-12-31"),
        ("last month", "2025-11-01", "2025-11-30"),
        ("last quarter", "2025-07-01", "2025-09-30"),
        ("next year", "2026-01-01", "2026-12-31"),
        ("from Q2 to Q3 2024", "2024-04-01", "2024-09-30"),
        ("in August", "2025-08-01", "2025-08-31"),
        ("in May", "2025-05-01", "2025-05-31"),
    ],
)
def test_reads_a_period(text: str, start: str, end: str) -> None:
    (period,) = find_periods(normalise(f"What was the rent {text}?"), TODAY)
    assert (period.start.isoformat(), period.end.isoformat()) == (start, end)


@pytest.mark.parametrize(
    "text",
    ["What may tenants do?", "Unit 2 at 412", "March on", "2024-02-31", "13/2024", "page 1065", "R-0038417"],
)
def test_does_not_see_periods_where_none_are(text: str) -> None:
    found = find_periods(normalise(text), TODAY)
    assert all(p.label == "March 2025" for p in found)


def test_two_months_share_the_year_that_is_said_once() -> None:
    july, august = find_periods(normalise("July and August 2023"), TODAY)
    assert (july.label, august.label) == ("July 2023", "August 2023")


def test_a_month_without_a_year_takes_the_conversations_year() -> None:
    (march,) = find_periods("march 2023", TODAY)
    (period,) = find_periods("and in september?", TODAY, march)
    assert period.label == "September 2023"


@pytest.mark.parametrize(
    ("text", "label"),
    [("and the year after?", "2024"), ("and the following year?", "2024"), ("and the year before?", "2022")],
)
def test_the_year_after_is_after_the_one_that_was_spoken_of(text: str, label: str) -> None:
    (spoken_of,) = find_periods("in 2023", TODAY)
    (period,) = find_periods(text, TODAY, spoken_of)
    assert period.label == label


def test_a_leap_day_survives_the_change_of_year() -> None:
    (february,) = find_periods("february 2024", TODAY)
    assert february.in_year(2023).end == date(2023, 2, 28)
