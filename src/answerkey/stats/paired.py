"""Paired differences: a sign-flip test over units, the interval of the means that it does not reject, a verdict; early stopping.

The verdict is better or worse if the test (`stats/sign_flip.py`) rejects "no difference" at 5%; the interval's end nearer to
zero is then the smallest mean that the test does not reject. The other end, and both ends of an inconclusive comparison,
allow for one more unit that changed as much as the largest observed change. If all units changed by the same amount, or
none did, that unit changed by 1, and the end nearer to zero has one more unit without a change. With a margin, an interval
inside ± the margin is "same". docs/statistics.md explains it.

Two tests may stop an experiment early. Units count in the order in which they were asked, not in which they completed: a slow
failure must not be missing from the evidence. Each unit counts once, with its mean difference.

AnytimeTest may be evaluated after every unit. Two gamblers bet on each difference, one that the candidate is better, one that
it is worse. If the true mean is not as a gambler says, the game is fair or worse for it, so that its stake of 1 ever grows to
2/α with probability at most α/2 (Ville's inequality), however often one looks. The interval is every mean against which
neither gambler has reached that. It holds for any distribution within [-1, 1] (Waudby-Smith and Ramdas 2023).

PlannedLooks is evaluated a few times, fixed in advance: each look is the sign-flip test at α divided by the number of looks
(Bonferroni). It has more power if one or two looks are enough.

Raters beside each other: their agreement (Pearson's r, Cohen's κ, Krippendorff's α), and means corrected for a judge's errors.

Means and rates are corrected from few items with labels of people and many with the judge's verdict only.
Prediction-powered inference (PPI++, Angelopoulos, Duchi and Zrnic 2023) is unbiased for any judge; a better judge gives a
narrower interval. It is used for means, rates and the difference of two versions. Contributions are summed by unit (question
or group), so that trials, and two versions' replies to one question, may be dependent. Rogan and Gladen's estimate inverts
the judge's rate by its sensitivity and specificity, which may come from an earlier run; its interval is Lang and Reiczigel's
(2014). All assume that the labelled items are a random sample.
"""

import math
from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from typing import TYPE_CHECKING, Literal

import msgspec

from answerkey.stats.intervals import Z95, Interval, t_quantile, wilson_interval

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from answerkey.stats.sign_flip import Floats

Verdict = Literal["better", "worse", "same", "no clear difference"]

# With fewer units, no choice of signs is rarer than 5%.
MIN_UNITS = 5
# Distance from zero of an interval's end that excludes zero by a tie: scores are rounded to nine decimals.
_NEAREST = 1e-9


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """A mean of paired differences, candidate minus base, with its uncertainty."""

    mean: float
    low: float
    high: float
    level: float
    # None: all pairs are tied, or there is a single unit.
    p_value: float | None
    method: str
    # Pairs, pairs that differ, and units.
    pairs: int
    changed: int
    units: int
    # Standard deviation of the differences.
    deviation: float
    # Mean difference in standard deviations of the differences; None if they do not vary.
    effect_size: float | None


def paired_difference(
    differences: "Sequence[float] | Floats",
    *,
    units: "Sequence[Hashable] | npt.NDArray[np.int64] | None" = None,
    level: float = 0.95,
    bound: float | None = 1.0,
) -> Difference | None:
    """Return the mean of `differences`, which are within ±`bound` (None: unbounded, e.g. latencies), with its interval.

    None without differences, and with too few unbounded ones.
    """
    # Imported here, so that reading a stored comparison does not load numpy.
    import numpy as np

    values = np.asarray(differences, dtype=np.float64)
    sums, sizes = unit_sums(values, units)
    n, groups = len(values), len(sums)
    if n == 0 or (bound is None and groups < MIN_UNITS):
        return None
    mean = math.fsum(values.tolist()) / n
    deviation = float(values.std(ddof=1)) if n > 1 else 0.0
    p_value, method = None, "all ties"
    if groups == 1:
        method = "a single unit"
    elif sums.any():
        p_value, method = _p_value(sums), "sign-flip"
    low, high = _interval(
        sums, sizes, level, bound, mean, significant=p_value is not None and p_value < 1.0 - level
    )
    return Difference(
        mean=mean,
        low=low,
        high=high,
        level=level,
        p_value=p_value,
        method=method if groups == n else f"{method}, by unit",
        pairs=n,
        changed=int(np.count_nonzero(values)),
        units=groups,
        deviation=deviation,
        effect_size=mean / deviation if deviation > 1e-12 else None,
    )


