"""`audit`: what bots that know nothing score, overall and question by question, and what gives it away.

A golden set whose floor is high does not measure much: the score of a real chatbot lies between the floor and 1.
"""

from collections.abc import Iterator
from math import fsum
from typing import Any

import msgspec

from answerkey.golden.know_nothing_bots import know_nothing_bots
from answerkey.model.options import Scoring
from answerkey.model.question import Question, QuestionSet
from answerkey.model.scorecard import Scorecard, round_score
from answerkey.scorers.plan import make_grader
from answerkey.text.sanitise import one_line

__all__ = ["Audit", "BotScore", "QuestionFloor", "audit_document", "audit_questions"]

_NAMED = 8


class BotScore(msgspec.Struct, frozen=True, kw_only=True):
    """A bot over the whole set."""

    name: str
    score: float
    # Ids of the questions that it passes.
    passed: tuple[str, ...]


class QuestionFloor(msgspec.Struct, frozen=True, kw_only=True):
    """What a bot that knows nothing scores on a question."""

    id: str
    # The best bot's score.
    floor: float
    # The bot that scores it, and why it does.
    bot: str
    because: str
    passed: bool


class Audit(msgspec.Struct, frozen=True, kw_only=True):
    """The result of an audit."""

    # The best mean of a bot that knows nothing.
    floor: float
    bots: tuple[BotScore, ...]
    questions: tuple[QuestionFloor, ...]


def audit_questions(questions: QuestionSet, scoring: Scoring | None = None) -> Audit:
    """Let the bots answer every question, scored as any chatbot is."""
    grader = make_grader(scoring)
    bots = know_nothing_bots(questions)
    scores: dict[str, list[float]] = {name: [] for name in bots}
    passed: dict[str, list[str]] = {name: [] for name in bots}
    floors: list[QuestionFloor] = []
    for question in questions:
        cards = {
            name: grader.grade(question, [bot(question, turn) for turn in question.asks])
            for name, bot in bots.items()
        }
        for name, card in cards.items():
            scores[name].append(card.total or 0.0)
            if card.passed:
                passed[name].append(question.id)
        floors.append(_floor(question, cards))
    bot_scores = tuple(
        BotScore(
            name=name,
            score=round_score(fsum(scores[name]) / len(scores[name])) if scores[name] else 0.0,
            passed=tuple(passed[name]),
        )
        for name in bots
    )
    return Audit(floor=max(bot.score for bot in bot_scores), bots=bot_scores, questions=tuple(floors))


def audit_document(audit: Audit) -> dict[str, Any]:
    """The document of `audit --json`."""
    return {
        "floor": audit.floor,
        "bots": [msgspec.to_builtins(bot) for bot in audit.bots],
        "questions": [
            {"id": question.id, "floor": question.floor, "because": question.because}
            for question in audit.questions
        ],
    }


def _floor(question: Question, cards: dict[str, Scorecard]) -> QuestionFloor:
    best = max(cards, key=lambda bot: cards[bot].total or 0.0)
    card = cards[best]
    return QuestionFloor(
        id=question.id,
        floor=card.total or 0.0,
        bot=best,
        because=f"{best}: {'; '.join(_reasons(question, best, cards)) or 'only that it gives no error'}",
        passed=card.passed,
    )


def _reasons(question: Question, best: str, cards: dict[str, Scorecard]) -> Iterator[str]:
    """What the best bot gets for nothing, then the keywords that the others find without knowing anything."""
    card = cards[best]
    tools, words = card.components.get("tool_usage"), card.components.get("response_quality")
    if tools is not None and tools.value:
        if not any(turn.expected_tools for turn in question.asks):
            yield "no tool is expected"
        elif best == "every-tool":
            yield "calling every tool is enough for tool usage"
    if words is not None and words.value and not any(turn.expected_keywords for turn in question.asks):
        yield "no keyword is expected"
    said: set[str] = set()
    for name in (best, *(bot for bot in cards if bot != best)):
        # One explanation of a keyword is enough: the best bot's, else the first one's.
        found = [word for word in _found(cards[name]) if word not in said]
        if found:
            said.update(found)
            listed = ", ".join(found[:_NAMED]) + (
                f" and {len(found) - _NAMED} more" if len(found) > _NAMED else ""
            )
            yield f"{_WHY[name]} {listed}"


def _found(card: Scorecard) -> list[str]:
    found: dict[str, None] = {}
    for turn in card.turns or (card,):
        quality = turn.components.get("response_quality")
        words = quality.details.get("found", ()) if quality is not None else ()
        found.update(dict.fromkeys(one_line(str(word), 80) for word in words))
    return list(found)


# Why a bot can say a keyword that it does not know.
_WHY = {
    "silent": "an empty reply contains",
    "echo": "the question itself contains",
    "refuser": "a refusal contains",
    "every-tool": "a generic reply contains",
    "parrot": "other questions' keywords contain",
}
