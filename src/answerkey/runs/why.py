"""Where the difference of two runs comes from: plain facts, stages with intervals, groups, slices, cases."""

from collections.abc import Callable, Iterator, Sequence

import msgspec
import numpy as np

from answerkey.comparison import Pairing, compare_runs, joint_units, pair
from answerkey.comparison.columns import Columns, Floats, columns_from_run, find_slices
from answerkey.errors import UsageError
from answerkey.model.comparison import (
    CallFacts,
    Case,
    CaseSide,
    Comparison,
    PlainFact,
    Stage,
    StagePoints,
    Why,
    rounded_parts,
)
from answerkey.model.question import Question
from answerkey.model.reply import result_digest
from answerkey.model.run import LoggedResults, Run, RunInfo, StreamedResults
from answerkey.model.scorecard import Trial, mean_score
from answerkey.runs.causes import Grouping, Shares, causes_of_change, slim_question
from answerkey.runs.stored import given_run
from answerkey.stats.intervals import FaultRates
from answerkey.stats.paired import paired_difference
from answerkey.text.normalise import count

# With more changed questions than this, both runs are read from start to end instead of question by question.
_MOST_LOOKED_UP = 1_000
_LONGEST_REPLY = 2_000
_UNKNOWN = "unknown"
_SAME = "unchanged"


class _Change(msgspec.Struct, frozen=True):
    """A question whose score changed."""

    base_id: str
    candidate_id: str
    # Index of the pair.
    index: int
    # Candidate minus base.
    difference: float


def why(base: Run | str, candidate: Run | str) -> Why:
    """Say where the difference between two runs comes from.

    Args:
        base: The earlier run, or the name of a stored one.
        candidate: The later one, over the same questions.

    Returns:
        The plain facts, the points by stage with intervals, groups of questions with one cause, slices that are worse than
        the rest, and the cause of each question whose score changed.

    Example:
        >>> why(base, candidate).stages[0].stage  # doctest: +SKIP
        'tools'
    """
    base, candidate = given_run(base), given_run(candidate)
    return explain(base, candidate, columns_from_run(base), columns_from_run(candidate))


def explain(base: Run, candidate: Run, first: Columns, second: Columns) -> Why:
    """Like `why`, with the columns of both runs, which a store reads without the replies."""
    comparison = compare_runs(first, second)
    pairing = pair(first, second)
    differences = np.round(second.scores[pairing.candidate] - first.scores[pairing.base], 9)
    changes = _changes(first, second, pairing, differences)
    rescored = base.info.scoring_hash != candidate.info.scoring_hash
    causes: dict[int, Shares] = {}
    cases: list[Case] = []
    overall = comparison.difference.mean
    rates = _fault_rates(first if overall < 0 else second) if overall else None
    for change, before, after in _trials_of_changes(base, candidate, changes):
        fell = change.difference < 0
        worse, better = (after, before) if fell else (before, after)
        mode = (candidate if fell else base).info.options.scoring.match
        causes[change.index] = causes_of_change(
            worse, better, mode, rescored=rescored, rates=rates if fell == (overall < 0) else None
        )
        cases.append(_case(change, causes[change.index], before, after))
    cases.sort(key=lambda case: (case.difference, case.id))
    questions = _questions(candidate, [second.ids[at] for at in pairing.candidate.tolist()])
    grouping = Grouping()
    for index, question in enumerate(questions):
        grouping.see(question)
        if index in causes:
            grouping.add(question, causes[index], float(differences[index]))
    units = joint_units((first, pairing.base), (second, pairing.candidate))
    return Why(
        facts=tuple(_facts(base.info, candidate.info, comparison)),
        difference=comparison.to_dict()["difference"],
        stages=_stage_points(causes, differences, units),
        groups=grouping.groups(),
        slices=find_slices(questions, differences) if differences.any() else (),
        cases=tuple(cases),
        notes=tuple(_notes(base.info, candidate.info, comparison, cases)),
    )


# The changed questions.


def _changes(first: Columns, second: Columns, pairing: Pairing, differences: Floats) -> list[_Change]:
    found = [
        _Change(
            first.ids[pairing.base[index]],
            second.ids[pairing.candidate[index]],
            index,
            float(differences[index]),
        )
        for index in np.flatnonzero(differences).tolist()
    ]
    return sorted(found, key=lambda change: change.difference)


def _trials_of_changes(
    base: Run, candidate: Run, changes: Sequence[_Change]
) -> Iterator[tuple[_Change, list[Trial], list[Trial]]]:
    """The scored trials of each changed question in both runs."""
    before = _lookup(base, [change.base_id for change in changes])
    after = _lookup(candidate, [change.candidate_id for change in changes])
    for change in changes:
        yield change, _scored(before(change.base_id)), _scored(after(change.candidate_id))


def _scored(trials: Sequence[Trial]) -> list[Trial]:
    return [trial for trial in trials if trial.score is not None]


def _lookup(run: Run, ids: Sequence[str]) -> Callable[[str], Sequence[Trial]]:
    """A function from an id to the trials of the question."""
    results, wanted = run.results, set(ids)
    few = len(wanted) <= _MOST_LOOKED_UP
    if isinstance(results, StreamedResults) and not isinstance(results, LoggedResults) and few:
        return results.of_question
    trials = {group[0].question.id: group for group in run.by_question() if group[0].question.id in wanted}
    return trials.__getitem__


def _questions(run: Run, ids: Sequence[str]) -> list[Question]:
    """The questions of a run with these ids, in their order."""
    known: dict[str, Question] = {}
    for trial in run.results:
        known.setdefault(trial.question.id, slim_question(trial.question))
    return [known[identity] for identity in ids]


