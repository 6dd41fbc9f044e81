"""Planning: the power of the verdict's own test, simulated on pilot units, and where the noise of scores is.

A simulated experiment draws units from the pilot, weighted so that their mean is the wanted difference and as little else as
possible changes: exponential tilting (Efron 1981). To them come one unit that gains a component, so that a pilot in which little
changed is not taken to rule large changes out, and one that does not change, for a pilot in which everything did. Then the
sign-flip test decides as it would.
"""

import math
from collections.abc import Mapping, Sequence

import msgspec
import numpy as np
import numpy.typing as npt

from answerkey.stats.distributions import normal_quantile
from answerkey.stats.sign_flip import rows_at_most_zero

Floats = npt.NDArray[np.float64]

# Simulated experiments for each figure: so many units are drawn for it. Power is known to a point for up to a hundred.
_UNITS_DRAWN = 200_000
_FEWEST_TRIALS, _MOST_TRIALS = 800, 4000
# Numbers that are drawn at once.
_AT_ONCE = 2_000_000
# With more units the sign-flip test is its normal limit, and so is the plan.
_LIMIT_FROM = 2000
# More units than this are not a plan.
_MOST = 100_000_000
# What a unit may gain that the pilot showed no change of: the weight of a component.
_JUMP = 0.4
# Halvings of the interval that the tilt is sought in.
_HALVINGS = 60


