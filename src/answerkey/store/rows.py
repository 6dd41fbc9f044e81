"""Rows as the store writes them: a run, the replies to a question, a scorecard."""

from typing import Any

import msgspec

from answerkey.model.run import RunInfo
from answerkey.model.trial import Trial, total_latency
from answerkey.store.lookup import reply_digest

__all__ = ["reply_row", "run_row", "scorecard_row"]

_encode = msgspec.json.Encoder().encode


def run_row(info: RunInfo) -> dict[str, Any]:
    """A run's row, without its summary."""
    return {
        "id": info.id,
        "name": info.name,
        "status": info.status,
        "created_at": info.created_at,
        "target": info.target,
        "question_set": info.question_set,
        "question_set_hash": info.question_set_hash,
        "scoring_hash": info.scoring_hash,
        "info": _text(info),
    }


def reply_row(info: RunInfo, trial: Trial, now: str) -> dict[str, Any]:
    """The row of the replies to one question."""
    return {
        "run_id": info.id,
        "ask_hash": trial.question.ask_hash,
        "trial": trial.number,
        "target_hash": info.target_hash,
        "created_at": now,
        "payload": _text(trial.replies),
    }


def scorecard_row(info: RunInfo, trial: Trial) -> dict[str, Any]:
    """A scorecard's row, with the columns that lists are made of."""
    question, replies, card = trial.question, trial.replies, trial.scorecard
    costs = [
        reply.usage.cost for reply in replies if reply.usage is not None and reply.usage.cost is not None
    ]
    return {
        "run_id": info.id,
        "scoring_hash": info.scoring_hash,
        "position": trial.position,
        "trial": trial.number,
        "question_id": question.id,
        "content_hash": question.content_hash,
        "ask_hash": question.ask_hash,
        "category": question.category,
        "score": card.total,
        "grade": card.grade,
        "passed": card.passed,
        "error_kind": None if card.error is None else card.error.kind,
        "latency_ms": total_latency(replies),
        "cost": sum(costs) if costs else None,
        "payload": _text(card),
        "judge": card.metrics.get("judge"),
        "reply_digest": reply_digest(replies),
    }


def _text(value: Any) -> str:
    return _encode(value).decode()
