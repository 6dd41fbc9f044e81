"""The bar of a scored log: it fits its terminal and says for how long yet."""

import io
import re
from typing import Any

import pytest
from rich.console import Console

from answerkey.cli import command
from answerkey.protocols import RunningScore


def last_line(monkeypatch: pytest.MonkeyPatch, width: int, before: int, *steps: Any) -> str:
    """What the bar shows after some steps: seconds since it began, replies scored, errors, replies expected."""
    out, now = io.StringIO(), [1000.0]
    monkeypatch.setattr(command, "monotonic", lambda: now[0])
    bar = command.ProgressBar("scoring", Console(file=out, force_terminal=True, width=width))
    bar.begin(None, planned=None, done=before)  # type: ignore[arg-type]  # what is scored is not shown
    running = RunningScore()
    running.add_part(before, 0, before)
    for seconds, done, errors, expected in steps:
        now[0] = 1000.0 + seconds
        running.add_part(done - running.done, errors, done - running.done)
        running.expected = expected
        bar.advance(running)
    bar.end()
    text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", out.getvalue())
    lines = [line for line in re.split(r"[\r\n]+", text) if line.strip()]
    assert max(map(len, lines)) <= width
    return lines[-1]


def test_the_time_left_is_told_from_what_was_done_since_it_began(monkeypatch: pytest.MonkeyPatch) -> None:
    # The estimate changes at every step.
    steps = [(1, 10_000, 0, 99_000), (2, 20_000, 0, 101_000), (4, 40_000, 0, 100_000)]
    shown = last_line(monkeypatch, 80, 0, *steps)
    assert shown.endswith("40,000 of 100,000 · score 100.0% · 10,000 a second · 0:06 left")
    # Half of it had been scored by a command of before, in no time of this one's.
    shown = last_line(monkeypatch, 80, 50_000, (10, 60_000, 0, 100_000))
    assert shown.endswith("60,000 of 100,000 · score 100.0% · 1,000 a second · 0:40 left")


def test_what_has_no_room_is_left_out_and_never_the_total(monkeypatch: pytest.MonkeyPatch) -> None:
    step = (3600, 12_345_678, 1_234, 100_000_000)
    shown = last_line(monkeypatch, 80, 0, step)
    assert shown.endswith("12,345,678 of 100,000,000 · score 100.0% · 1234 errors · 7:06:00 left")
    assert last_line(monkeypatch, 50, 0, step).endswith("12,345,678 of 100,000,000 · 7:06:00 left")
    assert " a second · 7:" in last_line(monkeypatch, 120, 0, step)


def test_a_log_of_unknown_size_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = last_line(monkeypatch, 80, 0, (2, 5_000, 0, None))
    assert shown.endswith("5,000 · score 100.0% · 2,500 a second")
