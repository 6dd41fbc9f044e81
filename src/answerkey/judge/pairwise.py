"""Pairwise judging: which of two replies is better, asked in both orders; an inconsistent judge means a tie.

The verdicts also show a judge's biases: towards a position, towards long replies, and towards its own model family.
"""

import asyncio
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal, NamedTuple

import msgspec

from answerkey.judge.panel import JudgeTask, PairCanary, Panel, gather_outcomes, reliability
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
from answerkey.stats.intervals import Interval, mcnemar_p_value, mean_interval, wilson_interval
from answerkey.stats.paired import Verdict, paired_difference, verdict_of

Outcome = Literal["base", "candidate", "tie"]
PairSide = Literal["base", "candidate"]
Position = Literal["first", "second"]
_EMPTY = (Reply(),)
# Outcome → points of the candidate.
_POINTS = {"candidate": 1.0, "tie": 0.5, "base": 0.0}
# Model family → pattern of its names.
_FAMILIES = {
    "gpt": r"gpt|\bo[134]\b|o[134]-",
    "claude": "claude",
    "gemini": "gemini|gemma",
    "llama": "llama",
    "mistral": "mistral|mixtral|ministral",
    "qwen": "qwen|qwq",
    "deepseek": "deepseek",
    "grok": "grok",
}


class Pair(msgspec.Struct, frozen=True):
    """Two replies to the same question."""

    question: Question
    trial: int
    base: tuple[Reply, ...]
    candidate: tuple[Reply, ...]
    # Whether both have the same score without a judge; None: unknown.
    same_score: bool | None = None


class PairVerdict(msgspec.Struct, frozen=True, kw_only=True):
    """Which of two replies is better."""

    id: str
    trial: int
    # None: no verdict.
    outcome: Outcome | None
    # Whether every judge gave the same answer in both orders; None: no judge was asked.
    consistent: bool | None
    reason: str = ""
    # Judge → its outcome.
    by_judge: dict[str, Outcome] = {}
    # Judge → the position that it preferred in both orders, whichever reply was there.
    positions: dict[str, Position] = msgspec.field(default_factory=dict, name="places")
    # Which reply is longer, by more than a tenth; None: neither.
    longer: PairSide | None = None
    same_score: bool | None = None
    # The unit of analysis: the question's group, or the question.
    unit: str = ""


class Preference(msgspec.Struct, frozen=True):
    """How often one kind of reply was preferred; 0.5 without a bias."""

    share: float
    n: int
    interval: Interval | None
    # Sign test: is the share 0.5?
    p_value: float | None

    @property
    def clear(self) -> bool:
        """Whether the bias is significant."""
        return self.p_value is not None and self.p_value < 0.05


class SelfPreference(msgspec.Struct, frozen=True):
    """A judge's preference for the chatbot of its own model family."""

    judge: str
    own: PairSide
    # How often it preferred that one, and how often the panel's other judges did, in the same pairs.
    lean: Preference
    others: Preference | None


class PairBias(msgspec.Struct, frozen=True, kw_only=True):
    """The `bias` of a comparison by a judge."""

    # Of the verdicts that depended on the order alone, how many named the first reply.
    position: Preference | None
    # The preferred position, if it is clear.
    prefers: Position | None
    # Of the decided pairs of the same score, in how many the longer reply won.
    length: Preference | None
    # Of the same pairs, if one chatbot is of the judge's own family.
    self_preference: tuple[SelfPreference, ...] = ()


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
    # Sign-flip test over units: are wins and losses equally likely? None: there are neither.
    p_value: float | None
    # Share of asked pairs on which every judge gave the same answer in both orders.
    self_consistency: float | None
    consistency_interval: Interval | None = None
    verdict: Verdict
    results: tuple[PairVerdict, ...] = ()
    calls: int = 0
    cached: int = 0
    cost: float | None = None
    # The judge's biases.
    bias: PairBias | None = None
    # Whether it chose right in all canary pairs; None: they were not asked, or not all judged.
    reliable: bool | None = None
    canaries: tuple[CanaryResult, ...] = ()
    warnings: tuple[str, ...] = ()


async def judge_pair(panel: Panel, pair: Pair, rubric: PairRubric) -> PairVerdict:
    """Ask every judge in both orders. Equal replies tie and an empty reply loses, without a call."""
    question, base, candidate = _as_single_turn(pair)
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
    limit, models = panel.settings.max_chars, panel.settings.models
    forward = pair_of(question, base, candidate, max_chars=limit)
    backward = pair_of(question, candidate, base, max_chars=limit)
    results = await gather_outcomes(
        _ask_both_orders(panel, rubric, model, forward, backward) for model in models
    )
    answers = {
        model: answer
        for model, answer in zip(models, results, strict=True)
        if not isinstance(answer, UnjudgedError)
    }
    if 2 * len(answers) <= len(results):
        reason = next(str(failure) for failure in results if isinstance(failure, UnjudgedError))
        return msgspec.structs.replace(unasked, reason=reason)
    by_judge = {model: answer.outcome for model, answer in answers.items()}
    return msgspec.structs.replace(
        unasked,
        outcome=_majority(list(by_judge.values())),
        consistent=all(answer.consistent for answer in answers.values()),
        reason=next(answer.reason for answer in answers.values()),
        by_judge=by_judge,
        positions={model: answer.position for model, answer in answers.items() if answer.position},
    )


