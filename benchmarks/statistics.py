"""Are the verdicts right at their stated rate? Seeded simulation of every test and interval that answerkey reports.

    benchmarks/statistics [--trials N] [--sizes 15,50,200,1000] [--only SECTION] [--seed S]

Sections: tests (false alarms of two equal chatbots), intervals (coverage of the difference), means (coverage of one
run's score), rates (McNemar, Newcombe, Wilson), clusters, anytime (continuous peeking), power (against a paired t test).
Scores are made as the standard makes them: 0.4 tools + 0.4 keywords found + 0.2 errors, on questions of differing
difficulty, so that they are skewed, tied and bounded. With a few thousand trials a rate of 5% is known to about ±0.6.
"""

import argparse
import math
import random
import sys
import time
from collections.abc import Callable

from answerkey.stats.distributions import t_quantile, t_two_sided
from answerkey.stats.intervals import mean_interval, wilson_interval
from answerkey.stats.multiple import holm
from answerkey.stats.paired import paired_difference, verdict_of
from answerkey.stats.rates import mcnemar_p_value, newcombe_interval
from answerkey.stats.sequential import AnytimeTest

Pair = tuple[float, float]
Maker = Callable[[random.Random], Pair]


def chatbot(
    source: random.Random, hard: float, keywords: int, tool: float, quality: float, error: float
) -> float:
    """One reply's score by a chatbot of the given skills (log odds) to a question of the given difficulty."""

    def succeeds(skill: float) -> bool:
        return source.random() < 1.0 / (1.0 + math.exp(hard - skill))

    found = sum(succeeds(quality) for _ in range(keywords)) / keywords
    return round(0.4 * succeeds(tool) + 0.4 * found + 0.2 * succeeds(error), 9)


def versions(
    first: tuple[float, float, float], second: tuple[float, float, float], same: float = 0.0
) -> Maker:
    """Two versions; a share `same` of questions gets the same reply from both."""

    def make(source: random.Random) -> Pair:
        hard, keywords = source.gauss(0.0, 2.0), source.randint(2, 6)
        base = chatbot(source, hard, keywords, *first)
        return base, base if source.random() < same else chatbot(source, hard, keywords, *second)

    return make


def outcomes(*table: tuple[float, float]) -> Maker:
    """Differences from a table of (chance, difference); the rest is tied."""

    def make(source: random.Random) -> Pair:
        draw = source.random()
        for chance, difference in table:
            if draw < chance:
                return (0.5, 0.5 + difference)
            draw -= chance
        return 0.5, 0.5

    return make


def passes(first: float, second: float, linked: float = 0.5) -> Maker:
    """Pass or fail; a share of questions shares its luck."""

    def make(source: random.Random) -> Pair:
        luck = source.random()
        other = luck if source.random() < linked else source.random()
        return float(luck < first), float(other < second)

    return make


def judged(source: random.Random) -> Pair:
    """Continuous scores, as a judge's mean gives."""
    return source.betavariate(6, 2), source.betavariate(6, 2)


GOOD, FAIR, POOR = (4.0, 3.5, 6.0), (2.0, 1.0, 4.0), (-1.0, -1.0, 1.0)

# Two chatbots that are equally good.
EQUAL: dict[str, Maker] = {
    "good chatbot": versions(GOOD, GOOD),
    "fair chatbot": versions(FAIR, FAIR),
    "poor chatbot": versions(POOR, POOR),
    "good, 60% same replies": versions((3.0, 2.5, 5.0), (3.0, 2.5, 5.0), 0.6),
    "good, 85% same replies": versions((3.0, 2.5, 5.0), (3.0, 2.5, 5.0), 0.85),
    "pass/fail at 80%": passes(0.8, 0.8),
    "pass/fail at 95%": passes(0.95, 0.95),
    "judge's means": judged,
}
# Equal on average, but in different ways: many small gains against few large losses.
LOPSIDED: dict[str, Maker] = {
    "30% +0.10, 7.5% -0.40": outcomes((0.3, 0.1), (0.075, -0.4)),
    "30% +0.13, 10% -0.40": outcomes((0.3, 0.4 / 3), (0.1, -0.4)),
}
DIFFERENT: dict[str, Maker] = {
    "fair to good": versions(FAIR, (3.5, 2.5, 5.0)),
    "good to better": versions((3.0, 2.5, 5.0), (4.5, 4.5, 6.0)),
    "a tool lost on 10%": outcomes((0.1, -0.4)),
    "20% of replies worse": versions((3.0, 2.5, 5.0), (1.0, 1.0, 3.0), 0.8),
    "30% +0.2": outcomes((0.3, 0.2)),
}


