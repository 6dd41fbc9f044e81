"""Which weights of components predict people's verdicts best: non-negative, adding up to 1, with their uncertainty.

The chance that a person likes a reply is modelled as a logistic function of the weighted score, so the weights are the
non-negative coefficients of a logistic regression scaled to add up to 1. Whether they predict better than the weights
in force is judged on replies that the fit has not seen, leaving out whole questions at a time.
"""

import math
from bisect import bisect_left, bisect_right
from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from answerkey.errors import UsageError
from answerkey.stats.paired import Difference, Verdict, paired_difference, verdict_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vector = NDArray[np.float64]

# With fewer verdicts, or fewer of either kind than a third of this, any fit would be noise.
FEWEST = 20
_FOLDS = 5
_BOOTSTRAPS = 300
_RIDGE = 1e-4


class WeightsFit(msgspec.Struct, frozen=True, kw_only=True):
    """What verdicts say about weights."""

    verdicts: int
    questions: int
    # Share of verdicts that are positive.
    positive: float
    current: dict[str, float]
    # Chance that a liked reply scores higher than a disliked one; 0.5 is guessing.
    current_auc: float
    fitted: dict[str, float]
    # 95% of fits to resampled questions lie within.
    fitted_low: dict[str, float]
    fitted_high: dict[str, float]
    # On replies that the fit has not seen.
    fitted_auc: float
    # Log loss per verdict of the current weights minus that of the fitted ones, both on unseen replies.
    gain: Difference | None
    verdict: Verdict
    # Components that never vary: nothing can be said of their weight.
    constant: tuple[str, ...]


def fit_weights(
    components: Sequence[dict[str, float]],
    verdicts: Sequence[float],
    current: dict[str, float],
    *,
    clusters: Sequence[Hashable],
    seed: int = 0,
) -> WeightsFit:
    """Fit weights to verdicts in [0, 1]; `clusters` are the questions, of which several verdicts may come."""
    import numpy as np

    liked = sum(value >= 0.5 for value in verdicts)
    if len(verdicts) < FEWEST or min(liked, len(verdicts) - liked) < FEWEST // 3:
        raise UsageError(
            f"{len(verdicts)} verdicts ({liked} positive) are too few: weights need at least {FEWEST}, "
            f"of which {FEWEST // 3} of either kind"
        )
    names = list(current)
    x = np.array([[row.get(name, math.nan) for name in names] for row in components], dtype=float)
    # A component that could not be scored says neither good nor bad: its mean stands in.
    means = np.nanmean(np.where(np.isnan(x).all(axis=0), 0.0, x), axis=0)
    x = np.where(np.isnan(x), means, x)
    y = np.asarray(verdicts, dtype=float)
    numbers = {cluster: number for number, cluster in enumerate(dict.fromkeys(clusters))}
    groups = np.array([numbers[cluster] for cluster in clusters])
    constant = tuple(name for name, spread in zip(names, np.ptp(x, axis=0), strict=True) if spread < 1e-12)
    if len(constant) == len(names):
        raise UsageError("every reply has the same component scores: they cannot predict any verdict")
    given = np.array([current[name] for name in names])
    _, slopes = _fit(x, y)
    generator = np.random.default_rng(seed)
    spread = _bootstrap(x, y, groups, slopes, generator)
    held_current, held_fitted = _cross_validated(x, y, groups, given, generator)
    losses = [float(a - b) for a, b in zip(_losses(held_current, y), _losses(held_fitted, y), strict=True)]
    gain = paired_difference(losses, units=groups.tolist(), bound=None)
    low, high = np.quantile(spread, (0.025, 0.975), axis=0)
    return WeightsFit(
        verdicts=len(verdicts),
        questions=len(numbers),
        positive=float(y.mean()),
        current=dict(current),
        current_auc=area_under_curve((x @ given).tolist(), verdicts),
        fitted=_named(names, _weights(slopes)),
        fitted_low=_named(names, low),
        fitted_high=_named(names, high),
        fitted_auc=area_under_curve(held_fitted.tolist(), verdicts),
        gain=gain,
        verdict=verdict_of(gain),
        constant=constant,
    )


