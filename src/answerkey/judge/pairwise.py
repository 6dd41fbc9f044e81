"""Pairwise judging: which of two replies is better, asked in both orders; a judge that changes its mind means a tie."""

import asyncio
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal, NamedTuple

import msgspec

from answerkey.judge.calibration import PairBias, Place, Side, bias_of, bias_warnings
from answerkey.judge.panel import Inquiry, PairCanary, Panel, outcomes, reliability
from answerkey.judge.prompt import (
    PAIR_SCHEMA,
    Item,
    PairRubric,
    UnjudgedError,
    pair_messages,
    pair_of,
    parse_pair,
)
from answerkey.model.judgement import CanaryResult
from answerkey.model.question import Question, group_of
from answerkey.model.reply import Reply
from answerkey.stats.intervals import Interval, mean_interval
from answerkey.stats.paired import Verdict, paired_difference, verdict_of

Outcome = Literal["base", "candidate", "tie"]
_NOTHING = (Reply(),)
# What an outcome is worth to the candidate.
_WORTH = {"candidate": 1.0, "tie": 0.5, "base": 0.0}


class Pair(msgspec.Struct, frozen=True):
    """Two replies to the same question."""

    question: Question
    trial: int
    base: tuple[Reply, ...]
    candidate: tuple[Reply, ...]
    # Whether both have the same score without a judge; None: not known.
    same_score: bool | None = None


class PairVerdict(msgspec.Struct, frozen=True, kw_only=True):
    """Which of two replies is better."""

    id: str
    trial: int
    # None: it could not be judged.
    outcome: Outcome | None
    # Whether judges said the same in both orders; None if nobody was asked.
    consistent: bool | None
    reason: str = ""
    # Judge → what it says.
    by_judge: dict[str, Outcome] = {}
    # Judge → the place that it named in both orders: it went by that alone.
    places: dict[str, Place] = {}
    # Which reply is longer; None: neither, by a tenth.
    longer: Side | None = None
    same_score: bool | None = None
    # What it is counted with: its question's group, or the question.
    unit: str = ""


class Pairwise(msgspec.Struct, frozen=True, kw_only=True):
    """A judge's comparison of two runs: the `judge` section of `compare --json`."""

    model: str
    pairs: int
    wins: int
    losses: int
    ties: int
    unjudged: int
    # The candidate's wins and half its ties, as a share of the judged pairs.
    win_rate: float | None
    interval: Interval | None
    # Are wins and losses as likely? The sign-flip test over units; None if there is neither.
    p_value: float | None
    # Share of asked pairs on which every judge said the same in both orders: below 1, position matters to it.
    self_consistency: float | None
    consistency_interval: Interval | None = None
    verdict: Verdict
    results: tuple[PairVerdict, ...] = ()
    calls: int = 0
    cached: int = 0
    cost: float | None = None
    # What the judge leans to beside quality.
    bias: PairBias | None = None
    # Whether it chose rightly in the pairs whose right answer is known; None: they were not asked, or not all judged.
    reliable: bool | None = None
    canaries: tuple[CanaryResult, ...] = ()
    warnings: tuple[str, ...] = ()


