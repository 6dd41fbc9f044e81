"""Rescoring: new scorecards from stored replies; nothing is asked again."""

from collections.abc import Iterable

import msgspec

from answerkey.config import Scoring, Settings
from answerkey.evaluation.warnings import run_warnings
from answerkey.protocols import Exchange, Graded, Task
from answerkey.question import Question, QuestionSet
from answerkey.run import Run, RunInfo
from answerkey.scorers.grader import Grader
from answerkey.scorers.plan import make_grader
from answerkey.store.sql import SqlStore
from answerkey.tally import summarise

__all__ = ["rescore_run", "score_again"]

_BATCH = 500


def rescore_run(
    info: RunInfo,
    store: SqlStore,
    scoring: Scoring,
    settings: Settings,
    *,
    questions: QuestionSet | None = None,
) -> Run:
    """Score a run's replies anew; with `questions`, against those expectations instead of the stored ones."""
    grader = make_grader(scoring, settings)
    changed = msgspec.structs.replace(
        info,
        match=scoring.match,
        weights=scoring.weights,
        pass_mark=scoring.pass_mark,
        scoring_hash=grader.hash,
        question_set_hash=info.question_set_hash if questions is None else questions.hash,
        options={**info.options, "scoring": msgspec.to_builtins(scoring)},
    )
    # The run changes only once all new scorecards are in place.
    if questions is None:
        asked: Iterable[Question] = store.questions(info.question_set_hash)
        planned = store.count_questions(info.question_set_hash) * info.repeat
    else:
        asked = questions
        planned = len(questions) * info.repeat
    score_again(store, changed, asked, grader)
    store.update_run(changed, questions)
    summary = summarise(store.results(changed), planned=planned, pass_mark=changed.pass_mark)
    store.finish_run(changed, summary)
    return msgspec.structs.replace(store.load_run(changed), warnings=run_warnings(changed, summary))


def score_again(store: SqlStore, info: RunInfo, questions: Iterable[Question], grader: Grader) -> int:
    """Write scorecards for the stored replies that still count; returns how many there are."""
    store.clear_scorecards(info)
    batch: list[Graded] = []
    count = 0
    for position, question in enumerate(questions):
        for trial, replies in store.trials_of(info, question.ask_hash):
            if trial > info.repeat:
                continue
            card = grader.grade(question, replies)
            batch.append(Graded(Exchange(Task(question, trial, position), replies), card))
            count += 1
        if len(batch) >= _BATCH:
            store.add(info, batch, with_replies=False)
            batch = []
    store.add(info, batch, with_replies=False)
    return count
