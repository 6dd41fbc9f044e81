"""Tests of paired differences that may stop an experiment early, and the interval and direction of the same test.

Units are counted in the order in which they were asked, never in that of their completion: a failure that is slow must
not be missing from the evidence. Each unit counts once, with its mean difference.

AnytimeTest may be looked at after every unit. Two gamblers bet on each difference, one that the candidate is better, one
that it is worse. If the true mean is not as the gambler says, the game is fair or worse, so the chance that a stake of one
ever grows to 2/α is at most α/2 (Ville's inequality), however often one looks; the interval is every mean against which
neither gambler has won so much. It holds for any distribution within [-1, 1]. Waudby-Smith and Ramdas (2023).

PlannedLooks is looked at a few times that are fixed before: each look is the sign-flip test at α divided by their number
(Bonferroni). It finds more where one or two looks are enough.
"""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from answerkey.stats.intervals import Interval
from answerkey.stats.paired import Verdict, paired_difference, verdict_of

# Every gambler's stake is spread evenly over these bets. Any choice is valid; a geometric one finds small and large
# differences alike.
_BETS = (0.06, 0.12, 0.25, 0.5, 0.98)


class AnytimeTest:
    """Wealth of the two gamblers after the differences seen so far; once one has won, the test is over."""

    method = "betting, always valid"

    def __init__(self, differences: Iterable[float] = (), *, level: float = 0.95) -> None:
        self.level = level
        self.count = 0
        self.verdict: Verdict = "no clear difference"
        self._sum = 0.0
        self._seen: Counter[float] = Counter()
        # The logarithm of what each bet has grown to, and the most that either gambler ever had.
        self._up, self._down = [0.0] * len(_BETS), [0.0] * len(_BETS)
        self._peak = 0.0
        for difference in differences:
            self.add(difference)

    def add(self, difference: float) -> None:
        """One more difference, candidate minus base, within [-1, 1]."""
        if not -1.0 <= difference <= 1.0:
            raise ValueError(f"a difference of scores lies within -1 and 1, not {difference}")
        if self.decided:
            return
        self.count += 1
        self._sum += difference
        self._seen[difference] += 1
        if difference:
            for index, bet in enumerate(_BETS):
                self._up[index] += math.log1p(bet * difference)
                self._down[index] += math.log1p(-bet * difference)
            for verdict, logs in (("better", self._up), ("worse", self._down)):
                wealth = _log_mean(logs)
                self._peak = max(self._peak, wealth)
                if wealth >= self._goal:
                    self.verdict = "better" if verdict == "better" else "worse"

    @property
    def mean(self) -> float:
        """Mean difference so far; 0 without any."""
        return self._sum / self.count if self.count else 0.0

    @property
    def p_value(self) -> float:
        """The always-valid p-value of both sides together: it only ever falls."""
        return min(1.0, 2.0 * math.exp(-self._peak))

    @property
    def decided(self) -> bool:
        """Whether the difference has been shown at the level."""
        return self.verdict != "no clear difference"

    def interval(self) -> Interval:
        """The confidence sequence: every mean against which neither gambler has won."""
        if not self.count:
            return Interval(low=-1.0, high=1.0, level=self.level)
        return Interval(low=self._edge(1.0), high=self._edge(-1.0), level=self.level)

    @property
    def _goal(self) -> float:
        return math.log(2.0 / (1.0 - self.level))

    def _edge(self, side: float) -> float:
        """The lower end (`side` 1) or the upper one (-1), between the mean, which is never ruled out, and the bound."""
        inside, outside = self.mean, -side
        if not self._rules_out(outside * (1.0 - 1e-9), side):
            return outside
        for _ in range(50):
            middle = (inside + outside) / 2.0
            inside, outside = (inside, middle) if self._rules_out(middle, side) else (middle, outside)
        # A verdict excludes zero, on whichever side of it the bisection ends.
        return outside if self.decided else inside

    def _rules_out(self, mean: float, side: float) -> bool:
        """Whether a gambler who bets that the truth lies above (`side` 1) or below this mean has won."""
        # Scaled so that no loss exceeds the stake.
        scale = side / (1.0 + side * mean)
        logs = [
            math.fsum(n * math.log1p(bet * scale * (x - mean)) for x, n in self._seen.items())
            for bet in _BETS
        ]
        return _log_mean(logs) >= self._goal


class PlannedLooks:
    """The sign-flip test after each of so many equal parts of the planned units."""

    def __init__(self, looks: int, planned: int, *, level: float = 0.95) -> None:
        self.level = 1.0 - (1.0 - level) / looks
        self.method = f"sign-flip at {looks} planned looks"
        self.verdict: Verdict = "no clear difference"
        self._at = {math.ceil(look * planned / looks) for look in range(1, looks + 1)}
        self._values: list[float] = []

    def add(self, difference: float) -> None:
        """One more difference, in the order of asking; looked at only where that was planned."""
        if self.decided:
            return
        self._values.append(difference)
        if self.count in self._at:
            self.verdict = verdict_of(paired_difference(self._values, level=self.level))

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
        """Whether the difference has been shown at a look."""
        return self.verdict != "no clear difference"

    @property
    def p_value(self) -> float | None:
        """Of the units so far, before it is divided among the looks."""
        found = paired_difference(self._values, level=self.level)
        return None if found is None else found.p_value

    def interval(self) -> Interval:
        """Of the units so far, at the level of one look: it holds at the level of all."""
        found = paired_difference(self._values, level=self.level)
        if found is None:
            return Interval(low=-1.0, high=1.0, level=self.level)
        return Interval(low=found.low, high=found.high, level=self.level)


def sequential_document(test: AnytimeTest | PlannedLooks) -> dict[str, Any]:
    """What a test says, as `ab --json` has it."""
    interval = test.interval()
    return {
        "mean": test.mean,
        "low": interval.low,
        "high": interval.high,
        "level": interval.level,
        "p_value": test.p_value,
        "differences": test.count,
        "method": test.method,
        "verdict": test.verdict,
    }


def _log_mean(logs: Sequence[float]) -> float:
    """The logarithm of the mean of what the bets have grown to."""
    top = max(logs)
    return top + math.log(math.fsum(math.exp(value - top) for value in logs) / len(logs))
