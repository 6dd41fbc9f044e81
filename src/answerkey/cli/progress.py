"""The live progress bar of a run, on stderr and only on a terminal."""

import sys
from threading import Thread
from time import monotonic
from typing import TYPE_CHECKING, Any

from answerkey.evaluation.progress import Progress, RunningScore, Silent
from answerkey.model.run import RunInfo
from answerkey.plugins import load_object

if TYPE_CHECKING:
    from rich.progress import Progress as RichProgress

__all__ = ["progress_for_terminal"]

_SECONDS_BETWEEN = 0.1
# What the report takes longest to load.
_FOR_THE_REPORT = ("answerkey.report.terminal", "rich.console", "rich.table", "rich.columns")


def progress_for_terminal(*, quiet: bool = False, doing: str = "asking") -> Progress:
    """A bar if a person is watching, else silence."""
    if quiet:
        return Silent()
    return _Bar(doing) if sys.stderr.isatty() else _Unseen()


class _Unseen(Silent):
    """Nobody watches, but a report will be printed: what that needs is loaded while the chatbot thinks."""

    def begin(self, info: RunInfo, *, planned: int | None, done: int) -> None:
        Thread(target=_load, name="answerkey-report", daemon=True).start()


def _load() -> None:
    for module in _FOR_THE_REPORT:
        load_object(module)


class _Bar:
    """A bar with the score so far."""

    def __init__(self, doing: str) -> None:
        self._doing = doing
        self._shown_at = 0.0
        self._bar: RichProgress | None = None
        self._task: Any = None
        self._before = 0
        self._begun = 0.0

    def begin(self, info: RunInfo, *, planned: int | None, done: int) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        self._before, self._begun = done, monotonic()
        self._bar = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[note]}", markup=False),
            TimeRemainingColumn(),
            console=Console(stderr=True),
            transient=True,
            refresh_per_second=5,
        )
        self._task = self._bar.add_task(self._doing, total=planned, completed=done, note="")
        self._bar.start()

    def advance(self, running: RunningScore) -> None:
        # A log is graded faster than a person can read.
        if self._bar is None or monotonic() - self._shown_at < _SECONDS_BETWEEN:
            return
        self._shown_at = monotonic()
        errors = f" · {running.errors} errors" if running.errors else ""
        score = "" if running.score is None else f"score {running.score:.1%}{errors}"
        if running.expected is not None:
            rate = running.done / max(monotonic() - self._begun, 1e-3)
            self._bar.update(self._task, total=max(running.expected, running.done))
            score += f" · {rate:,.0f} a second"
        self._bar.update(self._task, completed=self._before + running.done, note=score)

    def end(self) -> None:
        if self._bar is not None:
            self._bar.stop()