class Population:
    """Many pairs of scores to draw from, so that the truth is known exactly."""

    def __init__(self, name: str, make: Maker, *, equal: bool) -> None:
        source = random.Random(f"population {name}")
        self.name = name
        pairs = [make(source) for _ in range(30_000)]
        if equal:
            # Both orders of every pair: the two versions are then exactly as good.
            pairs += [(b, a) for a, b in pairs]
        self.differences = [round(b - a, 9) for a, b in pairs]
        self.scores = [a for a, _ in pairs]
        self.truth = math.fsum(self.differences) / len(pairs)
        self.mean = math.fsum(self.scores) / len(pairs)


def t_test(values: list[float]) -> float:
    """The plain paired t test's p-value, for comparison."""
    n = len(values)
    mean = math.fsum(values) / n
    variance = math.fsum((v - mean) ** 2 for v in values) / (n - 1)
    return t_two_sided(mean / math.sqrt(variance / n), n - 1) if variance > 1e-18 else 1.0


EQUALS = [Population(name, make, equal=True) for name, make in EQUAL.items()]
LOPSIDEDS = [Population(name, make, equal=False) for name, make in LOPSIDED.items()]
DIFFERENTS = [Population(name, make, equal=False) for name, make in DIFFERENT.items()]


class Report:
    """Prints rows and remembers which broke the promise."""

    def __init__(self) -> None:
        self.broken: list[str] = []

    def head(self, title: str, *columns: str) -> None:
        print(f"\n{title}")
        print(f"{'':26}{'n':>6}" + "".join(f"{column:>16}" for column in columns), flush=True)

    def row(self, name: str, n: int, *cells: str) -> None:
        print(f"{name:26}{n:>6}" + "".join(f"{cell:>16}" for cell in cells), flush=True)

    def promise(self, holds: bool, what: str) -> None:
        if not holds:
            self.broken.append(what)


def slack(rate: float, trials: int) -> float:
    """Three standard errors of a simulated rate."""
    return 3.0 * math.sqrt(rate * (1.0 - rate) / trials)


def tests(report: Report, trials: int, sizes: list[int], source: random.Random) -> None:
    report.head(
        "False alarms at 5%: two equal chatbots",
        "sign-flip",
        "verdict",
        "paired t",
        "zero inside %",
        "changed",
    )
    for population in EQUALS + LOPSIDEDS:
        name = population.name
        for n in sizes:
            flip = verdict = t = inside = changed = 0
            for _ in range(trials):
                values = source.choices(population.differences, k=n)
                found = paired_difference(values)
                assert found is not None
                flip += found.p_value is not None and found.p_value < 0.05
                verdict += verdict_of(found) != "no clear difference"
                t += t_test(values) < 0.05
                inside += found.low <= 0.0 <= found.high
                changed += found.changed
            rates = [value / trials for value in (flip, verdict, t, inside)]
            report.row(name, n, *(f"{100 * rate:.1f}" for rate in rates), f"{changed / trials / n:.2f}")
            if name in EQUAL:
                report.promise(
                    rates[0] <= 0.06 + slack(0.05, trials), f"sign-flip {name} n={n}: {rates[0]:.3f}"
                )
            report.promise(rates[1] <= 0.06 + slack(0.05, trials), f"verdict {name} n={n}: {rates[1]:.3f}")


