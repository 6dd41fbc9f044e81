"""Ranking of several runs: intervals, groups without a clear difference, the Pareto front; and planning of a comparison.

A plan says how many questions and repeats a difference needs, from earlier runs or from a guess.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import Literal, NamedTuple

import msgspec
import numpy as np

from answerkey.comparison import joint_units, pair, run_notes
from answerkey.comparison.columns import Columns, Floats, Ints, columns_from_run
from answerkey.errors import UsageError
from answerkey.model.question import QuestionSet, group_of
from answerkey.model.run import GateResult, Run
from answerkey.model.scorecard import letter_grade, round_score
from answerkey.stats.intervals import Interval, mean_interval
from answerkey.stats.paired import Difference, holm, paired_difference, unit_sums, verdict_of
from answerkey.stats.sign_flip import Pilot, VarianceSplit, split_variance, units_for_same
from answerkey.text.normalise import count

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
        for repeats, ratio in ratios.items():
            at = [
                None
                if found is None or factor is None
                else math.ceil(found * pilot.questions * ratio * factor)
                for factor in (1.0, low, high)
            ]
            rows.append(Needed(difference=label, repeat=repeats, questions=at[0], low=at[1], high=at[2]))
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
    least, units = units_for_same(pilot, margin, power)
    return SameNeeded(
        margin=margin,
        least=math.ceil(least * pilot.questions),
        questions=None if units is None else math.ceil(units * pilot.questions),
    )


def _repeated(run: Columns) -> bool:
    return run.trial_starts is not None and len(run.trial_starts) < run.replies


def _flaky(splits: Sequence[VarianceSplit]) -> tuple[Flaky, ...]:
    worst: dict[str, float] = {}
    for split in splits:
        for identity, deviation in split.flaky:
            worst[identity] = max(deviation, worst.get(identity, 0.0))
    ordered = sorted(worst.items(), key=lambda item: (-item[1], item[0]))
    return tuple(Flaky(identity, round_score(deviation)) for identity, deviation in ordered[:_FLAKY_LISTED])


class Mean(msgspec.Struct, frozen=True):
    """A mean over questions, with its interval over units."""

    mean: float
    interval: Interval | None


class Ranked(msgspec.Struct, frozen=True, kw_only=True):
    """A run in the ranking, over the questions in all runs."""

    id: str
    name: str
    target: str
    rank: int = 0
    score: float
    grade: str
    interval: Interval | None
    # Letters of its groups: runs that share a letter have no clear difference.
    groups: str = ""
    # Share of a question's trials.
    error_rate: float
    error_interval: Interval | None
    latency_p50_ms: float | None
    latency_p95_ms: float | None
    # Mean cost of a question, and of a point (a question answered perfectly).
    cost: Mean | None
    cost_per_point: Mean | None
    categories: dict[str, Mean]
    # Components and metrics, the judge's among them.
    measures: dict[str, Mean]
    # Whether its judge passed the canaries; None: no judge, or no canaries.
    judge_reliable: bool | None
    # Whether no other run is clearly better in score or cost without being clearly worse in the other.
    pareto: bool = False
    # Results of the gates on this run.
    gates: tuple[GateResult, ...] = ()


class RankedPair(msgspec.Struct, frozen=True):
    """Two runs by id, in the ranking's order."""

    better: str
    worse: str
    difference: float
    low: float
    high: float
    # After Holm's correction over all pairs.
    p_adjusted: float | None
    clear: bool


class Ranking(msgspec.Struct, frozen=True, kw_only=True):
    """Runs, best first, as `compare --json` prints them for more than two runs."""

    # Questions in all runs, their units, and questions that some run lacks.
    questions: int
    units: int
    left_out: int
    runs: tuple[Ranked, ...]
    pairs: tuple[RankedPair, ...]
    # What makes the runs incomparable.
    notes: tuple[str, ...] = ()


class _SharedQuestions(NamedTuple):
    """A run, and the indices of the questions that are in all runs."""

    run: Columns
    indices: Ints

    def of(self, column: Floats) -> Floats:
        return column[self.indices]


