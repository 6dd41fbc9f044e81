"""More than two runs: a ranking with intervals, groups that cannot be told apart, and the Pareto front."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import Literal, NamedTuple

import msgspec
import numpy as np

from answerkey.comparison.run_comparison import (
    Columns,
    Floats,
    Ints,
    columns_from_run,
    joint_units,
    run_notes,
)
from answerkey.errors import UsageError
from answerkey.model.run import GateResult, Run
from answerkey.model.scorecard import letter_grade, round_score
from answerkey.stats.intervals import Interval, mean_interval
from answerkey.stats.paired import Difference, clear_sign, holm, paired_difference, verdict_of


class Mean(msgspec.Struct, frozen=True):
    """A mean over questions, with its interval over units."""

    mean: float
    interval: Interval | None


class Ranked(msgspec.Struct, frozen=True, kw_only=True):
    """A run in the ranking, over the questions that all runs have."""

    id: str
    name: str
    target: str
    rank: int = 0
    score: float
    grade: str
    interval: Interval | None
    # Letters of the groups it belongs to: runs that share a letter cannot be told apart.
    groups: str = ""
    # Of a question's trials.
    error_rate: float
    error_interval: Interval | None
    latency_p50_ms: float | None
    latency_p95_ms: float | None
    # Of a question; and of a point, which is a question answered perfectly.
    cost: Mean | None
    cost_per_point: Mean | None
    categories: dict[str, Mean]
    # Components and metrics, the judge's among them.
    measures: dict[str, Mean]
    # Whether its judge passed its canaries; None: no judge, or none were asked.
    judge_reliable: bool | None
    # No other run is clearly better in score, latency or cost without being clearly worse in another of these.
    pareto: bool = False
    # Of the gates that were asked for, on this run.
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
    """Runs, best first; as a document, what `compare --json` has for more than two."""

    # Questions that all runs have, the units they belong to, and questions that some run lacks.
    questions: int
    units: int
    left_out: int
    runs: tuple[Ranked, ...]
    pairs: tuple[RankedPair, ...]
    # What keeps the runs from being comparable.
    notes: tuple[str, ...] = ()


class _Placed(NamedTuple):
    """A run and where the questions that all have stand in it."""

    run: Columns
    places: Ints

    def of(self, column: Floats) -> Floats:
        return column[self.places]


def rank(runs: Sequence[Run]) -> Ranking:
    """Rank runs at hand by their score on the questions that all of them have."""
    return rank_runs([columns_from_run(run) for run in runs])


def rank_runs(runs: Sequence[Columns], *, level: float = 0.95) -> Ranking:
    """Rank runs by their score on the questions that all of them have (by id)."""
    if len(runs) < 2:
        raise UsageError("a ranking needs two runs or more")
    positions = [
        {identity: i for i, identity in enumerate(run.ids) if not np.isnan(run.scores[i])} for run in runs
    ]
    shared = [identity for identity in positions[0] if all(identity in known for known in positions[1:])]
    if not shared:
        raise UsageError(
            "these runs have no scored question in common; compare runs over the same golden set"
        )
    everything = len({identity for run in runs for identity in run.ids})
    placed = [
        _Placed(run, np.array([known[identity] for identity in shared]))
        for run, known in zip(runs, positions, strict=True)
    ]
    units = joint_units(*placed)
    placed.sort(key=lambda one: (-round_score(float(one.of(one.run.scores).mean())), one.run.info.created_at))
    entries = [_unranked(one, units, level) for one in placed]
    found = _differences(placed, units, level)
    adjusted = holm([None if difference is None else difference.p_value for difference in found.values()])
    # 1: the first of the pair is clearly better, -1: the second is, 0: they cannot be told apart.
    score_signs = {
        pair: _sign(difference, p) for (pair, difference), p in zip(found.items(), adjusted, strict=True)
    }
    letters = _letters(len(entries), {pair: bool(sign) for pair, sign in score_signs.items()})
    dominated = _dominated(placed, units, score_signs, level)
    return Ranking(
        questions=len(shared),
        units=len(shared) if units is None else len(np.unique(units)),
        left_out=everything - len(shared),
        runs=tuple(
            msgspec.structs.replace(
                run, rank=place, groups=letters[place - 1], pareto=place - 1 not in dominated
            )
            for place, run in enumerate(entries, start=1)
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
        notes=(*run_notes(runs), *_pairing_notes(placed)),
    )


def _differences(
    placed: Sequence[_Placed], units: Ints | None, level: float
) -> dict[tuple[int, int], Difference | None]:
    scores = [np.round(one.of(one.run.scores), 9) for one in placed]
    return {
        (i, j): paired_difference(np.round(scores[i] - scores[j], 9), units=units, level=level)
        for i, j in combinations(range(len(placed)), 2)
    }


def _sign(difference: Difference | None, p_value: float | None = None) -> Literal[-1, 0, 1]:
    return {"better": 1, "worse": -1}.get(verdict_of(difference, p_value=p_value), 0)  # type: ignore[return-value]


def _dominated(
    placed: Sequence[_Placed], units: Ints | None, score_signs: Mapping[tuple[int, int], int], level: float
) -> set[int]:
    """Runs that another one beats clearly in score, latency or cost while losing clearly in none; ties are no gain."""
    beaten = set()
    for (i, j), score_sign in score_signs.items():
        signs = [score_sign]
        for column in ("latencies", "costs"):
            lost = placed[i].of(getattr(placed[i].run, column)) - placed[j].of(getattr(placed[j].run, column))
            known = ~np.isnan(lost)
            chosen = None if units is None else units[known]
            # Less is better, so that the second's difference to the first counts.
            signs.append(-clear_sign(lost[known], units=chosen, level=level))
        if min(signs) >= 0 and max(signs) > 0:
            beaten.add(j)
        if max(signs) <= 0 and min(signs) < 0:
            beaten.add(i)
    return beaten


def _pairing_notes(placed: Sequence[_Placed]) -> Iterator[str]:
    """What two runs' comparison says of its pairs, of all of them."""
    first = placed[0]
    edited = {
        first.run.ids[place]
        for other in placed[1:]
        for place, there in zip(first.places.tolist(), other.places.tolist(), strict=True)
        if first.run.hashes[place] != other.run.hashes[there]
    }
    if edited:
        yield f"{len(edited)} questions were edited between the runs and are paired by id"


