"""The sign-flip (paired permutation) test of a mean difference, the interval of all means that it does not reject, and its power.

If two versions are equal, a unit's difference is as likely to be +x as -x, so the observed total is compared with the totals
of all choices of signs (Fisher 1935). Flipping the signs of some units gives a total at least as large if and only if those
units' differences add up to at most zero. So the one-sided p-value is the share of all sets of units whose mean is at most
zero, and the interval extends from the 2.5% to the 97.5% quantile of the means of all sets (Hartigan 1969). Hence the verdict
is monotone: a larger difference makes no set's mean smaller. Sets whose mean equals the tested one count half (mid-p,
Lancaster 1961). For pass/fail scores the test is McNemar's.

A unit has a sum of differences and a size: the mean of a set is the sum of its units' sums over the sum of their sizes.

Power is simulated on pilot units. A simulated experiment draws units from the pilot. By default they are weighted so that their
mean is the assumed difference and as little else as possible changes (exponential tilting, Efron 1981): if all changes of the
pilot go one way, so do these. With `both_ways`, as many units change, and by as much, as in the pilot, and the directions are
drawn so that the mean is the assumed difference. Two units are added to the pilot: one that gains a component, so that a pilot
with few changes does not rule out large ones, and one without a change, for a pilot in which every unit changed.
"""

import math
from collections.abc import Mapping, Sequence
from functools import lru_cache

import msgspec
import numpy as np
import numpy.typing as npt

from answerkey.stats.intervals import normal_quantile
from answerkey.stats.paired import paired_difference, verdict_of

Floats = npt.NDArray[np.float64]

# All sets are enumerated up to this many units. Above, scores on a lattice (three decimals; shares of up to ten keywords
# with weights of two decimals) are convolved, which is exact too. Only what is on none, or too fine for its number of
# units, has Lugannani and Rice's (1980) approximation: 0.8 to 1.4 times the exact p-value.
_ENUMERATE_TO = 15
_LATTICES = (1_000.0, 252_000.0)
# Units times points of the lattice: about a tenth of a second.
_MOST_STEPS = 100_000_000
# Sums closer than this are equal: scores are rounded to nine decimals.
_SAME = 1e-8
# With more distinct units, the normal approximation is accurate to three decimals of the p-value.
_NORMAL_FROM = 5000
# Maximum Newton steps; five to ten are usual.
_STEPS = 100


def at_most_zero(sums: Floats) -> float:
    """Return the one-sided mid-p value: the share of sets of units with a sum below zero, plus half of those at zero."""
    sums = sums[sums != 0.0]
    if len(sums) <= _ENUMERATE_TO:
        totals = _set_totals(sums)
        return float(np.mean(totals < -_SAME) + np.mean(abs(totals) <= _SAME) / 2.0)
    if len(sums) < _NORMAL_FROM and (steps := _lattice(sums)) is not None:
        return _lattice_share(steps)
    values, counts = _counted(sums)
    return float(_shares(values[None, :], counts)[0])


def _lattice(sums: Floats) -> npt.NDArray[np.int64] | None:
    """Return the sums as whole steps; None if they are not on a lattice, or if it has too many points to be walked."""
    # First that of one absolute value, as of pass/fail.
    for lattice in (1.0 / float(abs(sums).min()), *_LATTICES):
        steps = np.rint(sums * lattice).astype(np.int64)
        if float(abs(sums * lattice - steps).max()) <= lattice * _SAME:
            steps //= np.gcd.reduce(steps)
            if len(steps) * int(abs(steps).sum()) <= _MOST_STEPS:
                return steps
    return None


def _lattice_share(steps: npt.NDArray[np.int64]) -> float:
    """Return the share of sets below zero, plus half of those at zero, exactly: units are added one by one."""
    falls = -int(steps[steps < 0].sum())
    # Index: the sum of a set, counted from the lowest possible one. Choosing a fall or not is symmetric, so every unit
    # may be added with its size.
    shares = np.zeros(int(abs(steps).sum()) + 1)
    shares[0], reach = 1.0, 0
    for step in sorted(abs(steps).tolist()):
        shares[: reach + 1] *= 0.5
        added = shares[: reach + 1].copy()
        shares[step : reach + step + 1] += added
        reach += step
    return float(shares[:falls].sum() + shares[falls] / 2.0)


def rows_at_most_zero(rows: Floats) -> Floats:
    """Return `at_most_zero` of each row, for simulations: approximate where rows have more units than are enumerated."""
    shares = np.empty(len(rows))
    few = np.count_nonzero(rows, axis=1) <= _ENUMERATE_TO
    shares[few] = [at_most_zero(row) for row in rows[few]]
    if not few.all():
        # Ties are left out as far as all rows have them.
        many = np.sort(rows[~few], axis=1)
        kept = many[:, np.any(many != 0.0, axis=0)]
        shares[~few] = _shares(kept, np.ones(kept.shape[1]))
    return shares


