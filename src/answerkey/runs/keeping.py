"""RunKeeper: nothing that a chatbot has answered is lost on its way to the store.

A reply is journalled before anything else happens to it; a store that is away is waited for; a row that no store can
take is set aside in a file of its own; and a run that another process has taken over is written no more.
"""

import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, TypeVar

import msgspec

from answerkey.errors import InterruptedRunError, RunOwnedError, StoreAwayError, StoreError, StoreFullError
from answerkey.model.run import RunInfo
from answerkey.model.scorecard import Trial
from answerkey.store.ownership import Lease, RunJournal, read_journal
from answerkey.store.review import SqlJudgements
from answerkey.store.sql import SqlStore

if TYPE_CHECKING:
    from answerkey.model.judgement import Answer

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


# Replies replayed at a time.
_BATCH = 500


@contextmanager
def keep_run(
    store: SqlStore, info: RunInfo, lease: Lease, patience: Patience, begin: Callable[[], None]
) -> "Iterator[RunKeeper]":
    """Keep a run that this process owns; `begin` writes it down."""
    begin()
    keeper = RunKeeper(store, info, lease, patience)
    try:
        yield keeper
    finally:
        keeper.close()


class RunKeeper:
    """Keeps what a run produces: the recorder's journal, and the store as the recorder sees it."""

    def __init__(self, store: SqlStore, info: RunInfo, lease: Lease, patience: Patience) -> None:
        self._store = store
        self._info = info
        self._lease = lease
        self._patience = patience
        path = store.database.journal_path(info.id)
        self._journal = None if path is None else RunJournal(path, info)
        # Which replies the store, or the file of those set aside, has: trial → a byte for each position; and how many.
        self._stored: dict[int, bytearray] = {}
        self._stored_count = 0
        # (position, trial) → why the store could not take it.
        self.set_aside: dict[tuple[int, int], str] = {}
        self.set_aside_path = None if path is None else path.with_suffix(".set-aside.jsonl")

    def append(self, trial: Trial) -> None:
        """Journal a reply that has just arrived; raises StoreFullError if it cannot be written."""
        if self._journal is not None:
            self._journal.append(trial)

    @contextmanager
    def asking(self) -> Iterator[None]:
        """While the body runs, a store that is away is waited for; when it fails or is interrupted, no longer."""
        try:
            yield
        except BaseException:
            self._patience.stopping.set()
            raise

    def add(self, info: RunInfo, trials: Sequence[Trial], *, with_replies: bool = True) -> None:
        """Store replies and scorecards."""
        self._write(partial(self._store.add, info, with_replies=with_replies), trials, replies=with_replies)

    def add_replies(self, info: RunInfo, trials: Sequence[Trial]) -> None:
        """Store replies that are scored later."""
        self._write(partial(self._store.add_replies, info), trials, replies=True)

    def _write(
        self, write: Callable[[Sequence[Trial]], None], trials: Sequence[Trial], *, replies: bool
    ) -> None:
        kept = [trial for trial in trials if (trial.position, trial.number) not in self.set_aside]
        if not kept:
            return
        try:
            self.patiently(lambda: write(kept))
        except (StoreAwayError, StoreFullError):
            raise
        except (StoreError, ValueError, TypeError, OverflowError) as error:
            if len(kept) == 1:
                # A store that takes nothing at all is at fault itself.
                self.patiently(lambda: self._store.update_run(self._info))
                self._put_aside(kept[0], error)
            else:
                middle = len(kept) // 2
                self._write(write, kept[:middle], replies=replies)
                self._write(write, kept[middle:], replies=replies)
            return
        if replies:
            self._note_stored(kept)

    def _note_stored(self, trials: Sequence[Trial]) -> None:
        for trial in trials:
            flags = self._stored.setdefault(trial.number, bytearray())
            if trial.position >= len(flags):
                flags.extend(bytes(trial.position + 1000 - len(flags)))
            self._stored_count += not flags[trial.position]
            flags[trial.position] = 1

    def patiently(self, action: Callable[[], _Value]) -> _Value:
        """Do something with the store, as long as the run is this process's; a store that is away is waited for."""

        def owned() -> _Value:
            if self._lease.lost.is_set():
                raise RunOwnedError(
                    f"run {self._info.id} was taken over by another process while this one was silent; "
                    f"what it asks: answerkey show {self._info.id}"
                )
            return action()

        return self._patience.use(owned)

    def _put_aside(self, trial: Trial, error: Exception) -> None:
        reason = " ".join(str(error).split())
        self.set_aside[trial.position, trial.number] = reason
        self._note_stored([trial])
        if self.set_aside_path is None:
            return
        row = {
            "id": trial.question.id,
            "trial": trial.number,
            "reason": reason,
            "replies": msgspec.to_builtins(trial.replies, enc_hook=repr),
        }
        with self.set_aside_path.open("a", encoding="utf-8") as file:
            # ASCII, which writes down what UTF-8 cannot.
            file.write(json.dumps(row, default=repr) + "\n")

    @property
    def warnings(self) -> tuple[str, ...]:
        """What a reader must know of replies that are not part of the run."""
        if not self.set_aside:
            return ()
        where = "" if self.set_aside_path is None else f"; they are in {self.set_aside_path}"
        reason = next(iter(self.set_aside.values()))
        return (f"{len(self.set_aside)} replies could not be stored, for example: {reason}{where}",)

    def interrupted(self, error: StoreError) -> InterruptedRunError:
        """How a run ends whose store has failed: it can go on when the store can."""
        kept = ""
        if self._journal is not None and self._waiting:
            kept = f"; {self._waiting} replies wait in {self._journal.path}"
        return InterruptedRunError(f"{error}{kept}; then go on with: answerkey resume {self._info.id}")

    @property
    def _waiting(self) -> int:
        """How many replies only the journal has."""
        return 0 if self._journal is None else max(self._journal.entries - self._stored_count, 0)

    def discard(self) -> None:
        """Forget the run and what it has asked."""
        if self._journal is not None:
            self._journal.remove()
            self._journal = None
        self._store.delete_run(self._info.id)

    def close(self) -> None:
        """The journal goes when the store has all of it, and stays for `resume` if not."""
        if self._journal is None:
            return
        if not self._waiting:
            self._journal.remove()
            return
        self._journal.close()
        # Stopped between a reply's arrival and the recorder: the journal alone has it.
        if not self._lease.lost.is_set():
            with suppress(StoreError, ValueError, TypeError, OverflowError):
                replay_journal(self._store, self._info)


def replay_journal(store: SqlStore, info: RunInfo) -> None:
    """Bring what a dead process had journalled into the store; only a run's owner may."""
    path = store.database.journal_path(info.id)
    found = None if path is None else read_journal(path)
    if path is None or found is None:
        return
    head, entries = found
    questions = list(store.questions(head.question_set_hash))
    asked = msgspec.structs.replace(info, target_hash=head.target_hash)
    batch: list[Trial] = []
    for entry in entries:
        if entry.position < len(questions):
            batch.append(Trial(questions[entry.position], entry.number, entry.position, entry.replies))
        if len(batch) >= _BATCH:
            store.add_replies(asked, batch)
            batch = []
    store.add_replies(asked, batch)
    path.unlink()
