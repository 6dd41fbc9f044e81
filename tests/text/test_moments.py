import time

import pytest

from answerkey.errors import UsageError
from answerkey.text.dates import day_begins, day_ends, local_time, read_moment, zone_name


@pytest.fixture
def vienna(monkeypatch):
    monkeypatch.setenv("TZ", "CET-1CEST,M3.5.0,M10.5.0/3")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def test_times_are_shown_in_the_zone_of_the_machine_which_is_named(vienna):
    assert local_time("2026-11-16T08:30:00.123+00:00") == "2026-11-16 09:30 CET"
    assert local_time("2026-07-16T22:30:00+00:00") == "2026-07-17 00:30 CEST"
    assert local_time("2026-07-16T22:30:00+00:00", zone=False) == "2026-07-17 00:30"
    assert local_time("no time") == "no time"
    assert zone_name() in ("CET", "CEST")


def test_a_day_is_one_of_the_machines_zone(vienna):
    assert day_begins("2026-11-16") == "2026-11-15T23:00:00.000+00:00"
    # The day on which summer time begins is an hour shorter.
    assert (day_begins("2026-03-29"), day_ends("2026-03-29")) == (
        "2026-03-28T23:00:00.000+00:00",
        "2026-03-29T22:00:00.000+00:00",
    )


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("2026-11-16T08:30:00Z", "2026-11-16T08:30:00.000+00:00"),
        ("2026-11-16T08:30:00", "2026-11-16T08:30:00.000+00:00"),
        ("2026-11-16T08:30:00.5+05:30", "2026-11-16T03:00:00.500+00:00"),
        ("2026-11-16", "2026-11-16T00:00:00.000+00:00"),
    ],
)
def test_times_of_others_are_kept_in_utc(given, kept):
    assert read_moment(given) == kept


@pytest.mark.parametrize("given", ["", "soon", "2026-13-01", "0001-01-01T00:00:00+14:00"])
def test_what_is_no_time_is_refused(given):
    with pytest.raises(UsageError, match="not a time"):
        read_moment(given)
    with pytest.raises(UsageError, match="is not a date"):
        day_begins(given)
