"""Times of day in English and continental writing."""

import pytest

from answerkey.grounded.claims.times import find_times


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("at 3:30 PM", [("3:30 PM", 930)]),
        ("from 9 to 5 pm", [("5 pm", 1020), ("9", 540)]),
        ("um 18 Uhr", [("18 Uhr", 1080)]),
        ("von 8 bis 18.30 Uhr", [("8", 480), ("18.30 Uhr", 1110)]),
        ("à 18 h 30", [("18 h 30", 1110)]),
        ("de 10h00 à 18h30", [("10h00", 600), ("18h30", 1110)]),
        ("by noon", [("noon", 720)]),
        ("it takes 2 h 30 min", []),
        ("4 to 6 weeks", []),
    ],
)
def test_times_of_day(text, expected):
    assert [(text[start:end], minutes[0]) for start, end, minutes in find_times(text)] == expected