def intervals(report: Report, trials: int, sizes: list[int], source: random.Random) -> None:
    report.head("Coverage of the 95% interval of the difference", "ours", "paired t", "width", "width t")
    for population in EQUALS + LOPSIDEDS + DIFFERENTS:
        name, truth = population.name, population.truth
        for n in sizes:
            held = held_t = 0
            width = width_t = 0.0
            for _ in range(trials):
                values = source.choices(population.differences, k=n)
                found = paired_difference(values)
                assert found is not None
                held += found.low - 1e-9 <= truth <= found.high + 1e-9
                width += found.high - found.low
                mean = math.fsum(values) / n
                error = math.sqrt(math.fsum((v - mean) ** 2 for v in values) / (n - 1) / n)
                half = t_quantile(0.975, n - 1) * error
                held_t += mean - half - 1e-9 <= truth <= mean + half + 1e-9
                width_t += 2 * half
            cells = [f"{100 * held / trials:.1f}", f"{100 * held_t / trials:.1f}"]
            report.row(name, n, *cells, f"{width / trials:.3f}", f"{width_t / trials:.3f}")
            report.promise(
                held / trials >= 0.93 - slack(0.95, trials), f"interval {name} n={n}: {held / trials:.3f}"
            )


def means(report: Report, trials: int, sizes: list[int], source: random.Random) -> None:
    report.head("Coverage of the 95% interval of one run's score", "ours", "Student's t", "width", "mean")
    for population in [p for p in EQUALS if "same" not in p.name]:
        name, truth = population.name, population.mean
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
            cells = [f"{100 * held / trials:.1f}", f"{100 * held_t / trials:.1f}"]
            report.row(name, n, *cells, f"{width / trials:.3f}", f"{truth:.3f}")
            report.promise(
                held / trials >= 0.92 - slack(0.95, trials), f"mean {name} n={n}: {held / trials:.3f}"
            )


def rates(report: Report, trials: int, sizes: list[int], source: random.Random) -> None:
    report.head(
        "Pass rates: McNemar's false alarms, coverage of Newcombe and Wilson",
        "mid-p",
        "exact",
        "Newcombe",
        "Wilson",
    )
    for rate in (0.6, 0.8, 0.95):
        make = passes(rate, rate)
        for n in sizes:
            mid = exact = covered = wilson = 0
            for _ in range(trials):
                pairs = [make(source) for _ in range(n)]
                fixed, broken = sum(b > a for a, b in pairs), sum(a > b for a, b in pairs)
                both = sum(a == b == 1.0 for a, b in pairs)
                p, plain = mcnemar_p_value(fixed, broken), mcnemar_p_value(fixed, broken, mid=False)
                mid += p is not None and p < 0.05
                exact += plain is not None and plain < 0.05
                found = newcombe_interval(
                    both=both, fixed=fixed, broken=broken, neither=n - both - fixed - broken
                )
                one = wilson_interval(both + broken, n)
                assert found is not None
                assert one is not None
                covered += found.low <= 0.0 <= found.high
                wilson += one.low <= rate <= one.high
            cells = [f"{100 * value / trials:.1f}" for value in (mid, exact, covered, wilson)]
            report.row(f"both pass {rate:.0%}", n, *cells)
            report.promise(
                mid / trials <= 0.06 + slack(0.05, trials), f"McNemar {rate} n={n}: {mid / trials:.3f}"
            )


