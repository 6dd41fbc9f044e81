"""Parts of a run: one question's results, or those of the questions that failed."""

from collections.abc import Iterator

import msgspec

from answerkey.errors import UnknownNameError
from answerkey.model.run import Run, StreamedResults
from answerkey.model.trial import Trial
from answerkey.report.view import QuestionView, brief_questions

__all__ = ["failures_of", "only_failures", "only_question"]


def failures_of(run: Run) -> Iterator[QuestionView]:
    """The questions that failed, in the set's order."""
    return (question for question, _ in brief_questions(run) if not question.passed)


def only_failures(run: Run) -> Run:
    """The run with the results of the questions that failed; its summary stays that of the whole."""

    def read() -> Iterator[Trial]:
        for question, trials in brief_questions(run):
            if not question.passed:
                yield from trials

    return msgspec.structs.replace(run, results=StreamedResults(read))


def only_question(run: Run, question_id: str) -> Run:
    """The run with one question's results."""
    found = [result for result in run.results if result.question.id == question_id]
    if not found:
        raise UnknownNameError(
            f"no question {question_id!r} in run {run.info.id}; `answerkey show {run.info.id} --failures` lists ids"
        )
    return msgspec.structs.replace(run, results=found)