def _p_value(sums: "Floats") -> float:
    from answerkey.stats.sign_flip import at_most_zero

    return min(1.0, 2.0 * min(at_most_zero(sums), at_most_zero(-sums)))


def _interval(
    sums: "Floats", sizes: "Floats", level: float, bound: float | None, mean: float, *, significant: bool
) -> tuple[float, float]:
    """Return the means that the test does not reject; the ends away from zero allow for one more unit."""
    import numpy as np

    from answerkey.stats.sign_flip import set_mean_quantile

    tail = (1.0 - level) / 2.0
    if len(sums) < MIN_UNITS:
        return -(bound or math.inf), bound or math.inf
    changes, size = sums / sizes, float(sizes.mean())
    more, alike = np.append(sizes, size), float(np.ptp(changes)) < _NEAREST
    most = bound if alike and bound else float(abs(changes).max())
    # The end nearer to zero is the test's own; if nothing varies, it allows for one more unit without a change.
    facing, widths = (np.append(sums, 0.0), more) if alike else (sums, sizes)
    # The upper end is the lower end of the negated differences.
    low = min(set_mean_quantile(np.append(sums, -most * size), more, tail), mean)
    high = max(-set_mean_quantile(np.append(-sums, -most * size), more, tail), mean)
    if significant and mean > 0.0:
        low = max(set_mean_quantile(facing, widths, tail), _NEAREST)
    elif significant:
        high = min(-set_mean_quantile(-facing, widths, tail), -_NEAREST)
    else:
        low, high = min(low, 0.0), max(high, 0.0)
    return (low, high) if bound is None else (max(low, -bound), min(high, bound))


def unit_sums(
    values: "Floats", units: "Sequence[Hashable] | npt.NDArray[np.int64] | None"
) -> "tuple[Floats, Floats]":
    import numpy as np

    if units is None:
        return values, np.ones(len(values))
    _, numbers, counts = np.unique(np.asarray(units), return_inverse=True, return_counts=True)
    return np.round(np.bincount(numbers, values), 9), counts.astype(np.float64)


def verdict_of(
    difference: Difference | None,
    *,
    p_value: float | None = None,
    higher_is_better: bool = True,
    margin: float | None = None,
) -> Verdict:
    """Return the verdict; `p_value` replaces the difference's own if it was corrected for several tests.

    With a margin, an interval inside it is "same", even if it excludes zero.
    """
    if difference is None:
        return "no clear difference"
    if margin is not None and -margin <= difference.low and difference.high <= margin:
        return "same"
    p = difference.p_value if p_value is None else p_value
    if p is None or p >= 1.0 - difference.level:
        return "no clear difference"
    return "better" if (difference.mean > 0.0) == higher_is_better else "worse"


def unseen_rate(units: int) -> float:
    """Return how frequent something may be that none of `units` units showed (about 3 ÷ units)."""
    return 1.0 - 0.05 ** (1.0 / units) if units else 1.0


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Return p-values with Holm's correction for several tests, in the same order; None values are not counted."""
    known = sorted((p, index) for index, p in enumerate(p_values) if p is not None)
    corrected: list[float | None] = [None] * len(p_values)
    highest = 0.0
    for rank, (p, index) in enumerate(known):
        highest = max(highest, min(1.0, p * (len(known) - rank)))
        corrected[index] = highest
    return corrected


# Each gambler spreads its stake evenly over these bets. Any choice is valid; a geometric one suits small and large
# differences.
_BETS = (0.06, 0.12, 0.25, 0.5, 0.98)
# Sign of a shown difference → verdict.
_VERDICTS: dict[int, Verdict] = {1: "better", 0: "no clear difference", -1: "worse"}


