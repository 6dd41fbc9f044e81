"""A scored log kept as a run, which can be shown and compared like one that was asked."""

from collections.abc import Iterator, Sequence
from itertools import count, islice

import msgspec

from answerkey.model.question import Question, QuestionSet
from answerkey.model.run import Run, StreamedResults
from answerkey.model.scorecard import Trial
from answerkey.runs.stored import new_run_id
from answerkey.store.sql import SqlStore

_BATCH = 1000


def keep_log(run: Run, store: SqlStore, name: str | None, questions: QuestionSet | None) -> Run:
    """The same run, now in the store. Which questions and numbers it has takes memory; its replies do not."""
    listed = {} if questions is None else {question.id: question for question in questions}
    # Which trial numbers a question's replies have.
    told: dict[str, set[int]] = {}
    for trial in run.results:
        listed.setdefault(trial.question.id, trial.question)
        told.setdefault(trial.question.id, set()).add(trial.number)
    # Rows may bring questions that the golden set does not have.
    if questions is None or len(listed) > len(questions):
        questions = QuestionSet(questions=tuple(listed.values()), name=run.info.question_set)
    info = msgspec.structs.replace(
        run.info,
        id=new_run_id(),
        name=name or run.info.name,
        # A log's target is known by its file alone: replies of two logs are never taken for each other's.
        target_hash=run.info.target,
        question_set_hash=questions.hash,
    )
    store.create_run(msgspec.structs.replace(info, status="running", finished_at=None), questions)
    trials = _in_set(run.results, questions, told)
    while batch := list(islice(trials, _BATCH)):
        store.add(info, batch)
    store.finish_run(info, run.summary)
    return msgspec.structs.replace(run, info=info, results=StreamedResults(lambda: store.results(info)))


def _in_set(results: Sequence[Trial], questions: QuestionSet, told: dict[str, set[int]]) -> Iterator[Trial]:
    """The trials at their question's place in the set; a number that stands twice stays with its first, since the store would
    lose the others, and these get the next that no reply has."""
    places: dict[str, tuple[int, Question]] = {
        question.id: (place, question) for place, question in enumerate(questions)
    }
    used: dict[str, set[int]] = {}
    free: dict[str, Iterator[int]] = {}
    for trial in results:
        place, question = places[trial.question.id]
        number, known = trial.number, used.setdefault(question.id, set())
        if number in known:
            others = free.setdefault(question.id, count(1))
            number = next(other for other in others if other not in told[question.id])
        known.add(number)
        yield Trial(question, number, place, trial.replies, trial.scorecard)
