"""The comparison of two runs: pairing, differences of everything, verdict and reasons."""

import math
from array import array
from collections.abc import Iterator, Sequence
from typing import Any, Literal

from answerkey.comparison.columns import Columns, Pairing, columns_from_run, pair
from answerkey.comparison.comparison import Comparison, Flip, Measure, Side, Unpaired
from answerkey.errors import UsageError
from answerkey.run import Run
from answerkey.scorecard import round_score
from answerkey.stats.multiple import holm
from answerkey.stats.paired import Difference, Verdict, paired_difference, verdict_of
from answerkey.stats.power import detectable_difference, questions_needed
from answerkey.stats.quantiles import percentiles
from answerkey.stats.rates import mcnemar_p_value, newcombe_interval

__all__ = ["compare", "compare_runs"]

# Metrics that count something unwanted: less of it is better.
_UNWANTED = (
    "duplicate",
    "uncited",
    "unretrieved",
    "unsupported",
    "ungrounded",
    "contradicted",
    "forbidden",
    "invented",
)
# A difference smaller than this is not worth asking more questions for.
_WORTH_KNOWING = 0.01


def compare(base: Run, candidate: Run) -> Comparison:
    """Compare two runs at hand; `.verdict` says whether the candidate is better."""
    return compare_runs(columns_from_run(base), columns_from_run(candidate))


def compare_runs(base: Columns, candidate: Columns, *, level: float = 0.95) -> Comparison:
    """Compare two runs as columns, so that large ones stay small in memory."""
    pairing = pair(base, candidate)
    if not len(pairing.base):
        raise UsageError(
            f"runs {base.info.id} and {candidate.info.id} have no scored question in common; "
            "compare runs over the same golden set"
        )
    work = _Work(base, candidate, pairing, level)
    score = work.score()
    flips = tuple(work.flips())
    components = work.family(base.components, candidate.components)
    metrics = work.family(base.metrics, candidate.metrics)
    difference = score.difference
    assert difference is not None  # scores are bounded
    detectable = detectable_difference(difference.error, difference.clusters - 1, level=level)
    if detectable is not None:
        detectable = min(detectable, 1.0)
    target = max(abs(difference.mean), _WORTH_KNOWING)
    needed = _more_questions(difference, target, level)
    new_errors = {kind: n for kind, n in sorted(candidate.errors.items()) if kind not in base.errors}
    return Comparison(
        base=work.side(base, pairing.base),
        candidate=work.side(candidate, pairing.candidate),
        paired=len(pairing.base),
        unpaired=tuple(_unpaired(pairing)),
        edited=pairing.edited,
        score=score,
        verdict=score.verdict,
        detectable=None if detectable is None else round_score(detectable),
        questions_needed=needed,
        needed_for=round_score(target),
        reasons=tuple(_reasons(score, detectable, needed, target)),
        components=components,
        metrics=metrics,
        categories=work.categories(),
        flips=flips,
        pass_rate=work.pass_rate(flips),
        latency=work.unbounded("latency_ms", base.latencies, candidate.latencies),
        cost=work.unbounded("cost", base.costs, candidate.costs),
        new_errors=new_errors,
        notes=tuple(_notes(base, candidate, pairing)),
    )


