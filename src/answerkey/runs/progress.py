"""Progress callbacks, and running a coroutine from synchronous code, also inside a running loop (notebook, server)."""

import gc
import threading
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from math import fsum
from typing import Any, TypeVar

from answerkey.model.run import RunInfo
from answerkey.model.scorecard import Scorecard

_Value = TypeVar("_Value")
# New objects between two garbage collections. With Python's 700, a judged run spends 5% of its time collecting; this
# many take a few megabytes at most.
_NEW_OBJECTS = 5000


def wait_for(work: Coroutine[Any, Any, _Value]) -> _Value:
    """Run a coroutine to its end; in a new thread if a loop is running already."""
    import asyncio  # commands that do not ask start without it

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
        except BaseException as error:  # noqa: BLE001  # raised again in the caller's thread
            failure.append(error)

    thread = threading.Thread(target=run, name="answerkey-evaluate")
    thread.start()
    thread.join()
    if failure:
        raise failure[0]
    return outcome[0]


@contextmanager
def _fewer_collections() -> Iterator[None]:
    """Collect garbage less often; only if the process does nothing else."""
    before = gc.get_threshold()
    if 0 < before[0] < _NEW_OBJECTS:
        gc.set_threshold(_NEW_OBJECTS, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)


class Progress:
    """Progress callbacks, which do nothing by themselves."""

    def begin(self, info: RunInfo, *, planned: int | None, done: int) -> None:
        """The run starts; `done` of the planned trials are done already. `planned` is None for a log of unknown length."""

    def advance(self, running: "RunningScore") -> None:
        """Another trial was scored."""

    def end(self) -> None:
        """The run has ended."""


NO_PROGRESS = Progress()


class RunningScore:
    """The score so far, for display; the summary at the end is computed separately."""

    def __init__(self) -> None:
        self.done = 0
        self.errors = 0
        # Estimated number of trials of a log; None: unknown, or planned.
        self.expected: int | None = None
        self._sum = 0.0

    def add(self, card: Scorecard) -> None:
        """Add one scorecard."""
        self.done += 1
        self.errors += card.error is not None
        self._sum = fsum((self._sum, card.total or 0.0))

    def add_part(self, done: int, errors: int, points: float) -> None:
        """Add many at once."""
        self.done += done
        self.errors += errors
        self._sum += points

    @property
    def score(self) -> float | None:
        """Mean of the trials scored so far."""
        return self._sum / self.done if self.done else None
