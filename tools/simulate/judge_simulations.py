"""A judge of known confusion: how often the corrected rate, and the corrected difference, hold the truth."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from simulated_shares import format_share

from answerkey.stats.paired import (
    JudgedSample,
    prediction_powered_difference,
    prediction_powered_mean,
)

__all__ = ["JUDGES", "coverage_of_corrections", "judged_sections"]

# Of right replies passed, of wrong ones failed.
JUDGES = {"good": (0.95, 0.9), "lenient": (0.98, 0.6), "harsh": (0.75, 0.95), "poor": (0.7, 0.6)}
# How right the two versions are, and which share of questions they share their luck on.
_BASE, _CANDIDATE, _LINKED = 0.7, 0.8, 0.5


def _judged(
    right: npt.NDArray[np.bool_], judge: tuple[float, float], labelled: int, source: np.random.Generator
) -> JudgedSample:
    """A run of replies, some of which, drawn at random, are labelled."""
    passes = source.random(len(right)) < np.where(right, judge[0], 1 - judge[1])
    order = source.permutation(len(right))
    known, rest = order[:labelled], order[labelled:]
    return JudgedSample(
        right[known].astype(float).tolist(),
        passes[known].astype(float).tolist(),
        known.tolist(),
        passes[rest].astype(float).tolist(),
        rest.tolist(),
    )


def coverage_of_corrections(
    judge: tuple[float, float], replies: int, labelled: int, trials: int, source: np.random.Generator
) -> tuple[float, float, float]:
    """Shares of the trials in which the corrected rate and difference held the truth; and the judge's own rate ± 2 errors."""
    held = np.zeros(3)
    for _ in range(trials):
        luck = source.random(replies)
        other = np.where(source.random(replies) < _LINKED, luck, source.random(replies))
        base = _judged(luck < _BASE, judge, labelled, source)
        candidate = _judged(other < _CANDIDATE, judge, labelled, source)
        rate = prediction_powered_mean(candidate)
        change = prediction_powered_difference(base, candidate)
        assert rate is not None
        assert change is not None
        raw = np.array([*candidate.judged, *candidate.rest])
        held += (
            rate.interval.low <= _CANDIDATE <= rate.interval.high,
            change.interval.low <= _CANDIDATE - _BASE <= change.interval.high,
            abs(raw.mean() - _CANDIDATE) <= 2 * raw.std() / np.sqrt(replies),
        )
    rates = held / trials
    return float(rates[0]), float(rates[1]), float(rates[2])


def judged_sections(trials: int, _sizes: Sequence[int], source: np.random.Generator) -> None:
    """A table of the coverage for each judge."""
    print("\n### Corrected by labels\n")
    print("| judge | replies | labelled | corrected rate | corrected difference | the judge's own rate |")
    print("|---|---|---|---|---|---|")
    for name, judge in JUDGES.items():
        for replies, labelled in ((200, 50), (500, 100), (1000, 200)):
            found = coverage_of_corrections(judge, replies, labelled, trials, source)
            print(
                f"| {name} | {replies} | {labelled} | "
                + " | ".join(format_share(share, trials) for share in found)
                + " |"
            )
