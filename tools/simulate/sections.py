"""The simulations, each a function of the number of trials, the numbers of units and a source of chance."""

import asyncio
import math
import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from edges import EDGES
from judge_on_loopback import loopback_sections
from judge_simulations import judged_sections
from own_canaries import own_canaries_section
from populations import DIFFERENT, EQUAL, LOPSIDED, Population
from repeats import repeats_section
from simulated_shares import format_share

import answerkey
from answerkey.stats.intervals import mean_interval, t_quantile
from answerkey.stats.paired import paired_difference, unit_sums, verdict_of
from answerkey.stats.sign_flip import Pilot, rows_at_most_zero

Source = np.random.Generator
Floats = npt.NDArray[np.float64]
Section = Callable[[int, Sequence[int], Source], None]

# How questions belong together: one a unit, templates of five, conversations of one to twelve.
STRUCTURES = ("alone", "fives", "conversations")
# The share of a unit's questions that have the same luck.
_SHARED = 0.5


class Drawn(NamedTuple):
    """Values and the unit of each."""

    values: Floats
    units: npt.NDArray[np.int64]


def draw(population: Sequence[float] | Floats, units: int, structure: str, source: Source) -> Drawn:
    """`units` units; within one, a share of the questions has the same value."""
    pool = np.asarray(population)
    sizes = {"alone": np.ones(units, int), "fives": np.full(units, 5)}.get(structure)
    if sizes is None:
        sizes = source.integers(1, 13, units)
    numbers = np.repeat(np.arange(units), sizes)
    common = source.choice(pool, units)[numbers]
    own = source.choice(pool, len(numbers))
    return Drawn(np.where(source.random(len(numbers)) < _SHARED, common, own), numbers)


def t_interval(drawn: Drawn) -> tuple[float, float]:
    """Student's interval with the clustered standard error."""
    sums, sizes = unit_sums(drawn.values, drawn.units)
    groups, mean = len(sums), float(drawn.values.mean())
    error = math.sqrt(groups / (groups - 1) * float(((sums - sizes * mean) ** 2).sum())) / len(drawn.values)
    half = t_quantile(0.975, groups - 1) * error
    return mean - half, mean + half


class Rates(NamedTuple):
    """Shares of the experiments."""

    clear: float
    held: float
    t_clear: float
    t_held: float


def difference_rates(
    population: Population, units: int, structure: str, trials: int, source: Source
) -> Rates:
    """How often a verdict was given and the interval held the truth, beside the t test."""
    pool, counts = np.asarray(population.differences), np.zeros(4)
    truth = population.truth
    for _ in range(trials):
        drawn = draw(pool, units, structure, source)
        found = paired_difference(drawn.values, units=drawn.units)
        assert found is not None
        low, high = t_interval(drawn)
        counts += (
            verdict_of(found) != "no clear difference",
            found.low - 1e-9 <= truth <= found.high + 1e-9,
            not low <= 0.0 <= high,
            low - 1e-9 <= truth <= high + 1e-9,
        )
    return Rates(*(counts / trials).tolist())


def differences(structure: str, trials: int, sizes: Sequence[int], source: Source) -> None:
    """Two runs: false alarms where they are equal, coverage and power where they differ."""
    for title, populations in (("equal", EQUAL), ("lopsided", LOPSIDED), ("different", DIFFERENT)):
        if structure != "alone":
            populations = populations[:4]
        head(f"{title}, {structure}", *(f"{n} units" for n in sizes))
        for population in populations:
            cells = []
            for n in sizes:
                rates = difference_rates(population, n, structure, trials, source)
                clear, held = format_share(rates.clear, trials), format_share(rates.held, trials)
                cells.append(f"{clear} ({rates.t_clear:.1%}), {held} ({rates.t_held:.1%})")
            row(population.name, *cells)


def mean_rates(
    population: Population, units: int, structure: str, trials: int, source: Source
) -> tuple[float, float]:
    """How often one run's interval held the truth, and Student's."""
    pool, held, t_held = np.asarray(population.scores), 0, 0
    for _ in range(trials):
        drawn = draw(pool, units, structure, source)
        found = mean_interval(drawn.values.tolist(), drawn.units.tolist())
        assert found is not None
        low, high = t_interval(drawn)
        held += found.low - 1e-9 <= population.mean <= found.high + 1e-9
        t_held += low <= population.mean <= high
    return held / trials, t_held / trials


def means(structure: str, trials: int, sizes: Sequence[int], source: Source) -> None:
    """Coverage of one run's interval."""
    head(f"one run's score, {structure}", *(f"{n} units" for n in sizes))
    for population in [p for p in EQUAL if "same" not in p.name]:
        found = [mean_rates(population, n, structure, trials, source) for n in sizes]
        row(population.name, *(f"{format_share(ours, trials)} ({plain:.1%})" for ours, plain in found))


PLANNED = (
    "fair to good",
    "good to better",
    "a tool lost on 10%",
    "nDCG better",
    "15% -0.4, 10% +0.2",
    "8% of passes lost",
)


