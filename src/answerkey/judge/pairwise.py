"""Pairwise judging: which of two replies is better, asked in both orders; a judge that changes its mind means a tie."""

import asyncio
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Literal

import msgspec

from answerkey.judge.item import Item, pair_of
from answerkey.judge.panel import Inquiry, Panel, outcomes
from answerkey.judge.prompt import pair_messages
from answerkey.judge.rubric import load_pair_rubric
from answerkey.judge.verdict import PAIR_SCHEMA, UnjudgedError, parse_pair
from answerkey.model.question import Question
from answerkey.model.reply import Reply
from answerkey.stats.intervals import Interval, mean_interval
from answerkey.stats.rates import mcnemar_p_value

__all__ = ["Pair", "PairVerdict", "Pairwise", "judge_pair", "sum_up_pairs"]

Outcome = Literal["base", "candidate", "tie"]
_NOTHING = (Reply(),)


class Pair(msgspec.Struct, frozen=True):
    """Two replies to the same question."""

    question: Question
    trial: int
    base: tuple[Reply, ...]
    candidate: tuple[Reply, ...]


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
    # Are wins and losses as likely? Sign test without ties; None if there is neither.
    p_value: float | None
    # Share of asked pairs on which every judge said the same in both orders: below 1, position matters to it.
    self_consistency: float | None
    verdict: Literal["better", "worse", "no clear difference"]
    results: tuple[PairVerdict, ...] = ()
    calls: int = 0
    cached: int = 0
    cost: float | None = None
    warnings: tuple[str, ...] = ()


async def judge_pair(panel: Panel, pair: Pair) -> PairVerdict:
    """Ask every judge in both orders. Equal replies tie, and a reply beats none, without anybody being asked."""
    unasked = PairVerdict(id=pair.question.id, trial=pair.trial, outcome=None, consistent=None)
    question, base, candidate = _shown(pair)
    texts = [(reply.text or "").strip() for reply in (base, candidate)]
    if texts[0] == texts[1]:
        return msgspec.structs.replace(unasked, outcome="tie", reason="the replies are the same")
    if not all(texts):
        better: Outcome = "candidate" if texts[1] else "base"
        return msgspec.structs.replace(unasked, outcome=better, reason="the other reply is empty")
    limit = panel.settings.max_chars
    forward = pair_of(question, base, candidate, max_chars=limit)
    backward = pair_of(question, candidate, base, max_chars=limit)
    models = panel.settings.models
    judges = await outcomes(_both_orders(panel, model, forward, backward) for model in models)
    said = {
        model: found
        for model, found in zip(models, judges, strict=True)
        if not isinstance(found, UnjudgedError)
    }
    if 2 * len(said) <= len(judges):
        reason = next(str(failure) for failure in judges if isinstance(failure, UnjudgedError))
        return msgspec.structs.replace(unasked, reason=reason)
    by_judge = {model: outcome for model, (outcome, _, _) in said.items()}
    return msgspec.structs.replace(
        unasked,
        outcome=_majority(list(by_judge.values())),
        consistent=all(steady for _, steady, _ in said.values()),
        reason=next(reason for _, _, reason in said.values()),
        by_judge=by_judge,
    )


async def _both_orders(panel: Panel, model: str, forward: Item, backward: Item) -> tuple[Outcome, bool, str]:
    """What one judge says, whether it said the same in both orders, and why."""
    rubric = load_pair_rubric()
    inquiry = Inquiry(rubric.hash, PAIR_SCHEMA, lambda item: pair_messages(rubric, item), parse_pair)
    samples = range(panel.settings.samples)
    answers = await asyncio.gather(
        *(panel.ask(model, inquiry, item, sample=n) for item in (forward, backward) for n in samples)
    )
    shown: tuple[dict[str, Outcome], ...] = (
        {"1": "base", "2": "candidate", "tie": "tie"},
        {"1": "candidate", "2": "base", "tie": "tie"},
    )
    named = [shown[place >= len(samples)][better] for place, (better, _) in enumerate(answers)]
    first, second = _majority(named[: len(samples)]), _majority(named[len(samples) :])
    return first if first == second else "tie", len(set(named)) == 1, answers[0][1]


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
) -> Pairwise:
    """Add up verdicts; better or worse only where a sign test says so."""
    counts = Counter(verdict.outcome for verdict in verdicts)
    wins, losses, ties, unjudged = (counts[kind] for kind in ("candidate", "base", "tie", None))
    # A question's trials are averaged first: they are not independent of each other.
    points: dict[str, list[float]] = {}
    for verdict in verdicts:
        if verdict.outcome is not None:
            worth = {"candidate": 1.0, "tie": 0.5, "base": 0.0}[verdict.outcome]
            points.setdefault(verdict.id, []).append(worth)
    means = [sum(worths) / len(worths) for worths in points.values()]
    p_value = mcnemar_p_value(sum(mean > 0.5 for mean in means), sum(mean < 0.5 for mean in means))
    rate = sum(means) / len(means) if means else None
    clear = p_value is not None and p_value <= 0.05 and rate is not None and rate != 0.5
    asked = [verdict.consistent for verdict in verdicts if verdict.consistent is not None]
    steady = sum(asked) / len(asked) if asked else None
    warnings = []
    if unjudged:
        reason = next(verdict.reason for verdict in verdicts if verdict.outcome is None)
        warnings.append(f"{unjudged} of {len(verdicts)} pairs were not judged, for example: {reason}")
    if steady is not None and steady < 0.8:
        warnings.append(
            f"the judge kept its verdict on only {steady:.0%} of the pairs when their order was swapped; the others "
            "are ties"
        )
    return Pairwise(
        model=model,
        pairs=len(verdicts),
        wins=wins,
        losses=losses,
        ties=ties,
        unjudged=unjudged,
        win_rate=rate,
        interval=mean_interval(means),
        p_value=p_value,
        self_consistency=steady,
        verdict=("better" if (rate or 0) > 0.5 else "worse") if clear else "no clear difference",
        results=tuple(verdicts),
        calls=calls,
        cached=cached,
        cost=cost,
        warnings=tuple(warnings),
    )