def area_under_curve(scores: Sequence[float], verdicts: Sequence[float]) -> float:
    """Chance that a liked reply scores higher than a disliked one, ties counted half (Mann and Whitney)."""
    liked, disliked = (
        sorted(score for score, value in zip(scores, verdicts, strict=True) if (value >= 0.5) == wanted)
        for wanted in (True, False)
    )
    if not liked or not disliked:
        return math.nan
    # How many disliked ones lie below each liked one, and how many beside it.
    reached = sum(bisect_right(disliked, score + 1e-12) for score in liked)
    beyond = sum(bisect_left(disliked, score - 1e-12) for score in liked)
    return (reached + beyond) / 2.0 / (len(liked) * len(disliked))


def _named(names: Sequence[str], values: Any) -> dict[str, float]:
    return {name: round(float(value), 6) for name, value in zip(names, values, strict=True)}


def _weights(slopes: "Vector") -> "Vector":
    total = slopes.sum()
    # No component helps: any weights predict as badly as any others.
    return slopes / total if total > 1e-9 else slopes * 0.0 + 1.0 / len(slopes)


def _fit(x: "Vector", y: "Vector", start: "Vector | None" = None, steps: int = 400) -> "tuple[float, Vector]":
    """Logistic regression with non-negative slopes, by accelerated projected gradient."""
    import numpy as np

    n, k = x.shape
    centre = x.mean(axis=0)
    design = np.hstack([np.ones((n, 1)), x - centre])
    # The steepest curvature of the loss is a quarter of the design's.
    step = 1.0 / (0.25 * float(np.linalg.eigvalsh(design.T @ design / n)[-1]) + _RIDGE)
    ridge = np.array([0.0] + [_RIDGE] * k)
    beta = np.zeros(k + 1) if start is None else np.concatenate([[0.0], start])
    ahead, momentum = beta.copy(), 1.0
    for _ in range(steps):
        predicted = 1.0 / (1.0 + np.exp(-np.clip(design @ ahead, -35.0, 35.0)))
        following = ahead - step * (design.T @ (predicted - y) / n + ridge * ahead)
        following[1:] = np.maximum(following[1:], 0.0)
        grown = (1.0 + math.sqrt(1.0 + 4.0 * momentum * momentum)) / 2.0
        ahead = following + (momentum - 1.0) / grown * (following - beta)
        if float(np.abs(following - beta).max()) < 1e-7:
            beta = following
            break
        beta, momentum = following, grown
    return float(beta[0] - beta[1:] @ centre), beta[1:]


def _bootstrap(
    x: "Vector", y: "Vector", groups: "NDArray[np.int64]", slopes: "Vector", generator: "np.random.Generator"
) -> "Vector":
    """Weights fitted to resampled questions."""
    import numpy as np

    members = [np.flatnonzero(groups == group) for group in range(int(groups.max()) + 1)]
    found = []
    for _ in range(_BOOTSTRAPS):
        drawn = np.concatenate([members[i] for i in generator.integers(0, len(members), len(members))])
        found.append(_weights(_fit(x[drawn], y[drawn], start=slopes, steps=150)[1]))
    return np.array(found)


def _cross_validated(
    x: "Vector", y: "Vector", groups: "NDArray[np.int64]", given: "Vector", generator: "np.random.Generator"
) -> "tuple[Vector, Vector]":
    """Predicted chances for replies left out of the fit: with the given weights, and with fitted ones."""
    import numpy as np

    count = int(groups.max()) + 1
    fold_of = generator.permutation(count) % min(_FOLDS, count)
    held_given, held_fitted = np.zeros(len(y)), np.zeros(len(y))
    for fold in range(int(fold_of.max()) + 1):
        out = fold_of[groups] == fold
        for design, held in ((x @ given[:, None], held_given), (x, held_fitted)):
            intercept, slopes = _fit(design[~out], y[~out])
            held[out] = 1.0 / (1.0 + np.exp(-np.clip(intercept + design[out] @ slopes, -35.0, 35.0)))
    return held_given, held_fitted


def _losses(predicted: "Vector", y: "Vector") -> "Vector":
    import numpy as np

    safe = np.clip(predicted, 1e-6, 1.0 - 1e-6)
    losses: Vector = -(y * np.log(safe) + (1.0 - y) * np.log(1.0 - safe))
    return losses
