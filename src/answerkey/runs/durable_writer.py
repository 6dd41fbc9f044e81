"""DurableWriter: no reply is lost between the chatbot and the store.

A reply is journalled before anything else. While the store is unreachable, writing is retried. A row that the store
rejects is set aside in a file. Once another process has taken over the run, nothing more is written.
"""

import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, TypeVar

import msgspec

from answerkey.errors import RunOwnedError, StoreAwayError, StoreError, StoreFullError
from answerkey.model.run import RunInfo
from answerkey.model.scorecard import Trial
from answerkey.store.feedback import SqlJudgements
from answerkey.store.ownership import Lease, RunJournal, read_journal
from answerkey.store.sql import SqlStore

if TYPE_CHECKING:
    from answerkey.model.judgement import Answer

_Value = TypeVar("_Value")
# Seconds before an unreachable store is tried again: doubled each time, up to the maximum.
_FIRST_PAUSE, _LONGEST_PAUSE = 0.1, 5.0
# Replies replayed in one transaction.
_BATCH = 500


class StoreRetry:
    """Retries store operations while the store is unreachable, up to a time limit."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        # Set while the run is being stopped: then nothing is retried.
        self.stopping = threading.Event()

    def run(self, action: Callable[[], _Value]) -> _Value:
        """Call the action until it succeeds or the time is up."""
        pause, begun = _FIRST_PAUSE, time.monotonic()
        while True:
            try:
                return action()
            except StoreAwayError:
                left = self._seconds - (time.monotonic() - begun)
                if left <= 0 or self.stopping.wait(min(pause, left)):
                    raise
            pause = min(2 * pause, _LONGEST_PAUSE)

    @contextmanager
    def until_stopped(self) -> Iterator[None]:
        """Stop retrying as soon as the body fails or is interrupted."""
        try:
            yield
        except BaseException:
            self.stopping.set()
            raise


class RetryingJudgements(SqlJudgements):
    """Cached judgements in a store that may be unreachable for a while."""

    def __init__(self, store: SqlStore, retry: StoreRetry) -> None:
        super().__init__(store)
        self._retry = retry

    def find_answers(self, keys: Sequence[str]) -> Mapping[str, str]:
        """Key → the judge's cached answer, for the keys that have one."""
        return self._retry.run(lambda: SqlJudgements.find_answers(self, keys))

    def add_answers(self, run_id: str, answers: "Sequence[Answer]") -> None:
        """Store answers in one durable transaction; the first answer for a key is never replaced."""
        self._retry.run(lambda: SqlJudgements.add_answers(self, run_id, answers))


