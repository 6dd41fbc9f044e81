"""The comparison of two runs: pairing, differences of everything, verdict and reasons."""

from collections.abc import Iterator, Sequence

from answerkey.comparison.columns import Columns, columns_from_run
from answerkey.comparison.paired_measures import PairedRuns
from answerkey.comparison.run_pairing import Pairing, pair
from answerkey.errors import UsageError
from answerkey.model.comparison import Comparison, Measure
from answerkey.model.run import Run, RunInfo
from answerkey.model.scorecard import round_score
from answerkey.stats.distributions import t_quantile
from answerkey.stats.paired import LEAST_UNITS, Difference, unseen_rate


def compare(base: Run, candidate: Run, *, margin: float | None = None) -> Comparison:
    """Compare two runs at hand; `.verdict` says whether the candidate is better.

    With a `margin`, an interval that lies inside ± the margin is "same".
    """
    return compare_runs(columns_from_run(base), columns_from_run(candidate), margin=margin)


def compare_runs(
    base: Columns, candidate: Columns, *, level: float = 0.95, margin: float | None = None
) -> Comparison:
    """Compare two runs as columns, so that large ones stay small in memory."""
    if margin is not None and not 0.0 < margin < 1.0:
        raise UsageError(f"margin {margin:g}: write points as a share, between 0 and 1; 0.02 is two points")
    pairing = pair(base, candidate)
    if not len(pairing.base):
        raise UsageError(
            f"runs {base.info.id} and {candidate.info.id} have no scored question in common; "
            "compare runs over the same golden set"
        )
    runs = PairedRuns(base, candidate, pairing, level, margin)
    score, sides = runs.score(), runs.sides()
    difference = score.difference
    assert difference is not None  # scores are bounded
    detectable = _detectable(difference)
    return Comparison(
        base=sides[0],
        candidate=sides[1],
        paired=len(pairing.base),
        units=difference.units,
        unpaired=pairing.unpaired,
        edited=pairing.edited,
        score=score,
        verdict=score.verdict,
        margin=margin,
        detectable=None if detectable is None else round_score(detectable),
        unseen=round_score(unseen_rate(difference.units, level)),
        reasons=tuple(_reasons(score, detectable, margin)),
        components=tuple(runs.family(base.components, candidate.components, graded=True)),
        metrics=tuple(runs.family(base.metrics, candidate.metrics, graded=False)),
        categories=tuple(runs.categories()),
        flips=runs.flips(),
        pass_rate=runs.pass_rate(),
        latency=runs.lower_is_better("latency_ms", base.latencies, candidate.latencies),
        cost=runs.lower_is_better("cost", base.costs, candidate.costs),
        error_rate=runs.lower_is_better("error_rate", base.failures, candidate.failures, counted=False),
        new_errors={kind: n for kind, n in sorted(candidate.errors.items()) if kind not in base.errors},
        notes=(*run_notes((base, candidate)), *_pairing_notes(pairing)),
    )


def _detectable(difference: Difference) -> float | None:
    """The smallest true difference that would have been found four times in five, from the interval's width."""
    if difference.units < LEAST_UNITS:
        return None
    df = difference.units - 1
    quantile = t_quantile(0.5 + difference.level / 2.0, df)
    error = (difference.high - difference.low) / 2.0 / quantile
    return min((quantile + t_quantile(0.8, df)) * error, 1.0)


def _reasons(score: Measure, detectable: float | None, margin: float | None) -> Iterator[str]:
    difference = score.difference
    assert difference is not None  # scores are bounded
    if score.verdict == "same" and margin is not None:
        yield f"any difference lies within ±{100 * margin:g} points, the margin that was declared"
    elif score.verdict == "no clear difference":
        if difference.pairs == 1:
            yield "one question in common says nothing about the others"
        elif difference.units == 1:
            yield "all questions belong to one group, which counts as one unit"
        elif not difference.changed:
            yield f"all {difference.pairs} questions scored the same in both runs"
        if detectable is None or detectable >= 1.0:
            kind = "questions" if difference.units == difference.pairs else "units"
            yield f"these are too few {kind} to detect any difference"
        else:
            yield (
                f"this comparison could only have detected ≥ {100 * detectable:.1f} points; "
                f"answerkey plan says how many questions would show less"
            )
    if difference.units > 1:
        yield (
            f"what none of {_units_words(difference)} showed could still concern up to "
            f"{100 * unseen_rate(difference.units, difference.level):.2g}% of them"
        )


def _units_words(difference: Difference) -> str:
    """The units of a comparison in words."""
    return f"{difference.units:,} {'questions' if difference.units == difference.pairs else 'units'}"


def run_notes(runs: Sequence[Columns]) -> Iterator[str]:
    """What keeps runs from being comparable; the others are held against the first."""
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
            yield f"{which} were scored differently ({what}): answerkey rescore makes them comparable"
        before, after = first.judge.get("model"), other.info.judge.get("model")
        if before and after and before != after:
            yield f"runs {first.name} and {other.info.name} were judged by different models ({before} and {after})"
        elif before and after:
            yield from _drift(first, other.info)
    for run in runs:
        info = run.info
        reliable = info.judge.get("reliable", True)
        if reliable is False or (reliable is None and info.judge.get("canaries")):
            did = "failed its" if reliable is False else "gave no verdict on some"
            yield f"the judge of run {info.name} ({info.id}) {did} canaries: what it judged is unreliable"
        if info.status != "complete":
            remedy = f"answerkey {'resume' if info.experiment is None else 'ab --resume'} {info.id}"
            remedy = "score its log again" if info.is_log else remedy
            yield f"run {info.name} ({info.id}) is not complete: {remedy}"
    for kind in ("component", "metric"):
        everything = {name for run in runs for name in getattr(run, f"{kind}s")}
        for run in runs:
            absent = sorted(everything - set(getattr(run, f"{kind}s")))
            if absent:
                yield f"{kind} {', '.join(absent)} is missing in run {run.info.name} ({run.info.id})"


def _drift(first: RunInfo, other: RunInfo) -> Iterator[str]:
    """Whether one judge grades as it did: asked otherwise, or of another mind on the items that every run puts to it."""
    which = f"runs {first.name} and {other.name}"
    kinds = [
        words
        for name, words in (("rubric", "rubric"), ("prompt_hash", "prompt"), ("endpoint", "endpoint"))
        if first.judge.get(name) != other.judge.get(name)
    ]
    if kinds:
        yield f"{which} were judged with another {' and '.join(kinds)}: judge them alike with answerkey rescore"
    if bool(first.judge.get("probabilities")) != bool(other.judge.get("probabilities")):
        yield f"only one of {which} has grades weighed by probability: judge them alike with answerkey rescore"
    scores = [
        {(one["model"], one["kind"]): one["score"] for one in info.judge.get("canaries", ())}
        for info in (first, other)
    ]
    moved = [
        f"{f'{model}: ' if len({judge for judge, _ in scores[0]}) > 1 else ''}{kind!r} {before:.2f} → {after:.2f}"
        for (model, kind), before in scores[0].items()
        if before is not None and (after := scores[1].get((model, kind))) is not None and before != after
    ]
    if moved:
        yield f"the judge of {which} drifted: it grades the same canaries otherwise ({', '.join(moved)})"


def _pairing_notes(pairing: Pairing) -> Iterator[str]:
    if pairing.edited:
        yield f"{len(pairing.edited)} questions were edited between the runs and are paired by id"
    if pairing.unpaired:
        yield f"{len(pairing.unpaired)} questions take no part: they are not in both runs or were not scored"
