"""A sample of an Inspect log: its messages, with the tool events that time and grade each call."""

from functools import reduce

import msgspec

from answerkey.model.json_value import Json, JsonObject
from answerkey.model.reply import Reply, Timings, ToolCall
from answerkey.transcripts.conversation import Asked, exchange_for, reply_of
from answerkey.transcripts.fields.content_text import spoken_text
from answerkey.transcripts.fields.error_field import read_failure
from answerkey.transcripts.fields.tool_calls import read_call
from answerkey.transcripts.fields.usage import add_usage, read_usage
from answerkey.transcripts.formats.shape import Format
from answerkey.transcripts.json_shapes import as_dict, as_dicts, as_str, at, read_duration
from answerkey.transcripts.message_reading import read_messages

__all__ = ["ROWS"]


def _sample(payload: JsonObject, asked: Asked) -> Reply:
    messages = read_messages(payload.get("messages"))
    reply = reply_of(exchange_for(messages, asked) or messages)
    said = at(payload, "output", "choices", 0, "message", "content")
    events = [_call(event) for event in as_dicts(payload.get("events")) if event.get("event") == "tool"]
    usages = [read_usage(part) for part in as_dict(payload.get("model_usage")).values()]
    # The events are the better record, with durations and errors; but only of the whole sample.
    timed = len(events) == len(reply.tool_calls)
    return msgspec.structs.replace(
        reply,
        text=spoken_text(said) if reply.text is None else reply.text,
        tool_calls=tuple(events) if timed else reply.tool_calls,
        failure=read_failure(payload.get("error")),
        usage=reduce(add_usage, usages, None) or reply.usage,
        timings=Timings(latency_ms=_milliseconds(payload.get("total_time"))),
        response_id=as_str(payload.get("uuid")) or reply.response_id,
    )


def _log(payload: JsonObject, asked: Asked) -> Reply:
    return _sample(as_dicts(payload["samples"])[0], asked)


def _is_one_sample(value: Json) -> bool:
    return len(as_dicts(value)) == 1 and isinstance(at(value, 0, "messages"), list)


def _call(event: JsonObject) -> ToolCall:
    error = event.get("error") or event.get("failed") is True
    return read_call({**event, "error": error, "duration_ms": _milliseconds(event.get("working_time"))})


def _milliseconds(value: object) -> float | None:
    seconds = read_duration(value)
    return None if seconds is None else seconds * 1000


ROWS = (
    Format("Inspect sample", {"messages": list, "epoch": int}, _sample),
    Format("Inspect sample, without an epoch", {"messages": list, "model_usage": dict}, _sample),
    Format("Inspect log of one sample", {"samples": _is_one_sample}, _log),
)
