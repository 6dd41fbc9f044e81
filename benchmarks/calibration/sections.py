"""The simulated experiments, section by section."""

import math
import random
from collections.abc import Callable, Sequence

import numpy as np
from bounds import LEAST_COVERAGE, MOST_ALARMS, MOST_COVERAGE, Judge, too_discrete
from drawn import drawn
from hidden import holds_back, unavoidable, widened
from populations import DIFFERENT, EQUAL, LOPSIDED, Population, passes

from answerkey.stats.distributions import t_quantile, t_two_sided
from answerkey.stats.intervals import mean_interval, wilson_interval
from answerkey.stats.paired import Difference, holm, paired_difference, verdict_of
from answerkey.stats.rates import mcnemar_p_value, newcombe_interval
from answerkey.stats.sequential import AnytimeTest
from answerkey.stats.signflip import sign_flip_p_value

__all__ = ["SECTIONS"]


def head(title: str, *columns: str) -> None:
    """The title and the columns of a table."""
    print(f"\n{title}")
    print(f"{'':26}{'n':>6}" + "".join(f"{column:>12}" for column in columns), flush=True)


def row(name: str, n: int, *cells: str) -> None:
    """One line of it."""
    print(f"{name:26}{n:>6}" + "".join(f"{cell:>12}" for cell in cells), flush=True)


def shown(count: float, trials: int) -> str:
    """A rate in percent."""
    return f"{100 * count / trials:.1f}"


def t_parts(values: list[float]) -> tuple[float, float]:
    """Mean and standard error, for the plain paired t test beside ours."""
    n = len(values)
    mean = math.fsum(values) / n
    return mean, math.sqrt(math.fsum((v - mean) ** 2 for v in values) / (n - 1) / n)


class Part:
    """What n questions can show of a population."""

    def __init__(self, population: Population, n: int, source: random.Random) -> None:
        self._differences = population.differences
        self._truth = population.truth
        self._n = n
        self._source = source
        self.discrete = too_discrete(n, population.changed)

    def false_alarms(self) -> float | None:
        """Those that cannot be avoided."""
        return self._unavoidable(MOST_ALARMS)

    def misses(self) -> float | None:
        """Intervals that cannot hold the truth."""
        return self._unavoidable(1.0 - LEAST_COVERAGE)

    def _unavoidable(self, most: float) -> float | None:
        return unavoidable(self._differences, self._n, self._truth, most, MOST_COVERAGE, self._source)

    def held_back(self) -> bool:
        """Whether the promise, here or for the twin with a rare loss, demands more caution than 3 to 6%."""
        arguments = (self._differences, self._n, self._truth, MOST_ALARMS, self._source)
        return holds_back(*arguments) or widened(*arguments) > MOST_COVERAGE


def holds(found: Difference, truth: float) -> bool:
    """Whether the interval holds the truth."""
    return found.low - 1e-9 <= truth <= found.high + 1e-9


def differences(judge: Judge, trials: int, sizes: list[int], source: random.Random) -> None:
    """False alarms of two equal chatbots, and coverage of the interval of every difference."""
    compared(
        "The difference of two runs: false alarms at 5% if there is none, coverage of the 95% interval",
        EQUAL + LOPSIDED + DIFFERENT,
        *(judge, trials, sizes, source),
    )


def unseen(judge: Judge, trials: int, sizes: list[int], source: random.Random) -> None:
    """The same for populations drawn by chance, which no constant was chosen on."""
    each = Judge()
    compared("Populations drawn by chance", drawn(18, source.getrandbits(32)), *(each, trials, sizes, source))
    judge.take(each)


def compared(
    title: str,
    populations: Sequence[Population],
    judge: Judge,
    trials: int,
    sizes: list[int],
    source: random.Random,
) -> None:
    """One row for each population and size."""
    head(
        title,
        *("alarms", "", "coverage", "", "t alarms", "t coverage", "flip alarms", "width", "t width"),
    )
    for population in populations:
        truth, equal = population.truth, abs(population.truth) < 1e-9
        for n in sizes:
            alarms = held = t_alarms = t_held = flip_alarms = 0
            width = t_width = 0.0
            for _ in range(trials):
                values = source.choices(population.differences, k=n)
                found = paired_difference(values)
                assert found is not None
                clear = verdict_of(found) != "no clear difference"
                # Test and interval say the same.
                assert clear == (found.p_value is not None and found.p_value < 0.05)
                alarms += clear
                held += holds(found, truth)
                width += found.high - found.low
                mean, error = t_parts(values)
                half = t_quantile(0.975, n - 1) * error
                t_alarms += abs(mean) > half
                t_held += mean - half - 1e-9 <= truth <= mean + half + 1e-9
                t_width += 2.0 * half
                if equal and n <= 50:
                    p = sign_flip_p_value(values)[0]
                    flip_alarms += p is not None and p < 0.05
            what = f"{population.name}, n={n}"
            part = Part(population, n, source)
            verdict = ""
            if equal:
                verdict = judge.alarms(
                    f"test, {what}",
                    alarms / trials,
                    trials,
                    discrete=part.discrete,
                    unavoidable=part.false_alarms,
                    held_back=part.held_back,
                )
            row(
                population.name,
                n,
                shown(alarms, trials) if equal else "",
                verdict,
                shown(held, trials),
                judge.coverage(
                    f"interval, {what}",
                    held / trials,
                    trials,
                    discrete=part.discrete,
                    unavoidable=part.misses,
                    held_back=part.held_back,
                ),
                shown(t_alarms, trials) if equal else "",
                shown(t_held, trials),
                shown(flip_alarms, trials) if equal and n <= 50 else "",
                f"{width / trials:.3f}",
                f"{t_width / trials:.3f}",
            )


