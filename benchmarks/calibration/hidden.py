"""What a sample can hide: how often a test or an interval must err because something was not drawn.

Take the differences of a population beyond some size away, a share r of them. Of n questions none of these is drawn with
the chance h = (1 - r)^n, and the sample is then one of the rest of the population, exactly. A test that calls the rest
different from the population's mean in a share W of experiments is therefore wrong in at least h W of the population's.
All is reckoned from the population itself; nothing is listed by hand.
"""

import math
import random
from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt
from bounds import too_discrete

from answerkey.stats.distributions import t_quantile

__all__ = ["holds_back", "unavoidable", "widened"]

LEVEL = 0.05
# At most so many tails are tried on either side.
_CUTS = 12
_EXPERIMENTS = 2000


def unavoidable(
    differences: Sequence[float], n: int, truth: float, most: float, widest: float, source: random.Random
) -> float | None:
    """The rate of error to allow where the promises for the population and for its visible rest contradict each other.

    An interval that holds the mean of the rest in at most `widest` of experiments, Student's of that width, misses the
    population's mean in W of them. None unless h W alone exceeds `most`; else that, and 5% of experiments that drew more.
    """
    largest: float | None = None
    for chance, rest in _visible(differences, n, most):
        if too_discrete(n, 1.0 - rest.count(0.0) / len(rest)):
            # Of such a rest the interval may be as wide as it likes.
            continue
        drawn = _drawn(rest, n, source)
        critical = float(np.quantile(np.abs(_t(drawn, math.fsum(rest) / len(rest))), widest))
        missed = chance * float((np.abs(_t(drawn, truth)) > critical).mean())
        if missed > most:
            largest = max(largest or 0.0, missed + (1.0 - chance) * LEVEL)
    return largest


def holds_back(
    differences: Sequence[float], n: int, truth: float, most: float, source: random.Random
) -> bool:
    """Whether a test must be more cautious than the paired t test on the visible part to err at most at `most` here."""
    for chance, rest in _visible(differences, n, most):
        t = _t(_drawn(rest, n, source), truth)
        if chance * float((np.abs(t) > t_quantile(1.0 - LEVEL / 2.0, n - 1)).mean()) > most:
            return True
    return False


def widened(differences: Sequence[float], n: int, truth: float, most: float, source: random.Random) -> float:
    """The coverage of a t interval as wide as the population's twin demands; 0 if Student's own is wide enough.

    The twin has losses of a whole point besides, so rare that they just cancel the gain. To call it different in at most
    `most` of experiments, the interval must hold zero in all but `most` / h of this population's.
    """
    rare = abs(truth) / (1.0 + abs(truth))
    drawn = _drawn(differences, n, source)
    allowed = most / (1.0 - rare) ** n
    if allowed >= 1.0:
        return 0.0
    demanded = float(np.quantile(np.abs(_t(drawn, 0.0)), 1.0 - allowed))
    if demanded <= t_quantile(1.0 - LEVEL / 2.0, n - 1):
        return 0.0
    return float((np.abs(_t(drawn, truth)) <= demanded).mean())


def _visible(differences: Sequence[float], n: int, most: float) -> Iterator[tuple[float, list[float]]]:
    """Chances that a tail is not drawn, and what is left without it."""
    counts = sorted(Counter(differences).items())
    size = len(differences)
    for side in (counts, counts[::-1]):
        cuts: list[tuple[float, int]] = []
        removed = 0
        for place, (_, count) in enumerate(side[:-1], start=1):
            removed += count
            chance = (1.0 - removed / size) ** n
            if chance <= most:
                break
            cuts.append((chance, place))
        step = max(1, math.ceil(len(cuts) / _CUTS))
        for chance, place in cuts[::-step]:
            yield chance, [value for value, count in side[place:] for _ in range(count)]


def _drawn(differences: Sequence[float], n: int, source: random.Random) -> npt.NDArray[np.float64]:
    generator = np.random.default_rng(source.getrandbits(32))
    return generator.choice(np.array(differences), size=(_EXPERIMENTS, n))


def _t(drawn: npt.NDArray[np.float64], truth: float) -> npt.NDArray[np.float64]:
    """Student's t of each experiment; infinite where nothing varies but the mean is another."""
    distance = np.round(drawn.mean(axis=1) - truth, 9)
    errors = drawn.std(axis=1, ddof=1) / math.sqrt(drawn.shape[1])
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(distance == 0.0, 0.0, distance / np.where(errors < 1e-12, 0.0, errors))