class _PairAnswer(NamedTuple):
    """One judge's answer about a pair."""

    outcome: Outcome
    # Whether all its answers, in both orders, were the same.
    consistent: bool
    reason: str
    # The position that it preferred in both orders.
    position: Position | None


async def _ask_both_orders(
    panel: Panel, rubric: PairRubric, model: str, forward: Item, backward: Item, salt: str = ""
) -> _PairAnswer:
    task = JudgeTask(rubric.hash, PAIR_SCHEMA, lambda item: pair_messages(rubric, item), parse_pair)
    samples = panel.settings.samples
    answers = await asyncio.gather(
        *(
            panel.ask(model, task, item, sample=sample, salt=salt)
            for item in (forward, backward)
            for sample in range(samples)
        )
    )
    meanings: tuple[dict[str, Outcome], ...] = (
        {"1": "base", "2": "candidate", "tie": "tie"},
        {"1": "candidate", "2": "base", "tie": "tie"},
    )
    choices = [meanings[index >= samples][better] for index, (better, _) in enumerate(answers)]
    first, second = _majority(choices[:samples]), _majority(choices[samples:])
    position: Position | None = None
    if {first, second} == {"base", "candidate"}:
        position = "first" if first == "base" else "second"
    outcome = first if first == second else "tie"
    return _PairAnswer(outcome, len(set(choices)) == 1, answers[0][1], position)


async def ask_pair_canaries(
    panel: Panel, rubric: PairRubric, pairs: Sequence[PairCanary], salt: str
) -> list[CanaryResult]:
    """Ask every judge about pairs whose better reply is known."""
    asked = [(model, pair) for model in panel.settings.models for pair in pairs]
    answers = await gather_outcomes(_ask_canary(panel, rubric, model, pair, salt) for model, pair in asked)
    return [
        CanaryResult(
            kind=pair.kind, model=model, score=None, passed=None, reason=str(answer), unjudged=answer.kind
        )
        if isinstance(answer, UnjudgedError)
        else CanaryResult(
            kind=pair.kind,
            model=model,
            score=_POINTS[answer.outcome],
            passed=answer.outcome == "candidate",
            reason=answer.reason,
        )
        for (model, pair), answer in zip(asked, answers, strict=True)
    ]


async def _ask_canary(
    panel: Panel, rubric: PairRubric, model: str, pair: PairCanary, salt: str
) -> _PairAnswer:
    question = Question(id="canary", question=pair.question, reference_answer=pair.reference_answer)
    worse, better = Reply(text=pair.worse), Reply(text=pair.better)
    orders = pair_of(question, worse, better), pair_of(question, better, worse)
    return await _ask_both_orders(panel, rubric, model, *orders, salt=salt)


def _longer(base: int, candidate: int) -> PairSide | None:
    if max(base, candidate) <= 1.1 * min(base, candidate):
        return None
    return "base" if base > candidate else "candidate"


def _majority(outcomes: Sequence[Outcome]) -> Outcome:
    outcome, most = Counter(outcomes).most_common(1)[0]
    return outcome if 2 * most > len(outcomes) else "tie"


def _as_single_turn(pair: Pair) -> tuple[Question, Reply, Reply]:
    """Return question and replies; the turns of a conversation are joined into one text."""
    question = pair.question
    if not question.turns:
        return question, (pair.base or _EMPTY)[0], (pair.candidate or _EMPTY)[0]
    joined = msgspec.structs.replace(
        question, question="\n".join(f"Turn {n}: {turn.question}" for n, turn in enumerate(question.turns, 1))
    )
    return joined, _transcript(pair.base), _transcript(pair.candidate)


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
    targets: Mapping[PairSide, str] | None = None,
) -> Pairwise:
    """Sum up verdicts. The result is better or worse only if the sign-flip test shows it and the judge is reliable."""
    counts = Counter(one.outcome for one in verdicts)
    # The trials of a question are averaged first: they are not independent.
    points: dict[str, list[float]] = {}
    for one in verdicts:
        if one.outcome is not None:
            points.setdefault(one.id, []).append(_POINTS[one.outcome])
    means = [sum(trials) / len(trials) for trials in points.values()]
    unit_of = {one.id: one.unit or one.id for one in verdicts}
    units = [unit_of[identity] for identity in points]
    difference = paired_difference([2 * mean - 1 for mean in means], units=units)
    reliable, wrong = reliability(canaries)
    bias = pair_bias(verdicts, targets or {})
    asked = [one for one in verdicts if one.consistent is not None]
    consistent = [float(one.consistent is True) for one in asked]
    consistency = sum(consistent) / len(consistent) if consistent else None
    warnings = [*_verdict_warnings(verdicts, consistency), *_bias_warnings(bias)]
    if wrong:
        failed = "the judge failed pairs whose better reply is known, so its comparison does not count"
        warnings.append(f"{failed if reliable is False else 'judge reliability is unknown'}: {wrong[0]}")
    return Pairwise(
        model=model,
        pairs=len(verdicts),
        wins=counts["candidate"],
        losses=counts["base"],
        ties=counts["tie"],
        unjudged=counts[None],
        win_rate=sum(means) / len(means) if means else None,
        interval=mean_interval(means, units),
        p_value=None if difference is None else difference.p_value,
        self_consistency=consistency,
        consistency_interval=mean_interval(consistent, [unit_of[one.id] for one in asked]),
        verdict="no clear difference" if reliable is False else verdict_of(difference),
        results=tuple(verdicts),
        calls=calls,
        cached=cached,
        cost=cost,
        bias=bias,
        reliable=reliable,
        canaries=tuple(canaries),
        warnings=tuple(warnings),
    )