class AnytimeTest:
    """The wealth of the two gamblers so far; the test ends when one has won."""

    method = "betting, always valid"

    def __init__(self, differences: Iterable[float] = (), *, level: float = 0.95) -> None:
        self.level = level
        self.count = 0
        self.verdict: Verdict = "no clear difference"
        self._sum = 0.0
        self._seen: Counter[float] = Counter()
        # Logarithm of each bet's wealth, and the highest wealth of either gambler so far.
        self._up, self._down = [0.0] * len(_BETS), [0.0] * len(_BETS)
        self._peak = 0.0
        for difference in differences:
            self.add(difference)

    def add(self, difference: float) -> None:
        """Add a difference, candidate minus base, within [-1, 1]."""
        if not -1.0 <= difference <= 1.0:
            raise ValueError(f"a difference of scores must be between -1 and 1, not {difference}")
        if self.decided:
            return
        self.count += 1
        self._sum += difference
        self._seen[difference] += 1
        if difference:
            for index, bet in enumerate(_BETS):
                self._up[index] += math.log1p(bet * difference)
                self._down[index] += math.log1p(-bet * difference)
            for sign, logs in ((1, self._up), (-1, self._down)):
                wealth = _log_mean(logs)
                self._peak = max(self._peak, wealth)
                if wealth >= self._goal:
                    self.verdict = _VERDICTS[sign]

    @property
    def mean(self) -> float:
        """Mean difference so far; 0 without any."""
        return self._sum / self.count if self.count else 0.0

    @property
    def p_value(self) -> float:
        """The always-valid two-sided p-value; it never rises."""
        return min(1.0, 2.0 * math.exp(-self._peak))

    @property
    def decided(self) -> bool:
        """Whether the difference is significant."""
        return self.verdict != "no clear difference"

    def interval(self) -> Interval:
        """Return the confidence sequence: every mean against which neither gambler has won."""
        if not self.count:
            return Interval(low=-1.0, high=1.0, level=self.level)
        return Interval(low=self._edge(1.0), high=self._edge(-1.0), level=self.level)

    @property
    def _goal(self) -> float:
        return math.log(2.0 / (1.0 - self.level))

    def _edge(self, side: float) -> float:
        """Return the lower (`side` 1) or upper (-1) end, between the mean, which is never rejected, and the bound."""
        inside, outside = self.mean, -side
        if not self._rejects(outside * (1.0 - 1e-9), side):
            return outside
        for _ in range(50):
            middle = (inside + outside) / 2.0
            inside, outside = (inside, middle) if self._rejects(middle, side) else (middle, outside)
        # After a verdict, the interval must exclude zero.
        return outside if self.decided else inside

    def _rejects(self, mean: float, side: float) -> bool:
        """Whether the gambler who bets that the true mean is above (`side` 1) or below this mean has won."""
        # Scaled, so that a loss never exceeds the stake.
        scale = side / (1.0 + side * mean)
        logs = [
            math.fsum(n * math.log1p(bet * scale * (x - mean)) for x, n in self._seen.items())
            for bet in _BETS
        ]
        return _log_mean(logs) >= self._goal


class PlannedLooks:
    """The sign-flip test at `looks` equally spaced times over the planned units."""

    def __init__(self, looks: int, planned: int) -> None:
        self._looks = looks
        self.level = 1.0 - 0.05 / looks
        self.method = f"sign-flip at {looks} planned looks"
        self.verdict: Verdict = "no clear difference"
        self._at = {math.ceil(look * planned / looks) for look in range(1, looks + 1)}
        self._values: list[float] = []

    def add(self, difference: float) -> None:
        """Add a difference, in the order of asking; tested only at the planned looks."""
        if self.decided:
            return
        self._values.append(difference)
        if self.count in self._at:
            self.verdict = verdict_of(self._difference)

    @property
    def count(self) -> int:
        """Units so far."""
        return len(self._values)

    @property
    def mean(self) -> float:
        """Mean difference so far; 0 without any."""
        return math.fsum(self._values) / self.count if self.count else 0.0

    @property
    def decided(self) -> bool:
        """Whether the difference was significant at a look."""
        return self.verdict != "no clear difference"

    @property
    def _difference(self) -> Difference | None:
        return paired_difference(self._values, level=self.level)

    @property
    def p_value(self) -> float | None:
        """The p-value of the units so far, corrected for the looks."""
        found = self._difference
        return None if found is None or found.p_value is None else min(1.0, self._looks * found.p_value)

    def interval(self) -> Interval:
        """Return the interval of the units so far, corrected for the looks."""
        found = self._difference
        low, high = (-1.0, 1.0) if found is None else (found.low, found.high)
        return Interval(low=low, high=high, level=self.level)


