"""What callers hand over as a golden set, and the one that is used when they hand over none."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from answerkey.config import Settings
from answerkey.datasets.questions import parse_question, read_questions
from answerkey.errors import InputError, UsageError
from answerkey.plugins import load_object
from answerkey.question import Question, QuestionSet

__all__ = ["QuestionsLike", "golden_set"]

QuestionsLike = str | Path | QuestionSet | Iterable[Question | Mapping[str, Any]]


def golden_set(questions: QuestionsLike | None, settings: Settings) -> QuestionSet:
    """A question set from a path, from objects, from the configuration, or the bundled one."""
    if isinstance(questions, QuestionSet):
        return questions
    if isinstance(questions, str | Path):
        return read_questions(questions)
    if questions is None:
        if settings.questions is not None:
            return read_questions(settings.folder / settings.questions)
        return read_questions(load_object("answerkey_demo:golden_set_path")())
    return _from_objects(questions)


def _from_objects(items: Iterable[Question | Mapping[str, Any]]) -> QuestionSet:
    found: list[Question] = []
    for number, item in enumerate(items, start=1):
        if isinstance(item, Question):
            found.append(item)
            continue
        try:
            found.append(parse_question(item))
        except ValueError as error:
            raise InputError(f"question {number}: {error}") from None
    repeated = len(found) - len({question.id for question in found})
    if repeated:
        raise UsageError("two questions have the same id; give each its own")
    if not found:
        raise UsageError("the golden set holds no question")
    return QuestionSet(questions=tuple(found))
