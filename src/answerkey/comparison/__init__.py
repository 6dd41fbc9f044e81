"""Comparing runs given as columns: pairing by question, differences, and a verdict that is right at its stated rate."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np

from answerkey.comparison.columns import Columns, Floats, Ints
from answerkey.errors import UsageError
from answerkey.model.comparison import (
    ChangeKind,
    Comparison,
    Measure,
    QuestionChange,
    Side,
    TruthChange,
    Unpaired,
)
from answerkey.model.judgement import JudgeRecord
from answerkey.model.run import RunInfo
from answerkey.model.scorecard import lowest_score, round_score
from answerkey.protocols import Direction
from answerkey.stats.intervals import dominant_unit, percentiles, t_quantile
from answerkey.stats.paired import (
    MIN_UNITS,
    Difference,
    SequentialResult,
    holm,
    paired_difference,
    unseen_rate,
    verdict_of,
)
from answerkey.text.normalise import count

# Changes are lopsided if those in one direction are this many times as frequent, and those in the other this many times as
# large on average.
_LOPSIDED = 3
_PLURALS = {"gain": "gains", "loss": "losses"}


# Pairing: by content, then by id.


class Pairing(msgspec.Struct, frozen=True):
    """The pairs of questions of two runs."""

    # Indices in base and candidate.
    base: Ints
    candidate: Ints
    # Ids of questions whose wording or expectations were edited between the runs.
    edited: tuple[str, ...]
    # Questions that only have another computed value.
    truth_changed: tuple[TruthChange, ...]
    # Questions that are not compared, and why.
    unpaired: tuple[Unpaired, ...]


def pair(base: Columns, candidate: Columns) -> Pairing:
    """Pair the questions of two runs."""
    # Reversed, so that the first of equal questions counts.
    by_hash = {content: index for index, content in reversed(list(enumerate(candidate.hashes)))}
    others = np.array([by_hash.get(content, -1) for content in base.hashes], dtype=np.int64)
    unused = np.ones(len(candidate.ids), bool)
    unused[others[others >= 0]] = False
    leftover = np.flatnonzero(others < 0).tolist()
    edited: list[str] = []
    truth_changed: list[TruthChange] = []
    only_base: list[str] = []
    if leftover:
        by_id = {candidate.ids[i]: i for i in np.flatnonzero(unused).tolist()}
        for position in leftover:
            identity = base.ids[position]
            other = by_id.pop(identity, None)
            if other is None:
                only_base.append(identity)
            else:
                before, after = base.truth.get(identity), candidate.truth.get(identity)
                if before is not None and after is not None and before.definition == after.definition:
                    truth_changed.append(TruthChange(identity, before.values, after.values))
                else:
                    edited.append(identity)
                others[position] = other
                unused[other] = False
    first = np.flatnonzero(others >= 0)
    second = others[first]
    scored = ~(np.isnan(base.scores[first]) | np.isnan(candidate.scores[second]))
    return Pairing(
        base=first[scored],
        candidate=second[scored],
        edited=tuple(edited),
        truth_changed=tuple(truth_changed),
        unpaired=(
            *(Unpaired(identity, "only in base") for identity in only_base),
            *(Unpaired(candidate.ids[i], "only in candidate") for i in np.flatnonzero(unused).tolist()),
            *(Unpaired(base.ids[i], "not scored") for i in first[~scored].tolist()),
        ),
    )


def joint_units(*runs: tuple[Columns, Ints]) -> Ints | None:
    """Return a unit number for each of the paired questions, given as (columns, indices) of each run.

    None if every question is a unit.
    """
    if all(columns.groups is None for columns, _ in runs):
        return None
    groups = [
        [columns.groups[index] for index in indices.tolist()]
        for columns, indices in runs
        if columns.groups is not None
    ]
    numbers: dict[str | int, int] = {}
    labels = [
        # A question without a group is a unit.
        numbers.setdefault(next((name for name in names if name is not None), index), len(numbers))
        for index, names in enumerate(zip(*groups, strict=True))
    ]
    return np.array(labels)


# Measures: differences of the score, components, metrics and categories; flips and pass rates.


# Metrics that count something unwanted.
_COUNTS: dict[str, Direction] = dict.fromkeys(
    ("duplicate_sources", "uncited_sources", "unretrieved_citations"), "lower"
)


class _Part(NamedTuple):
    """A value that both runs have for each pair."""

    name: str
    first: Floats
    second: Floats
    # Unit of each pair.
    units: Ints | None
    direction: Direction = "higher"
    # A count, duration or cost: its difference is unbounded.
    counted: bool = False


class PairedRuns:
    """Two runs and their pairing."""

    def __init__(
        self, base: Columns, candidate: Columns, pairing: Pairing, margin: float | None = None
    ) -> None:
        self._base = base
        self._candidate = candidate
        self._pairing = pairing
        # Differences of the score within ± this are equivalent.
        self._margin = margin
        self._first = base.scores[pairing.base]
        self._second = candidate.scores[pairing.candidate]
        self._passed = (_passed(self._first, base.info), _passed(self._second, candidate.info))
        self._units = joint_units((base, pairing.base), (candidate, pairing.candidate))
        # Metric → direction.
        self._directions = {**_COUNTS, **base.info.directions, **candidate.info.directions}

    def score(self) -> Measure:
        """Return the difference of the score, which decides the verdict."""
        [measure] = self._measures([_Part("score", self._first, self._second, self._units)], graded=True)
        return measure

    def family(
        self, first: Mapping[str, Floats], second: Mapping[str, Floats], *, graded: bool
    ) -> list[Measure]:
        """Return all measures that both runs have, with p-values corrected together."""
        parts = []
        for name in first:
            if name in second and len((known := self._known(name, first[name], second[name])).first):
                counted = not graded and _counted(known)
                direction = self._directions.get(name, "higher")
                parts.append(known._replace(direction=direction, counted=counted))
        return self._measures(parts, graded=graded)

    def categories(self) -> list[Measure]:
        """Return the score in each category, with p-values corrected together; empty if there is one category."""
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
        return self._measures(parts, graded=True)

    def lower_is_better(
        self, name: str, first: Floats, second: Floats, *, counted: bool = True, tested: bool = True
    ) -> Measure | None:
        """Return the measure of latency, cost or error rate; the last is a share, not a count.

        If it is not `tested`, it has both means and no difference.
        """
        part = self._known(name, first, second)._replace(direction="lower", counted=counted)
        if not len(part.first):
            return None
        if tested:
            return self._measures([part], graded=False)[0]
        return Measure(
            name=name,
            base=_mean(part.first),
            candidate=_mean(part.second),
            graded=False,
            counted=counted,
            tested=False,
            difference=None,
            p_adjusted=None,
            verdict="no clear difference",
        )

    def _known(self, name: str, first: Floats, second: Floats) -> _Part:
        before, after = first[self._pairing.base], second[self._pairing.candidate]
        known = ~(np.isnan(before) | np.isnan(after))
        units = None if self._units is None else self._units[known]
        return _Part(name, before[known], after[known], units)

    def _measures(self, parts: Sequence[_Part], *, graded: bool) -> list[Measure]:
        found = [
            paired_difference(
                np.round(part.second - part.first, 9),
                units=part.units,
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

    def flips(self) -> tuple[QuestionChange, ...]:
        """Return the questions that pass in one run and fail in the other, largest loss first."""
        before, after = self._passed
        return self._changes(np.flatnonzero(before != after).tolist())

    def losses(self) -> tuple[QuestionChange, ...]:
        """Return the questions whose score fell without a flip, largest loss first."""
        before, after = self._passed
        fell = np.round(self._second - self._first, 9) < 0
        return self._changes(np.flatnonzero(fell & (before == after)).tolist())

    def _changes(self, indices: Sequence[int]) -> tuple[QuestionChange, ...]:
        before, after = self._passed
        kinds: dict[tuple[bool, bool], ChangeKind] = {(False, True): "fixed", (True, False): "broken"}
        categories = self._candidate.categories[self._pairing.candidate]
        found = [
            QuestionChange(
                id=self._base.ids[self._pairing.base[index]],
                category=self._candidate.category_names[categories[index]],
                kind=kinds.get((bool(before[index]), bool(after[index])), "worse"),
                score_from=round_score(float(self._first[index])),
                score_to=round_score(float(self._second[index])),
                passed_from=bool(before[index]),
                passed_to=bool(after[index]),
            )
            for index in indices
        ]
        return tuple(sorted(found, key=lambda change: (change.score_to - change.score_from, change.id)))

    def pass_rate(self) -> dict[str, Any]:
        """Return both pass rates and their difference, by the same test as the score."""
        before, after = (passed.astype(np.float64) for passed in self._passed)
        found = paired_difference(after - before, units=self._units)
        assert found is not None  # rates are bounded, and there is a pair
        return {
            "base": _mean(before),
            "candidate": _mean(after),
            "difference": round_score(found.mean),
            "low": round_score(found.low),
            "high": round_score(found.high),
            "level": found.level,
            "p_value": found.p_value,
            "method": found.method,
            "fixed": int(np.count_nonzero(after > before)),
            "broken": int(np.count_nonzero(after < before)),
        }

    def pattern_notes(self) -> Iterator[str]:
        """Say what makes the verdict less certain than it looks: changes of unequal kinds, or one unit with most questions."""
        changes = np.round(self._second - self._first, 9)
        fell, rose, sizes = np.flatnonzero(changes < 0), np.flatnonzero(changes > 0), abs(changes)
        for many, other, few, name in ((rose, "gain", fell, "loss"), (fell, "loss", rose, "gain")):
            if (
                len(few)
                and len(many) >= _LOPSIDED * len(few)
                and sizes[few].mean() >= _LOPSIDED * sizes[many].mean()
            ):
                named = name if len(few) == 1 else _PLURALS[name]
                ids = [self._base.ids[self._pairing.base[index]] for index in few[:3].tolist()]
                yield (
                    f"{len(many)} small {_PLURALS[other]}, {len(few)} large {named}: look at the {named} "
                    f"({', '.join(ids)}{', …' if len(few) > 3 else ''}); a few large changes among many small ones make the "
                    "verdict less certain than its p-value says"
                )
        if self._units is not None:
            largest = int(np.unique(self._units, return_counts=True)[1].max())
            if dominant := dominant_unit(largest, len(self._units)):
                yield dominant

    def sides(self) -> tuple[Side, Side]:
        """Return both runs over the paired questions."""
        return _side(self._base, self._pairing.base), _side(self._candidate, self._pairing.candidate)


def _side(columns: Columns, positions: Ints) -> Side:
    info = columns.info
    scores = columns.scores[positions]
    latencies, costs = columns.latencies[positions], columns.costs[positions]
    latencies, costs = latencies[~np.isnan(latencies)], costs[~np.isnan(costs)]
    latency = None
    if len(latencies):
        p50, p95 = percentiles(latencies.tolist(), (50, 95))
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
        judge=info.judge,
    )


def _passed(scores: Floats, info: RunInfo) -> Any:
    return scores >= lowest_score(info.pass_mark)


def _counted(part: _Part) -> bool:
    """Whether a metric is a count or a duration rather than a share between 0 and 1."""
    if part.name in _COUNTS:
        return True
    return bool(
        min(part.first.min(), part.second.min()) < 0.0 or max(part.first.max(), part.second.max()) > 1.0
    )


def _mean(values: Floats) -> float:
    return round_score(float(values.mean()))


# The comparison.


def compare_runs(base: Columns, candidate: Columns, *, margin: float | None = None) -> Comparison:
    """Compare two runs given as columns, which need little memory."""
    if margin is not None and not 0.0 < margin < 1.0:
        raise UsageError(f"margin {margin:g}: must be between 0 and 1 (0.02 = 2 points)")
    pairing = pair(base, candidate)
    if not len(pairing.base):
        raise UsageError(
            f"runs {base.info.id} and {candidate.info.id} have no scored question in common; "
            "compare runs over the same golden set"
        )
    runs = PairedRuns(base, candidate, pairing, margin)
    score, sides = runs.score(), runs.sides()
    difference = score.difference
    assert difference is not None  # scores are bounded
    detectable, flips = _detectable(difference), runs.flips()
    broken = sum(flip.kind == "broken" for flip in flips)
    confirmation = candidate.info.confirmation_against(base.info.id)
    comparison = Comparison(
        base=sides[0],
        candidate=sides[1],
        paired=len(pairing.base),
        units=difference.units,
        unpaired=pairing.unpaired,
        edited=pairing.edited,
        truth_changed=pairing.truth_changed,
        score=score,
        verdict=score.verdict,
        margin=margin,
        detectable=None if detectable is None else round_score(detectable),
        unseen=round_score(unseen_rate(difference.units)),
        reasons=tuple(_reasons(score, detectable, margin, base.info, candidate.info, broken=broken)),
        components=tuple(runs.family(base.components, candidate.components, graded=True)),
        metrics=tuple(runs.family(base.metrics, candidate.metrics, graded=False)),
        categories=tuple(runs.categories()),
        flips=flips,
        losses=runs.losses(),
        pass_rate=runs.pass_rate(),
        latency=runs.lower_is_better(
            "latency_ms", base.latencies, candidate.latencies, tested=_interleaved(base.info, candidate.info)
        ),
        cost=runs.lower_is_better("cost", base.costs, candidate.costs),
        error_rate=runs.lower_is_better("error_rate", base.failures, candidate.failures, counted=False),
        new_errors={kind: n for kind, n in sorted(candidate.errors.items()) if kind not in base.errors},
        notes=(*runs.pattern_notes(), *run_notes((base, candidate)), *_pairing_notes(pairing)),
    )
    return comparison.with_confirmation(confirmation)


def with_sequential_result(
    comparison: Comparison, result: SequentialResult, *, stopped_early: bool
) -> Comparison:
    """Return a comparison whose difference and verdict are those of a test that may stop early."""
    difference = msgspec.structs.replace(
        comparison.difference,
        **{name: getattr(result, name) for name in ("mean", "low", "high", "level", "p_value", "method")},
        units=result.differences,
    )
    score = msgspec.structs.replace(
        comparison.score, difference=difference, p_adjusted=result.p_value, verdict=result.verdict
    )
    reasons = [
        f"verdict by {result.method}, over the {_units_words(difference)} asked before the decision: it may be checked "
        "while the experiment runs; the figures below are not corrected for that"
    ]
    if stopped_early:
        reasons.append(
            "stopped early: the true difference is probably smaller than this estimate; the interval holds"
        )
    elif result.verdict == "no clear difference":
        reasons.append("asking every question without --early-stop or --looks detects smaller differences")
    return msgspec.structs.replace(
        comparison, score=score, verdict=result.verdict, reasons=(*reasons, *_unseen_reasons(difference))
    )


def _interleaved(base: RunInfo, candidate: RunInfo) -> bool:
    """Whether the runs are the two arms of one experiment, so that load and time of day affected both alike."""
    return base.experiment is not None and candidate.id in base.experiment.runs


def _detectable(difference: Difference) -> float | None:
    """Return the smallest true difference found with 80% power, from the interval's width."""
    if difference.units < MIN_UNITS:
        return None
    df = difference.units - 1
    quantile = t_quantile(0.5 + difference.level / 2.0, df)
    error = (difference.high - difference.low) / 2.0 / quantile
    return min((quantile + t_quantile(0.8, df)) * error, 1.0)


