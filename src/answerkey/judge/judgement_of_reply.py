"""Judgement: what a panel makes of one reply; the median of its judges and samples, or the reason why there is none."""

from collections import Counter
from collections.abc import Mapping, Sequence
from math import fsum
from statistics import median
from typing import Any

import msgspec

from answerkey.judge.rubric import Rubric
from answerkey.judge.verdict import UnjudgedError, Verdict
from answerkey.model.scorecard import Score, round_score
from answerkey.stats.agreement import krippendorff_alpha

# The metric's name; each criterion's is this with its name behind.
JUDGE = "judge"


class Judgement(msgspec.Struct, frozen=True, kw_only=True):
    """What one reply is worth to the judges."""

    # None: it could not be judged.
    value: float | None
    reason: str
    # Criterion → 0 … 1.
    criteria: dict[str, float] = {}
    # Judge → its own value under JUDGE, and that of each criterion, 0 … 1.
    by_judge: dict[str, dict[str, float]] = {}
    # Whether all samples of every judge came to the same grades; None with one sample.
    consistent: bool | None = None
    # Why it could not be judged, as a kind.
    kind: str | None = None
    details: dict[str, Any] = {}


def worthless(rubric: Rubric) -> Judgement:
    """A null or empty reply: there is nothing to ask a judge about."""
    reason = "there is no text to judge"
    return Judgement(value=0.0, reason=reason, criteria=dict.fromkeys(rubric.weights, 0.0))


def combine(outcomes: Mapping[str, Sequence[Verdict | UnjudgedError]], rubric: Rubric) -> Judgement:
    """The median over a judge's samples, then over the judges; most of each must have given a verdict.

    Without that the reply is unscored, never a zero.
    """
    verdicts = {model: [one for one in said if isinstance(one, dict)] for model, said in outcomes.items()}
    counted = {model: found for model, found in verdicts.items() if 2 * len(found) > len(outcomes[model])}
    failures = [
        (f"{model}: {one}" if len(outcomes) > 1 else str(one), one.kind)
        for model, said in outcomes.items()
        for one in said
        if isinstance(one, UnjudgedError)
    ]
    if 2 * len(counted) <= len(outcomes):
        return Judgement(value=None, reason=failures[0][0], kind=failures[0][1])
    by_judge = {
        model: {
            name: rubric.share_of(median(verdict[name].mean for verdict in found)) for name in rubric.weights
        }
        for model, found in counted.items()
    }
    criteria = {name: median(given[name] for given in by_judge.values()) for name in rubric.weights}
    details: dict[str, Any] = {
        "judges": [
            {"model": model, "samples": msgspec.to_builtins(found, str_keys=True)}
            for model, found in counted.items()
        ]
    }
    if failures:
        details["failures"] = [reason for reason, _ in failures]
    unanimous = all(verdict == found[0] for found in _grades(counted) for verdict in found)
    return Judgement(
        value=weighted(criteria, rubric),
        reason="; ".join(
            f"{name} {round(rubric.grade_of(value), 2):g}/{rubric.top}" for name, value in criteria.items()
        ),
        criteria=criteria,
        by_judge={model: {JUDGE: weighted(given, rubric), **given} for model, given in by_judge.items()},
        consistent=unanimous if any(len(found) > 1 for found in counted.values()) else None,
        details=details,
    )


def _grades(verdicts: Mapping[str, Sequence[Verdict]]) -> list[list[dict[str, int]]]:
    """Each judge's verdicts without their reasons."""
    return [
        [{name: graded.score for name, graded in verdict.items()} for verdict in found]
        for found in verdicts.values()
    ]


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


class JudgementCounts:
    """What the judgements of a run come to: how many there are, why others are not, and how far judges agree."""

    def __init__(self, models: Sequence[str]) -> None:
        self._models = models
        self._judged = 0
        # Kind of reason → how many were not judged for it, and its first wording.
        self._unscored: dict[str, dict[str, Any]] = {}
        self._consistent: Counter[bool] = Counter()
        # Of a panel: what is graded, and by whom → its grades, item by item; None where it gave none.
        self._ratings: dict[str, dict[str, list[float | None]]] = {}

    def add(self, judgement: Judgement) -> None:
        """Count one judgement."""
        if judgement.value is None:
            why = {"count": 0, "reason": judgement.reason}
            self._unscored.setdefault(judgement.kind or "unreadable", why)["count"] += 1
            return
        self._judged += 1
        if judgement.consistent is not None:
            self._consistent[judgement.consistent] += 1
        if len(self._models) > 1 and judgement.by_judge:
            for name in (JUDGE, *judgement.criteria):
                ratings = self._ratings.setdefault(name, {model: [] for model in self._models})
                for model, given in ratings.items():
                    given.append(judgement.by_judge.get(model, {}).get(name))

    def document(self) -> dict[str, Any]:
        """The numbers of the run document's `judge` section."""
        repeated = self._consistent.total()
        alphas = {name: krippendorff_alpha(list(ratings.values())) for name, ratings in self._ratings.items()}
        agreement = {name: None if alpha is None else round(alpha, 6) for name, alpha in alphas.items()}
        return {
            "judged": self._judged,
            "unscored": sum(why["count"] for why in self._unscored.values()),
            "unscored_because": self._unscored,
            "self_consistency": round(self._consistent[True] / repeated, 9) if repeated else None,
            "agreement": agreement or None,
        }
