"""Rescoring: new scorecards from stored replies; nothing is asked again."""

from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import msgspec

from answerkey.config import JudgeSettings, Scoring, Settings
from answerkey.evaluation.judging import add_stored, judge_for, judging_on
from answerkey.evaluation.progress import Progress, RunningScore, Silent
from answerkey.evaluation.recorder import Recorder
from answerkey.evaluation.waiting import wait_for
from answerkey.evaluation.warnings import run_warnings
from answerkey.model.question import Question, QuestionSet
from answerkey.model.run import Run, RunInfo
from answerkey.model.tally import summarise
from answerkey.model.trial import Trial
from answerkey.scorers.grader import Grader
from answerkey.scorers.plan import make_grader

if TYPE_CHECKING:
    from answerkey.judge.judge import Judge
    from answerkey.store.sql import SqlStore

__all__ = ["kept_judge", "rescore_run", "score_again"]

_BATCH = 500


def rescore_run(
    info: RunInfo,
    store: "SqlStore",
    scoring: Scoring,
    settings: Settings,
    *,
    questions: QuestionSet | None = None,
    judge: JudgeSettings | None = None,
    progress: Progress | None = None,
) -> Run:
    """Score a run's replies anew; with `questions`, against those expectations instead of the stored ones.

    The run's own judge, or `judge` in its place, is asked again only for what it has not said already.
    """
    judge_settings = judge if judge is not None else kept_judge(info)
    asked_judge = judge_for(judge_settings, scoring, settings, concurrency=info.options.get("concurrency"))
    grader = make_grader(scoring, settings, judge=asked_judge)
    changed = msgspec.structs.replace(
        info,
        match=scoring.match,
        weights=scoring.weights,
        directions=grader.lower_is_better,
        pass_mark=scoring.pass_mark,
        scoring_hash=grader.hash,
        question_set_hash=info.question_set_hash if questions is None else questions.hash,
        options={
            **info.options,
            "scoring": msgspec.to_builtins(scoring),
            "judge": msgspec.to_builtins(judge_settings),
        },
        judge={},
    )
    # The run changes only once all new scorecards are in place.
    if questions is None:
        asked: Iterable[Question] = store.questions(info.question_set_hash)
        planned = store.count_questions(info.question_set_hash) * info.repeat
    else:
        asked = questions
        planned = len(questions) * info.repeat
    if asked_judge is None:
        watched = progress or Silent()
        watched.begin(changed, planned=planned, done=0)
        try:
            score_again(store, changed, asked, grader, watched)
        finally:
            watched.end()
    else:
        judged = wait_for(_judge_again(store, changed, asked, grader, asked_judge))
        changed = msgspec.structs.replace(changed, judge=judged)
    store.update_run(changed, questions)
    summary = summarise(store.results(changed), planned=planned, pass_mark=changed.pass_mark)
    store.finish_run(changed, summary)
    return msgspec.structs.replace(store.load_run(changed), warnings=run_warnings(changed, summary))


def kept_judge(info: RunInfo) -> JudgeSettings:
    """The judge that a run was made with."""
    return msgspec.convert(info.options.get("judge", {}), JudgeSettings)


async def _judge_again(
    store: "SqlStore", info: RunInfo, questions: Iterable[Question], grader: Grader, judge: "Judge"
) -> dict[str, Any]:
    writer = ThreadPoolExecutor(max_workers=1, thread_name_prefix="answerkey-store")
    async with judging_on(store, judge, info.id, writer) as judging:
        if judging is None:
            return {}
        recorder = Recorder(store, info, grader, Silent(), judging=judging, writer=writer)
        async with recorder.recording():
            await add_stored(recorder, store, info, questions)
        return judging.document()


def score_again(
    store: "SqlStore",
    info: RunInfo,
    questions: Iterable[Question],
    grader: Grader,
    progress: Progress | None = None,
) -> int:
    """Write scorecards for the stored replies that still count; returns how many there are."""
    store.clear_scorecards(info)
    batch: list[Trial] = []
    running = RunningScore()
    count = 0
    for trial in grader.ahead(_stored_trials(store, info, questions)):
        card = grader.grade(trial.question, trial.replies)
        batch.append(trial.scored(card))
        count += 1
        if progress is not None:
            running.add(card)
            progress.advance(running)
        if len(batch) >= _BATCH:
            store.add(info, batch, with_replies=False)
            batch = []
    store.add(info, batch, with_replies=False)
    return count


def _stored_trials(store: "SqlStore", info: RunInfo, questions: Iterable[Question]) -> Iterator[Trial]:
    for position, question in enumerate(questions):
        for trial, replies in store.trials_of(info, question.ask_hash):
            if trial <= info.repeat:
                yield Trial(question, trial, position, replies)
