"""Ranking of several runs: intervals, groups without a clear difference, and the Pareto front."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import Literal, NamedTuple

import msgspec
import numpy as np

from answerkey.comparison.columns import Columns, Floats, Ints, columns_from_run
from answerkey.comparison.run_comparison import joint_units, run_notes
from answerkey.errors import UsageError
from answerkey.model.run import GateResult, Run
from answerkey.model.scorecard import letter_grade, round_score
from answerkey.stats.intervals import Interval, mean_interval
from answerkey.stats.paired import Difference, clear_sign, holm, paired_difference, verdict_of
from answerkey.text.normalise import count


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


def rank_runs(runs: Sequence[Columns], *, level: float = 0.95) -> Ranking:
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
    entries = [_unranked(one, units, level) for one in shared_runs]
    found = _differences(shared_runs, units, level)
    adjusted = holm([None if difference is None else difference.p_value for difference in found.values()])
    # 1: the first of the pair is clearly better, -1: the second is, 0: no clear difference.
    score_signs = {
        pair: _sign(difference, p) for (pair, difference), p in zip(found.items(), adjusted, strict=True)
    }
    letters = _letters(len(entries), {pair: bool(sign) for pair, sign in score_signs.items()})
    dominated = _dominated(shared_runs, units, score_signs, level)
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
    shared_runs: Sequence[_SharedQuestions], units: Ints | None, level: float
) -> dict[tuple[int, int], Difference | None]:
    scores = [np.round(one.of(one.run.scores), 9) for one in shared_runs]
    return {
        (i, j): paired_difference(np.round(scores[i] - scores[j], 9), units=units, level=level)
        for i, j in combinations(range(len(shared_runs)), 2)
    }


def _sign(difference: Difference | None, p_value: float | None = None) -> Literal[-1, 0, 1]:
    return {"better": 1, "worse": -1}.get(verdict_of(difference, p_value=p_value), 0)  # type: ignore[return-value]


def _dominated(
    shared_runs: Sequence[_SharedQuestions],
    units: Ints | None,
    score_signs: Mapping[tuple[int, int], int],
    level: float,
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
        signs = (score_sign, -clear_sign(difference[known], units=chosen, level=level))
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


def _unranked(one: _SharedQuestions, units: Ints | None, level: float) -> Ranked:
    """Return a run's entry without its rank, groups and Pareto flag."""
    run = one.run
    latencies, costs = _known(one.of(run.latencies)), one.of(run.costs)
    p50, p95 = (float(np.percentile(latencies, p)) if len(latencies) else None for p in (50, 95))
    score = _mean(one.of(run.scores), units, level)
    failed = _mean(one.of(run.failures), units, level)
    assert score is not None  # only scored questions are shared
    assert failed is not None  # every question has a failure rate
    numbers = run.categories[one.indices]
    categories = {
        run.category_names[number]: _mean(
            np.where(numbers == number, one.of(run.scores), np.nan), units, level
        )
        for number in dict.fromkeys(numbers.tolist())
    }
    measures = {
        name: _mean(one.of(values), units, level) for name, values in (run.components | run.metrics).items()
    }
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
        cost=_mean(costs, units, level, bounded=False),
        cost_per_point=_cost_per_point(costs, one.of(run.scores), units, level),
        categories={name: mean for name, mean in categories.items() if mean is not None},
        measures={name: mean for name, mean in measures.items() if mean is not None},
        judge_reliable=None if run.info.judge is None else run.info.judge.reliable,
    )


def _mean(values: Floats, units: Ints | None, level: float, *, bounded: bool = True) -> Mean | None:
    """Return the mean of the known values and its interval."""
    mask = ~np.isnan(values)
    known = values[mask]
    if not len(known):
        return None
    bounded = bounded and bool(known.min() >= 0.0 and known.max() <= 1.0)
    chosen = None if units is None else units[mask].tolist()
    return Mean(
        round_score(float(known.mean())), mean_interval(known.tolist(), chosen, level=level, bounded=bounded)
    )


def _cost_per_point(costs: Floats, scores: Floats, units: Ints | None, level: float) -> Mean | None:
    """Return total cost ÷ total score of the questions with a known cost; the interval is of the linearised ratio."""
    paid = ~np.isnan(costs)
    points = float(scores[paid].sum())
    if not points > 0:
        return None
    ratio = float(costs[paid].sum()) / points
    return _mean(ratio + (costs - ratio * scores) * paid.sum() / points, units, level, bounded=False)


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
