"""Planning: how many questions and repeats a difference needs, from earlier runs or from a guess."""

import math
from collections.abc import Sequence
from typing import Literal

import msgspec
import numpy as np

from answerkey.comparison.columns import Columns, columns_from_run
from answerkey.comparison.run_comparison import joint_units, pair
from answerkey.errors import UsageError
from answerkey.model.question import QuestionSet, group_of
from answerkey.model.run import Run
from answerkey.model.scorecard import round_score
from answerkey.stats.paired import unit_sums
from answerkey.stats.sign_flip import Pilot, VarianceSplit, split_variance, units_for_same

# Assumed standard deviation of question scores if there is no run.
GUESSED_DEVIATION = 0.3
# Assumed correlation of two versions' scores if there is no second run.
GUESSED_CORRELATION = 0.5
# With fewer units, a plan is a guess: pilots of 20 gave 48% power where 80% was planned, of 50 71%.
FEWEST_FOR_A_PLAN = 50
_DIFFERENCES = (0.01, 0.02, 0.03, 0.05, 0.10)
_REPEATS = (1, 2, 3, 5)
_FLAKY_LISTED = 20


class Variance(msgspec.Struct, frozen=True):
    """The variance of question scores by source; None: unknown."""

    between_questions: float | None
    between_repeats: float | None


class PlanGoal(msgspec.Struct, frozen=True, omit_defaults=True):
    """The difference to detect, the probability to detect it, and the margin within which versions count as the same."""

    difference: float
    power: float
    margin: float | None = None