def means(judge: Judge, trials: int, sizes: list[int], source: random.Random) -> None:
    """Coverage of the interval of one run's score."""
    head("Coverage of the 95% interval of one run's score", "ours", "", "Student's t", "width", "mean")
    for population in [p for p in EQUAL if "same" not in p.name]:
        truth = population.mean
        for n in sizes:
            held = held_t = 0
            width = 0.0
            for _ in range(trials):
                values = source.choices(population.scores, k=n)
                found, plain = mean_interval(values), mean_interval(values, bounds=None)
                assert found is not None
                assert plain is not None
                held += found.low <= truth <= found.high
                held_t += plain.low <= truth <= plain.high
                width += found.high - found.low
            discrete = too_discrete(n, population.varied)
            verdict = judge.coverage(
                f"mean, {population.name}, n={n}", held / trials, trials, discrete=discrete
            )
            row(population.name, n, shown(held, trials), verdict, shown(held_t, trials),
                f"{width / trials:.3f}", f"{truth:.3f}")  # fmt: skip


def rates(judge: Judge, trials: int, sizes: list[int], source: random.Random) -> None:
    """Pass rates of one and of two runs."""
    head(
        "Pass rates: McNemar's false alarms, coverage of Newcombe's and Wilson's intervals",
        "mid-p", "", "exact", "Newcombe", "", "Wilson", "",
    )  # fmt: skip
    for rate in (0.6, 0.8, 0.95):
        make = passes(rate, rate)
        # Half of the questions share their luck.
        flipping = 0.5 * 2.0 * rate * (1.0 - rate)
        for n in sizes:
            mid = exact = covered = wilson = 0
            for _ in range(trials):
                pairs = [make(source) for _ in range(n)]
                fixed, broken = sum(b > a for a, b in pairs), sum(a > b for a, b in pairs)
                both = sum(a == b == 1.0 for a, b in pairs)
                p, plain = mcnemar_p_value(fixed, broken), mcnemar_p_value(fixed, broken, mid=False)
                mid += p is not None and p < 0.05
                exact += plain is not None and plain < 0.05
                neither = n - both - fixed - broken
                found = newcombe_interval(both=both, fixed=fixed, broken=broken, neither=neither)
                one = wilson_interval(both + broken, n)
                assert found is not None
                assert one is not None
                covered += found.low <= 0.0 <= found.high
                wilson += one.low <= rate <= one.high
            discrete = too_discrete(n, flipping)
            what = f"both pass {rate:.0%}, n={n}"
            row(
                f"both pass {rate:.0%}",
                n,
                shown(mid, trials),
                judge.alarms(f"McNemar, {what}", mid / trials, trials, discrete=discrete),
                shown(exact, trials),
                shown(covered, trials),
                judge.coverage(f"Newcombe, {what}", covered / trials, trials, discrete=discrete),
                shown(wilson, trials),
                judge.coverage(
                    f"Wilson, {what}",
                    wilson / trials,
                    trials,
                    discrete=too_discrete(n, min(rate, 1.0 - rate)),
                ),
            )


