"""Waiting for a flow from synchronous code, and what it tells whoever watches.

Also where a loop is running already (a notebook, a server).
"""

import gc
import threading
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from math import fsum
from typing import Any, Protocol, TypeVar

from answerkey.model.run import RunInfo
from answerkey.model.scorecard import Scorecard

_Value = TypeVar("_Value")
# New objects between two collections of garbage. Python's own 700 makes for a hundred and more of them each second,
# which costs a judged run a twentieth of its time; so many weigh a few megabytes at most.
_NEW_OBJECTS = 5000


def wait_for(work: Coroutine[Any, Any, _Value]) -> _Value:
    """Run a coroutine to its end, in a thread of its own where a loop is running already."""
    import asyncio  # commands that wait for nothing start without it

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        with _fewer_collections():
            return asyncio.run(work)
    outcome: list[_Value] = []
    failure: list[BaseException] = []

    def run() -> None:
        try:
            outcome.append(asyncio.run(work))
        except BaseException as error:  # noqa: BLE001  # handed on to the caller's thread, whatever it is
            failure.append(error)

    thread = threading.Thread(target=run, name="answerkey-evaluate")
    thread.start()
    thread.join()
    if failure:
        raise failure[0]
    return outcome[0]


@contextmanager
def _fewer_collections() -> Iterator[None]:
    """Collect garbage less often; only where nothing else runs in the process but this work."""
    before = gc.get_threshold()
    if 0 < before[0] < _NEW_OBJECTS:
        gc.set_threshold(_NEW_OBJECTS, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)


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


class NoProgress:
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