class Pilot:
    """Units of differences to draw from: their sums and sizes."""

    def __init__(self, sums: Floats, sizes: Floats, *, level: float = 0.95, seed: int = 0) -> None:
        # Turned so that the mean is a gain.
        self.sums, self.sizes = (sums if sums.sum() >= 0.0 else -sums), sizes
        self.questions = float(sizes.mean())
        self._tail = (1.0 - level) / 2.0
        self._source = np.random.default_rng(seed)
        self._jump = max(float(abs(sums / sizes).max()), _JUMP)
        # Chances of the units under the tilt for a difference, summed up; the last one asked for.
        self._tilted: tuple[float, Floats] = (math.nan, np.zeros(0))

    def power(self, units: int, difference: float) -> float:
        """The chance that so many units show this mean difference."""
        if units < 2:
            return 0.0
        if units > _LIMIT_FROM:
            score = self._effect(difference) * math.sqrt(units) + normal_quantile(self._tail)
            return 0.5 * math.erfc(-score / math.sqrt(2.0))
        trials = min(max(_UNITS_DRAWN // units, _FEWEST_TRIALS), _MOST_TRIALS)
        found, at_once = 0, max(1, _AT_ONCE // units)
        for begin in range(0, trials, at_once):
            rows = self._draw(min(at_once, trials - begin), units, abs(difference))
            found += int(np.count_nonzero(rows_at_most_zero(rows) < self._tail))
        return found / trials

    def units_needed(self, difference: float, power: float) -> int | None:
        """The units that show this difference with this power; None if no feasible number does."""
        wanted = normal_quantile(power) - normal_quantile(self._tail)
        units = max(5, math.ceil((wanted / self._effect(difference)) ** 2))
        # Of the sizes tried, the nearest to the power on either side.
        fewer, more = 4, _MOST
        for _ in range(12):
            if units > _LIMIT_FROM:
                break
            found = self.power(units, difference)
            fewer, more = (units, more) if found < power else (fewer, units)
            if more - fewer <= max(1, fewer // 50):
                break
            rate = (normal_quantile(min(max(found, 0.02), 0.98)) - normal_quantile(self._tail)) / math.sqrt(
                units
            )
            units = min(max(math.ceil((wanted / rate) ** 2), fewer + 1), more - 1, 4 * units)
        units = more if more < _MOST else units
        return units if units < _MOST else None

    def detectable(self, units: int, power: float) -> float | None:
        """The smallest difference that so many units show with this power; None if none does."""
        low, high = 0.0, 1.0
        if self.power(units, high) < power:
            return None
        while high - low > 0.002:
            middle = (low + high) / 2.0
            low, high = (middle, high) if self.power(units, middle) < power else (low, middle)
        return high

    def spread(self, difference: float, *, draws: int = 400) -> tuple[float, float]:
        """How many times fewer or more units another pilot of this size would have asked for, nineteen times in twenty."""
        picks = self._source.integers(0, len(self.sums), (draws, len(self.sums)))
        squares = (self.sums[picks] ** 2).mean(axis=1) / self.sizes[picks].mean(axis=1) ** 2
        low, high = np.quantile(squares, (0.025, 0.975)).tolist()
        here = float((self.sums**2).mean()) / self.questions**2
        # One unit more may have changed, which a pilot without changes would not show.
        high += self._jump**2 / len(self.sums)
        # The variance is what the square of the difference leaves, and never nothing.
        variances = [max(square - difference**2, square / 10.0) for square in (low, here, high)]
        # Where the added units make the difference they also make the variance, whatever the pilot.
        added = max(difference * (_JUMP - difference) - variances[1], 1e-9)
        return (variances[0] + added) / (variances[1] + added), (variances[2] + added) / (
            variances[1] + added
        )

    def _chances(self, difference: float, excess: Floats) -> Floats:
        """The chances of the pilot's units, summed up, under which they exceed the wanted difference by nothing on average."""
        if self._tilted[0] != difference:
            low, high = (bound / float(abs(excess).max()) for bound in (-500.0, 500.0))
            for _ in range(_HALVINGS):
                middle = (low + high) / 2.0
                weights = np.exp(middle * excess - (middle * excess).max())
                low, high = (middle, high) if float(weights @ excess) < 0.0 else (low, middle)
            self._tilted = difference, np.cumsum(weights / weights.sum())
        return self._tilted[1]

    def _effect(self, difference: float) -> float:
        """The difference in standard deviations of one unit, as one draw of the simulation has it."""
        rows = self._draw(1, 20_000, abs(difference))[0]
        return max(float(rows.mean()), 1e-12) / max(float(rows.std()), 1e-12)

    def _draw(self, trials: int, units: int, difference: float) -> Floats:
        """Sums of so many units in so many experiments."""
        sums = np.append(self.sums, (_JUMP * self.questions, 0.0))
        excess = sums - difference * np.append(self.sizes, (self.questions, self.questions))
        if float(excess.max()) <= 0.0:
            # Larger than any change: every unit shows it.
            return np.full((trials, units), difference * self.questions)
        chances = self._chances(difference, excess)
        picks = np.searchsorted(chances, self._source.random((trials, units)))
        return np.round(sums[np.minimum(picks, len(sums) - 1)], 9)


class VarianceSplit(msgspec.Struct, frozen=True, kw_only=True):
    """Where the variance of scores comes from."""

    # Variance of the questions' true means, and of the trials of one question.
    between: float
    within: float
    questions: int
    trials: int
    # Questions whose trials differ, most unstable first: (id, standard deviation over its trials).
    flaky: tuple[tuple[str, float], ...]


def split_variance(trials: Mapping[str, Sequence[float]]) -> VarianceSplit | None:
    """Split the variance of scores into between questions and between repeats (one-way random effects).

    None for fewer than two questions. Without repeats everything counts as between questions.
    """
    groups = {name: scores for name, scores in trials.items() if scores}
    k = len(groups)
    n = sum(len(scores) for scores in groups.values())
    if k < 2:
        return None
    means = {name: math.fsum(scores) / len(scores) for name, scores in groups.items()}
    overall = math.fsum(math.fsum(scores) for scores in groups.values()) / n
    inside = {name: math.fsum((x - means[name]) ** 2 for x in scores) for name, scores in groups.items()}
    within = math.fsum(inside.values()) / (n - k) if n > k else 0.0
    between_ms = math.fsum(len(scores) * (means[name] - overall) ** 2 for name, scores in groups.items()) / (
        k - 1
    )
    # The average number of trials, as unbalanced data need it.
    typical = (n - sum(len(scores) ** 2 for scores in groups.values()) / n) / (k - 1)
    between = max(0.0, (between_ms - within) / typical)
    flaky = sorted(
        (
            (name, math.sqrt(inside[name] / (len(scores) - 1)))
            for name, scores in groups.items()
            if len(scores) > 1 and inside[name] > 1e-12
        ),
        key=lambda item: (-item[1], item[0]),
    )
    return VarianceSplit(between=between, within=within, questions=k, trials=n, flaky=tuple(flaky))
