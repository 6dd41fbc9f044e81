"""Grader: all scorers of a scoring, applied to a question's replies, give its Scorecard."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from hashlib import blake2b
from itertools import islice
from math import fsum
from typing import TYPE_CHECKING, Any

import msgspec

from answerkey.errors import ConfigError
from answerkey.model.options import Scoring
from answerkey.model.question import Question
from answerkey.model.reply import Failure, Reply
from answerkey.model.scorecard import Score, Scorecard, grade, round_score, total
from answerkey.model.trial import Trial
from answerkey.protocols import ConversationScorer, Scorer
from answerkey.scorers.error_handling import ErrorHandling
from answerkey.scorers.response_quality import ResponseQuality
from answerkey.scorers.tool_usage import ToolUsage

if TYPE_CHECKING:
    from answerkey.judge.judge import Judge

__all__ = ["Grader"]

# How many replies are looked at before the first of them is graded.
_AHEAD = 32


class Grader:
    """Applies scorers to replies. Scorers named in the weights are components, all others are metrics."""

    def __init__(
        self,
        scoring: Scoring | None = None,
        *,
        metrics: Sequence[Scorer] = (),
        judge: "Judge | None" = None,
    ) -> None:
        self.scoring = scoring or Scoring()
        self._judge = judge
        self._quality_shares = self.scoring.quality_shares
        self._blends = "judge" in self._quality_shares
        self._quality = ResponseQuality(self.scoring.match, embeddings=self.scoring.embeddings)
        self._scorers: tuple[Scorer, ...] = (
            ToolUsage(self.scoring.tool_mode),
            self._quality,
            ErrorHandling(),
            *metrics,
        )
        known = {scorer.name for scorer in self._scorers} | set(judge.score_names if judge else ())
        unknown = sorted(set(self.scoring.weights) - known)
        if unknown:
            raise ConfigError(
                f"[scoring.weights] {unknown[0]}: no such component; there are {', '.join(sorted(known))}"
            )

    @cached_property
    def hash(self) -> str:
        """Changes whenever the same replies could get other scores."""
        versions = [scorer.version for scorer in self._scorers]
        key = [msgspec.to_builtins(self.scoring), versions, self._judge.version if self._judge else None]
        return blake2b(msgspec.json.encode(key, order="sorted"), digest_size=8).hexdigest()

    def ahead(self, trials: Iterable[Trial]) -> Iterator[Trial]:
        """The same trials; where a scorer is faster on many replies at once, it sees some of them before they are graded."""
        if not self._quality.prepares:
            yield from trials
            return
        waiting = iter(trials)
        while window := list(islice(waiting, _AHEAD)):
            self._quality.prepare(
                (ask, reply)
                for trial in window
                for ask, reply in zip(trial.question.asks, trial.replies, strict=False)
            )
            yield from window

    def grade(
        self, question: Question, replies: Sequence[Reply], judged: Sequence[Sequence[Score]] = ()
    ) -> Scorecard:
        """Score the replies to a question's turns; a turn that was never reached scores as a null reply.

        `judged` are the judge's scores for each turn, where there is a judge: asking it takes time, so that happens before.
        """
        asks = question.asks
        cards = [
            self.grade_turn(
                ask,
                replies[index] if index < len(replies) else Reply(),
                judged[index] if index < len(judged) else (),
                tuple(zip(asks[:index], replies, strict=False)) if index else (),
            )
            for index, ask in enumerate(asks)
        ]
        return cards[0] if not question.turns else self._mean_of_turns(cards)

    def grade_turn(
        self,
        question: Question,
        reply: Reply,
        judged: Sequence[Score] = (),
        earlier: Sequence[tuple[Question, Reply]] = (),
    ) -> Scorecard:
        """Score one reply to one turn; `earlier` are the turns before it, with their replies."""
        weights = self.scoring.weights
        components: dict[str, Score] = {}
        metrics: dict[str, float | None] = {}
        findings: dict[str, Any] = {}
        error: Failure | None = None
        given: list[Score] = []
        for scorer in self._scorers:
            given += _scores(scorer, question, reply, earlier)
        given += judged
        for score in given:
            name = score.name
            if name == ErrorHandling.name:
                if score.details:
                    error = Failure(score.details["kind"], score.details["message"])
            elif self._blends and name == ResponseQuality.name:
                score = _blended(score, judged, self._quality_shares)  # the same score, blended
            weight = weights.get(name)
            if weight is not None:
                components[name] = Score(name, score.value, score.reason, weight, score.details)
            else:
                metrics[name] = score.value
                if score.details:
                    findings[name] = score.details
        points = total({name: score.value for name, score in components.items()}, weights)
        return Scorecard(
            components=components,
            total=points,
            grade=None if points is None else grade(points),
            passed=points is not None and points >= self.scoring.pass_mark,
            metrics=metrics,
            findings=findings,
            error=error,
        )

    def _mean_of_turns(self, cards: Sequence[Scorecard]) -> Scorecard:
        components = {
            name: _mean_component(name, [card.components.get(name) for card in cards])
            for name in dict.fromkeys(name for card in cards for name in card.components)
        }
        names = dict.fromkeys(name for card in cards for name in card.metrics)
        points = _mean([card.total for card in cards])
        points = None if points is None else round_score(points)
        return Scorecard(
            components=components,
            total=points,
            grade=None if points is None else grade(points),
            passed=points is not None and points >= self.scoring.pass_mark,
            metrics={name: _mean([card.metrics.get(name) for card in cards]) for name in names},
            error=next((card.error for card in cards if card.error is not None), None),
            turns=tuple(cards),
        )


def _blended(keywords: Score, judged: Sequence[Score], shares: Mapping[str, float]) -> Score:
    """Response quality as far as it is the judge's; without a judgement it is unscored, never a part of itself."""
    judge = next((score for score in judged if score.name == "judge"), None)
    details = {
        **keywords.details,
        "keywords": keywords.value,
        "judge": None if judge is None else judge.value,
    }
    if judge is None or judge.value is None:
        reason = "no judge was asked" if judge is None else judge.reason
        return Score(keywords.name, None, f"not judged: {reason}", None, details)
    share = shares.get("keywords", 0.0)
    if not share:
        return Score(keywords.name, judge.value, f"judge: {judge.reason}", None, details)
    if keywords.value is None:
        return Score(keywords.name, None, keywords.reason, None, details)
    value = round_score(share * keywords.value + shares["judge"] * judge.value)
    return Score(keywords.name, value, f"judge: {judge.reason}; {keywords.reason}", None, details)