def planned_power(
    population: Population, pilot: int, trials: int, source: Source, *, structure: str = "alone"
) -> tuple[int, float]:
    """The units that a plan from a pilot of this size asks for 80% power, and the power that they have."""
    pool = np.asarray(population.differences)
    sums, sizes = unit_sums(*draw(pool, pilot, structure, source))
    units = Pilot(sums, sizes, seed=int(source.integers(1 << 30))).units_needed(abs(population.truth), 0.8)
    assert units is not None
    sign = math.copysign(1.0, population.truth)
    rows = [unit_sums(*draw(pool, units, structure, source))[0] * sign for _ in range(trials)]
    return units, float(np.mean(rows_at_most_zero(np.array(rows)) < 0.025))


def plan(trials: int, sizes: Sequence[int], source: Source) -> None:
    """Whether a planned size reaches its power of 80%."""
    for structure in STRUCTURES[:2]:
        head(
            f"planned for 80% power, {structure}",
            "units planned by each of 5 pilots of 5,000",
            "their mean power",
            "mean power of 10 pilots of 300",
        )
        for population in [p for p in DIFFERENT if p.name in PLANNED]:
            large = [planned_power(population, 5000, trials, source, structure=structure) for _ in range(5)]
            units = sorted({units for units, _ in large})
            power = float(np.mean([power for _, power in large]))
            small = [
                planned_power(population, 300, trials // 4, source, structure=structure)[1] for _ in range(10)
            ]
            planned = str(units[0]) if len(units) == 1 else f"{units[0]} to {units[-1]}"
            row(population.name, planned, format_share(power, 5 * trials), f"{np.mean(small):.1%}")


def questions(count: int) -> list[dict[str, Any]]:
    """A golden set whose answers are known."""
    return [{"id": f"q{i}", "question": f"Say {i}?", "expected_keywords": [f"<{i}>"]} for i in range(count)]


def noisy(passing: float, source: Source, *, slow: str = "") -> Callable[[str], Any]:
    """A chatbot that answers rightly with a given probability; its failures, or its right answers, may take longer."""

    async def answer(question: str) -> str:
        right = bool(source.random() < passing)
        await asyncio.sleep(0.004 if slow == ("passes" if right else "failures") else 0.0)
        return f"<{question[4:-1]}>" if right else "no"

    return answer


def early_alarms(trials: int, slow: str, source: Source, *, asked: int = 60, looks: int = 0) -> float:
    """How often an experiment with two equal chatbots, one of which has slow failures or passes, finds a difference."""
    wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        store = str(Path(folder) / "runs.db")
        for trial in range(trials):
            found = answerkey.ab(
                questions(asked),
                noisy(0.6, source),
                noisy(0.6, source, slow=slow),
                early_stop=not looks,
                looks=looks,
                store=store,
                seed=trial,
            )
            wrong += found.verdict != "no clear difference"
    return wrong / trials


def early(trials: int, sizes: Sequence[int], source: Source) -> None:
    """False alarms of experiments in which latency is tied to the outcome."""
    head(f"experiments that may stop early, {trials} each", "false alarms")
    for looks in (0, 3):
        for slow in ("", "failures", "passes"):
            row(
                f"{looks or 'any'} looks, slow: {slow or 'none'}",
                format_share(early_alarms(trials, slow, source, looks=looks), trials),
            )


def ci_alarm(base: Callable[[str], Any], candidate: Callable[[str], Any], folder: Path) -> bool:
    """Whether the documented CI set-up refuses the candidate."""
    store = str(folder / "runs.db")
    before = answerkey.evaluate(questions(20), base, store=store)
    gates = ("no regression", "broken == 0")
    after = answerkey.evaluate(
        questions(20), candidate, store=store, baseline=before.id, confirm=5, gates=gates
    )
    return not after.passed


def broken(count: int) -> Callable[[str], str]:
    """A chatbot that always fails the first `count` questions and no other."""

    def answer(question: str) -> str:
        number = int(question[4:-1])
        return f"<{number}>" if number >= count else "no"

    return answer


def confirm(trials: int, sizes: Sequence[int], source: Source) -> None:
    """What the documented CI set-up makes of broken and of noisy chatbots, over 20 questions."""
    head(f"refused in CI (of {trials} noisy pairs)", "share")
    with tempfile.TemporaryDirectory() as folder:
        for count in (1, 2, 4):
            row(
                f"{count} of 20 broken for good",
                "refused" if ci_alarm(broken(0), broken(count), Path(folder)) else "PASSED",
            )
        for passing in (0.98, 0.9, 0.8, 0.65, 0.5, 0.3):
            wrong = sum(
                ci_alarm(noisy(passing, source), noisy(passing, source), Path(folder)) for _ in range(trials)
            )
            row(
                f"equal, each question passes {passing:.0%} of the time", format_share(wrong / trials, trials)
            )


def head(title: str, *columns: str) -> None:
    """Begin a table."""
    print(f"\n| {title} | {' | '.join(columns)} |\n|---{'|---' * len(columns)}|", flush=True)


def row(*cells: str) -> None:
    """One row of it."""
    print(f"| {' | '.join(cells)} |", flush=True)


SECTIONS: dict[str, Section] = {
    **{f"differences-{structure}": partial(differences, structure) for structure in STRUCTURES},
    **{f"means-{structure}": partial(means, structure) for structure in STRUCTURES},
    "plan": plan,
    "early": early,
    "confirm": confirm,
    "repeats": repeats_section,
    **EDGES,
    "own-canaries": own_canaries_section,
    "judge": judged_sections,
    "loopback": loopback_sections,
}
