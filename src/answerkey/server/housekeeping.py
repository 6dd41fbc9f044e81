"""Housekeeping: what the server does by itself now and then, while nobody waits for it."""

import sys
from threading import Event
from typing import TYPE_CHECKING

from answerkey.errors import AnswerkeyError

if TYPE_CHECKING:
    from starlette.applications import Starlette

__all__ = ["keep_house", "put_in_order"]

# Between two looks at the golden set's file.
_SECONDS = 20.0


def keep_house(app: "Starlette", stopped: Event) -> None:
    """Put things in order until the server stops."""
    said = None
    while not stopped.is_set():
        problem = put_in_order(app)
        if problem is not None and problem != said:
            sys.stderr.write(f"answerkey: production replies are not graded anew: {problem}\n")
        said = problem
        stopped.wait(_SECONDS)


def put_in_order(app: "Starlette") -> str | None:
    """Grade production replies by the golden set as it is now; what stood in the way, if anything did."""
    try:
        app.state.grading.regrade(app.state.holder.get())
    except AnswerkeyError as error:
        return str(error)
    problem: str | None = app.state.grading.problem
    return problem
