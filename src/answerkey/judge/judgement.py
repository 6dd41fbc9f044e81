"""Judgement: what a panel makes of one reply; the median of its judges and samples, or the reason why there is none."""

from collections.abc import Iterable, Mapping, Sequence
from math import fsum
from typing import Any

import msgspec

from answerkey.judge.rubric import LOWEST, TOP, Rubric
from answerkey.judge.verdict import Verdict
from answerkey.model.scorecard import Score, round_score

__all__ = ["JUDGE", "Judgement", "Opinion", "combine", "scores_of", "unjudged", "worthless"]

# The metric's name; each criterion's is this with its name behind.
JUDGE = "judge"


class Opinion(msgspec.Struct, frozen=True):
    """One judge's samples on one reply."""

    model: str
    verdicts: tuple[Verdict, ...]
    # Why samples have no verdict.
    failures: tuple[str, ...] = ()
    # What kind of failure they were: "refused", "unreadable", "unreachable", "budget".
    kinds: tuple[str, ...] = ()

    @property
    def counts(self) -> bool:
        """Whether most of its samples were verdicts."""
        return len(self.verdicts) > len(self.failures)


class Judgement(msgspec.Struct, frozen=True, kw_only=True):
    """What one reply is worth to the judges."""

    # None: it could not be judged.
    value: float | None
    reason: str
    # Criterion → 0 … 1.
    criteria: dict[str, float] = {}
    # Judge → its own value, where it has one.
    by_judge: dict[str, float] = {}
    # Judge → criterion → 0 … 1.
    criteria_by_judge: dict[str, dict[str, float]] = {}
    # Whether all samples of every judge came to the same grades; None with one sample.
    consistent: bool | None = None
    # Why it could not be judged, as a kind.
    kind: str | None = None
    details: dict[str, Any] = {}


def unjudged(reason: str, kind: str) -> Judgement:
    """A reply that could not be judged: unscored, never a zero."""
    return Judgement(value=None, reason=reason, kind=kind)


def worthless(rubric: Rubric) -> Judgement:
    """A null or empty reply: there is nothing to ask a judge about."""
    reason = "there is no text to judge"
    return Judgement(value=0.0, reason=reason, criteria=dict.fromkeys(rubric.weights, 0.0))


def combine(opinions: Sequence[Opinion], rubric: Rubric) -> Judgement:
    """The median over a judge's samples, then over the judges; most of each must have given a verdict."""
    counted = [opinion for opinion in opinions if opinion.counts]
    failures = [
        (kind, f"{opinion.model}: {failure}" if len(opinions) > 1 else failure)
        for opinion in opinions
        for kind, failure in zip(opinion.kinds, opinion.failures, strict=True)
    ]
    if 2 * len(counted) <= len(opinions):
        kind, reason = failures[0]
        return unjudged(reason, kind)
    names = list(rubric.weights)
    by_criterion = {
        opinion.model: {
            name: median(verdict.criteria[name].score for verdict in opinion.verdicts) for name in names
        }
        for opinion in counted
    }
    criteria = {name: _unit(median(grades[name] for grades in by_criterion.values())) for name in names}
    value = weighted(criteria, rubric)
    unanimous = all(
        len({tuple(verdict.criteria[name].score for name in names) for verdict in opinion.verdicts}) == 1
        for opinion in counted
    )
    unit = {
        model: {name: _unit(grade) for name, grade in grades.items()}
        for model, grades in by_criterion.items()
    }
    return Judgement(
        value=value,
        reason="; ".join(f"{name} {_grade(criteria[name])}/{TOP}" for name in names),
        criteria=criteria,
        by_judge={model: weighted(grades, rubric) for model, grades in unit.items()},
        criteria_by_judge=unit,
        consistent=unanimous if any(len(opinion.verdicts) > 1 for opinion in counted) else None,
        details={
            "judges": [_details(opinion) for opinion in counted],
            **({"failures": [reason for _, reason in failures]} if failures else {}),
        },
    )


def median(values: Iterable[float]) -> float:
    """The middle value, or the mean of the two in the middle."""
    ordered = sorted(values)
    half = len(ordered) // 2
    return ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2


def weighted(criteria: Mapping[str, float], rubric: Rubric) -> float:
    """The criteria's weighted mean."""
    return round_score(fsum(rubric.weights[name] * value for name, value in criteria.items()))


def scores_of(judgement: Judgement, rubric: Rubric) -> tuple[Score, ...]:
    """A judgement as scores: the whole, and each criterion beside it."""
    details: dict[str, Any] = {"value": judgement.value, "reason": judgement.reason, **judgement.details}
    whole = Score(JUDGE, judgement.value, judgement.reason, None, details)
    parts = (
        Score(
            f"{JUDGE}_{name}",
            None if judgement.value is None else judgement.criteria.get(name),
            judgement.reason if judgement.value is None else "",
        )
        for name in rubric.weights
    )
    return (whole, *parts)


def _details(opinion: Opinion) -> dict[str, Any]:
    return {
        "model": opinion.model,
        "samples": [
            {
                name: {"score": graded.score, "reason": graded.reason}
                for name, graded in verdict.criteria.items()
            }
            for verdict in opinion.verdicts
        ],
    }


def _unit(grade: float) -> float:
    return (grade - LOWEST) / (TOP - LOWEST)


def _grade(value: float) -> str:
    return f"{LOWEST + value * (TOP - LOWEST):g}"