def _verdict_warnings(verdicts: Sequence[PairVerdict], consistency: float | None) -> Iterator[str]:
    unjudged = [verdict for verdict in verdicts if verdict.outcome is None]
    if unjudged:
        yield f"{len(unjudged)} of {len(verdicts)} pairs were not judged, for example: {unjudged[0].reason}"
    if consistency is not None and consistency < 0.8:
        yield (
            f"the judge gave the same verdict on only {consistency:.0%} of the pairs when their order was swapped; the "
            "others count as ties"
        )


# Bias.


def pair_bias(verdicts: Sequence[PairVerdict], targets: Mapping[PairSide, str]) -> PairBias:
    """Return the biases that the verdicts show; `targets` names both chatbots, or their models."""
    position = _preference(one == "first" for verdict in verdicts for one in verdict.positions.values())
    prefers: Position | None = None
    if position is not None and position.clear:
        prefers = "first" if position.share > 0.5 else "second"
    # Of replies with different scores, the better one is rightly preferred.
    equal = [verdict for verdict in verdicts if verdict.same_score]
    decided = [verdict for verdict in equal if verdict.longer and verdict.outcome in ("base", "candidate")]
    return PairBias(
        position=position,
        prefers=prefers,
        length=_preference(verdict.outcome == verdict.longer for verdict in decided),
        self_preference=tuple(_self_preferences(equal, targets)),
    )


def _bias_warnings(bias: PairBias) -> Iterator[str]:
    if bias.prefers is not None and bias.position is not None:
        yield (
            f"the judge prefers the {bias.prefers} reply: of {bias.position.n} verdicts that depended on the order "
            f"alone, {bias.position.share:.0%} named the first"
        )
    if bias.length is not None and bias.length.clear:
        which = "longer" if bias.length.share > 0.5 else "shorter"
        share = max(bias.length.share, 1 - bias.length.share)
        yield f"the judge prefers {which} replies: they won {share:.0%} of {bias.length.n} pairs of the same score"
    for own in bias.self_preference:
        others = 0.0 if own.others is None else own.others.share
        if own.lean.clear and own.lean.share > max(0.5, others):
            yield (
                f"{own.judge} prefers the {own.own}, a model of its own family: it won {own.lean.share:.0%} of "
                f"{own.lean.n} pairs of the same score"
            )


def _self_preferences(
    equal: Sequence[PairVerdict], targets: Mapping[PairSide, str]
) -> Iterator[SelfPreference]:
    """Yield the preference of each judge for the one chatbot of its own model family."""
    families = {side: _family(target) for side, target in targets.items()}
    for judge in dict.fromkeys(judge for verdict in equal for judge in verdict.by_judge):
        family = _family(judge)
        sides = [side for side, other in families.items() if family is not None and other == family]
        if len(sides) != 1:
            continue
        own = sides[0]
        decided = [one.by_judge for one in equal if one.by_judge.get(judge) in ("base", "candidate")]
        lean = _preference(outcomes[judge] == own for outcomes in decided)
        others = [
            outcome == own
            for outcomes in decided
            for name, outcome in outcomes.items()
            if name != judge and outcome != "tie"
        ]
        if lean is not None:
            yield SelfPreference(judge, own, lean, _preference(others))


def _family(name: str) -> str | None:
    return next((family for family, pattern in _FAMILIES.items() if re.search(pattern, name.lower())), None)


def _preference(choices: Iterable[bool]) -> Preference | None:
    values = list(choices)
    if not values:
        return None
    n, times = len(values), sum(values)
    return Preference(times / n, n, wilson_interval(times, n), mcnemar_p_value(times, n - times))
