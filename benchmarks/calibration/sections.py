"""The simulated experiments, section by section."""

import math
import random
from collections.abc import Callable

import numpy as np
from bounds import Judge, too_discrete
from populations import DIFFERENT, EQUAL, LOPSIDED, passes

from answerkey.stats.distributions import t_quantile, t_two_sided
from answerkey.stats.intervals import mean_interval, wilson_interval
from answerkey.stats.multiple import holm
from answerkey.stats.paired import paired_difference, verdict_of
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


def fewer(trials: int, n: int) -> int:
    """Large experiments take long and vary little: half as many of them."""
    return trials if n < 1000 else trials // 2


def differences(judge: Judge, trials: int, sizes: list[int], source: random.Random) -> None:
    """False alarms of two equal chatbots, and coverage of the interval of every difference."""
    head(
        "The difference of two runs: false alarms at 5% if there is none, coverage of the 95% interval",
        *("alarms", "", "coverage", "", "t alarms", "t coverage", "flip alarms", "width", "t width"),
    )
    for population in EQUAL + LOPSIDED + DIFFERENT:
        truth, equal = population.truth, population not in DIFFERENT
        for n in sizes:
            alarms = held = t_alarms = t_held = flip_alarms = 0
            width = t_width = 0.0
            times = fewer(trials, n)
            for _ in range(times):
                values = source.choices(population.differences, k=n)
                found = paired_difference(values)
                assert found is not None
                clear = verdict_of(found) != "no clear difference"
                # Test and interval say the same.
                assert clear == (found.p_value is not None and found.p_value < 0.05)
                alarms += clear
                held += found.low - 1e-9 <= truth <= found.high + 1e-9
                width += found.high - found.low
                mean, error = t_parts(values)
                half = t_quantile(0.975, n - 1) * error
                t_alarms += abs(mean) > half
                t_held += mean - half - 1e-9 <= truth <= mean + half + 1e-9
                t_width += 2.0 * half
                if equal and n <= 50:
                    p = sign_flip_p_value(values)[0]
                    flip_alarms += p is not None and p < 0.05
            discrete = too_discrete(n, population.changed)
            what = f"{population.name}, n={n}"
            judged = judge.alarms(f"test, {what}", alarms / times, times, discrete=discrete) if equal else ""
            row(
                population.name,
                n,
                shown(alarms, times) if equal else "",
                judged,
                shown(held, times),
                judge.coverage(f"interval, {what}", held / times, times, discrete=discrete),
                shown(t_alarms, times) if equal else "",
                shown(t_held, times),
                shown(flip_alarms, times) if equal and n <= 50 else "",
                f"{width / times:.3f}",
                f"{t_width / times:.3f}",
            )


def means(judge: Judge, trials: int, sizes: list[int], source: random.Random) -> None:
    """Coverage of the interval of one run's score."""
    head("Coverage of the 95% interval of one run's score", "ours", "", "Student's t", "width", "mean")
    for population in [p for p in EQUAL if "same" not in p.name]:
        truth = population.mean
        for n in sizes:
            held = held_t = 0
            width = 0.0
            times = fewer(trials, n)
            for _ in range(times):
                values = source.choices(population.scores, k=n)
                found, plain = mean_interval(values), mean_interval(values, bounds=None)
                assert found is not None
                assert plain is not None
                held += found.low <= truth <= found.high
                held_t += plain.low <= truth <= plain.high
                width += found.high - found.low
            discrete = too_discrete(n, population.varied)
            verdict = judge.coverage(
                f"mean, {population.name}, n={n}", held / times, times, discrete=discrete
            )
            row(population.name, n, shown(held, times), verdict, shown(held_t, times),
                f"{width / times:.3f}", f"{truth:.3f}")  # fmt: skip


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
            times = fewer(trials, n)
            for _ in range(times):
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
                shown(mid, times),
                judge.alarms(f"McNemar, {what}", mid / times, times, discrete=discrete),
                shown(exact, times),
                shown(covered, times),
                judge.coverage(f"Newcombe, {what}", covered / times, times, discrete=discrete),
                shown(wilson, times),
                judge.coverage(
                    f"Wilson, {what}", wilson / times, times, discrete=too_discrete(n, min(rate, 1.0 - rate))
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
    times = max(200, trials // 2)
    for shape, size in shapes.items():
        for n in [n for n in sizes if n <= 200]:
            counts = [0, 0, 0, 0]
            changed = 0
            for _ in range(times):
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
            discrete = too_discrete(n, changed / times / n)
            row(
                shape,
                n,
                shown(counts[0], times),
                judge.alarms(f"clusters, {shape}, n={n}", counts[0] / times, times, discrete=discrete),
                shown(counts[1], times),
                judge.coverage(f"clusters, {shape}, n={n}", counts[1] / times, times, discrete=discrete),
                *(shown(count, times) for count in counts[2:]),
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
    times = trials // 4
    for n in [n for n in sizes if n <= 200]:
        corrected = plain = 0
        for _ in range(times):
            p_values = []
            for _ in range(8):
                found = paired_difference(source.choices(fair.differences, k=n))
                p_values.append(None if found is None else found.p_value)
            corrected += any(p is not None and p < 0.05 for p in holm(p_values))
            plain += any(p is not None and p < 0.05 for p in p_values)
        discrete = too_discrete(n, fair.changed, level=0.05 / 8)
        verdict = judge.alarms(f"Holm, n={n}", corrected / times, times, discrete=discrete)
        row(fair.name, n, shown(corrected, times), verdict, shown(plain, times))


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
    "means": means,
    "rates": rates,
    "clusters": clusters,
    "anytime": anytime,
    "family": family,
    "power": power,
}
