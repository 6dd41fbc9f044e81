"""Recorder: grades and stores trials as they arrive, off the asking loop, in small durable batches.

With a judge, a reply is stored at once and its scorecard follows when it has been judged, while asking continues. A new
run stores nothing until the judge has answered, or for two seconds: a wrong model name leaves no run behind.

No reply is lost between the chatbot and the store. A reply is journalled before anything else. While the store is unreachable,
writing is retried. A row that the store rejects is set aside in a file. Once another process has taken over the run, nothing
more is written.
"""

import asyncio
import os
import threading
import time
import zlib
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence, Set
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager, suppress
from math import fsum
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import msgspec

from answerkey.errors import RunOwnedError, StoreAwayError, StoreError, StoreFullError
from answerkey.model.question import Question
from answerkey.model.reply import Reply
from answerkey.model.run import RunInfo
from answerkey.model.scorecard import Scorecard, Trial
from answerkey.protocols import Progress, RunningScore
from answerkey.runs.stored import stored_trials, trials_at
from answerkey.runs.workers import GradingPool
from answerkey.scorers.grader import Grader
from answerkey.store.database import Lease
from answerkey.store.feedback import SqlJudgements
from answerkey.store.sql import SqlStore
from answerkey.text.normalise import count

if TYPE_CHECKING:
    from answerkey.judge.session import Judge, JudgingSession
    from answerkey.model.judgement import Answer


# The journal: a file with a run's replies from the moment they arrive until the store has them all.
#
# Each reply is one line, a checksum and JSON, written with a single call, so that it survives a kill of the process. It
# is not synced to disk: a power cut may lose the last moments. A torn or damaged line is skipped.


class JournalHead(msgspec.Struct, frozen=True):
    """The first line: the run that the replies belong to."""

    run_id: str
    question_set_hash: str
    target_hash: str
    format: int = 1


class JournalEntry(msgspec.Struct, frozen=True, array_like=True):
    """A line: the replies of one trial."""

    # The question's position in the set.
    position: int
    number: int
    replies: tuple[Reply, ...]


_encode = msgspec.json.Encoder().encode
_decode_head = msgspec.json.Decoder(JournalHead).decode
_decode_entry = msgspec.json.Decoder(JournalEntry).decode