def _fault_rates(better: Columns) -> FaultRates | None:
    """How often replies of the better version score less than its best reply to the same question; None without repeats."""
    if better.trial_starts is None:
        return None
    return FaultRates(
        (sum(score < max(scores) for score in scores), len(scores)) for _, scores in better.trials()
    )


def _case(change: _Change, shares: Shares, before: Sequence[Trial], after: Sequence[Trial]) -> Case:
    fell = change.difference < 0
    # What changed is best seen in the worst trial of the worse version and the best of the better one.
    base = (max if fell else min)(before, key=lambda trial: trial.score or 0.0)
    candidate = (min if fell else max)(after, key=lambda trial: trial.score or 0.0)
    cause, _ = shares[0]
    words = cause.words
    if len(shares) > 1:
        parts = rounded_parts([100.0 * share for _, share in shares])
        words = "; ".join(
            f"{one.words} ({part:g}% of the difference)" for (one, _), part in zip(shares, parts, strict=True)
        )
    if not fell and cause.stage != "noise":
        words = f"in the base, {words}"
    return Case(
        id=change.candidate_id,
        category=candidate.question.category,
        stage=cause.stage,
        because=words,
        difference=round(change.difference, 9),
        base=_side(base, before),
        candidate=_side(candidate, after),
    )


def _side(typical: Trial, trials: Sequence[Trial]) -> CaseSide:
    reply, error = typical.reply, typical.error
    return CaseSide(
        score=mean_score(trial.score for trial in trials),
        trials=len(trials),
        reply=(reply.text or "")[:_LONGEST_REPLY],
        error="" if error is None else f"{error.kind}: {error.message}"[:_LONGEST_REPLY],
        tool_calls=tuple(
            CallFacts(call.name, call.arguments or call.arguments_text, result_digest(call))
            for one in typical.replies
            for call in one.tool_calls
        ),
    )


def _stage_points(
    causes_of: dict[int, Shares], differences: Floats, units: "np.typing.NDArray[np.int64] | None"
) -> tuple[StagePoints, ...]:
    """What each stage contributes to the mean difference; the stages' points add up to it."""
    parts: dict[Stage, Floats] = {}
    for index, shares in causes_of.items():
        for cause, share in shares:
            part = parts.setdefault(cause.stage, np.zeros(len(differences)))
            part[index] += share * differences[index]
    stages = []
    for stage, part in parts.items():
        difference = paired_difference(part, units=units)
        assert difference is not None  # scores are bounded, and there is a pair
        stages.append(
            StagePoints(
                stage=stage,
                questions=int(np.count_nonzero(part)),
                points=round(100.0 * difference.mean, 6),
                low=round(100.0 * difference.low, 6),
                high=round(100.0 * difference.high, 6),
            )
        )
    return tuple(sorted(stages, key=lambda one: (one.points, one.stage)))


# Plain facts.


def _facts(base: RunInfo, candidate: RunInfo, comparison: Comparison) -> Iterator[PlainFact]:
    """What the runs themselves report, before anything is inferred."""
    yield _fact(
        "golden set", *(f"{info.question_set} ({info.question_set_hash[:8]})" for info in (base, candidate))
    )
    edited = len(comparison.edited)
    yield _fact("key", _SAME, f"{count(edited, 'question')} edited" if edited else _SAME)
    changed = len(comparison.truth_changed)
    yield _fact("truth", _SAME, f"{count(changed, 'computed value')} changed" if changed else _SAME)
    yield _fact("scoring", *(f"{info.match} ({info.scoring_hash[:8]})" for info in (base, candidate)))
    yield _fact("target", base.target, candidate.target)
    versions = [info.target_version for info in (base, candidate)]
    yield _fact(
        "version", *(msgspec.structs.replace(one, model=None, prompt_hash=None).words for one in versions)
    )
    yield _fact("model", *(one.model or "" for one in versions))
    yield _fact("prompt", *(one.prompt_hash or "" for one in versions))
    yield _fact("tool schemas", *(one.tools_hash or "" for one in versions))
    latencies = [side.latency_ms or {} for side in (comparison.base, comparison.candidate)]
    if all(latencies):
        yield _fact("latency p50", *(f"{one['p50']:.0f} ms" for one in latencies))
    judges = [info.judge for info in (base, candidate)]
    if any(judges):
        yield _fact("judge", *("none" if one is None else one.model for one in judges))


def _fact(name: str, base: str, candidate: str) -> PlainFact:
    return PlainFact(name, base or _UNKNOWN, candidate or _UNKNOWN)


def _notes(base: RunInfo, candidate: RunInfo, comparison: Comparison, cases: Sequence[Case]) -> Iterator[str]:
    yield from comparison.notes
    if not cases or max(base.repeat, candidate.repeat) > 1:
        return
    found, once = comparison.confirmation, "chance cannot be ruled out as the cause: ask with --repeat 5"
    if found is None:
        yield f"each question was asked once, so {once}"
        return
    asked, confirmed = len(found.questions), sum(again.confirmed for again in found.questions)
    yield (
        f"--confirm asked {asked} changed question{'s' if asked != 1 else ''} {found.times} or more times again: "
        f"{confirmed} confirmed broken or worse"
    )
    if confirmed < len(cases):
        yield f"for the changes that are not confirmed, {once}"


def check_different(base: RunInfo, candidate: RunInfo) -> None:
    """Refuse to explain a run by itself."""
    if base.id == candidate.id:
        raise UsageError("these references name the same run; name different runs")
