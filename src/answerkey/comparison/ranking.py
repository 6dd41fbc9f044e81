"""More than two runs: a ranking with intervals, groups that cannot be told apart, and the Pareto front."""

from collections.abc import Sequence
from itertools import combinations
from typing import Any

import msgspec
import numpy as np

from answerkey.comparison.columns import Columns, Floats, Ints
from answerkey.errors import UsageError
from answerkey.model.scorecard import grade, round_score
from answerkey.stats.intervals import Interval, mean_interval
from answerkey.stats.paired import holm, paired_difference, verdict_of

__all__ = ["Ranked", "Ranking", "rank_runs"]


class Ranked(msgspec.Struct, frozen=True, kw_only=True):
    """A run in the ranking, over the questions that all runs have."""

    id: str
    name: str
    target: str
    rank: int
    score: float
    grade: str
    interval: Interval | None
    # Letters of the groups it belongs to: runs that share a letter cannot be told apart.
    groups: str
    error_rate: float
    latency_p50_ms: float | None
    latency_p95_ms: float | None
    # Mean cost of a question.
    cost: float | None
    # No other run is at least as good in score, latency and cost and better in one.
    pareto: bool


class Ranking(msgspec.Struct, frozen=True, kw_only=True):
    """Runs, best first."""

    runs: tuple[Ranked, ...]
    # Questions that all runs have, and that some lack.
    questions: int
    left_out: int
    # (id, id, difference, corrected p-value, whether it is clear), first minus second in the ranking's order.
    pairs: tuple[tuple[str, str, float, float | None, bool], ...]

    def to_dict(self) -> dict[str, Any]:
        """As `compare --json` has it for more than two runs."""
        return {
            "questions": self.questions,
            "left_out": self.left_out,
            "runs": [msgspec.to_builtins(run) for run in self.runs],
            "pairs": [
                {"better": a, "worse": b, "difference": difference, "p_adjusted": p, "clear": clear}
                for a, b, difference, p, clear in self.pairs
            ],
        }


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
    scores = [run.scores[at] for run, at in zip(runs, places, strict=True)]
    clusters = _clusters(runs[0], places[0])
    means = [round_score(float(values.mean())) for values in scores]
    order = sorted(range(len(runs)), key=lambda i: (-means[i], runs[i].info.created_at))
    pairs = list(combinations(range(len(order)), 2))
    found = [
        paired_difference(
            np.round(scores[order[i]] - scores[order[j]], 9),
            clusters=clusters,
            level=level,
        )
        for i, j in pairs
    ]
    adjusted = holm([None if d is None else d.p_value for d in found])
    clear = {
        pair: d is not None and p is not None and verdict_of(d, p_value=p) != "no clear difference"
        for pair, d, p in zip(pairs, found, adjusted, strict=True)
    }
    letters = _letters(len(order), clear)
    latencies = [_known(run.latencies[at]) for run, at in zip(runs, places, strict=True)]
    costs = [_known(run.costs[at]) for run, at in zip(runs, places, strict=True)]
    p50 = [float(np.percentile(values, 50)) if len(values) else None for values in latencies]
    p95 = [float(np.percentile(values, 95)) if len(values) else None for values in latencies]
    cost = [float(values.mean()) if len(values) else None for values in costs]
    ranked = []
    for place, index in enumerate(order):
        run = runs[index]
        ranked.append(
            Ranked(
                id=run.info.id,
                name=run.info.name,
                target=run.info.target,
                rank=place + 1,
                score=means[index],
                grade=grade(means[index]),
                interval=mean_interval(scores[index].tolist(), level=level),
                groups=letters[place],
                error_rate=round_score(run.errors.total() / run.replies) if run.replies else 0.0,
                latency_p50_ms=p50[index],
                latency_p95_ms=p95[index],
                cost=cost[index],
                pareto=_on_front(index, means, p50, cost),
            )
        )
    return Ranking(
        runs=tuple(ranked),
        questions=len(shared),
        left_out=everything - len(shared),
        pairs=tuple(
            (
                ranked[i].id,
                ranked[j].id,
                0.0 if d is None else round_score(d.mean),
                p,
                clear[(i, j)],
            )
            for (i, j), d, p in zip(pairs, found, adjusted, strict=True)
        ),
    )


def _clusters(run: Columns, places: Ints) -> Ints | None:
    if run.clusters is None:
        return None
    own = run.clusters[places]
    # A question that belongs to no cluster is one of its own.
    return np.where(own < 0, len(run.cluster_names) + np.arange(len(places)), own)


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


def _on_front(
    index: int, scores: Sequence[float], latencies: Sequence[float | None], costs: Sequence[float | None]
) -> bool:
    """Whether no other run is as good in everything and better in something; what is not known does not count."""

    def gains(other: int) -> list[float]:
        found = [scores[other] - scores[index]]
        for values in (latencies, costs):
            mine, theirs = values[index], values[other]
            if mine is not None and theirs is not None:
                found.append(mine - theirs)
        return found

    others = (gains(other) for other in range(len(scores)) if other != index)
    return not any(min(found) >= 0.0 and max(found) > 0.0 for found in others)


def _known(values: Floats) -> Floats:
    return values[~np.isnan(values)]
