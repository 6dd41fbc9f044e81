"""What is measured of two paired runs: differences of the score and of everything beside it, flips, pass rates."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from answerkey.comparison.columns import Columns, Floats, Ints
from answerkey.comparison.run_pairing import Pairing, joint_units
from answerkey.model.comparison import Flip, Measure, Side
from answerkey.model.run import RunInfo
from answerkey.model.scorecard import round_score
from answerkey.protocols import Direction
from answerkey.stats.paired import holm, paired_difference, verdict_of

# Counts of something unwanted; runs that were kept before scorers declared a direction say nothing of them.
_COUNTS: dict[str, Direction] = dict.fromkeys(
    ("duplicate_sources", "uncited_sources", "unretrieved_citations"), "lower"
)
# What gates ask of a judge.
_OF_JUDGES = ("canaries", "reliable", "unreliable_because", "touches")
# Scores are compared as rounded to nine decimals.
_HALF_UNIT = 5e-10


class _Part(NamedTuple):
    """Something that both runs have for each pair."""

    name: str
    first: Floats
    second: Floats
    # Which pairs belong together.
    units: Ints | None
    direction: Direction = "higher"
    # Counts, durations and costs, of which nothing bounds the difference.
    counted: bool = False


class PairedRuns:
    """Two runs and their pairing."""

    def __init__(
        self, base: Columns, candidate: Columns, pairing: Pairing, level: float, margin: float | None = None
    ) -> None:
        self._base = base
        self._candidate = candidate
        self._pairing = pairing
        self._level = level
        # A difference of the score inside ± this does not matter.
        self._margin = margin
        self._first = base.scores[pairing.base]
        self._second = candidate.scores[pairing.candidate]
        self._passed = (_passed(self._first, base.info), _passed(self._second, candidate.info))
        self._units = joint_units((base, pairing.base), (candidate, pairing.candidate))
        # Which way each metric is better, as the runs keep it.
        self._directions = {**_COUNTS, **base.info.directions, **candidate.info.directions}

    def score(self) -> Measure:
        """The difference of the score, which decides."""
        [found] = self._corrected([_Part("score", self._first, self._second, self._units)], graded=True)
        return found

    def family(
        self, first: Mapping[str, Floats], second: Mapping[str, Floats], *, graded: bool
    ) -> list[Measure]:
        """Everything of one kind, corrected together; what only one run has is left to the notes."""
        parts = []
        for name in first:
            if name in second and len((known := self._known(name, first[name], second[name])).first):
                counted = not graded and _counted(known)
                direction = self._directions.get(name, "higher")
                parts.append(known._replace(direction=direction, counted=counted))
        return self._corrected(parts, graded=graded)

    def categories(self) -> list[Measure]:
        """The score in each category, corrected together; nothing if there is only one."""
        numbers = self._candidate.categories[self._pairing.candidate]
        order = np.argsort(numbers, kind="stable")
        present, begins = np.unique(numbers[order], return_index=True)
        if len(present) < 2:
            return []
        parts = []
        for number, chosen in zip(present.tolist(), np.split(order, begins[1:]), strict=True):
            units = None if self._units is None else self._units[chosen]
            name = self._candidate.category_names[number]
            parts.append(_Part(name, self._first[chosen], self._second[chosen], units))
        return self._corrected(parts, graded=True)

    def lower_is_better(
        self, name: str, first: Floats, second: Floats, *, counted: bool = True
    ) -> Measure | None:
        """Latency, cost or, which is no count but a share, errors."""
        part = self._known(name, first, second)._replace(direction="lower", counted=counted)
        return self._corrected([part], graded=False)[0] if len(part.first) else None

    def _known(self, name: str, first: Floats, second: Floats) -> _Part:
        before, after = first[self._pairing.base], second[self._pairing.candidate]
        known = ~(np.isnan(before) | np.isnan(after))
        units = None if self._units is None else self._units[known]
        return _Part(name, before[known], after[known], units)

    def _corrected(self, parts: Sequence[_Part], *, graded: bool) -> list[Measure]:
        found = [
            paired_difference(
                np.round(part.second - part.first, 9),
                units=part.units,
                level=self._level,
                bound=None if part.counted else 1.0,
            )
            for part in parts
        ]
        adjusted = holm([None if difference is None else difference.p_value for difference in found])
        return [
            Measure(
                name=part.name,
                base=_mean(part.first),
                candidate=_mean(part.second),
                graded=graded,
                counted=part.counted,
                difference=difference,
                p_adjusted=p,
                verdict=verdict_of(
                    difference,
                    p_value=p,
                    higher_is_better=part.direction == "higher",
                    margin=self._margin if graded else None,
                ),
            )
            for part, difference, p in zip(parts, found, adjusted, strict=True)
        ]

    def flips(self) -> tuple[Flip, ...]:
        """What broke comes first, the deepest fall before the others."""
        before, after = self._passed
        categories = self._candidate.categories[self._pairing.candidate]
        found = [
            Flip(
                id=self._base.ids[self._pairing.base[place]],
                category=self._candidate.category_names[categories[place]],
                kind="fixed" if after[place] else "broken",
                score_from=round_score(float(self._first[place])),
                score_to=round_score(float(self._second[place])),
            )
            for place in np.flatnonzero(before != after).tolist()
        ]
        return tuple(sorted(found, key=lambda flip: (flip.score_to - flip.score_from, flip.id)))

    def pass_rate(self) -> dict[str, Any]:
        """Of both runs, by the same test as the score."""
        before, after = (passed.astype(np.float64) for passed in self._passed)
        found = paired_difference(after - before, units=self._units, level=self._level)
        assert found is not None  # rates are bounded, and there is a pair
        return {
            "base": _mean(before),
            "candidate": _mean(after),
            "difference": round_score(found.mean),
            "low": round_score(found.low),
            "high": round_score(found.high),
            "level": self._level,
            "p_value": found.p_value,
            "method": found.method,
            "fixed": int(np.count_nonzero(after > before)),
            "broken": int(np.count_nonzero(after < before)),
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
        judge={name: info.judge[name] for name in _OF_JUDGES if name in info.judge},
    )


def _passed(scores: Floats, info: RunInfo) -> Any:
    return scores >= info.pass_mark - _HALF_UNIT


def _counted(part: _Part) -> bool:
    """Whether a metric is a count, a number of tokens or a duration, and not a share between 0 and 1."""
    if part.name in _COUNTS:
        return True
    return bool(
        min(part.first.min(), part.second.min()) < 0.0 or max(part.first.max(), part.second.max()) > 1.0
    )


def _mean(values: Floats) -> float:
    return round_score(float(values.mean()))
