"""Progress: what a run tells whoever watches it."""

from math import fsum
from typing import Protocol

from answerkey.model.run import RunInfo
from answerkey.model.scorecard import Scorecard

__all__ = ["Progress", "RunningScore", "Silent"]


class Progress(Protocol):
    """Somebody who watches a run."""

    def begin(self, info: RunInfo, *, planned: int | None, done: int) -> None:
        """The run starts; `done` of the planned trials have replies already. A log does not say how many there are."""
        ...

    def advance(self, running: "RunningScore") -> None:
        """Another trial has been scored."""
        ...

    def end(self) -> None:
        """Nothing more will come."""
        ...


class Silent:
    """Nobody watches."""

    def begin(self, info: RunInfo, *, planned: int | None, done: int) -> None:
        """Say nothing."""

    def advance(self, running: "RunningScore") -> None:
        """Say nothing."""

    def end(self) -> None:
        """Say nothing."""


class RunningScore:
    """The score so far, for people to watch; the summary at the end is computed anew."""

    def __init__(self) -> None:
        self.done = 0
        self.errors = 0
        # How many there will be, as far as can be told; None: it cannot, or the plan says it.
        self.expected: int | None = None
        self._sum = 0.0

    def add(self, card: Scorecard) -> None:
        """Count one more scorecard."""
        self.done += 1
        self.errors += card.error is not None
        self._sum = fsum((self._sum, card.total or 0.0))

    def add_part(self, done: int, errors: int, points: float) -> None:
        """Count many at once."""
        self.done += done
        self.errors += errors
        self._sum += points

    @property
    def score(self) -> float | None:
        """Mean of the trials scored so far."""
        return self._sum / self.done if self.done else None