def rank(runs: Sequence[Run]) -> Ranking:
    """Rank runs by their score on the questions in all of them."""
    return rank_runs([columns_from_run(run) for run in runs])


def rank_runs(runs: Sequence[Columns]) -> Ranking:
    """Rank runs by their score on the questions in all of them (by id)."""
    if len(runs) < 2:
        raise UsageError("a ranking needs at least two runs")
    positions = [
        {identity: i for i, identity in enumerate(run.ids) if not np.isnan(run.scores[i])} for run in runs
    ]
    shared = [identity for identity in positions[0] if all(identity in known for known in positions[1:])]
    if not shared:
        raise UsageError(
            "these runs have no scored question in common; compare runs over the same golden set"
        )
    everything = len({identity for run in runs for identity in run.ids})
    shared_runs = [
        _SharedQuestions(run, np.array([known[identity] for identity in shared]))
        for run, known in zip(runs, positions, strict=True)
    ]
    units = joint_units(*shared_runs)
    shared_runs.sort(
        key=lambda one: (-round_score(float(one.of(one.run.scores).mean())), one.run.info.created_at)
    )
    entries = [_unranked(one, units) for one in shared_runs]
    found = _differences(shared_runs, units)
    adjusted = holm([None if difference is None else difference.p_value for difference in found.values()])
    # 1: the first of the pair is clearly better, -1: the second is, 0: no clear difference.
    score_signs = {
        pair: _sign(difference, p) for (pair, difference), p in zip(found.items(), adjusted, strict=True)
    }
    letters = _letters(len(entries), {pair: bool(sign) for pair, sign in score_signs.items()})
    dominated = _dominated(shared_runs, units, score_signs)
    return Ranking(
        questions=len(shared),
        units=len(shared) if units is None else len(np.unique(units)),
        left_out=everything - len(shared),
        runs=tuple(
            msgspec.structs.replace(run, rank=index + 1, groups=letters[index], pareto=index not in dominated)
            for index, run in enumerate(entries)
        ),
        pairs=tuple(
            RankedPair(
                entries[i].id,
                entries[j].id,
                round_score(difference.mean),
                round_score(difference.low),
                round_score(difference.high),
                p,
                bool(score_signs[i, j]),
            )
            for ((i, j), difference), p in zip(found.items(), adjusted, strict=True)
            if difference is not None
        ),
        notes=(*run_notes(runs), *_pairing_notes(shared_runs)),
    )


def _differences(
    shared_runs: Sequence[_SharedQuestions], units: Ints | None
) -> dict[tuple[int, int], Difference | None]:
    scores = [np.round(one.of(one.run.scores), 9) for one in shared_runs]
    return {
        (i, j): paired_difference(np.round(scores[i] - scores[j], 9), units=units)
        for i, j in combinations(range(len(shared_runs)), 2)
    }


def _sign(difference: Difference | None, p_value: float | None = None) -> Literal[-1, 0, 1]:
    return {"better": 1, "worse": -1}.get(verdict_of(difference, p_value=p_value), 0)  # type: ignore[return-value]


def _dominated(
    shared_runs: Sequence[_SharedQuestions],
    units: Ints | None,
    score_signs: Mapping[tuple[int, int], int],
) -> set[int]:
    """Return the runs that another one clearly beats in score or cost without clearly losing in the other.

    Latency does not count: the runs were made at different times, so that it also measures the load.
    """
    dominated = set()
    for (i, j), score_sign in score_signs.items():
        first, second = (one.of(one.run.costs) for one in (shared_runs[i], shared_runs[j]))
        difference = first - second
        known = ~np.isnan(difference)
        chosen = None if units is None else units[known]
        # Negated, since less is better.
        signs = (score_sign, -_sign(paired_difference(difference[known], units=chosen, bound=None)))
        if min(signs) >= 0 and max(signs) > 0:
            dominated.add(j)
        if max(signs) <= 0 and min(signs) < 0:
            dominated.add(i)
    return dominated


