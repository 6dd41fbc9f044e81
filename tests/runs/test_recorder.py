"""Recorder: whatever happens at the end of a run, what was asked is kept or the failure is told."""

import asyncio
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import answerkey
import answerkey_demo
from answerkey.config import Settings
from answerkey.errors import StoreError
from answerkey.model.options import Scoring
from answerkey.model.question import Question, QuestionSet
from answerkey.model.reply import Reply
from answerkey.model.run import RunInfo
from answerkey.model.scorecard import Trial
from answerkey.protocols import Progress
from answerkey.runs.recorder import Recorder
from answerkey.scorers.grader import make_grader
from answerkey.store import open_store
from answerkey.store.sql import SqlStore

QUESTIONS = QuestionSet(
    questions=tuple(
        Question(id=f"q{n}", question=f"Number {n}?", expected_keywords=(str(n),)) for n in range(5)
    ),
    name="numbers",
)
GRADER = make_grader(Scoring(), Settings())


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqlStore]:
    with open_store(f"sqlite:///{tmp_path / 'runs.db'}") as opened:
        yield opened


def begun(store: SqlStore) -> RunInfo:
    info = RunInfo(
        id="0123456789",
        name="numbers",
        status="running",
        created_at="2026-01-01T00:00:00.000000+00:00",
        target="none",
        target_hash="",
        question_set=QUESTIONS.name,
        question_set_hash=QUESTIONS.hash,
        weights=Scoring().weights,
        scoring_hash=GRADER.hash,
    )
    store.create_run(info, QUESTIONS)
    return info


def exchanges() -> list[Trial]:
    return [
        Trial(question, 1, position, (Reply(text=str(position)),))
        for position, question in enumerate(QUESTIONS)
    ]


class HeldUp(ThreadPoolExecutor):
    """One writing thread that is busy with something else until it is told to go on."""

    def __init__(self) -> None:
        super().__init__(max_workers=1)
        self.go_on = threading.Event()
        self.handed_over = asyncio.Event()
        super().submit(self.go_on.wait)

    def submit(self, *given: Any, **named: Any) -> Future[Any]:
        self.handed_over.set()
        return super().submit(*given, **named)


def test_a_batch_that_still_waits_for_the_writing_thread_is_kept_when_the_run_ends(store: SqlStore) -> None:
    info = begun(store)

    async def record() -> None:
        writer = HeldUp()
        recorder = Recorder(store, info, GRADER, Progress(), executor=writer)
        async with recorder.recording():
            for exchange in exchanges():
                await recorder.add(exchange)
            await writer.handed_over.wait()
            threading.Timer(0.1, writer.go_on.set).start()

    asyncio.run(record())
    assert [result.question.id for result in store.results(info)] == ["q0", "q1", "q2", "q3", "q4"]


def test_an_interrupted_run_keeps_the_batch_that_was_being_handed_over(store: SqlStore) -> None:
    info = begun(store)

    async def record() -> None:
        writer = HeldUp()
        recorder = Recorder(store, info, GRADER, Progress(), executor=writer)
        async with recorder.recording():
            await recorder.add(exchanges()[0])
            await writer.handed_over.wait()
            threading.Timer(0.1, writer.go_on.set).start()
            raise asyncio.CancelledError

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(record())
    assert [result.question.id for result in store.results(info)] == ["q0"]


class FailsOnce:
    """A store whose disk has one bad moment."""

    def __init__(self, store: SqlStore) -> None:
        self.store = store
        self.failed = threading.Event()

    def add(self, info: RunInfo, graded: Sequence[Trial], *, with_replies: bool = True) -> None:
        if not self.failed.is_set():
            self.failed.set()
            raise StoreError("the disk is full")
        self.store.add(info, graded, with_replies=with_replies)

    def add_replies(self, info: RunInfo, replies: Sequence[Trial]) -> None:
        self.store.add_replies(info, replies)


def test_a_failed_write_ends_the_run_and_is_tried_once_more(store: SqlStore) -> None:
    info = begun(store)
    failing = FailsOnce(store)

    async def record() -> None:
        recorder = Recorder(failing, info, GRADER, Progress())  # type: ignore[arg-type]  # only what is written to
        async with recorder.recording():
            given = iter(exchanges())
            await recorder.add(next(given))
            await asyncio.to_thread(failing.failed.wait)
            await asyncio.sleep(0.05)
            for exchange in given:
                await recorder.add(exchange)

    with pytest.raises(StoreError, match="disk is full"):
        asyncio.run(record())
    assert [result.question.id for result in store.results(info)] == ["q0"]


def test_what_is_reported_from_memory_is_what_the_store_has(tmp_path: Path) -> None:
    golden = answerkey_demo.golden_set_path()
    path = str(tmp_path / "runs.db")
    run = answerkey.evaluate(str(golden), target="demo:flaky?rate=0.3&seed=5", store=path)
    with open_store(path) as opened:
        stored = opened.load_run(opened.find_run("latest"))
        assert stored.to_dict() == run.to_dict()
        assert tuple(stored.results) == tuple(run.results)