class _Work:
    def __init__(self, base: Columns, candidate: Columns, pairing: Pairing, level: float) -> None:
        self.base = base
        self.candidate = candidate
        self.pairing = pairing
        self.level = level
        self.first = [base.scores[i] for i in pairing.base]
        self.second = [candidate.scores[i] for i in pairing.candidate]
        self.clusters = self._clusters()

    def _clusters(self) -> list[str] | None:
        known = {**self.candidate.clusters, **self.base.clusters}
        if not known:
            return None
        hashes = [self.base.hashes[i] for i in self.pairing.base]
        # A question that belongs to no cluster is one of its own.
        return [known.get(content, content) for content in hashes]

    def score(self) -> Measure:
        differences = [round(b - a, 9) for a, b in zip(self.first, self.second, strict=True)]
        difference = paired_difference(differences, clusters=self.clusters, level=self.level)
        assert difference is not None  # there is at least one pair
        return Measure(
            name="score",
            base=_mean(self.first),
            candidate=_mean(self.second),
            difference=difference,
            p_adjusted=difference.p_value,
            verdict=verdict_of(difference),
        )

    def family(
        self, first: "dict[str, array[float]]", second: "dict[str, array[float]]"
    ) -> tuple[Measure, ...]:
        """Everything of one kind, corrected together; what only one run has is left to the notes."""
        names = [name for name in first if name in second]
        found = [(name, self._values(first[name], second[name])) for name in names]
        return self._corrected([(name, values) for name, values in found if values[0]])

    def categories(self) -> tuple[Measure, ...]:
        positions: dict[str, list[int]] = {}
        for index, position in enumerate(self.pairing.candidate):
            positions.setdefault(self.candidate.categories[position], []).append(index)
        if len(positions) < 2:
            return ()
        parts = []
        for name, chosen in positions.items():
            clusters = None if self.clusters is None else [self.clusters[i] for i in chosen]
            parts.append(
                (name, ([self.first[i] for i in chosen], [self.second[i] for i in chosen], clusters))
            )
        return self._corrected(parts)

    def _values(
        self, first: "array[float]", second: "array[float]"
    ) -> tuple[list[float], list[float], list[str] | None]:
        before = [first[i] for i in self.pairing.base]
        after = [second[j] for j in self.pairing.candidate]
        if not math.isnan(sum(before) + sum(after)):
            return before, after, self.clusters
        kept = [
            (index, a, b)
            for index, (a, b) in enumerate(zip(before, after, strict=True))
            if not (math.isnan(a) or math.isnan(b))
        ]
        clusters = None if self.clusters is None else [self.clusters[index] for index, _, _ in kept]
        return [a for _, a, _ in kept], [b for _, _, b in kept], clusters

    def _corrected(
        self, parts: Sequence[tuple[str, tuple[list[float], list[float], list[str] | None]]]
    ) -> tuple[Measure, ...]:
        found: list[tuple[str, list[float], list[float], Difference | None]] = []
        for name, (first, second, clusters) in parts:
            differences = [round(b - a, 9) for a, b in zip(first, second, strict=True)]
            # A metric may be a count or a duration: only what lies within 0 and 1 is bounded by it.
            extremes = (min(first), max(first), min(second), max(second))
            bound = 1.0 if min(extremes) >= 0.0 and max(extremes) <= 1.0 else None
            found.append(
                (
                    name,
                    first,
                    second,
                    paired_difference(differences, clusters=clusters, level=self.level, bound=bound),
                )
            )
        adjusted = holm([None if d is None else d.p_value for *_, d in found])
        return tuple(
            Measure(
                name=name,
                base=_mean(first),
                candidate=_mean(second),
                difference=difference,
                p_adjusted=p,
                verdict=_verdict(name, difference, p),
            )
            for (name, first, second, difference), p in zip(found, adjusted, strict=True)
        )

    def unbounded(self, name: str, first: "array[float]", second: "array[float]") -> Measure | None:
        """Latency or cost: less is better."""
        before, after, clusters = self._values(first, second)
        if not before:
            return None
        differences = [b - a for a, b in zip(before, after, strict=True)]
        difference = paired_difference(differences, clusters=clusters, level=self.level, bound=None)
        return Measure(
            name=name,
            base=_mean(before),
            candidate=_mean(after),
            difference=difference,
            p_adjusted=None if difference is None else difference.p_value,
            verdict="no clear difference"
            if difference is None
            else verdict_of(difference, higher_is_better=False),
        )

    def flips(self) -> Iterator[Flip]:
        found = []
        marks = (self.base.info.pass_mark, self.candidate.info.pass_mark)
        for index, (i, before, after) in enumerate(
            zip(self.pairing.base, self.first, self.second, strict=True)
        ):
            # As compared when rounded to nine decimals.
            passed = after >= marks[1] - 5e-10
            if (before >= marks[0] - 5e-10) != passed:
                kind: Literal["fixed", "broken"] = "fixed" if passed else "broken"
                category = self.candidate.categories[self.pairing.candidate[index]]
                found.append(
                    Flip(
                        id=self.base.ids[i],
                        category=category,
                        kind=kind,
                        score_from=round_score(before),
                        score_to=round_score(after),
                    )
                )
        # What broke comes first, the deepest fall before the others.
        return iter(sorted(found, key=lambda flip: (flip.score_to - flip.score_from, flip.id)))

    def pass_rate(self, flips: Sequence[Flip]) -> dict[str, Any]:
        n = len(self.first)
        fixed = sum(flip.kind == "fixed" for flip in flips)
        broken = len(flips) - fixed
        passed = sum(value >= self.base.info.pass_mark - 5e-10 for value in self.first)
        both = passed - broken
        interval = newcombe_interval(
            both=both, fixed=fixed, broken=broken, neither=n - both - fixed - broken, level=self.level
        )
        return {
            "base": round_score(passed / n),
            "candidate": round_score((both + fixed) / n),
            "difference": round_score((fixed - broken) / n),
            "low": None if interval is None else round_score(interval.low),
            "high": None if interval is None else round_score(interval.high),
            "level": self.level,
            "p_value": mcnemar_p_value(fixed, broken),
            "method": "McNemar, mid-p; Newcombe",
            "fixed": fixed,
            "broken": broken,
        }

    def side(self, columns: Columns, positions: "array[int]") -> Side:
        info = columns.info
        scores = [columns.scores[i] for i in positions]
        latencies = sorted(
            columns.latencies[i] for i in positions if columns.latencies[i] == columns.latencies[i]
        )
        costs = [columns.costs[i] for i in positions if columns.costs[i] == columns.costs[i]]
        latency = None
        if latencies:
            p50, p95 = percentiles(latencies, (50, 95))
            latency = {"mean": round(_mean(latencies), 3), "p50": round(p50, 3), "p95": round(p95, 3)}
        return Side(
            id=info.id,
            name=info.name,
            target=info.target,
            score=_mean(scores),
            questions=len(columns),
            repeat=info.repeat,
            pass_rate=round_score(sum(s >= info.pass_mark - 5e-10 for s in scores) / len(scores)),
            error_rate=round_score(columns.errors.total() / columns.replies) if columns.replies else 0.0,
            errors=dict(sorted(columns.errors.items())),
            latency_ms=latency,
            cost=round_score(_mean(costs)) if costs else None,
        )


