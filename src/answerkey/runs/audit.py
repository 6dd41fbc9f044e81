"""`audit`: scores of trivial baseline bots on a golden set, overall and per question, with the reasons.

The best of them is the floor. A set with a high floor measures little: a real chatbot scores between the floor and 1.
"""

from collections.abc import Iterator
from math import fsum
from typing import Any

import msgspec

from answerkey.config import Settings
from answerkey.golden.baseline_bots import baseline_bots
from answerkey.model.options import Scoring
from answerkey.model.question import Question, QuestionSet
from answerkey.model.reasons import details
from answerkey.model.scorecard import Scorecard, round_score
from answerkey.scorers.plan import make_grader
from answerkey.text.normalise import one_line

# Keywords listed in a reason.
_MOST_KEYWORDS = 8


class BotScore(msgspec.Struct, frozen=True, kw_only=True):
    """The score of a bot on the whole set."""

    name: str
    score: float
    # Ids of the questions that it passes.
    passed: tuple[str, ...]


class QuestionFloor(msgspec.Struct, frozen=True, kw_only=True):
    """The best score of a baseline bot on a question."""

    id: str
    floor: float
    # The bot with that score, and the reasons.
    bot: str
    because: str
    passed: bool


class Audit(msgspec.Struct, frozen=True, kw_only=True):
    """The result of an audit."""

    # The best mean score of a bot.
    floor: float
    bots: tuple[BotScore, ...]
    questions: tuple[QuestionFloor, ...]


def audit_questions(
    questions: QuestionSet, scoring: Scoring | None = None, settings: Settings | None = None
) -> Audit:
    """Have every bot answer every question, scored like any chatbot."""
    grader = make_grader(scoring, settings)
    grader.set_spans(False)
    bots = baseline_bots(questions)
    scores: dict[str, list[float]] = {name: [] for name in bots}
    passed: dict[str, list[str]] = {name: [] for name in bots}
    floors: list[QuestionFloor] = []
    for question in questions:
        marks = {
            name: _mark_of(grader.grade(question, [bot(question, turn) for turn in question.asks]))
            for name, bot in bots.items()
        }
        for name, mark in marks.items():
            scores[name].append(mark.points)
            if mark.passed:
                passed[name].append(question.id)
        floors.append(_floor(question, marks))
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


class _Mark(msgspec.Struct, frozen=True):
    """The scores of a bot's answer to a question."""

    points: float
    passed: bool
    # Component → its value.
    values: dict[str, float | None]
    # The expected keywords in the answer.
    keywords: list[str]


def _mark_of(card: Scorecard) -> _Mark:
    qualities = [turn.components.get("response_quality") for turn in card.turns or (card,)]
    found = (word for one in qualities if one is not None for word in details(one).get("found", ()))
    keywords = list(dict.fromkeys(one_line(word, 80) for word in found))
    values = {name: score.value for name, score in card.components.items()}
    return _Mark(card.total or 0.0, card.passed, values, keywords)


def _floor(question: Question, marks: dict[str, _Mark]) -> QuestionFloor:
    best = max(marks, key=lambda bot: marks[bot].points)
    return QuestionFloor(
        id=question.id,
        floor=marks[best].points,
        bot=best,
        because=f"{best}: {'; '.join(_reasons(question, best, marks)) or 'it only gives no error'}",
        passed=marks[best].passed,
    )


def _reasons(question: Question, best: str, marks: dict[str, _Mark]) -> Iterator[str]:
    """Why the best bot scores, then the keywords that other bots find."""
    values = marks[best].values
    if values.get("tool_usage"):
        if not any(turn.expected_tools for turn in question.asks):
            yield "no tool is expected"
        elif best == "every-tool":
            yield "calling every tool is enough for tool usage"
    if values.get("response_quality") and not any(turn.expected_keywords for turn in question.asks):
        yield "no keyword is expected"
    explained: set[str] = set()
    for name in (best, *(bot for bot in marks if bot != best)):
        # Each keyword is explained once: by the best bot, else by the first that finds it.
        keywords = [word for word in marks[name].keywords if word not in explained]
        if keywords:
            explained.update(keywords)
            more = len(keywords) - _MOST_KEYWORDS
            listed = ", ".join(keywords[:_MOST_KEYWORDS]) + (f" and {more} more" if more > 0 else "")
            yield f"{_WHY[name]} {listed}"


# Bot → why its answers contain keywords.
_WHY = {
    "silent": "an empty reply contains",
    "echo": "the question itself contains",
    "refuser": "a refusal contains",
    "every-tool": "a generic reply contains",
    "parrot": "other questions' keywords contain",
}