def _reasons(
    score: Measure,
    detectable: float | None,
    margin: float | None,
    base: RunInfo,
    candidate: RunInfo,
    *,
    broken: int,
) -> Iterator[str]:
    """Say what the verdict rests on, and which command shows more."""
    difference = score.difference
    assert difference is not None  # scores are bounded
    if score.verdict == "same" and margin is not None:
        yield f"the difference is within the margin of ±{100 * margin:g} points"
    elif score.verdict == "no clear difference":
        if difference.pairs == 1:
            yield "the runs have only one question in common"
        elif difference.units == 1:
            yield "all questions belong to one group, which counts as one"
        elif not difference.changed:
            yield f"all {difference.pairs} questions scored the same in both runs"
        if detectable is None or detectable >= 1.0:
            kind = "questions" if difference.units == difference.pairs else "units"
            yield f"there are too few {kind} to detect a difference"
        else:
            yield (
                f"this comparison can only detect differences of {100 * detectable:.1f} points or more, by the width of its "
                "interval; how many questions a smaller one needs, by how the questions changed: "
                f"answerkey plan {base.id} {candidate.id} --difference {_smaller(detectable):g}"
            )
        # With --confirm, the same command asks again.
        asked = candidate.options.confirm and candidate.options.baseline == base.id
        if broken and not base.is_log and not candidate.is_log and not asked:
            questions = (
                "question passed before and fails" if broken == 1 else "questions passed before and fail"
            )
            yield (
                f"{broken} {questions} now; whether that is chance: answerkey run --baseline {base.id} --confirm 5 "
                "with the target and questions of the candidate"
            )
    yield from _unseen_reasons(difference)


