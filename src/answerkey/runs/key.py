"""The answer key of a run: its computed expectations and preconditions, and how many wrong replies it refuses.

Expectations are computed and preconditions checked before the first question. The strength says how much a grade is worth,
and must cost little: a random sample of the questions, wrong replies made from the key alone, only the scorers of the standard,
and once for a golden set under a scoring.
"""

from typing import TYPE_CHECKING, Any

import msgspec

from answerkey.config import Settings
from answerkey.errors import TruthError
from answerkey.model.options import GroundedSettings, Scoring
from answerkey.model.question import ComputedExpectation, QuestionSet, RunTruth
from answerkey.model.run import KeyQuality, RunInfo, Summary
from answerkey.model.scorecard import DEFAULT_WEIGHTS
from answerkey.scorers.grader import make_grader

if TYPE_CHECKING:
    from answerkey.store.sql import SqlStore
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


# Questions that are tried; `audit` tries all.
SAMPLE = 120
# With fewer questions, a share of them says little.
_FEWEST = 5


def with_key_quality(
    summary: Summary, questions: QuestionSet | None, scoring: Scoring, info: RunInfo, store: "SqlStore | None"
) -> Summary:
    """The summary with strength and floor of the key; unchanged where they cannot be measured by the standard's scorers."""
    if questions is None or len(questions) < _FEWEST or not _is_standard(scoring):
        return summary
    before = None if store is None else store.earlier_summary(info)
    if before is not None and before.floor is not None:
        strength, score, floor = before.strength, before.always_wrong_score, before.floor
    else:
        quality = _measure(questions, scoring)
        strength, score, floor = quality.strength, quality.always_wrong_score, quality.floor
    return msgspec.structs.replace(summary, strength=strength, always_wrong_score=score, floor=floor)


def _is_standard(scoring: Scoring) -> bool:
    """Whether neither a judge, nor a model, nor a scorer of the user decides what passes."""
    return (
        scoring.weights.keys() <= DEFAULT_WEIGHTS.keys()
        and not scoring.needs_judge
        and not scoring.matching.model
    )


# Golden set and scoring → what the key refuses. Not the questions themselves: a large set takes more than 100 MB.
_measured: dict[tuple[str, bytes], KeyQuality] = {}
_MOST_REMEMBERED = 8


def _measure(questions: QuestionSet, scoring: Scoring) -> KeyQuality:
    identity = questions.hash, msgspec.json.encode(scoring, order="sorted")
    if identity not in _measured:
        from answerkey.runs.audit import key_quality  # only the first run of a golden set needs it

        # Groundedness is a metric, and its model is slow.
        grader = make_grader(msgspec.structs.replace(scoring, grounded=GroundedSettings()))
        grader.set_spans(False)
        if len(_measured) >= _MOST_REMEMBERED:
            _measured.clear()
        _measured[identity] = key_quality(questions, grader, sample=SAMPLE)
    return _measured[identity]
