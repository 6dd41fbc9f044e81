"""The run document that others script against: `run --json`, `show --json`, `report -o x.json`."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from answerkey.model.reply import Reply
from answerkey.model.scorecard import Score, Scorecard
from answerkey.model.trial import Trial

if TYPE_CHECKING:
    from answerkey.model.run import Run

# Version of the document's layout.
SCHEMA = 1
# What it says of the run itself, under the names of RunInfo.
_RUN_FIELDS = (
    *("id", "name", "status", "created_at", "finished_at", "target", "target_hash"),
    *("question_set", "question_set_hash", "repeat", "match", "weights", "pass_mark"),
)


def run_document(run: "Run") -> dict[str, Any]:
    """All of it, in memory."""
    return {**run_header(run), "results": [result_document(result) for result in run.results]}


def run_header(run: "Run") -> dict[str, Any]:
    """The run document without its results, so that writers can stream those."""
    info = run.info
    plain: dict[str, Any] = msgspec.to_builtins(run.summary)
    del plain["name"]
    return {
        "schema": SCHEMA,
        "run": {
            **{name: getattr(info, name) for name in _RUN_FIELDS},
            "status": info.status,
            "target_version": msgspec.to_builtins(info.target_version) or None,
            "tags": list(info.tags),
            **({"directions": info.directions} if info.directions else {}),
        },
        "summary": plain,
        "categories": [{"category": part.pop("name"), **part} for part in plain.pop("categories")],
        "slices": plain.pop("slices"),
        **({"judge": info.judge} if info.judge else {}),
        "gates": [msgspec.to_builtins(gate) for gate in run.gates],
        "warnings": list(run.warnings),
        **({} if run.comparison is None else {"comparison": run.comparison.to_dict()}),
    }


def result_document(result: Trial) -> dict[str, Any]:
    """One entry of `results`. A conversation's entry has its turns beside the mean over them."""
    question, card = result.question, result.scorecard
    reply = reply_document(result.replies, card)
    document = {
        "id": question.id,
        "trial": result.number,
        "question": question.question,
        "category": question.category,
        **scorecard_document(card),
        "reply": reply,
        "metrics": card.metrics,
        # Beside the score as well, where a table of rows has it.
        "error": reply["error"],
    }
    if card.findings:
        document["findings"] = card.findings
    if question.turns:
        document["turns"] = [
            {
                "question": turn.question,
                **scorecard_document(turn_card),
                "reply": reply_document((reply,), turn_card),
                "metrics": turn_card.metrics,
                **({"findings": turn_card.findings} if turn_card.findings else {}),
            }
            for turn, reply, turn_card in zip(question.turns, result.replies, card.turns, strict=False)
        ]
    return document


def scorecard_document(card: Scorecard) -> dict[str, Any]:
    """A score with its components and reasons."""
    return {
        "score": card.total,
        "grade": card.grade,
        "passed": card.passed,
        "components": {name: score_document(score, score.weight) for name, score in card.components.items()},
    }


def score_document(score: Score, weight: float | None) -> dict[str, Any]:
    """A component with its weight."""
    return {"score": score.value, "weight": weight, "reason": score.reason, **score.details}


def reply_document(replies: Sequence[Reply], card: Scorecard | None = None) -> dict[str, Any]:
    """The reply; of a conversation the last one, with the tools, sources and time of all."""
    if not replies:
        return {
            "text": None,
            "tools_used": [],
            "tool_calls": [],
            "sources": [],
            "error": None,
            "latency_ms": None,
        }
    last = replies[-1]
    # What went wrong is shown where it is not charged to the chatbot, too.
    charged = None if card is None else card.error
    error = charged or next((reply.failure for reply in replies if reply.failure is not None), None)
    taken = [reply.timings.latency_ms for reply in replies if reply.timings.latency_ms is not None]
    calls = [call for reply in replies for call in reply.tool_calls]
    return {
        "text": last.text,
        "tools_used": [call.name for call in calls],
        "tool_calls": [msgspec.to_builtins(call) for call in calls],
        "sources": [msgspec.to_builtins(source) for reply in replies for source in reply.sources],
        "error": None if error is None else {"kind": error.kind, "message": error.message},
        "latency_ms": round(sum(taken), 3) if taken else None,
        "timings": msgspec.to_builtins(last.timings),
        "usage": msgspec.to_builtins(last.usage),
        "evidence": msgspec.to_builtins(last.evidence),
        "finish": last.finish,
        "reasoning": last.reasoning,
        "conversation_id": last.conversation_id,
        "response_id": last.response_id,
        "trace_id": last.trace_id,
    }
