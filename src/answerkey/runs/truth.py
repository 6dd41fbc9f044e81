"""Truth of a run: computes expectations and checks preconditions before the first question."""

from typing import TYPE_CHECKING, Any

import msgspec

from answerkey.config import Settings
from answerkey.errors import ConfigError, TruthError
from answerkey.model.expectation import ComputedExpectation
from answerkey.model.question import Question, QuestionSet
from answerkey.model.truth import RunTruth

if TYPE_CHECKING:
    from answerkey.truth.resolve import Resolved


def with_truth(questions: QuestionSet, settings: Settings) -> tuple[QuestionSet, RunTruth | None]:
    """The questions with their computed values; None if nothing was computed or checked.

    Raises TruthError with one line for each value that is missing and each precondition that does not hold.
    """
    questions = with_row_functions(questions, settings)
    if not settings.world and not any(map(_is_computed, questions)):
        return questions, None
    # A run without truth does not load its sources.
    resolved = compute_truth(questions, settings)
    if resolved.problems:
        raise TruthError("\n".join(resolved.problems))
    return resolved.questions, resolved.truth


def compute_truth(questions: QuestionSet, settings: Settings) -> "Resolved":
    """Everything that can be computed and checked, with the problems."""
    from answerkey.truth.resolve import resolve

    return resolve(
        with_row_functions(questions, settings), settings.truth, tuple(settings.world), settings.folder
    )


def truth_document(resolved: "Resolved") -> dict[str, Any]:
    """The document of `truth --json`."""
    return {
        "world": msgspec.to_builtins(resolved.truth.world),
        "keys": msgspec.to_builtins(resolved.keys),
        "problems": resolved.problems,
    }


def _is_computed(question: Question) -> bool:
    return any(
        isinstance(expectation, ComputedExpectation)
        for turn in question.asks
        for expectation in (*turn.expected_keywords, *turn.forbidden_keywords)
    )


def row_function_fields(settings: Settings) -> frozenset[str]:
    """The fields of golden rows that `[truth.NAME] rows` reads."""
    rows = [source.rows for source in settings.truth.values() if source.rows is not None]
    return frozenset(field for row in rows for field in (row.function, row.args) if field)


def with_row_functions(questions: QuestionSet, settings: Settings) -> QuestionSet:
    """Questions whose rows name a function in fields of their own, with that function as an expectation."""
    named = [(name, source.rows) for name, source in settings.truth.items() if source.rows is not None]
    if not named:
        return questions
    changed = []
    for question in questions:
        for name, rows in named:
            function = question.metadata.get(rows.function)
            if function is None:
                continue
            arguments = question.metadata.get(rows.args, {}) if rows.args else {}
            if not isinstance(function, str) or not isinstance(arguments, dict):
                raise ConfigError(
                    f"{questions.path or questions.name}:{question.line}: {question.id}: {rows.function!r} must be the name "
                    f"of a function and {rows.args!r} an object of its arguments ([truth.{name}] rows)"
                )
            computed = ComputedExpectation(
                method="python", source=name, expression=function, arguments=arguments, must=True
            )
            rest = {
                field: value
                for field, value in question.metadata.items()
                if field not in (rows.function, rows.args)
            }
            question = msgspec.structs.replace(
                question, expected_keywords=(*question.expected_keywords, computed), metadata=rest
            )
        changed.append(question)
    return questions.subset(changed)
