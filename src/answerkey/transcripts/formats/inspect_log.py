"""A sample of an Inspect log: its messages, with the tool events that time and grade each call."""

import msgspec

from answerkey.model.json_value import JsonObject
from answerkey.model.reply import Reply, Timings, ToolCall, Usage
from answerkey.transcripts.conversation import replies_of
from answerkey.transcripts.fields.content_text import read_text
from answerkey.transcripts.fields.error_field import read_failure
from answerkey.transcripts.fields.json_numbers import read_duration
from answerkey.transcripts.fields.tool_calls import error_text, read_arguments
from answerkey.transcripts.fields.usage import add_usage, read_usage
from answerkey.transcripts.formats.openai_chat import read_message
from answerkey.transcripts.json_shapes import as_dict, as_dicts, as_str

__all__ = ["detect", "read"]


def detect(payload: JsonObject) -> bool:
    """A sample (`epoch` beside messages), or a log with a single one."""
    if isinstance(payload.get("messages"), list) and ("epoch" in payload or "model_usage" in payload):
        return True
    samples = payload.get("samples")
    return (
        isinstance(samples, list)
        and len(samples) == 1
        and isinstance(samples[0], dict)
        and detect(samples[0])
    )


def read(payload: JsonObject) -> Reply:
    """The sample's last reply."""
    if "messages" not in payload:
        payload = as_dicts(payload["samples"])[0]
    replies = replies_of([read_message(item) for item in as_dicts(payload.get("messages"))])
    reply = replies[-1] if replies else Reply()
    if reply.text is None:
        choices = as_dicts(as_dict(payload.get("output")).get("choices"))
        said = as_dict(choices[0].get("message")).get("content") if choices else None
        reply = msgspec.structs.replace(reply, text=read_text(said))
    events = [_call(event) for event in as_dicts(payload.get("events")) if event.get("event") == "tool"]
    if events and len(replies) <= 1:
        # The events are the better record: they have durations and errors.
        reply = msgspec.structs.replace(reply, tool_calls=tuple(events))
    usage: Usage | None = None
    for part in as_dict(payload.get("model_usage")).values():
        usage = add_usage(usage, read_usage(part))
    seconds = read_duration(payload.get("total_time"))
    return msgspec.structs.replace(
        reply,
        failure=read_failure(payload.get("error")),
        usage=usage or reply.usage,
        timings=Timings(latency_ms=None if seconds is None else seconds * 1000),
        response_id=as_str(payload.get("uuid")) or reply.response_id,
    )


def _call(event: JsonObject) -> ToolCall:
    arguments, text = read_arguments(event.get("arguments"))
    seconds = read_duration(event.get("working_time"))
    return ToolCall(
        name=as_str(event.get("function")) or "(unnamed)",
        id=as_str(event.get("id")),
        arguments=arguments,
        arguments_text=text,
        result=event.get("result"),
        result_seen="result" in event,
        error=error_text(event.get("error")) or ("the call failed" if event.get("failed") is True else None),
        duration_ms=None if seconds is None else seconds * 1000,
    )
