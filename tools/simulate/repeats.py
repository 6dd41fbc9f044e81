"""`--confirm` before equal versions whose questions differ in difficulty, and before one broken question."""

import math
from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt
from simulated_shares import format_share

from answerkey.stats.intervals import Repeats, chance_of_no_success

__all__ = ["repeats_section"]

Source = np.random.Generator
Floats = npt.NDArray[np.float64]

TIMES = (1, 2, 3, 5, 10, 20)
QUESTIONS = (20, 50, 106, 300)
POPULATIONS: dict[str, Callable[[int, Source], Floats]] = {
    "all 90%": lambda n, _: np.full(n, 0.9),
    "all 50%": lambda n, _: np.full(n, 0.5),
    "80% certain, 20% pass 15% of the time": lambda n, _: np.where(np.arange(n) < 0.8 * n, 1.0, 0.15),
    "90% certain, 10% between 0 and 40%": lambda n, source: np.where(
        np.arange(n) < 0.9 * n, 1.0, 0.4 * source.random(n)
    ),
    "70% certain, 30% between 0 and 100%": lambda n, source: np.where(
        np.arange(n) < 0.7 * n, 1.0, source.random(n)
    ),
    "Beta(0.5, 0.2)": lambda n, source: source.beta(0.5, 0.2, n),
}
# One question is broken for good; the others have this pass rate.
BROKEN = (1.0, 0.9, 0.7)


def is_refused(before: Floats, after: Floats, times: int, source: Source) -> bool:
    """Whether a question is confirmed broken, with pass rates of the base and of the candidate."""
    base, candidate = (source.random(len(rates)) < rates for rates in (before, after))
    fell = source.binomial(times, after[base & ~candidate])
    if not (fell == 0).any():
        return False
    # Those that never succeeded are asked until there are 20 replies in all.
    silent = np.flatnonzero(base & ~candidate)[fell == 0]
    further = max(math.ceil(20 / len(silent)) - times, 0)
    fell[fell == 0] = source.binomial(further, after[silent])
    if not (fell == 0).any():
        return False
    fell = np.minimum(fell, times)
    failing = after[~base & ~candidate][:20]
    asked = math.ceil(20 / max(len(failing), 1))
    groups = (
        Repeats(successes=fell.tolist(), times=times),
        Repeats(
            successes=source.binomial(times, after[~base & candidate]).tolist(), times=times, left_out=times
        ),
        Repeats(successes=source.binomial(asked, failing).tolist(), times=asked, passed=0, failed=2),
    )
    if not any(group.varied for group in groups):
        return True
    return chance_of_no_success(groups, times + further) * len(fell) < 0.05


def repeats_section(trials: int, _sizes: Sequence[int], source: Source) -> None:
    """Tables of false refusals and of broken questions found, by repeats."""
    head = "".join(f" K = {times} |" for times in TIMES)
    print(f"\n| equal versions refused | questions |{head}\n|---|---|{'---|' * len(TIMES)}", flush=True)
    for name, rates in POPULATIONS.items():
        for number in QUESTIONS:
            cells = []
            for times in TIMES:
                drawn = [rates(number, source) for _ in range(trials)]
                wrong = sum(is_refused(one, one, times, source) for one in drawn)
                cells.append(format_share(wrong / trials, trials))
            print(f"| {name} | {number} | {' | '.join(cells)} |", flush=True)
    print(f"\n| one broken question found | questions |{head}\n|---|---|{'---|' * len(TIMES)}", flush=True)
    for rate in BROKEN:
        for number in QUESTIONS:
            before, after = np.full(number, rate), np.full(number, rate)
            # It passed before, or there would be nothing to ask again.
            before[0], after[0] = 1.0, 0.0
            found = [sum(is_refused(before, after, times, source) for _ in range(trials)) for times in TIMES]
            cells = [format_share(count / trials, trials) for count in found]
            print(f"| the others pass {rate:.0%} | {number} | {' | '.join(cells)} |", flush=True)
