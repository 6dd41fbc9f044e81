"""A sample of an Inspect log: its messages, with the tool events that time and grade each call."""

from functools import reduce

import msgspec

from answerkey.model.json_value import JsonObject
from answerkey.model.reply import Reply, Timings, ToolCall
from answerkey.transcripts.conversation import replies_of
from answerkey.transcripts.fields.content_text import read_text
from answerkey.transcripts.fields.error_field import read_failure
from answerkey.transcripts.fields.tool_calls import read_call
from answerkey.transcripts.fields.usage import add_usage, read_usage
from answerkey.transcripts.formats.openai_chat import read_message
from answerkey.transcripts.json_shapes import as_dict, as_dicts, as_list, as_str, read_duration

__all__ = ["detect", "read"]


def detect(payload: JsonObject) -> bool:
    """A sample (`epoch` beside messages), or a log with a single one."""
    if isinstance(payload.get("messages"), list) and ("epoch" in payload or "model_usage" in payload):
        return True
    samples = as_list(payload.get("samples"))
    return len(samples) == 1 and isinstance(samples[0], dict) and detect(samples[0])


def read(payload: JsonObject) -> Reply:
    """The sample's last reply."""
    if "messages" not in payload:
        payload = as_dicts(payload["samples"])[0]
    replies = replies_of([read_message(item) for item in as_dicts(payload.get("messages"))])
    reply = replies[-1] if replies else Reply()
    text = reply.text
    if text is None:
        choice = next(iter(as_dicts(as_dict(payload.get("output")).get("choices"))), {})
        text = read_text(as_dict(choice.get("message")).get("content"))
    events = [_call(event) for event in as_dicts(payload.get("events")) if event.get("event") == "tool"]
    usages = [read_usage(part) for part in as_dict(payload.get("model_usage")).values()]
    return msgspec.structs.replace(
        reply,
        text=text,
        # The events are the better record: they have durations and errors.
        tool_calls=tuple(events) if events and len(replies) <= 1 else reply.tool_calls,
        failure=read_failure(payload.get("error")),
        usage=reduce(add_usage, usages, None) or reply.usage,
        timings=Timings(latency_ms=_milliseconds(payload.get("total_time"))),
        response_id=as_str(payload.get("uuid")) or reply.response_id,
    )


def _call(event: JsonObject) -> ToolCall:
    error = event.get("error") or event.get("failed") is True
    return read_call({**event, "error": error, "duration_ms": _milliseconds(event.get("working_time"))})


def _milliseconds(value: object) -> float | None:
    seconds = read_duration(value)
    return None if seconds is None else seconds * 1000
