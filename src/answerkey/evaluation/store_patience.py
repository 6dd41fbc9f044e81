"""Patience: a store that cannot be reached for a while is waited for, while the asking goes on."""

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar

from answerkey.errors import StoreAwayError
from answerkey.store.judgements import SqlJudgements
from answerkey.store.sql import SqlStore

if TYPE_CHECKING:
    from answerkey.model.judge_answer import Answer

__all__ = ["Patience", "PatientJudgements"]

_Value = TypeVar("_Value")
# Seconds until a store that is away is tried again: doubled each time, up to the second.
_FIRST_PAUSE, _LONGEST_PAUSE = 0.1, 5.0


class Patience:
    """How long a store that is away is waited for."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        # Set when the run is being stopped: then nothing is waited for.
        self.stopping = threading.Event()

    def use(self, action: Callable[[], _Value]) -> _Value:
        """Do something with the store; while it is away, again and again until the patience ends."""
        pause, since = _FIRST_PAUSE, time.monotonic()
        while True:
            try:
                return action()
            except StoreAwayError:
                left = self._seconds - (time.monotonic() - since)
                if left <= 0 or self.stopping.wait(min(pause, left)):
                    raise
            pause = min(2 * pause, _LONGEST_PAUSE)


class PatientJudgements(SqlJudgements):
    """The judgements of a store that may be away for a while."""

    def __init__(self, store: SqlStore, patience: Patience) -> None:
        super().__init__(store)
        self._patience = patience

    def find_answers(self, keys: Sequence[str]) -> Mapping[str, str]:
        """Key → the judge's answer, of those that are there."""
        return self._patience.use(lambda: SqlJudgements.find_answers(self, keys))

    def add_answers(self, run_id: str, answers: "Sequence[Answer]") -> None:
        """Keep answers in one durable transaction; the first answer under a key stays."""
        self._patience.use(lambda: SqlJudgements.add_answers(self, run_id, answers))