def set_mean_quantile(sums: Floats, sizes: Floats, tail: float) -> float:
    """Return the `tail` quantile of the means of all sets; for the upper quantile, negate the sums and the result."""
    if len(sums) <= _ENUMERATE_TO:
        means = np.sort(_set_totals(sums)[1:] / _set_totals(sizes)[1:])
        # The empty set ties with every mean and counts half on either side.
        rank = tail * (len(means) + 1) - 0.5
        return float(means[math.ceil(rank) - 1]) if rank > 0.0 else -math.inf
    if np.ptp(sizes) < _SAME:
        # Equal units are counted: differences of scores repeat.
        sums, counts = _counted(sums)
        sizes = np.full(len(sums), sizes[0])
    else:
        counts = np.ones(len(sums))
    # 0.0 makes -0.0 equal to 0.0.
    return _quantile((sums + 0.0).tobytes(), sizes.tobytes(), counts.tobytes(), tail)


def _set_totals(values: Floats) -> Floats:
    """Return the sums of all sets, the empty set first."""
    totals = np.zeros(1)
    for value in values.tolist():
        totals = np.concatenate([totals, totals + value])
    return totals


def _counted(values: Floats) -> tuple[Floats, Floats]:
    distinct, counts = np.unique(values, return_counts=True)
    return distinct, counts.astype(np.float64)


# Most measures of two versions do not change at all, and then all have the same interval.
@lru_cache(maxsize=8)
def _quantile(packed_sums: bytes, packed_sizes: bytes, packed_counts: bytes, tail: float) -> float:
    """Return the `tail` quantile of the sets' means, by regula falsi on the normal score of the share."""
    sums, sizes, counts = map(np.frombuffer, (packed_sums, packed_sizes, packed_counts))
    total = float((counts * sizes).sum())
    high = float((counts * sums).sum()) / total
    spread = math.sqrt(float((counts * (sums - sizes * high) ** 2).sum())) / total
    if spread < _SAME:
        return high
    target, below, low, score = normal_quantile(tail), 0.0, high, 0.0
    while score > target:
        high, below, low = low, score, low - 2.5 * spread
        score = _score(sums - sizes * low, counts)
    for _ in range(60):
        middle = low + (high - low) * min(max((target - score) / (below - score), 0.05), 0.95)
        if high - low < _SAME:
            break
        at_middle = _score(sums - sizes * middle, counts)
        if at_middle > target:
            high, below = middle, at_middle
        else:
            low, score = middle, at_middle
    return low


def _score(values: Floats, counts: Floats) -> float:
    """Return the share of sets with a sum below zero as a normal quantile, which is nearly linear in a shift of the values."""
    share = float(_shares(values[None, :], counts)[0])
    return normal_quantile(min(max(share, 1e-300), 1.0 - 1e-16))


def _shares(rows: Floats, counts: Floats) -> Floats:
    """Return, for each row, the share of sets with a sum below zero, by Lugannani and Rice; `counts` repeats the values.

    Equivalently: the probability that the absolute values with random signs add up to at least the observed sum. The cumulant
    function of that total is the sum of log cosh(t · size), and t is where its slope is the observed sum.
    """
    sizes, seen = abs(rows), rows @ counts
    deviation = np.sqrt(np.maximum((sizes * sizes) @ counts, 1e-300))
    normal = _normal_tail(seen / deviation)
    if rows.shape[1] > _NORMAL_FROM:
        return normal
    side = np.sign(seen)
    seen, reach = abs(seen), sizes @ counts
    # If all signs agree, it is one choice of signs, half counted; near the middle the formula divides by zero.
    unanimous, middle = seen >= reach - _SAME, seen < 1e-3 * deviation
    t = seen / deviation**2
    curvature = np.ones(len(rows))
    with np.errstate(all="ignore"):
        active = np.flatnonzero(~(unanimous | middle))
        t[active], curvature[active] = _saddle_points(sizes[active], counts, seen[active], t[active])
        scaled = t[:, None] * sizes
        cumulant = (scaled + np.log1p(np.exp(-2.0 * scaled)) - math.log(2.0)) @ counts
        w, u = np.sqrt(2.0 * (t * seen - cumulant)), t * np.sqrt(curvature)
        tail = _normal_tail(w) + np.exp(-w * w / 2.0) / math.sqrt(2.0 * math.pi) * (1.0 / u - 1.0 / w)
    least = 0.5 ** ((sizes > 0.0) @ counts + 1.0)
    tail = np.where(unanimous, least, np.clip(tail, least, 0.5))
    tail = np.where(side < 0.0, 1.0 - tail, tail)
    return np.where(middle, normal, tail)