class RunJournal:
    """A run's journal, written by the process that owns the run."""

    def __init__(self, path: Path, info: RunInfo) -> None:
        self.path = path
        # The number of replies in it.
        self.entries = 0
        self._size = 0
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            # Private, since it contains replies. An earlier journal has been replayed.
            flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND | getattr(os, "O_CLOEXEC", 0)
            self._file = os.open(path, flags, 0o600)
        except OSError as error:
            raise self._failed(error) from None
        self._write(_encode(JournalHead(info.id, info.question_set_hash, info.target_hash)))

    def append(self, trial: Trial) -> None:
        """Write a reply; raises StoreFullError and leaves the journal unchanged if it cannot be written."""
        try:
            line = _encode((trial.position, trial.number, trial.replies))
        except (UnicodeEncodeError, OverflowError, TypeError):
            # The store cannot keep it either, and reports it.
            return
        self._write(line)
        self.entries += 1

    def _write(self, line: bytes) -> None:
        whole = b"%08x %s\n" % (zlib.crc32(line), line)
        try:
            written = os.write(self._file, whole)
            while written < len(whole):
                written += os.write(self._file, whole[written:])
        except OSError as error:
            os.ftruncate(self._file, self._size)
            raise self._failed(error) from None
        self._size += len(whole)

    def _failed(self, error: OSError) -> StoreFullError:
        reason = (error.strerror or str(error)).lower()
        return StoreFullError(f"journal {self.path}: {reason}; make room on its disk")

    def close(self) -> None:
        """Stop writing; the file stays for `resume`."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def remove(self) -> None:
        """Delete the journal: the store has all replies."""
        self.close()
        self.path.unlink(missing_ok=True)


def read_journal(path: Path) -> tuple[JournalHead, Iterator[JournalEntry]] | None:
    """The content of a journal without torn or damaged lines; None if there is none, or its head is lost."""
    try:
        file = path.open("rb")
    except FileNotFoundError:
        return None
    with file:
        head = _content(file.readline())
    return None if head is None else (_decode_head(head), _entries(path))


def _entries(path: Path) -> Iterator[JournalEntry]:
    with path.open("rb") as file:
        file.readline()
        for line in file:
            content = _content(line)
            if content is not None:
                yield _decode_entry(content)


def _content(line: bytes) -> bytes | None:
    checksum, _, content = line.rstrip(b"\n").partition(b" ")
    whole = line.endswith(b"\n") and checksum == b"%08x" % zlib.crc32(content)
    return content if whole else None


# Writing to the store: with retries, while the run is owned.

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
        return self._retry.run(lambda: SqlJudgements.find_answers(self, keys))

    def add_answers(self, run_id: str, answers: "Sequence[Answer]") -> None:
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
        import json  # few trials cannot be stored

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
        replies = count(self._only_journalled, "reply is", "replies are")
        return (
            ""
            if self._journal is None or not self._only_journalled
            else f"{replies} saved in {self._journal.path}"
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


# Trials that arrive within this time are written together; until then they are in the journal.
_FLUSH_SECONDS = 0.2
_FLUSH_ROWS = 500
# While the store is slow or unreachable, asking continues until this many trials wait in memory.
_MOST_UNWRITTEN = 4_000
# How long a new run waits for the judge's first answer before it stores replies.
_DEFER_SECONDS = 2.0
# Minimum number of replies that may wait for the judge; asking pauses beyond it.
_LEAST_UNJUDGED = 100
# Runs of at most this many trials and characters are summed up and reported from memory.
MOST_IN_MEMORY = 10_000
_MOST_CHARACTERS_IN_MEMORY = 20_000_000


class _Batch(msgspec.Struct):
    """Trials to be written together."""

    # Their replies are stored now, and scorecards later.
    unscored: list[Trial] = []
    scored: list[Trial] = []
    # Their replies are stored already.
    rescored: list[Trial] = []

    @property
    def size(self) -> int:
        return len(self.unscored) + len(self.scored) + len(self.rescored)


class Recorder:
    """Grades and stores the trials of a run."""

    def __init__(
        self,
        writer: SqlStore | DurableWriter,
        info: RunInfo,
        grader: Grader,
        progress: Progress,
        *,
        running: RunningScore | None = None,
        judging: "JudgingSession | None" = None,
        executor: ThreadPoolExecutor | None = None,
        on_scored: Callable[[Trial], None] | None = None,
        keep_in_memory: bool = False,
        defer_until_judge_ok: bool = False,
        most_unjudged: int | None = None,
    ) -> None:
        """`running` is shared by recorders that report to the same progress.

        `on_scored` is called with each scored trial. `keep_in_memory` keeps the trials of a small run for `results`.
        `most_unjudged` limits how far asking may run ahead of grading and judging.
        """
        self._writer = writer
        self._info = info
        self._progress = progress
        self._running = running or RunningScore()
        self._grading = GradingPool(
            grader, self._add_scorecard, budget=info.options.scoring_seconds, most_waiting=most_unjudged
        )
        self._judging = judging
        self._defer = defer_until_judge_ok and judging is not None
        self._defer_until = 0.0
        self._on_scored = on_scored
        self._batch = _Batch()
        # (position, trial number) of trials whose replies are in the store already.
        self._stored: set[tuple[int, int]] = set()
        # One thread, so that batches are written one after the other.
        self._executor = executor or store_executor()
        # Batches that could not be written; tried once more at the end.
        self._failed: list[_Batch] = []
        # All trials of a small run, so that it need not be read back; None: not kept, or too large.
        self._in_memory: list[Trial] | None = [] if keep_in_memory else None
        self._characters = 0
        self._judge_tasks: set[asyncio.Task[None]] = set()
        at_once = 0 if judging is None else 2 * judging.concurrency
        self._room = asyncio.Semaphore(most_unjudged or max(_LEAST_UNJUDGED, at_once))
        self._failure: BaseException | None = None
        self._flush_now = asyncio.Event()

    @asynccontextmanager
    async def recording(self) -> AsyncIterator[None]:
        """Write regularly while the body runs, and the rest when it ends, however it ends."""
        self._defer_until = asyncio.get_running_loop().time() + _DEFER_SECONDS
        self._grading.open()
        regularly = asyncio.create_task(self._flush_regularly())
        try:
            yield
            await self._wait_for_judge()
            await self._grading.finish()
        finally:
            for task in (regularly, *self._judge_tasks):
                task.cancel()
            await asyncio.gather(regularly, *self._judge_tasks, return_exceptions=True)
            ungraded = self._grading.close()
            if self._judging is None:
                # Their replies are stored now; `resume` grades them.
                self._batch.unscored += [trial for trial in ungraded if not self._is_stored(trial)]
            # Also while being cancelled: replies must not be lost.
            self._executor.shutdown(wait=True)
            left = [*self._failed, self._batch]
            self._failed, self._batch = [], _Batch()
            if not self.wrote_nothing:
                for batch in left:
                    self._write(batch)

    @property
    def wrote_nothing(self) -> bool:
        """Whether the judge proved unusable before anything was written."""
        return self._defer and self._judging is not None and self._judging.failure is not None

    def results(self) -> tuple[Trial, ...] | None:
        """All trials in the order of the question set; None if they were not kept in memory."""
        if self._in_memory is None:
            return None
        return tuple(sorted(self._in_memory, key=attrgetter("position", "number")))

    async def add(self, trial: Trial, *, stored: bool = False) -> None:
        """Grade and store an answered trial; `stored`: its replies are in the store already."""
        failure = self._failure or (None if self._judging is None else self._judging.failure)
        if failure is not None:
            raise failure
        if stored:
            self._stored.add((trial.position, trial.number))
        if self._judging is None:
            await self._grading.put(trial)
        else:
            if not stored:
                self._batch.unscored.append(trial)
            await self._room.acquire()
            task = asyncio.create_task(self._judge(self._judging, trial))
            self._judge_tasks.add(task)
            task.add_done_callback(self._after_judging)
        if self._batch.size >= _FLUSH_ROWS:
            self._flush_now.set()
        if self._batch.size >= _MOST_UNWRITTEN:
            await self._flush()

    async def add_stored(self, store: SqlStore, questions: Iterable[Question]) -> None:
        """Grade the stored replies to these questions again, and delete the scorecards of all others."""
        graded: set[tuple[int, int]] = set()
        for trial in stored_trials(store, self._info, questions):
            graded.add((trial.position, trial.number))
            await self.add(trial, stored=True)
        store.drop_scorecards(self._info, but=graded)

    async def add_unscored(
        self, store: SqlStore, questions: Iterable[Question], stored_keys: Set[tuple[str, int]]
    ) -> None:
        """Grade the stored replies that have no scorecard; `stored_keys` are (ask hash, trial) of all stored replies.

        Only for an unchanged scoring without a judge: then the other scorecards are as grading again would make them.
        """
        scored: set[tuple[int, int]] = set()
        errors, points = 0, []
        for position, number, score, kind in store.scored_trials(self._info):
            if score is None:
                # Perhaps for a reason that is gone, as a wrong address.
                continue
            scored.add((position, number))
            errors += kind is not None
            points.append(score)
        self._running.add_part(len(scored), errors, fsum(points))
        numbers = range(1, self._info.repeat + 1)
        for position, question in enumerate(questions):
            keys = [number for number in numbers if (question.ask_hash, number) in stored_keys]
            if all((position, number) in scored for number in keys):
                continue
            for trial in trials_at(store, self._info, position, question):
                if (trial.position, trial.number) not in scored:
                    await self.add(trial, stored=True)

    def _is_stored(self, trial: Trial) -> bool:
        return (trial.position, trial.number) in self._stored

    async def _judge(self, judging: "JudgingSession", trial: Trial) -> None:
        await self._grading.put(trial, await judging.judge(trial.question, trial.replies))

    def _after_judging(self, task: "asyncio.Task[None]") -> None:
        self._judge_tasks.discard(task)
        self._room.release()
        if not task.cancelled() and task.exception() is not None:
            self._failure = self._failure or task.exception()

    async def _wait_for_judge(self) -> None:
        while self._judge_tasks:
            await asyncio.wait(self._judge_tasks)
        if self._failure is not None:
            raise self._failure
        if self._judging is not None:
            await self._judging.checked()
            await self._judging.check_own()

    def _add_scorecard(self, trial: Trial, card: Scorecard) -> None:
        scored = trial.scored(card)
        if self._judging is not None or (self._stored and self._is_stored(trial)):
            self._batch.rescored.append(scored)
        else:
            self._batch.scored.append(scored)
        if self._in_memory is not None:
            self._in_memory.append(scored)
            for reply in trial.replies:
                self._characters += len(reply.text or "")
            if self._characters > _MOST_CHARACTERS_IN_MEMORY:
                self._in_memory = None
        self._running.add(card)
        self._progress.advance(self._running)
        if self._on_scored is not None:
            self._on_scored(scored)

    async def _flush_regularly(self) -> None:
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(_FLUSH_SECONDS):
                    await self._flush_now.wait()
            self._flush_now.clear()
            await self._flush()

    def _is_deferred(self) -> bool:
        if not self._defer or self._judging is None:
            return False
        waiting = self._judging.pending and asyncio.get_running_loop().time() < self._defer_until
        return waiting or self._judging.failure is not None

    async def _flush(self) -> None:
        if not self._batch.size or self._is_deferred():
            return
        batch, self._batch = self._batch, _Batch()
        writing = self._executor.submit(self._write, batch)
        writing.add_done_callback(lambda done: self._after_writing(done, batch))
        waiting = asyncio.wrap_future(writing)
        # Retrieved even if nothing awaits it any more: asyncio would report it as never retrieved.
        waiting.add_done_callback(lambda done: done.cancelled() or done.exception())
        # Not awaited directly: cancelling this task must not cancel a batch that waits for the thread.
        await asyncio.wait([waiting])
        waiting.result()

    def _after_writing(self, writing: "Future[None]", batch: _Batch) -> None:
        """In the writing thread: keep a failed batch for the end, and stop asking."""
        failure = writing.exception()
        if failure is not None:
            self._failed.append(batch)
            self._failure = self._failure or failure

    def _write(self, batch: _Batch) -> None:
        self._defer = False
        if batch.unscored:
            self._writer.add_replies(self._info, batch.unscored)
        if batch.scored:
            self._writer.add(self._info, batch.scored)
        if batch.rescored:
            self._writer.add(self._info, batch.rescored, with_replies=False)


def store_executor() -> ThreadPoolExecutor:
    """One thread for all writing, so that batches are written one after the other."""
    return ThreadPoolExecutor(max_workers=1, thread_name_prefix="answerkey-store")


@asynccontextmanager
async def open_judge(
    store: SqlStore | None,
    judge: "Judge | None",
    run_id: str,
    executor: ThreadPoolExecutor | None = None,
    *,
    retry: StoreRetry | None = None,
    canaries_in_background: bool = False,
) -> "AsyncIterator[JudgingSession | None]":
    """A session of the judge for a run, with the judgements cached in the store; None if there is no judge."""
    if judge is None:
        yield None
        return
    # Most runs have no judge, and need not load these.
    from answerkey.judge.session import open_judging

    cached = None if store is None else RetryingJudgements(store, retry or StoreRetry(0.0))
    async with open_judging(
        judge, run_id=run_id, store=cached, executor=executor, canaries_in_background=canaries_in_background
    ) as session:
        yield session
