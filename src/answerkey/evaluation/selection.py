"""Which questions of a set a run asks: `--where` and `--sample`."""

import random

from answerkey.errors import UsageError
from answerkey.model.question import Question, QuestionSet

__all__ = ["select_questions"]


def select_questions(
    questions: QuestionSet, *, where: tuple[str, ...], sample: int | None, seed: int
) -> QuestionSet:
    """The questions that meet every condition, then a seeded sample of them in the set's order."""
    if not where and sample is None:
        return questions
    chosen = [question for question in questions if all(_meets(question, condition) for condition in where)]
    if not chosen:
        categories = ", ".join(sorted({question.category for question in questions})[:8])
        raise UsageError(f"no question meets {' and '.join(where)}; categories are {categories}")
    if sample is not None and sample < len(chosen):
        kept = set(random.Random(seed).sample(range(len(chosen)), sample))
        chosen = [question for index, question in enumerate(chosen) if index in kept]
    return questions.subset(chosen)


def _meets(question: Question, condition: str) -> bool:
    field, _, wanted = condition.partition("=")
    field, wanted = field.strip(), wanted.strip()
    negated = field.endswith("!")
    field = field.removesuffix("!")
    options = {option.strip() for option in wanted.split(",")}
    return bool(options & _values(question, field)) != negated


def _values(question: Question, field: str) -> set[str]:
    if field in ("tag", "tags"):
        return set(question.tags)
    if field in ("tool", "tools", "expected_tools"):
        return {tool.name for turn in question.asks for tool in turn.expected_tools}
    if field in ("id", "category", "persona"):
        value = getattr(question, field)
    elif field in question.metadata:
        value = question.metadata[field]
    else:
        return set()
    return {str(item) for item in value} if isinstance(value, list) else {str(value)}