def _saddle_points(sizes: Floats, counts: Floats, seen: Floats, t: Floats) -> tuple[Floats, Floats]:
    """Return, for each row, where the slope of the cumulant function is `seen`, and the curvature there."""
    curvatures = np.ones(len(t))
    t, active = t.copy(), np.arange(len(t))
    low, high = np.zeros(len(t)), np.full(len(t), np.inf)
    for _ in range(_STEPS):
        tanh = np.tanh(t[active, None] * sizes)
        slope, curvature = (sizes * tanh) @ counts, (sizes * sizes * (1.0 - tanh * tanh)) @ counts
        here, below = t[active], slope < seen
        low, high = np.where(below, here, low), np.where(below, high, here)
        following = here + (seen - slope) / curvature
        outside = ~((following > low) & (following < high))
        bisected = np.where(np.isinf(high), 2.0 * here, (low + high) / 2.0)
        following = np.where(outside, bisected, following)
        curvatures[active] = curvature
        left = abs(following - here) > 1e-9 * here
        t[active[left]] = following[left]
        if not left.all():
            active, sizes, seen, low, high = active[left], sizes[left], seen[left], low[left], high[left]
        if not len(active):
            break
    return t, curvatures


def _normal_tail(scores: Floats) -> Floats:
    return np.array([0.5 * math.erfc(score / math.sqrt(2.0)) for score in scores.tolist()])


# Units drawn in the simulations of one figure. For up to a hundred units, power is accurate to one point.
_UNITS_DRAWN = 200_000
_FEWEST_TRIALS, _MOST_TRIALS = 800, 4000
# Numbers drawn in one batch.
_BATCH = 2_000_000
# With more units, the test's normal limit is used.
_LIMIT_FROM = 2000
# More units are not feasible.
_MAX_UNITS = 100_000_000
# Of a two-sided test at 5%.
_TAIL = 0.025
# The gain of the added unit: the weight of a component.
_JUMP = 0.4
# Other pilots that are drawn for a range.
_PILOTS = 400
# Bisection steps for the tilt.
_HALVINGS = 60


class Pilot:
    """Units to draw from: sums and sizes of their differences."""

    def __init__(self, sums: Floats, sizes: Floats, *, seed: int = 0, both_ways: bool = False) -> None:
        self._both_ways = both_ways
        # Negated if necessary, so that the mean is a gain.
        self.sums, self.sizes = (sums if sums.sum() >= 0.0 else -sums), sizes
        self.questions = float(sizes.mean())
        self._seed = seed
        self._jump = max(float(abs(sums / sizes).max()), _JUMP)
        # The last difference, and the probabilities of the units under its tilt.
        self._tilted: tuple[float, Floats] = (math.nan, np.zeros(0))

    def _source(self, *of: float) -> "np.random.Generator":
        """Random numbers of one figure: the same, whatever else was computed before."""
        return np.random.default_rng([self._seed, *(round(1e9 * abs(number)) for number in of)])

    def power(self, units: int, difference: float) -> float:
        """Return the probability that `units` units show this mean difference."""
        if units < 2:
            return 0.0
        if units > _LIMIT_FROM:
            score = self._effect(difference) * math.sqrt(units) + normal_quantile(_TAIL)
            return 0.5 * math.erfc(-score / math.sqrt(2.0))
        trials = min(max(_UNITS_DRAWN // units, _FEWEST_TRIALS), _MOST_TRIALS)
        significant, batch = 0, max(1, _BATCH // units)
        source = self._source(units, difference)
        for begin in range(0, trials, batch):
            rows = self._draw(source, min(batch, trials - begin), units, abs(difference))
            significant += int(np.count_nonzero(rows_at_most_zero(rows) < _TAIL))
        return significant / trials

    def units_needed(self, difference: float, power: float) -> int | None:
        """Return the units that show this difference with this power; None if no feasible number does."""
        wanted = normal_quantile(power) - normal_quantile(_TAIL)
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
            rate = (normal_quantile(min(max(reached, 0.02), 0.98)) - normal_quantile(_TAIL)) / math.sqrt(
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

    def spread(self, difference: float) -> tuple[float, float]:
        """Return the 95% range of the units that other pilots of this size would ask for, as factors."""
        picks = self._source(difference).integers(0, len(self.sums), (_PILOTS, len(self.sums)))
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

    def _draw(self, source: "np.random.Generator", trials: int, units: int, difference: float) -> Floats:
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

    def _draw_both_ways(self, source: "np.random.Generator", trials: int, units: int, mean: float) -> Floats:
        """Draw changes of the pilot's sizes; larger ones if all in one direction would not have this mean."""
        sizes = abs(self._units)
        share = mean / float(sizes.mean())
        signs = np.where(source.random((trials, units)) < (1.0 + min(share, 1.0)) / 2.0, 1.0, -1.0)
        picks = source.integers(0, len(sizes), (trials, units))
        return np.round(signs * sizes[picks] * self._growth(mean), 9)

    def _growth(self, mean: float) -> float:
        """How much larger than in the pilot changes are, if all of its own in one direction would not have this mean."""
        return max(mean / float(abs(self._units).mean()), 1.0)


def units_for_same(pilot: Pilot, margin: float, power: float) -> tuple[int, int | None]:
    """Return the units below which versions are never called the same within ± `margin`, and those that equal ones need.

    The latter is None if it is not feasible.
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
    return high, units if units < _MAX_UNITS else None


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