class SequentialResult(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a test that may stop early, as `ab --json` prints it."""

    mean: float
    low: float
    high: float
    level: float
    # Corrected for the looks.
    p_value: float | None
    # Units that the test has seen.
    differences: int
    method: str
    verdict: Verdict


def sequential_result(test: AnytimeTest | PlannedLooks) -> SequentialResult:
    interval = test.interval()
    return SequentialResult(
        mean=test.mean,
        low=interval.low,
        high=interval.high,
        level=interval.level,
        p_value=test.p_value,
        differences=test.count,
        method=test.method,
        verdict=test.verdict,
    )


def _log_mean(logs: Sequence[float]) -> float:
    """Return the logarithm of the bets' mean wealth."""
    top = max(logs)
    return top + math.log(math.fsum(math.exp(value - top) for value in logs) / len(logs))


class Correlation(msgspec.Struct, frozen=True):
    """Pearson's r; with thumbs up and down as one series, the point-biserial correlation."""

    r: float
    low: float
    high: float
    pairs: int


def correlate(first: Sequence[float], second: Sequence[float]) -> Correlation | None:
    """Pearson's r with Fisher's 95% interval; None where a series does not vary or there are under four pairs."""
    n = len(first)
    if n < 4 or n != len(second):
        return None
    # The spread of a constant series may differ from zero by rounding.
    if any(max(series) - min(series) <= 1e-9 for series in (first, second)):
        return None
    from statistics import correlation  # slow to load

    r = correlation(first, second)
    if abs(r) > 1 - 1e-12:
        r = math.copysign(1.0, r)
        return Correlation(round(r, 9), round(r, 9), round(r, 9), n)
    half = Z95 / math.sqrt(n - 3)
    centre = math.atanh(r)
    return Correlation(round(r, 9), round(math.tanh(centre - half), 9), round(math.tanh(centre + half), 9), n)


class Confusion(msgspec.Struct, frozen=True):
    """Counts of verdicts by a judge and people; people are right by definition."""

    # Both said right.
    true_positive: int
    # The judge said right, people wrong.
    false_positive: int
    # The judge said wrong, people right.
    false_negative: int
    # Both said wrong.
    true_negative: int

    @property
    def n(self) -> int:
        return self.true_positive + self.false_positive + self.false_negative + self.true_negative


class Kappa(msgspec.Struct, frozen=True):
    """Agreement beyond chance: 1 is perfect, 0 is the agreement of two independent raters with these rates."""

    value: float
    standard_error: float
    interval: Interval


def cohen_kappa(table: Confusion) -> Kappa | None:
    """Return κ with the standard error of Fleiss, Cohen and Everitt (1969); None if a rater gave all items the same verdict.

    κ and its error would then be 0 whatever the other rater said. If the raters never disagree, the error is 0 too, which few
    items do not prove; the interval then comes from Wilson's interval of the share of agreement.
    """
    n = table.n
    if n == 0:
        return None
    cells = [
        [table.true_positive / n, table.false_positive / n],
        [table.false_negative / n, table.true_negative / n],
    ]
    rows = [sum(row) for row in cells]
    columns = [cells[0][k] + cells[1][k] for k in (0, 1)]
    observed = cells[0][0] + cells[1][1]
    chance = rows[0] * columns[0] + rows[1] * columns[1]
    if 0.0 in (*rows, *columns):
        return None
    kappa = (observed - chance) / (1 - chance)
    diagonal = sum(cells[k][k] * (1 - (rows[k] + columns[k]) * (1 - kappa)) ** 2 for k in (0, 1))
    off_diagonal = (1 - kappa) ** 2 * sum(
        cells[i][j] * (columns[i] + rows[j]) ** 2 for i, j in ((0, 1), (1, 0))
    )
    variance = (diagonal + off_diagonal - (kappa - chance * (1 - kappa)) ** 2) / (n * (1 - chance) ** 2)
    error = math.sqrt(max(variance, 0.0))
    if observed >= 1.0:
        share = wilson_interval(n, n)
        low = -1.0 if share is None else (share.low - chance) / (1 - chance)
        return Kappa(kappa, error, Interval(low=max(low, -1.0), high=1.0))
    half = Z95 * error
    interval = Interval(low=max(kappa - half, -1.0), high=min(kappa + half, 1.0))
    return Kappa(kappa, error, interval)


def krippendorff_alpha(ratings: Sequence[Sequence[float | None]]) -> float | None:
    """Return α for interval data: one row of grades per rater, None where a rater gave none.

    None if α is undefined: no item has two grades, or all grades are the same. Observed and expected disagreement are, up to
    a common factor, the variance of the grades within items and of all grades.
    """
    items = [[grade for grade in item if grade is not None] for item in zip(*ratings, strict=True)]
    # A single grade has nothing to agree with.
    items = [item for item in items if len(item) > 1]
    grades = [grade for item in items for grade in item]
    if len(set(grades)) < 2:
        return None
    # Scaled, so that squares of tiny grades do not underflow.
    largest = max(map(abs, grades))
    within = math.fsum(len(item) * _variance([g / largest for g in item]) for item in items) / len(grades)
    return 1.0 - within / _variance([grade / largest for grade in grades])


def _variance(grades: Sequence[float]) -> float:
    if len(set(grades)) == 1:
        # The mean of equal numbers may differ from them by rounding.
        return 0.0
    mean = math.fsum(grades) / len(grades)
    return math.fsum((grade - mean) ** 2 for grade in grades) / (len(grades) - 1)


# Disagreements added to the observed ones, half in each direction. Without it the interval covers 91% instead of 95% if 60
# labels contain about one disagreement (simulated in tests/stats/test_corrected_means.py).
_PSEUDO = 1.0


class Corrected(msgspec.Struct, frozen=True):
    """An estimate of the true mean, rate or difference."""

    value: float
    interval: Interval
    # PPI++'s λ, the weight of the judge: 0 none, 1 full; None for other estimates.
    reliance: float | None = None


class JudgedSample(msgspec.Struct, frozen=True):
    """One run's replies, as values from 0 to 1."""

    # Labelled replies: people's value, the judge's value, and the unit of each.
    human: Sequence[float]
    judged: Sequence[float]
    units: Sequence[Hashable]
    # Unlabelled replies: the judge's value, and the unit of each.
    rest: Sequence[float]
    rest_units: Sequence[Hashable]


class _Estimate(msgspec.Struct, frozen=True):
    value: float
    reliance: float
    # Unit → its contribution to the error.
    influence: dict[Hashable, float]
    # Of the labels, minus what the judge's values explain.
    error_variance: float
    # Variance of disagreements that few labels may have missed.
    unseen: float
    labelled_units: int


def prediction_powered_mean(sample: JudgedSample, *, small_sample: bool = True) -> Corrected | None:
    """Return the PPI++ estimate with λ tuned from the data; None without two labelled units and two unlabelled replies.

    `small_sample` widens the interval for few labels: Student's t, and one more disagreement than observed, since a dozen
    items without one do not prove that there is none. Without it, the interval is that of ppi-python.
    """
    found = _estimate(sample)
    if found is None:
        return None
    spread = math.sqrt(
        math.fsum(part * part for part in found.influence.values()) + found.unseen * small_sample
    )
    half = spread * (t_quantile(0.975, found.labelled_units - 1) if small_sample else Z95)
    low, high, value = found.value - half, found.value + half, found.value
    if small_sample:
        low, high, value = max(low, 0.0), min(high, 1.0), min(max(value, 0.0), 1.0)
    return Corrected(value, Interval(low=low, high=high), found.reliance)


def prediction_powered_difference(base: JudgedSample, candidate: JudgedSample) -> Corrected | None:
    """Return candidate minus base; units in both runs contribute their difference, which narrows the interval."""
    first, second = _estimate(base), _estimate(candidate)
    if first is None or second is None:
        return None
    added = {
        unit: second.influence.get(unit, 0.0) - first.influence.get(unit, 0.0)
        for unit in {*first.influence, *second.influence}
    }
    spread = math.sqrt(math.fsum(part * part for part in added.values()) + first.unseen + second.unseen)
    half = spread * t_quantile(0.975, min(first.labelled_units, second.labelled_units) - 1)
    value = second.value - first.value
    return Corrected(value, Interval(low=max(value - half, -1.0), high=min(value + half, 1.0)))


def _estimate(sample: JudgedSample) -> _Estimate | None:
    n, many, units = len(sample.human), len(sample.rest), len(set(sample.units))
    if units < 2 or many < 2:
        return None
    reliance = _reliance(sample.human, sample.judged, sample.rest)
    mean_rest = math.fsum(sample.rest) / many
    errors = [label - reliance * guess for label, guess in zip(sample.human, sample.judged, strict=True)]
    mean_error = math.fsum(errors) / n
    influence: dict[Hashable, float] = {}
    for unit, error in zip(sample.units, errors, strict=True):
        influence[unit] = influence.get(unit, 0.0) + (error - mean_error) / n
    for unit, value in zip(sample.rest_units, sample.rest, strict=True):
        influence[unit] = influence.get(unit, 0.0) + reliance * (value - mean_rest) / many
    variance = _population_variance(errors)
    unseen = _PSEUDO * (1.0 - min(variance, 1.0)) / (units * (units + _PSEUDO))
    return _Estimate(reliance * mean_rest + mean_error, reliance, influence, variance, unseen, units)


def labels_needed(sample: JudgedSample, half_width: float) -> int | None:
    """Return the total number of labels for an interval of ± `half_width`; None if all replies are not enough."""
    found = _estimate(sample)
    if found is None:
        return None
    variance = max(found.error_variance, 1.0 / (len(sample.human) + 1))
    rest = found.reliance**2 * _population_variance(sample.rest)
    total = len(sample.human) + len(sample.rest)
    allowed = (half_width / Z95) ** 2
    enough = (n for n in range(2, total - 1) if rest / (total - n) + variance / n <= allowed)
    return next(enough, None)


def _reliance(human: Sequence[float], judged: Sequence[float], unlabelled: Sequence[float]) -> float:
    n, many = len(human), len(unlabelled)
    mean_human, mean_judged = math.fsum(human) / n, math.fsum(judged) / n
    covariance = math.fsum(
        (label - mean_human) * (guess - mean_judged) for label, guess in zip(human, judged, strict=True)
    )
    values = [*judged, *unlabelled]
    variance = _population_variance(values) * len(values) / (len(values) - 1)
    if variance <= 0:
        return 0.0
    return min(max(covariance / n / ((1 + n / many) * variance), 0.0), 1.0)


def _population_variance(values: Sequence[float]) -> float:
    """Return the variance, divided by n."""
    mean = math.fsum(values) / len(values)
    return math.fsum((value - mean) ** 2 for value in values) / len(values)


def rogan_gladen_rate(
    passed: int,
    judged: int,
    *,
    sensitive: int,
    positives: int,
    specific: int,
    negatives: int,
) -> Corrected | None:
    """Return the true rate if a judge passed `passed` of `judged`; None if the judge only guesses.

    The judge passed `sensitive` of the `positives` items that people call right, and failed `specific` of `negatives`.
    """
    if not judged or not positives or not negatives:
        return None
    sensitivity, specificity = sensitive / positives, specific / negatives
    if sensitivity + specificity <= 1:
        return None
    value = (passed / judged + specificity - 1) / (sensitivity + specificity - 1)
    z = Z95
    # Lang and Reiczigel: pseudo-observations in all three samples, and a shift of the centre.
    n, n_positive, n_negative = judged + z * z, positives + 2.0, negatives + 2.0
    rate = (passed + z * z / 2) / n
    sensitivity, specificity = (sensitive + 1) / n_positive, (specific + 1) / n_negative
    if sensitivity + specificity <= 1:
        return None
    youden = sensitivity + specificity - 1
    centre = (rate + specificity - 1) / youden
    by_positive = sensitivity * (1 - sensitivity) / n_positive
    by_negative = specificity * (1 - specificity) / n_negative
    shift = 2 * z * z * (centre * by_positive - (1 - centre) * by_negative)
    spread = math.sqrt(rate * (1 - rate) / n + (1 - centre) ** 2 * by_negative + centre**2 * by_positive)
    half = z * spread / youden
    low, high = (min(max(centre + shift + sign * half, 0.0), 1.0) for sign in (-1, 1))
    return Corrected(min(max(value, 0.0), 1.0), Interval(low=low, high=high))