def _scores(
    scorer: Scorer, question: Question, reply: Reply, earlier: Sequence[tuple[Question, Reply]]
) -> Sequence[Score]:
    try:
        if earlier and isinstance(scorer, ConversationScorer):
            scores = scorer.score_turn(question, reply, earlier)
        else:
            scores = scorer.score(question, reply)
    except Exception as error:  # noqa: BLE001  # a scorer's failure is a score without a value, never the end of a run
        return (Score(scorer.name, None, f"could not be scored: {type(error).__name__}: {error}"),)
    return (scores,) if type(scores) is Score else scores  # type: ignore[return-value]  # then it is a sequence


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return fsum(known) / len(known) if known else None


def _mean_component(name: str, turns: Sequence[Score | None]) -> Score:
    """A component over a conversation's turns; a turn that has none of it does not count."""
    scored = [(number, turn) for number, turn in enumerate(turns, start=1) if turn is not None]
    lost = "; ".join(f"turn {number}: {turn.reason}" for number, turn in scored if turn.value != 1.0)
    first = scored[0][1]
    return Score(
        name,
        _mean([turn.value for _, turn in scored]),
        lost or first.reason,
        first.weight,
        _joined([turn.details for _, turn in scored]),
    )


def _joined(details: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The turns' lists of names, one after the other; spans stay with their turn."""
    joined: dict[str, Any] = {}
    for part in details:
        for name, value in part.items():
            if isinstance(value, list) and all(isinstance(item, str) for item in value):
                joined.setdefault(name, []).extend(value)
    return joined