class DurableWriter:
    """The journal and the store of one run that this process owns."""

    def __init__(self, store: SqlStore, info: RunInfo, lease: Lease, retry: StoreRetry) -> None:
        self._store = store
        self._info = info
        self._lease = lease
        self._retry = retry
        path = store.database.journal_path(info.id)
        self._journal = None if path is None else RunJournal(path, info)
        # Journal a reply that has just arrived; raises StoreFullError if it cannot be written.
        self.append: Callable[[Trial], None] = _ignore if self._journal is None else self._journal.append
        # Replies in the store or in the set-aside file: trial number → one byte per position; and their count.
        self._stored: dict[int, bytearray] = {}
        self._stored_count = 0
        # (position, trial number) → why the store rejected it.
        self.set_aside: dict[tuple[int, int], str] = {}
        self.set_aside_path = None if path is None else path.with_suffix(".set-aside.jsonl")

    def add(self, info: RunInfo, trials: Sequence[Trial], *, with_replies: bool = True) -> None:
        """Store replies and scorecards."""
        self._write(
            lambda batch: self._store.add(info, batch, with_replies=with_replies),
            trials,
            has_replies=with_replies,
        )

    def add_replies(self, info: RunInfo, trials: Sequence[Trial]) -> None:
        """Store replies that are scored later."""
        self._write(lambda batch: self._store.add_replies(info, batch), trials, has_replies=True)

    def _write(
        self, write: Callable[[Sequence[Trial]], None], trials: Sequence[Trial], *, has_replies: bool
    ) -> None:
        batch = trials
        if self.set_aside:
            batch = [trial for trial in trials if (trial.position, trial.number) not in self.set_aside]
        if not batch:
            return
        try:
            self.run_owned(lambda: write(batch))
        except (StoreAwayError, StoreFullError):
            raise
        except (StoreError, ValueError, TypeError, OverflowError) as error:
            if len(batch) == 1:
                # If the store rejects everything, the row is not the cause.
                self.run_owned(lambda: self._store.update_run(self._info))
                self._set_aside(batch[0], error)
            else:
                middle = len(batch) // 2
                self._write(write, batch[:middle], has_replies=has_replies)
                self._write(write, batch[middle:], has_replies=has_replies)
            return
        if has_replies:
            self._mark_stored(batch)

    def _mark_stored(self, trials: Sequence[Trial]) -> None:
        for trial in trials:
            flags = self._stored.setdefault(trial.number, bytearray())
            if trial.position >= len(flags):
                flags.extend(bytes(trial.position + 1000 - len(flags)))
            self._stored_count += not flags[trial.position]
            flags[trial.position] = 1

    def run_owned(self, action: Callable[[], _Value]) -> _Value:
        """Call a store operation, with retries, as long as this process owns the run."""

        def checked() -> _Value:
            if self._lease.lost.is_set():
                raise RunOwnedError(
                    f"run {self._info.id} was taken over by another process while this one did not respond; "
                    f"see: answerkey show {self._info.id}"
                )
            return action()

        return self._retry.run(checked)

    def _set_aside(self, trial: Trial, error: Exception) -> None:
        reason = " ".join(str(error).split())
        self.set_aside[trial.position, trial.number] = reason
        self._mark_stored([trial])
        if self.set_aside_path is None:
            return
        row = {
            "id": trial.question.id,
            "trial": trial.number,
            "reason": reason,
            "replies": msgspec.to_builtins(trial.replies, enc_hook=repr),
        }
        with self.set_aside_path.open("a", encoding="utf-8") as file:
            # ASCII, because the text may not be encodable as UTF-8.
            file.write(json.dumps(row, default=repr) + "\n")

    @property
    def warnings(self) -> tuple[str, ...]:
        """A warning about replies that could not be stored."""
        if not self.set_aside:
            return ()
        where = "" if self.set_aside_path is None else f"; see {self.set_aside_path}"
        reason = next(iter(self.set_aside.values()))
        return (f"{len(self.set_aside)} replies could not be stored, for example: {reason}{where}",)

    @property
    def journal_note(self) -> str:
        """Which replies only the journal has, for the message of a run that the store stopped; empty: none."""
        count = self._only_journalled
        return (
            "" if self._journal is None or not count else f"{count} replies are saved in {self._journal.path}"
        )

    @property
    def _only_journalled(self) -> int:
        return 0 if self._journal is None else max(self._journal.entries - self._stored_count, 0)

    def discard(self) -> None:
        """Delete the run and its journal."""
        if self._journal is not None:
            self._journal.remove()
            self._journal = None
        self._store.delete_run(self._info.id)

    def close(self) -> None:
        """Delete the journal if the store has all of it; otherwise try to replay it, or leave it for `resume`."""
        if self._journal is None:
            return
        if not self._only_journalled:
            self._journal.remove()
            return
        self._journal.close()
        # Stopped between a reply's arrival and the recorder.
        if not self._lease.lost.is_set():
            with suppress(StoreError, ValueError, TypeError, OverflowError):
                replay_journal(self._store, self._info)


def _ignore(trial: Trial) -> None:
    """The journal of a store that has none."""


@contextmanager
def open_writer(
    store: SqlStore, info: RunInfo, lease: Lease, retry: StoreRetry, begin: Callable[[], None]
) -> Iterator[DurableWriter]:
    """Write a run that this process owns; `begin` stores the run itself."""
    begin()
    writer = DurableWriter(store, info, lease, retry)
    try:
        yield writer
    finally:
        writer.close()


def replay_journal(store: SqlStore, info: RunInfo) -> None:
    """Store the replies that a killed process had only journalled. The caller must own the run."""
    path = store.database.journal_path(info.id)
    journal = None if path is None else read_journal(path)
    if path is None or journal is None:
        return
    head, entries = journal
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
