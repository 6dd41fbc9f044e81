"""Recorded replies with a judge: many judgements under way at once, results in the log's order."""

import asyncio
import secrets
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from answerkey.evaluation.judging import judging_on
from answerkey.evaluation.recorded import read_trials, recorded_run
from answerkey.evaluation.spool import Spool
from answerkey.evaluation.waiting import wait_for
from answerkey.judge.configured_judge import Judge
from answerkey.judge.session import JudgingSession
from answerkey.model.question import QuestionSet
from answerkey.model.run import Run
from answerkey.model.tally import summarise_unordered
from answerkey.model.trial import Trial
from answerkey.scorers.grader import Grader
from answerkey.store.sql import SqlStore

__all__ = ["judge_recorded"]

# Replies that are read ahead of the one whose judgement is waited for.
_AHEAD = 2000


def judge_recorded(
    paths: Iterable[str | Path],
    *,
    grader: Grader,
    judge: Judge,
    store: SqlStore | None,
    questions: QuestionSet | None = None,
) -> Run:
    """Grade recorded replies with a judge; the store is only for what the judge said, so that it is paid for once."""
    listed = [Path(path) for path in paths]
    return wait_for(_judge_all(listed, grader, judge, store, questions))


async def _judge_all(
    paths: list[Path], grader: Grader, judge: Judge, store: SqlStore | None, questions: QuestionSet | None
) -> Run:
    spool = Spool()
    trials = 1
    with ThreadPoolExecutor(max_workers=1, thread_name_prefix="answerkey-store") as writer:
        async with judging_on(store, judge, secrets.token_hex(5), writer, beside=True) as judging:
            waiting: deque[asyncio.Task[Trial]] = deque()
            try:
                for trial in read_trials(paths, questions):
                    if judging is not None and judging.failure is not None:
                        break
                    if questions is not None:
                        trials = max(trials, trial.number)
                    waiting.append(asyncio.create_task(_judged(trial, grader, judging)))
                    if len(waiting) >= _AHEAD:
                        _keep(spool, await waiting.popleft())
                while waiting:
                    _keep(spool, await waiting.popleft())
            finally:
                for task in waiting:
                    task.cancel()
                await asyncio.gather(*waiting, return_exceptions=True)
            if judging is not None:
                await judging.checked()
            document = judging.document() if judging is not None else {}
    summary = summarise_unordered(spool.read(), pass_mark=grader.scoring.pass_mark)
    return recorded_run(
        spool, summary, grader=grader, paths=paths, questions=questions, trials=trials, judge=document
    )


async def _judged(trial: Trial, grader: Grader, judging: JudgingSession | None) -> Trial:
    scores = () if judging is None else await judging.judge(trial.question, trial.replies)
    return trial.scored(grader.grade(trial.question, trial.replies, scores))


def _keep(spool: Spool, result: Trial) -> None:
    for _ in spool.write(_one(result)):
        pass


def _one(result: Trial) -> Iterator[Trial]:
    yield result
