"""Truth of a run: computes expectations and checks preconditions before the first question."""

from typing import TYPE_CHECKING, Any

import msgspec

from answerkey.config import Settings
from answerkey.errors import TruthError
from answerkey.model.question import ComputedExpectation, QuestionSet, RunTruth

if TYPE_CHECKING:
    from answerkey.truth.resolve import Resolved


def with_truth(questions: QuestionSet, settings: Settings) -> tuple[QuestionSet, RunTruth | None]:
    """The questions with their computed values; None if nothing was computed or checked.

    Raises TruthError with one line for each value that is missing and each precondition that does not hold.
    """
    is_computed = any(
        True
        for question in questions
        for turn in question.turns or (question,)
        for expectation in (*turn.expected_keywords, *turn.forbidden_keywords)
        if isinstance(expectation, ComputedExpectation)
    )
    if not settings.world and not is_computed:
        return questions, None
    # A run without truth does not load its sources.
    resolved = compute_truth(questions, settings)
    if resolved.problems:
        raise TruthError("\n".join(resolved.problems))
    return resolved.questions, resolved.truth


def compute_truth(questions: QuestionSet, settings: Settings) -> "Resolved":
    """Everything that can be computed and checked, with the problems."""
    from answerkey.truth.resolve import resolve

    return resolve(questions, settings.truth, tuple(settings.world), settings.folder)


def truth_document(resolved: "Resolved") -> dict[str, Any]:
    """The document of `truth --json`."""
    return {
        "world": msgspec.to_builtins(resolved.truth.world),
        "keys": msgspec.to_builtins(resolved.keys),
        "problems": resolved.problems,
    }
