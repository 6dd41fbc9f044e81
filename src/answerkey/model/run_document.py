"""The run document of `run --json`, `show --json` and `report -o x.json`, and its JSON Schema."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from answerkey.model.reasons import details, reason
from answerkey.model.reply import Failure, Json, JsonObject, Reply
from answerkey.model.scorecard import UNNUMBERED, Scorecard, Trial

if TYPE_CHECKING:
    from answerkey.model.run import Run


# Applied to the structs in a document.
Convert = Callable[[Any], Any]
# Version of the document's layout.
SCHEMA = 1
# Fields of RunInfo in the document.
_RUN_FIELDS = (
    *("id", "name", "status", "created_at", "finished_at", "target", "target_hash"),
    *("question_set", "question_set_hash", "repeat", "match", "weights", "pass_mark"),
)


def run_document(run: "Run") -> dict[str, Any]:
    """The whole document, in memory."""
    return {**run_header(run), "results": [result_document(result) for result in run.results]}


def run_header(run: "Run") -> dict[str, Any]:
    """The run document without its results, which writers stream."""
    info = run.info
    plain: dict[str, Any] = msgspec.to_builtins(run.summary)
    del plain["name"]
    plain["truth"] = None if info.truth is None else msgspec.to_builtins(info.truth)
    return {
        "schema": SCHEMA,
        "run": {
            **{name: getattr(info, name) for name in _RUN_FIELDS},
            "status": info.status,
            "target_version": msgspec.to_builtins(info.target_version) or None,
            "tags": list(info.tags),
            **({"directions": info.directions} if info.directions else {}),
            **({"rescored": msgspec.to_builtins(info.rescored)} if info.rescored else {}),
        },
        "summary": plain,
        "categories": [{"category": part.pop("name"), **part} for part in plain.pop("categories")],
        "slices": plain.pop("slices"),
        **({} if info.judge is None else {"judge": msgspec.to_builtins(info.judge)}),
        "gates": [msgspec.to_builtins(gate) for gate in run.gates],
        "warnings": list(run.warnings),
        **({} if run.comparison is None else {"comparison": run.comparison.to_dict()}),
    }


def result_document(result: Trial, convert: Convert = msgspec.to_builtins) -> dict[str, Any]:
    """One entry of `results`; that of a conversation also has its turns.

    `convert` is applied to the structs in it; a JSON writer needs no conversion.
    """
    question, card = result.question, result.scorecard
    reply = reply_document(result.replies, card, convert)
    document = {
        "id": question.id,
        "trial": 1 if result.number == UNNUMBERED else result.number,
        "question": question.question,
        "category": question.category,
        **scorecard_document(card, convert),
        "reply": reply,
        "metrics": card.metrics,
        # At the top level too, as in row files.
        "error": reply["error"],
    }
    if result.origin is not None:
        if result.origin.line is not None:
            document["line"] = result.origin.line
        document |= {"columns": result.origin.columns} if result.origin.columns else {}
    if card.findings:
        document["findings"] = card.findings
    if question.turns:
        document["turns"] = [
            {
                "question": turn.question,
                **scorecard_document(turn_card, convert),
                "reply": reply_document((reply,), turn_card, convert),
                "metrics": turn_card.metrics,
                **({"findings": turn_card.findings} if turn_card.findings else {}),
            }
            for turn, reply, turn_card in zip(question.turns, result.replies, card.turns, strict=False)
        ]
    return document


def scorecard_document(card: Scorecard, convert: Convert = msgspec.to_builtins) -> dict[str, Any]:
    """A score with its components and reasons."""
    return {
        "score": card.total,
        "grade": card.grade,
        "passed": card.passed,
        "components": {
            name: {
                "score": score.value,
                "weight": score.weight,
                "reason": reason(score),
                **details(score, convert),
            }
            for name, score in card.components.items()
        },
    }


def reply_document(
    replies: Sequence[Reply], card: Scorecard | None = None, convert: Convert = msgspec.to_builtins
) -> dict[str, Any]:
    """The reply; of a conversation the last one, with the tools, sources and total time of all turns."""
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
    # Errors that are not charged to the chatbot are shown too.
    charged = None if card is None else card.error
    error = charged or next((reply.failure for reply in replies if reply.failure is not None), None)
    latencies = [reply.timings.latency_ms for reply in replies if reply.timings.latency_ms is not None]
    calls = [call for reply in replies for call in reply.tool_calls]
    return {
        "text": last.text,
        "tools_used": [call.name for call in calls],
        "tool_calls": [convert(call) for call in calls],
        "sources": [convert(source) for reply in replies for source in reply.sources],
        "error": None if error is None else _error_document(error, replies),
        "latency_ms": round(sum(latencies), 3) if latencies else None,
        "timings": convert(last.timings),
        "usage": convert(last.usage),
        "evidence": convert(last.evidence),
        "finish": last.finish,
        "reasoning": last.reasoning,
        "conversation_id": last.conversation_id,
        "response_id": last.response_id,
        "trace_id": last.trace_id,
    }


def _error_document(error: Failure, replies: Sequence[Reply]) -> dict[str, str]:
    document = {"kind": error.kind, "message": error.message}
    traces = (reply.failure.traceback for reply in replies if reply.failure is not None)
    if trace := next(filter(None, traces), ""):
        document["traceback"] = trace
    return document


# The JSON Schema: what every version with this schema number has.


_TEXT: Json = {"type": "string"}
_NUMBER: Json = {"type": ["number", "null"]}
_COUNT: Json = {"type": "integer", "minimum": 0}
_GRADE: Json = {"enum": ["A", "B", "C", "D", "F", None]}


def _object(fields: JsonObject, *optional: str) -> JsonObject:
    """An object with these fields; a later version may have more."""
    return {
        "type": "object",
        "properties": fields,
        "required": [name for name in fields if name not in optional],
    }


def _list_of(items: Json) -> JsonObject:
    return {"type": "array", "items": items}


def run_schema() -> JsonObject:
    """The schema of `run --json`, `show --json` and `report -o x.json`."""
    document: JsonObject = {
        "schema": {"const": SCHEMA},
        "run": _RUN,
        "summary": _object(
            {"score": _NUMBER, "grade": _GRADE, "questions": _COUNT, "replies": _COUNT, "coverage": _NUMBER}
        ),
        "categories": _list_of(_object({"category": _TEXT, "score": _NUMBER})),
        "gates": _list_of(_object({"gate": _TEXT, "passed": {"type": "boolean"}, "value": True})),
        "warnings": _list_of(_TEXT),
        "results": _list_of(_result()),
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A run of answerkey",
        **_object(document),
    }


def _result() -> JsonObject:
    component = _object({"score": _NUMBER, "weight": _NUMBER, "reason": _TEXT})
    graded: JsonObject = {
        "score": _NUMBER,
        "grade": _GRADE,
        "passed": {"type": ["boolean", "null"]},
        "components": {"type": "object", "additionalProperties": component},
    }
    return _object(
        {
            "id": _TEXT,
            "trial": _COUNT,
            "question": _TEXT,
            "category": _TEXT,
            **graded,
            "reply": _REPLY,
            "metrics": {"type": "object"},
            "error": _ERROR,
            "turns": _list_of(_object({"question": _TEXT, **graded, "reply": _REPLY})),
        },
        "error",
        "turns",
    )


_ERROR: Json = {"anyOf": [{"type": "null"}, _object({"kind": _TEXT, "message": _TEXT})]}
_REPLY = _object(
    {
        "text": {"type": ["string", "null"]},
        "tools_used": _list_of(_TEXT),
        "tool_calls": _list_of({"type": "object"}),
        "sources": _list_of({"type": "object"}),
        "error": _ERROR,
        "latency_ms": _NUMBER,
    }
)
_RUN = _object(
    {
        "id": _TEXT,
        "name": _TEXT,
        "status": {"enum": ["running", "interrupted", "partial", "complete"]},
        "created_at": _TEXT,
        "target": _TEXT,
        "question_set": _TEXT,
        "question_set_hash": _TEXT,
        "repeat": _COUNT,
        "match": _TEXT,
        "weights": {"type": "object", "additionalProperties": {"type": "number"}},
    }
)
