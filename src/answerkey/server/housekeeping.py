"""Housekeeping: what the server does by itself now and then, while nobody waits for it."""

import sys
from threading import Event
from typing import TYPE_CHECKING

from answerkey.errors import AnswerkeyError
from answerkey.store.deleting import delete_production

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
            sys.stderr.write(f"answerkey: production replies could not be put in order: {problem}\n")
        said = problem
        stopped.wait(_SECONDS)


def put_in_order(app: "Starlette") -> str | None:
    """Delete production replies that are too old and grade the others by the golden set as it is now; what stood in the
    way, if anything did."""
    days = app.state.settings.production_days
    try:
        store = app.state.holder.get()
        if days is not None:
            delete_production(store, older_than_days=days)
        app.state.grading.regrade(store)
    except AnswerkeyError as error:
        return str(error)
    problem: str | None = app.state.grading.problem
    return problem