def _unranked(one: _Placed, units: Ints | None, level: float) -> Ranked:
    """A run over the questions that all have, before it is seen beside the others."""
    run = one.run
    latencies, costs = _known(one.of(run.latencies)), one.of(run.costs)
    p50, p95 = (float(np.percentile(latencies, p)) if len(latencies) else None for p in (50, 95))
    score = _mean(one.of(run.scores), units, level)
    failed = _mean(one.of(run.failures), units, level)
    assert score is not None  # only scored questions are shared
    assert failed is not None  # and each ended in an error or did not
    numbers = run.categories[one.places]
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
    """The mean of the values that there are, and its interval."""
    known = ~np.isnan(values)
    kept = values[known]
    if not len(kept):
        return None
    bounded = bounded and bool(kept.min() >= 0.0 and kept.max() <= 1.0)
    chosen = None if units is None else units[known].tolist()
    return Mean(
        round_score(float(kept.mean())), mean_interval(kept.tolist(), chosen, level=level, bounded=bounded)
    )


def _cost_per_point(costs: Floats, scores: Floats, units: Ints | None, level: float) -> Mean | None:
    """All cost ÷ all scores of the questions whose cost is known; its interval is that of the linearised ratio."""
    paid = ~np.isnan(costs)
    worth = float(scores[paid].sum())
    if not worth > 0:
        return None
    ratio = float(costs[paid].sum()) / worth
    return _mean(ratio + (costs - ratio * scores) * paid.sum() / worth, units, level, bounded=False)


def _letters(count: int, clear: dict[tuple[int, int], bool]) -> list[str]:
    """Letters such that two runs share one exactly if they cannot be told apart (insert and absorb)."""
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
