"""LangSmith runs: a root run, alone or with the tool and retriever runs below it."""

from collections.abc import Callable, Iterator
from datetime import datetime

from answerkey.model.json_value import JsonObject
from answerkey.model.reply import Evidence, Reply, Source, Timings, ToolCall
from answerkey.transcripts.conversation import Asked
from answerkey.transcripts.fields.content_text import spoken_text
from answerkey.transcripts.fields.error_field import not_text, read_failure
from answerkey.transcripts.fields.sources import ranked, read_sources
from answerkey.transcripts.fields.tool_calls import read_call
from answerkey.transcripts.formats.shape import Mark
from answerkey.transcripts.json_shapes import as_dict, as_dicts, as_str, pick

__all__ = ["MARKS", "read"]


# `run_type` beside inputs or outputs.
MARKS: tuple[dict[str, Mark], ...] = (
    {"run_type": str, "outputs": object},
    {"run_type": str, "inputs": object},
)


def read(
    payload: JsonObject, asked: Asked, read_document: Callable[[JsonObject, Asked], Reply | None]
) -> Reply:
    """The root run's output, which may be in any known format; the runs below it are its calls and sources."""
    outputs = payload.get("outputs")
    inner = read_document(outputs, asked) if isinstance(outputs, dict) else None
    if inner is None:
        text = _text(outputs)
        inner = Reply(text=text, failure=not_text("outputs", outputs) if text is None and outputs else None)
    calls: list[ToolCall] = []
    found: list[Source] = []
    for run in _below(payload, 0):
        if run.get("run_type") == "tool":
            calls.append(_call(run))
        elif run.get("run_type") == "retriever":
            found += read_sources(as_dict(run.get("outputs")).get("documents"))
    sources = ranked(found) or inner.sources
    observed = bool(as_dicts(payload.get("child_runs")) or inner.tool_calls or inner.evidence.tools_observed)
    return Reply(
        text=inner.text,
        tool_calls=tuple(calls) or inner.tool_calls,
        sources=sources,
        failure=read_failure(payload.get("error")) or inner.failure,
        usage=inner.usage,
        timings=Timings(latency_ms=_milliseconds(payload)),
        evidence=Evidence(kind="log", tools_observed=observed, sources_observed=bool(sources)),
        response_id=as_str(pick(payload, "id", "run_id")),
        trace_id=as_str(payload.get("trace_id")),
    )


def _text(outputs: object) -> str | None:
    if not isinstance(outputs, dict):
        return spoken_text(outputs)
    for name in ("answer", "output", "response", "text", "result", "content"):
        if isinstance(outputs.get(name), str):
            return str(outputs[name])
    return spoken_text(next(iter(outputs.values()))) if len(outputs) == 1 else None


def _below(run: JsonObject, depth: int) -> Iterator[JsonObject]:
    if depth > 50:
        return
    for child in as_dicts(run.get("child_runs")):
        yield child
        yield from _below(child, depth + 1)


def _call(run: JsonObject) -> ToolCall:
    inputs = as_dict(run.get("inputs"))
    given = inputs.get("input") if set(inputs) == {"input"} else inputs
    call = {**run, "args": given, "duration_ms": _milliseconds(run)}
    outputs = run.get("outputs")
    if outputs is not None:
        call["result"] = as_dict(outputs).get("output", outputs)
    return read_call(call)


def _milliseconds(run: JsonObject) -> float | None:
    start, end = as_str(run.get("start_time")), as_str(run.get("end_time"))
    if start is None or end is None:
        return None
    try:
        taken = (datetime.fromisoformat(end) - datetime.fromisoformat(start)).total_seconds() * 1000
    except (ValueError, TypeError):
        return None
    return taken if taken >= 0 else None
