"""The power of the sign-flip test, simulated on pilot units, and the variance of scores within and between questions.

A simulated experiment draws units from the pilot. By default they are weighted so that their mean is the assumed difference and
as little else as possible changes (exponential tilting, Efron 1981): if all changes of the pilot go one way, so do these. With
`both_ways`, as many units change, and by as much, as in the pilot, and the directions are drawn so that the mean is the assumed
difference. Two units are added to the pilot: one that gains a component, so that a
pilot with few changes does not rule out large ones, and one without a change, for a pilot in which every unit changed.
"""

import math
from collections.abc import Mapping, Sequence

import msgspec
import numpy as np
import numpy.typing as npt

from answerkey.stats.distributions import normal_quantile
from answerkey.stats.paired import paired_difference, verdict_of
from answerkey.stats.sign_flip import rows_at_most_zero

Floats = npt.NDArray[np.float64]

# Units drawn in the simulations of one figure. For up to a hundred units, power is accurate to one point.
_UNITS_DRAWN = 200_000
_FEWEST_TRIALS, _MOST_TRIALS = 800, 4000
# Numbers drawn in one batch.
_BATCH = 2_000_000
# With more units, the test's normal limit is used.
_LIMIT_FROM = 2000
# More units are not feasible.
_MAX_UNITS = 100_000_000
# The gain of the added unit: the weight of a component.
_JUMP = 0.4
# Bisection steps for the tilt.
_HALVINGS = 60


