"""LangSmith runs: a root run, alone or with the tool and retriever runs below it."""

from collections.abc import Callable, Iterator
from datetime import datetime

import msgspec

from answerkey.model.json_value import JsonObject
from answerkey.model.reply import Evidence, Reply, Source, Timings, ToolCall
from answerkey.transcripts.fields.content_text import json_text, read_text
from answerkey.transcripts.fields.error_field import read_failure
from answerkey.transcripts.fields.sources import read_sources
from answerkey.transcripts.fields.tool_calls import read_arguments
from answerkey.transcripts.json_shapes import as_dict, as_dicts, as_str, pick

__all__ = ["detect", "read"]


def detect(payload: JsonObject) -> bool:
    """`run_type` beside inputs or outputs."""
    return isinstance(payload.get("run_type"), str) and ("outputs" in payload or "inputs" in payload)


def read(payload: JsonObject, read_format: Callable[[JsonObject], Reply | None]) -> Reply:
    """The root run's output, which may be in any known format; the runs below it are its calls and sources."""
    outputs = payload.get("outputs")
    inner = read_format(outputs) if isinstance(outputs, dict) else None
    text = inner.text if inner is not None else _text(outputs)
    calls: list[ToolCall] = []
    sources: list[Source] = []
    for run in _below(payload, 0):
        if run.get("run_type") == "tool":
            calls.append(_call(run))
        elif run.get("run_type") == "retriever":
            sources += read_sources(as_dict(run.get("outputs")).get("documents"))
    has_tree = bool(as_dicts(payload.get("child_runs")))
    if not calls and inner is not None:
        calls = list(inner.tool_calls)
    sources = [msgspec.structs.replace(source, rank=rank) for rank, source in enumerate(sources, start=1)]
    if not sources and inner is not None:
        sources = list(inner.sources)
    observed = has_tree or bool(calls) or (inner is not None and inner.evidence.tools_observed)
    return Reply(
        text=text,
        tool_calls=tuple(calls),
        sources=tuple(sources),
        failure=read_failure(payload.get("error")),
        usage=None if inner is None else inner.usage,
        timings=Timings(latency_ms=_milliseconds(payload)),
        evidence=Evidence(kind="log", tools_observed=observed, sources_observed=bool(sources)),
        response_id=as_str(pick(payload, "id", "run_id")),
        trace_id=as_str(payload.get("trace_id")),
    )


def _text(outputs: object) -> str | None:
    if not isinstance(outputs, dict):
        return read_text(outputs)
    for name in ("answer", "output", "response", "text", "result", "content"):
        if isinstance(outputs.get(name), str):
            return str(outputs[name])
    if len(outputs) == 1:
        return read_text(next(iter(outputs.values())))
    return json_text(outputs) if outputs else None


def _below(run: JsonObject, depth: int) -> Iterator[JsonObject]:
    if depth > 50:
        return
    for child in as_dicts(run.get("child_runs")):
        yield child
        yield from _below(child, depth + 1)


def _call(run: JsonObject) -> ToolCall:
    inputs = as_dict(run.get("inputs"))
    given = inputs.get("input") if set(inputs) == {"input"} else inputs
    arguments, text = read_arguments(given)
    outputs = run.get("outputs")
    return ToolCall(
        name=as_str(run.get("name")) or "(unnamed)",
        id=as_str(run.get("id")),
        arguments=arguments,
        arguments_text=text,
        result=as_dict(outputs).get("output", outputs),
        result_seen=outputs is not None,
        error=as_str(run.get("error")),
        duration_ms=_milliseconds(run),
    )


def _milliseconds(run: JsonObject) -> float | None:
    start, end = as_str(run.get("start_time")), as_str(run.get("end_time"))
    if start is None or end is None:
        return None
    try:
        taken = (datetime.fromisoformat(end) - datetime.fromisoformat(start)).total_seconds() * 1000
    except (ValueError, TypeError):
        return None
    return taken if taken >= 0 else None
