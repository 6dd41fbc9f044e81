"""What is measured of two paired runs: differences of the score and of everything beside it, flips, pass rates."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from answerkey.comparison.columns import Columns, Floats, Ints
from answerkey.comparison.pairing import Pairing, paired_clusters
from answerkey.model.comparison import Flip, Measure, Side
from answerkey.model.run import RunInfo
from answerkey.model.scorecard import round_score
from answerkey.protocols import Direction
from answerkey.stats.paired import Difference, Verdict, holm, paired_difference, verdict_of
from answerkey.stats.rates import mcnemar_p_value, newcombe_interval

__all__ = ["Paired"]

# Counts of something unwanted; runs that were kept before scorers declared a direction say nothing of them.
_COUNTS: dict[str, Direction] = dict.fromkeys(
    ("duplicate_sources", "uncited_sources", "unretrieved_citations"), "lower"
)
# Scores are compared as rounded to nine decimals.
_HALF_UNIT = 5e-10

# A name, both runs' values, and which belong together.
_Part = tuple[str, Floats, Floats, Ints | None]


class Paired:
    """Two runs and their pairing."""

    def __init__(self, base: Columns, candidate: Columns, pairing: Pairing, level: float) -> None:
        self._base = base
        self._candidate = candidate
        self._pairing = pairing
        self._level = level
        self._first = base.scores[pairing.base]
        self._second = candidate.scores[pairing.candidate]
        self._passed = (_passed(self._first, base.info), _passed(self._second, candidate.info))
        self._clusters = paired_clusters(base, candidate, pairing)
        # Which way each metric is better, as the runs keep it.
        self._directions = {**_COUNTS, **base.info.directions, **candidate.info.directions}

    def score(self) -> Measure:
        """The difference of the score, which decides."""
        difference = paired_difference(
            np.round(self._second - self._first, 9), clusters=self._clusters, level=self._level
        )
        assert difference is not None  # there is at least one pair
        return Measure(
            name="score",
            graded=True,
            base=_mean(self._first),
            candidate=_mean(self._second),
            difference=difference,
            p_adjusted=difference.p_value,
            verdict=verdict_of(difference),
        )

    def family(
        self, first: Mapping[str, Floats], second: Mapping[str, Floats], *, graded: bool
    ) -> tuple[Measure, ...]:
        """Everything of one kind, corrected together; what only one run has is left to the notes."""
        found = [self._values(name, first[name], second[name]) for name in first if name in second]
        return self._corrected([part for part in found if len(part[1])], graded=graded)

    def categories(self) -> tuple[Measure, ...]:
        """The score in each category, corrected together; nothing if there is only one."""
        numbers = self._candidate.categories[self._pairing.candidate]
        order = np.argsort(numbers, kind="stable")
        present, begins = np.unique(numbers[order], return_index=True)
        if len(present) < 2:
            return ()
        parts = []
        for number, chosen in zip(present.tolist(), np.split(order, begins[1:]), strict=True):
            clusters = None if self._clusters is None else self._clusters[chosen]
            name = self._candidate.category_names[number]
            parts.append((name, self._first[chosen], self._second[chosen], clusters))
        return self._corrected(parts, graded=True)

    def _values(self, name: str, first: Floats, second: Floats) -> _Part:
        before, after = first[self._pairing.base], second[self._pairing.candidate]
        missing = np.isnan(before) | np.isnan(after)
        if not missing.any():
            return name, before, after, self._clusters
        clusters = None if self._clusters is None else self._clusters[~missing]
        return name, before[~missing], after[~missing], clusters

    def _corrected(self, parts: Sequence[_Part], *, graded: bool) -> tuple[Measure, ...]:
        counted = [not graded and _counted(name, first, second) for name, first, second, _ in parts]
        found = [
            paired_difference(
                np.round(second - first, 9),
                clusters=clusters,
                level=self._level,
                bound=None if unbounded else 1.0,
            )
            for (_, first, second, clusters), unbounded in zip(parts, counted, strict=True)
        ]
        adjusted = holm([None if difference is None else difference.p_value for difference in found])
        return tuple(
            Measure(
                name=name,
                base=_mean(first),
                candidate=_mean(second),
                graded=graded,
                counted=unbounded,
                difference=difference,
                p_adjusted=p,
                verdict=self._verdict(name, difference, p),
            )
            for (name, first, second, _), unbounded, difference, p in zip(
                parts, counted, found, adjusted, strict=True
            )
        )

    def _verdict(self, name: str, difference: Difference | None, p_value: float | None) -> Verdict:
        if difference is None:
            return "no clear difference"
        higher = self._directions.get(name, "higher") == "higher"
        return verdict_of(difference, p_value=p_value, higher_is_better=higher)

    def unbounded(self, name: str, first: Floats, second: Floats) -> Measure | None:
        """Latency or cost: less is better."""
        _, before, after, clusters = self._values(name, first, second)
        if not len(before):
            return None
        difference = paired_difference(after - before, clusters=clusters, level=self._level, bound=None)
        return Measure(
            name=name,
            base=_mean(before),
            candidate=_mean(after),
            graded=False,
            counted=True,
            difference=difference,
            p_adjusted=None if difference is None else difference.p_value,
            verdict="no clear difference"
            if difference is None
            else verdict_of(difference, higher_is_better=False),
        )

    def flips(self) -> tuple[Flip, ...]:
        """What broke comes first, the deepest fall before the others."""
        before, after = self._passed
        flipped = np.flatnonzero(before != after)
        names = self._candidate.category_names
        found = [
            Flip(
                id=self._base.ids[place],
                category=names[category],
                kind="fixed" if fixed else "broken",
                score_from=round_score(first),
                score_to=round_score(second),
            )
            for place, category, fixed, first, second in zip(
                self._pairing.base[flipped].tolist(),
                self._candidate.categories[self._pairing.candidate[flipped]].tolist(),
                after[flipped].tolist(),
                self._first[flipped].tolist(),
                self._second[flipped].tolist(),
                strict=True,
            )
        ]
        return tuple(sorted(found, key=lambda flip: (flip.score_to - flip.score_from, flip.id)))

    def pass_rate(self) -> dict[str, Any]:
        """Of both runs, with McNemar's test and Newcombe's interval."""
        before, after = self._passed
        n = len(before)
        both = int(np.count_nonzero(before & after))
        fixed = int(np.count_nonzero(after)) - both
        broken = int(np.count_nonzero(before)) - both
        interval = newcombe_interval(
            both=both, fixed=fixed, broken=broken, neither=n - both - fixed - broken, level=self._level
        )
        return {
            "base": round_score((both + broken) / n),
            "candidate": round_score((both + fixed) / n),
            "difference": round_score((fixed - broken) / n),
            "low": None if interval is None else round_score(interval.low),
            "high": None if interval is None else round_score(interval.high),
            "level": self._level,
            "p_value": mcnemar_p_value(fixed, broken),
            "method": "McNemar, mid-p; Newcombe",
            "fixed": fixed,
            "broken": broken,
        }

    def sides(self) -> tuple[Side, Side]:
        """Both runs over the questions that both have."""
        return _side(self._base, self._pairing.base), _side(self._candidate, self._pairing.candidate)


def _side(columns: Columns, positions: Ints) -> Side:
    info = columns.info
    scores = columns.scores[positions]
    latencies, costs = columns.latencies[positions], columns.costs[positions]
    latencies, costs = latencies[~np.isnan(latencies)], costs[~np.isnan(costs)]
    latency = None
    if len(latencies):
        p50, p95 = np.percentile(latencies, (50, 95)).tolist()
        latency = {"mean": round(float(latencies.mean()), 3), "p50": round(p50, 3), "p95": round(p95, 3)}
    return Side(
        id=info.id,
        name=info.name,
        target=info.target,
        score=_mean(scores),
        questions=len(columns.ids),
        repeat=info.repeat,
        pass_rate=round_score(int(np.count_nonzero(_passed(scores, info))) / len(scores)),
        error_rate=round_score(columns.errors.total() / columns.replies) if columns.replies else 0.0,
        errors=dict(sorted(columns.errors.items())),
        latency_ms=latency,
        cost=_mean(costs) if len(costs) else None,
    )


def _passed(scores: Floats, info: RunInfo) -> Any:
    return scores >= info.pass_mark - _HALF_UNIT


def _counted(name: str, first: Floats, second: Floats) -> bool:
    """Whether a metric is a count, a number of tokens or a duration, and not a share between 0 and 1."""
    if name in _COUNTS:
        return True
    return bool(min(first.min(), second.min()) < 0.0 or max(first.max(), second.max()) > 1.0)


def _mean(values: Floats) -> float:
    return round_score(float(values.mean()))
