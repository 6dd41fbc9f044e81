"""Waiting for asynchronous work from synchronous code, also where a loop is running already (a notebook, a server)."""

import asyncio
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

__all__ = ["wait_for"]

_Value = TypeVar("_Value")


def wait_for(work: Coroutine[Any, Any, _Value]) -> _Value:
    """Run a coroutine to its end, in a thread of its own where a loop is running already."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
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