class Pilot:
    """Units to draw from: sums and sizes of their differences."""

    def __init__(
        self, sums: Floats, sizes: Floats, *, level: float = 0.95, seed: int = 0, both_ways: bool = False
    ) -> None:
        self._both_ways = both_ways
        # Negated if necessary, so that the mean is a gain.
        self.sums, self.sizes = (sums if sums.sum() >= 0.0 else -sums), sizes
        self.questions = float(sizes.mean())
        self._tail = (1.0 - level) / 2.0
        self._seed = seed
        self._jump = max(float(abs(sums / sizes).max()), _JUMP)
        # The last difference, and the probabilities of the units under its tilt.
        self._tilted: tuple[float, Floats] = (math.nan, np.zeros(0))

    def _source(self, *of: float) -> np.random.Generator:
        """Random numbers of one figure: the same, whatever else was computed before."""
        return np.random.default_rng([self._seed, *(round(1e9 * abs(number)) for number in of)])

    def power(self, units: int, difference: float) -> float:
        """Return the probability that `units` units show this mean difference."""
        if units < 2:
            return 0.0
        if units > _LIMIT_FROM:
            score = self._effect(difference) * math.sqrt(units) + normal_quantile(self._tail)
            return 0.5 * math.erfc(-score / math.sqrt(2.0))
        trials = min(max(_UNITS_DRAWN // units, _FEWEST_TRIALS), _MOST_TRIALS)
        significant, batch = 0, max(1, _BATCH // units)
        source = self._source(units, difference)
        for begin in range(0, trials, batch):
            rows = self._draw(source, min(batch, trials - begin), units, abs(difference))
            significant += int(np.count_nonzero(rows_at_most_zero(rows) < self._tail))
        return significant / trials

    def units_needed(self, difference: float, power: float) -> int | None:
        """Return the units that show this difference with this power; None if no feasible number does."""
        wanted = normal_quantile(power) - normal_quantile(self._tail)
        units = max(5, math.ceil((wanted / self._effect(difference)) ** 2))
        # The nearest sizes tried, with too little and with enough power.
        fewer, more = 4, _MAX_UNITS
        for _ in range(12):
            if units > _LIMIT_FROM:
                break
            reached = self.power(units, difference)
            fewer, more = (units, more) if reached < power else (fewer, units)
            if more - fewer <= max(1, fewer // 50):
                break
            rate = (normal_quantile(min(max(reached, 0.02), 0.98)) - normal_quantile(self._tail)) / math.sqrt(
                units
            )
            units = min(max(math.ceil((wanted / rate) ** 2), fewer + 1), more - 1, 4 * units)
        units = more if more < _MAX_UNITS else units
        return units if units < _MAX_UNITS else None

    def detectable(self, units: int, power: float) -> float | None:
        """Return the smallest difference that `units` units show with this power; None if none does."""
        low, high = 0.0, 1.0
        if self.power(units, high) < power:
            return None
        while high - low > 0.002:
            middle = (low + high) / 2.0
            low, high = (middle, high) if self.power(units, middle) < power else (low, middle)
        return high

    def spread(self, difference: float, *, draws: int = 400) -> tuple[float, float]:
        """Return the 95% range of the units that other pilots of this size would ask for, as factors."""
        picks = self._source(difference).integers(0, len(self.sums), (draws, len(self.sums)))
        squares = (self.sums[picks] ** 2).mean(axis=1) / self.sizes[picks].mean(axis=1) ** 2
        low, high = np.quantile(squares, (0.025, 0.975)).tolist()
        here = float((self.sums**2).mean()) / self.questions**2
        # One more unit may change, which a pilot without changes does not show.
        high += self._jump**2 / len(self.sums)
        # Mean square minus square of the mean, never zero.
        variances = [max(square - difference**2, square / 10.0) for square in (low, here, high)]
        # The variance of the added units, whatever the pilot.
        added = max(difference * (_JUMP - difference) - variances[1], 1e-9)
        return (variances[0] + added) / (variances[1] + added), (variances[2] + added) / (
            variances[1] + added
        )

    def _probabilities(self, difference: float, excess: Floats) -> Floats:
        """Return the probabilities of the units under which their mean is the assumed difference."""
        if self._tilted[0] != difference:
            low, high = (bound / float(abs(excess).max()) for bound in (-500.0, 500.0))
            for _ in range(_HALVINGS):
                middle = (low + high) / 2.0
                weights = np.exp(middle * excess - (middle * excess).max())
                low, high = (middle, high) if float(weights @ excess) < 0.0 else (low, middle)
            self._tilted = difference, weights / weights.sum()
        return self._tilted[1]

    def _effect(self, difference: float) -> float:
        """Return the difference in standard deviations of one unit."""
        sums, mean = self._units, abs(difference) * self.questions
        if self._both_ways:
            square = float((sums**2).mean()) * self._growth(mean) ** 2
        else:
            excess = self._excess(abs(difference))
            square = mean**2
            if float(excess.max()) > 0.0:
                square = float(self._probabilities(abs(difference), excess) @ sums**2)
        return max(mean, 1e-12) / max(math.sqrt(max(square - mean**2, 0.0)), 1e-12)

    @property
    def _units(self) -> Floats:
        """The pilot's units and the two added ones."""
        return np.append(self.sums, (_JUMP * self.questions, 0.0))

    def _excess(self, difference: float) -> Floats:
        return self._units - difference * np.append(self.sizes, (self.questions, self.questions))

    def _draw(self, source: np.random.Generator, trials: int, units: int, difference: float) -> Floats:
        """Draw the sums of `units` units in `trials` experiments."""
        if self._both_ways:
            return self._draw_both_ways(source, trials, units, difference * self.questions)
        excess = self._excess(difference)
        if float(excess.max()) <= 0.0:
            # Larger than any change in the pilot: every unit has it.
            return np.full((trials, units), difference * self.questions)
        chances = np.cumsum(self._probabilities(difference, excess))
        picks = np.searchsorted(chances, source.random((trials, units)))
        return np.round(self._units[np.minimum(picks, len(excess) - 1)], 9)

    def _draw_both_ways(self, source: np.random.Generator, trials: int, units: int, mean: float) -> Floats:
        """Draw changes of the pilot's sizes; larger ones if all in one direction would not have this mean."""
        sizes = abs(self._units)
        share = mean / float(sizes.mean())
        signs = np.where(source.random((trials, units)) < (1.0 + min(share, 1.0)) / 2.0, 1.0, -1.0)
        picks = source.integers(0, len(sizes), (trials, units))
        return np.round(signs * sizes[picks] * self._growth(mean), 9)

    def _growth(self, mean: float) -> float:
        """How much larger than in the pilot changes are, if all of its own in one direction would not have this mean."""
        return max(mean / float(abs(self._units).mean()), 1.0)


class SamePower(msgspec.Struct, frozen=True, kw_only=True):
    """What a verdict "same" needs."""

    margin: float
    # Units below which it is never given, even if no unit changes.
    least: int
    # Units for which equal versions that differ as the pilot does are called the same with this power; None: not feasible.
    units: int | None
    power: float


def units_for_same(pilot: Pilot, margin: float, power: float) -> SamePower:
    """Return the units that equal versions need to be called the same within ± `margin`.

    With n units an interval is about as wide as the normal one, and never narrower than without any change.
    """
    low, high = 1, 2
    while not _is_same(np.zeros(high), margin):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if _is_same(np.zeros(middle), margin) else (middle, high)
    variance = float((pilot.sums**2).mean()) / pilot.questions**2
    quantiles = normal_quantile(0.975) + normal_quantile((1.0 + power) / 2.0)
    units = max(high, math.ceil(variance * (quantiles / margin) ** 2))
    return SamePower(margin=margin, least=high, units=units if units < _MAX_UNITS else None, power=power)


def _is_same(differences: Floats, margin: float) -> bool:
    return verdict_of(paired_difference(differences), margin=margin) == "same"


class VarianceSplit(msgspec.Struct, frozen=True, kw_only=True):
    """The variance of scores: of the questions' true means, and of the trials of one question."""

    between: float
    within: float
    questions: int
    trials: int
    # Questions whose trials differ, most unstable first: (id, standard deviation over its trials).
    flaky: tuple[tuple[str, float], ...]


def split_variance(trials: Mapping[str, Sequence[float]]) -> VarianceSplit | None:
    """Split the variance into between questions and between trials (one-way random effects).

    None for fewer than two questions. Without repeats, all variance counts as between questions.
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
    # The effective number of trials of unbalanced data.
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
