"""More than two runs: a ranking with intervals, groups that cannot be told apart, and the Pareto front."""

from collections.abc import Sequence
from itertools import combinations

import msgspec
import numpy as np

from answerkey.comparison.columns import Columns, Floats, Ints
from answerkey.comparison.run_pairing import joint_clusters
from answerkey.errors import UsageError
from answerkey.model.scorecard import grade, round_score
from answerkey.stats.intervals import Interval, mean_interval
from answerkey.stats.paired import holm, paired_difference, verdict_of

__all__ = ["Ranked", "RankedPair", "Ranking", "rank_runs"]


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
    error_rate: float
    latency_p50_ms: float | None
    latency_p95_ms: float | None
    # Mean cost of a question.
    cost: float | None
    # No other run is at least as good in score, latency and cost and better in one.
    pareto: bool = False


class RankedPair(msgspec.Struct, frozen=True):
    """Two runs by id, in the ranking's order."""

    better: str
    worse: str
    difference: float
    # After Holm's correction over all pairs.
    p_adjusted: float | None
    clear: bool


class Ranking(msgspec.Struct, frozen=True, kw_only=True):
    """Runs, best first; as a document, what `compare --json` has for more than two."""

    # Questions that all runs have, and that some lack.
    questions: int
    left_out: int
    runs: tuple[Ranked, ...]
    pairs: tuple[RankedPair, ...]


def rank_runs(runs: Sequence[Columns], *, level: float = 0.95) -> Ranking:
    """Rank runs by their score on the questions that all of them have (by id)."""
    positions = [
        {identity: i for i, identity in enumerate(run.ids) if not np.isnan(run.scores[i])} for run in runs
    ]
    shared = [identity for identity in positions[0] if all(identity in known for known in positions[1:])]
    if not shared:
        raise UsageError(
            "these runs have no scored question in common; compare runs over the same golden set"
        )
    everything = len({identity for run in runs for identity in run.ids})
    places = [np.array([known[identity] for identity in shared]) for known in positions]
    clusters = joint_clusters((runs[0], places[0]))
    entries = [_unranked(run, at, level) for run, at in zip(runs, places, strict=True)]
    order = sorted(range(len(runs)), key=lambda i: (-entries[i].score, runs[i].info.created_at))
    ordered = [entries[i] for i in order]
    scores = [runs[i].scores[places[i]] for i in order]
    pairs = list(combinations(range(len(order)), 2))
    found = [
        paired_difference(np.round(scores[i] - scores[j], 9), clusters=clusters, level=level)
        for i, j in pairs
    ]
    adjusted = holm([None if difference is None else difference.p_value for difference in found])
    clear = {
        pair: p is not None and verdict_of(difference, p_value=p) != "no clear difference"
        for pair, difference, p in zip(pairs, found, adjusted, strict=True)
    }
    return Ranking(
        questions=len(shared),
        left_out=everything - len(shared),
        runs=tuple(
            msgspec.structs.replace(
                run, rank=rank, groups=groups, pareto=not any(_dominates(other, run) for other in ordered)
            )
            for rank, (run, groups) in enumerate(
                zip(ordered, _letters(len(ordered), clear), strict=True), start=1
            )
        ),
        pairs=tuple(
            RankedPair(
                ordered[i].id,
                ordered[j].id,
                0.0 if difference is None else round_score(difference.mean),
                p,
                clear[i, j],
            )
            for (i, j), difference, p in zip(pairs, found, adjusted, strict=True)
        ),
    )


def _unranked(run: Columns, places: Ints, level: float) -> Ranked:
    """A run over the questions that all have, before it is seen beside the others."""
    scores, latencies, costs = run.scores[places], _known(run.latencies[places]), _known(run.costs[places])
    score = round_score(float(scores.mean()))
    p50, p95 = (float(np.percentile(latencies, p)) if len(latencies) else None for p in (50, 95))
    return Ranked(
        id=run.info.id,
        name=run.info.name,
        target=run.info.target,
        score=score,
        grade=grade(score),
        interval=mean_interval(scores.tolist(), level=level),
        error_rate=round_score(run.errors.total() / run.replies) if run.replies else 0.0,
        latency_p50_ms=p50,
        latency_p95_ms=p95,
        cost=float(costs.mean()) if len(costs) else None,
    )


def _dominates(one: Ranked, other: Ranked) -> bool:
    """Whether it is as good in everything and better in something; what is not known does not count."""
    gains = [one.score - other.score]
    for mine, theirs in ((one.latency_p50_ms, other.latency_p50_ms), (one.cost, other.cost)):
        if mine is not None and theirs is not None:
            gains.append(theirs - mine)
    return min(gains) >= 0.0 and max(gains) > 0.0


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