def _verdict(name: str, difference: Difference | None, p_value: float | None) -> Verdict:
    if difference is None:
        return "no clear difference"
    return verdict_of(difference, p_value=p_value, higher_is_better=not name.startswith(_UNWANTED))


def _mean(values: Sequence[float]) -> float:
    return round_score(math.fsum(values) / len(values))


def _more_questions(difference: Difference, target: float, level: float) -> int | None:
    """Questions beyond those asked that would show a difference of the target's size four times in five."""
    if difference.clusters < 2:
        return None
    # What a single question (or cluster) contributes to the error, the imagined differences included.
    deviation = difference.error * math.sqrt(difference.pairs)
    needed = questions_needed(deviation, target, level=level)
    return None if needed is None else max(0, needed - difference.pairs)


def _unpaired(pairing: Pairing) -> Iterator[Unpaired]:
    yield from (Unpaired(identity, "only in base") for identity in pairing.only_base)
    yield from (Unpaired(identity, "only in candidate") for identity in pairing.only_candidate)
    yield from (Unpaired(identity, "not scored") for identity in pairing.unscored)


def _reasons(score: Measure, detectable: float | None, needed: int | None, target: float) -> Iterator[str]:
    difference = score.difference
    assert difference is not None  # scores are bounded
    if score.verdict != "no clear difference":
        return
    if difference.pairs == 1:
        yield "one question in common says nothing about the others"
    elif difference.clusters == 1:
        yield "all questions belong to one cluster, which counts as one question"
    elif not difference.changed:
        yield f"all {difference.pairs} questions scored the same in both runs"
    elif difference.p_value is not None and difference.p_value < 1.0 - difference.level:
        yield (
            f"the questions that changed point one way (p = {difference.p_value:.2g}), but among so few of them "
            "a rare large change the other way cannot be ruled out"
        )
    if detectable is not None:
        sentence = f"this comparison could only have detected ≥ {100 * detectable:.1f} points"
        if needed:
            sentence += f"; {needed:,} more questions would settle a difference of {100 * target:.1f} points"
        yield sentence


def _notes(base: Columns, candidate: Columns, pairing: Pairing) -> Iterator[str]:
    first, second = base.info, candidate.info
    if first.scoring_hash != second.scoring_hash:
        settings = [
            f"{name} {getattr(first, name)} and {getattr(second, name)}"
            for name in ("match", "weights", "pass_mark")
            if getattr(first, name) != getattr(second, name)
        ]
        what = "; ".join(settings) or "scorers or their versions"
        yield f"the runs were scored differently ({what}): answerkey rescore makes them comparable"
    for info in (first, second):
        if info.status != "complete":
            yield f"run {info.name} ({info.id}) is not complete: answerkey resume {info.id}"
    if pairing.edited:
        yield f"{len(pairing.edited)} questions were edited between the runs and are paired by id"
    missing = len(pairing.only_base) + len(pairing.only_candidate) + len(pairing.unscored)
    if missing:
        yield f"{missing} questions take no part: they are not in both runs or were not scored"
    for kind, names, others, run in (
        ("component", base.components, candidate.components, second),
        ("component", candidate.components, base.components, first),
        ("metric", base.metrics, candidate.metrics, second),
        ("metric", candidate.metrics, base.metrics, first),
    ):
        absent = sorted(set(names) - set(others))
        if absent:
            yield f"{kind} {', '.join(absent)} is missing in run {run.name} ({run.id})"
