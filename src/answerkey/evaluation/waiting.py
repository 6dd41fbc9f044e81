"""Waiting for asynchronous work from synchronous code, also where a loop is running already (a notebook, a server)."""

import asyncio
import gc
import threading
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

__all__ = ["wait_for"]

_Value = TypeVar("_Value")
# New objects between two collections of garbage. Python's own 700 makes for a hundred and more of them each second,
# which costs a judged run a twentieth of its time; so many weigh a few megabytes at most.
_NEW_OBJECTS = 5000


def wait_for(work: Coroutine[Any, Any, _Value]) -> _Value:
    """Run a coroutine to its end, in a thread of its own where a loop is running already."""
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
