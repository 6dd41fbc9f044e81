"""The comparison of two runs: pairing, differences of everything, verdict and reasons."""

import math
from collections.abc import Iterator

from answerkey.comparison.columns import Columns, columns_from_run
from answerkey.comparison.paired_measures import PairedRuns
from answerkey.comparison.run_pairing import Pairing, pair
from answerkey.errors import UsageError
from answerkey.model.comparison import Comparison, Measure
from answerkey.model.run import Run
from answerkey.model.scorecard import round_score
from answerkey.stats.paired import Difference
from answerkey.stats.power import detectable_difference, questions_needed

__all__ = ["compare", "compare_runs"]

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
    runs = PairedRuns(base, candidate, pairing, level)
    score = runs.score()
    sides = runs.sides()
    difference = score.difference
    assert difference is not None  # scores are bounded
    detectable = detectable_difference(difference.error, difference.clusters - 1, level=level)
    if detectable is not None:
        detectable = min(detectable, 1.0)
    target = max(abs(difference.mean), _WORTH_KNOWING)
    needed = _more_questions(difference, target, level)
    new_errors = {kind: n for kind, n in sorted(candidate.errors.items()) if kind not in base.errors}
    return Comparison(
        base=sides[0],
        candidate=sides[1],
        paired=len(pairing.base),
        unpaired=pairing.unpaired,
        edited=pairing.edited,
        score=score,
        verdict=score.verdict,
        detectable=None if detectable is None else round_score(detectable),
        questions_needed=needed,
        needed_for=round_score(target),
        reasons=tuple(_reasons(score, detectable, needed, target)),
        components=tuple(runs.family(base.components, candidate.components, graded=True)),
        metrics=tuple(runs.family(base.metrics, candidate.metrics, graded=False)),
        categories=tuple(runs.categories()),
        flips=runs.flips(),
        pass_rate=runs.pass_rate(),
        latency=runs.lower_is_better("latency_ms", base.latencies, candidate.latencies),
        cost=runs.lower_is_better("cost", base.costs, candidate.costs),
        new_errors=new_errors,
        notes=tuple(_notes(base, candidate, pairing)),
    )


def _more_questions(difference: Difference, target: float, level: float) -> int | None:
    """Questions beyond those asked that would show a difference of the target's size four times in five.

    None if nothing changed: how much changes of these versions spread is then not known.
    """
    if difference.clusters < 2 or not difference.changed:
        return None
    # What a single question (or cluster) contributes to the error.
    deviation = difference.seen_error * math.sqrt(difference.pairs)
    needed = questions_needed(deviation, target, level=level)
    return None if needed is None else max(0, needed - difference.pairs)


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
    if detectable is not None and detectable >= 1.0:
        yield "these are too few questions to detect any difference"
    elif detectable is not None:
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
            remedy = "resume" if info.experiment is None else "ab --resume"
            yield f"run {info.name} ({info.id}) is not complete: answerkey {remedy} {info.id}"
    if pairing.edited:
        yield f"{len(pairing.edited)} questions were edited between the runs and are paired by id"
    if pairing.unpaired:
        yield f"{len(pairing.unpaired)} questions take no part: they are not in both runs or were not scored"
    for kind in ("component", "metric"):
        for one, other in ((base, candidate), (candidate, base)):
            absent = sorted(set(getattr(one, f"{kind}s")) - set(getattr(other, f"{kind}s")))
            if absent:
                yield f"{kind} {', '.join(absent)} is missing in run {other.info.name} ({other.info.id})"
