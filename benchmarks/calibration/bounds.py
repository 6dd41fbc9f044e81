"""What is promised of every row, and when a row is judged by another bound: one rule for all, computed and not listed.

A test at 5% may give 3 to 6% false alarms, a 95% interval may hold the truth 93 to 97% of the time, both within two
standard errors of the simulation. Two kinds of rows cannot keep that, whatever the arithmetic:

- Too discrete: a change of sign flips the outcome of at most 2^m equally likely experiments if m questions differ, so with
  fewer than five no outcome at all has a mid-p value below 5%. Where that is so in more than 40% of experiments, no test of
  the data can give more than 0.6 x 5% = 3% false alarms. Such a row may be more cautious, and only that.
- Hidden: part of the population is so rare that it is often not drawn at all (hidden.py). If an interval that is not too
  wide for what is left is bound to err more often than promised, the row is held to that bound instead; and if only a test
  that overlooks what is left can keep the promise, the row may be more cautious.
"""

import math
from collections.abc import Callable

__all__ = ["LEAST_COVERAGE", "MOST_ALARMS", "MOST_COVERAGE", "Judge", "too_discrete"]

LEAST_ALARMS, MOST_ALARMS = 0.03, 0.06
LEAST_COVERAGE, MOST_COVERAGE = 0.93, 0.97
UNDECIDABLE = 0.4
# The share of rows that may lie outside the bounds where nobody chose the population; never by too many false alarms.
OUTSIDE = 0.05


def nothing_hidden() -> None:
    """For rows of which no part is rare."""


class Judge:
    """Judges rows, and remembers those that broke the promise."""

    def __init__(self) -> None:
        self.rows = 0
        self.discrete = 0
        self.hidden: list[str] = []
        self.tolerated: list[str] = []
        self.broken: list[str] = []
        # Whether any of those is a test with too many false alarms.
        self.alarmed = False

    def alarms(
        self,
        what: str,
        rate: float,
        trials: int,
        *,
        discrete: bool,
        unavoidable: Callable[[], float | None] = nothing_hidden,
        held_back: Callable[[], bool | None] = nothing_hidden,
    ) -> str:
        """A rate of false alarms; what is hidden is reckoned only for a row that breaks the plain promise."""
        text = f"{what}: {100 * rate:.1f}% false alarms"
        if rate > MOST_ALARMS + slack(MOST_ALARMS, trials):
            verdict = self._wrong(text, rate, unavoidable(), trials)
            self.alarmed |= verdict == "FAIL"
            return verdict
        return self._cautious(text, rate < LEAST_ALARMS - slack(LEAST_ALARMS, trials), discrete, held_back)

    def coverage(
        self,
        what: str,
        rate: float,
        trials: int,
        *,
        discrete: bool,
        unavoidable: Callable[[], float | None] = nothing_hidden,
        held_back: Callable[[], bool | None] = nothing_hidden,
    ) -> str:
        """A rate at which intervals hold the truth."""
        text = f"{what}: covers {100 * rate:.1f}%"
        if rate < LEAST_COVERAGE - slack(LEAST_COVERAGE, trials):
            return self._wrong(text, 1.0 - rate, unavoidable(), trials)
        return self._cautious(text, rate > MOST_COVERAGE + slack(MOST_COVERAGE, trials), discrete, held_back)

    def at_most(self, what: str, rate: float, most: float, trials: int) -> str:
        """A rate with an upper bound only."""
        text = f"{what}: {100 * rate:.1f}%"
        if rate > most + slack(most, trials):
            return self._wrong(text, rate, None, trials)
        return self._cautious(text, False, False, nothing_hidden)

    def take(self, others: "Judge") -> None:
        """Rows of populations that nobody chose: a few of them may lie outside, if not by too many false alarms."""
        self.rows += others.rows
        self.discrete += others.discrete
        self.hidden += others.hidden
        if others.alarmed or len(others.broken) > OUTSIDE * others.rows:
            self.broken += others.broken
        else:
            self.tolerated += others.broken

    def _wrong(self, what: str, errors: float, bound: float | None, trials: int) -> str:
        """More errors than promised: at most as many as nothing can avoid."""
        self.rows += 1
        if bound is None or errors > bound + slack(bound, trials):
            self.broken.append(what)
            return "FAIL"
        self.hidden.append(f"{what}, unavoidable {100 * bound:.1f}%")
        return f"hid {100 * bound:.1f}"

    def _cautious(
        self, what: str, cautious: bool, discrete: bool, held_back: Callable[[], bool | None]
    ) -> str:
        """No more errors than promised, but perhaps too few."""
        self.rows += 1
        if not cautious:
            return "pass"
        if discrete:
            self.discrete += 1
            return "discrete"
        if held_back():
            self.hidden.append(f"{what}, cautious")
            return "hidden"
        self.broken.append(f"{what}, too cautious")
        return "FAIL"


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
