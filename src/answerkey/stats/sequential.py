"""An always-valid test of paired differences: it may be looked at after every question without raising the error rate.

Two gamblers bet on each difference, one that the candidate is better, one that it is worse, each spreading the stake
over several bet sizes. If the true mean difference is zero their average wealth is a fair game, so the chance that it
ever reaches 1/α is at most α (Ville's inequality), however often one looks and whenever one stops. It holds for any
distribution of differences within [-1, 1]: skewed, tied or changing over time. Waudby-Smith and Ramdas (2023).
"""

import math
from collections import Counter
from collections.abc import Iterable, Sequence

from answerkey.stats.intervals import Interval

__all__ = ["AnytimeTest"]

# Bet sizes and their shares of the stake. Scores rarely differ by a whole point, so the largest bet is nearly always
# the best one; the small ones survive where large differences of both signs are common.
_BETS = (0.05, 0.12, 0.25, 0.5, 0.98)
_LOG_SHARES = tuple(math.log(share / 2.0) for share in (0.06, 0.1, 0.14, 0.2, 0.5))


class AnytimeTest:
    """Wealth of the two gamblers after the differences seen so far."""

    def __init__(self, differences: Iterable[float] = (), *, level: float = 0.95) -> None:
        self.level = level
        self.count = 0
        self._sum = 0.0
        self._seen: Counter[float] = Counter()
        self._log_up = [0.0] * len(_BETS)
        self._log_down = [0.0] * len(_BETS)
        self._peak = 0.0
        for difference in differences:
            self.add(difference)

    def add(self, difference: float) -> None:
        """One more difference, candidate minus base, within [-1, 1]."""
        if not -1.0 <= difference <= 1.0:
            raise ValueError(f"a difference of scores lies within -1 and 1, not {difference}")
        self.count += 1
        self._sum += difference
        self._seen[difference] += 1
        if difference:
            for index, bet in enumerate(_BETS):
                self._log_up[index] += math.log1p(bet * difference)
                self._log_down[index] += math.log1p(-bet * difference)
            self._peak = max(self._peak, _log_wealth(self._log_up, self._log_down))

    @property
    def mean(self) -> float:
        """Mean difference so far; 0 without any."""
        return self._sum / self.count if self.count else 0.0

    @property
    def p_value(self) -> float:
        """The always-valid p-value: it only ever falls."""
        return min(1.0, math.exp(-self._peak))

    @property
    def decided(self) -> bool:
        """Whether the difference has been shown at the level."""
        return self.p_value <= 1.0 - self.level

    def rules_out(self, mean: float) -> bool:
        """Whether this mean difference lies outside the interval."""
        return self._wealth_against(mean) >= -math.log(1.0 - self.level)

    def interval(self) -> Interval:
        """The confidence sequence: every mean difference that has not been ruled out so far."""
        if not self.count:
            return Interval(low=-1.0, high=1.0, level=self.level)
        return Interval(low=self._edge(-1.0), high=self._edge(1.0), level=self.level)

    def _edge(self, outer: float) -> float:
        """Bisect between the mean, which is never ruled out, and the bound."""
        if not self.rules_out(outer * (1.0 - 1e-9)):
            return outer
        inside, outside = self.mean, outer
        for _ in range(50):
            middle = (inside + outside) / 2.0
            if self.rules_out(middle):
                outside = middle
            else:
                inside = middle
        return inside

    def _wealth_against(self, mean: float) -> float:
        """Wealth if the bets had been against this mean; bets are scaled so that no loss exceeds the stake."""
        ups, downs = [], []
        for bet in _BETS:
            up, down = bet / (1.0 + mean), bet / (1.0 - mean)
            ups.append(math.fsum(n * math.log1p(up * (x - mean)) for x, n in self._seen.items()))
            downs.append(math.fsum(n * math.log1p(-down * (x - mean)) for x, n in self._seen.items()))
        return _log_wealth(ups, downs)


def _log_wealth(ups: Sequence[float], downs: Sequence[float]) -> float:
    """Wealth of both gamblers together, from the logarithms of what each bet has grown to."""
    logs = [share + up for share, up in zip(_LOG_SHARES, ups, strict=True)]
    logs += [share + down for share, down in zip(_LOG_SHARES, downs, strict=True)]
    top = max(logs)
    return top + math.log(math.fsum(math.exp(value - top) for value in logs))