def clusters(report: Report, trials: int, sizes: list[int], source: random.Random) -> None:
    report.head(
        "Questions in clusters (templates): n clusters",
        "alarms",
        "coverage",
        "alarms naive",
        "coverage naive",
    )
    shapes: dict[str, Callable[[], int]] = {
        "four each": lambda: 4,
        "one to eight": lambda: source.randint(1, 8),
        "few big ones": lambda: 12 if source.random() < 0.15 else 2,
    }
    for shape, size in shapes.items():
        for n in [n for n in sizes if n <= 200]:
            counts = [0, 0, 0, 0]
            for _ in range(max(200, trials // 2)):
                values: list[float] = []
                names: list[int] = []
                for cluster in range(n):
                    shift = source.choice([0.0, 0.0, 0.0, 0.3, -0.3])
                    for _ in range(size()):
                        own = (
                            source.choice([0.4, -0.4, 0.2, -0.2, 0.1, -0.1]) if source.random() < 0.3 else 0.0
                        )
                        values.append(round(own + (shift if source.random() < 0.8 else 0.0), 9))
                        names.append(cluster)
                for index, found in enumerate(
                    (paired_difference(values, clusters=names), paired_difference(values))
                ):
                    assert found is not None
                    counts[2 * index] += found.p_value is not None and found.p_value < 0.05
                    counts[2 * index + 1] += found.low <= 0.0 <= found.high
            shown = [100 * value / max(200, trials // 2) for value in counts]
            report.row(shape, n, *(f"{value:.1f}" for value in shown))
            report.promise(
                shown[0] <= 6 + 100 * slack(0.05, max(200, trials // 2)), f"clusters {shape} n={n}"
            )


def anytime(report: Report, trials: int, sizes: list[int], source: random.Random) -> None:
    report.head("Looking after every question, up to n", "anytime alarms", "t peeked", "interval holds")
    top = max(n for n in sizes if n <= 1000)
    looks = max(200, trials // 4)
    for population in EQUALS + LOPSIDEDS:
        name = population.name
        alarms = peeked = held = 0
        for _ in range(looks):
            test = AnytimeTest()
            total = squares = 0.0
            alarm = holds_not = False
            for step in range(1, top + 1):
                value = source.choice(population.differences)
                test.add(value)
                total += value
                squares += value * value
                if step >= 10 and not alarm:
                    variance = (squares - total * total / step) / (step - 1)
                    alarm = variance > 1e-12 and abs(total / step) > t_quantile(0.975, step - 1) * math.sqrt(
                        variance / step
                    )
                if step in (15, 50, 100, 200, 500, 1000) or step == top:
                    found = test.interval()
                    holds_not = holds_not or not found.low <= 0.0 <= found.high
            alarms += test.decided
            peeked += alarm
            held += not holds_not
        report.row(name, top, *(f"{100 * value / looks:.1f}" for value in (alarms, peeked, held)))
        report.promise(alarms / looks <= 0.05 + slack(0.05, looks), f"anytime {name}: {alarms / looks:.3f}")


def power(report: Report, trials: int, sizes: list[int], source: random.Random) -> None:
    report.head(
        "Power: real differences found", "sign-flip", "verdict", "paired t", "anytime by n", "difference"
    )
    for population in DIFFERENTS:
        name, truth = population.name, population.truth
        for n in sizes:
            flip = verdict = t = early = 0
            for _ in range(trials // 2):
                values = source.choices(population.differences, k=n)
                found = paired_difference(values)
                assert found is not None
                flip += found.p_value is not None and found.p_value < 0.05
                verdict += verdict_of(found) != "no clear difference"
                t += t_test(values) < 0.05
                early += n <= 200 and AnytimeTest(values).decided
            cells = [f"{100 * value / (trials // 2):.1f}" for value in (flip, verdict, t)]
            sequential = f"{100 * early / (trials // 2):.1f}" if n <= 200 else "-"
            report.row(name, n, *cells, sequential, f"{truth:+.3f}")


def family(report: Report, trials: int, sizes: list[int], source: random.Random) -> None:
    report.head("Eight categories at once: runs with any false alarm", "Holm", "uncorrected")
    for n in [n for n in sizes if n <= 200]:
        corrected = plain = 0
        for _ in range(trials // 4):
            p_values = []
            for _ in range(8):
                found = paired_difference(source.choices(EQUALS[1].differences, k=n))
                p_values.append(None if found is None else found.p_value)
            corrected += any(p is not None and p < 0.05 for p in holm(p_values))
            plain += any(p is not None and p < 0.05 for p in p_values)
        report.row("fair chatbot", n, f"{400 * corrected / trials:.1f}", f"{400 * plain / trials:.1f}")
        report.promise(4 * corrected / trials <= 0.06 + slack(0.05, trials // 4), f"Holm n={n}")


SECTIONS = {
    "tests": tests,
    "intervals": intervals,
    "means": means,
    "rates": rates,
    "clusters": clusters,
    "anytime": anytime,
    "family": family,
    "power": power,
}


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--trials", type=int, default=400, help="simulated experiments per row (default 400)")
    parser.add_argument("--sizes", default="15,50,200", help="numbers of questions (default 15,50,200)")
    parser.add_argument("--only", choices=SECTIONS, action="append", help="one section; may be repeated")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    sizes = [int(size) for size in options.sizes.split(",")]
    report = Report()
    began = time.process_time()
    for name in options.only or SECTIONS:
        SECTIONS[name](report, options.trials, sizes, random.Random(f"{options.seed} {name}"))
    print(f"\n{options.trials} trials a row, {time.process_time() - began:.0f} CPU s")
    for broken in report.broken:
        print(f"BROKEN PROMISE: {broken}")
    return 1 if report.broken else 0


if __name__ == "__main__":
    sys.exit(main())