async def judge_pair(panel: Panel, pair: Pair, rubric: PairRubric) -> PairVerdict:
    """Ask every judge in both orders. Equal replies tie, and a reply beats none, without anybody being asked."""
    question, base, candidate = _shown(pair)
    texts = [(reply.text or "").strip() for reply in (base, candidate)]
    unasked = PairVerdict(
        id=pair.question.id,
        trial=pair.trial,
        outcome=None,
        consistent=None,
        longer=_longer(*map(len, texts)),
        same_score=pair.same_score,
        unit=group_of(pair.question) or pair.question.id,
    )
    if texts[0] == texts[1]:
        return msgspec.structs.replace(unasked, outcome="tie", reason="the replies are the same")
    if not all(texts):
        better: Outcome = "candidate" if texts[1] else "base"
        return msgspec.structs.replace(unasked, outcome=better, reason="the other reply is empty")
    limit = panel.settings.max_chars
    forward = pair_of(question, base, candidate, max_chars=limit)
    backward = pair_of(question, candidate, base, max_chars=limit)
    models = panel.settings.models
    judges = await outcomes(_both_orders(panel, rubric, model, forward, backward) for model in models)
    said = {
        model: found
        for model, found in zip(models, judges, strict=True)
        if not isinstance(found, UnjudgedError)
    }
    if 2 * len(said) <= len(judges):
        reason = next(str(failure) for failure in judges if isinstance(failure, UnjudgedError))
        return msgspec.structs.replace(unasked, reason=reason)
    by_judge = {model: found.outcome for model, found in said.items()}
    return msgspec.structs.replace(
        unasked,
        outcome=_majority(list(by_judge.values())),
        consistent=all(found.steady for found in said.values()),
        reason=next(found.reason for found in said.values()),
        by_judge=by_judge,
        places={model: found.place for model, found in said.items() if found.place is not None},
    )


class _Said(NamedTuple):
    """What one judge says of a pair."""

    outcome: Outcome
    # Whether every answer in both orders was the same.
    steady: bool
    reason: str
    # The place that it named in both orders.
    place: Place | None


async def _both_orders(
    panel: Panel, rubric: PairRubric, model: str, forward: Item, backward: Item, salt: str = ""
) -> _Said:
    inquiry = Inquiry(rubric.hash, PAIR_SCHEMA, lambda item: pair_messages(rubric, item), parse_pair)
    samples = range(panel.settings.samples)
    answers = await asyncio.gather(
        *(
            panel.ask(model, inquiry, item, sample=n, salt=salt)
            for item in (forward, backward)
            for n in samples
        )
    )
    shown: tuple[dict[str, Outcome], ...] = (
        {"1": "base", "2": "candidate", "tie": "tie"},
        {"1": "candidate", "2": "base", "tie": "tie"},
    )
    named = [shown[place >= len(samples)][better] for place, (better, _) in enumerate(answers)]
    first, second = _majority(named[: len(samples)]), _majority(named[len(samples) :])
    place: Place | None = None
    if {first, second} == {"base", "candidate"}:
        place = "first" if first == "base" else "second"
    outcome = first if first == second else "tie"
    return _Said(outcome, len(set(named)) == 1, answers[0][1], place)


async def ask_pair_canaries(
    panel: Panel, rubric: PairRubric, pairs: Sequence[PairCanary], salt: str
) -> list[CanaryResult]:
    """Put pairs whose better reply is known to every judge."""
    asked = [(model, pair) for model in panel.settings.models for pair in pairs]
    found = await outcomes(_ask_canary(panel, rubric, model, pair, salt) for model, pair in asked)
    return [
        CanaryResult(
            kind=pair.kind,
            model=model,
            score=None if isinstance(said, UnjudgedError) else _WORTH[said.outcome],
            passed=None if isinstance(said, UnjudgedError) else said.outcome == "candidate",
            reason=str(said) if isinstance(said, UnjudgedError) else said.reason,
            unjudged=said.kind if isinstance(said, UnjudgedError) else None,
        )
        for (model, pair), said in zip(asked, found, strict=True)
    ]


async def _ask_canary(panel: Panel, rubric: PairRubric, model: str, pair: PairCanary, salt: str) -> _Said:
    question = Question(id="canary", question=pair.question, reference_answer=pair.reference_answer)
    worse, better = Reply(text=pair.worse), Reply(text=pair.better)
    orders = pair_of(question, worse, better), pair_of(question, better, worse)
    return await _both_orders(panel, rubric, model, *orders, salt=salt)


def _longer(base: int, candidate: int) -> Side | None:
    if max(base, candidate) <= 1.1 * min(base, candidate):
        return None
    return "base" if base > candidate else "candidate"