def clusters(judge: Judge, trials: int, sizes: list[int], source: random.Random) -> None:
    """Questions that fall or rise together."""
    head(
        "Questions in clusters (templates): n clusters",
        "alarms", "", "coverage", "", "naive alarms", "naive cover",
    )  # fmt: skip
    shapes: dict[str, Callable[[], int]] = {
        "four each": lambda: 4,
        "one to eight": lambda: source.randint(1, 8),
        "few big ones": lambda: 12 if source.random() < 0.15 else 2,
    }
    for shape, size in shapes.items():
        for n in [n for n in sizes if n <= 200]:
            counts = [0, 0, 0, 0]
            changed = 0
            for _ in range(trials):
                values: list[float] = []
                names: list[int] = []
                for cluster in range(n):
                    shift = source.choice([0.0, 0.0, 0.0, 0.3, -0.3])
                    before = len(values)
                    for _ in range(size()):
                        own = (
                            source.choice([0.4, -0.4, 0.2, -0.2, 0.1, -0.1]) if source.random() < 0.3 else 0.0
                        )
                        values.append(round(own + (shift if source.random() < 0.8 else 0.0), 9))
                        names.append(cluster)
                    changed += abs(math.fsum(values[before:])) > 1e-9
                for index, found in enumerate(
                    (paired_difference(values, clusters=names), paired_difference(values))
                ):
                    assert found is not None
                    counts[2 * index] += verdict_of(found) != "no clear difference"
                    counts[2 * index + 1] += found.low <= 0.0 <= found.high
            discrete = too_discrete(n, changed / trials / n)
            row(
                shape,
                n,
                shown(counts[0], trials),
                judge.alarms(f"clusters, {shape}, n={n}", counts[0] / trials, trials, discrete=discrete),
                shown(counts[1], trials),
                judge.coverage(f"clusters, {shape}, n={n}", counts[1] / trials, trials, discrete=discrete),
                *(shown(count, trials) for count in counts[2:]),
            )


def anytime(judge: Judge, trials: int, sizes: list[int], source: random.Random) -> None:
    """An experiment that is looked at after every question."""
    head("Looking after every question, up to n", "anytime", "", "t peeked", "holds", "")
    top = max(sizes)
    # From the tenth question on; before, hardly anybody would look.
    counts = np.arange(1, top + 1)
    critical = np.array([t_quantile(0.975, max(n - 1, 1)) for n in counts.tolist()])
    for population in EQUAL + LOPSIDED:
        alarms = peeked = held = 0
        for _ in range(trials):
            values = source.choices(population.differences, k=top)
            test = AnytimeTest(values)
            alarms += test.decided
            # The interval at the end; wherever the test has decided, some interval on the way did without zero.
            held += not test.rules_out(0.0)
            column = np.array(values)
            means = np.cumsum(column) / counts
            squares = np.cumsum(column * column) - counts * means * means
            errors = np.sqrt(np.maximum(squares, 0.0) / np.maximum(counts - 1, 1) / counts)
            peeked += bool((np.abs(means) > critical * errors + 1e-12)[9:].any())
        row(
            population.name,
            top,
            shown(alarms, trials),
            judge.at_most(f"anytime, {population.name}", alarms / trials, 0.05, trials),
            *(shown(count, trials) for count in (peeked, held)),
            judge.at_most(f"anytime interval misses, {population.name}", 1.0 - held / trials, 0.05, trials),
        )


def family(judge: Judge, trials: int, sizes: list[int], source: random.Random) -> None:
    """Many categories at once."""
    head("Eight categories at once: runs with any false alarm", "Holm", "", "uncorrected")
    fair = EQUAL[1]
    for n in [n for n in sizes if n <= 200]:
        corrected = plain = 0
        for _ in range(trials):
            p_values = []
            for _ in range(8):
                found = paired_difference(source.choices(fair.differences, k=n))
                p_values.append(None if found is None else found.p_value)
            corrected += any(p is not None and p < 0.05 for p in holm(p_values))
            plain += any(p is not None and p < 0.05 for p in p_values)
        discrete = too_discrete(n, fair.changed, level=0.05 / 8)
        verdict = judge.alarms(f"Holm, n={n}", corrected / trials, trials, discrete=discrete)
        row(fair.name, n, shown(corrected, trials), verdict, shown(plain, trials))


def power(judge: Judge, trials: int, sizes: list[int], source: random.Random) -> None:
    """Real differences, beside the paired t test; nothing is promised here."""
    head("Power: real differences found", "ours", "sign-flip", "paired t", "anytime by n", "difference")
    times = trials // 2
    for population in DIFFERENT:
        for n in sizes:
            ours = flip = t = early = 0
            for _ in range(times):
                values = source.choices(population.differences, k=n)
                found = paired_difference(values)
                assert found is not None
                ours += verdict_of(found) != "no clear difference"
                p = sign_flip_p_value(values)[0]
                flip += p is not None and p < 0.05
                mean, error = t_parts(values)
                t += error > 1e-9 and t_two_sided(mean / error, n - 1) < 0.05
                early += n <= 200 and AnytimeTest(values).decided
            cells = [shown(count, times) for count in (ours, flip, t)]
            sequential = shown(early, times) if n <= 200 else "-"
            row(population.name, n, *cells, sequential, f"{population.truth:+.3f}")


SECTIONS = {
    "differences": differences,
    "unseen": unseen,
    "means": means,
    "rates": rates,
    "clusters": clusters,
    "anytime": anytime,
    "family": family,
    "power": power,
}