def _smaller(detectable: float) -> float:
    """Return a usual difference below the detectable one, for an example."""
    return next((usual for usual in (0.05, 0.02, 0.01) if usual < detectable), 0.005)


def _unseen_reasons(difference: Difference) -> Iterator[str]:
    if difference.units > 1:
        kind = "questions" if difference.units == difference.pairs else "units"
        yield (
            f"a problem that none of these {_units_words(difference)} shows could still affect up to "
            f"{100 * unseen_rate(difference.units):.2g}% of {kind} like these"
        )


def _units_words(difference: Difference) -> str:
    return f"{difference.units:,} {'questions' if difference.units == difference.pairs else 'units'}"


def run_notes(runs: Sequence[Columns]) -> Iterator[str]:
    """Say what makes the other runs incomparable with the first."""
    first = runs[0].info
    for other in runs[1:]:
        if first.scoring_hash != other.info.scoring_hash:
            settings = [
                f"{name} {getattr(first, name)} and {getattr(other.info, name)}"
                for name in ("match", "weights", "pass_mark")
                if getattr(first, name) != getattr(other.info, name)
            ]
            what = "; ".join(settings) or "scorers or their versions"
            which = "the runs" if len(runs) == 2 else f"runs {first.name} and {other.info.name}"
            yield f"{which} were scored differently ({what}): make them comparable with answerkey rescore"
        before, after = first.judge, other.info.judge
        if before is not None and after is not None:
            yield from _judge_notes(f"runs {first.name} and {other.info.name}", before, after)
    for run in runs:
        info = run.info
        if info.judge is not None and info.judge.failed_canaries:
            did = "failed its" if info.judge.reliable is False else "gave no verdict on some"
            yield f"the judge of run {info.name} ({info.id}) {did} canaries: its scores are unreliable"
        if info.judge is not None and info.judge.calibration is None and "score" in info.judge.touches:
            yield (
                f"the judge of run {info.name} ({info.id}) was never calibrated: its errors may explain the difference; "
                f"compare it with people: answerkey judge calibrate {info.id}"
            )
        if info.status != "complete":
            remedy = f"answerkey {'resume' if info.experiment is None else 'ab --resume'} {info.id}"
            remedy = "score its log again" if info.is_log else remedy
            yield f"run {info.name} ({info.id}) is incomplete: {remedy}"
    for kind in ("component", "metric"):
        everything = {name for run in runs for name in getattr(run, f"{kind}s")}
        for run in runs:
            absent = sorted(everything - set(getattr(run, f"{kind}s")))
            if absent:
                yield f"{kind} {', '.join(absent)} is missing in run {run.info.name} ({run.info.id})"


