"""Tests of paired differences that may stop an experiment early, with their intervals.

Units count in the order in which they were asked, not in which they completed: a slow failure must not be missing from the
evidence. Each unit counts once, with its mean difference.

AnytimeTest may be evaluated after every unit. Two gamblers bet on each difference, one that the candidate is better, one that
it is worse. If the true mean is not as a gambler says, the game is fair or worse for it, so that its stake of 1 ever grows to
2/α with probability at most α/2 (Ville's inequality), however often one looks. The interval is every mean against which
neither gambler has reached that. It holds for any distribution within [-1, 1] (Waudby-Smith and Ramdas 2023).

PlannedLooks is evaluated a few times, fixed in advance: each look is the sign-flip test at α divided by the number of looks
(Bonferroni). It has more power if one or two looks are enough.
"""

import math
from collections import Counter
from collections.abc import Iterable, Sequence

import msgspec
import numpy as np

from answerkey.stats.intervals import Interval
from answerkey.stats.paired import Verdict, clear_sign, paired_difference

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
