"""More than two runs: a ranking with intervals, groups that cannot be told apart, and the Pareto front."""

from collections.abc import Sequence
from itertools import combinations

import msgspec
import numpy as np

from answerkey.comparison.columns import Columns, Floats, Ints
from answerkey.comparison.pairing import joint_clusters
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
    entries = [_Entry(run, at) for run, at in zip(runs, places, strict=True)]
    ordered = sorted(entries, key=lambda entry: (-entry.score, entry.info.created_at))
    pairs = list(combinations(range(len(ordered)), 2))
    found = [
        paired_difference(np.round(ordered[i].scores - ordered[j].scores, 9), clusters=clusters, level=level)
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
            entry.ranked(
                rank, letters, pareto=not any(other.dominates(entry) for other in entries), level=level
            )
            for rank, (entry, letters) in enumerate(
                zip(ordered, _letters(len(ordered), clear), strict=True), start=1
            )
        ),
        pairs=tuple(
            RankedPair(
                ordered[i].info.id,
                ordered[j].info.id,
                0.0 if difference is None else round_score(difference.mean),
                p,
                clear[i, j],
            )
            for (i, j), difference, p in zip(pairs, found, adjusted, strict=True)
        ),
    )


class _Entry:
    """A run over the questions that all have."""

    def __init__(self, run: Columns, places: Ints) -> None:
        self.info = run.info
        self.scores = run.scores[places]
        self.score = round_score(float(self.scores.mean()))
        self._error_rate = round_score(run.errors.total() / run.replies) if run.replies else 0.0
        latencies, costs = _known(run.latencies[places]), _known(run.costs[places])
        self._p50, self._p95 = (
            float(np.percentile(latencies, percent)) if len(latencies) else None for percent in (50, 95)
        )
        self._cost = float(costs.mean()) if len(costs) else None

    def dominates(self, other: "_Entry") -> bool:
        """Whether it is as good in everything and better in something; what is not known does not count."""
        gains = [self.score - other.score]
        for mine, theirs in ((self._p50, other._p50), (self._cost, other._cost)):
            if mine is not None and theirs is not None:
                gains.append(theirs - mine)
        return min(gains) >= 0.0 and max(gains) > 0.0

    def ranked(self, rank: int, groups: str, *, pareto: bool, level: float) -> Ranked:
        return Ranked(
            id=self.info.id,
            name=self.info.name,
            target=self.info.target,
            rank=rank,
            score=self.score,
            grade=grade(self.score),
            interval=mean_interval(self.scores.tolist(), level=level),
            groups=groups,
            error_rate=self._error_rate,
            latency_p50_ms=self._p50,
            latency_p95_ms=self._p95,
            cost=self._cost,
            pareto=pareto,
        )


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
