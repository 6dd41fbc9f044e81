"""What was logged of one question's run: a sample of Inspect, or a run of LangSmith with those below it."""

from collections.abc import Callable, Iterator
from datetime import datetime
from functools import reduce

import msgspec

from answerkey.model.json_value import Json, JsonObject
from answerkey.model.reply import Evidence, Reply, Source, Timings, ToolCall
from answerkey.transcripts.conversation import Asked, exchange_for, reply_of
from answerkey.transcripts.failures import not_text, read_failure
from answerkey.transcripts.fields.content_text import spoken_text
from answerkey.transcripts.fields.sources import ranked, read_sources
from answerkey.transcripts.fields.tool_calls import read_call
from answerkey.transcripts.fields.usage import add_usage, read_usage
from answerkey.transcripts.formats import Format
from answerkey.transcripts.json_shapes import as_dict, as_dicts, as_str, at, pick, read_duration
from answerkey.transcripts.message_reading import read_messages


def _sample(payload: JsonObject, asked: Asked) -> Reply:
    """A sample of Inspect: its messages, with the tool events that time and grade each call."""
    messages = read_messages(payload.get("messages"))
    reply = reply_of(exchange_for(messages, asked) or messages)
    said = at(payload, "output", "choices", 0, "message", "content")
    events = [_event(event) for event in as_dicts(payload.get("events")) if event.get("event") == "tool"]
    usages = [read_usage(part) for part in as_dict(payload.get("model_usage")).values()]
    # The events are the better record, with durations and errors; but only of the whole sample.
    timed = len(events) == len(reply.tool_calls)
    return msgspec.structs.replace(
        reply,
        text=spoken_text(said) if reply.text is None else reply.text,
        tool_calls=tuple(events) if timed else reply.tool_calls,
        failure=read_failure(payload.get("error")),
        usage=reduce(add_usage, usages, None) or reply.usage,
        timings=Timings(latency_ms=_from_seconds(payload.get("total_time"))),
        response_id=as_str(payload.get("uuid")) or reply.response_id,
    )


def _log(payload: JsonObject, asked: Asked) -> Reply:
    return _sample(as_dicts(payload["samples"])[0], asked)


def _is_one_sample(value: Json) -> bool:
    return len(as_dicts(value)) == 1 and isinstance(at(value, 0, "messages"), list)


def _event(event: JsonObject) -> ToolCall:
    error = event.get("error") or event.get("failed") is True
    return read_call({**event, "error": error, "duration_ms": _from_seconds(event.get("working_time"))})


def _from_seconds(value: object) -> float | None:
    seconds = read_duration(value)
    return None if seconds is None else seconds * 1000


def read_langsmith(
    payload: JsonObject, asked: Asked, read_document: Callable[[JsonObject, Asked], Reply | None]
) -> Reply:
    """The root run's output, which may be in any known format; the runs below it are its calls and sources."""
    outputs = payload.get("outputs")
    inner = read_document(outputs, asked) if isinstance(outputs, dict) else None
    if inner is None:
        text = _text(outputs)
        inner = Reply(text=text, failure=not_text("outputs", outputs) if text is None and outputs else None)
    below = list(_below(payload, 0))
    calls = [_call(run) for run in below if run.get("run_type") == "tool"]
    found: list[Source] = []
    for run in below:
        if run.get("run_type") == "retriever":
            found += read_sources(as_dict(run.get("outputs")).get("documents"))
    sources = ranked(found) or inner.sources
    observed = bool(below or inner.tool_calls or inner.evidence.tools_observed)
    return Reply(
        text=inner.text,
        tool_calls=tuple(calls) or inner.tool_calls,
        sources=sources,
        failure=read_failure(payload.get("error")) or inner.failure,
        usage=inner.usage,
        timings=Timings(latency_ms=_taken(payload)),
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
    call = {**run, "args": given, "duration_ms": _taken(run)}
    outputs = run.get("outputs")
    if outputs is not None:
        call["result"] = as_dict(outputs).get("output", outputs)
    return read_call(call)


def _taken(run: JsonObject) -> float | None:
    start, end = as_str(run.get("start_time")), as_str(run.get("end_time"))
    if start is None or end is None:
        return None
    try:
        taken = (datetime.fromisoformat(end) - datetime.fromisoformat(start)).total_seconds() * 1000
    except (ValueError, TypeError):
        return None
    return taken if taken >= 0 else None


ROWS = (
    Format("Inspect sample", {"messages": list, "epoch": int}, _sample),
    Format("Inspect sample, without an epoch", {"messages": list, "model_usage": dict}, _sample),
    Format("Inspect log of one sample", {"samples": _is_one_sample}, _log),
)