def _pairing_notes(shared_runs: Sequence[_SharedQuestions]) -> Iterator[str]:
    first = shared_runs[0]
    edited = {
        first.run.ids[index]
        for other in shared_runs[1:]
        for index, other_index in zip(first.indices.tolist(), other.indices.tolist(), strict=True)
        if first.run.hashes[index] != other.run.hashes[other_index]
    }
    if edited:
        edits = count(len(edited), "question was", "questions were")
        yield f"{edits} edited between the runs and paired by id"


def _unranked(one: _SharedQuestions, units: Ints | None) -> Ranked:
    """Return a run's entry without its rank, groups and Pareto flag."""
    run = one.run
    latencies, costs = _known(one.of(run.latencies)), one.of(run.costs)
    p50, p95 = (float(np.percentile(latencies, p)) if len(latencies) else None for p in (50, 95))
    score = _mean(one.of(run.scores), units)
    failed = _mean(one.of(run.failures), units)
    assert score is not None  # only scored questions are shared
    assert failed is not None  # every question has a failure rate
    numbers = run.categories[one.indices]
    categories = {
        run.category_names[number]: _mean(np.where(numbers == number, one.of(run.scores), np.nan), units)
        for number in dict.fromkeys(numbers.tolist())
    }
    measures = {name: _mean(one.of(values), units) for name, values in (run.components | run.metrics).items()}
    return Ranked(
        id=run.info.id,
        name=run.info.name,
        target=run.info.target,
        score=score.mean,
        grade=letter_grade(score.mean),
        interval=score.interval,
        error_rate=failed.mean,
        error_interval=failed.interval,
        latency_p50_ms=p50,
        latency_p95_ms=p95,
        cost=_mean(costs, units, bounded=False),
        cost_per_point=_cost_per_point(costs, one.of(run.scores), units),
        categories={name: mean for name, mean in categories.items() if mean is not None},
        measures={name: mean for name, mean in measures.items() if mean is not None},
        judge_reliable=None if run.info.judge is None else run.info.judge.reliable,
    )


def _mean(values: Floats, units: Ints | None, *, bounded: bool = True) -> Mean | None:
    """Return the mean of the known values and its interval."""
    mask = ~np.isnan(values)
    known = values[mask]
    if not len(known):
        return None
    bounded = bounded and bool(known.min() >= 0.0 and known.max() <= 1.0)
    chosen = None if units is None else units[mask].tolist()
    return Mean(round_score(float(known.mean())), mean_interval(known.tolist(), chosen, bounded=bounded))


def _cost_per_point(costs: Floats, scores: Floats, units: Ints | None) -> Mean | None:
    """Return total cost ÷ total score of the questions with a known cost; the interval is of the linearised ratio."""
    paid = ~np.isnan(costs)
    points = float(scores[paid].sum())
    if not points > 0:
        return None
    ratio = float(costs[paid].sum()) / points
    return _mean(ratio + (costs - ratio * scores) * paid.sum() / points, units, bounded=False)


def _letters(count: int, clear: dict[tuple[int, int], bool]) -> list[str]:
    """Return letters such that two runs share one if and only if there is no clear difference (insert and absorb)."""
    groups: list[set[int]] = [set(range(count))]
    for (i, j), differs in clear.items():
        if not differs:
            continue
        for group in [group for group in groups if i in group and j in group]:
            groups.remove(group)
            groups += [group - {i}, group - {j}]
        groups = [
            g
            for k, g in enumerate(groups)
            if not any(g < o or (g == o and k > m) for m, o in enumerate(groups))
        ]
    ordered = sorted(groups, key=lambda group: sorted(group))
    names = [chr(ord("a") + k) if k < 26 else f"({k})" for k in range(len(ordered))]
    return [
        "".join(name for name, group in zip(names, ordered, strict=True) if i in group) for i in range(count)
    ]


def _known(values: Floats) -> Floats:
    return values[~np.isnan(values)]