def _majority(outcomes: Sequence[Outcome]) -> Outcome:
    counts = Counter(outcomes)
    outcome, most = counts.most_common(1)[0]
    return outcome if 2 * most > len(outcomes) else "tie"


def _shown(pair: Pair) -> tuple[Question, Reply, Reply]:
    """A conversation is compared as a whole: all its turns as one text."""
    question = pair.question
    if not question.turns:
        return question, (pair.base or _NOTHING)[0], (pair.candidate or _NOTHING)[0]
    whole = msgspec.structs.replace(
        question, question="\n".join(f"Turn {n}: {turn.question}" for n, turn in enumerate(question.turns, 1))
    )
    return whole, _transcript(pair.base), _transcript(pair.candidate)


def _transcript(replies: Iterable[Reply]) -> Reply:
    return Reply(text="\n".join(f"Turn {n}: {reply.text or ''}" for n, reply in enumerate(replies, 1)))


def sum_up_pairs(
    verdicts: Sequence[PairVerdict],
    *,
    model: str,
    calls: int = 0,
    cached: int = 0,
    cost: float | None = None,
    canaries: Sequence[CanaryResult] = (),
    targets: Mapping[Side, str] | None = None,
) -> Pairwise:
    """Add up verdicts; better or worse only where the sign-flip test over units says so, of a judge that can be trusted."""
    counts = Counter(verdict.outcome for verdict in verdicts)
    wins, losses, ties, unjudged = (counts[kind] for kind in ("candidate", "base", "tie", None))
    # A question's trials are averaged first: they are not independent of each other.
    points: dict[str, list[float]] = {}
    for verdict in verdicts:
        if verdict.outcome is not None:
            points.setdefault(verdict.id, []).append(_WORTH[verdict.outcome])
    means = [sum(worths) / len(worths) for worths in points.values()]
    unit_of = {verdict.id: verdict.unit or verdict.id for verdict in verdicts}
    units = [unit_of[identity] for identity in points]
    difference = paired_difference([2 * mean - 1 for mean in means], units=units)
    p_value = None if difference is None else difference.p_value
    rate = sum(means) / len(means) if means else None
    reliable, wrong = reliability(canaries)
    found = "no clear difference" if reliable is False else verdict_of(difference)
    bias = bias_of(verdicts, targets or {})
    asked = [verdict for verdict in verdicts if verdict.consistent is not None]
    kept = [float(verdict.consistent is True) for verdict in asked]
    steady = sum(kept) / len(kept) if kept else None
    warnings = [*_doubts(verdicts, steady), *bias_warnings(bias)]
    if wrong:
        failed = "the judge failed pairs whose better reply is known, so it decides nothing"
        warnings.append(
            f"{failed if reliable is False else 'whether the judge is reliable is not known'}: {wrong[0]}"
        )
    return Pairwise(
        model=model,
        pairs=len(verdicts),
        wins=wins,
        losses=losses,
        ties=ties,
        unjudged=unjudged,
        win_rate=rate,
        interval=mean_interval(means, units),
        p_value=p_value,
        self_consistency=steady,
        consistency_interval=mean_interval(kept, [unit_of[verdict.id] for verdict in asked]),
        verdict=found,
        results=tuple(verdicts),
        calls=calls,
        cached=cached,
        cost=cost,
        bias=bias,
        reliable=reliable,
        canaries=tuple(canaries),
        warnings=tuple(warnings),
    )


def _doubts(verdicts: Sequence[PairVerdict], steady: float | None) -> Iterator[str]:
    """What speaks against the verdicts themselves."""
    unjudged = [verdict for verdict in verdicts if verdict.outcome is None]
    if unjudged:
        yield f"{len(unjudged)} of {len(verdicts)} pairs were not judged, for example: {unjudged[0].reason}"
    if steady is not None and steady < 0.8:
        yield (
            f"the judge kept its verdict on only {steady:.0%} of the pairs when their order was swapped; the others "
            "are ties"
        )