class Needed(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Questions that a difference needs with `repeat` trials each; None: no feasible number."""

    # None: the difference of the goal.
    difference: float | None = None
    repeat: int
    questions: int | None
    # 95% range over other pilots of this size; None: there is no pilot.
    low: int | None = None
    high: int | None = None


class Scenario(msgspec.Struct, frozen=True, kw_only=True):
    """What the given questions can detect if the next versions differ in a certain way."""

    name: Literal["one way", "as these two"]
    needed: tuple[Needed, ...]
    detectable: float | None
    power: float


class SameNeeded(msgspec.Struct, frozen=True, kw_only=True):
    """Questions that the verdict "same" within ± the margin needs."""

    margin: float
    # Below this it is never given, even if nothing changes.
    least: int
    # For equal versions that differ as these do; None: no feasible number.
    questions: int | None


class Flaky(msgspec.Struct, frozen=True):
    """A question whose trials differ, and their standard deviation."""

    id: str
    deviation: float


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What the given questions can detect, and how many a difference needs, as `plan --json` prints it."""

    source: Literal["two runs", "one run", "guess"]
    # Questions, units, and trials per question.
    questions: int
    units: int
    repeat: int
    # Root mean square of a unit's difference between two versions.
    deviation: float
    variance: Variance
    goal: PlanGoal = msgspec.field(name="wanted")
    needed: tuple[Needed, ...]
    # The smallest difference that these questions detect, and their power for the difference of the goal.
    detectable: float | None
    power: float
    # The same as `needed` for usual differences.
    table: tuple[Needed, ...]
    # Most unstable first.
    flaky: tuple[Flaky, ...]
    assumptions: tuple[str, ...]
    # From two runs: the figures above, which are those of changes in one direction, and those of changes as in these runs.
    scenarios: tuple[Scenario, ...] = ()
    # None: no margin was asked about.
    same: SameNeeded | None = None

    @property
    def is_guess(self) -> bool:
        """Whether the units are too few for more than a guess."""
        return self.source == "guess" or self.units < FEWEST_FOR_A_PLAN


def plan(
    base: Run | QuestionSet,
    candidate: Run | None = None,
    *,
    difference: float = 0.05,
    power: float = 0.8,
    deviation: float = GUESSED_DEVIATION,
    correlation: float = GUESSED_CORRELATION,
    margin: float | None = None,
) -> Plan:
    """Return the questions and repeats that a difference needs, from two runs, one run, or a golden set and a guess."""
    goal = PlanGoal(difference, power, margin)
    if isinstance(base, QuestionSet):
        units = len({group_of(question) or question.id for question in base})
        return plan_from_guess(len(base), units, goal, deviation=deviation, correlation=correlation)
    first = columns_from_run(base)
    if candidate is None:
        return plan_from_run(first, goal, correlation=correlation)
    return plan_from_pair(first, columns_from_run(candidate), goal)


def plan_from_pair(base: Columns, candidate: Columns, goal: PlanGoal) -> Plan:
    """Plan from two runs over the same questions, whose differences are the pilot."""
    pairing = pair(base, candidate)
    if len(pairing.base) < 2:
        raise UsageError("a plan from two runs needs at least two scored questions in common")
    changes = np.round(candidate.scores[pairing.candidate] - base.scores[pairing.base], 9)
    units = joint_units((base, pairing.base), (candidate, pairing.candidate))
    splits = [split for run in (base, candidate) if (split := split_variance(dict(run.trials()))) is not None]
    repeated = bool(splits) and _repeated(base) and _repeated(candidate)
    assumptions = [
        "one way: the changes of these two versions, but all in one direction, and so few that they make up the difference; "
        "as these two: on as many questions, and by as much, as these two, some better and some worse"
    ]
    if not repeated:
        assumptions.append(
            "without repeats, the share of noise is unknown: run with --repeat 3 to measure it"
        )
    return _plan(
        "two runs",
        len(pairing.base),
        goal,
        assumptions,
        pilot=Pilot(*unit_sums(changes, units)),
        between=splits[0].between if splits else None,
        within=math.fsum(split.within for split in splits) / len(splits) if repeated else None,
        repeat=min(base.info.repeat, candidate.info.repeat),
        splits=splits,
    )


def plan_from_run(run: Columns, goal: PlanGoal, *, correlation: float = GUESSED_CORRELATION) -> Plan:
    """Plan from one run: on a share of the questions, the other version is assumed to score like on another question."""
    split = split_variance(dict(run.trials()))
    if split is None:
        raise UsageError(f"run {run.info.id} has fewer than two scored questions; a plan needs at least two")
    within = split.within if _repeated(run) else None
    assumptions = [
        f"two versions' scores correlate by {correlation:g} (--correlation); plan from two runs to measure it"
    ]
    if within is None:
        assumptions.append(
            "without repeats, noise and difficulty cannot be separated: run with --repeat 3 to measure the noise"
        )
    known = np.flatnonzero(~np.isnan(run.scores))
    sums, sizes = unit_sums(run.scores[known], joint_units((run, known)))
    source = np.random.default_rng(0)
    means = sums / sizes
    other = source.permutation(means) if len(means) > 1 else means
    changed = source.random(len(means)) < 1.0 - correlation
    return _plan(
        "one run",
        split.questions,
        goal,
        assumptions,
        pilot=Pilot(np.where(changed, means - other, 0.0) * sizes, sizes),
        between=split.between,
        within=within,
        repeat=run.info.repeat,
        splits=[split],
    )


def plan_from_guess(
    questions: int,
    units: int | None,
    goal: PlanGoal,
    *,
    deviation: float = GUESSED_DEVIATION,
    correlation: float = GUESSED_CORRELATION,
) -> Plan:
    """Plan before any run, from a guess of the spread of scores."""
    assumption = (
        f"no run yet: scores have a standard deviation of {deviation:g} (--deviation) and versions correlate by "
        f"{correlation:g} (--correlation); plan from a first run to measure them"
    )
    size = questions / (units or questions)
    # A share of the units differs by as much as two scores of this spread, in either direction; the others are tied.
    number = np.arange(1000)
    changes = np.where(number % 2, 1.0, -1.0) * deviation * math.sqrt(2.0)
    pilot = Pilot(np.where(number < 1000 * (1.0 - correlation), changes, 0.0) * size, np.full(1000, size))
    return _plan("guess", questions, goal, [assumption], pilot=pilot)


def _plan(
    source: Literal["two runs", "one run", "guess"],
    questions: int,
    goal: PlanGoal,
    assumptions: Sequence[str],
    *,
    pilot: Pilot,
    between: float | None = None,
    within: float | None = None,
    repeat: int = 1,
    splits: Sequence[VarianceSplit] = (),
) -> Plan:
    """Plan from pilot units with `repeat` trials each; `within` is the variance between trials of a question."""
    variance = float((pilot.sums**2).mean()) / pilot.questions**2
    # Repeats reduce only the variance between trials.
    noise = 2.0 * (within or 0.0) / pilot.questions
    stable = max(0.0, variance - noise / repeat)
    often = sorted({repeat, *(_REPEATS if within is not None else ())})
    ratios = {count: (stable + noise / count) / variance if variance > 0.0 else 1.0 for count in often}
    units = max(2, round(questions / pilot.questions))

    def needed(pilot: Pilot, difference: float, label: float | None = None) -> tuple[Needed, ...]:
        found = pilot.units_needed(difference, goal.power)
        low, high = (None, None) if source == "guess" else pilot.spread(difference)
        rows = []
        for count, ratio in ratios.items():
            at = [
                None
                if found is None or factor is None
                else math.ceil(found * pilot.questions * ratio * factor)
                for factor in (1.0, low, high)
            ]
            rows.append(Needed(difference=label, repeat=count, questions=at[0], low=at[1], high=at[2]))
        return tuple(rows)

    def scenario(name: Literal["one way", "as these two"], pilot: Pilot) -> Scenario:
        detectable = pilot.detectable(units, goal.power)
        return Scenario(
            name=name,
            needed=needed(pilot, goal.difference),
            detectable=None if detectable is None else round_score(detectable),
            power=round_score(pilot.power(units, goal.difference)),
        )

    one_way = scenario("one way", pilot)
    both_ways = Pilot(pilot.sums, pilot.sizes, both_ways=True)
    return Plan(
        source=source,
        questions=questions,
        units=units,
        repeat=repeat,
        deviation=round_score(math.sqrt(variance)),
        variance=Variance(between, within),
        goal=goal,
        needed=one_way.needed,
        detectable=one_way.detectable,
        power=one_way.power,
        table=tuple(row for difference in _DIFFERENCES for row in needed(pilot, difference, difference)),
        flaky=_flaky(splits),
        assumptions=tuple(assumptions),
        scenarios=(one_way, scenario("as these two", both_ways)) if source == "two runs" else (),
        same=None if goal.margin is None else _same(pilot, goal.margin, goal.power),
    )


def _same(pilot: Pilot, margin: float, power: float) -> SameNeeded:
    found = units_for_same(pilot, margin, power)
    questions = None if found.units is None else math.ceil(found.units * pilot.questions)
    return SameNeeded(margin=margin, least=math.ceil(found.least * pilot.questions), questions=questions)


def _repeated(run: Columns) -> bool:
    return run.trial_starts is not None and len(run.trial_starts) < run.replies


def _flaky(splits: Sequence[VarianceSplit]) -> tuple[Flaky, ...]:
    worst: dict[str, float] = {}
    for split in splits:
        for identity, deviation in split.flaky:
            worst[identity] = max(deviation, worst.get(identity, 0.0))
    ordered = sorted(worst.items(), key=lambda item: (-item[1], item[0]))
    return tuple(Flaky(identity, round_score(deviation)) for identity, deviation in ordered[:_FLAKY_LISTED])
