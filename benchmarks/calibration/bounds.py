"""What is promised of every row, and when a row is excused: one rule for all, computed and not listed.

A test at 5% may give 3 to 6% false alarms, a 95% interval may hold the truth 93 to 97% of the time, both within two
standard errors of the simulation. A row may be more cautious than that, and only that, where its data are too discrete:
a change of sign flips the outcome of at most 2^m equally likely experiments if m questions differ, so with fewer than five
no outcome at all has a mid-p value below 5%. Where that is so in more than 40% of experiments, no test of the data can
give more than 0.6 x 5% = 3% false alarms, and no interval that agrees with it can exclude much.
"""

import math

__all__ = ["Judge"]

LEAST_ALARMS, MOST_ALARMS = 0.03, 0.06
LEAST_COVERAGE, MOST_COVERAGE = 0.93, 0.97
UNDECIDABLE = 0.4


class Judge:
    """Judges rows, and remembers those that broke the promise."""

    def __init__(self) -> None:
        self.rows = 0
        self.excused = 0
        self.broken: list[str] = []

    def alarms(self, what: str, rate: float, trials: int, *, discrete: bool, floor: bool = True) -> str:
        """A rate of false alarms."""
        low = LEAST_ALARMS - slack(LEAST_ALARMS, trials) if floor else 0.0
        high = MOST_ALARMS + slack(MOST_ALARMS, trials)
        return self._judge(f"{what}: {100 * rate:.1f}% false alarms", rate < low, rate > high, discrete)

    def coverage(self, what: str, rate: float, trials: int, *, discrete: bool) -> str:
        """A rate at which intervals hold the truth."""
        low = LEAST_COVERAGE - slack(LEAST_COVERAGE, trials)
        high = MOST_COVERAGE + slack(MOST_COVERAGE, trials)
        return self._judge(f"{what}: covers {100 * rate:.1f}%", rate > high, rate < low, discrete)

    def at_most(self, what: str, rate: float, most: float, trials: int) -> str:
        """A rate with an upper bound only."""
        return self._judge(
            f"{what}: {100 * rate:.1f}%", False, rate > most + slack(most, trials), discrete=False
        )

    def _judge(self, what: str, cautious: bool, wrong: bool, discrete: bool) -> str:
        self.rows += 1
        if wrong or (cautious and not discrete):
            self.broken.append(f"{what}{', too cautious' if cautious else ''}")
            return "FAIL"
        if cautious:
            self.excused += 1
            return "discrete"
        return "pass"


def slack(rate: float, trials: int) -> float:
    """Two standard errors of a simulated rate."""
    return 2.0 * math.sqrt(rate * (1.0 - rate) / trials)


def too_discrete(n: int, share: float, level: float = 0.05) -> bool:
    """Whether, in more than 40% of experiments, too few of n questions differ for any outcome to be significant."""
    needed = math.floor(-math.log2(level)) + 1
    fewer = math.fsum(
        math.comb(n, k) * share**k * (1.0 - share) ** (n - k) for k in range(min(needed, n + 1))
    )
    return fewer > UNDECIDABLE