def _judge_notes(which: str, before: JudgeRecord, after: JudgeRecord) -> Iterator[str]:
    """Say what differs between two runs' judging: the model, how it was asked, or its grades of the same canaries."""
    if before.model != after.model:
        yield f"{which} were judged by different models ({before.model} and {after.model})"
        return
    differing = [
        name
        for name, same in (
            ("rubric", before.rubric.hash == after.rubric.hash),
            ("prompt", before.prompt_hash == after.prompt_hash),
            ("endpoint", before.endpoint == after.endpoint),
        )
        if not same
    ]
    remedy = "judge both the same way with answerkey rescore"
    if differing:
        yield f"{which} were judged with a different {' and '.join(differing)}: {remedy}"
    if (before.probabilities is None) != (after.probabilities is None):
        yield f"only one of {which} has grades weighted by probability: {remedy}"
    later = {(canary.model, canary.kind): canary.score for canary in after.canaries}
    several = len({canary.model for canary in before.canaries}) > 1
    moved = [
        f"{f'{canary.model}: ' if several else ''}{canary.kind!r} {canary.score:.2f} → {score:.2f}"
        for canary in before.canaries
        if canary.score is not None
        and (score := later.get((canary.model, canary.kind))) is not None
        and canary.score != score
    ]
    if moved:
        yield f"the judge of {which} drifted: its grades of the same canaries differ ({', '.join(moved)})"


def _pairing_notes(pairing: Pairing) -> Iterator[str]:
    if pairing.truth_changed:
        changes = [f"{change.id} ({change.before} → {change.after})" for change in pairing.truth_changed[:5]]
        more = f" and {len(pairing.truth_changed) - 5} more" if len(pairing.truth_changed) > 5 else ""
        yield f"the data changed: each run is graded against its own value for {', '.join(changes)}{more}"
    if pairing.edited:
        edits = count(len(pairing.edited), "question was", "questions were")
        yield f"{edits} edited between the runs and paired by id"
    if pairing.unpaired:
        unpaired = count(len(pairing.unpaired), "question is", "questions are")
        yield f"{unpaired} not compared: not in both runs, or not scored"
