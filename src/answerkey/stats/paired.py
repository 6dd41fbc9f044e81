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
"""

import math
from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from typing import TYPE_CHECKING, Literal

import msgspec

from answerkey.stats.intervals import Interval

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


def clear_sign(
    differences: "Floats", *, units: "npt.NDArray[np.int64] | None" = None, level: float = 0.95
) -> int:
    """Return the sign of a significant mean of unbounded differences, else 0; faster than `paired_difference`."""
    sums, _ = unit_sums(differences, units)
    if len(sums) < MIN_UNITS or not sums.any() or _p_value(sums) >= 1.0 - level:
        return 0
    return 1 if math.fsum(differences.tolist()) > 0.0 else -1


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
    """Return sums and sizes of the units."""
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


def unseen_rate(units: int, level: float = 0.95) -> float:
    """Return how frequent something may be that none of `units` units showed (about 3 ÷ units)."""
    return 1.0 - (1.0 - level) ** (1.0 / units) if units else 1.0


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

    def __init__(self, looks: int, planned: int, *, level: float = 0.95) -> None:
        self._looks = looks
        self.level = 1.0 - (1.0 - level) / looks
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
            import numpy as np  # most comparisons read no experiment

            sign = clear_sign(np.array(self._values), level=self.level)
            self.verdict = _VERDICTS[sign]

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
    def p_value(self) -> float | None:
        """The p-value of the units so far, corrected for the looks."""
        difference = paired_difference(self._values, level=self.level)
        if difference is None or difference.p_value is None:
            return None
        return min(1.0, self._looks * difference.p_value)

    def interval(self) -> Interval:
        """Return the interval of the units so far, corrected for the looks."""
        difference = paired_difference(self._values, level=self.level)
        if difference is None:
            return Interval(low=-1.0, high=1.0, level=self.level)
        return Interval(low=difference.low, high=difference.high, level=self.level)


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
    """Return a test's result."""
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
