"""A scored log kept as a run, which can be shown and compared like one that was asked."""

from collections.abc import Iterator, Sequence
from itertools import islice

import msgspec

from answerkey.evaluation.bookkeeping import new_id
from answerkey.model.question import Question, QuestionSet
from answerkey.model.run import Run, StreamedResults
from answerkey.model.trial import Trial
from answerkey.store.sql import SqlStore

_BATCH = 1000


def keep_log(run: Run, store: SqlStore, name: str | None, questions: QuestionSet | None) -> Run:
    """The same run, now in the store. Which questions it has takes memory; its replies do not."""
    if questions is None:
        listed: dict[str, Question] = {}
        for trial in run.results:
            listed.setdefault(trial.question.id, trial.question)
        questions = QuestionSet(questions=tuple(listed.values()), name=run.info.question_set)
    info = msgspec.structs.replace(
        run.info,
        id=new_id(),
        name=name or run.info.name,
        # A log's target is known by its file alone: replies of two logs are never taken for each other's.
        target_hash=run.info.target,
        question_set_hash=questions.hash,
    )
    store.create_run(msgspec.structs.replace(info, status="running", finished_at=None), questions)
    trials = _in_set(run.results, questions)
    while batch := list(islice(trials, _BATCH)):
        store.add(info, batch)
    store.finish_run(info, run.summary)
    return msgspec.structs.replace(run, info=info, results=StreamedResults(lambda: store.results(info)))


def _in_set(results: Sequence[Trial], questions: QuestionSet) -> Iterator[Trial]:
    """The trials at their question's place in the set, each with a number that no other trial of it has."""
    places = {question.id: (place, question) for place, question in enumerate(questions)}
    taken: dict[str, set[int]] = {}
    for trial in results:
        place, question = places[trial.question.id]
        used = taken.setdefault(question.id, set())
        number = trial.number
        while number in used:
            number += 1
        used.add(number)
        yield Trial(question, number, place, trial.replies, trial.scorecard)
