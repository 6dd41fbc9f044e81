"""Vercel AI SDK: UI messages of version 4 (toolInvocations) and 5 (typed parts), and the result of generateText."""

from answerkey.model.json_value import JsonObject
from answerkey.model.reply import Evidence, Reply, Source, ToolCall
from answerkey.transcripts.conversation import Message, Role, ToolResult, reply_of
from answerkey.transcripts.fields.tool_calls import error_text, read_arguments
from answerkey.transcripts.fields.usage import read_usage
from answerkey.transcripts.json_shapes import as_dict, as_dicts, as_str, pick

__all__ = ["detect", "detect_message", "read", "read_message"]

_PARTS = frozenset(
    {
        "text",
        "reasoning",
        "step-start",
        "tool-invocation",
        "dynamic-tool",
        "source",
        "source-url",
        "source-document",
        "file",
    }
)


_ROLES: dict[str, Role] = {"user": "user", "system": "system"}


def detect(payload: JsonObject) -> bool:
    """A UI message of the assistant, or a generateText result (`steps`, or camelCase tool calls beside a text)."""
    return detect_message(payload) or detect_result(payload)


def detect_message(item: JsonObject) -> bool:
    """Whether a message has the SDK's parts or invocations."""
    if isinstance(item.get("toolInvocations"), list):
        return True
    parts = as_dicts(item.get("parts"))
    kinds = [str(part.get("type", "")) for part in parts]
    return bool(parts) and all(kind in _PARTS or kind.startswith(("tool-", "data-")) for kind in kinds)


def detect_result(payload: JsonObject) -> bool:
    """Whether it is what generateText returns."""
    steps = payload.get("steps")
    return (
        isinstance(steps, list) and any(not step.keys().isdisjoint(_STEP) for step in as_dicts(steps))
    ) or ("finishReason" in payload and isinstance(payload.get("toolCalls"), list))


_STEP = frozenset({"toolCalls", "toolResults", "text", "content", "finishReason"})


def read(payload: JsonObject) -> Reply:
    """One message of the assistant, or a whole result."""
    if detect_message(payload):
        return reply_of([read_message({"role": "assistant", **payload})])
    return _read_result(payload)


def read_message(item: JsonObject) -> Message:
    """One UI message: the calls in it carry their results."""
    texts: list[str] = []
    calls: list[ToolCall] = []
    sources: list[Source] = []
    parts = as_dicts(item.get("parts"))
    for part in parts:
        kind = str(part.get("type", ""))
        if kind == "text" and isinstance(said := part.get("text"), str):
            texts.append(said)
        elif kind == "step-start":
            # What was said before the last step was not yet the answer.
            texts.clear()
        elif kind == "tool-invocation":
            calls.append(_invocation(as_dict(part.get("toolInvocation"))))
        elif kind == "dynamic-tool" or kind.startswith("tool-"):
            calls.append(_typed_part(kind, part))
        elif kind in ("source-url", "source-document", "source"):
            sources.append(_source(as_dict(part.get("source")) or part, len(sources) + 1))
    if not calls:
        calls = [_invocation(invocation) for invocation in as_dicts(item.get("toolInvocations"))]
    content = item.get("content")
    metadata = as_dict(item.get("metadata"))
    return Message(
        role=_ROLES.get(str(item.get("role")), "assistant"),
        text="".join(texts) if texts else content if isinstance(content, str) else None,
        calls=tuple(calls),
        sources=tuple(sources),
        usage=read_usage(metadata.get("usage") or metadata.get("totalUsage")),
        id=as_str(item.get("id")),
    )


def _invocation(item: JsonObject) -> ToolCall:
    arguments, text = read_arguments(pick(item, "args", "input"))
    seen = item.get("state") == "result" or "result" in item
    return ToolCall(
        name=as_str(item.get("toolName")) or "(unnamed)",
        id=as_str(item.get("toolCallId")),
        arguments=arguments,
        arguments_text=text,
        result=item.get("result"),
        result_seen=seen,
    )


def _typed_part(kind: str, part: JsonObject) -> ToolCall:
    arguments, text = read_arguments(pick(part, "input", "rawInput"))
    state = part.get("state")
    error = None
    if state == "output-error":
        error = as_str(part.get("errorText")) or "the call failed"
    elif state == "output-denied":
        error = "the call was denied"
    return ToolCall(
        name=as_str(part.get("toolName")) or kind.removeprefix("tool-") or "(unnamed)",
        id=as_str(part.get("toolCallId")),
        arguments=arguments,
        arguments_text=text,
        result=part.get("output"),
        result_seen=state in ("output-available", "output-error"),
        error=error,
    )


def _source(part: JsonObject, rank: int) -> Source:
    return Source(
        id=as_str(pick(part, "sourceId", "id", "url", "filename")),
        uri=as_str(part.get("url")),
        title=as_str(pick(part, "title", "filename")),
        rank=rank,
    )


def _read_result(payload: JsonObject) -> Reply:
    steps = as_dicts(payload.get("steps")) or [payload]
    messages: list[Message] = []
    for step in steps:
        content = as_dicts(step.get("content"))
        made = as_dicts(step.get("toolCalls")) or [
            part for part in content if part.get("type") == "tool-call"
        ]
        given = as_dicts(step.get("toolResults")) or [
            part for part in content if part.get("type") == "tool-result"
        ]
        failed = [part for part in content if part.get("type") == "tool-error"]
        said = step.get("text")
        if not isinstance(said, str):
            said = (
                "".join(str(part.get("text") or "") for part in content if part.get("type") == "text") or None
            )
        messages.append(
            Message(
                role="assistant",
                text=said,
                calls=tuple(_invocation({**call, "state": "call"}) for call in made),
                results=tuple(_result(part) for part in [*given, *failed]),
                sources=tuple(
                    _source(part, rank) for rank, part in enumerate(as_dicts(step.get("sources")), start=1)
                ),
                usage=read_usage(step.get("usage")),
            ),
        )
    reply = reply_of(messages)
    text = payload.get("text")
    return Reply(
        text=text if isinstance(text, str) else reply.text,
        tool_calls=reply.tool_calls,
        sources=reply.sources,
        usage=read_usage(payload.get("totalUsage")) or reply.usage,
        evidence=Evidence(
            kind="transcript" if "steps" in payload else "response",
            tools_observed=True,
            sources_observed=bool(reply.sources),
        ),
        response_id=as_str(as_dict(payload.get("response")).get("id")),
    )


def _result(part: JsonObject) -> ToolResult:
    return ToolResult(
        call_id=as_str(part.get("toolCallId")),
        name=as_str(part.get("toolName")),
        result=pick(part, "result", "output"),
        error=error_text(part.get("error")),
    )
